planted_bug(image_without_a_site_not_zero
  RUNG cpu_reference/sparse_global_pool/direct
  FIND [==[y[i] = finished(pool.reduce, y[i], counts[static_cast<std::size_t>(i / C)]);]==]
  REPLACE [==[y[i] = finished(pool.reduce, y[i], std::max(counts[static_cast<std::size_t>(i / C)], 1));]==]
  TEACHES "a batch may have an image without any site: its maximum is not minus infinity")

planted_bug(rows_taken_for_sorted
  RUNG cuda_naive/sparse_global_pool/direct
  FIND [==[if (coords[row * columns] != n) continue;]==]
  REPLACE [==[if (coords[row * columns] > n) break;
      if (coords[row * columns] != n) continue;]==]
  TEACHES "sites come in any order: the rows of an image need not be neighbours")

planted_bug(divided_by_all_rows
  RUNG cuda_naive/sparse_global_pool/direct
  FIND [==[y[i] = finished(pool.reduce, value, count);]==]
  REPLACE [==[y[i] = finished(pool.reduce, value, count == 0 ? 0 : pool.grid.sites);]==]
  TEACHES "a mean is over the sites of its image, not over those of the batch")

planted_bug(part_begins_at_zero
  RUNG cuda_optimized/sparse_global_pool/row_parts
  FIND [==[row = part * length + warp]==]
  REPLACE [==[row = warp]==]
  TEACHES "rows that are counted twice change no maximum, but a mean")

planted_bug(results_overwritten
  RUNG cuda_optimized/sparse_global_pool/row_parts
  FIND [==[__syncthreads();  // the values of all warps are stored before they are joined]==]
  REPLACE [==[]==]
  TEACHES "a tree reads what other warps have written: a barrier at each of its levels")

planted_bug(batch_has_one_grid
  RUNG cpu_reference/sparse_to_dense/row_grid
  FIND [==[const std::int32_t* rows_n = rows.data() + n * cells;]==]
  REPLACE [==[const std::int32_t* rows_n = rows.data() + 0 * n * cells;]==]
  TEACHES "each sample of a batch has cells of its own")

planted_bug(channels_last
  RUNG cuda_naive/sparse_to_dense/scatter
  FIND [==[x[(n * C + c) * cells + cell] = features[i];]==]
  REPLACE [==[x[(n * cells + cell) * C + c] = features[i];]==]
  TEACHES "of the same size, and for one channel the same: NDHWC instead of NCDHW")

planted_bug(empty_cells_not_stored
  RUNG cuda_optimized/sparse_to_dense/row_grid
  FIND [==[x[plane * cells + cell] = row < 0 ? 0.0f : features[row * C + c];]==]
  REPLACE [==[if (row >= 0) x[plane * cells + cell] = features[row * C + c];]==]
  TEACHES "who does not zero x first must store its zeros")

planted_bug(tile_turned_before_it_is_complete
  RUNG cuda_optimized/sparse_to_dense/transposed_tiles
  FIND [==[__syncthreads();  // the tile is complete before its columns are read]==]
  REPLACE [==[]==]
  TEACHES "a transposition reads what other warps have written")

planted_bug(next_tile_over_one_still_read
  RUNG cuda_optimized/sparse_to_dense/transposed_tiles
  FIND [==[__syncthreads();  // the tile is read before the next one overwrites it]==]
  REPLACE [==[]==]
  TEACHES "blocks that stride over tiles need a second barrier")

planted_bug(voxels_as_they_come
  RUNG cpu_reference/voxelize/hash_map
  FIND [==[std::sort(entries.begin(), entries.end(),]==]
  REPLACE [==[std::sort(entries.begin(), entries.begin(),]==]
  TEACHES "a hash map has no order, and a list of its entries that of the points")

planted_bug(sum_in_float
  RUNG cpu_reference/voxelize/sorted_points
  FIND [==[sum += double{arrays.points[sorted[i].second * columns + c]};]==]
  REPLACE [==[sum = static_cast<float>(sum + double{arrays.points[sorted[i].second * columns + c]});]==]
  TEACHES "far from the origin, or of many points, a sum in float has no digits left for its next term")

planted_bug(points_without_a_voxel_are_a_run
  RUNG cuda_naive/voxelize/sorted_points
  FIND [==[heads[i] = keys[i] != no_voxel && (i == 0 || keys[i] != keys[i - 1]);]==]
  REPLACE [==[heads[i] = i == 0 || keys[i] != keys[i - 1];]==]
  TEACHES "what has no key must not look like a key")

planted_bug(bits_added
  RUNG cuda_optimized/voxelize/bit_grid
  FIND [==[if (cell != kNone) atomicOr(&bits[cell / 32], bit_of(cell));]==]
  REPLACE [==[if (cell != kNone) atomicAdd(&bits[cell / 32], bit_of(cell));]==]
  TEACHES "a bit that two points add is carried into the next; a bit that they set stays")

planted_bug(sums_of_three_columns
  RUNG cuda_optimized/voxelize/bit_grid
  FIND [==[mean_of(problem.grid, c, value_of(totals[m * columns + c]), counts[m]);]==]
  REPLACE [==[mean_of(problem.grid, c, value_of(totals[m * 4 + c]), counts[m]);]==]
  TEACHES "points with and without an intensity have rows of other lengths")

planted_bug(list_in_order_of_arrival
  RUNG cuda_optimized/voxelize/point_lists
  FIND [==[place += lists[other] < n;]==]
  REPLACE [==[place += other < i;]==]
  TEACHES "a list filled by atomics has another order in each run, and sums that are not exact show it")

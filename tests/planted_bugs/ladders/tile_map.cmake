planted_bug(divides_by_the_template_argument
  RUNG cuda_optimized/tile_map/maps
  FILE cuda_optimized/tile_map/tile_map.cuh
  FIND [==[const int log_width = log_tile(map.map, map.tiles_n);]==]
  REPLACE [==[const int log_width = static_cast<int>(map.map) - static_cast<int>(TileMap::identity1);]==]
  TEACHES "CUTLASS's second get_tile_offset(): with N = 8 and 10 x 6 tiles it covers 10 of 60")

planted_bug(last_group_as_high_as_the_others
  RUNG cuda_optimized/tile_map/maps
  FILE cuda_optimized/tile_map/tile_map.cuh
  FIND [==[const int rows = rows_left < group_rows ? rows_left : group_rows;]==]
  REPLACE [==[const int rows = group_rows;]==]
  TEACHES "tile rows that the group height does not divide")

planted_bug(remainder_of_the_steps_lost
  RUNG cuda_optimized/tile_map/maps
  FILE cuda_optimized/tile_map/tile_map.cuh
  FIND [==[const std::int64_t end = step + share + (blockIdx.x < more ? 1 : 0);]==]
  REPLACE [==[const std::int64_t end = step + share;]==]
  TEACHES "k-steps that the number of blocks does not divide")

planted_bug(reads_past_the_end_times_zero
  RUNG cuda_optimized/gemm/tiled
  FIND [==[k0 + ty < product.K && n0 + tx < product.N]==]
  REPLACE [==[n0 + tx < product.N]==]
  TEACHES "garbage times zero is not zero: guard bands of NaN show reads that 'do not matter'")

planted_bug(dropped_barrier_after_the_product
  RUNG cuda_optimized/gemm/tiled
  FIND [==[__syncthreads();  // separates these loads from the next step's stores]==]
  REPLACE [==[]==]
  TEACHES "invisible while K is one tile")

planted_bug(products_cut_off
  RUNG cpu_reference/gemm/triple_loop
  FIND [==[sum += to_float(a[m * K + k]) * to_float(b[k * N + n]);]==]
  REPLACE [==[sum += static_cast<float>(static_cast<int>(to_float(a[m * K + k]) * to_float(b[k * N + n]) * 2048)) / 2048;]==]
  TEACHES "small integers do not notice a coarse format: real mode does, element by element")

planted_bug(rows_stored_side_by_side
  RUNG cuda_optimized/gemm/register_tile
  FIND [==[const std::int64_t m = m0 + ty + i * kDown, n]==]
  REPLACE [==[const std::int64_t m = m0 + ty * kThreadM + i, n]==]
  TEACHES "a thread's rows lie 16 apart, also where it stores them")

planted_bug(vector_store_past_the_row
  RUNG cuda_optimized/gemm/vectorized
  FILE cuda_optimized/gemm/shared/gemm_plan.cuh
  FIND [==[if (column + 3 < columns) to[3] = four.w;]==]
  REPLACE [==[to[3] = four.w;]==]
  TEACHES "four columns are not all inside because the first one is: the next row, or the guard band")

planted_bug(alignment_of_one_matrix_only
  RUNG cuda_optimized/gemm/vectorized
  FILE cuda_optimized/gemm/shared/gemm_plan.cuh
  FIND [==[return product.K % 4 == 0 && product.N % 4 == 0 &&]==]
  REPLACE [==[return product.N % 4 == 0 &&]==]
  TEACHES "a's rows are K long and b's are N long: both decide whether vectors may be used")

planted_bug(warps_as_wide_as_high
  RUNG cuda_optimized/gemm/warp_tiles
  FIND [==[warp % kWarps * kWarpN +]==]
  REPLACE [==[warp % kWarps * kWarpM +]==]
  TEACHES "a warp's part of a tile is no square: where it is as wide as the tile, nobody notices")

planted_bug(one_tile_is_not_two
  RUNG cuda_optimized/gemm/double_buffered
  FIND [==[buffer ^= 1;]==]
  REPLACE [==[]==]
  TEACHES "with one barrier a step, the next tiles must not go where others still read")

planted_bug(waits_for_one_group_too_few
  RUNG cuda_optimized/gemm/cp_async
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "what has not been waited for may be there in time on a GPU, and mostly is")

planted_bug(no_zeros_beyond_k
  RUNG cuda_optimized/gemm/cp_async
  FIND [==[const bool exists = b_k + k < left;]==]
  REPLACE [==[const bool exists = true;]==]
  TEACHES "a step that K does not fill needs zeros: what lies behind b is not a number")

planted_bug(empty_parts_added
  RUNG cuda_optimized/gemm/split_k
  FIND [==[const int count = ceil_div(k_steps, ceil_div(k_steps, splits));]==]
  REPLACE [==[const int count = splits;]==]
  TEACHES "parts are rounded up, so that the last ones may be empty: nobody has written them")

planted_bug(last_piece_lost
  RUNG cuda_optimized/gemm/stream_k
  FIND [==[block <= last; ++block)]==]
  REPLACE [==[block < last; ++block)]==]
  TEACHES "shares begin and end inside of tiles")

planted_bug(next_unit_before_the_last_is_done
  RUNG cuda_optimized/gemm/stream_k
  FIND [==[__syncthreads();  // separates the loads of the unit before from this one's copies]==]
  REPLACE [==[]==]
  TEACHES "a loop around a loop with barriers needs one of its own")

planted_bug(second_axis_of_the_grid_forgotten
  RUNG cuda_optimized/gemm/tf32/wgmma
  FILE cuda_optimized/tile_map/tile_map.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[places.walk.tile_at(place % places.walk.plane, &tile)]==]
  REPLACE [==[places.walk.tile_at(place % places.walk.row, &tile)]==]
  TEACHES "a map in a loop: identity<N> and horizontal go on along the grid's y")

planted_bug(as_many_places_as_tiles
  RUNG cuda_optimized/gemm/tf32/wgmma
  FILE cuda_optimized/tile_map/tile_map.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[: std::int64_t{walk.plane} * work.products * work.splits]==]
  REPLACE [==[: work.items()]==]
  TEACHES "a map in a loop: places without a tile lie between those with one")


set(algorithms core/cuda/algorithms.cu,core/cuda/site_check.cu)

planted_bug(stage_multiplied_before_it_has_landed
  RUNG cuda_optimized/gemm/tf32/mma
  FILE cuda_optimized/gemm/shared/mma_tile.cuh
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "on a GPU the copies have mostly landed anyway; here they land when waited for")

planted_bug(stored_without_the_permutation
  RUNG cuda_optimized/gemm/tf32/mma
  FIND [==[a_tile + S::Stages::A::at(i, a_k)]==]
  REPLACE [==[a_tile + i * kMmaStep + a_k]==]
  TEACHES "who stores and who loads must permute alike")

planted_bug(quarters_of_a_fragment_exchanged
  RUNG cuda_optimized/gemm/tf32/mma
  FILE cuda_optimized/gemm/shared/mma_tile.cuh
  FIND [==[Tile::at(lane % 16, k0 + lane / 16 * 4)]==]
  REPLACE [==[Tile::at(lane % 8 + lane / 16 * 8, k0 + lane / 8 % 2 * 4)]==]
  TEACHES "the order that fits b's fragments, used for a's: the wrapper's layout is the hardware's")

planted_bug(truncated_factors
  RUNG cuda_optimized/gemm/tf32/mma
  FILE cuda_optimized/gemm/shared/mma_tile.cuh
  FIND [==[b[j][e] = ptx::to_tf32(__uint_as_float(b[j][e]));]==]
  REPLACE [==[b[j][e] += 0;]==]
  TEACHES "integers are exact without cvt.rna; sums of positive products are 6e-4 too small")

planted_bug(big_parts_alone
  RUNG cuda_optimized/gemm/tf32/mma_3xtf32
  FIND [==[return ptx::to_tf32(value - __uint_as_float(factor));]==]
  REPLACE [==[return 0;]==]
  TEACHES "TF32 where the problem asks for fp32")

planted_bug(halves_of_a_fragment_exchanged
  RUNG cuda_optimized/gemm/mma
  FIND [==[const int row = warp_m + i * kMmaM + e % 2 * 8 + group;
          const int column = k + e / 2 * 8 + 2 * place;]==]
  REPLACE [==[const int row = warp_m + i * kMmaM + e / 2 * 8 + group;
          const int column = k + e % 2 * 8 + 2 * place;]==]
  TEACHES "registers 1 and 2 of a fragment of a are eight rows and eight steps of k away, in this order")

planted_bug(pieces_counted_instead_of_permuted
  RUNG cuda_optimized/gemm/ldmatrix
  FIND [==[(b_at ^ 8 * j)]==]
  REPLACE [==[(b_at + 8 * j)]==]
  TEACHES "in a swizzled row, the next piece is an exclusive or away, not an addition")

planted_bug(eight_steps_instead_of_columns
  RUNG cuda_optimized/gemm/ldmatrix
  FIND [==[swizzled_half(lane % 16, warp_n % kHalfColumns + lane / 16 * 8);]==]
  REPLACE [==[swizzled_half(lane % 8 + lane / 16 * 8, warp_n % kHalfColumns + lane / 8 % 2 * 8);]==]
  TEACHES "four matrices come at once: which quarter of a fragment each is, its lanes' addresses decide")

planted_bug(bytes_of_a_alone
  RUNG cuda_optimized/gemm/tma
  WITH core/cuda/tensor_map.cu
  FIND [==[warp == 0 ? S::kBytesA : kPieceBytes);]==]
  REPLACE [==[warp == 0 ? S::kBytesA : 0);]==]
  TEACHES "the barrier must expect the bytes of all boxes of a stage: otherwise its phase completes before b has arrived")

planted_bug(stage_loaded_before_its_products_are_done
  RUNG cuda_optimized/gemm/wgmma
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::wgmma_wait_group<1>();]==]
  REPLACE [==[ptx::wgmma_wait_group<2>();]==]
  TEACHES "wgmma is asynchronous: a stage may be overwritten when the group that reads it is complete, and not before")

planted_bug(stage_released_by_half_of_its_readers
  RUNG cuda_optimized/gemm/warp_specialized
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::mbarrier_init(&empty[i], kConsumerThreads / 32);]==]
  REPLACE [==[ptx::mbarrier_init(&empty[i], kConsumerThreads / 64);]==]
  TEACHES "a stage is empty when all warps of both consumers have arrived: the producer must not overtake the slower one")

planted_bug(steps_along_a_row_of_b
  RUNG cuda_optimized/gemm/persistent
  WITH core/cuda/tensor_map.cu
  FIND [==[b_at + k * kHalfColumns / 8]==]
  REPLACE [==[b_at + k / 8]==]
  TEACHES "a descriptor of a row-major factor steps from row to row: 16 steps of k are 2048 bytes, not 32")

planted_bug(box_overwritten_while_it_is_read
  RUNG cuda_optimized/gemm/tma_store
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::cp_async_bulk_wait_group_read<1>();]==]
  REPLACE [==[ptx::cp_async_bulk_wait_group_read<2>();]==]
  TEACHES "two boxes: all but one store must have read theirs, not all but two")

planted_bug(descriptor_without_its_high_word
  RUNG cuda_optimized/gemm/setmaxnreg
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[return std::uint64_t{high} << 32 | (low]==]
  REPLACE [==[return (low]==]
  TEACHES "a descriptor's low word says where, the high one how rows lie: the swizzle is in it")

planted_bug(bias_of_the_first_tile
  RUNG cuda_optimized/gemm/fused_epilogue
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[std::int64_t{item.n} * Shape::N + 32 * i +]==]
  REPLACE [==[32 * i +]==]
  TEACHES "a tile has columns of its own, and their bias: with one tile across c nobody notices")

planted_bug(relu_of_a_sum_without_its_bias
  RUNG cuda_optimized/gemm/fused_epilogue
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[above = activated(activation, above + bias_n);]==]
  REPLACE [==[above = activated(activation, above) + bias_n;]==]
  TEACHES "ReLU comes after the bias: a bias below zero must be able to switch an element off")

planted_bug(bias_of_the_neighbour
  RUNG cuda_optimized/gemm/fused_epilogue
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[j % 4 * 8 + pair + e]==]
  REPLACE [==[j % 4 * 8 + pair]==]
  TEACHES "a lane has two neighbouring columns of eight, and each has its own bias")

planted_bug(registers_loaded_while_they_are_read
  RUNG cuda_optimized/gemm/tf32/swap_ab
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::wgmma_wait_group<3>();]==]
  REPLACE [==[ptx::wgmma_wait_group<4>();]==]
  TEACHES "four sets of registers take turns: all but three products must be done before the next set is loaded")

planted_bug(stage_given_back_by_its_first_product
  RUNG cuda_optimized/gemm/tf32/swap_ab
  WITH core/cuda/tensor_map.cu
  FIND [==[if (k == kWgmmaStep - 8 && last_stage >= 0]==]
  REPLACE [==[if (k == 0 && last_stage >= 0]==]
  TEACHES "three products of the step before still read the stage that TMA would overwrite")

planted_bug(sums_left_on_the_tensor_cores
  RUNG cuda_optimized/gemm/fp8/wgmma
  WITH core/cuda/tensor_map.cu
  FIND [==[k > 0);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      if (lane == 0) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[j] += part[j];]==]
  REPLACE [==[step > item.first || k > 0);
      }
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      if (lane == 0) ptx::mbarrier_arrive(&empty[stage]);
#pragma unroll
      for (int j = 0; j < Shape::N / 2; ++j) sums[j] = part[j];]==]
  TEACHES "of 8 bits, products are added behind 13 bits of fraction: beyond 2^14 a sum loses ones")

planted_bug(scale_forgotten
  RUNG cuda_optimized/gemm/fp8/wgmma
  WITH core/cuda/tensor_map.cu
  FIND [==[sums[j] *= scale;]==]
  REPLACE [==[sums[j] *= 1;]==]
  TEACHES "where all scales are 1, nobody asks for one")

planted_bug(second_block_adds_to_the_first
  RUNG cuda_optimized/gemm/fp8/taller_tiles
  WITH core/cuda/tensor_map.cu
  FIND [==[b_at + k / 16, k > 0);]==]
  REPLACE [==[b_at + k / 16, i > 0 || k > 0);]==]
  TEACHES "registers that two blocks of rows share begin at zero for each of them")

planted_bug(stage_given_back_by_its_first_block
  RUNG cuda_optimized/gemm/fp8/taller_tiles
  WITH core/cuda/tensor_map.cu
  FIND [==[if (i == Shape::kRowTiles - 1 && lane == 0)]==]
  REPLACE [==[if (i == 0 && lane == 0)]==]
  TEACHES "b's tile is read once for each block of rows: TMA must wait for the last of them")

planted_bug(third_consumer_forgotten
  RUNG cuda_optimized/gemm/fp8/three_consumers
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::mbarrier_init(&empty[i], kMultiplyThreads / 32);]==]
  REPLACE [==[ptx::mbarrier_init(&empty[i], kConsumerThreads / 32);]==]
  TEACHES "a stage is empty when all who multiply have read it, of whom there are three now")

planted_bug(floats_stored_in_the_next_box
  RUNG cuda_optimized/gemm/fp8/three_consumers
  WITH core/cuda/tensor_map.cu
  FIND [==[first = 4 * (4 * piece + j);]==]
  REPLACE [==[first = 4 * (8 * piece + j) % (Shape::N / 2);]==]
  TEACHES "a box of 128 bytes a row holds 32 floats, where it held 64 numbers of 16 bits")

planted_bug(multiplied_before_it_is_split
  RUNG cuda_optimized/gemm/tf32/wgmma_3xtf32
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::mbarrier_wait(&ready[stage], round);]==]
  REPLACE [==[]==]
  TEACHES "TMA's barrier says that a stage has arrived, not what other warps have made of it")

planted_bug(small_parts_cut_off
  RUNG cuda_optimized/gemm/tf32/wgmma_3xtf32
  WITH core/cuda/tensor_map.cu
  FIND [==[__float_as_uint(value) & 0xffffe000u);]==]
  REPLACE [==[ptx::to_tf32(value));]==]
  TEACHES "wgmma cuts a number off, whatever the program has rounded it to: the small part must be what that leaves")

planted_bug(stage_given_back_to_one_block
  RUNG cuda_optimized/gemm/clusters
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::mapa(&empty[last], static_cast<unsigned>(lane))]==]
  REPLACE [==[ptx::mapa(&empty[last], rank)]==]
  TEACHES "who writes in two blocks must hear from the warps of both that they have read")

planted_bug(block_ends_before_the_last_arrivals
  RUNG cuda_optimized/gemm/clusters
  WITH core/cuda/tensor_map.cu
  FIND [==[  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
}]==]
  REPLACE [==[}]==]
  TEACHES "shared memory ends with its block, whoever else in the cluster still arrives there")

planted_bug(blocks_meet_one_by_one
  RUNG cuda_optimized/gemm/clusters
  WITH core/cuda/tensor_map.cu
  FIND [==[  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();

  const unsigned rank]==]
  REPLACE [==[  __syncthreads();

  const unsigned rank]==]
  TEACHES "barriers of another block can be used only when it is known to have initialised them")

planted_bug(next_stage_waited_for_too_early
  RUNG cuda_optimized/gemm/hopper/ping_pong
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::mbarrier_wait(&turn[consumer], turns);]==]
  REPLACE [==[]==]
  TEACHES "a barrier's parity tells two phases apart: who is two ahead takes an old one for a new one")

planted_bug(tile_stored_one_further_down
  RUNG cuda_optimized/gemm/hopper/ping_pong
  WITH core/cuda/tensor_map.cu
  FIND [==[item.m -= consumer;]==]
  REPLACE [==[]==]
  TEACHES "one tile is nobody's, and another has two owners, of whom the last one wins")

planted_bug(last_super_column_as_wide_as_all
  RUNG cuda_optimized/gemm/hopper/small_tiles
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[min(unsigned{kColumnGroup}, work.tiles_n - n0)]==]
  REPLACE [==[unsigned{kColumnGroup}]==]
  TEACHES "tiles across c are seldom a multiple of eight: some would be computed by nobody")

planted_bug(bias_alone_is_no_epilogue
  RUNG cuda_optimized/gemm/hopper/small_tiles
  FILE cuda_optimized/gemm/shared/wgmma_kernel.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[return bias != nullptr || activation != Activation::none;]==]
  REPLACE [==[return activation != Activation::none;]==]
  TEACHES "a bias can be asked for without ReLU")

planted_bug(tile_added_to_the_one_before
  RUNG cuda_optimized/gemm/overlapped_epilogue
  WITH core/cuda/tensor_map.cu
  FIND [==[add || k > 0);]==]
  REPLACE [==[add || k >= 0);]==]
  TEACHES "sums that nobody sets to zero begin with what is in their registers: the tile before")

planted_bug(rounded_over_what_waits
  RUNG cuda_optimized/gemm/overlapped_epilogue
  WITH core/cuda/tensor_map.cu
  FIND [==[if (waiting) store(piece);]==]
  REPLACE [==[if (waiting && more) store(piece);]==]
  TEACHES "a tile may have fewer steps than the one before has pieces: what still waits must be stored before it")

planted_bug(each_block_stores_every_piece
  RUNG cuda_optimized/gemm/hopper/split_k_tail
  WITH core/cuda/tensor_map.cu
  FIND [==[      if (!cut || kPiece % rounds.parts != item.split) return;]==]
  REPLACE [==[      if (!cut) return;]==]
  TEACHES "of a piece that a block does not finish, nobody has sent it the sums")

planted_bug(part_of_a_neighbour_tile_added
  RUNG cuda_optimized/gemm/hopper/split_k_tail
  WITH core/cuda/tensor_map.cu
  FIND [==[first_block + part * rounds.cut(), kPiece]==]
  REPLACE [==[first_block + part, kPiece]==]
  TEACHES "neighbouring blocks have the same part of neighbouring tiles, not parts of the same one")

planted_bug(sums_read_before_they_are_sent
  RUNG cuda_optimized/gemm/hopper/split_k_tail
  WITH core/cuda/tensor_map.cu
  FIND [==[    meet_all_blocks();  // separates the stores of parts from their loads]==]
  REPLACE [==[]==]
  TEACHES "who adds what others send waits until they have sent it")

planted_bug(dilation_ignored
  RUNG cuda_naive/conv2d_wgrad/gather
  FIND [==[- conv.pad.left + s * conv.dilation.w;]==]
  REPLACE [==[- conv.pad.left + s;]==]
  TEACHES "a suite without dilation kept a wrong size formula alive for years")

planted_bug(dropped_barrier_in_a_tree
  RUNG cuda_optimized/conv2d_wgrad/im2col_gemm
  WITH cuda_optimized/im2col/im2col_batched.cu,cuda_optimized/gemm/shared/tiled_batched.cu
  FIND [==[__syncthreads();  // between the writes of the last step and the reads of this one]==]
  REPLACE [==[]==]
  TEACHES "a reduction's levels must not overtake one another")

planted_bug(sums_onto_unwritten_memory
  RUNG cuda_optimized/conv2d_wgrad/im2col_gemm
  WITH cuda_optimized/im2col/im2col_batched.cu,cuda_optimized/gemm/shared/tiled_batched.cu
  FIND [==[check(cudaMemsetAsync(dw, 0,]==]
  REPLACE [==[if (conv.N == 0) check(cudaMemsetAsync(dw, 0,]==]
  TEACHES "fresh memory is often zero, and then this looks right")

planted_bug(tiles_written_while_read
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/register_tile
  FIND [==[stage ^= 1;]==]
  REPLACE [==[]==]
  TEACHES "with one barrier a step, two buffers are needed")

planted_bug(last_part_as_long_as_the_others
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/split_k
  FIND [==[tile.pixel_end = min(product.pixels, tile.pixel_begin + product.split_pixels);]==]
  REPLACE [==[tile.pixel_end = tile.pixel_begin + product.split_pixels;]==]
  TEACHES "the parts do not divide the sum")

planted_bug(part_forgotten
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/split_k
  FILE cuda_optimized/conv2d_wgrad/shared/reduce_parts.cuh
  FIND [==[for (int other = 1; other < kShares; ++other)]==]
  REPLACE [==[for (int other = 1; other < kShares - 1; ++other)]==]
  TEACHES "sums in so many parts need long sums")

planted_bug(weights_in_the_order_of_the_parts
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async
  FILE cuda_optimized/conv2d_wgrad/shared/reduce_parts.cuh
  FIND [==[sums[share][c * taps + tap] = sum;]==]
  REPLACE [==[sums[share][i] = sum;]==]
  TEACHES "invisible with one channel, or one tap")

planted_bug(copies_not_waited_for
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "a copy that has been issued has not landed")

planted_bug(dilated_taps_rounded_down
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/cp_async
  FILE cuda_optimized/conv2d_wgrad/shared/split_k.cuh
  FIND [==[by_dilation.quotient(dilation - 1 - at)]==]
  REPLACE [==[by_dilation.quotient(-at)]==]
  TEACHES "the first tap inside, with dilation: rounded up")

planted_bug(lanes_keep_the_wrong_half
  RUNG cuda_optimized/conv2d_wgrad/depthwise/nchw
  FILE cuda_optimized/conv2d_wgrad/shared/depthwise_reduction.cuh
  FIND [==[__shfl_xor_sync(0xffffffffu, upper ? sums[i] : above, kStep);]==]
  REPLACE [==[__shfl_xor_sync(0xffffffffu, upper ? above : sums[i], kStep);]==]
  TEACHES "what a lane gives away is what it does not keep")

planted_bug(splits_not_added
  RUNG cuda_optimized/conv2d_wgrad/depthwise/nchw
  FILE cuda_optimized/conv2d_wgrad/shared/depthwise_reduction.cuh
  FIND [==[sum += parts[split * count + i];]==]
  REPLACE [==[sum += 0.0f * parts[split * count + i];]==]
  TEACHES "with one image there is one split, and the sum of one is right")

planted_bug(half_copies_not_waited_for
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "a stage is multiplied before its copies have landed: groups without copies count, too")

planted_bug(gradients_behind_the_last_pixel
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma
  FILE cuda_optimized/conv2d_wgrad/shared/mma_half_copies.cuh
  FIND [==[const int count = row < pixels_left ? filters_left - m : 0;]==]
  REPLACE [==[const int count = filters_left - m;]==]
  TEACHES "windows behind the last pixel are zeros, so dw may be right where db is not")

planted_bug(steps_past_the_last_pixel
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma_tf32
  FIND [==[end = min(begin + steps * kMmaStep, product.pixels);]==]
  REPLACE [==[end = begin + steps * kMmaStep;]==]
  TEACHES "the steps do not divide the sum")

planted_bug(parts_in_the_same_place
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma_tf32
  FIND [==[(std::int64_t{blockIdx.x} + tile_number)]==]
  REPLACE [==[std::int64_t{blockIdx.x}]==]
  TEACHES "a block with shares of two tiles has two parts")

planted_bug(windows_of_another_stage
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma_tf32
  FIND [==[decode(step / kAhead + 1)]==]
  REPLACE [==[decode(step / kAhead + 2)]==]
  TEACHES "what is found ahead must lie where it is looked for")

planted_bug(columns_stored_in_order
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d_wgrad/shared/mma_operands.cuh
  FIND [==[slot = column_slot(2 * place + next_column)]==]
  REPLACE [==[slot = 2 * place + next_column]==]
  TEACHES "columns may change places, if loads and stores agree")

planted_bug(cut_instead_of_rounded
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d_wgrad/shared/mma_operands.cuh
  FIND [==[bits + 0x1000]==]
  REPLACE [==[bits]==]
  TEACHES "mma.sync truncates: sums of positive products are 6e-4 too small")

planted_bug(rows_of_threads_not_added
  RUNG cuda_optimized/conv2d_wgrad/depthwise/nhwc
  FIND [==[for (int other = 0; other < plan.rows; ++other) {]==]
  REPLACE [==[for (int other = 0; other < plan.rows - 1; ++other) {]==]
  TEACHES "every row of threads has a share of the sum")

planted_bug(last_warp_not_added
  RUNG cuda_optimized/conv2d_wgrad/depthwise/nhwc_tiled
  FIND [==[for (int warp = 0; warp < kWarps; ++warp)]==]
  REPLACE [==[for (int warp = 0; warp < kWarps - 1; ++warp)]==]
  TEACHES "small images leave the last warps without a patch, and then nobody misses them")

planted_bug(next_tile_over_the_last_one
  RUNG cuda_optimized/conv2d_wgrad/depthwise/nhwc_tiled
  FIND [==[__syncthreads();  // between these reads and the copies of the block's next tile]==]
  REPLACE [==[]==]
  TEACHES "who copies into shared memory asks first whether all others have read it")

planted_bug(next_image_as_near_as_in_dy
  RUNG cuda_optimized/conv2d_wgrad/hopper/cluster_reduction
  WITH core/cuda/tensor_map.cu
  FIND [==[further(left < kTapDepth ? x_of_two_at : x_at, x)]==]
  REPLACE [==[further(x_at, x)]==]
  TEACHES "the second half of a step may lie in the next image, and of x that has rows more")

planted_bug(piece_of_no_tap
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm/warp_specialized
  WITH core/cuda/tensor_map.cu
  FIND [==[if (piece >= pieces.count) return;]==]
  REPLACE [==[]==]
  TEACHES "an odd number of pieces leaves a warpgroup without one: what it computes belongs nowhere")

planted_bug(next_tap_is_the_next_pixel
  RUNG cuda_optimized/conv2d_wgrad/hopper/halo_tile
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::wgmma_row_major_descriptor(stages, bands.dilation.w * kRowBytes, kRowBytes)]==]
  REPLACE [==[ptx::wgmma_row_major_descriptor(stages, kRowBytes, kRowBytes)]==]
  TEACHES "a dilated filter's taps are that many pixels apart, in a descriptor as everywhere")

planted_bug(sums_where_others_still_read
  RUNG cuda_optimized/conv2d_wgrad/hopper/cluster_reduction
  WITH core/cuda/tensor_map.cu
  FIND [==[  ptx::mbarrier_wait(&barriers.all_read, 0);]==]
  REPLACE [==[]==]
  TEACHES "shared memory of another block is free when its warps say so, not when one's own have done their work")

planted_bug(fours_of_another_rank
  RUNG cuda_optimized/conv2d_wgrad/hopper/cluster_reduction
  FILE cuda_optimized/conv2d_wgrad/shared/tap_exchange.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[static_cast<int>((i << place.log) + place.rank)]==]
  REPLACE [==[static_cast<int>(place.rank * fours + i)]==]
  TEACHES "who owns a sum must be the same for who sends it and who stores it")

planted_bug(every_tile_adds_up_all_of_dy
  RUNG cuda_optimized/conv2d_wgrad/hopper/cluster_reduction
  FILE cuda_optimized/conv2d_wgrad/shared/tap_exchange.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[if (turn == tile.share)]==]
  REPLACE [==[if (turn >= 0)]==]
  TEACHES "work that tiles share must be done once: tiles of other channels have the same dy")

planted_bug(weights_of_no_piece
  RUNG cuda_optimized/conv2d_wgrad/hopper/split_k_1x1
  FILE cuda_optimized/conv2d_wgrad/shared/share_parts.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[if (piece >= pieces.count) return;]==]
  REPLACE [==[]==]
  TEACHES "behind an odd number of pieces comes the next filter: what is multiplied there belongs nowhere")

planted_bug(warpgroups_that_are_not_there
  RUNG cuda_optimized/conv2d_wgrad/hopper/split_k_1x1
  WITH core/cuda/tensor_map.cu
  FIND [==[number * consumers + consumer]==]
  REPLACE [==[number * kMostConsumers + consumer]==]
  TEACHES "who writes parts and who adds them must count alike, for each shape of tiles")

planted_bug(every_turn_is_ones_own
  RUNG cuda_optimized/conv2d_wgrad/hopper/split_k_1x1
  WITH core/cuda/tensor_map.cu
  FIND [==[if (has_bias && turn == column) {]==]
  REPLACE [==[if (has_bias) {]==]
  TEACHES "warpgroups with the same filters have the same dy: each of them adds up some of the steps")

planted_bug(sums_of_the_point_minus_one
  RUNG cuda_naive/conv2d_wgrad/winograd_2x2
  WITH cuda_naive/gemm/direct_batched.cu
  FIND [==[u + ((kN + 1) * conv.K + k) * tiles;]==]
  REPLACE [==[u + ((kN + 2) * conv.K + k) * tiles;]==]
  TEACHES "at point 1, down and across, a tile is its sum: at -1 a sum of differences, which is as large")

set(winograd_with cuda_optimized/conv2d/winograd/4x4.cu,cuda_optimized/gemm/tf32/wgmma_3xtf32.cu,core/cuda/tensor_map.cu)

planted_bug(first_part_for_the_sum
  RUNG cuda_optimized/conv2d_wgrad/winograd/3xtf32
  WITH ${winograd_with}
  FIND [==[for (int part = 0; part < product.parts; ++part) {]==]
  REPLACE [==[for (int part = 0; part < 1; ++part) {]==]
  TEACHES "sums are in parts where they are long: a test of a few tiles has one part")

planted_bug(infinity_in_the_fourth_of_three
  RUNG cuda_optimized/conv2d_wgrad/winograd/3xtf32
  FILE cuda_optimized/conv2d_wgrad/shared/winograd_gradient.cuh
  WITH ${winograd_with}
  FIND [==[m[2] = sum1 + 4 * sum2 + m[5];]==]
  REPLACE [==[m[2] = sum1 + 4 * sum2;]==]
  TEACHES "the last point, infinity, is in the last number that comes out: the third here, and not the fourth as in the forward pass")

planted_bug(tiles_past_the_last_column
  RUNG cpu_reference/conv2d_wgrad/winograd
  FIND [==[for (int j = 0; j < kTile && q + j < conv.Q; ++j)]==]
  REPLACE [==[for (int j = 0; j < kTile && q < conv.Q; ++j)]==]
  TEACHES "a tile that ends beyond the row has zeros there, and not the next row")

# The planted bugs: each is a mistake that somebody has made, put into a copy of a rung. The suite's
# check must find every one of them.
#
#   planted_bug(<id>
#     RUNG    <the rung whose copy gets it, without its suffix>
#     FILE    <the file that is changed, if it is not the rung's own but one that it includes>
#     WITH    <a source that defines what the rung calls, if there is one>
#     FIND    <text that stands in the file exactly once>
#     REPLACE <what comes in its place>
#     TEACHES <what its being found shows, in a line>)
#
# CMakeLists.txt and plant.cmake each include this file with a planted_bug() of their own.

# --- Indices

planted_bug(weight_forgets_channel
  RUNG cuda_naive/conv2d/direct
  FIND [==[weights[w_at(k, c, r, s)]]==]
  REPLACE [==[weights[w_at(k, 0, r, s)]]==]
  TEACHES "data must tell channels apart: a much-read CPU reference has this very index")

planted_bug(swapped_filter_and_channel
  RUNG cpu_reference/conv2d/direct
  FIND [==[weights[w_at(k, c, r, s)]]==]
  REPLACE [==[weights[w_at(c, k, r, s)]]==]
  TEACHES "C and K must differ: with one channel or as many filters as channels it looks right")

planted_bug(flipped_filter
  RUNG cuda_naive/conv2d/direct
  FIND [==[weights[w_at(k, c, r, s)]]==]
  REPLACE [==[weights[w_at(k, c, conv.R - 1 - r, conv.S - 1 - s)]]==]
  TEACHES "convolution and cross-correlation differ unless every filter is symmetric")

planted_bug(wrong_sign_of_padding
  RUNG cuda_naive/conv2d/direct
  FIND [==[p * conv.stride.h - conv.pad.top]==]
  REPLACE [==[p * conv.stride.h + conv.pad.top]==]
  TEACHES "a well-known document prints this sign")

planted_bug(height_for_width
  RUNG cpu_reference/conv2d/direct
  FIND [==[const LayoutIndex4 x_at{conv.layout, conv.C, conv.H, conv.W};]==]
  REPLACE [==[const LayoutIndex4 x_at{conv.layout, conv.C, conv.W, conv.H};]==]
  TEACHES "never test only square images")

planted_bug(bounds_check_of_the_other_axis
  RUNG cuda_naive/conv2d_dgrad/gather
  FIND [==[output_at(w + conv.pad.left - s * conv.dilation.w, conv.stride.w, conv.Q)]==]
  REPLACE [==[output_at(w + conv.pad.left - s * conv.dilation.w, conv.stride.w, conv.P)]==]
  TEACHES "never test only square outputs")

planted_bug(dilation_ignored
  RUNG cuda_naive/conv2d_wgrad/gather
  FIND [==[- conv.pad.left + s * conv.dilation.w;]==]
  REPLACE [==[- conv.pad.left + s;]==]
  TEACHES "a suite without dilation kept a wrong size formula alive for years")

planted_bug(group_offset_forgotten
  RUNG cuda_optimized/conv2d/direct_tiled
  FIND [==[x + x_at(n, c0 + c, 0, 0)]==]
  REPLACE [==[x + x_at(n, c, 0, 0)]==]
  TEACHES "groups need problems of their own")

planted_bug(batch_ignored
  RUNG cuda_naive/conv2d/direct
  FIND [==[const int n = static_cast<int>(nk / conv.K), k]==]
  REPLACE [==[const int n = 0, k]==]
  TEACHES "never test one image only")

planted_bug(gemm_group_forgotten
  RUNG cuda_naive/conv2d/im2col_gemm
  WITH cuda_naive/im2col/im2col.cu
  FILE cuda_naive/gemm/gemm.cuh
  FIND [==[product.b.at(image, group, k, column)]==]
  REPLACE [==[product.b.at(image, 0, k, column)]==]
  TEACHES "a building block's mistake shows in the rung that uses it")

# --- Edges

planted_bug(guard_off_by_one
  RUNG cuda_naive/conv2d/direct
  FIND [==[if (q >= conv.Q) return;]==]
  REPLACE [==[if (q > conv.Q) return;]==]
  TEACHES "the column after the last is the next row's first, or a write past the end")

planted_bug(last_halo_row_missing
  RUNG cuda_optimized/conv2d/direct_tiled
  FIND [==[i < rows; i += blockDim.y]==]
  REPLACE [==[i + 1 < rows; i += blockDim.y]==]
  TEACHES "shared memory starts as NaN, so that what was not loaded shows")

planted_bug(filter_tail_written
  RUNG cuda_optimized/conv2d/direct_register_tile
  FIND [==[if (f < filters && j < pixels)
]==]
  REPLACE [==[if (j < pixels)
]==]
  TEACHES "a thread's tile of filters ends inside of K somewhere: groups, and guard bands behind y")

planted_bug(float4_tail
  RUNG cuda_optimized/conv2d/direct_float4
  FIND [==[if (w + e < static_cast<unsigned>(conv.W)) inside |= 1u << e;]==]
  REPLACE [==[if (w < static_cast<unsigned>(conv.W)) inside |= 1u << e;]==]
  TEACHES "four columns are not all inside because the first one is: W % 4 != 0")

planted_bug(reads_past_the_end_times_zero
  RUNG cuda_optimized/gemm/tiled
  FILE cuda_optimized/gemm/gemm_tiled.cuh
  FIND [==[k0 + b_k < product.K && n0 + b_n < product.N]==]
  REPLACE [==[n0 + b_n < product.N]==]
  TEACHES "garbage times zero is not zero: guard bands of NaN show reads that 'do not matter'")

planted_bug(col2im_start_bound
  RUNG cuda_naive/col2im/col2im
  FIND [==[(at - extent) / axis.stride + 1, min]==]
  REPLACE [==[(at - extent) / axis.stride, min]==]
  TEACHES "one window too many is read with a tap that it has not")

planted_bug(row_end_off_by_one
  RUNG cpu_reference/conv2d/reordered
  FIND [==[(W - 1 - offset) / stride + 1]==]
  REPLACE [==[(W - offset) / stride + 1]==]
  TEACHES "the padding's zero is replaced by the next row's first pixel")

planted_bug(division_for_modulo
  RUNG cuda_naive/conv2d_dgrad/gather
  FIND [==[if (position < 0 || position % stride != 0) return -1;]==]
  REPLACE [==[if (position < 0) return -1;]==]
  TEACHES "with a stride, most pixels have no output at most taps")

# --- Threads

planted_bug(dropped_barrier_before_the_reads
  RUNG cuda_optimized/conv2d/direct_tiled
  FIND [==[__syncthreads();  // between these writes and the reads below]==]
  REPLACE [==[]==]
  TEACHES "a thread order that the hardware would not choose today")

planted_bug(dropped_barrier_before_the_writes
  RUNG cuda_optimized/conv2d/direct_tiled
  FIND [==[__syncthreads();  // between the reads of the channel before and this channel's writes]==]
  REPLACE [==[]==]
  TEACHES "invisible with one channel, and on one warp that happens to stay together")

planted_bug(dropped_barrier_after_the_product
  RUNG cuda_optimized/gemm/tiled
  FILE cuda_optimized/gemm/gemm_tiled.cuh
  FIND [==[__syncthreads();  // separates these loads from the next step's stores]==]
  REPLACE [==[]==]
  TEACHES "invisible while K is one tile")

planted_bug(dropped_barrier_in_a_tree
  RUNG cuda_optimized/conv2d_wgrad/im2col_gemm
  WITH cuda_optimized/im2col/im2col_batched.cu
  FIND [==[__syncthreads();  // between the writes of the last step and the reads of this one]==]
  REPLACE [==[]==]
  TEACHES "a reduction's levels must not overtake one another")

planted_bug(early_return_above_a_barrier
  RUNG cuda_optimized/conv2d/direct_tiled
  FIND [==[const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;]==]
  REPLACE [==[const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  if (q >= conv.Q) return;]==]
  TEACHES "a barrier that some threads never reach, and a tile with holes")

planted_bug(prefetch_into_the_tile_in_use
  RUNG cuda_optimized/conv2d/direct_double_buffered
  FIND [==[buffer ^= 1;]==]
  REPLACE [==[]==]
  TEACHES "one buffer is not two: the 'prefetch' of a much-read kernel")

planted_bug(last_channel_not_prefetched
  RUNG cuda_optimized/conv2d/direct_double_buffered
  FIND [==[if (c + 1 < group_c) {]==]
  REPLACE [==[if (c + 2 < group_c) {]==]
  TEACHES "double buffers meet odd and even counts: LeetCUDA's was wrong for odd ones")

planted_bug(grid_stride_forgotten
  RUNG cuda_naive/conv2d/direct
  FIND [==[nk < std::int64_t{conv.N} * conv.K; nk += gridDim.z)]==]
  REPLACE [==[nk < std::int64_t{conv.N} * conv.K; nk += std::int64_t{conv.N} * conv.K)]==]
  TEACHES "no small problem needs the loop over the grid: tests must force it")

# --- Outputs

planted_bug(output_left_alone
  RUNG cuda_naive/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  REPLACE [==[if (sum != 0.0f) y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  TEACHES "outputs start as NaN: what the run before left cannot help")

planted_bug(nothing_but_nan
  RUNG cpu_reference/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  REPLACE [==[y[y_at(n, k, p, q)] = sum * (0.0f / 0.0f);]==]
  TEACHES "`if (error > tolerance) fail` accepts this; `if (!(error <= tolerance)) fail` does not")

planted_bug(writes_its_input
  RUNG cpu_reference/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  REPLACE [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum), const_cast<float*>(x)[0] += 1.0f;]==]
  TEACHES "inputs are compared after the run")

planted_bug(bias_twice
  RUNG cuda_naive/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  REPLACE [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum + (bias ? bias[k] : 0.0f));]==]
  TEACHES "problems with and without a bias")

planted_bug(channel_pieces_overwrite
  RUNG cuda_optimized/conv2d/direct_constant_weights
  FIND [==[if (piece.c_begin > 0 && inside) sum = y[output];]==]
  REPLACE [==[]==]
  TEACHES "a filter larger than 64 KB is a branch that only large C * R * S reach")

planted_bug(sums_onto_unwritten_memory
  RUNG cuda_optimized/conv2d_wgrad/im2col_gemm
  WITH cuda_optimized/im2col/im2col_batched.cu
  FIND [==[check(cudaMemsetAsync(dw, 0,]==]
  REPLACE [==[if (conv.N == 0) check(cudaMemsetAsync(dw, 0,]==]
  TEACHES "fresh memory is often zero, and then this looks right")

planted_bug(add_request_ignored
  RUNG cuda_naive/im2col/im2col
  FIND [==[problem.request == Request::add ? col[to] + value : value;]==]
  REPLACE [==[value;]==]
  TEACHES "gradients that should add up are overwritten")

planted_bug(empty_gather_overwrites
  RUNG cuda_naive/col2im/col2im
  FIND [==[x[pixel] = problem.request == Request::add ?]==]
  REPLACE [==[x[pixel] = problem.request == Request::add && over_w.begin < over_w.end ?]==]
  TEACHES "where no window lies, adding nothing must still keep the old value: MXNet's 1-D and 3-D col2im")

planted_bug(none_writes
  RUNG cuda_naive/col2im/col2im
  FIND [==[if (problem.request == Request::none) return;]==]
  REPLACE [==[]==]
  TEACHES "a request of `none` touches nothing")

planted_bug(products_cut_off
  RUNG cpu_reference/gemm/triple_loop
  FIND [==[sum += a[m * K + k] * b[k * N + n];]==]
  REPLACE [==[sum += static_cast<float>(static_cast<int>(a[m * K + k] * b[k * N + n] * 2048)) / 2048;]==]
  TEACHES "small integers do not notice a coarse format: real mode does, element by element")

# --- Matrix products

planted_bug(rows_stored_side_by_side
  RUNG cuda_optimized/gemm/register_tile
  FIND [==[const std::int64_t m = m0 + ty + i * kSide, n]==]
  REPLACE [==[const std::int64_t m = m0 + ty * kElementsM + i, n]==]
  TEACHES "a thread's rows lie 16 apart, also where it stores them")

planted_bug(vector_store_past_the_row
  RUNG cuda_optimized/gemm/vectorized
  FILE cuda_optimized/gemm/four.cuh
  FIND [==[if (column + 3 < columns) to[3] = four.w;]==]
  REPLACE [==[to[3] = four.w;]==]
  TEACHES "four columns are not all inside because the first one is: the next row, or the guard band")

planted_bug(alignment_of_one_matrix_only
  RUNG cuda_optimized/gemm/vectorized
  FILE cuda_optimized/gemm/gemm_plan.cuh
  FIND [==[return product.K % 4 == 0 && product.N % 4 == 0 &&]==]
  REPLACE [==[return product.N % 4 == 0 &&]==]
  TEACHES "a's rows are K long and b's are N long: both decide whether vectors may be used")

planted_bug(one_tile_is_not_two
  RUNG cuda_optimized/gemm/warp_tiles
  FIND [==[buffer ^= 1;]==]
  REPLACE [==[]==]
  TEACHES "with one barrier a step, the next tiles must not go where others still read")

planted_bug(waits_for_one_group_too_few
  RUNG cuda_optimized/gemm/cp_async
  FILE cuda_optimized/gemm/async_tiles.cuh
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "what has not been waited for may be there in time on a GPU, and mostly is")

planted_bug(no_zeros_beyond_k
  RUNG cuda_optimized/gemm/cp_async
  FILE cuda_optimized/gemm/async_tiles.cuh
  FIND [==[const bool exists = b_row() + k < left;]==]
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

# --- Vectors of columns

planted_bug(vector_begins_before_the_first_tap
  RUNG cuda_optimized/im2col/im2col_vectorized
  FIND [==[values[e] = reads[kSkip + e * kStride + s];]==]
  REPLACE [==[values[e] = reads[e * kStride + s];]==]
  TEACHES "an aligned vector holds what is asked for, but not at its beginning")

planted_bug(windows_past_the_line
  RUNG cuda_optimized/im2col/im2row
  FIND [==[if (i < windows) __stcs]==]
  REPLACE [==[if (windows > 0) __stcs]==]
  TEACHES "a thread's last windows are the next line's first, unless Q is a multiple of what it takes")

planted_bug(taps_before_channels
  RUNG cuda_optimized/im2col/im2row
  FIND [==[.by_channels = FastDivision(channels),]==]
  REPLACE [==[.by_channels = FastDivision(static_cast<int>(problem.kernel_volume())),]==]
  TEACHES "rows are [tap][channel]: right as long as there are as many taps as channels")

planted_bug(relu_before_the_bias
  RUNG cuda_optimized/conv2d/implicit_gemm_register_tile
  FIND [==[activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i][e])]==]
  REPLACE [==[(bias ? bias[filter] : 0.0f) + activated(conv.activation, sums[i][e])]==]
  TEACHES "with ReLU the order of an epilogue matters: a bias below zero must be able to switch an output off")

planted_bug(relu_of_parts
  RUNG cuda_optimized/conv2d/implicit_gemm_split_k
  FIND [==[sum += parts[split * count + i];]==]
  REPLACE [==[sum += activated(activation, parts[split * count + i]);]==]
  TEACHES "ReLU is not additive: parts of a sum may be negative")

planted_bug(relu_of_the_first_channels
  RUNG cuda_optimized/conv2d/direct_constant_weights
  FILE cuda_optimized/conv2d/direct_plan.cuh
  FIND [==[return piece.c_end == conv.C / conv.groups ? conv.activation : Activation::none;]==]
  REPLACE [==[return piece.c_end > 0 ? conv.activation : Activation::none;]==]
  TEACHES "a sum that several launches add up is complete in the last one only")

planted_bug(steps_without_the_inverse
  RUNG cuda_optimized/col2im/col2im_strided_steps
  FILE cuda_optimized/col2im/strided_steps.cuh
  FIND [==[std::int64_t{modulo(over_gcd)} * steps.inverse;]==]
  REPLACE [==[std::int64_t{modulo(over_gcd)};]==]
  TEACHES "dilation 2 has no other inverse than 1: larger ones, prime to the stride, are needed")

planted_bug(gaps_of_all_windows
  RUNG cuda_optimized/col2im/col2im_strided_steps
  FILE cuda_optimized/col2im/strided_steps.cuh
  FIND [==[if (steps.gcd.remainder(at, over_gcd) != 0)]==]
  REPLACE [==[if (over_gcd < 0)]==]
  TEACHES "where stride and dilation share a divisor, most pixels have no term at all")

planted_bug(neighbour_of_another_row
  RUNG cuda_optimized/col2im/col2im_vectorized
  FIND [==[if (hop == 0 || (hop < 0 ? has_previous : has_next))]==]
  REPLACE [==[if (true)]==]
  TEACHES "the neighbouring lane may have the end of another row")

planted_bug(helping_lanes_store
  RUNG cuda_optimized/col2im/col2im_vectorized
  FIND [==[if (wanted != piece || lane == 0 || lane == 31) continue;]==]
  REPLACE [==[if (wanted != piece) continue;]==]
  TEACHES "a lane without neighbours has half of a sum, and somebody else has the whole")

planted_bug(first_rows_again
  RUNG cuda_optimized/conv2d/im2col_gemm_chunks
  WITH cuda_optimized/im2col/im2col_vectorized.cu
  FIND [==[columns.height.pad_before -= static_cast<int>(p0 * conv.stride.h);]==]
  REPLACE [==[]==]
  TEACHES "pieces of an image are needed, also where a test's images are small")

# --- Weight gradients

planted_bug(tiles_written_while_read
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm
  FIND [==[buffer ^= 1;]==]
  REPLACE [==[]==]
  TEACHES "with one barrier a step, two buffers are needed")

planted_bug(last_part_as_long_as_the_others
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_split_k
  FIND [==[const int end = min(product.pixels, begin + product.split_pixels);]==]
  REPLACE [==[const int end = begin + product.split_pixels;]==]
  TEACHES "the parts do not divide the sum")

planted_bug(part_forgotten
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_split_k
  FILE cuda_optimized/conv2d_wgrad/split_k.cuh
  FIND [==[for (int other = 1; other < kShares; ++other)]==]
  REPLACE [==[for (int other = 1; other < kShares - 1; ++other)]==]
  TEACHES "sums in so many parts need long sums")

planted_bug(weights_in_the_order_of_the_parts
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async
  FILE cuda_optimized/conv2d_wgrad/split_k.cuh
  FIND [==[sums[share][c * taps + tap] = sum;]==]
  REPLACE [==[sums[share][i] = sum;]==]
  TEACHES "invisible with one channel, or one tap")

planted_bug(copies_not_waited_for
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "a copy that has been issued has not landed")

planted_bug(dilated_taps_rounded_down
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_cp_async
  FIND [==[by_dilation.quotient(dilation - 1 - at)]==]
  REPLACE [==[by_dilation.quotient(-at)]==]
  TEACHES "the first tap inside, with dilation: rounded up")

# --- Tile maps

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

planted_bug(tile_rows_taken_for_channels
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_few_channels
  FILE cuda_optimized/conv2d/implicit_gemm_pipeline.cuh
  FIND [==[place.n = at.m * T::kBlockN;]==]
  REPLACE [==[place.n = at.n * T::kBlockN;]==]
  TEACHES "a convolution as a product: a map's rows are pixels, its columns are channels")

planted_bug(second_axis_of_the_grid_forgotten
  RUNG cuda_optimized/gemm/wgmma_tf32
  FILE cuda_optimized/gemm/wgmma_tile.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[places.walk.tile_at(place % places.walk.plane, &tile)]==]
  REPLACE [==[places.walk.tile_at(place % places.walk.row, &tile)]==]
  TEACHES "a map in a loop: identity<N> and horizontal go on along the grid's y")

planted_bug(as_many_places_as_tiles
  RUNG cuda_optimized/gemm/wgmma_tf32
  FILE cuda_optimized/gemm/wgmma_tile.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[: std::int64_t{walk.plane} * work.products * work.splits]==]
  REPLACE [==[: work.items()]==]
  TEACHES "a map in a loop: places without a tile lie between those with one")

# --- Rulebooks

set(algorithms core/cuda/algorithms.cu,core/cuda/site_check.cu)

planted_bug(grid_not_cleared
  RUNG cuda_naive/rulebook/dense_grid
  WITH ${algorithms}
  FIND [==[launch(clear_cells, {item_blocks, kThreads}, book, coords, grid);]==]
  REPLACE [==[]==]
  TEACHES "memory that nobody cleared holds the rows of an earlier call: it must not start as what one hopes for")

planted_bug(mirror_not_exchanged
  RUNG cuda_optimized/rulebook/symmetric
  WITH ${algorithms}
  FIND [==[book.KV - 1 - k, outs[i], ins[i]);]==]
  REPLACE [==[book.KV - 1 - k, ins[i], outs[i]);]==]
  TEACHES "at the opposite tap input and output change places: counts alone do not show it")

planted_bug(mirrored_list_one_tap_off
  RUNG cuda_optimized/rulebook/symmetric
  WITH ${algorithms}
  FIND [==[P - offsets[k + 1] + place]==]
  REPLACE [==[P - offsets[k] + place]==]
  TEACHES "lists in reverse order begin where the next one's ends; guard bands see what is written behind the last")

planted_bug(output_taken_for_the_filler
  RUNG cuda_naive/rulebook/two_phases
  WITH ${algorithms}
  FIND [==[if (found > 0 && downloaded(keys.data() + found - 1) == filler_of(book)) --found;]==]
  REPLACE [==[if (found > 0) --found;]==]
  TEACHES "spconv's unique - 1, without its extra filler: the output with the largest key is lost where every tap finds one")

planted_bug(counts_of_a_failed_build
  RUNG cuda_naive/rulebook/two_phases
  WITH ${algorithms}
  FIND [==[check(cudaMemsetAsync(counts, 0, static_cast<std::size_t>(book.KV) * sizeof *counts));]==]
  REPLACE [==[]==]
  TEACHES "spconv's second attempt, after a hash table that could not be built, counts on from the first")

planted_bug(first_rulebook_kept_for_all
  RUNG cuda_naive/rulebook/dense_grid
  WITH ${algorithms}
  FIND [==[const std::int64_t P = downloaded(offsets.data() + book.KV);]==]
  REPLACE [==[static const std::int64_t P = downloaded(offsets.data() + book.KV);]==]
  TEACHES "what is kept from one rulebook is wrong for the next, as with spconv's indice_key on other sites")

planted_bug(inverse_keeps_the_roles
  RUNG cuda_naive/rulebook/two_phases
  WITH ${algorithms}
  FIND [==[pair[1] = book.mode == SparseMode::inverse ? found : given;]==]
  REPLACE [==[pair[1] = given;]==]
  TEACHES "an inverse convolution is the strided one with its roles exchanged")

planted_bug(keys_of_32_bits
  RUNG cuda_optimized/rulebook/neighbour_table
  WITH ${algorithms}
  FIND [==[candidates[place++] = key_of(book, book.out_shape, out);]==]
  REPLACE [==[candidates[place++] = static_cast<std::uint32_t>(key_of(book, book.out_shape, out));]==]
  TEACHES "spconv#745: a grid of 2448 x 2448 x 2448 outputs has keys that 32 bits do not hold")

planted_bug(one_word_a_mask
  RUNG cuda_optimized/rulebook/neighbour_table
  WITH ${algorithms}
  FIND [==[if (k % 32 == 31 || k == book.KV - 1) {]==]
  REPLACE [==[if (k == book.KV - 1) {]==]
  TEACHES "kernels of more than 32 taps need more than one word")

planted_bug(ranks_read_too_late
  RUNG cuda_optimized/rulebook/neighbour_table
  FILE cuda_optimized/rulebook/table_forms.cuh
  WITH ${algorithms}
  FIND [==[__syncthreads();  // all have added up before the next tile's counts overwrite these]==]
  REPLACE [==[]==]
  TEACHES "a second barrier in a loop: it only matters when the loop goes round, which few blocks make it do")

planted_bug(aggregated_place_read_too_early
  RUNG cuda_optimized/rulebook/aggregated_counters
  WITH ${algorithms}
  FIND [==[__syncthreads();  // the place is there; and all have added up before the next tile's counts]==]
  REPLACE [==[]==]
  TEACHES "one thread asks for all: the others must wait for the answer")

planted_bug(hash_search_stops_at_a_full_bucket
  RUNG cuda_optimized/rulebook/hash_table
  FILE cuda_optimized/rulebook/site_hash.cuh
  WITH ${algorithms}
  FIND [==[if (found != ~0u || all >> 31 != 0) return static_cast<std::int32_t>(found);  // or empty: -1]==]
  REPLACE [==[return static_cast<std::int32_t>(found);]==]
  TEACHES "a full bucket is ordinary: a search goes on until there is an empty slot")

planted_bug(hash_entries_of_32_bit_keys
  RUNG cuda_optimized/rulebook/hash_table
  FILE cuda_optimized/rulebook/site_hash.cuh
  WITH ${algorithms}
  FIND [==[const Slot entry = Slot{key} << row_bits]==]
  REPLACE [==[const Slot entry = Slot{static_cast<std::uint32_t>(key)} << row_bits]==]
  TEACHES "64-bit keys cut to 32 when they are stored: sites beyond 2^32 cells do not find themselves")

planted_bug(hash_table_not_cleared
  RUNG cuda_optimized/rulebook/hash_table
  FILE cuda_optimized/rulebook/site_hash.cuh
  WITH ${algorithms}
  FIND [==[i < hash.capacity() / 2; i += grid_threads)]==]
  REPLACE [==[i < hash.capacity() / 4; i += grid_threads)]==]
  TEACHES "a slot that nobody emptied holds what the memory held before")

planted_bug(bucket_behind_the_last_one
  RUNG cuda_optimized/rulebook/hash_table
  FILE cuda_optimized/rulebook/site_hash.cuh
  WITH ${algorithms}
  FIND [==[return (bucket + 1) & static_cast<std::uint32_t>(capacity() / kSlots - 1);]==]
  REPLACE [==[return bucket + 1;]==]
  TEACHES "behind the last bucket comes the first: seldom, unless sites are chosen for it")

planted_bug(place_behind_the_last_one
  RUNG cuda_optimized/rulebook/hash_of_runs
  FILE cuda_optimized/rulebook/run_table.cuh
  WITH ${algorithms}
  FIND [==[return place + 1 == capacity ? 0 : place + 1;]==]
  REPLACE [==[return place + 1;]==]
  TEACHES "the same for a table of runs: what lies behind its last entry is other data")

planted_bug(set_searched_to_its_end
  RUNG cuda_optimized/rulebook/hash_set_of_outputs
  WITH ${algorithms}
  FIND [==[while (slots[slot] != key) slot = (slot + 1) & mask;]==]
  REPLACE [==[while (slots[slot] != key && slot < mask) ++slot;]==]
  TEACHES "the same for a set: who looks for a key must go round as who put it in")

planted_bug(filter_word_held_too_long
  RUNG cuda_optimized/rulebook/filtered_hash
  FILE cuda_optimized/rulebook/site_hash.cuh
  WITH ${algorithms}
  FIND [==[if (asks && key / 32 != held) {]==]
  REPLACE [==[if (asks && held == ~std::uint64_t{0}) {]==]
  TEACHES "a filter may say yes too often, and never no where there is a site: a word answers for its own 32 cells")

planted_bug(lists_begin_behind_themselves
  RUNG cuda_optimized/rulebook/count_scan_fill
  WITH ${algorithms}
  FIND [==[of_tap[thread] = sum - own;]==]
  REPLACE [==[of_tap[thread] = sum;]==]
  TEACHES "an exclusive sum leaves its own count out, an inclusive one does not")

planted_bug(tile_ranked_before_it_is_there
  RUNG cuda_optimized/rulebook/count_scan_fill
  WITH ${algorithms}
  FIND [==[__syncthreads();  // all taps of the tile are there before a warp reads those of all rows]==]
  REPLACE [==[]==]
  TEACHES "each thread writes a column, each warp reads rows: between the two stands a barrier")

planted_bug(found_sites_of_32_bits
  RUNG cuda_optimized/rulebook/hash_set_of_outputs
  WITH ${algorithms}
  FIND [==[site_of_key(book, book.out_shape, keys[row])]==]
  REPLACE [==[site_of_key(book, book.out_shape, static_cast<std::int32_t>(keys[row]))]==]
  TEACHES "a 64-bit key read into 32 bits, as spconv's second stage does: sites beyond 2^31 cells become others")

planted_bug(pattern_cut_at_the_word
  RUNG cuda_optimized/rulebook/bit_grid_of_outputs
  FILE cuda_optimized/rulebook/bit_grid.cuh
  WITH ${algorithms}
  FIND [==[if (both >> 32 != 0)]==]
  REPLACE [==[if (false)]==]
  TEACHES "cells side by side may lie in two words")

planted_bug(taps_a_stride_apart_in_spite_of_dilation
  RUNG cuda_optimized/rulebook/hash_set_of_outputs
  FILE cuda_optimized/rulebook/lattice.cuh
  WITH ${algorithms}
  FIND [==[book.stride[axis] / common]==]
  REPLACE [==[book.stride[axis]]==]
  TEACHES "with stride 2 and dilation 2 every tap may lead somewhere: 27 outputs of a site, not 8, as spconv 2 assumes")

planted_bug(next_word_not_looked_at
  RUNG cuda_optimized/rulebook/gather
  WITH ${algorithms}
  FIND [==[next = __ldg(&bits[cells[i] / 32 + 1]);]==]
  REPLACE [==[next = 0;]==]
  TEACHES "a line of taps may begin in one word and end in the next: one line in ten or so")

planted_bug(rank_goes_on_in_the_next_word
  RUNG cuda_optimized/rulebook/gather
  WITH ${algorithms}
  FIND [==[__popc(before & ~in_word)]==]
  REPLACE [==[__popc(before)]==]
  TEACHES "places are consecutive within a word only: the next one's begin anywhere")

planted_bug(window_behind_the_last
  RUNG cuda_optimized/rulebook/one_output_each
  WITH ${algorithms}
  FIND [==[if (at < axis.found)]==]
  REPLACE [==[if (at >= 0)]==]
  TEACHES "inputs behind the last whole window have no output: their cell would be one of the next line")

planted_bug(looked_up_before_all_have_entered
  RUNG cuda_optimized/rulebook/fused
  WITH ${algorithms}
  FIND [==[all_blocks.sync();  // all sites are in the table before any is looked up]==]
  REPLACE [==[]==]
  TEACHES "one launch has no end of a kernel between its steps: only a barrier of the whole grid")

planted_bug(any_order_taken_for_sorted
  RUNG cuda_optimized/rulebook/hash_of_runs
  WITH ${algorithms}
  FIND [==[if (!in_order) state->unsorted = 1;]==]
  REPLACE [==[]==]
  TEACHES "a rank is a row only where the input is sorted, and an input may have any order")

planted_bug(collided_run_taken_for_its_own
  RUNG cuda_optimized/rulebook/hash_of_runs
  FILE cuda_optimized/rulebook/run_table.cuh
  WITH ${algorithms}
  FIND [==[while (entry != 0 && entry >> 32 != run) {]==]
  REPLACE [==[while (false) {]==]
  TEACHES "a place that is taken may be taken by another: an entry says whose it is")

planted_bug(mirrored_in_any_order
  RUNG cuda_optimized/rulebook/mirrored_lists
  WITH ${algorithms}
  FIND [==[count(sorted ? centre + 1 : KV)]==]
  REPLACE [==[count(centre + 1)]==]
  TEACHES "a list is its mirror's only where the sites are sorted; else the opposite tap is looked up, too")

planted_bug(centre_mirrored_to_itself
  RUNG cuda_optimized/rulebook/mirrored_lists
  WITH ${algorithms}
  FIND [==[sorted && k < centre;]==]
  REPLACE [==[sorted && k <= centre;]==]
  TEACHES "the centre is its own opposite: its pairs count once")

planted_bug(staged_pairs_read_too_early
  RUNG cuda_optimized/rulebook/mirrored_lists
  WITH ${algorithms}
  FIND [==[__syncwarp();  // all pairs are there before other lanes write them]==]
  REPLACE [==[]==]
  TEACHES "who stages a pair and who stores it are two lanes of a warp, which need not run together")

planted_bug(place_taken_for_the_row
  RUNG cuda_optimized/rulebook/lists_of_inputs
  WITH ${algorithms}
  FIND [==[return rows != nullptr ? rows[place] : static_cast<std::int32_t>(place);]==]
  REPLACE [==[return static_cast<std::int32_t>(place);]==]
  TEACHES "inputs are gone through in the order of their sites, and named by their rows, which may have any order")

planted_bug(outputs_numbered_behind_the_inputs
  RUNG cuda_optimized/rulebook/lists_of_inputs
  WITH ${algorithms}
  FIND [==[found.bits[at / 32]) - first_found);]==]
  REPLACE [==[found.bits[at / 32]));]==]
  TEACHES "two grids numbered in one: a row of the second is its number less all of the first")

planted_bug(pairs_counted_that_are_not_written
  RUNG cuda_optimized/rulebook/lists_of_inputs
  WITH ${algorithms}
  FIND [==[if (found >= 0 && found < along.found) ++of_axis;]==]
  REPLACE [==[++of_axis;]==]
  TEACHES "a size foretold by other means than the writing must agree with it: taps may lead beyond the grid")

planted_bug(lists_of_inverse_keep_the_roles
  RUNG cuda_optimized/rulebook/lists_of_inputs
  WITH ${algorithms}
  FIND [==[inverse ? InOut{found_rows[i], rows[i]} : InOut{rows[i], found_rows[i]};]==]
  REPLACE [==[InOut{rows[i], found_rows[i]};]==]
  TEACHES "given sites are the outputs of an inverse convolution, whose lists are in their order")

planted_bug(warp_sums_read_too_early
  RUNG cuda_optimized/rulebook/mirrored_lists
  FILE cuda_optimized/rulebook/block_sum.cuh
  WITH ${algorithms}
  FIND [==[__syncthreads();  // all warps have written theirs]==]
  REPLACE [==[]==]
  TEACHES "a block's sums need all its warps' sums: without the barrier they are those of the call before")

planted_bug(rank_taken_for_the_row
  RUNG cuda_optimized/rulebook/bit_grid
  WITH ${algorithms}
  FIND [==[return sorted ? rank : rows[rank];]==]
  REPLACE [==[return rank;]==]
  TEACHES "bits are counted in the order of cells, rows are numbered in the order of the input")

planted_bug(words_before_in_the_block_forgotten
  RUNG cuda_optimized/rulebook/bit_grid
  WITH ${algorithms}
  FIND [==[for (std::uint32_t before = found.run / kBlockWords * kBlockWords; before < found.run; ++before)]==]
  REPLACE [==[for (std::uint32_t before = found.run; before < found.run; ++before)]==]
  TEACHES "a rank has three parts: the blocks before, the words before, and the bits before")

planted_bug(blocks_before_forgotten
  RUNG cuda_optimized/rulebook/two_level_grid
  WITH ${algorithms}
  FIND [==[blocks_before[summary_word(run)] + __popc(]==]
  REPLACE [==[__popc(]==]
  TEACHES "words of blocks stand one behind the other: a block's number counts the blocks of all words before, too")

planted_bug(groups_of_a_block_packed_too_tightly
  RUNG cuda_optimized/rulebook/two_level_grid
  WITH ${algorithms}
  FIND [==[constexpr int kGroupBits = 10;]==]
  REPLACE [==[constexpr int kGroupBits = 5;]==]
  TEACHES "a group of 8 words has up to 256 sites: a number needs room for the most that it can be")

# --- Copies that land by themselves

planted_bug(async_copy_not_waited_for
  RUNG cuda_optimized/conv2d/direct_cp_async
  FIND [==[ptx::cp_async_wait_group<T::kStages - 2>();]==]
  REPLACE [==[]==]
  TEACHES "a barrier waits for threads, not for their copies")

planted_bug(padding_not_zero_filled
  RUNG cuda_optimized/conv2d/direct_cp_async
  FIND [==[ptx::cp_async<4>(place, channel + (inside ? offset : 0), inside ? 4 : 0);]==]
  REPLACE [==[ptx::cp_async<4>(place, channel + (inside ? offset : 0), 4);]==]
  TEACHES "read_bytes is the padding: with all bytes read, the channel's first pixels stand there")

planted_bug(planes_of_columns_mixed_up
  RUNG cuda_optimized/conv2d/direct_cp_async
  FIND [==[u % T::kStride * T::kPlane + u / T::kStride;]==]
  REPLACE [==[u;]==]
  TEACHES "who writes and who reads must agree on the layout: with stride 1 they do")

planted_bug(pass_read_too_early
  RUNG cuda_optimized/conv2d/direct_cp_async
  FIND [==[__syncwarp();  // between these writes and the reads below]==]
  REPLACE [==[]==]
  TEACHES "lanes of a warp need not run together")

planted_bug(phase_of_a_copy_forgotten
  RUNG cuda_optimized/conv2d/depthwise
  FIND [==[const float* in = in_room + flat_phase(from);]==]
  REPLACE [==[const float* in = in_room;]==]
  TEACHES "planes begin anywhere: the first one's alignment says nothing about the second's")

planted_bug(band_reaches_beyond_its_vector
  RUNG cuda_optimized/conv2d/depthwise
  FILE cuda_optimized/conv2d/flat_copy.cuh
  FIND [==[if (first + e >= 0 && first + e < count) global[first + e] = shared[4 * v + e];]==]
  REPLACE [==[global[first + e] = shared[4 * v + e];]==]
  TEACHES "the ends of a piece belong to its neighbours")

planted_bug(filter_not_turned_round
  RUNG cuda_optimized/conv2d_dgrad/depthwise
  FIND [==[const int from = j + kOdd - s + kBefore * kStride;]==]
  REPLACE [==[const int from = j + kOdd - (kTaps - 1 - s) + kBefore * kStride;]==]
  TEACHES "the gradient of a cross-correlation is a convolution; symmetric filters hide it")

planted_bug(residue_of_a_row_forgotten
  RUNG cuda_optimized/conv2d_dgrad/depthwise
  FIND [==[const int r = kStride * t + position % kStride;]==]
  REPLACE [==[const int r = kStride * t;]==]
  TEACHES "with stride 2, rows of dx take turns: even positions have the taps 0 and 2, odd ones tap 1")

planted_bug(lanes_keep_the_wrong_half
  RUNG cuda_optimized/conv2d_wgrad/depthwise
  FIND [==[__shfl_xor_sync(0xffffffffu, upper ? sums[i] : above, kStep);]==]
  REPLACE [==[__shfl_xor_sync(0xffffffffu, upper ? above : sums[i], kStep);]==]
  TEACHES "what a lane gives away is what it does not keep")

planted_bug(weights_of_the_channel_before
  RUNG cuda_optimized/conv2d/direct_double_buffered
  FIND [==[float* filter_room = filter_rooms + buffer * filter_floats;]==]
  REPLACE [==[float* filter_room = filter_rooms;]==]
  TEACHES "what travels with a tile needs two places too")

planted_bug(tap_pitch_of_the_filters
  RUNG cuda_optimized/conv2d/direct_float4
  FILE cuda_optimized/conv2d/filter_tile.cuh
  FIND [==[return i / kFilters * kTapPitch<kFilters> + i % kFilters; }]==]
  REPLACE [==[return i; }]==]
  TEACHES "6 filters lie 8 floats apart, 8 filters do as well: only the first shows who forgot it")

planted_bug(window_refilled_too_early
  RUNG cuda_optimized/conv2d/direct_register_window
  FIND [==[        for (int i = 0; i < kWindow; ++i) {
]==]
  REPLACE [==[        for (int i = 0; i < kWindow; ++i) {
          load_row(i);
]==]
  TEACHES "a register is free after its last product, not before: the next channel's row is another")

planted_bug(next_tile_looked_at_too_late
  RUNG cuda_optimized/conv2d/direct_register_window
  FIND [==[look_at(tile + static_cast<int>(gridDim.x));]==]
  REPLACE [==[look_at(tile);]==]
  TEACHES "only a block that takes several tiles shows it: the tests lower the number of blocks")

planted_bug(splits_not_added
  RUNG cuda_optimized/conv2d_wgrad/depthwise
  FIND [==[sum += parts[split * count + i];]==]
  REPLACE [==[sum += 0.0f * parts[split * count + i];]==]
  TEACHES "with one image there is one split, and the sum of one is right")

# --- Implicit matrix products

planted_bug(channel_and_tap_exchanged
  RUNG cuda_naive/conv2d/implicit_gemm
  FIND [==[const int c = k / conv.S / conv.R, r = k / conv.S % conv.R, s = k % conv.S;]==]
  REPLACE [==[const int c = k % (depth / conv.R / conv.S), r = k / (depth / conv.R / conv.S) / conv.S, s = k / (depth / conv.R / conv.S) % conv.S;]==]
  TEACHES "the steps along k may have any order, but weights and columns must have the same one")

planted_bug(columns_used_before_all_are_gathered
  RUNG cuda_optimized/conv2d/implicit_gemm_tiled
  FIND [==[__syncthreads();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "a missing barrier: the thread order shows it without a GPU")

planted_bug(last_filters_of_a_tile_unguarded
  RUNG cuda_optimized/conv2d/implicit_gemm_register_tile
  FIND [==[if (m >= filters) break;]==]
  REPLACE [==[]==]
  TEACHES "a tile that reaches behind the last filter of a group writes the next group's outputs")

planted_bug(column_bits_on_top_of_row_bits
  RUNG cuda_optimized/conv2d/implicit_gemm_hoisted
  FILE cuda_optimized/conv2d/tap_table.cuh
  FIND [==[missing &= ~(std::uint64_t{1} << (conv.R + s));]==]
  REPLACE [==[missing &= ~(std::uint64_t{1} << (conv.R + s - 1));]==]
  TEACHES "two masks in one word: where they overlap, padding is read")

planted_bug(taps_behind_the_last_one_gathered
  RUNG cuda_optimized/conv2d/implicit_gemm_hoisted
  FILE cuda_optimized/conv2d/tap_table.cuh
  FIND [==[table[k] = {0, ~std::uint64_t{0}};]==]
  REPLACE [==[table[k] = {0, 0};]==]
  TEACHES "their weights are zero, so the sums are right: but in the padding they read what is not x")

planted_bug(one_behind_the_last_column
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm
  FIND [==[const bool inside = p >= 0 && p < conv.P && q >= 0 && q < conv.Q;]==]
  REPLACE [==[const bool inside = p >= 0 && p < conv.P && q >= 0 && q <= conv.Q;]==]
  TEACHES "what lies behind the last column is the next row's first: a number like any other")

planted_bug(parts_one_on_top_of_the_other
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_split_k
  FIND [==[return split * part + channel * row + (h * classes_w + w) * pitch;]==]
  REPLACE [==[return split * pitch + channel * row + (h * classes_w + w) * pitch;]==]
  TEACHES "blocks that share a tile must not share what they write")

planted_bug(sums_of_a_warp_read_before_they_are_there
  RUNG cuda_optimized/conv2d/implicit_gemm_vectorized
  FILE cuda_optimized/conv2d/gathered_product.cuh
  FIND [==[__syncwarp();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "a warp is not in step of itself: what lanes exchange needs a barrier of the warp")

planted_bug(stage_read_before_its_copies_landed
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_few_channels
  FILE cuda_optimized/conv2d/implicit_gemm_pipeline.cuh
  FIND [==[ptx::cp_async_wait_group<T::kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<T::kStages - 1>();]==]
  TEACHES "one group too few is waited for: on a GPU the copies are mostly there, and sometimes not")

planted_bug(empty_groups_not_counted
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_few_channels
  FILE cuda_optimized/conv2d/implicit_gemm_pipeline.cuh
  FIND [==[        ++next;
      }
      ptx::cp_async_commit_group();]==]
  REPLACE [==[        ++next;
        ptx::cp_async_commit_group();
      }]==]
  TEACHES "at the end of a sum nothing is copied any more, but the groups must be counted on")

planted_bug(padding_of_the_tap_before
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_few_channels
  FILE cuda_optimized/conv2d/implicit_gemm_pipeline.cuh
  FIND [==[inside_[i] = inside;]==]
  REPLACE [==[inside_[i] = r_ + s_ == 0 ? inside : inside_[i];]==]
  TEACHES "what is hoisted out of the loop must be found anew where it changes")

planted_bug(part_of_the_next_split
  RUNG cuda_optimized/conv2d/implicit_gemm_split_k
  FIND [==[for (int split = 0; split < splits; ++split) sum += parts[split * count + i];]==]
  REPLACE [==[for (int split = 0; split < splits - 1; ++split) sum += parts[split * count + i];]==]
  TEACHES "a split that is not added is missed only where there are splits")

planted_bug(class_of_the_first_tap_only
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm
  FILE cuda_optimized/conv2d_dgrad/residue_classes.cuh
  FIND [==[tap_step = stride / common;]==]
  REPLACE [==[tap_step = stride;]==]
  TEACHES "stride and dilation with a common factor: every second tap of a class would be missed")

planted_bug(classes_share_packed_weights
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_cp_async
  FIND [==[next_packed += product.packed_floats();]==]
  REPLACE [==[next_packed += 0;]==]
  TEACHES "each residue class has weights of its own")

# --- Sparse convolutions

planted_bug(sums_onto_old_rows
  RUNG cuda_naive/sparse_conv/scatter
  FIND [==[launch_fill_rows(conv.M, conv.Cout, arrays.in_or_null<float>("bias"), y);]==]
  REPLACE [==[]==]
  TEACHES "what adds needs a zero, or the bias, to start from")

planted_bug(missing_row_read_as_the_first
  RUNG cuda_optimized/sparse_conv/output_stationary
  FIND [==[if (met < 0) continue;  // most taps of most rows meet nothing
        const float* from = conv.from + met * summed;]==]
  REPLACE [==[const float* from = conv.from + (met < 0 ? 0 : met) * summed;]==]
  TEACHES "-1 is no row: a tap that meets nothing adds nothing")

planted_bug(rows_added_to_where_they_came_from
  RUNG cuda_optimized/sparse_conv/gather_gemm_scatter
  FIND [==[const std::int64_t out = tap.pairs[(begin + i) * kPairColumns + 2];]==]
  REPLACE [==[const std::int64_t out = tap.pairs[(begin + i) * kPairColumns + 1];]==]
  TEACHES "scatter is not gather backwards: under subm both rows exist, and the sizes fit")

planted_bug(tap_without_an_end
  RUNG cuda_optimized/sparse_conv/gather_gemm_scatter
  FIND [==[if (offset != nullptr) product.M = offset[1] - offset[0];]==]
  REPLACE [==[if (offset != nullptr) product.M = offset[1];]==]
  TEACHES "products of rows that the tap does not have, written behind the workspace")

planted_bug(taps_without_a_slot_of_their_own
  RUNG cuda_optimized/sparse_conv/grouped_gemm
  FILE cuda_optimized/sparse_conv/row_tiles.cuh
  FIND [==[return offset / tile + k;]==]
  REPLACE [==[return offset / tile + 0 * k;]==]
  TEACHES "taps that begin inside of the same tile's pairs need a slot each")

planted_bug(place_left_at_the_wrong_row
  RUNG cuda_optimized/sparse_conv/grouped_gemm
  FIND [==[place[std::int64_t{pair[0]} * conv.M + pair[2]] = static_cast<std::int32_t>(i);]==]
  REPLACE [==[place[std::int64_t{pair[0]} * conv.M + pair[1]] = static_cast<std::int32_t>(i);]==]
  TEACHES "the output asks for its product, not the input: under subm both rows exist")

planted_bug(next_tile_copied_over_this_one
  RUNG cuda_optimized/sparse_conv/grouped_gemm
  FIND [==[__syncthreads();  // separates the last loads of this tile from the first copies of the next]==]
  REPLACE [==[]==]
  TEACHES "blocks that stride over tiles need a barrier between two of them")

planted_bug(alignment_of_the_weights_forgotten
  RUNG cuda_optimized/sparse_conv/fetch_on_demand
  FIND [==[is_aligned(fetch.weights) && is_aligned(y);]==]
  REPLACE [==[is_aligned(y);]==]
  TEACHES "arrays that are all misaligned, or none, do not ask for each")

planted_bug(row_fetched_before_its_number_is_there
  RUNG cuda_optimized/sparse_conv/fetch_on_demand
  FIND [==[__syncthreads();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "a thread copies rows whose numbers other threads have looked up")

planted_bug(rows_multiplied_before_they_have_landed
  RUNG cuda_optimized/sparse_conv/fetch_on_demand
  FIND [==[ptx::cp_async_wait_group<kStages<Tile> - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages<Tile> - 1>();]==]
  TEACHES "gathered rows come from afar: on a GPU this one may well be seen")

planted_bug(sums_added_without_atomics
  RUNG cuda_optimized/sparse_conv/fetch_on_demand
  FIND [==[for (int j = 0; j < 4 && n0 + n + j < Cout; ++j) atomicAdd(to + j, parts[j]);]==]
  REPLACE [==[for (int j = 0; j < 4 && n0 + n + j < Cout; ++j) to[j] = parts[j];]==]
  TEACHES "the last tap to store wins, and the addends of the others are lost")

planted_bug(channels_beyond_the_last_multiplied
  RUNG cuda_optimized/sparse_conv/fetch_on_demand
  FIND [==[const bool exists = c0 + b_row + k < conv.Cin;]==]
  REPLACE [==[const bool exists = true;]==]
  TEACHES "zeros of features times weights of the next tap: 0 * NaN, behind the last tap")

planted_bug(weights_not_transposed
  RUNG cuda_optimized/sparse_dgrad/output_stationary
  WITH cuda_optimized/sparse_conv/output_stationary.cu
  FIND [==[transposed[to] = weights[(k * Cin + ci) * Cout + co];]==]
  REPLACE [==[transposed[to] = weights[to];]==]
  TEACHES "with as many input as output channels the shapes fit all the same")

planted_bug(last_chunk_as_long_as_the_others
  RUNG cuda_optimized/sparse_wgrad/output_stationary
  FIND [==[const int count = left < kChunk ? static_cast<int>(left) : kChunk;]==]
  REPLACE [==[const int count = kChunk; static_cast<void>(left);]==]
  TEACHES "pairs of the next tap, or memory behind the last pair, flow into the sum")

planted_bug(chunk_read_before_it_is_there
  RUNG cuda_optimized/sparse_wgrad/output_stationary
  FIND [==[__syncthreads();  // the chunk is complete before anybody reads it]==]
  REPLACE [==[]==]
  TEACHES "a missing barrier: the thread order shows it without a GPU")

planted_bug(rows_multiplied_before_they_landed
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/implicit_gemm_mma.cuh
  FIND [==[ptx::cp_async_wait_group<kAhead - 1>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kAhead>();]==]
  TEACHES "two rings, indices and rows: one group too few is waited for, and both are too late")

planted_bug(missing_row_gathered_as_any_other
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/implicit_gemm_mma.cuh
  FIND [==[from + at, index < 0 ? 0 : left);]==]
  REPLACE [==[from + at, left);]==]
  TEACHES "-1 is no row: what cp.async is not told to leave out, it reads")

planted_bug(pieces_stored_unpermuted
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/implicit_gemm_mma.cuh
  FIND [==[char* const a = to + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;]==]
  REPLACE [==[char* const a = to + row * Shape::kRowBytes + piece * kPiece;]==]
  TEACHES "who stores and who loads must permute the pieces of a row alike")

planted_bug(taps_of_the_first_row_only
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/implicit_gemm_mma.cuh
  FIND [==[bits |= __shfl_xor_sync(0xFFFFFFFF, bits, distance);]==]
  REPLACE [==[bits |= __shfl_xor_sync(0xFFFFFFFF, bits, 0 * distance);]==]
  TEACHES "a tile needs the taps of all its rows, also where sorting has made them alike")

planted_bug(dw_not_zeroed_before_atomics
  RUNG cuda_optimized/sparse_wgrad/split_k_atomics
  FIND [==[check(cudaMemsetAsync(dw, 0, static_cast<std::size_t>(weights) * sizeof(float)));]==]
  REPLACE [==[static_cast<void>(weights);]==]
  TEACHES "what adds needs a zero to start from")

planted_bug(pairs_of_the_next_part
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FILE cuda_optimized/sparse_wgrad/row_gather.cuh
  FIND [==[rows_[j] = pair < left_ ? pair_[pair * kPairColumns] : -1;]==]
  REPLACE [==[rows_[j] = left_ > 0 ? pair_[pair * kPairColumns] : -1;]==]
  TEACHES "parts end where their tap ends, not at a whole step")

planted_bug(rows_of_pairs_not_waited_for
  RUNG cuda_optimized/sparse_wgrad/split_k
  FILE cuda_optimized/sparse_wgrad/pair_product.cuh
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "on a GPU the copies have mostly landed anyway; here they land when waited for")

planted_bug(last_group_of_parts_not_added
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FILE cuda_optimized/sparse_wgrad/pair_parts.cuh
  FIND [==[for (int part = group; part < count[slab]; part += groups)]==]
  REPLACE [==[for (int part = group; part < count[slab] - 1; part += groups)]==]
  TEACHES "the last part of a tap is shorter than the others, and counts all the same")

planted_bug(sum_over_lanes_without_the_taps_before
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FILE cuda_optimized/sparse_wgrad/pair_parts.cuh
  FIND [==[index -= __shfl_sync(0xFFFFFFFF, sum, 31);]==]
  REPLACE [==[index -= __shfl_sync(0xFFFFFFFF, sum, 30);]==]
  TEACHES "a warp sees 32 taps at a time: kernels with more of them need the sum of all 32")

planted_bug(fragments_of_the_wrong_half
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FIND [==[fragments[f + e / 2][e % 2] = four[e];]==]
  REPLACE [==[fragments[f + e % 2][e / 2] = four[e];]==]
  TEACHES "four matrices of a load: which of them are further pairs, and which further channels")

planted_bug(second_half_overwrites_the_first
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm
  FIND [==[Half{middle, gemm.KV, gemm.orders + gemm.rows, true}]==]
  REPLACE [==[Half{middle, gemm.KV, gemm.orders + gemm.rows, false}]==]
  TEACHES "with one tap there is no second half, and with one half nothing is missing")

planted_bug(group_asks_half_of_its_rows
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm
  FILE cuda_optimized/sparse_dgrad/tile_taps.cuh
  FIND [==[for (int distance = kGroup / 2; distance > 0; distance /= 2)]==]
  REPLACE [==[for (int distance = kGroup / 4; distance > 0; distance /= 2)]==]
  TEACHES "a group that asks half of its rows skips taps that the other half has")

planted_bug(table_mirrored_but_not_the_weights
  RUNG cuda_optimized/sparse_dgrad/mirrored_table
  WITH cuda_optimized/sparse_dgrad/implicit_gemm.cu
  FIND [==[.opposite = true,]==]
  REPLACE [==[.opposite = false,]==]
  TEACHES "right at the centre tap alone, which most rows of a sparse sweep have")

planted_bug(pieces_looked_for_where_they_were
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm_mma
  FIND [==[a_tile + R::at(m0 + 16 * i + lane % 16, piece + lane / 16)]==]
  REPLACE [==[a_tile + (m0 + 16 * i + lane % 16) * R::kStep + (piece + lane / 16) * R::kNumbers]==]
  TEACHES "what is stored in another place must be loaded from there")
planted_bug(products_not_waited_for
  RUNG cuda_optimized/sparse_conv/implicit_gemm_wgmma
  FIND [==[[](int, const char*) { ptx::wgmma_wait_group<0>(); });]==]
  REPLACE [==[[](int, const char*) {});]==]
  TEACHES "sums are there after the wait, and not before, and rows may be overwritten only then")

planted_bug(weights_stored_unpermuted
  RUNG cuda_optimized/sparse_conv/implicit_gemm_wgmma
  FILE cuda_optimized/sparse_conv/implicit_gemm_mma.cuh
  FIND [==[char* const b = to + Shape::kBytesA + row * Shape::kRowBytes +
                      (piece ^ permutation<kPieces>(row)) * kPiece;]==]
  REPLACE [==[char* const b = to + Shape::kBytesA + row * Shape::kRowBytes + piece * kPiece;]==]
  TEACHES "wgmma undoes the 128-byte permutation, whether anybody has done it or not")

planted_bug(arrival_before_the_copies
  RUNG cuda_optimized/sparse_conv/implicit_gemm_producers
  FILE cuda_optimized/sparse_conv/implicit_gemm_producers.cuh
  FIND [==[ptx::cp_async_mbarrier_arrive_noinc(full);]==]
  REPLACE [==[ptx::mbarrier_arrive(full);]==]
  TEACHES "a thread that has asked for copies has not got them: they must arrive, not it")

planted_bug(stage_given_back_while_it_is_read
  RUNG cuda_optimized/sparse_conv/implicit_gemm_producers
  FILE cuda_optimized/sparse_conv/implicit_gemm_producers.cuh
  FIND [==[ptx::wgmma_wait_group<1>();]==]
  REPLACE [==[ptx::wgmma_wait_group<2>();]==]
  TEACHES "products that have been issued are not done: the stage before is still being read")

planted_bug(last_taps_left_out
  RUNG cuda_optimized/sparse_conv/implicit_gemm_producers
  FILE cuda_optimized/sparse_conv/implicit_gemm_producers.cuh
  FIND [==[if (t == 0) group.exists = exists;]==]
  REPLACE [==[if (t == Shape::kTaps - 1) group.exists = exists;]==]
  TEACHES "a list of taps seldom fills its last stage, and has to be multiplied to its end")

planted_bug(tile_handed_out_to_nobody
  RUNG cuda_optimized/sparse_conv/implicit_gemm_producers
  FILE cuda_optimized/sparse_conv/implicit_gemm_producers.cuh
  FIND [==[if (first == 0) *p.handed_out = 0;]==]
  REPLACE [==[if (first == 0) *p.handed_out = 1;]==]
  TEACHES "a counter that begins with one leaves out a tile, which only a machine with few blocks asks for")

planted_bug(weights_turned_round_that_lie_right
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm_producers
  FIND [==[multiply_by_producers<true>]==]
  REPLACE [==[multiply_by_producers<false>]==]
  TEACHES "with one channel, or symmetric weights, a matrix is its own transpose; else it is not")

# --- Tensor cores

planted_bug(stage_multiplied_before_it_has_landed
  RUNG cuda_optimized/gemm/mma_tf32
  FILE cuda_optimized/gemm/mma_tile.cuh
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "on a GPU the copies have mostly landed anyway; here they land when waited for")

planted_bug(stored_without_the_permutation
  RUNG cuda_optimized/gemm/mma_tf32
  FIND [==[a_tile + S::Stages::A::at(i, a_k)]==]
  REPLACE [==[a_tile + i * kMmaStep + a_k]==]
  TEACHES "who stores and who loads must permute alike")

planted_bug(quarters_of_a_fragment_exchanged
  RUNG cuda_optimized/gemm/mma_tf32
  FILE cuda_optimized/gemm/mma_tile.cuh
  FIND [==[Tile::at(lane % 16, k0 + lane / 16 * 4)]==]
  REPLACE [==[Tile::at(lane % 8 + lane / 16 * 8, k0 + lane / 8 % 2 * 4)]==]
  TEACHES "the order that fits b's fragments, used for a's: the wrapper's layout is the hardware's")

planted_bug(truncated_factors
  RUNG cuda_optimized/gemm/mma_tf32
  FILE cuda_optimized/gemm/mma_tile.cuh
  FIND [==[b[j][e] = ptx::to_tf32(__uint_as_float(b[j][e]));]==]
  REPLACE [==[b[j][e] += 0;]==]
  TEACHES "integers are exact without cvt.rna; sums of positive products are 6e-4 too small")

planted_bug(big_parts_alone
  RUNG cuda_optimized/gemm/mma_3xtf32
  FIND [==[return ptx::to_tf32(value - __uint_as_float(factor));]==]
  REPLACE [==[return 0;]==]
  TEACHES "TF32 where the problem asks for fp32")

planted_bug(last_filter_row_taken_for_padding
  RUNG cuda_optimized/conv2d/implicit_gemm_mma_tf32
  FILE cuda_optimized/conv2d/gathered_gemm_mma.cuh
  FIND [==[1 + (step > 0 ? floor_div(product.H - 1 - top, step)]==]
  REPLACE [==[0 + (step > 0 ? floor_div(product.H - 1 - top, step)]==]
  TEACHES "a shortcut past the padding must not cut off a row")

planted_bug(rows_past_the_end_walk_back_in
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_mma_tf32
  FILE cuda_optimized/conv2d/gathered_gemm_mma.cuh
  FIND [==[Row row{0, product.tap.h < 0 ? -1 : product.H, product.tap.w < 0 ? -1 : product.W};]==]
  REPLACE [==[Row row{0, product.H, product.W};]==]
  TEACHES "below the image is outside, until taps walk upwards; their results are thrown away, but the loads are real")

planted_bug(window_forgets_columns_of_taps
  RUNG cuda_optimized/conv2d/implicit_gemm_mma_tf32
  FILE cuda_optimized/conv2d/gathered_gemm_mma.cuh
  FIND [==[1u << tap.r | 1u << (product_.R + tap.s)]==]
  REPLACE [==[1u << tap.r]==]
  TEACHES "left of a row lies the end of the row before: no fault, a wrong number")

planted_bug(weights_left_as_they_are
  RUNG cuda_optimized/conv2d/implicit_gemm_mma_tf32
  FIND [==[out[i] = __uint_as_float(ptx::to_tf32(in[i]));]==]
  REPLACE [==[out[i] = in[i];]==]
  TEACHES "rounded once, or never: integers do not tell")

planted_bug(turned_weights_left_as_they_are
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_mma_tf32
  FIND [==[launch_transpose<gemm::Rounding::to_tf32>(]==]
  REPLACE [==[launch_transpose<gemm::Rounding::none>(]==]
  TEACHES "the same for the input gradient")

planted_bug(share_of_a_sum_to_its_end
  RUNG cuda_optimized/conv2d/implicit_gemm_mma_tf32
  FILE cuda_optimized/conv2d/gathered_gemm_mma.cuh
  FIND [==[return {begin, min(begin + share, depth.end)};]==]
  REPLACE [==[return {begin, depth.end};]==]
  TEACHES "parts of a sum must not overlap")

planted_bug(taps_of_a_class_too_far_apart
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm_mma_tf32
  FIND [==[found.tap_step = stride / gcd;]==]
  REPLACE [==[found.tap_step = stride;]==]
  TEACHES "stride and dilation with a common divisor: nobody's default")

planted_bug(steps_past_the_last_pixel
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32
  FIND [==[end = min(begin + steps * kStep, product.pixels);]==]
  REPLACE [==[end = begin + steps * kStep;]==]
  TEACHES "the steps do not divide the sum")

planted_bug(parts_in_the_same_place
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32
  FIND [==[(std::int64_t{blockIdx.x} + tile_number)]==]
  REPLACE [==[std::int64_t{blockIdx.x}]==]
  TEACHES "a block with shares of two tiles has two parts")

planted_bug(windows_of_another_stage
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32
  FIND [==[decode(step / kAhead + 1)]==]
  REPLACE [==[decode(step / kAhead + 2)]==]
  TEACHES "what is found ahead must lie where it is looked for")

planted_bug(columns_stored_in_order
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32
  FIND [==[slot = column_slot(2 * place + next_column)]==]
  REPLACE [==[slot = 2 * place + next_column]==]
  TEACHES "columns may change places, if loads and stores agree")

planted_bug(gathered_weights_cut_off
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/implicit_gemm_mma.cuh
  FIND [==[const std::uint32_t right[2] = {ptx::to_tf32(b0), ptx::to_tf32(b1)};]==]
  REPLACE [==[const std::uint32_t right[2] = {__float_as_uint(b0), __float_as_uint(b1)};]==]
  TEACHES "sparse or dense, mma.sync truncates what nobody has rounded")

planted_bug(cut_instead_of_rounded
  RUNG cuda_optimized/conv2d_wgrad/implicit_gemm_mma_tf32
  FIND [==[bits + 0x1000]==]
  REPLACE [==[bits]==]
  TEACHES "mma.sync truncates: sums of positive products are 6e-4 too small")

planted_bug(patch_rounded_before_it_has_landed
  RUNG cuda_optimized/conv2d/direct_mma_tf32
  FIND [==[ptx::cp_async_wait_group<0>();
      if (tiling.width == 4) {]==]
  REPLACE [==[ptx::cp_async_wait_group<1>();
      if (tiling.width == 4) {]==]
  TEACHES "the first patch comes with the weights: only a block's second tile shows it")

planted_bug(next_patch_over_the_one_in_use
  RUNG cuda_optimized/conv2d/direct_mma_tf32
  FIND [==[ask_for(tile + blocks, 1 - buffer);]==]
  REPLACE [==[ask_for(tile + blocks, buffer);]==]
  TEACHES "two patches are of use only if the copies go to the other one")

planted_bug(patch_left_unrounded
  RUNG cuda_optimized/conv2d/direct_mma_tf32
  FIND [==[line[j] = __uint_as_float(ptx::to_tf32(line[j]));]==]
  REPLACE [==[line[j] += 0.0f;]==]
  TEACHES "mma.sync truncates; sums of positive products come out too small")

planted_bug(taps_in_the_order_of_k
  RUNG cuda_optimized/conv2d/direct_mma_tf32
  FIND [==[taps[k / 8 * 8 + k % 4 * 2 + k % 8 / 4]]==]
  REPLACE [==[taps[k]]==]
  TEACHES "a lane's two steps of k are four apart, not neighbours")

planted_bug(draft_read_before_it_is_written
  RUNG cuda_optimized/conv2d/direct_mma_tf32
  FIND [==[__syncwarp();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "lanes of a warp need a barrier as well")

planted_bug(taps_of_one_row
  RUNG cuda_optimized/sparse_conv/implicit_gemm
  FIND [==[bits |= __shfl_xor_sync(~0u, bits, apart);]==]
  REPLACE [==[bits = __shfl_xor_sync(~0u, bits, apart);]==]
  TEACHES "a tile does what any of its rows needs")

planted_bug(second_half_first
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FIND [==[half_of_implicit_gemm(conv, arrays, half)]==]
  REPLACE [==[half_of_implicit_gemm(conv, arrays, 1 - half)]==]
  TEACHES "who adds must come second: y starts as NaN")

planted_bug(gathered_rows_not_waited_for
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FILE cuda_optimized/sparse_conv/implicit_gemm_async.cuh
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "one group too many may be on its way")

planted_bug(inputs_of_other_lanes_not_waited_for
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FILE cuda_optimized/sparse_conv/implicit_gemm_async.cuh
  FIND [==[__syncwarp();  // the inputs that]==]
  REPLACE [==[// the inputs that]==]
  TEACHES "a wait tells of this thread's copies: before the loop, no barrier tells of its neighbours'")

planted_bug(warps_skip_what_the_first_skips
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FILE cuda_optimized/sparse_conv/implicit_gemm_async.cuh
  FIND [==[>> lane_ & 1) << w;]==]
  REPLACE [==[>> lane_ & 1);]==]
  TEACHES "every warp has taps of its own")

planted_bug(counts_of_one_half_cleared
  RUNG cuda_optimized/sparse_conv/implicit_gemm_longest_first
  WITH cuda_optimized/sparse_conv/implicit_gemm_cp_async.cu
  FIND [==[cudaMemsetAsync(counts, 0, 2 * kBuckets]==]
  REPLACE [==[cudaMemsetAsync(counts, 0, kBuckets]==]
  TEACHES "a workspace comes as the run before left it")

# --- Max pooling over a rulebook, and dense tensors

planted_bug(maximum_begins_at_zero
  RUNG cpu_reference/sparse_max_pool/direct
  FIND [==[if (argmax[to] < 0 || exceeds(offer, y[to])) {]==]
  REPLACE [==[if (exceeds(offer, y[to])) {]==]
  TEACHES "negative features are features: a well-known library gives 0 for them (spconv issue 754)")

planted_bug(floats_compared_by_their_bits
  RUNG cuda_naive/sparse_max_pool/scatter
  FIND [==[return (bits & kSign) != 0 ? ~bits : bits | kSign;]==]
  REPLACE [==[return bits ^ kSign;]==]
  TEACHES "bits of negative floats sort the wrong way round")

planted_bug(table_read_along_its_other_axis
  RUNG cuda_naive/sparse_max_pool/scatter
  FIND [==[in = nbr[k * M + i / C];]==]
  REPLACE [==[in = nbr[i / C * pool.book.KV + k];]==]
  TEACHES "some libraries keep the table as [M][KV]: no index leaves it, either way")

planted_bug(equal_takes_the_place
  RUNG cuda_optimized/sparse_max_pool/output_stationary
  FIND [==[exceeds(feature, best)]==]
  REPLACE [==[!exceeds(best, feature)]==]
  TEACHES "y is right all the same: only argmax tells the first from the last")

planted_bug(one_winner_for_four_channels
  RUNG cuda_optimized/sparse_max_pool/vectorized
  FIND [==[if (from.at[i] < 0 || exceeds(feature.at[i], best.at[i])) {]==]
  REPLACE [==[if (from.at[i] < 0 || exceeds(feature.at[0], best.at[0])) {]==]
  TEACHES "channels have their maxima at different rows")

planted_bug(second_word_of_the_mask_forgotten
  RUNG cuda_optimized/sparse_max_pool/masked_taps
  FIND [==[for (int word = 0; word < words; ++word) {]==]
  REPLACE [==[for (int word = 0; word < 1; ++word) {]==]
  TEACHES "5 x 5 x 5 taps are four words")

planted_bug(gradient_to_every_candidate
  RUNG cpu_reference/sparse_max_pool_dgrad/gather
  FIND [==[if (argmax[out * C + c] == in) sums[c]]==]
  REPLACE [==[sums[c]]==]
  TEACHES "a maximum is not a sum: its gradient goes to one row")

planted_bug(nobodys_gradient_to_the_first_row
  RUNG cuda_naive/sparse_max_pool_dgrad/scatter
  FIND [==[if (in >= 0) atomicAdd(&dx[in * C + i % C], dy[i]);]==]
  REPLACE [==[if (pool.N > 0) atomicAdd(&dx[(in < 0 ? 0 : in) * C + i % C], dy[i]);]==]
  TEACHES "outputs without candidates exist, under inverse")

planted_bug(gradients_stored_not_added
  RUNG cuda_optimized/sparse_max_pool_dgrad/output_stationary
  FIND [==[sum += dy[out * C + c];]==]
  REPLACE [==[sum = dy[out * C + c];]==]
  TEACHES "windows overlap, and a row may win in several; with windows side by side it looks right")

planted_bug(first_channel_decides_for_four
  RUNG cuda_optimized/sparse_max_pool_dgrad/vectorized
  FIND [==[won = won || winner.at[i] == row;]==]
  REPLACE [==[won = winner.at[0] == row;]==]
  TEACHES "a vector may be skipped only if none of its channels wants it")

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
  FIND [==[__syncthreads();  // the tile is complete before it is read the other way]==]
  REPLACE [==[]==]
  TEACHES "a transposition reads what other warps have written")

planted_bug(next_tile_over_one_still_read
  RUNG cuda_optimized/sparse_to_dense/transposed_tiles
  FIND [==[__syncthreads();  // all of it is read before the next one overwrites it]==]
  REPLACE [==[]==]
  TEACHES "blocks that stride over tiles need a second barrier")

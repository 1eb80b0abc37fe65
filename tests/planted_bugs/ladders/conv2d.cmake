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

planted_bug(group_offset_forgotten
  RUNG cuda_optimized/conv2d/direct/tiled
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
  WITH cuda_naive/im2col/im2col.cu,cuda_naive/gemm/direct_batched.cu
  FILE cuda_naive/gemm/direct_batched.cu
  FIND [==[product.b.at(image, group, k, column)]==]
  REPLACE [==[product.b.at(image, 0, k, column)]==]
  TEACHES "a building block's mistake shows in the rung that uses it")

planted_bug(guard_off_by_one
  RUNG cuda_naive/conv2d/direct
  FIND [==[if (q >= conv.Q) return;]==]
  REPLACE [==[if (q > conv.Q) return;]==]
  TEACHES "the column after the last is the next row's first, or a write past the end")

planted_bug(last_halo_row_missing
  RUNG cuda_optimized/conv2d/direct/tiled
  FIND [==[i < rows; i += blockDim.y]==]
  REPLACE [==[i + 1 < rows; i += blockDim.y]==]
  TEACHES "shared memory starts as NaN, so that what was not loaded shows")

planted_bug(filter_tail_written
  RUNG cuda_optimized/conv2d/direct/register_tile
  FIND [==[if (f < filters && j < pixels)
]==]
  REPLACE [==[if (j < pixels)
]==]
  TEACHES "a thread's tile of filters ends inside of K somewhere: groups, and guard bands behind y")

planted_bug(float4_tail
  RUNG cuda_optimized/conv2d/direct/float4
  FIND [==[if (w + e < static_cast<unsigned>(conv.W)) inside |= 1u << e;]==]
  REPLACE [==[if (w < static_cast<unsigned>(conv.W)) inside |= 1u << e;]==]
  TEACHES "four columns are not all inside because the first one is: W % 4 != 0")

planted_bug(row_end_off_by_one
  RUNG cpu_reference/conv2d/reordered
  FIND [==[(W - 1 - offset) / stride + 1]==]
  REPLACE [==[(W - offset) / stride + 1]==]
  TEACHES "the padding's zero is replaced by the next row's first pixel")

planted_bug(dropped_barrier_before_the_reads
  RUNG cuda_optimized/conv2d/direct/tiled
  FIND [==[__syncthreads();  // between these writes and the reads below]==]
  REPLACE [==[]==]
  TEACHES "a thread order that the hardware would not choose today")

planted_bug(dropped_barrier_before_the_writes
  RUNG cuda_optimized/conv2d/direct/tiled
  FIND [==[__syncthreads();  // between the reads of the channel before and this channel's writes]==]
  REPLACE [==[]==]
  TEACHES "invisible with one channel, and on one warp that happens to stay together")

planted_bug(early_return_above_a_barrier
  RUNG cuda_optimized/conv2d/direct/tiled
  FIND [==[const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;]==]
  REPLACE [==[const int q0 = static_cast<int>(blockIdx.x) * tile_q, q = q0 + tx;
  if (q >= conv.Q) return;]==]
  TEACHES "a barrier that some threads never reach, and a tile with holes")

planted_bug(prefetch_into_the_tile_in_use
  RUNG cuda_optimized/conv2d/direct/double_buffered
  FIND [==[buffer ^= 1;]==]
  REPLACE [==[]==]
  TEACHES "one buffer is not two: the 'prefetch' of a much-read kernel")

planted_bug(last_channel_not_prefetched
  RUNG cuda_optimized/conv2d/direct/double_buffered
  FIND [==[if (c + 1 < group_c) {]==]
  REPLACE [==[if (c + 2 < group_c) {]==]
  TEACHES "double buffers meet odd and even counts: LeetCUDA's was wrong for odd ones")

planted_bug(grid_stride_forgotten
  RUNG cuda_naive/conv2d/direct
  FIND [==[nk < std::int64_t{conv.N} * conv.K; nk += gridDim.z)]==]
  REPLACE [==[nk < std::int64_t{conv.N} * conv.K; nk += std::int64_t{conv.N} * conv.K)]==]
  TEACHES "no small problem needs the loop over the grid: tests must force it")

planted_bug(output_left_alone
  RUNG cuda_naive/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  REPLACE [==[if (sum != 0.0f) y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  TEACHES "outputs start as NaN: what the run before left cannot help")

planted_bug(nothing_but_nan
  RUNG cpu_reference/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = rounded_to<T>(activated(conv.activation, sum));]==]
  REPLACE [==[y[y_at(n, k, p, q)] = rounded_to<T>(sum * (0.0f / 0.0f));]==]
  TEACHES "`if (error > tolerance) fail` accepts this; `if (!(error <= tolerance)) fail` does not")

planted_bug(writes_its_input
  RUNG cpu_reference/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = rounded_to<T>(activated(conv.activation, sum));]==]
  REPLACE [==[y[y_at(n, k, p, q)] = rounded_to<T>(activated(conv.activation, sum)), const_cast<T*>(x)[0] = rounded_to<T>(to_float(x[0]) + 1.0f);]==]
  TEACHES "inputs are compared after the run")

planted_bug(bias_twice
  RUNG cuda_naive/conv2d/direct
  FIND [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum);]==]
  REPLACE [==[y[y_at(n, k, p, q)] = activated(conv.activation, sum + (bias ? bias[k] : 0.0f));]==]
  TEACHES "problems with and without a bias")

planted_bug(channel_pieces_overwrite
  RUNG cuda_optimized/conv2d/direct/constant_weights
  FIND [==[if (piece.c_begin > 0 && inside) sum = y[output];]==]
  REPLACE [==[]==]
  TEACHES "a filter larger than 64 KB is a branch that only large C * R * S reach")

planted_bug(relu_before_the_bias
  RUNG cuda_optimized/conv2d/implicit_gemm/register_tile
  FIND [==[activated(conv.activation, (bias ? bias[filter] : 0.0f) + sums[i][e])]==]
  REPLACE [==[(bias ? bias[filter] : 0.0f) + activated(conv.activation, sums[i][e])]==]
  TEACHES "with ReLU the order of an epilogue matters: a bias below zero must be able to switch an output off")

planted_bug(relu_of_parts
  RUNG cuda_optimized/conv2d/implicit_gemm/split_k
  FIND [==[sum += parts[split * count + i];]==]
  REPLACE [==[sum += activated(activation, parts[split * count + i]);]==]
  TEACHES "ReLU is not additive: parts of a sum may be negative")

planted_bug(relu_of_the_first_channels
  RUNG cuda_optimized/conv2d/direct/constant_weights
  FILE cuda_optimized/conv2d/shared/direct/weight_chunks.cuh
  FIND [==[return piece.c_end == conv.C / conv.groups ? conv.activation : Activation::none;]==]
  REPLACE [==[return piece.c_end > 0 ? conv.activation : Activation::none;]==]
  TEACHES "a sum that several launches add up is complete in the last one only")

planted_bug(first_rows_again
  RUNG cuda_optimized/conv2d/implicit_gemm/im2col_l2_blocked
  WITH cuda_optimized/im2col/im2col_vectorized.cu,cuda_optimized/gemm/shared/tiled_batched.cu
  FIND [==[columns.height.pad_before -= static_cast<int>(p0 * conv.stride.h);]==]
  REPLACE [==[]==]
  TEACHES "pieces of an image are needed, also where a test's images are small")

planted_bug(async_copy_not_waited_for
  RUNG cuda_optimized/conv2d/direct/cp_async
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[]==]
  TEACHES "a barrier waits for threads, not for their copies")

planted_bug(empty_group_left_out
  RUNG cuda_optimized/conv2d/direct/cp_async
  FIND [==[        }
        ptx::cp_async_commit_group();]==]
  REPLACE [==[          ptx::cp_async_commit_group();
        }]==]
  TEACHES "a wait counts groups: without the empty ones, the last channels are not waited for")

planted_bug(padding_not_zero_filled
  RUNG cuda_optimized/conv2d/direct/cp_async
  FIND [==[ptx::cp_async<4>(tile + i, channel + (inside ? offset : 0), inside ? 4 : 0);]==]
  REPLACE [==[ptx::cp_async<4>(tile + i, channel + (inside ? offset : 0), 4);]==]
  TEACHES "read_bytes is the padding: with all bytes read, the channel's first pixels stand there")

planted_bug(first_tile_not_shifted
  RUNG cuda_optimized/conv2d/direct/row_tile
  WITH cuda_optimized/conv2d/direct/cp_async.cu,cuda_optimized/conv2d/direct/tiled.cu
  FIND [==[* tile_q - shift;]==]
  REPLACE [==[* tile_q;]==]
  TEACHES "the copies of 16 bytes begin at aligned columns: whose first is asked for must be one")

planted_bug(window_rows_not_moved_up
  RUNG cuda_optimized/conv2d/direct/row_tile
  WITH cuda_optimized/conv2d/direct/cp_async.cu,cuda_optimized/conv2d/direct/tiled.cu
  FIND [==[values[j][i] = values[j + 1][i];]==]
  REPLACE [==[values[j][i] = values[j][i];]==]
  TEACHES "what a row of pixels leaves in registers for the one above must move there")

planted_bug(pass_read_too_early
  RUNG cuda_optimized/conv2d/direct/row_tile
  WITH cuda_optimized/conv2d/direct/cp_async.cu,cuda_optimized/conv2d/direct/tiled.cu
  FIND [==[__syncwarp();  // between these writes and the reads below]==]
  REPLACE [==[]==]
  TEACHES "lanes of a warp need not run together")

planted_bug(planes_of_columns_mixed_up
  RUNG cuda_optimized/conv2d/direct/deinterleaved
  WITH cuda_optimized/conv2d/direct/row_tile.cu,cuda_optimized/conv2d/direct/cp_async.cu,cuda_optimized/conv2d/direct/tiled.cu
  FIND [==[u % kStride * T::kPlane + u / kStride;]==]
  REPLACE [==[u;]==]
  TEACHES "who writes and who reads must agree on the layout")

planted_bug(odd_plane_one_pixel_late
  RUNG cuda_optimized/conv2d/direct/deinterleaved
  WITH cuda_optimized/conv2d/direct/row_tile.cu,cuda_optimized/conv2d/direct/cp_async.cu,cuda_optimized/conv2d/direct/tiled.cu
  FIND [==[values[j][s % kStride][e + s / kStride]]==]
  REPLACE [==[values[j][s % kStride][e + (s + 1) / kStride]]==]
  TEACHES "tap s of an odd plane is pixel s / 2, rounded down: filters must be larger than the stride")

planted_bug(phase_of_a_copy_forgotten
  RUNG cuda_optimized/conv2d/depthwise/nchw
  FIND [==[const float* in = in_room + flat_phase(from);]==]
  REPLACE [==[const float* in = in_room;]==]
  TEACHES "planes begin anywhere: the first one's alignment says nothing about the second's")

planted_bug(filters_read_before_they_are_turned
  RUNG cuda_optimized/conv2d/depthwise/nhwc
  FIND [==[__syncthreads();  // between the filters' writes, by all threads, and the reads below]==]
  REPLACE [==[]==]
  TEACHES "who turns a matrix in shared memory reads what others wrote")

planted_bug(second_row_below_the_image
  RUNG cuda_optimized/conv2d/depthwise/nhwc
  FIND [==[if (tile.row + j >= conv.P) continue;]==]
  REPLACE [==[]==]
  TEACHES "an odd number of rows leaves half of a pair")

planted_bug(copies_of_others_not_waited_for
  RUNG cuda_optimized/conv2d/depthwise/nhwc_tiled
  FIND [==[__syncthreads();  // between all copies, by all threads, and the reads below]==]
  REPLACE [==[]==]
  TEACHES "a thread waits for its own copies: that the others' have landed, a barrier says")

planted_bug(rows_above_the_image
  RUNG cuda_optimized/conv2d/depthwise/nhwc_tiled
  FILE cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh
  FIND [==[row >= begin && row < end ? 16 : 0]==]
  REPLACE [==[row < end ? 16 : 0]==]
  TEACHES "above the first image nothing is allocated, and above the others lies an image")

planted_bug(patch_reaches_beyond_the_row
  RUNG cuda_optimized/conv2d/depthwise/nhwc_tiled
  FILE cuda_optimized/conv2d/shared/depthwise/nhwc_tiles.cuh
  FIND [==[if (left >= kColumns) {]==]
  REPLACE [==[if (left >= kColumns - 1) {]==]
  TEACHES "behind the last pixel of a row lies the first one of the next: rows of 13 show it, rows of 14 do not")

planted_bug(band_reaches_beyond_its_vector
  RUNG cuda_optimized/conv2d/depthwise/nchw
  FILE cuda_optimized/conv2d/shared/depthwise/flat_copy.cuh
  FIND [==[if (first + e >= 0 && first + e < count) global[first + e] = shared[4 * v + e];]==]
  REPLACE [==[global[first + e] = shared[4 * v + e];]==]
  TEACHES "the ends of a piece belong to its neighbours")

planted_bug(weights_of_the_channel_before
  RUNG cuda_optimized/conv2d/direct/double_buffered
  FIND [==[float* filter_room = filter_rooms + buffer * filter_floats;]==]
  REPLACE [==[float* filter_room = filter_rooms;]==]
  TEACHES "what travels with a tile needs two places too")

planted_bug(tap_pitch_of_the_filters
  RUNG cuda_optimized/conv2d/direct/float4
  FILE cuda_optimized/conv2d/shared/direct/register_tile.cuh
  FIND [==[return i / kFilters * kTapPitch<kFilters> + i % kFilters; }]==]
  REPLACE [==[return i; }]==]
  TEACHES "6 filters lie 8 floats apart, 8 filters do as well: only the first shows who forgot it")

planted_bug(window_refilled_too_early
  RUNG cuda_optimized/conv2d/direct/register_window
  FIND [==[        for (int i = 0; i < kWindow; ++i) {
]==]
  REPLACE [==[        for (int i = 0; i < kWindow; ++i) {
          load_row(i);
]==]
  TEACHES "a register is free after its last product, not before: the next channel's row is another")

planted_bug(weights_replaced_too_early
  RUNG cuda_optimized/conv2d/winograd/split_rows
  FIND [==[      __syncthreads();  // between the reads of the weights before and these writes]==]
  REPLACE [==[]==]
  TEACHES "only more channels than are transformed together show it")

planted_bug(tap_of_the_next_row
  RUNG cuda_optimized/conv2d/winograd/split_rows
  FILE cuda_optimized/conv2d/shared/winograd/winograd_three.cuh
  FIND [==[there && s0 + s < conv.S ? from[s]]==]
  REPLACE [==[there ? from[s]]==]
  TEACHES "a last piece of two taps has a zero for the third: the next row's first stands there")

planted_bug(next_tile_looked_at_too_late
  RUNG cuda_optimized/conv2d/direct/register_window
  FIND [==[look_at(tile + static_cast<int>(gridDim.x));]==]
  REPLACE [==[look_at(tile);]==]
  TEACHES "only a block that takes several tiles shows it: the tests lower the number of blocks")

planted_bug(channel_and_tap_exchanged
  RUNG cuda_naive/conv2d/implicit_gemm
  FIND [==[const int c = k / conv.S / conv.R, r = k / conv.S % conv.R, s = k % conv.S;]==]
  REPLACE [==[const int c = k % (depth / conv.R / conv.S), r = k / (depth / conv.R / conv.S) / conv.S, s = k / (depth / conv.R / conv.S) % conv.S;]==]
  TEACHES "the steps along k may have any order, but weights and columns must have the same one")

planted_bug(columns_used_before_all_are_gathered
  RUNG cuda_optimized/conv2d/implicit_gemm/tiled
  FIND [==[__syncthreads();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "a missing barrier: the thread order shows it without a GPU")

planted_bug(last_filters_of_a_tile_unguarded
  RUNG cuda_optimized/conv2d/implicit_gemm/register_tile
  FIND [==[if (m >= filters) break;]==]
  REPLACE [==[]==]
  TEACHES "a tile that reaches behind the last filter of a group writes the next group's outputs")

planted_bug(column_bits_on_top_of_row_bits
  RUNG cuda_optimized/conv2d/implicit_gemm/precomputed_offsets
  FIND [==[missing &= ~(std::uint64_t{1} << (conv.R + s));]==]
  REPLACE [==[missing &= ~(std::uint64_t{1} << (conv.R + s - 1));]==]
  TEACHES "two masks in one word: where they overlap, padding is read")

planted_bug(taps_behind_the_last_one_gathered
  RUNG cuda_optimized/conv2d/implicit_gemm/precomputed_offsets
  FIND [==[table[k] = {0, ~std::uint64_t{0}};]==]
  REPLACE [==[table[k] = {0, 0};]==]
  TEACHES "their weights are zero, so the sums are right: but in the padding they read what is not x")

planted_bug(packed_rows_without_their_padding
  RUNG cuda_optimized/conv2d/implicit_gemm/packed_weights
  FIND [==[* product.padded_m + i % T::kTileM];]==]
  REPLACE [==[* sizes.filters + i % T::kTileM];]==]
  TEACHES "rows of packed weights are as long as whole tiles: right where the filters fill these")

planted_bug(four_pixels_of_two_images
  RUNG cuda_optimized/conv2d/implicit_gemm/vectorized
  FIND [==[sizes.image_pixels % 4 == 0 && reinterpret_cast]==]
  REPLACE [==[reinterpret_cast]==]
  TEACHES "where the pixels of an image are no multiple of four, a vector begins at any address, and ends in the next image")

planted_bug(sums_of_all_groups_in_the_first
  RUNG cuda_optimized/conv2d/implicit_gemm/warp_tiles
  FIND [==[place{block.filter, block.pixel, block.group, 0};]==]
  REPLACE [==[place{block.filter, block.pixel, 0, 0};]==]
  TEACHES "right without groups: where sums are stored is another place to forget them")

planted_bug(sums_of_a_warp_read_before_they_are_there
  RUNG cuda_optimized/conv2d/implicit_gemm/warp_tiles
  FILE cuda_optimized/gemm/shared/thread_tile.cuh
  FIND [==[__syncwarp();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "a warp is not in step of itself: what lanes exchange needs a barrier of the warp")

planted_bug(tile_rows_taken_for_channels
  RUNG cuda_optimized/conv2d/implicit_gemm/cp_async
  FIND [==[place{at.n * T::kBlockM, at.m * T::kBlockN,]==]
  REPLACE [==[place{at.n * T::kBlockM, at.n * T::kBlockN,]==]
  TEACHES "a convolution as a product: a map's rows are pixels, its columns are channels")

planted_bug(part_of_the_next_split
  RUNG cuda_optimized/conv2d/implicit_gemm/split_k
  FIND [==[for (int split = 0; split < splits; ++split) sum += parts[split * count + i];]==]
  REPLACE [==[for (int split = 0; split < splits - 1; ++split) sum += parts[split * count + i];]==]
  TEACHES "a split that is not added is missed only where there are splits")

planted_bug(window_forgets_rows_of_taps
  RUNG cuda_optimized/conv2d/implicit_gemm/mma
  FILE cuda_optimized/conv2d/shared/implicit_gemm/mma_halves.cuh
  FIND [==[needed = 1u << at_.r | 1u << (product_.R + at_.s);]==]
  REPLACE [==[needed = 1u << (product_.R + at_.s);]==]
  TEACHES "above an image lies the last row of the image before: no fault, a wrong number")

planted_bug(walk_stops_at_the_end_of_a_row_of_taps
  RUNG cuda_optimized/conv2d/implicit_gemm/mma
  FILE cuda_optimized/conv2d/shared/implicit_gemm/mma_halves.cuh
  FIND [==[      s = 0;
      ++r;]==]
  REPLACE [==[      s = 0;]==]
  TEACHES "an index that is advanced and not divided must carry into all of its digits")

planted_bug(fragments_of_a_tile_without_swizzle
  RUNG cuda_optimized/conv2d/implicit_gemm/mma
  FIND [==[place_along_k(lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * kVector);]==]
  REPLACE [==[(lane % 8 + lane / 16 * 8) * kHalfDepth + k + lane / 8 % 2 * kVector;]==]
  TEACHES "what is permuted when it is stored must be permuted when it is loaded")

planted_bug(relu_of_each_split
  RUNG cuda_optimized/conv2d/implicit_gemm/mma
  FIND [==[if (parts != nullptr) product.activation = Activation::none;]==]
  REPLACE [==[]==]
  TEACHES "relu(a) + relu(b) is not relu(a + b): only the whole sum is activated")

planted_bug(bounding_box_one_pixel_short
  RUNG cuda_optimized/conv2d/implicit_gemm/tma_im2col
  FILE cuda_optimized/conv2d/shared/implicit_gemm/tma_windows.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[upper(std::int64_t{outputs - 1} * stride + 1 - pad - size)]==]
  REPLACE [==[upper(std::int64_t{outputs - 1} * stride - pad - size)]==]
  TEACHES "an im2col bounding box ends one pixel beyond the one at which the last window begins: otherwise each row is a window short")

planted_bug(taps_counted_without_dilation
  RUNG cuda_optimized/conv2d/implicit_gemm/tma_im2col
  WITH core/cuda/tensor_map.cu
  FIND [==[static_cast<unsigned short>(next.s * conv.dilation.w)]==]
  REPLACE [==[static_cast<unsigned short>(next.s)]==]
  TEACHES "the offsets of an im2col load count pixels of x, not taps")

planted_bug(sums_read_before_the_last_products
  RUNG cuda_optimized/conv2d/implicit_gemm/wgmma
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::wgmma_wait_group<0>();]==]
  REPLACE [==[]==]
  TEACHES "wgmma is asynchronous: its accumulators may be read after a wait for all groups only")

planted_bug(second_warpgroup_begins_in_the_middle
  RUNG cuda_optimized/conv2d/implicit_gemm/wgmma
  WITH core/cuda/tensor_map.cu
  FIND [==[stage + warp / 4 * 64 * kHalfStep * 2);]==]
  REPLACE [==[stage + warp / 4 * 64 * kHalfStep);]==]
  TEACHES "a descriptor holds a byte address: the rows of the second warpgroup begin 128 bytes a pixel further")

planted_bug(last_filter_row_taken_for_padding
  RUNG cuda_optimized/conv2d/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d/shared/implicit_gemm/gathered_gemm.cuh
  FIND [==[1 + (step > 0 ? floor_div(product.H - 1 - top, step)]==]
  REPLACE [==[0 + (step > 0 ? floor_div(product.H - 1 - top, step)]==]
  TEACHES "a shortcut past the padding must not cut off a row")

planted_bug(window_forgets_columns_of_taps
  RUNG cuda_optimized/conv2d/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d/shared/implicit_gemm/gathered_copies.cuh
  FIND [==[1u << tap.r | 1u << (product_.R + tap.s)]==]
  REPLACE [==[1u << tap.r]==]
  TEACHES "left of a row lies the end of the row before: no fault, a wrong number")

planted_bug(weights_left_as_they_are
  RUNG cuda_optimized/conv2d/implicit_gemm/mma_tf32
  FIND [==[out[i] = __uint_as_float(ptx::to_tf32(in[i]));]==]
  REPLACE [==[out[i] = in[i];]==]
  TEACHES "rounded once, or never: integers do not tell")

planted_bug(share_of_a_sum_to_its_end
  RUNG cuda_optimized/conv2d/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d/shared/implicit_gemm/gathered_plan.cuh
  FIND [==[return {begin, min(begin + share, depth.end)};]==]
  REPLACE [==[return {begin, depth.end};]==]
  TEACHES "parts of a sum must not overlap")

planted_bug(patch_rounded_before_it_has_landed
  RUNG cuda_optimized/conv2d/direct/mma_tf32
  FIND [==[ptx::cp_async_wait_group<0>();
      if (tiling.width == 4) {]==]
  REPLACE [==[ptx::cp_async_wait_group<1>();
      if (tiling.width == 4) {]==]
  TEACHES "the first patch comes with the weights: only a block's second tile shows it")

planted_bug(next_patch_over_the_one_in_use
  RUNG cuda_optimized/conv2d/direct/mma_tf32
  FIND [==[ask_for(tile + blocks, 1 - buffer);]==]
  REPLACE [==[ask_for(tile + blocks, buffer);]==]
  TEACHES "two patches are of use only if the copies go to the other one")

planted_bug(patch_left_unrounded
  RUNG cuda_optimized/conv2d/direct/mma_tf32
  FILE cuda_optimized/conv2d/shared/direct_mma/halo_copy.cuh
  FIND [==[line[j] = __uint_as_float(ptx::to_tf32(line[j]));]==]
  REPLACE [==[line[j] += 0.0f;]==]
  TEACHES "mma.sync truncates; sums of positive products come out too small")

planted_bug(taps_in_the_order_of_k
  RUNG cuda_optimized/conv2d/direct/mma_tf32
  FILE cuda_optimized/conv2d/shared/direct_mma/halo_copy.cuh
  FIND [==[taps[k / 8 * 8 + k % 4 * 2 + k % 8 / 4]]==]
  REPLACE [==[taps[k]]==]
  TEACHES "a lane's two steps of k are four apart, not neighbours")

planted_bug(draft_read_before_it_is_written
  RUNG cuda_optimized/conv2d/direct/mma_tf32
  FILE cuda_optimized/conv2d/shared/direct_mma/accumulators.cuh
  FIND [==[__syncwarp();  // separates these stores from the loads below]==]
  REPLACE [==[]==]
  TEACHES "lanes of a warp need a barrier as well")

planted_bug(windows_of_odd_columns_multiplied_as_even_ones
  RUNG cuda_optimized/conv2d/direct/mma
  FIND [==[weights[((set * tiling.steps + step)]==]
  REPLACE [==[weights[((0 * tiling.steps + step)]==]
  TEACHES "where a word begins a column before the window, the weights must, too")

planted_bug(winograd_sign
  RUNG cuda_naive/conv2d/winograd_2x2
  WITH cuda_naive/gemm/direct_batched.cu
  FIND [==[d[3 * apart] = d3 - d1;]==]
  REPLACE [==[d[3 * apart] = d1 - d3;]==]
  TEACHES "a sign of a transform is in a quarter of the products: exact data tell")

planted_bug(winograd_tile_stored_whole
  RUNG cuda_optimized/conv2d/winograd/4x4
  FIND [==[if (place.q + j < conv.Q) to[j]]==]
  REPLACE [==[if (place.q < conv.Q) to[j]]==]
  TEACHES "a tile of 4 x 4 ends inside of y somewhere, and the next row begins there")

planted_bug(winograd_channels_beyond_the_group
  RUNG cuda_optimized/conv2d/winograd/fused
  FIND [==[const bool inside = left_ > 0 && (inside_]==]
  REPLACE [==[const bool inside = left_ > -kChannels && (inside_]==]
  TEACHES "the weights' zeros hide what is read beyond a group, unless it is NaN or not there")

planted_bug(winograd_weights_for_one_product
  RUNG cuda_optimized/conv2d/winograd/3xtf32
  FILE cuda_optimized/conv2d/shared/winograd/winograd_weights.cuh
  WITH cuda_optimized/conv2d/winograd/4x4.cu,cuda_optimized/gemm/tf32/wgmma_3xtf32.cu,core/cuda/tensor_map.cu
  FIND [==[to[f * groups * rows * columns] = number; });]==]
  REPLACE [==[to[f * groups * rows * columns] = __uint_as_float(__float_as_uint(number) & 0xffffe000u); });]==]
  TEACHES "what is cut to TF32 before it is split in two leaves the second part 0: whole numbers do not tell, they are TF32's own")

planted_bug(short_sums
  RUNG cuda_naive/conv2d/direct_16bit
  FIND [==[sum += to_float(value) * to_float(weight);]==]
  REPLACE [==[sum = to_float(rounded_to<T>(sum + to_float(value) * to_float(weight)));]==]
  TEACHES "numbers of 16 bits cannot hold their own sums: add in float, and round once")

planted_bug(turns_without_a_word
  RUNG cuda_optimized/conv2d/hopper/swap_ab
  WITH core/cuda/tensor_map.cu
  FIND [==[if (before > 0) ptx::mbarrier_wait(&multiplied[1 - consumer], (before - 1) / 2 & 1);]==]
  REPLACE [==[]==]
  TEACHES "a wait for a phase tells even phases from odd ones: who comes two rounds early goes on")

planted_bug(patch_given_back_before_its_last_tap
  RUNG cuda_optimized/conv2d/implicit_gemm/halo_tile
  WITH core/cuda/tensor_map.cu
  FIND [==[read_patch = r == windows.R - 1 && s == windows.S - 1 ? patch.slot : -1;]==]
  REPLACE [==[read_patch = r == windows.R - 1 && s == 0 ? patch.slot : -1;]==]
  TEACHES "a patch serves all taps: who gives it back after a row's first one shares it with the next patch")

planted_bug(padding_shared_once_too_often
  RUNG cuda_optimized/conv2d/implicit_gemm/halo_tile
  FILE cuda_optimized/conv2d/shared/halo/halo_plan.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[touched + first, std::int64_t{windows.Q}})]==]
  REPLACE [==[touched + 2 * first, std::int64_t{windows.Q}})]==]
  TEACHES "rows that share their padding need as much of it as the larger side has")

planted_bug(rows_of_one_image_alone
  RUNG cuda_optimized/conv2d/implicit_gemm/halo_tile
  FILE cuda_optimized/conv2d/shared/halo/halo_plan.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[HOST_DEVICE int line() const { return row * images; }]==]
  REPLACE [==[HOST_DEVICE int line() const { return row; }]==]
  TEACHES "images' rows take turns in a patch: an image's next row lies behind one row of each")

planted_bug(sums_into_own_shared_memory
  RUNG cuda_optimized/conv2d/hopper/cluster_split_k
  WITH core/cuda/tensor_map.cu
  FIND [==[const unsigned to = ptx::mapa(received + threadIdx.x, 1 - kKept);]==]
  REPLACE [==[const unsigned to = ptx::mapa(received + threadIdx.x, kKept);]==]
  TEACHES "an address of shared memory is the block's own until `mapa` says whose")

planted_bug(columns_of_taps_from_one_patch
  RUNG cuda_optimized/conv2d/hopper/full_tiles
  FILE cuda_optimized/conv2d/shared/halo/halo_stages.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[.w = tile.q + work.first.w + part * windows.dilation.w,]==]
  REPLACE [==[.w = tile.q + work.first.w + 0 * windows.dilation.w,]==]
  TEACHES "where two images' columns lie side by side, the next tap across is no address: it needs a patch of its own")

planted_bug(both_warpgroups_the_first_filters
  RUNG cuda_optimized/conv2d/hopper/full_tiles
  WITH core/cuda/tensor_map.cu
  FIND [==[block_of(filters_of(item), consumer);]==]
  REPLACE [==[block_of(filters_of(item), 0);]==]
  TEACHES "who shares pixels has filters of its own, and stores those")

planted_bug(slots_given_back_by_the_first_reader
  RUNG cuda_optimized/conv2d/hopper/full_tiles
  FILE cuda_optimized/conv2d/shared/halo/halo_stages.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[ptx::mbarrier_init(&barriers.empty_tap[i], 4 * kReaders);]==]
  REPLACE [==[ptx::mbarrier_init(&barriers.empty_tap[i], 4);]==]
  TEACHES "what two warpgroups read is empty when both have read it")

planted_bug(half_of_the_bytes_expected
  RUNG cuda_optimized/conv2d/hopper/cluster_split_k
  WITH core/cuda/tensor_map.cu
  FIND [==[    ptx::mbarrier_arrive_expect_tx(&sums_arrived, kPairBytes);]==]
  REPLACE [==[    ptx::mbarrier_arrive_expect_tx(&sums_arrived, kPairBytes / 2);]==]
  TEACHES "a barrier that expects fewer bytes than come lets its waiters go on too early")

planted_bug(weights_of_the_first_filters
  RUNG cuda_optimized/conv2d/hopper/weight_stationary
  FILE cuda_optimized/conv2d/shared/halo/filter_stages.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[(accumulators, weights_at(i, chunk), columns);]==]
  REPLACE [==[(accumulators, weights_at(0, chunk), columns);]==]
  TEACHES "tiles of filters share the pixels, and each has weights of its own")

planted_bug(nothing_behind_the_box
  RUNG cuda_optimized/conv2d/hopper/halo_tile_tf32
  FILE cuda_optimized/conv2d/shared/halo/halo_operands.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[*reinterpret_cast<uint4*>(patch + plan.tiles.bytes() + i % zeros * 16) = {};]==]
  REPLACE [==[*reinterpret_cast<uint4*>(patch + plan.tiles.bytes() + i % zeros * 0) = {};]==]
  TEACHES "the last row's padding is the beginning of a row that nobody brings")

planted_bug(spectrum_not_conjugated
  RUNG cpu_reference/conv2d/fft_whole_image
  FIND [==[Point{image[f].re, -image[f].im} * filter[f]]==]
  REPLACE [==[image[f] * filter[f]]==]
  TEACHES "products of spectra convolve: without a conjugate, the image is read backwards")

planted_bug(what_wraps_around_is_kept
  RUNG cpu_reference/conv2d/fft_whole_image
  FIND [==[const std::int64_t seen = outputs + std::int64_t{taps - 1} * dilation;]==]
  REPLACE [==[const std::int64_t seen = outputs + 0 * (taps + dilation);]==]
  TEACHES "a transform's line is a circle: with too few points, its end is added to the first outputs")

planted_bug(rounding_where_nothing_is
  RUNG cpu_reference/conv2d/fft_whole_image
  FIND [==[std::abs(found) <= error ? 0.0f : static_cast<float>(found)]==]
  REPLACE [==[static_cast<float>(found + 0 * error)]==]
  TEACHES "a spectrum does not know which outputs are sums of nothing: they must be 0, and not 1e-15")

planted_bug(tiles_do_not_overlap
  RUNG cpu_reference/conv2d/fft_overlap_save
  FIND [==[const std::int64_t columns = t - std::int64_t{conv.S - 1} * conv.dilation.w;]==]
  REPLACE [==[const std::int64_t columns = t;]==]
  TEACHES "of a tile, only what does not wrap around is right; images narrower than a tile do not show it")

planted_bug(second_tile_of_a_pair_negated
  RUNG cpu_reference/conv2d/fft_real
  FIND [==[return -sum[i].im;]==]
  REPLACE [==[return sum[i].im;]==]
  TEACHES "an image of one tile has no pair: some must have more")

planted_bug(second_tile_of_two_negated
  RUNG cuda_optimized/conv2d/fft/fused
  FIND [==[others[i] = -v[i].im;]==]
  REPLACE [==[others[i] = v[i].im;]==]
  TEACHES "what comes back is the conjugate of both tiles: the second one's sign")

planted_bug(columns_over_rows_that_are_still_read
  RUNG cuda_optimized/conv2d/fft/fused
  FIND [==[if (k0 > 0) __syncthreads();]==]
  REPLACE [==[]==]
  TEACHES "a warp that stores no rows is early for the next filter, whose columns lie where others read")

planted_bug(points_exchanged_without_a_word
  RUNG cuda_optimized/conv2d/fft/fused
  FILE cuda_optimized/conv2d/shared/fft/fourier_tile.cuh
  FIND [==[__syncwarp();  // separates these stores of the line's threads from the loads below]==]
  REPLACE [==[]==]
  TEACHES "threads of a warp that exchange through shared memory wait for each other, too")

planted_bug(two_real_numbers_as_a_complex_one
  RUNG cuda_optimized/conv2d/fft/3xtf32
  WITH core/cuda/tensor_map.cu
  FIND [==[const bool two_reals = Tile::is_pair(tile.pair * Tile::kSide + f);]==]
  REPLACE [==[const bool two_reals = false;]==]
  TEACHES "frequencies that are their own conjugates are real, and two of them share a place: no product is of both")

planted_bug(sign_of_gauss
  RUNG cuda_optimized/conv2d/fft/3xtf32
  WITH core/cuda/tensor_map.cu
  FIND [==[two_reals ? 0.0f : -im - re;]==]
  REPLACE [==[two_reals ? 0.0f : re - im;]==]
  TEACHES "what Gauss's k1 has too much, k2 takes away: with the wrong sign, imaginary parts are wrong where real parts are not")

planted_bug(two_columns_in_one
  RUNG cuda_optimized/conv2d/fft/3xtf32
  FILE cuda_optimized/conv2d/shared/fft/real_tile.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[if (pair == 0) pull_apart(v);]==]
  REPLACE [==[]==]
  TEACHES "frequencies 0 and 8 of real rows are real: two columns, which must be told apart before they are multiplied")

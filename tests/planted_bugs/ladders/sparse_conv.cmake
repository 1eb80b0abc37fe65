planted_bug(sums_onto_old_rows
  RUNG cuda_naive/sparse_conv/scatter
  FIND [==[launch_fill_rows(conv.M, conv.Cout, arrays.bias, y);]==]
  REPLACE [==[]==]
  TEACHES "what adds needs a zero, or the bias, to start from")

planted_bug(missing_row_read_as_the_first
  RUNG cuda_optimized/sparse_conv/output_stationary
  FIND [==[if (met < 0) continue;  // most taps of most rows have no input
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
  FILE cuda_optimized/sparse_conv/shared/row_tiles.cuh
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

planted_bug(rows_multiplied_before_they_landed
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FIND [==[ptx::cp_async_wait_group<kAhead - 1>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kAhead>();]==]
  TEACHES "two rings, indices and rows: one group too few is waited for, and both are too late")

planted_bug(missing_row_gathered_as_any_other
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/shared/gathered_tiles.cuh
  FIND [==[from + at, index < 0 ? 0 : left);]==]
  REPLACE [==[from + at, left);]==]
  TEACHES "-1 is no row: what cp.async is not told to leave out, it reads")

planted_bug(pieces_stored_unpermuted
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/shared/gathered_tiles.cuh
  FIND [==[char* const a = stage + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;]==]
  REPLACE [==[char* const a = stage + row * Shape::kRowBytes + piece * kPiece;]==]
  TEACHES "who stores and who loads must permute the pieces of a row alike")

planted_bug(taps_of_the_first_row_only
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/shared/gathered_tiles.cuh
  FIND [==[bits |= __shfl_xor_sync(0xFFFFFFFF, bits, distance);]==]
  REPLACE [==[bits |= __shfl_xor_sync(0xFFFFFFFF, bits, 0 * distance);]==]
  TEACHES "a tile needs the taps of all its rows, also where sorting has made them alike")

planted_bug(products_not_waited_for
  RUNG cuda_optimized/sparse_conv/implicit_gemm_wgmma
  FIND [==[ptx::wgmma_wait_group<0>();]==]
  REPLACE [==[]==]
  TEACHES "sums are there after the wait, and not before, and rows may be overwritten only then")

planted_bug(weights_stored_unpermuted
  RUNG cuda_optimized/sparse_conv/implicit_gemm_wgmma
  FIND [==[char* const b = stage + row * Shape::kRowBytes + (piece ^ permutation<kPieces>(row)) * kPiece;]==]
  REPLACE [==[char* const b = stage + row * Shape::kRowBytes + piece * kPiece;]==]
  TEACHES "wgmma undoes the 128-byte permutation, whether anybody has done it or not")

planted_bug(arrival_before_the_copies
  RUNG cuda_optimized/sparse_conv/implicit_gemm_warp_specialized
  FIND [==[ptx::cp_async_mbarrier_arrive_noinc(full);]==]
  REPLACE [==[ptx::mbarrier_arrive(full);]==]
  TEACHES "a thread that has asked for copies has not got them: they must arrive, not it")

planted_bug(stage_given_back_while_it_is_read
  RUNG cuda_optimized/sparse_conv/implicit_gemm_warp_specialized
  FIND [==[ptx::wgmma_wait_group<1>();]==]
  REPLACE [==[ptx::wgmma_wait_group<2>();]==]
  TEACHES "products that have been issued are not done: the stage before is still being read")

planted_bug(last_taps_left_out
  RUNG cuda_optimized/sparse_conv/implicit_gemm_warp_specialized
  FILE cuda_optimized/sparse_conv/shared/stage_ring.cuh
  FIND [==[if (t == 0) group.exists = exists;]==]
  REPLACE [==[if (t == Shape::kTaps - 1) group.exists = exists;]==]
  TEACHES "a list of taps seldom fills its last stage, and has to be multiplied to its end")

planted_bug(tile_handed_out_to_nobody
  RUNG cuda_optimized/sparse_conv/implicit_gemm_warp_specialized
  FIND [==[if (thread_of_grid() == 0) *p.handed_out = 0;]==]
  REPLACE [==[if (thread_of_grid() == 0) *p.handed_out = 1;]==]
  TEACHES "a counter that begins with one leaves out a tile, which only a machine with few blocks asks for")

planted_bug(keys_read_before_they_are_there
  RUNG cuda_optimized/sparse_conv/implicit_gemm_fused_sort
  FILE cuda_optimized/sparse_conv/shared/segment_order.cuh
  FIND [==[__syncthreads();
        }]==]
  REPLACE [==[}]==]
  TEACHES "keys of other warps pass through shared memory: a sort that reads old ones loses rows")

planted_bug(segment_sorted_into_the_first
  RUNG cuda_optimized/sparse_conv/implicit_gemm_fused_sort
  FILE cuda_optimized/sparse_conv/shared/segment_order.cuh
  FIND [==[of.order[first + place] = first + SegmentMasks::place_of(key[j]);]==]
  REPLACE [==[of.order[first + place] = SegmentMasks::place_of(key[j]);]==]
  TEACHES "a place in a segment is a row only in the first one: problems need more rows than a segment has")

planted_bug(rows_that_are_not_there_come_first
  RUNG cuda_optimized/sparse_conv/implicit_gemm_fused_sort
  FILE cuda_optimized/sparse_conv/shared/segment_order.cuh
  FIND [==[key[j] = SegmentMasks::kNone;]==]
  REPLACE [==[key[j] = 0;]==]
  TEACHES "a network sorts a power of two: what fills it up must end behind the last row")

planted_bug(gathered_weights_cut_off
  RUNG cuda_optimized/sparse_conv/implicit_gemm_mma
  FILE cuda_optimized/sparse_conv/shared/warp_accumulators.cuh
  FIND [==[const std::uint32_t right[2] = {ptx::to_tf32(b0), ptx::to_tf32(b1)};]==]
  REPLACE [==[const std::uint32_t right[2] = {__float_as_uint(b0), __float_as_uint(b1)};]==]
  TEACHES "sparse or dense, mma.sync truncates what nobody has rounded")

planted_bug(taps_of_one_row
  RUNG cuda_optimized/sparse_conv/implicit_gemm
  FIND [==[bits |= __shfl_xor_sync(~0u, bits, apart);]==]
  REPLACE [==[bits = __shfl_xor_sync(~0u, bits, apart);]==]
  TEACHES "a tile does what any of its rows needs")

planted_bug(second_half_first
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FIND [==[half_of(conv, arrays, half)]==]
  REPLACE [==[half_of(conv, arrays, 1 - half)]==]
  TEACHES "who adds must come second: y starts as NaN")

planted_bug(gathered_rows_not_waited_for
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "one group too many may be on its way")

planted_bug(inputs_of_other_lanes_not_waited_for
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FIND [==[__syncwarp();  // makes the inputs that]==]
  REPLACE [==[// the inputs that]==]
  TEACHES "a wait tells of this thread's copies: before the loop, no barrier tells of its neighbours'")

planted_bug(warps_skip_what_the_first_skips
  RUNG cuda_optimized/sparse_conv/implicit_gemm_cp_async
  FILE cuda_optimized/sparse_conv/shared/async_copies.cuh
  FIND [==[>> lane_ & 1) << w;]==]
  REPLACE [==[>> lane_ & 1);]==]
  TEACHES "every warp has taps of its own")

planted_bug(second_tap_with_the_rows_of_the_first
  RUNG cuda_optimized/sparse_conv/implicit_gemm_direct_fragments
  FIND [==[(takes_second ? Shape::kLanesOfTap : 0);]==]
  REPLACE [==[0 * static_cast<int>(takes_second);]==]
  TEACHES "lanes of one product may belong to two taps: each must ask who looked up its own")

planted_bug(weights_read_before_they_landed
  RUNG cuda_optimized/sparse_conv/implicit_gemm_direct_fragments
  FIND [==[ptx::cp_async_wait_group<0>();]==]
  REPLACE [==[]==]
  TEACHES "a barrier tells that all have asked for their copies, not that these are there")

planted_bug(channels_called_as_documented
  RUNG cuda_optimized/sparse_conv/implicit_gemm_direct_fragments
  FIND [==[lane_pointed_to * kOfLane % Shape::kDepth + lane / 8 % 2 * 2 + lane % 2]==]
  REPLACE [==[lane % 8 + lane / 8 % 2 * 8]==]
  TEACHES "who loads neighbours into a lane has given k another order, and the weights must follow")

planted_bug(weights_not_transposed
  RUNG cuda_optimized/sparse_dgrad/output_stationary
  WITH cuda_optimized/sparse_conv/output_stationary.cu
  FIND [==[transposed[to] = weights[(k * Cin + ci) * Cout + co];]==]
  REPLACE [==[transposed[to] = weights[to];]==]
  TEACHES "with as many input as output channels the shapes fit all the same")

planted_bug(second_half_overwrites_the_first
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm
  FIND [==[Half{middle, gemm.KV, gemm.orders + gemm.rows, true}]==]
  REPLACE [==[Half{middle, gemm.KV, gemm.orders + gemm.rows, false}]==]
  TEACHES "with one tap there is no second half, and with one half nothing is missing")

planted_bug(group_asks_half_of_its_rows
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm
  FILE cuda_optimized/sparse_dgrad/shared/tile_taps.cuh
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
  FILE cuda_optimized/sparse_dgrad/shared/mma_rows.cuh
  FIND [==[a_tile + R::at(m0 + 16 * i + lane % 16, piece + lane / 16)]==]
  REPLACE [==[a_tile + (m0 + 16 * i + lane % 16) * R::kStep + (piece + lane / 16) * R::kNumbers]==]
  TEACHES "what is stored in another place must be loaded from there")

planted_bug(weights_turned_round_that_lie_right
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm_warp_specialized
  FIND [==[p.weights[(tap * p.channels + c) * p.summed + s]]==]
  REPLACE [==[p.weights[(tap * p.summed + s) * p.channels + c]]==]
  TEACHES "with one channel, or symmetric weights, a matrix is its own transpose; else it is not")

planted_bug(order_in_the_room_of_the_other_rows
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm_fused_sort
  FIND [==[ordered_workspace_at(conv.N, context.workspace_as<std::byte>());]==]
  REPLACE [==[ordered_workspace_at(conv.M, context.workspace_as<std::byte>());]==]
  TEACHES "dx has a row for each input, and the order as many; outputs may be fewer")

planted_bug(turned_weights_at_their_old_taps
  RUNG cuda_optimized/sparse_dgrad/implicit_gemm_cp_async
  WITH cuda_optimized/sparse_conv/implicit_gemm_cp_async.cu
  FIND [==[mirrored(conv) ? conv.book.KV - 1 - k : k]==]
  REPLACE [==[k]==]
  TEACHES "right in all modes but subm, whose table is read from its other end")

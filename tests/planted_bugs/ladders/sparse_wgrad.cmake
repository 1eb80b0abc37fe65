planted_bug(last_chunk_as_long_as_the_others
  RUNG cuda_optimized/sparse_wgrad/output_stationary
  FIND [==[const int count = left < kChunk ? static_cast<int>(left) : kChunk;]==]
  REPLACE [==[const int count = kChunk; static_cast<void>(left);]==]
  TEACHES "pairs of the next tap, or memory behind the last pair, flow into the sum")

planted_bug(chunk_read_before_it_is_there
  RUNG cuda_optimized/sparse_wgrad/output_stationary
  FIND [==[__syncthreads();  // the chunk is complete before any thread reads it]==]
  REPLACE [==[]==]
  TEACHES "a missing barrier: the thread order shows it without a GPU")

planted_bug(dw_not_zeroed_before_atomics
  RUNG cuda_optimized/sparse_wgrad/split_k_atomics
  FIND [==[check(
      cudaMemsetAsync(dw, 0, static_cast<std::size_t>(weights) * sizeof(float), current_stream()));]==]
  REPLACE [==[static_cast<void>(weights);]==]
  TEACHES "what adds needs a zero to start from")

planted_bug(pairs_of_the_next_part
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FILE cuda_optimized/sparse_wgrad/shared/pair_parts.cuh
  FIND [==[rows_[j] = pair < left_ ? pair_[pair * kPairColumns] : -1;]==]
  REPLACE [==[rows_[j] = left_ > 0 ? pair_[pair * kPairColumns] : -1;]==]
  TEACHES "parts end where their tap ends, not at a whole step")

planted_bug(rows_of_pairs_not_waited_for
  RUNG cuda_optimized/sparse_wgrad/split_k
  FIND [==[ptx::cp_async_wait_group<kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<kStages - 1>();]==]
  TEACHES "on a GPU the copies have mostly landed anyway; here they land when waited for")

planted_bug(last_group_of_parts_not_added
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FILE cuda_optimized/sparse_wgrad/shared/sum_parts.cuh
  FIND [==[for (int part = group; part < count[slab]; part += groups)]==]
  REPLACE [==[for (int part = group; part < count[slab] - 1; part += groups)]==]
  TEACHES "the last part of a tap is shorter than the others, and counts all the same")

planted_bug(sum_over_lanes_without_the_taps_before
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FILE cuda_optimized/sparse_wgrad/shared/pair_parts.cuh
  FIND [==[index -= __shfl_sync(0xFFFFFFFF, sum, 31);]==]
  REPLACE [==[index -= __shfl_sync(0xFFFFFFFF, sum, 30);]==]
  TEACHES "a warp sees 32 taps at a time: kernels with more of them need the sum of all 32")

planted_bug(fragments_of_the_wrong_half
  RUNG cuda_optimized/sparse_wgrad/split_k_mma
  FIND [==[fragments[f + e / 2][e % 2] = four[e];]==]
  REPLACE [==[fragments[f + e % 2][e / 2] = four[e];]==]
  TEACHES "four matrices of a load: which of them are further pairs, and which further channels")

planted_bug(rows_of_64_bytes_permuted_as_longer_ones
  RUNG cuda_optimized/sparse_wgrad/split_k_wgmma
  FILE cuda_optimized/sparse_wgrad/shared/pair_stages.cuh
  FIND [==[copy % kPieces ^ sparse_conv::permutation<kPieces>(i | below);]==]
  REPLACE [==[copy % kPieces ^ (i | below) % kPieces;]==]
  TEACHES "which rows share a permutation depends on how long they are: here two of them")

planted_bug(steps_of_the_next_tap
  RUNG cuda_optimized/sparse_wgrad/split_k_wgmma
  FILE cuda_optimized/sparse_wgrad/shared/pair_stages.cuh
  FIND [==[below < Shape::kWarpPairs && pair < steps_.left ?]==]
  REPLACE [==[below < Shape::kWarpPairs && steps_.left > 0 ?]==]
  TEACHES "a tap's last step is seldom whole, and what follows in the list is another tap's")

planted_bug(turns_of_one_part_less
  RUNG cuda_optimized/sparse_wgrad/split_k_wgmma
  FIND [==[parts_of(parts, all) * S::kPairs};]==]
  REPLACE [==[(parts_of(parts, all) > 1 ? parts_of(parts, all) - 1 : 1) * S::kPairs};]==]
  TEACHES "who takes turns must know how many they are, or some steps are done twice")

planted_bug(stage_filled_before_it_is_read
  RUNG cuda_optimized/sparse_wgrad/split_k_wgmma
  FIND [==[ptx::mbarrier_wait(&ring.empty[place.stage], place.round ^ 1);]==]
  REPLACE [==[]==]
  TEACHES "a ring has an end: only lists with more steps than stages show who does not wait")

planted_bug(lower_half_of_a_product_stored
  RUNG cuda_optimized/sparse_wgrad/split_k_wgmma
  FIND [==[if (below >= S::kTile || ci >= product.Cin) return;]==]
  REPLACE [==[if (ci >= product.Cin) return;]==]
  TEACHES "a product has 64 rows; of 32 channels the lower half is the same again, and nobody's")

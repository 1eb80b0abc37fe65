planted_bug(divided_by_the_taps
  RUNG cpu_reference/sparse_avg_pool/direct
  FIND [==[y[c] /= static_cast<float>(count);]==]
  REPLACE [==[y[c] /= static_cast<float>(pool.book.KV);]==]
  TEACHES "a dense average pooling counts all cells of a window, a sparse one the sites that exist")

planted_bug(divided_by_no_candidates
  RUNG cuda_naive/sparse_avg_pool/direct
  FIND [==[y[i] = count == 0 ? 0.0f : sum / static_cast<float>(count);]==]
  REPLACE [==[y[i] = sum / static_cast<float>(count);]==]
  TEACHES "outputs without candidates exist, under inverse: 0 / 0 is NaN")

planted_bug(multiplied_by_the_reciprocal
  RUNG cuda_optimized/sparse_avg_pool/vectorized
  FIND [==[sum.at[j] / static_cast<float>(count);]==]
  REPLACE [==[sum.at[j] * (1.0f / static_cast<float>(count));]==]
  TEACHES "two roundings instead of one: integer data tell a reciprocal from a division")

planted_bug(every_channel_counts
  RUNG cuda_optimized/sparse_avg_pool/vectorized
  FIND [==[++count;]==]
  REPLACE [==[count += kWidth;]==]
  TEACHES "a vector of four channels is one candidate")

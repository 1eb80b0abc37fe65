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

planted_bug(lowest_bit_not_reversed
  RUNG cpu_reference/fft/radix2
  FIND [==[for (int bit = 0; bit < bits; ++bit) result]==]
  REPLACE [==[for (int bit = 1; bit < bits; ++bit) result]==]
  TEACHES "of two points that differ in a forgotten bit, one is lost, and one is read twice")

planted_bug(factors_by_recurrence
  RUNG cpu_reference/fft/stockham
  FIND [==[roots.push_back(root_of_unity<T>(m, fft.L));]==]
  REPLACE [==[roots.push_back(m == 0 ? root_of_unity<T>(0, fft.L) : roots.back() * root_of_unity<T>(1, fft.L));]==]
  TEACHES "whole numbers do not notice: each step along the circle rounds, and the errors add up")

planted_bug(turned_the_other_way
  RUNG cuda_naive/fft/dft
  FIND [==[roots[m] = m < fft.L ? root_of_unity<T>(m, fft.L)]==]
  REPLACE [==[roots[m] = m < fft.L ? root_of_unity<T>(m == 0 ? 0 : fft.L - m, fft.L)]==]
  TEACHES "the sign of the exponent: lines of one and two points have the same transform either way")

planted_bug(last_pass_writes_to_the_workspace
  RUNG cuda_optimized/fft/passes
  FIND [==[float* to = fft.passes() % 2 != 0 ? y : other;]==]
  REPLACE [==[float* to = y;]==]
  TEACHES "two arrays take turns: who is the last depends on how many turns there are")

planted_bug(no_wait_between_passes
  RUNG cuda_optimized/fft/shared_memory
  FIND [==[__syncthreads();  // separates a pass's writes]==]
  REPLACE [==[// separates a pass's writes]==]
  TEACHES "threads of one block run ahead of each other: a butterfly takes points of the pass before")

planted_bug(exchanged_on_one_side_alone
  RUNG cuda_optimized/fft/shared_memory
  FIND [==[points_of(arrays.y.as<float>(), fft.exchanges()));]==]
  REPLACE [==[points_of(arrays.y.as<float>(), false));]==]
  TEACHES "only the inverse transform exchanges real and imaginary parts, and twice")

planted_bug(next_exchange_over_points_not_read_yet
  RUNG cuda_optimized/fft/radix8
  FIND [==[if (before < eighth) __syncthreads();]==]
  REPLACE [==[]==]
  TEACHES "one copy in shared memory: invisible while a line has one exchange")

planted_bug(short_steps_as_long_ones
  RUNG cuda_optimized/fft/radix16
  FIND [==[before == 1 ? place_of(r * apart) : r * place_of(apart);]==]
  REPLACE [==[r * place_of(apart);]==]
  TEACHES "a place stays empty behind 16 points: steps of less are not equal, and lines of 256 points do not notice")

planted_bug(turned_by_the_row_of_another_line
  RUNG cuda_optimized/fft/four_step
  FIND [==[v[r] = v[r] * turns(l * k);]==]
  REPLACE [==[v[r] = v[r] * turns(c * k);]==]
  TEACHES "a column's number in its block is its number in the line for the first eight alone")

planted_bug(upper_lane_subtracts_the_wrong_way
  RUNG cuda_optimized/fft/warp
  FIND [==[(other - v[i]) * turns[pass]]==]
  REPLACE [==[(v[i] - other) * turns[pass]]==]
  TEACHES "both lanes of a butterfly have both points, and neither is told which one is the first")

planted_bug(no_partner_modulo_the_length
  RUNG cpu_reference/fft/real_pairs
  FIND [==[conjugate(from[(L - number) % L]);]==]
  REPLACE [==[conjugate(from[number == 0 ? L - 1 : L - number]);]==]
  TEACHES "frequency 0 is its own partner: a line of one point does not notice, all others do")

planted_bug(last_line_paired_with_what_lies_behind_it
  RUNG cuda_optimized/fft/real_pairs
  FIND [==[number_from<T>(has_second ? x[b * fft.L + j] : 0.0f)]==]
  REPLACE [==[number_from<T>(x[b * fft.L + j])]==]
  TEACHES "over whole numbers any partner leaves the right result: a NaN behind the array, in float, does not")

planted_bug(upper_half_over_points_not_read_yet
  RUNG cuda_optimized/fft/real_pairs
  FIND [==[__syncthreads();  // these reads before the next writes]==]
  REPLACE [==[if (before < eighth) __syncthreads();]==]
  TEACHES "the last pass reads shared memory, too, before the upper halves are written there")

planted_bug(rows_turned_by_the_factors_of_columns
  RUNG cuda_optimized/fft/plane
  FIND [==[twiddles = of_rows;]==]
  REPLACE [==[]==]
  TEACHES "a square does not notice, and no plane whose axes have one pass each")

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

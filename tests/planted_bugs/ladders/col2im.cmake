planted_bug(padding_added
  RUNG cpu_reference/col2im/col2im
  FIND [==[window * axis.stride - axis.pad_before]==]
  REPLACE [==[window * axis.stride + axis.pad_before]==]
  TEACHES "without padding either sign is right")

planted_bug(last_term_wins
  RUNG cpu_reference/col2im/col2im
  FIND [==[image[pixel_at(c, d, h, w)] += *from;]==]
  REPLACE [==[image[pixel_at(c, d, h, w)] = *from;]==]
  TEACHES "where windows do not overlap, each pixel has one term, and `=` is as good as `+=`")

planted_bug(taps_side_by_side
  RUNG cpu_reference/col2im/col2im
  FIND [==[axis.pad_before + tap * axis.dilation;]==]
  REPLACE [==[axis.pad_before + tap;]==]
  TEACHES "dilation needs problems of its own")

planted_bug(add_begins_from_nothing
  RUNG cpu_reference/col2im/col2im
  FIND [==[if (problem.request == Request::write) {]==]
  REPLACE [==[if (problem.request != Request::none) {]==]
  TEACHES "a request to add keeps what was there")

planted_bug(col2im_start_bound
  RUNG cuda_naive/col2im/col2im
  FIND [==[(at - extent) / axis.stride + 1, min]==]
  REPLACE [==[(at - extent) / axis.stride, min]==]
  TEACHES "one window too many is read with a tap that it has not")

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

planted_bug(steps_without_the_inverse
  RUNG cuda_optimized/col2im/col2im_strided_steps
  FILE cuda_optimized/col2im/shared/strided_steps.cuh
  FIND [==[std::int64_t{modulo(over_gcd)} * steps.inverse;]==]
  REPLACE [==[std::int64_t{modulo(over_gcd)};]==]
  TEACHES "dilation 2 has no other inverse than 1: larger ones, prime to the stride, are needed")

planted_bug(gaps_of_all_windows
  RUNG cuda_optimized/col2im/col2im_strided_steps
  FILE cuda_optimized/col2im/shared/strided_steps.cuh
  FIND [==[if (steps.gcd.remainder(at, over_gcd) != 0)]==]
  REPLACE [==[if (over_gcd < 0)]==]
  TEACHES "where stride and dilation share a divisor, most pixels have no term at all")

planted_bug(neighbour_of_another_row
  RUNG cuda_optimized/col2im/col2im_vectorized
  WITH cuda_optimized/col2im/col2im_strided_steps.cu
  FIND [==[if (hop == 0 || (hop < 0 ? has_previous : has_next))]==]
  REPLACE [==[if (true)]==]
  TEACHES "the neighbouring lane may have the end of another row")

planted_bug(helping_lanes_store
  RUNG cuda_optimized/col2im/col2im_vectorized
  WITH cuda_optimized/col2im/col2im_strided_steps.cu
  FIND [==[if (wanted != piece || lane == 0 || lane == 31) continue;]==]
  REPLACE [==[if (wanted != piece) continue;]==]
  TEACHES "a lane without neighbours has half of a sum, and somebody else has the whole")

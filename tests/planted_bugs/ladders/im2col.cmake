planted_bug(add_request_ignored
  RUNG cuda_naive/im2col/im2col
  FIND [==[problem.request == Request::add ? col[to] + value : value;]==]
  REPLACE [==[value;]==]
  TEACHES "gradients that should add up are overwritten")

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

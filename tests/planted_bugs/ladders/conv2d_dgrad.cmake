planted_bug(bounds_check_of_the_other_axis
  RUNG cuda_naive/conv2d_dgrad/gather
  FIND [==[output_at(w + conv.pad.left - s * conv.dilation.w, conv.stride.w, conv.Q)]==]
  REPLACE [==[output_at(w + conv.pad.left - s * conv.dilation.w, conv.stride.w, conv.P)]==]
  TEACHES "never test only square outputs")

planted_bug(division_for_modulo
  RUNG cuda_naive/conv2d_dgrad/gather
  FIND [==[if (position < 0 || position % stride != 0) return -1;]==]
  REPLACE [==[if (position < 0) return -1;]==]
  TEACHES "with a stride, most pixels have no output at most taps")

planted_bug(padding_of_the_forward_pass
  RUNG cuda_optimized/conv2d_dgrad/winograd_4x4
  WITH cuda_optimized/conv2d/winograd_4x4.cu
  FIND [==[{conv.R - 1 - conv.pad.top,]==]
  REPLACE [==[{conv.pad.top,]==]
  TEACHES "with 3 taps and padding 1, the paddings of both directions are the same number")

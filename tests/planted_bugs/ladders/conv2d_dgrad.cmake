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


planted_bug(filter_not_turned_round
  RUNG cuda_optimized/conv2d_dgrad/depthwise/nchw
  FIND [==[const int from = j + kOdd - s + kBefore * kStride;]==]
  REPLACE [==[const int from = j + kOdd - (kTaps - 1 - s) + kBefore * kStride;]==]
  TEACHES "the gradient of a cross-correlation is a convolution; symmetric filters hide it")

planted_bug(residue_of_a_row_forgotten
  RUNG cuda_optimized/conv2d_dgrad/depthwise/nchw
  FIND [==[const int r = kStride * t + position % kStride;]==]
  REPLACE [==[const int r = kStride * t;]==]
  TEACHES "with stride 2, rows of dx take turns: even positions have the taps 0 and 2, odd ones tap 1")

planted_bug(one_behind_the_last_column
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/residue_classes
  FIND [==[const bool inside = p >= 0 && p < conv.P && q >= 0 && q < conv.Q;]==]
  REPLACE [==[const bool inside = p >= 0 && p < conv.P && q >= 0 && q <= conv.Q;]==]
  TEACHES "what lies behind the last column is the next row's first: a number like any other")

planted_bug(parts_one_on_top_of_the_other
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/split_k
  FILE cuda_optimized/conv2d_dgrad/shared/class_parts.cuh
  FIND [==[return split * part + channel * row + (h * classes_w + w) * pitch;]==]
  REPLACE [==[return split * pitch + channel * row + (h * classes_w + w) * pitch;]==]
  TEACHES "blocks that share a tile must not share what they write")

planted_bug(stage_read_before_its_copies_landed
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/few_channels
  FIND [==[ptx::cp_async_wait_group<Tile::kStages - 2>();]==]
  REPLACE [==[ptx::cp_async_wait_group<Tile::kStages - 1>();]==]
  TEACHES "one group too few is waited for: on a GPU the copies are mostly there, and sometimes not")

planted_bug(empty_groups_not_counted
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/few_channels
  FIND [==[      ++next;
    }
    ptx::cp_async_commit_group();]==]
  REPLACE [==[      ++next;
      ptx::cp_async_commit_group();
    }]==]
  TEACHES "at the end of a sum nothing is copied any more, but the groups must be counted on")

planted_bug(padding_of_the_tap_before
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/few_channels
  FILE cuda_optimized/conv2d/shared/implicit_gemm/pipeline_tile.cuh
  FIND [==[inside_[i] = inside;]==]
  REPLACE [==[inside_[i] = r_ + s_ == 0 ? inside : inside_[i];]==]
  TEACHES "what is hoisted out of the loop must be found anew where it changes")

planted_bug(class_of_the_first_tap_only
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/residue_classes
  FILE cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh
  FIND [==[tap_step = stride / common;]==]
  REPLACE [==[tap_step = stride;]==]
  TEACHES "stride and dilation with a common factor: every second tap of a class would be missed")

planted_bug(classes_share_packed_weights
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/cp_async
  FIND [==[next_packed += product.packed_floats();]==]
  REPLACE [==[next_packed += 0;]==]
  TEACHES "each residue class has weights of its own")

planted_bug(grid_of_the_first_class
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/mma
  FIND [==[classes.most_pixels()]==]
  REPLACE [==[classes.of[0].pixels()]==]
  TEACHES "classes in order of their residues are not in order of their sizes: with stride 5, the fifth may be the largest of its launch")

planted_bug(neighbours_across_a_tap
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/mma
  FIND [==[kWeightVectors ? thread / kPieces * kRows :]==]
  REPLACE [==[kWeightVectors ? thread / kPieces * kRows + 1 :]==]
  TEACHES "rows of weights that one thread copies must belong to one tap")

planted_bug(stage_of_weights_in_the_order_of_windows
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/mma
  FIND [==[ptx::ldmatrix_x4_trans(]==]
  REPLACE [==[ptx::ldmatrix_x4(]==]
  TEACHES "a fragment of b has two elements along k in a register: rows along n must be transposed")

planted_bug(rows_past_the_end_walk_back_in
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d/shared/implicit_gemm/gathered_copies.cuh
  FIND [==[Row row{0, product.tap.h < 0 ? -1 : product.H, product.tap.w < 0 ? -1 : product.W};]==]
  REPLACE [==[Row row{0, product.H, product.W};]==]
  TEACHES "below the image is outside, until taps walk upwards; their results are thrown away, but the loads are real")

planted_bug(turned_weights_left_as_they_are
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/mma_tf32
  FIND [==[launch_transpose<gemm::Rounding::to_tf32>(]==]
  REPLACE [==[launch_transpose<gemm::Rounding::none>(]==]
  TEACHES "the same for the input gradient")

planted_bug(taps_of_a_class_too_far_apart
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/mma_tf32
  FILE cuda_optimized/conv2d_dgrad/shared/residue_classes.cuh
  FIND [==[tap_step = stride / common;]==]
  REPLACE [==[tap_step = stride;]==]
  TEACHES "stride and dilation with a common divisor: nobody's default")

planted_bug(padding_of_the_forward_pass
  RUNG cuda_optimized/conv2d_dgrad/winograd/4x4
  WITH cuda_optimized/conv2d/winograd/4x4.cu
  FIND [==[{conv.R - 1 - conv.pad.top,]==]
  REPLACE [==[{conv.pad.top,]==]
  TEACHES "with 3 taps and padding 1, the paddings of both directions are the same number")

planted_bug(rows_of_the_filter_not_turned_round
  RUNG cuda_optimized/conv2d_dgrad/depthwise/nhwc
  FIND [==[const int r = kTaps - 1 - (i - j);]==]
  REPLACE [==[const int r = i - j;]==]
  TEACHES "the gradient meets the filter's rows from the other end; its columns alone are not enough")

planted_bug(columns_of_the_filter_not_turned_round
  RUNG cuda_optimized/conv2d_dgrad/depthwise/nhwc_tiled
  FIND [==[values[w + kTaps - 1 - s],]==]
  REPLACE [==[values[w + s],]==]
  TEACHES "the gradient meets the filter's columns from the other end; its rows alone are not enough")

planted_bug(filter_of_the_forward_pass
  RUNG cuda_optimized/conv2d_dgrad/winograd/3xtf32
  WITH cuda_optimized/conv2d/winograd/3xtf32.cu,cuda_optimized/conv2d/winograd/4x4.cu,cuda_optimized/gemm/tf32/wgmma_3xtf32.cu,core/cuda/tensor_map.cu
  FIND [==[conv2d::WeightsOrder::turned,]==]
  REPLACE [==[conv2d::WeightsOrder::as_they_are,]==]
  TEACHES "a gradient meets a filter from its other end, and channels in the place of filters")

planted_bug(taps_of_a_class_in_the_forward_order
  RUNG cuda_optimized/conv2d_dgrad/implicit_gemm/warp_specialized
  FILE cuda_optimized/conv2d_dgrad/shared/window_classes.cuh
  WITH cuda_optimized/conv2d/implicit_gemm/warp_specialized.cu,core/cuda/tensor_map.cu
  FIND [==[.last_r = h.first_tap + (h.taps - 1) * h.tap_step,]==]
  REPLACE [==[.last_r = h.first_tap,]==]
  TEACHES "the first tap of a gradient's window is the last tap of the filter")

planted_bug(weights_of_a_filter_down_the_rows
  RUNG cuda_optimized/conv2d_dgrad/hopper/halo_tile
  FILE cuda_optimized/conv2d/shared/halo/halo_operands.cuh
  WITH cuda_optimized/conv2d/implicit_gemm/halo_tile.cu,core/cuda/tensor_map.cu
  FIND [==[ptx::wgmma_row_major_descriptor(weights, 0) + k * kPixelBytes / 16,]==]
  REPLACE [==[ptx::wgmma_row_major_descriptor(weights, 0) + k / 8,]==]
  TEACHES "in a column-major factor the next 16 steps of a sum are 16 rows further, not 32 bytes")

planted_bug(no_zeros_before_the_first_pixel
  RUNG cuda_optimized/conv2d_dgrad/hopper/strided_zeros
  WITH core/cuda/tensor_map.cu
  FIND [==[for (int w = dx.out_first.w - dx.out_stride.w + 1; w < dx.W;]==]
  REPLACE [==[for (int w = dx.out_first.w + 1; w < dx.W;]==]
  TEACHES "zeros lie between two pixels that a tap reaches, and also before the first of them")

planted_bug(class_begins_at_the_corner
  RUNG cuda_optimized/conv2d_dgrad/hopper/strided_zeros
  FILE cuda_optimized/conv2d/shared/halo/halo_epilogue.cuh
  WITH core/cuda/tensor_map.cu
  FIND [==[tensor_map(boxes, out + first.h * row + first.w * K)]==]
  REPLACE [==[tensor_map(boxes, out + first.h * row + 0 * K)]==]
  TEACHES "each class of pixels is an array of its own, and begins where its first pixel lies")


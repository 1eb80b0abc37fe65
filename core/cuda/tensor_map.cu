#include <cuda.h>

#include "core/cuda/tensor_map.hpp"
#include "core/text.hpp"

namespace convladder::BACKEND {
namespace {

/// A function of the driver, found at run time: programs do not link against the driver, which is
/// absent on machines without a GPU.
template <class Function>
Function* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || found == nullptr) {
    throw DeviceError(text("the driver has no ", name));
  }
  return reinterpret_cast<Function*>(found);
}

void check_encoded(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) {
    throw DeviceError(text("the driver refuses ", what, ": error ", static_cast<int>(result)));
  }
}

/// A map of elements of this type.
template <class T>
CUtensorMap tiled(const TiledMap& map, CUtensorMapDataType type, const T* data) {
  static auto* const encode =
      driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  cuuint64_t extents[4] = {}, strides[3] = {};
  cuuint32_t box[4] = {}, steps[4] = {1, 1, 1, 1};
  for (int axis = 0; axis < map.rank; ++axis) {
    extents[axis] = static_cast<cuuint64_t>(map.extents[axis]);
    box[axis] = static_cast<cuuint32_t>(map.box[axis]);
    if (axis > 0) strides[axis - 1] = static_cast<cuuint64_t>(map.strides[axis]) * sizeof(T);
  }
  CUtensorMap encoded{};
  check_encoded(encode(&encoded, type, static_cast<cuuint32_t>(map.rank), const_cast<T*>(data),
                       extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                       map.swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                "a tiled tensor map");
  return encoded;
}

/// A map of 4-byte elements of this type.
template <class T>
CUtensorMap im2col(const Im2colMap& map, CUtensorMapDataType type, const T* data) {
  static auto* const encode =
      driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  const cuuint64_t C = static_cast<cuuint64_t>(map.C), W = static_cast<cuuint64_t>(map.W);
  const cuuint64_t H = static_cast<cuuint64_t>(map.H), N = static_cast<cuuint64_t>(map.N);
  const cuuint64_t extents[4] = {C, W, H, N};
  const cuuint64_t strides[3] = {C * sizeof(T), W * C * sizeof(T), H * W * C * sizeof(T)};
  const int lower[2] = {map.lower_w, map.lower_h}, upper[2] = {map.upper_w, map.upper_h};
  const cuuint32_t steps[4] = {1, static_cast<cuuint32_t>(map.stride_w),
                               static_cast<cuuint32_t>(map.stride_h), 1};
  CUtensorMap encoded{};
  check_encoded(encode(&encoded, type, 4, const_cast<T*>(data), extents, strides, lower, upper,
                       kTensorMapRow, static_cast<cuuint32_t>(map.pixels), steps,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                "an im2col tensor map");
  return encoded;
}

}  // namespace

CUtensorMap tensor_map(const TiledMap& map, const float* data) {
  return tiled(
      map, map.keeps_floats ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
      data);
}
CUtensorMap tensor_map(const TiledMap& map, const Half* data) {
  return tiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, data);
}
CUtensorMap tensor_map(const TiledMap& map, const BFloat16* data) {
  return tiled(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, data);
}

CUtensorMap tensor_map(const TiledMap& map, const std::uint32_t* data) {
  return tiled(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, data);
}

CUtensorMap tensor_map(const Im2colMap& map, const float* data) {
  return im2col(map, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, data);
}
CUtensorMap tensor_map(const Im2colMap& map, const std::uint32_t* data) {
  return im2col(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, data);
}

}  // namespace convladder::BACKEND

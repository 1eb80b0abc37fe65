#include "tensor_map.hpp"

#include <cstring>
#include <cuda_on_cpu/runtime_api.hpp>
#include <string>
#include <string_view>

#include "error_state.hpp"
#include "model_device.hpp"

namespace cuda_on_cpu {
namespace {

/// Records the first error that CUDA would report.
class Limits {
 public:
  void require(bool holds, const std::string& limit) {
    if (!holds && broken_.empty()) broken_ = limit;
  }
  bool kept() const { return broken_.empty(); }
  CUresult refuse(const char* function) const {
    remember(cudaErrorInvalidValue, std::string(function) + ": " + broken_ + ".");
    cudaGetLastError();  // the driver API does not share the runtime's last error
    return CUDA_ERROR_INVALID_VALUE;
  }

 private:
  std::string broken_;
};

struct Arguments {
  CUtensorMap* map;
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill fill;
};

bool is_among(int value, int last) { return value >= 0 && value <= last; }

bool is_float(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return true;
    default: return false;
  }
}

bool is_supported(const Arguments& a) {
  return element_bytes(a.type) != 0 && a.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
}

CUresult say_unsupported(const char* function, const std::string& why) {
  remember(cudaErrorNotSupported, std::string(function) + ": " + why + ".");
  cudaGetLastError();
  return CUDA_ERROR_NOT_SUPPORTED;
}

/// CUDA_SUCCESS if the device has TMA.
CUresult need_tma(const char* function) {
  const control::DeviceModel& device = control::device_model();
  if (device.has_tma()) return CUDA_SUCCESS;
  return say_unsupported(function, text_of_need("TMA", "sm_90", device));
}

constexpr const char* kNotKnown =
    "cuda_on_cpu supports elements of 2 and 4 bytes without interleaving";

/// The limits common to both modes.
void check_common(Limits& limits, const Arguments& a, unsigned least_rank) {
  limits.require(a.map != nullptr && reinterpret_cast<std::uintptr_t>(a.map) % 64 == 0,
                 "the map is not aligned to 64 bytes");
  limits.require(is_among(a.type, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B) &&
                     is_among(a.interleave, CU_TENSOR_MAP_INTERLEAVE_32B) &&
                     is_among(a.swizzle, CU_TENSOR_MAP_SWIZZLE_128B) &&  // on 9.0
                     is_among(a.l2_promotion, CU_TENSOR_MAP_L2_PROMOTION_L2_256B) &&
                     is_among(a.fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA),
                 "an enumeration has no such value");
  limits.require(a.rank >= least_rank && a.rank <= kMaxTensorRank,
                 "the rank must be " + std::to_string(least_rank) + " to 5");
  limits.require(reinterpret_cast<std::uintptr_t>(a.address) % 16 == 0,
                 "the array is not aligned to 16 bytes");
  limits.require(
      a.dims != nullptr && a.element_strides != nullptr && (a.rank == 1 || a.strides != nullptr),
      "an array of sizes or strides is missing");
  limits.require(a.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_float(a.type),
                 "only floats can be filled with NaNs");
  for (unsigned i = 0; limits.kept() && i < a.rank; ++i) {
    const std::string dimension = " of dimension " + std::to_string(i) + " ";
    limits.require(a.dims[i] >= 1 && a.dims[i] <= std::uint64_t{1} << 32,
                   "the size" + dimension + "must be 1 to 2^32");
    limits.require(a.element_strides[i] >= 1 && a.element_strides[i] <= 8,
                   "the element stride" + dimension + "must be 1 to 8");
    limits.require(
        i == 0 || (a.strides[i - 1] % 16 == 0 && a.strides[i - 1] < std::uint64_t{1} << 40),
        "the stride" + dimension + "must be a multiple of 16 bytes, and below 2^40");
  }
}

/// The limits of a box: bytes along the innermost dimension, and bytes in total. The latter limit
/// was observed on an H200: the shared memory of an SM.
void check_bytes(Limits& limits, const Arguments& a, std::uint64_t elements, std::uint64_t rows,
                 const char* name) {
  const std::uint64_t bytes = element_bytes(a.type) * elements;
  limits.require(bytes % 16 == 0, std::string(name) + " must be a multiple of 16 bytes");
  if (a.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE) {
    const unsigned span = 16u << a.swizzle;
    limits.require(bytes <= span, std::string(name) + " must fit the swizzle's " +
                                      std::to_string(span) + " bytes");
  }
  limits.require(bytes * rows <= control::device_model().shared_per_sm,
                 "a box must fit an SM's shared memory");
}

TensorMapFields common_fields(const Arguments& a) {
  TensorMapFields fields{};
  fields.mark = kTensorMapMark;
  fields.address = reinterpret_cast<std::uintptr_t>(a.address);
  for (unsigned i = 0; i < a.rank; ++i) {
    fields.last[i] = static_cast<std::uint32_t>(a.dims[i] - 1);
    fields.element_strides[i] =
        static_cast<std::uint8_t>(i == 0 ? 1 : a.element_strides[i]);  // the first is ignored
    if (i > 0) fields.strides[i - 1] = a.strides[i - 1];
  }
  fields.type = static_cast<std::uint8_t>(a.type);
  fields.swizzle = static_cast<std::uint8_t>(a.swizzle);
  fields.nan_fill = a.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  fields.rank = static_cast<std::uint8_t>(a.rank);
  return fields;
}

CUresult store(CUtensorMap* map, const TensorMapFields& fields) {
  *map = {};
  std::memcpy(map->opaque, &fields, sizeof fields);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  const Arguments a{map,        type,    rank,         address, dims, strides, element_strides,
                    interleave, swizzle, l2_promotion, fill};
  Limits limits;
  check_common(limits, a, 1);
  limits.require(box != nullptr, "an array of sizes or strides is missing");
  if (limits.kept() && !is_supported(a))
    return say_unsupported("cuTensorMapEncodeTiled", kNotKnown);
  std::uint64_t rows = 1;
  for (unsigned i = 0; limits.kept() && i < rank; ++i) {
    limits.require(box[i] >= 1 && box[i] <= 256,
                   "the box of dimension " + std::to_string(i) + " must be 1 to 256 elements");
    if (i > 0 && limits.kept()) rows *= (box[i] + element_strides[i] - 1) / element_strides[i];
  }
  if (limits.kept()) check_bytes(limits, a, box[0], rows, "the box's innermost dimension");
  if (!limits.kept()) return limits.refuse("cuTensorMapEncodeTiled");
  if (const CUresult lacks = need_tma("cuTensorMapEncodeTiled"); lacks != CUDA_SUCCESS)
    return lacks;

  TensorMapFields fields = common_fields(a);
  for (unsigned i = 0; i < rank; ++i) fields.box[i] = static_cast<std::uint16_t>(box[i]);
  return store(map, fields);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                 const int* lower_corner, const int* upper_corner,
                                 cuuint32_t channels_per_pixel, cuuint32_t pixels_per_column,
                                 const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2_promotion,
                                 CUtensorMapFloatOOBfill fill) {
  const Arguments a{map,        type,    rank,         address, dims, strides, element_strides,
                    interleave, swizzle, l2_promotion, fill};
  Limits limits;
  check_common(limits, a, 3);
  limits.require(lower_corner != nullptr && upper_corner != nullptr,
                 "an array of corners is missing");
  if (limits.kept() && !is_supported(a))
    return say_unsupported("cuTensorMapEncodeIm2col", kNotKnown);
  constexpr int kCornerLimit[kMaxTensorRank + 1] = {0, 0, 0, 32768, 128, 16};
  for (unsigned i = 0; limits.kept() && i + 2 < rank; ++i) {
    for (const int corner : {lower_corner[i], upper_corner[i]}) {
      limits.require(corner >= -kCornerLimit[rank] && corner < kCornerLimit[rank],
                     "a corner must be at least " + std::to_string(-kCornerLimit[rank]) +
                         " and below " + std::to_string(kCornerLimit[rank]));
    }
    limits.require(static_cast<std::int64_t>(dims[i + 1]) + upper_corner[i] - lower_corner[i] >= 1,
                   "the bounding box is empty along dimension " + std::to_string(i + 1));
  }
  limits.require(channels_per_pixel >= 1 && channels_per_pixel <= 256,
                 "the channels of a pixel must be 1 to 256");
  limits.require(pixels_per_column >= 1 && pixels_per_column <= 1024,
                 "the pixels of a column must be 1 to 1024");
  if (limits.kept())
    check_bytes(limits, a, channels_per_pixel, pixels_per_column, "a pixel's channels");
  if (!limits.kept()) return limits.refuse("cuTensorMapEncodeIm2col");
  if (const CUresult lacks = need_tma("cuTensorMapEncodeIm2col"); lacks != CUDA_SUCCESS)
    return lacks;

  TensorMapFields fields = common_fields(a);
  fields.im2col = 1;
  fields.channels = static_cast<std::uint16_t>(channels_per_pixel);
  fields.pixels = static_cast<std::uint16_t>(pixels_per_column);
  for (unsigned i = 0; i + 2 < rank; ++i) {
    fields.lower[i] = static_cast<std::int16_t>(lower_corner[i]);
    fields.upper[i] = static_cast<std::int16_t>(upper_corner[i]);
  }
  return store(map, fields);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  if (symbol == nullptr || function == nullptr) return remember(cudaErrorInvalidValue);
  const std::string_view name(symbol);
  *function = name == "cuTensorMapEncodeTiled" ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled)
              : name == "cuTensorMapEncodeIm2col"
                  ? reinterpret_cast<void*>(&cuTensorMapEncodeIm2col)
                  : nullptr;
  constexpr unsigned kFirstVersion = 12000;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  if (*function == nullptr) {
    found = cudaDriverEntryPointSymbolNotFound;
  } else if (version < kFirstVersion) {
    found = cudaDriverEntryPointVersionNotSufficent;
    *function = nullptr;
  }
  if (result != nullptr) *result = found;
  return cudaSuccess;
}

}  // namespace cuda_on_cpu

// The expected values are the formulas of the PTX manual (9.0, section 5.5), and observations on an
// H200 where the manual is silent.
#include <cuda.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

using cuda_on_cpu::control::ThreadOrder;

constexpr std::size_t kBox = 11 * 1024;  ///< floats of shared memory after the barrier
constexpr std::size_t kSharedBytes = 1024 + 4 * kBox;

/// An array in device memory whose elements are all different, and tensor maps of it.
struct Tensor {
  std::vector<cuuint64_t> dims, strides;  ///< innermost first; strides of dimensions 1 and above
  std::vector<float> host;
  DeviceArray<float> device;

  Tensor(std::vector<cuuint64_t> sizes, std::vector<cuuint64_t> byte_strides)
      : dims(std::move(sizes)), strides(std::move(byte_strides)), host(counted()), device(host) {}

  std::vector<float> counted() const {
    std::vector<float> values(strides.empty() ? dims[0] : strides.back() / 4 * dims.back());
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }
  cuuint32_t rank() const { return static_cast<cuuint32_t>(dims.size()); }
  /// The element at this position, or zero outside.
  float at(const std::vector<int>& position) const {
    std::size_t element = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (position[i] < 0 || position[i] >= static_cast<int>(dims[i])) return 0;
      element += static_cast<std::size_t>(position[i]) * (i == 0 ? 1 : strides[i - 1] / 4);
    }
    return host[element];
  }
};

struct Options {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

CUtensorMap tiled(const Tensor& tensor, const std::vector<cuuint32_t>& box,
                  std::vector<cuuint32_t> steps = {}, const Options& options = {}) {
  steps.resize(tensor.dims.size(), 1);
  CUtensorMap map;
  REQUIRE(cuTensorMapEncodeTiled(&map, options.type, tensor.rank(), tensor.device.data(),
                                 tensor.dims.data(), tensor.strides.data(), box.data(),
                                 steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, options.swizzle,
                                 CU_TENSOR_MAP_L2_PROMOTION_NONE, options.fill) == CUDA_SUCCESS);
  return map;
}

std::vector<float> load(const CUtensorMap& map, unsigned rank, const Coordinates& at, int bytes,
                        std::size_t floats) {
  DeviceArray<float> out(floats);
  const Shape shape{1, 64, kSharedBytes};
  const int count = static_cast<int>(floats);
  cudaError_t error = cudaErrorUnknown;
  switch (rank) {
    case 1: error = launch(load_box<1>, shape, map, at, bytes, count, out.data()); break;
    case 2: error = launch(load_box<2>, shape, map, at, bytes, count, out.data()); break;
    case 3: error = launch(load_box<3>, shape, map, at, bytes, count, out.data()); break;
    case 4: error = launch(load_box<4>, shape, map, at, bytes, count, out.data()); break;
    default: error = launch(load_box<5>, shape, map, at, bytes, count, out.data()); break;
  }
  CAPTURE(cuda_on_cpu::control::last_report());
  REQUIRE(error == cudaSuccess);
  return out.host();
}

/// The swizzled position of a word, from the manual.
std::size_t swizzled_word(std::size_t word, unsigned span) {
  const std::size_t address = 4 * word;
  const std::size_t mask = span == 0 ? 0 : span - 16;  // of the bits that select the 16 bytes
  return (address ^ (address >> 3 & mask)) / 4;
}

/// An im2col map and the expected result of a load.
struct Columns {
  std::vector<int> lower, upper;
  cuuint32_t channels, pixels;
  std::vector<cuuint32_t> steps;

  CUtensorMap map(const Tensor& tensor) const {
    CUtensorMap encoded;
    REQUIRE(cuTensorMapEncodeIm2col(&encoded, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, tensor.rank(),
                                    tensor.device.data(), tensor.dims.data(), tensor.strides.data(),
                                    lower.data(), upper.data(), channels, pixels, steps.data(),
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                    CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return encoded;
  }
  int bytes() const { return static_cast<int>(4 * channels * pixels); }
};

}  // namespace

TEST_CASE(
    "tensor loads copy boxes of one to five dimensions, and zeros from outside of the array") {
  const Defaults defaults;
  const std::vector<cuuint64_t> dims = {20, 9, 8, 5, 4}, strides = {96, 1024, 8192, 40960};
  const std::vector<cuuint32_t> box = {8, 3, 2, 2, 2};
  const Coordinates at{{16, -1, 7, 3, -1}};
  for (unsigned rank = 1; rank <= 5; ++rank) {
    CAPTURE(rank);
    const Tensor tensor({dims.begin(), dims.begin() + rank},
                        {strides.begin(), strides.begin() + rank - 1});
    std::vector<float> expected;
    std::size_t floats = 1;
    for (unsigned i = 0; i < rank; ++i) floats *= box[i];
    for (std::size_t word = 0; word < floats; ++word) {
      std::vector<int> position;
      std::size_t rest = word;
      for (unsigned i = 0; i < rank; rest /= box[i++]) {
        position.push_back(at.of[i] + static_cast<int>(rest % box[i]));
      }
      expected.push_back(tensor.at(position));
    }
    CHECK(load(tiled(tensor, {box.begin(), box.begin() + rank}), rank, at,
               static_cast<int>(4 * floats), floats) == expected);
  }
}

TEST_CASE("element strides of a tensor map skip elements, but not in the innermost dimension") {
  const Defaults defaults;
  const Tensor tensor({32, 40}, {128});
  const CUtensorMap map = tiled(tensor, {8, 20}, {2, 3});
  std::vector<float> expected;
  for (int row = 0; row < 7; ++row) {
    for (int i = 0; i < 8; ++i) expected.push_back(tensor.at({4 + i, 3 * row - 3}));
  }
  CHECK(load(map, 2, {{4, -3}}, 4 * 8 * 7, 56) == expected);
}

TEST_CASE(
    "swizzles XOR the index of 16 bytes within 32, 64 or 128 with the index of the 128 bytes") {
  const Defaults defaults;
  const Tensor tensor({64, 32}, {256});
  for (const unsigned span : {0u, 32u, 64u, 128u}) {
    for (const cuuint32_t width : {8u, 4u}) {  // the whole of 32 bytes, and less than any span
      CAPTURE(span);
      Options options;
      options.swizzle = static_cast<CUtensorMapSwizzle>(span == 0 ? 0 : std::countr_zero(span) - 4);
      const std::size_t pitch = std::max(width, span / 4);
      const std::vector<float> result = load(tiled(tensor, {width, 19}, {}, options), 2, {{12, 5}},
                                             static_cast<int>(4 * width * 19), 19 * pitch);
      for (std::size_t row = 0; row < 19; ++row) {
        for (std::size_t i = 0; i < width; ++i) {
          CHECK(result[swizzled_word(row * pitch + i, span)] ==
                tensor.at({12 + static_cast<int>(i), 5 + static_cast<int>(row)}));
        }
      }
    }
  }
}

TEST_CASE("im2col loads copy the pixels that a filter's tap reads, row by row and image by image") {
  const Defaults defaults;
  const int W = 7, H = 6, N = 3;
  const Tensor tensor({24, 7, 6, 3}, {128, 1024, 8192});
  for (const int padding : {0, 1, 2}) {
    for (const int stride : {1, 2, 3}) {
      for (const int dilation : {1, 2}) {
        CAPTURE(padding);
        CAPTURE(stride);
        CAPTURE(dilation);
        const int reach = 2 * dilation;  // of a filter 3 wide
        const int P = (H + 2 * padding - reach - 1) / stride + 1;
        const int Q = (W + 2 * padding - reach - 1) / stride + 1;
        const Columns columns{
            {-padding, -padding},
            {padding - reach, padding - reach},
            16,
            static_cast<cuuint32_t>(N * P * Q + 5),
            {1, static_cast<cuuint32_t>(stride), static_cast<cuuint32_t>(stride), 1}};
        const CUtensorMap map = columns.map(tensor);
        for (const int first : {0, 4}) {  // the starting pixel
          const int r = 2, s = 1, c = 16;
          std::vector<float> expected;
          for (int m = first; m < first + static_cast<int>(columns.pixels); ++m) {
            const int n = m / (P * Q), p = m / Q % P, q = m % Q;
            for (int i = 0; i < 16; ++i) {
              expected.push_back(tensor.at({c + i, q * stride - padding + s * dilation,
                                            p * stride - padding + r * dilation, n}));
            }
          }
          DeviceArray<float> out(expected.size());
          const Coordinates at{
              {c, first % Q * stride - padding, first / Q % P * stride - padding, first / (P * Q)}};
          REQUIRE(launch(load_columns<4>, {1, 64, kSharedBytes}, map, at,
                         Coordinates{{s * dilation, r * dilation}}, columns.bytes(),
                         static_cast<int>(expected.size()), out.data()) == cudaSuccess);
          CHECK(out.host() == expected);
        }
      }
    }
  }
}

TEST_CASE("im2col loads support arrays with one and three image dimensions, too") {
  const Defaults defaults;
  const Tensor line({8, 7, 3}, {32, 256}), volume({8, 4, 3, 5, 2}, {32, 128, 512, 2560});
  std::vector<float> expected;
  for (int n = 0; n < 3; ++n) {
    for (int w = -1; w < 6; ++w) {
      for (int i = 0; i < 8; ++i) expected.push_back(line.at({i, w + 2, n}));
    }
  }
  const Columns of_line{{-1}, {-1}, 8, 21, {1, 1, 1}};
  DeviceArray<float> out(expected.size());
  REQUIRE(launch(load_columns<3>, {1, 64, kSharedBytes}, of_line.map(line), Coordinates{{0, -1, 0}},
                 Coordinates{{2}}, of_line.bytes(), 168, out.data()) == cudaSuccess);
  CHECK(out.host() == expected);

  expected.clear();
  for (int n = 0; n < 2; ++n) {
    for (int d = 0; d < 4; ++d) {
      for (int h = -1; h < 2; ++h) {
        for (int w = 0; w < 3; ++w) {
          for (int i = 0; i < 8; ++i) expected.push_back(volume.at({i, w + 1, h + 2, d + 1, n}));
        }
      }
    }
  }
  const Columns of_volume{{0, -1, 0}, {-1, -1, -1}, 8, 72, {1, 1, 1, 1, 1}};
  DeviceArray<float> more(expected.size());
  REQUIRE(launch(load_columns<5>, {1, 64, kSharedBytes}, of_volume.map(volume),
                 Coordinates{{0, 0, -1, 0, 0}}, Coordinates{{1, 2, 1}}, of_volume.bytes(), 576,
                 more.data()) == cudaSuccess);
  CHECK(more.host() == expected);
}

TEST_CASE("tensor loads of TFLOAT32 round to nearest, ties to even, and of other types copy bits") {
  const Defaults defaults;
  const float nan = std::bit_cast<float>(0xffc01234u), infinity = INFINITY;
  Tensor tensor({8}, {});
  const std::vector<float> values = {1 + 0x1p-11f, 1 + 0x1.8p-10f,  1 + 0x1.002p-11f,
                                     -0x1p-149f,   0x1.fffffep127f, infinity,
                                     nan,          0x1.ffcp0f};
  cudaMemcpy(tensor.device.data(), values.data(), 32, cudaMemcpyHostToDevice);
  Options options;
  const auto bits_of = [](const std::vector<float>& floats) {
    std::vector<std::uint32_t> bits;
    for (const float f : floats) bits.push_back(std::bit_cast<std::uint32_t>(f));
    return bits;
  };
  CHECK(bits_of(load(tiled(tensor, {8}), 1, {{0}}, 32, 8)) == bits_of(values));
  options.type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  CHECK(bits_of(load(tiled(tensor, {8}, {}, options), 1, {{0}}, 32, 8)) ==
        bits_of({1, 1 + 0x1p-9f, 1 + 0x1p-10f, -0.0f, infinity, infinity,
                 std::bit_cast<float>(0x7fffe000u), 0x1.ffcp0f}));
  options.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  for (const float f : load(tiled(tensor, {4}, {}, options), 1, {{8}}, 16, 4)) {
    CHECK(std::bit_cast<std::uint32_t>(f) == 0x7ff77ff7u);
  }
}

TEST_CASE("tensor loads of 16-bit elements use element coordinates, also at the end of the array") {
  const Defaults defaults;
  Tensor tensor({12, 3}, {48});  // in memory as floats, of two elements each
  tensor.dims[0] = 21;
  for (const CUtensorMapDataType type :
       {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16}) {
    std::vector<float> expected(16);
    for (std::size_t row = 0; row < 2; ++row) {
      const float* const from = tensor.host.data() + (row + 1) * 12 + 8;
      std::copy_n(from, 2, expected.begin() + static_cast<std::ptrdiff_t>(row) * 8);
      const auto half = std::bit_cast<std::uint32_t>(from[2]) & 0xffffu;
      expected[row * 8 + 2] = std::bit_cast<float>(half);
    }
    Options options;
    options.type = type;
    CHECK(load(tiled(tensor, {16, 2}, {}, options), 2, {{16, 1}}, 64, 16) == expected);
  }
}

TEST_CASE("tensor stores write the elements inside of the array, from their swizzled positions") {
  const Defaults defaults;
  const Shape shape{1, 64, kSharedBytes};
  const auto stored = [&](Tensor& tensor, CUtensorMapSwizzle swizzle, BulkStore how) {
    Options options;
    options.swizzle = swizzle;
    return launch(store_to_array, shape, tiled(tensor, {8, 6}, {}, options), Coordinates{{12, 3}},
                  48, how);
  };
  for (const CUtensorMapSwizzle swizzle : {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B}) {
    Tensor tensor({18, 7}, {80});
    std::vector<float> expected = tensor.host;
    for (std::size_t row = 3; row < 7; ++row) {
      for (std::size_t column = 12; column < 18; ++column) {
        const std::size_t word = (row - 3) * 8 + column - 12;
        const std::size_t place =
            swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? word : word ^ (word >> 3 & 4);
        expected[row * 20 + column] = static_cast<float>(place + 1);
      }
    }
    REQUIRE(stored(tensor, swizzle, BulkStore::right) == cudaSuccess);
    CHECK(tensor.device.host() == expected);
  }
  Tensor tensor({18, 7}, {80});
  REQUIRE(stored(tensor, CU_TENSOR_MAP_SWIZZLE_NONE, BulkStore::overwritten) == cudaSuccess);
  CHECK(tensor.device.host()[3 * 20 + 12] == 77);
  for (const BulkStore how : {BulkStore::no_wait, BulkStore::others_wait}) {
    CHECK(stored(tensor, CU_TENSOR_MAP_SWIZZLE_NONE, how) == cudaErrorLaunchFailure);
    CHECK(report_names("ended without a wait for the store"));
  }
}

TEST_CASE("the destination of a tensor load holds NaNs until a wait for the right phase") {
  const Defaults defaults;
  const Tensor tensor({16, 8}, {64});
  const CUtensorMap map = tiled(tensor, {16, 8});
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::reverse}) {
    cuda_on_cpu::control::set_thread_order(order, 1);
    for (const int how : {0, 1}) {  // the wait is late, or is for another phase
      DeviceArray<float> out(128);
      REQUIRE(launch(misuse_load, {1, 64, kSharedBytes}, map, how, out.data()) == cudaSuccess);
      for (const float value : out.host()) CHECK(std::isnan(value));
    }
  }
  DeviceArray<float> out(128);
  CHECK(launch(misuse_load, {1, 64, kSharedBytes}, map, 7, out.data()) == cudaErrorLaunchFailure);
  CHECK(report_names("without a wait for the load", place_of("tensor_loads.cu", "misused load")));
}

TEST_CASE("a phase that expects too few or too many bytes is an error") {
  const Defaults defaults;
  const Tensor tensor({16, 8}, {64});
  const CUtensorMap map = tiled(tensor, {16, 8});
  DeviceArray<float> out(128);
  const Shape shape{1, 64, kSharedBytes};
  CHECK(launch(misuse_load, shape, map, 2, out.data()) == cudaErrorLaunchFailure);
  CHECK(report_names("loads bring more bytes than were expected", "expects 496 bytes",
                     "loads of 512 bytes"));
  CHECK(launch(misuse_load, shape, map, 3, out.data()) == cudaErrorLaunchFailure);
  CHECK(report_names("deadlock", place_of("tensor_loads.cu", "late wait"), "expects 528 bytes"));
  CHECK(launch(misuse_load, shape, map, 9, out.data()) == cudaSuccess);
  CHECK(out.host() == tensor.host);
}

TEST_CASE("tensor loads that the hardware rejects are errors that name the location") {
  const Defaults defaults;
  const Tensor tensor({16, 8}, {64});
  const CUtensorMap map = tiled(tensor, {16, 8});
  DeviceArray<float> out(128);
  const Shape shape{1, 64, kSharedBytes};
  const std::string place = place_of("tensor_loads.cu", "misused load");
  CHECK(launch(misuse_load, shape, map, 4, out.data()) == cudaErrorIllegalInstruction);
  CHECK(report_names("innermost coordinate", place));
  CHECK(launch(misuse_load, shape, map, 5, out.data()) == cudaErrorIllegalInstruction);
  CHECK(report_names("not aligned to 128 bytes", place));
  CHECK(launch(misuse_load, shape, map, 6, out.data()) == cudaErrorIllegalAddress);
  CHECK(report_names("do not lie in the block's shared memory", place));
  CHECK(launch(misuse_load, shape, CUtensorMap{}, 0, out.data()) == cudaErrorLaunchFailure);
  CHECK(report_names("not encoded", place));

  const Tensor images({8, 7, 6, 3}, {32, 224, 1344});
  const Columns columns{{0, 0}, {-2, -2}, 8, 16, {1, 1, 1, 1}};
  CHECK(launch(misuse_load, shape, columns.map(images), 0, out.data()) == cudaErrorLaunchFailure);
  CHECK(report_names("another rank or mode", place));
  for (const Coordinates at : {Coordinates{{0, 5, 0, 0}}, Coordinates{{0, 0, -1, 0}}}) {
    CHECK(launch(load_columns<4>, shape, columns.map(images), at, Coordinates{}, 512, 128,
                 out.data()) == cudaErrorIllegalInstruction);
    CHECK(
        report_names("outside the map's bounding box", place_of("tensor_loads.cu", "im2col load")));
  }
}

TEST_CASE("invalid tensor maps are refused as by CUDA") {
  const Defaults defaults;
  DeviceArray<float> memory(1024);
  struct Arguments {
    std::size_t shift = 0;
    cuuint32_t rank = 4;
    std::vector<cuuint64_t> dims = {64, 14, 12, 2}, strides = {256, 3584, 43008};
    std::vector<cuuint32_t> box = {32, 8, 2, 1}, steps = {1, 1, 1, 1};
    std::vector<int> lower = {-1, -1}, upper = {-1, -1};
    cuuint32_t channels = 32, pixels = 64;
    int type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32, interleave = 0, l2 = 0, fill = 0;
    int swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  };
  const auto encode = [&](bool im2col, auto change) {
    Arguments a;
    change(a);
    CUtensorMap map;
    char* const address = reinterpret_cast<char*>(memory.data()) + a.shift;
    const auto type = static_cast<CUtensorMapDataType>(a.type);
    const auto interleave = static_cast<CUtensorMapInterleave>(a.interleave);
    const auto swizzle = static_cast<CUtensorMapSwizzle>(a.swizzle);
    const auto l2 = static_cast<CUtensorMapL2promotion>(a.l2);
    const auto fill = static_cast<CUtensorMapFloatOOBfill>(a.fill);
    return im2col ? cuTensorMapEncodeIm2col(&map, type, a.rank, address, a.dims.data(),
                                            a.strides.data(), a.lower.data(), a.upper.data(),
                                            a.channels, a.pixels, a.steps.data(), interleave,
                                            swizzle, l2, fill)
                  : cuTensorMapEncodeTiled(&map, type, a.rank, address, a.dims.data(),
                                           a.strides.data(), a.box.data(), a.steps.data(),
                                           interleave, swizzle, l2, fill);
  };
  using A = Arguments;
  const auto both = [&](auto change, CUresult expected) {
    CHECK(encode(false, change) == expected);
    CHECK(encode(true, change) == expected);
  };
  constexpr cuuint64_t kTwo32 = cuuint64_t{1} << 32, kTwo40 = cuuint64_t{1} << 40;
  both([](A&) {}, CUDA_SUCCESS);
  both([](A& a) { a.shift = 8; }, CUDA_ERROR_INVALID_VALUE);
  CHECK(report_names("aligned to 16 bytes"));
  both([](A& a) { a.rank = 0; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.rank = 6; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.dims[3] = 0; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.dims[3] = kTwo32; }, CUDA_SUCCESS);
  both([](A& a) { a.dims[3] = kTwo32 + 1; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.strides[0] = 264; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.strides[2] = kTwo40 - 16; }, CUDA_SUCCESS);
  both([](A& a) { a.strides[2] = kTwo40; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.steps[1] = 0; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.steps[1] = 9; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.swizzle = 4; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.l2 = 4; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.type = 16; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_INT32, a.fill = 1; }, CUDA_ERROR_INVALID_VALUE);
  both([](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64; }, CUDA_ERROR_NOT_SUPPORTED);
  CHECK(encode(true, [](A& a) { a.rank = 2; }) == CUDA_ERROR_INVALID_VALUE);

  const auto tile = [&](std::vector<cuuint32_t> box, int swizzle) {
    return encode(false, [&](A& a) { a.box = box, a.swizzle = swizzle; });
  };
  CHECK(tile({256, 8, 1, 1}, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_SUCCESS);
  CHECK(tile({257, 8, 1, 1}, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tile({32, 0, 1, 1}, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tile({6, 8, 1, 1}, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tile({36, 8, 1, 1}, CU_TENSOR_MAP_SWIZZLE_128B) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tile({20, 8, 1, 1}, CU_TENSOR_MAP_SWIZZLE_64B) == CUDA_ERROR_INVALID_VALUE);
  CHECK(tile({256, 228, 1, 1}, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_SUCCESS);
  CHECK(tile({256, 240, 1, 1}, CU_TENSOR_MAP_SWIZZLE_NONE) == CUDA_ERROR_INVALID_VALUE);

  const auto columns = [&](auto change) { return encode(true, change); };
  CHECK(columns([](A& a) { a.lower[0] = -128; }) == CUDA_SUCCESS);
  CHECK(columns([](A& a) { a.lower[0] = -129; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(columns([](A& a) { a.upper[1] = 128; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(columns([](A& a) { a.upper[0] = -14; }) == CUDA_SUCCESS);
  CHECK(columns([](A& a) { a.upper[0] = -15; }) == CUDA_ERROR_INVALID_VALUE);  // no pixel is left
  CHECK(columns([](A& a) { a.channels = 2; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(columns([](A& a) { a.channels = 36; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(columns([](A& a) { a.pixels = 1024; }) == CUDA_SUCCESS);
  CHECK(columns([](A& a) { a.pixels = 1025; }) == CUDA_ERROR_INVALID_VALUE);
  CHECK(columns([](A& a) { a.pixels = 0; }) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the driver's functions for tensor maps are found by their names") {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                           cudaEnableDefault, &result) == cudaSuccess);
  CHECK(result == cudaDriverEntryPointSuccess);
  CHECK(function == reinterpret_cast<void*>(&cuTensorMapEncodeTiled));
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &function, 11080,
                                           cudaEnableDefault, &result) == cudaSuccess);
  CHECK(result == cudaDriverEntryPointVersionNotSufficent);
  REQUIRE(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, cudaEnableDefault,
                                           &result) == cudaSuccess);
  CHECK(result == cudaDriverEntryPointSymbolNotFound);
}

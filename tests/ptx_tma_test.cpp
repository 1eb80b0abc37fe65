/// @file ptx_tma_test.cpp
/// @brief The wrappers of core/cuda/ptx.hpp that copy asynchronously: loads of the tensor memory
/// accelerator, and copies that arrive at a barrier.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/ptx_tools.hpp"

namespace convladder::testing {
namespace {

/// An array of different numbers.
Registers counted(const std::vector<std::uint64_t>& dims) {
  std::size_t size = 1;
  for (const std::uint64_t n : dims) size *= n;
  Registers array(size);
  std::iota(array.begin(), array.end(), 1u);
  return array;
}

/// The element of `array` at `position`, or zero outside.
std::uint32_t element(const Registers& array, const std::vector<std::uint64_t>& dims,
                      const std::vector<int>& position) {
  std::size_t index = 0, stride = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (position[i] < 0 || position[i] >= static_cast<int>(dims[i])) return 0;
    index += static_cast<std::size_t>(position[i]) * stride;
    stride *= dims[i];
  }
  return array[index];
}

/// Puts rows of `width` words where a load puts them.
Registers in_shared(const Registers& rows, std::size_t width, int span, std::size_t words) {
  Registers shared(words, kUntouched);
  const std::size_t pitch = std::max(width, static_cast<std::size_t>(span) / 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    shared[swizzled(i / width * pitch + i % width, span)] = rows[i];
  }
  return shared;
}

}  // namespace

TEST_CASE("ptx: tma_load copies boxes, zeros from outside of the array, and swizzles them") {
  const std::vector<std::uint64_t> all_dims = {72, 9, 8, 5};
  const std::vector<std::uint32_t> all_boxes = {8, 7, 3, 2}, all_steps = {1, 1, 2, 1};
  const std::vector<int> all_at = {68, -2, 5, 4};
  for (std::size_t rank = 2; rank <= 4; ++rank) {
    const auto n = static_cast<std::ptrdiff_t>(rank);
    for (const int span : {0, 32, 64, 128}) {
      CAPTURE(rank);
      CAPTURE(span);
      TensorLoad load{.dims = {all_dims.begin(), all_dims.begin() + n},
                      .box = {all_boxes.begin(), all_boxes.begin() + n},
                      .steps = {all_steps.begin(), all_steps.begin() + n},
                      .at = {all_at.begin(), all_at.begin() + n}};
      load.swizzle = span;
      if (rank == 2 && span == 0) load.box[0] = 64;  // wider than any swizzle
      const Registers array = counted(load.dims);
      Registers rows;
      std::size_t count = 1;
      for (std::size_t i = 0; i < rank; ++i)
        count *= (load.box[i] + load.steps[i] - 1) / load.steps[i];
      for (std::size_t word = 0; word < count; ++word) {
        std::vector<int> position;
        std::size_t rest = word;
        for (std::size_t i = 0; i < rank; ++i) {
          const std::size_t size = (load.box[i] + load.steps[i] - 1) / load.steps[i];
          position.push_back(load.at[i] + static_cast<int>(rest % size * load.steps[i]));
          rest /= size;
        }
        rows.push_back(element(array, load.dims, position));
      }
      load.bytes = static_cast<int>(4 * count);
      load.words = 2048;
      const Registers expected = in_shared(rows, load.box[0], span, load.words);
      for (const Probes& probes : hopper_probes()) {
        CAPTURE(probes.place);
        CHECK(probes.load_box(load, array) == expected);
      }
    }
  }
}

TEST_CASE("ptx: tma_load_im2col copies the pixels that a filter's tap reads") {
  const int W = 7, H = 6, N = 3, r = 1, s = 2, c = 16;
  for (const int padding : {0, 1, 2}) {
    for (const int stride : {1, 2, 3}) {
      for (const int dilation : {1, 2}) {
        for (const int span : {0, 64, 128}) {
          const int reach = 2 * dilation;  // of a filter 3 wide
          const int P = (H + 2 * padding - reach - 1) / stride + 1;
          const int Q = (W + 2 * padding - reach - 1) / stride + 1;
          const int first = P * Q > 5 ? 5 : 1;  // not where a row begins
          const auto step = static_cast<std::uint32_t>(stride);
          TensorLoad load{.dims = {24, 7, 6, 3},
                          .steps = {1, step, step, 1},
                          .at = {c, first % Q * stride - padding, first / Q % P * stride - padding,
                                 first / (P * Q)},
                          .lower = {-padding, -padding},
                          .upper = {padding - reach, padding - reach},
                          .offset = {s * dilation, r * dilation},
                          .channels = 16,
                          .pixels = static_cast<std::uint32_t>(N * P * Q)};
          load.swizzle = span;
          load.bytes = static_cast<int>(4 * load.channels * load.pixels);
          load.words = 32 * load.pixels + 32;
          const Registers array = counted(load.dims);
          Registers rows;
          for (int m = first; m < first + static_cast<int>(load.pixels); ++m) {
            const int n = m / (P * Q), p = m / Q % P, q = m % Q;
            for (int i = 0; i < 16; ++i) {
              rows.push_back(element(array, load.dims,
                                     {c + i, q * stride - padding + s * dilation,
                                      p * stride - padding + r * dilation, n}));
            }
          }
          const Registers expected = in_shared(rows, 16, span, load.words);
          for (const Probes& probes : hopper_probes()) {
            CAPTURE(probes.place);
            CAPTURE(padding);
            CAPTURE(stride);
            CAPTURE(dilation);
            CAPTURE(span);
            CHECK(probes.load_box(load, array) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("ptx: tma_load of TFLOAT32 rounds to nearest, ties to even") {
  Registers values(32, bits(1.0f)), expected(32, bits(1.0f));
  const auto set = [&](std::size_t i, float value, float rounded) {
    values[i] = bits(value);
    expected[i] = bits(rounded);
  };
  set(0, 1 + 0x1p-11f, 1.0f);
  set(1, -1 - 0x1.8p-10f, -1 - 0x1p-9f);
  set(2, 1 + 0x1.002p-11f, 1 + 0x1p-10f);
  set(3, 1 + 0x1.ffcp-12f, 1.0f);
  set(4, 0x1.ffep0f, 2.0f);
  set(5, -0.0f, -0.0f);
  set(6, 0x1p-149f, 0.0f);
  set(7, 0x1.8p-136f, 0x1p-135f);
  set(8, 3.14159274f, 0x1.92p1f);
  TensorLoad load{.dims = {32, 1}, .box = {32, 1}, .steps = {1, 1}, .at = {0, 0}};
  load.bytes = 128;
  load.words = 32;
  load.round_to_tf32 = true;
  for (const Probes& probes : hopper_probes()) {
    CAPTURE(probes.place);
    CHECK(probes.load_box(load, values) == expected);
  }
}

TEST_CASE("ptx: copies by threads and by the engine arrive at a barrier") {
  Registers rows(32 * 4);
  std::iota(rows.begin(), rows.end(), 1u);
  Registers expected = rows;
  expected.insert(expected.end(), rows.begin(), rows.end());
  for (const Probes& probes : hopper_probes()) {
    CAPTURE(probes.place);
    CHECK(probes.copy_to_barrier(rows) == expected);
  }
}

TEST_CASE("ptx: what a block of a cluster loads for all arrives in each") {
  constexpr std::size_t kGrid = 16, kRounds = 3, kRow = 32;
  Registers rows(kGrid * kRounds * kRow);
  std::iota(rows.begin(), rows.end(), 1u);
  for (const std::size_t blocks : {1u, 2u, 4u, 8u}) {
    CAPTURE(blocks);
    Registers expected;
    for (std::size_t block = 0; block < kGrid; ++block) {
      for (std::size_t round = 0; round < kRounds; ++round) {
        for (std::size_t rank = 0; rank < blocks; ++rank) {
          const std::size_t row = (block / blocks * blocks + rank) * kRounds + round;
          for (std::size_t i = 0; i < kRow; ++i) expected.push_back(rows[row * kRow + i]);
        }
      }
    }
    for (const Probes& probes : hopper_probes()) {
      CAPTURE(probes.place);
      CHECK(probes.share_in_clusters(rows, static_cast<int>(blocks)) == expected);
    }
  }
}

TEST_CASE("ptx: what threads store in other blocks of a cluster arrives there") {
  constexpr std::size_t kGrid = 16, kRow = 32 * 4;
  for (const std::size_t blocks : {1u, 2u, 4u, 8u}) {
    CAPTURE(blocks);
    Registers words(kGrid * blocks * kRow), expected(words.size());
    std::iota(words.begin(), words.end(), 1u);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t block = i / kRow / blocks, to = i / kRow % blocks;
      const std::size_t there = block / blocks * blocks + to, from = block % blocks;
      expected[(there * blocks + from) * kRow + i % kRow] = words[i];
    }
    for (const Probes& probes : hopper_probes()) {
      CAPTURE(probes.place);
      CHECK(probes.exchange_in_clusters(words, static_cast<int>(blocks)) == expected);
    }
  }
}

}  // namespace convladder::testing

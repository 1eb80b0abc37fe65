/// @file example.hpp
/// @brief Runs an extracted rung on one problem whose arrays stand in the source, and checks what
/// it computes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/arguments.hpp"
#include "core/half.hpp"
#include "core/implementation.hpp"
#include "core/type_names.hpp"

namespace convladder {

/// The problem's arrays: those that the rung reads, and those that it has to write.
class Example {
 public:
  /// An input. Half types are given as the floats that they hold.
  template <class T, class Given>
  void input(const std::string& name, const std::vector<Given>& values) {
    const std::vector<std::byte> bytes = bytes_of<T>(values);
    inputs_.push_back({name, dtype_of<T>(), on_device(bytes.data(), bytes.size())});
  }

  /// An output: what it must hold in the end, and what it holds before, if that matters.
  template <class T, class Given>
  void output(const std::string& name, const std::vector<Given>& expected,
              const std::vector<Given>& initial = {}) {
    const std::vector<std::byte> before = bytes_of<T>(initial);
    expected_.push_back({name, dtype_of<T>(), 1, bytes_of<T>(expected)});
    const std::size_t bytes = expected_.back().bytes.size();
    bytes_of_[name] = bytes;
    outputs_.push_back(
        {name, dtype_of<T>(), on_device(before.empty() ? nullptr : before.data(), bytes)});
  }

  /// An output that the rung creates once it knows its size. @param columns of a row
  template <class T>
  void created_output(const std::string& name, int columns, const std::vector<T>& expected) {
    expected_.push_back({name, dtype_of<T>(), columns, bytes_of<T>(expected)});
  }

  /// How far a float may be from what is expected, as a part of the output's largest number.
  float tolerance = 0;

  /// Runs the rung, and tells of each output whether it is as expected. @return 0, or 1 if not
  template <class A>
  int run(const Implementation<A>& rung, const typename A::Problem& problem) {
    if (const Declined reason = rung.supports ? rung.supports(problem) : Declined{}) {
      std::printf("declined: %s\n", reason->c_str());
      return 1;
    }
    const std::size_t workspace = rung.workspace_bytes ? rung.workspace_bytes(problem) : 0;
    const Context context{.workspace = on_device(nullptr, workspace)};
    const auto create = [&](const std::string& name, DType dtype, const Shape& shape) {
      std::size_t bytes = size_of(dtype);
      for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
      bytes_of_[name] = bytes;
      outputs_.push_back({name, dtype, on_device(nullptr, bytes)});
      return outputs_.back().data;
    };
    const A arrays = arrays_of<A>(Arguments(inputs_, outputs_, context, create));
    in_stream(context.stream, [&] { rung.run(problem, arrays, context); });
    wait();
    if (rung.finish) rung.finish(problem, arrays, context);
    bool right = true;
    for (const Expected& output : expected_) right = check(output) && right;
    return right ? 0 : 1;
  }

 private:
  struct Expected {
    std::string name;
    DType dtype;
    int columns;
    std::vector<std::byte> bytes;
  };

  template <class T, class Given>
  static std::vector<std::byte> bytes_of(const std::vector<Given>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      if constexpr (std::is_same_v<T, Given>) {
        value = values[i];
      } else {
        value = rounded_to<T>(static_cast<float>(values[i]));
      }
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  }

  /// The rows of int32 numbers, sorted: a rung may leave pairs in any order.
  static std::vector<std::vector<std::int32_t>> sorted_rows(const std::vector<std::byte>& bytes,
                                                            int columns) {
    std::vector<std::int32_t> row(static_cast<std::size_t>(columns));
    std::vector<std::vector<std::int32_t>> rows;
    for (std::size_t at = 0; at < bytes.size(); at += row.size() * sizeof(std::int32_t)) {
      std::memcpy(row.data(), bytes.data() + at, row.size() * sizeof(std::int32_t));
      rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  bool check(const Expected& expected) const {
    const auto place = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&](const auto& slot) { return slot.name == expected.name; });
    bool right = place != outputs_.end() && place->dtype == expected.dtype &&
                 bytes_of_.at(expected.name) == expected.bytes.size();
    if (right) {
      std::vector<std::byte> found(expected.bytes.size());
      download(found.data(), place->data, found.size());
      if (expected.dtype == DType::f32) {
        float largest = 0;
        for (std::size_t at = 0; at < found.size(); at += sizeof(float)) {
          float b;
          std::memcpy(&b, expected.bytes.data() + at, sizeof b);
          largest = std::max(largest, std::abs(b));
        }
        for (std::size_t at = 0; at < found.size(); at += sizeof(float)) {
          float a, b;
          std::memcpy(&a, found.data() + at, sizeof a);
          std::memcpy(&b, expected.bytes.data() + at, sizeof b);
          // +0 and -0 are the same number, and an infinity is equal to itself.
          right = right && (a == b || std::abs(a - b) <= tolerance * largest);
        }
      } else {
        right = expected.columns > 1 ? sorted_rows(found, expected.columns) ==
                                           sorted_rows(expected.bytes, expected.columns)
                                     : found == expected.bytes;
      }
    }
    std::printf("%-10s %s, %zu numbers\n", expected.name.c_str(), right ? "is right" : "DIFFERS",
                expected.bytes.size() / size_of(expected.dtype));
    return right;
  }

#ifdef BACKEND  // a .cu file, for a GPU or for cuda_on_cpu
  static void* on_device(const void* from, std::size_t bytes) {
    void* memory = nullptr;
    BACKEND::check(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)));
    if (from) BACKEND::check(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
    return memory;
  }
  static void download(void* to, const void* from, std::size_t bytes) {
    BACKEND::check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
  static void wait() { BACKEND::check(cudaDeviceSynchronize()); }
#else
  static void* on_device(const void* from, std::size_t bytes) {
    static std::deque<std::vector<double>> memory;  // aligned for every element type
    void* const place = memory.emplace_back(bytes / sizeof(double) + 1).data();
    if (from) std::memcpy(place, from, bytes);
    return place;
  }
  static void download(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }
  static void wait() {}
#endif

  std::vector<Arguments::Slot> inputs_, outputs_;
  std::vector<Expected> expected_;
  std::map<std::string, std::size_t> bytes_of_;  ///< Of each output.
};

}  // namespace convladder

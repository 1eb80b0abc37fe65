/// @file counted.cpp
/// @brief What the microscope counts of the microbenchmarks, as JSON: a list of names with totals
/// by space and operation. tools/compare_counters.py holds it against a profiler's counts.
#include <cuda_runtime.h>

#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/microscope.hpp>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "benchmarks/counters/microbenchmarks.hpp"

namespace convladder::benchmarks {
namespace {

namespace microscope = cuda_on_cpu::microscope;
using Json = nlohmann::ordered_json;

/// Sums over the lines of all kernels, by space and operation.
Json totals_of(const microscope::Report& seen) {
  std::map<std::pair<microscope::Space, microscope::Operation>, microscope::Counts> sums;
  for (const microscope::Kernel& kernel : seen.kernels) {
    for (const microscope::Line& line : kernel.lines)
      sums[{line.space, line.operation}] += line.counts;
  }
  Json totals = Json::object();
  for (const auto& [what, sum] : sums) {
    Json& total = totals[microscope::name_of(what.first)][microscope::name_of(what.second)];
    total["requests"] = sum.requests;
    if (what.first == microscope::Space::global) total["sectors"] = sum.sectors;
    if (what.first != microscope::Space::shared) continue;
    total["wavefronts"] = sum.wavefronts;
    total["excess"] = sum.excess;
    total["joined"] = {{"requests", sum.joined_requests},
                       {"wavefronts", sum.joined_wavefronts},
                       {"excess", sum.joined_excess}};
  }
  return totals;
}

Json count_all() {
  cuda_on_cpu::control::set_worker_threads(1);
  constexpr std::size_t kBytes = kMicrobenchmarkElements * sizeof(float);
  std::vector<float> numbers(kMicrobenchmarkElements);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 8);
  Json all = Json::array();
  for (const Microbenchmark& one : microbenchmarks()) {
    microscope::Microscope lens({});
    void *from = nullptr, *to = nullptr;
    cudaMalloc(&from, kBytes);
    cudaMalloc(&to, kBytes);
    cudaMemcpy(from, numbers.data(), kBytes, cudaMemcpyHostToDevice);
    one.run(static_cast<const float*>(from), static_cast<float*>(to));
    cudaDeviceSynchronize();
    all.push_back({{"name", one.name}, {"totals", totals_of(lens.report())}});
    cudaFree(from);
    cudaFree(to);
  }
  return all;
}

}  // namespace
}  // namespace convladder::benchmarks

int main() { std::cout << convladder::benchmarks::count_all().dump(1) << "\n"; }

/// @file contest.hpp
/// @brief Times rungs beside other people's implementations of the same work, on a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/array.hpp"
#include "core/rung.hpp"

namespace convladder::benchmarks {

/// Elements of an output whose right values are known.
struct Samples {
  std::string output;                ///< Its name.
  std::vector<std::int64_t> places;  ///< Offsets in memory, in elements.
  std::vector<double> values;        ///< The right value at each.
  std::vector<double> tolerances;    ///< How far off a result may be at each.
};

/// An output that rungs create, and all of it: rulebooks are checked to the last number.
struct WholeOutput {
  ArraySpec spec;  ///< With its final shape.
  Array right;     ///< In the canonical order.
};

/// A rung that takes part.
struct Entrant {
  std::string name;                         ///< The rung's.
  const AnyImplementation* code = nullptr;  ///< For a GPU.
  WinogradTile winograd = {};               ///< As Rung::winograd.
  bool float_spectra = false;               ///< As Rung::float_spectra.
};

/// One problem in one precision and layout, its data, and who takes part.
struct Contest {
  std::string ladder;
  Problem problem;
  Signature signature;                               ///< The arrays of the problem.
  std::map<std::string, Array, std::less<>> inputs;  ///< As they lie on the device.
  std::vector<Samples> samples;
  /// The same with what is allowed to rungs of Winograd's tiles, by tile.
  std::map<WinogradTile, std::vector<Samples>> winograd_samples;
  std::vector<Samples> fourier_samples;  ///< Likewise, to rungs with Rung::float_spectra.
  std::vector<WholeOutput> wholes;
  /// What is wrong with created outputs that are not in the canonical order; empty: nothing.
  std::function<std::string(std::map<std::string, Array, std::less<>> outputs)> difference;
  bool tf32 = false;  ///< Inputs may be rounded to TF32.
  bool nhwc = false;  ///< Activations lie channel by channel.
  double bytes = 0;   ///< That have to be read and written at least.
  std::vector<Entrant> rungs;
};

/// What the L2 cache holds when a launch begins.
enum class L2 {
  warm,  ///< What the launches of the same arrays before have left there.
  cold,  ///< Other arrays: more than twice its size has gone through it since.
};

/// As in rows: "warm".
constexpr const char* name_of(L2 l2) { return l2 == L2::warm ? "warm" : "cold"; }

/// The times of one entrant, and what its launches look like.
struct Timing {
  std::string wrong;  ///< Why there is no time: a wrong value, a failed call; empty: all is well.
  bool declined = false;  ///< It is not wrong, but does not fit into the memory beside the arrays.
  double median_us = 0;   ///< Of one run, on the GPU's clock.
  double spread_us = 0;   ///< From the first to the third quartile of the measurements.
  /// One run on the host's clock, from the call until the result is there, and
  /// Implementation::finish has seen to it.
  double host_us = 0;
  int launches = 0;    ///< Kernels, copies and fills of one run.
  int host_syncs = 0;  ///< Times that the host waits within one run.
  // Of the kernel with the most threads:
  int registers = 0;     ///< A thread.
  int shared_bytes = 0;  ///< A block, static and dynamic.
  int spills = 0;        ///< Bytes of local memory a thread.
  double occupancy = 0;  ///< Resident threads, of those that an SM could hold.
  /// The workspace, and the most that a run had allocated at once beside it and its outputs.
  std::int64_t memory_bytes = 0;
};

/// What came out for one state of the L2.
struct Standing {
  std::vector<Timing> rungs;                ///< As Contest::rungs.
  std::map<std::string, double> baselines;  ///< Microseconds.
  std::map<std::string, double> limits;     ///< Microseconds.
};

/// By L2; empty for `cold` where the arrays are so small that no rotation of copies empties it.
using Standings = std::array<std::optional<Standing>, 2>;

/// Times all entrants and baselines alternately, and checks each timed result.
/// @param note told what could not be timed, and why
/// @throws BadInput if the arrays do not fit into the GPU's memory
Standings measure(const Contest& contest, const std::function<void(const std::string&)>& note);

/// What the GPU reaches at most.
struct Ceilings {
  double copy_tb_s = 0;     ///< A copy of 400 MB, one float4 per thread, both directions counted.
  double copy_l2_tb_s = 0;  ///< The same for 25 MB, which remain in the L2 cache.
  double fma_tflops = 0;    ///< FP32 multiply-adds on registers.
  double tf32_tflops = 0;   ///< cuBLAS's TF32 GEMM of 8192 x 8192 matrices; 0 without cuBLAS.
  double fp16_tflops = 0;   ///< The same in fp16 with FP32 accumulators.
  double fp8_tflops = 0;    ///< cuBLASLt in fp8: b is contiguous along k, accumulators are FP32.
};

/// Measures them: about a tenth of a second.
Ceilings measure_ceilings();

/// cuDNN's version: "9.19.0"; empty in a build without it.
std::string cudnn_version();

}  // namespace convladder::benchmarks

/// @file inspect.hpp
/// @brief `inspect`: analyses the memory requests of a rung.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cuda_on_cpu/microscope.hpp"

namespace convladder::command {

struct Options;  // command/options.hpp

/// An array of a rung's run and its placement in memory.
struct InspectedArray {
  std::uint64_t bytes = 0, element_bytes = 4;
  std::uint64_t begins = 0;           ///< The address modulo 128.
  std::string axes;                   ///< One letter per axis, outermost first; empty: unknown.
  std::vector<std::int64_t> extents;  ///< Extents of the axes.
};

/// The result of inspecting a rung.
struct Inspection {
  std::string rung;
  std::string source;   ///< the inspected file
  std::string problem;  ///< a description in words
  std::string compiler;
  bool agrees = false;
  std::string reason;                            ///< the reason why it does not agree
  std::uint64_t outputs = 0;                     ///< elements of all outputs
  std::map<std::string, InspectedArray> arrays;  ///< of the rung's inputs
  cuda_on_cpu::microscope::Report seen;
  /// Reads of unwritten memory on which the result does not depend: such memory holds NaNs, and the
  /// rung agrees anyway. (seen.unwritten lists the reads on which it may depend.)
  std::vector<cuda_on_cpu::microscope::Unwritten> unused;

  /// True if the rung agrees, and no race or unwritten read was found that could change the result
  /// in another order of threads.
  bool is_in_order() const;
  /// Loads of each array by all blocks per output element, extrapolated from the counted blocks.
  /// Without outputs, the loads of all blocks.
  std::map<std::string, double> loads_per_output() const;
};

/// The JSON of `inspect --json`: schema convladder-inspect-1 (docs/microscope.md).
std::string inspect_json(const Inspection& inspection);
/// The JSON of `inspect --trace`: schema convladder-trace-1 (docs/microscope.md).
/// @throws BadInput if the trace would have more requests than the schema allows
std::string inspect_trace(const Inspection& inspection);
/// The terminal output: the kernels' source with counts, and a summary in sentences.
std::string inspect_text(const Inspection& inspection);
/// The page of `inspect --html`: one self-contained file.
std::string inspect_page(const Inspection& inspection);

/// Runs the rung whose instrumented library CONVLADDER_INSPECTED names (see ./ladder inspect). The
/// function has C linkage because program.cpp looks it up in its library by name.
/// @return an ExitStatus: kSomeDiffer for a wrong result, a race or an unwritten read.
/// @throws BadInput
extern "C" int convladder_inspect(const Options& given);

}  // namespace convladder::command

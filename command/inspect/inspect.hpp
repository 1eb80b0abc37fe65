/// @file inspect.hpp
/// @brief `inspect`: a rung under the microscope.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cuda_on_cpu/microscope.hpp"

namespace convladder::command {

struct Options;  // command/options.hpp

/// An array of a rung's run, as it lies in memory.
struct InspectedArray {
  std::uint64_t bytes = 0, element_bytes = 4;
  std::uint64_t begins = 0;           ///< Its address's remainder by 128.
  std::string axes;                   ///< One letter each, outermost first; empty: unknown.
  std::vector<std::int64_t> extents;  ///< Of the axes.
};

/// A rung's run under the microscope.
struct Inspection {
  std::string rung;
  std::string source;   ///< the file that was looked at
  std::string problem;  ///< in words
  std::string compiler;
  bool agrees = false;
  std::string reason;                            ///< why it does not agree
  std::uint64_t outputs = 0;                     ///< elements of all outputs
  std::map<std::string, InspectedArray> arrays;  ///< that the rung was given
  cuda_on_cpu::microscope::Report seen;
  /// Reads of unwritten memory that the result does not depend on: such memory holds NaNs, and the
  /// rung agrees nevertheless. (seen.unwritten has those that it may depend on.)
  std::vector<cuda_on_cpu::microscope::Unwritten> unused;

  /// True if it agrees, and nothing was found that may be wrong in another order of the threads.
  bool is_in_order() const;
  /// Loads of each array by all blocks, as far as those that were counted tell, for an element of
  /// the outputs (for all, where there is none).
  std::map<std::string, double> loads_per_output() const;
};

/// As `inspect --json` writes it: schema convladder-inspect-1 (docs/microscope.md).
std::string inspect_json(const Inspection& inspection);
/// As `inspect --trace` writes it: schema convladder-trace-1 (docs/microscope.md).
/// @throws BadInput if it would have more requests than a person can watch
std::string inspect_trace(const Inspection& inspection);
/// For a terminal: the kernels' source with its numbers, and what they mean in words.
std::string inspect_text(const Inspection& inspection);
/// As `inspect --html` writes it: one file that needs nothing else.
std::string inspect_page(const Inspection& inspection);

/// Runs the rung whose instrumented library CONVLADDER_INSPECTED names (see ./ladder inspect). With
/// C linkage: program.cpp finds it in its library by name.
/// @return an ExitStatus: kSomeDiffer for a wrong result, a race or an unwritten read.
/// @throws BadInput
extern "C" int convladder_inspect(const Options& given);

}  // namespace convladder::command

/// @file
/// @brief Source lines and variable names of a shared library, obtained from binutils.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda_on_cpu::microscope {

/// A line of source, and the function around it.
struct SourceLine {
  std::string file;
  unsigned line = 0;
  std::string function;  ///< without namespaces, parameters and template arguments
};

/// The lines of these return addresses, innermost inlined function first.
std::vector<std::vector<SourceLine>> source_lines(const std::string& library,
                                                  const std::vector<std::uintptr_t>& pcs);

/// A variable's offset in its section or in thread-local storage.
struct Variable {
  std::uint64_t bytes;
  std::string name;  ///< as SourceLine::function
};
struct Variables {
  std::map<std::uint64_t, Variable> thread_local_ones;  ///< by offset
  std::map<std::uint64_t, Variable> others;             ///< by address in the file
};
Variables variables_of(const std::string& library);

/// The variable that contains this offset, or null.
const std::pair<const std::uint64_t, Variable>* variable_at(
    const std::map<std::uint64_t, Variable>& variables, std::uint64_t offset);

/// The demangled name; unchanged if it is not a C++ name.
std::string demangled(const std::string& name);

/// Its last component, without parameters and template arguments: "tile" of "a::f<3>(int)::tile".
std::string short_name(const std::string& name);

}  // namespace cuda_on_cpu::microscope

#include <cxxabi.h>

#include <cstdlib>
#include <iterator>

#include "source_lines.hpp"

namespace cuda_on_cpu::microscope {

std::string demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

std::string short_name(const std::string& name) {
  // Scanned from the end: a component ends at "::" outside of brackets.
  std::string kept;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) {
      if (c == ':' && i + 1 < name.size() && name[i + 1] == ':') {
        kept.clear();
        begin = ++i + 1;
        continue;
      }
      if (c == ' ') {  // a return type, or "const" after the parameters
        if (name.compare(i, 6, " const") == 0) break;
        kept.clear();
        begin = i + 1;
        continue;
      }
      kept += c;
    }
    if (c == '>' || c == ')') --depth;
  }
  if (kept.empty()) kept = name.substr(begin);
  return kept;
}

const std::pair<const std::uint64_t, Variable>* variable_at(
    const std::map<std::uint64_t, Variable>& variables, std::uint64_t offset) {
  const auto next = variables.upper_bound(offset);
  if (next == variables.begin()) return nullptr;
  const auto& found = *std::prev(next);
  return offset < found.first + found.second.bytes ? &found : nullptr;
}

}  // namespace cuda_on_cpu::microscope

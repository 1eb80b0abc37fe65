/// @file in_code.hpp
/// @brief Parts of problems as C++ source.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/text.hpp"

namespace convladder::command {

/// A DType's enumerator.
inline const char* in_code(DType dtype) {
  constexpr const char* kNames[] = {"f32", "i32", "f16", "bf16", "f8"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// "{{1, 2, 3, 4}}".
inline std::string in_code(const PerAxis& axes) {
  return text("{{", joined(axes.value, ", "), "}}");
}

/// The rulebook of a sparse problem.
std::string in_code(const RulebookProblem& problem);

/// LadderCommand::in_code from a function for the ladder's own problem type.
template <class P>
std::function<std::string(const Problem&)> code_of(std::string (*in_code)(const P&)) {
  return [in_code](const Problem& problem) { return in_code(std::get<P>(problem)); };
}

}  // namespace convladder::command

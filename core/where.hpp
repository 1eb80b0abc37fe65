/// @file where.hpp
/// @brief The places where rungs run.
#pragma once

#include <array>

namespace convladder {

/// Where a rung runs: on the host, as a .cu file on the host (cuda_on_cpu), or on a GPU.
enum class Where { cpu, emulated, gpu };

/// All places, in the order of tables.
inline constexpr std::array<Where, 3> kEverywhere = {Where::cpu, Where::emulated, Where::gpu};

/// The name on the command line: "emulated".
constexpr const char* name_of(Where where) {
  return where == Where::cpu ? "cpu" : where == Where::emulated ? "emulated" : "gpu";
}

}  // namespace convladder

/// @file settings.hpp
/// @brief What the environment asks of the tests.
#pragma once

#include <cstdint>

namespace convladder::testing {

struct Settings {
  bool small = false;  ///< CONVLADDER_SMALL=1: small problems, exact mode alone, for sanitizers
  bool huge = false;   ///< CONVLADDER_HUGE=1: also the problems of many GB, on a GPU
  bool require_gpu = false;  ///< CONVLADDER_REQUIRE_GPU=1: a missing GPU is a failure
  bool poison = true;      ///< CONVLADDER_POISON=0: no NaN fill, for compute-sanitizer's initcheck
  std::uint64_t seed = 0;  ///< CONVLADDER_SEED; without it, another one in each run
};

/// Read once, when first asked for.
const Settings& settings();

/// `suite --device sm_86`: makes the emulated GPU that card. Records are of the default device, so
/// tests of rungs then leave out the comparison with them. False if there is no such model.
bool choose_device(const char* architecture);

/// Whether there was a `--device`.
bool device_is_chosen();

}  // namespace convladder::testing

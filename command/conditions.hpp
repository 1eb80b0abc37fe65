/// @file conditions.hpp
/// @brief The conditions of a run beside its problem: settings that must not change a result, and
/// sites that every rung must reject.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rung.hpp"
#include "oracle/runner.hpp"

namespace convladder::command {

/// The values of `--offset`, `--thread-order`, `--most-blocks` and `--bad-sites`.
struct Conditions {
  std::optional<std::string> offset, thread_order, most_blocks, bad_sites;  ///< As given.
};

/// The names of the options.
inline const std::vector<std::string> kConditions = {"offset", "thread-order", "most-blocks",
                                                     "bad-sites"};

/// Sets the condition with that name. @throws std::logic_error for an unknown name
void set_condition(Conditions& conditions, const std::string& name, const std::string& value);

/// Applies conditions for the lifetime of the object and restores the defaults afterwards.
class InForce {
 public:
  /// @param seed of the random thread order and of the bad sites
  /// @throws BadInput for invalid values and for arrays that the problem does not have
  InForce(const Conditions& conditions, const Signature& signature, std::uint64_t seed);
  ~InForce();
  InForce(const InForce&) = delete;
  InForce& operator=(const InForce&) = delete;

  /// The placement of the arrays in memory, and the rows of sites that are invalid.
  const RunOptions& run_options() const { return run_options_; }

 private:
  RunOptions run_options_;
  std::int64_t blocks_before_;
};

}  // namespace convladder::command

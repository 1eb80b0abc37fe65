/// @file conditions.hpp
/// @brief Under what rungs run, beside their problem: what must make no difference to a result, and
/// sites that every rung must refuse.
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

/// What `--offset`, `--thread-order`, `--most-blocks` and `--bad-sites` say.
struct Conditions {
  std::optional<std::string> offset, thread_order, most_blocks, bad_sites;  ///< As given.
};

/// The names of the options.
inline const std::vector<std::string> kConditions = {"offset", "thread-order", "most-blocks",
                                                     "bad-sites"};

/// Sets the condition with that name. @throws std::logic_error if there is none
void set_condition(Conditions& conditions, const std::string& name, const std::string& value);

/// Puts conditions into force for as long as it lives, and the defaults back afterwards.
class InForce {
 public:
  /// @param seed of threads that run in any order, and of bad sites
  /// @throws BadInput for values that make no sense, and for arrays that the problem has not
  InForce(const Conditions& conditions, const Signature& signature, std::uint64_t seed);
  ~InForce();
  InForce(const InForce&) = delete;
  InForce& operator=(const InForce&) = delete;

  /// How the arrays lie in memory, and which rows of sites are unusable.
  const RunOptions& run_options() const { return run_options_; }

 private:
  RunOptions run_options_;
  std::int64_t blocks_before_;
};

}  // namespace convladder::command

/// @file selection.hpp
/// @brief Selects the rungs, and the places where they run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command/options.hpp"
#include "core/rung.hpp"

namespace convladder::command {

/// A rung in one place: a row of a comparison.
struct Seat {
  const Rung* rung = nullptr;
  Where where = Where::cpu;
};

/// True if the rung has code for that place and the place is available.
bool can_run(const Seat& seat);

/// The rung with that name, or whose name ends with it, and its ladder.
/// @throws BadInput if there is none, with the nearest name, or more than one
std::pair<const Ladder*, const Rung*> rung_named(const std::string& name);

/// The selection of --rung and --backend among some ladders.
class Selection {
 public:
  /// @throws BadInput if a pattern matches no rung of these ladders, a requested place is not
  /// available, or no rung remains
  Selection(const Options& options, const std::vector<const Ladder*>& ladders);

  /// The rows of a ladder: every selected rung at every requested place for which it has code, also
  /// if the place is not available.
  std::vector<Seat> seats(const Ladder& ladder) const;

 private:
  std::vector<std::string> globs_;
  std::vector<Where> places_;
};

}  // namespace convladder::command

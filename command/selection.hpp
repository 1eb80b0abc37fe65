/// @file selection.hpp
/// @brief Which rungs run, and where.
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

/// True if the rung has code for that place, and the place is there.
bool can_run(const Seat& seat);

/// The rung that is called so, or whose name ends so, and its ladder.
/// @throws BadInput if there is none, with the nearest name, or more than one
std::pair<const Ladder*, const Rung*> rung_named(const std::string& name);

/// What --rung and --backend choose from some ladders.
class Selection {
 public:
  /// @throws BadInput if a glob matches no rung of these ladders, a place is asked for that is not
  /// there, or nothing remains
  Selection(const Options& options, const std::vector<const Ladder*>& ladders);

  /// The rows of a ladder: every chosen rung in every place where it can run and that was asked
  /// for, also if the place is not there.
  std::vector<Seat> seats(const Ladder& ladder) const;

 private:
  std::vector<std::string> globs_;
  std::vector<Where> places_;
};

}  // namespace convladder::command

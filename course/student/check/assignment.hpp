/// @file assignment.hpp
/// @brief What this assignment is about: its ladders with the rungs of this folder, and the cases
/// that they are tried on. (check/assignment.cpp and check/cases.txt were written for it.)
#pragma once

#include <string>
#include <vector>

#include "core/rung.hpp"

namespace convladder::check {

/// The ladders with the rungs that are judged.
const std::vector<Ladder>& ladders();
/// The ladder with the hunt's rung as you got it and as you mend it; no rungs: there is no hunt.
const Ladder& hunt();

/// A rung and the ladder it stands on.
struct Judged {
  const Ladder* ladder;  ///< Where it stands.
  const Rung* rung;      ///< Itself.
};

/// @throws BadInput if no rung of these ladders is called so, or ends so
Judged rung_named(const std::string& name);

/// A function that is to be written.
struct Exercise {
  std::string number;    ///< "3.1"
  std::string function;  ///< "load_tile"
  std::string rung;      ///< Whose file it stands in.
};

const std::vector<Exercise>& exercises();  ///< All of them, in order.

/// A problem that a rung is tried on. Its name tells the family: F3.p2 is the second public case of
/// family 3; cases whose names begin with c are counted under the microscope, and not judged.
struct Case {
  std::string name, rung;
  std::string words;  ///< As for `./ladder inspect`: "--c 3 --h 8 ...".

  bool is_counted() const { return name.starts_with('c'); }
  int family() const { return std::stoi(name.substr(1)); }
};

/// A bound on what is counted.
struct Budget {
  std::string id, on_case, counter;
  double most;  ///< What full marks allow.
};

std::vector<Case> read_cases();      ///< check/cases.txt
std::vector<Budget> read_budgets();  ///< Likewise.

/// Something that must hold beside the public cases: a relation between rungs, or a sweep over more
/// problems than cases have room for.
struct Property {
  std::string name;             ///< "adjoint"
  std::string (*difference)();  ///< Where it does not hold, in words; empty: nowhere.
};

const std::vector<Property>& properties();  ///< Those of this assignment.

/// im2col and col2im are adjoint: <im2col(x), c> = <x, col2im(c)> for the problems of all cases of
/// im2col.
std::string adjoint();
/// Every map hands out every tile exactly once, for all counts of tiles up to 40.
std::string every_tile();

}  // namespace convladder::check

/// @file table.hpp
/// @brief A comparison as a table, printed row by row during the run.
#pragma once

#include <string>
#include <vector>

#include "command/report.hpp"

namespace convladder::command {

/// "1.23 ms".
std::string time_text(double milliseconds);

/// A table of one ladder. Rows of places that are not available are summarised in one line at the
/// end.
class Table {
 public:
  explicit Table(const std::vector<Seat>& seats);

  std::string header() const;
  /// The line or lines of a row; empty if it only counts towards skipped().
  std::string row(const Row& row, const std::vector<Row>& before) const;
  /// The reference values of the errors marked with a star; empty if there are none.
  std::string footnote(const std::vector<Row>& rows) const;
  /// One line for each place where rungs were skipped; empty if there are none.
  std::string skipped(const std::vector<Row>& rows) const;

 private:
  std::size_t rung_width_;
  bool narrow_;  ///< The terminal is narrow: the name of a rung has a line of its own.
};

/// The reports of one ladder on several problems as one: a row agrees if it agrees on all problems.
Report merged(const std::vector<Report>& reports, const std::vector<std::string>& problem_names);

/// The title lines of a ladder's table.
std::string title_lines(const Ladder& ladder, const std::string& problem, Data data);

/// `words` in lines of the terminal's width; all lines but the first are indented.
std::string wrapped(const std::string& words, std::size_t first_column, std::size_t indent);

}  // namespace convladder::command

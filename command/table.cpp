#include "command/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

#include "command/terminal.hpp"

namespace convladder::command {
namespace {

constexpr std::size_t kWhere = 10, kResult = 10, kError = 10, kTime = 10, kSpeedUp = 10;
constexpr std::size_t kBesideRung = kWhere + kResult + kError + kTime + kSpeedUp;

std::string formatted(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

/// Three significant digits without an exponent: 0.123, 1.23, 12.3, 123, 1234.
std::string three_digits(double value) {
  return formatted(value < 1       ? "%.3f"
                   : value < 9.995 ? "%.2f"
                   : value < 99.95 ? "%.1f"
                                   : "%.0f",
                   value);
}

std::string ratio_text(double value) {
  return formatted(value < 9.995 ? "%.2f x" : value < 99.95 ? "%.1f x" : "%.0f x", value);
}

std::string error_text(const Outcome& outcome) {
  if (!outcome.ran) return "-";
  if (outcome.exact) return "exact";
  if (!std::isfinite(outcome.max_error)) return "nan or inf";
  return formatted("%.1e", outcome.max_error) + (*outcome.relative_to == '\0' ? "" : "*");
}

Style style_of(Status status) {
  switch (status) {
    case Status::agrees: return Style::good;
    case Status::differs: return Style::bad;
    case Status::declined: return Style::warning;
    case Status::skipped: return Style::dim;
  }
  return Style::plain;
}

}  // namespace

std::string time_text(double milliseconds) {
  if (milliseconds < 1) return three_digits(milliseconds * 1000) + " us";
  if (milliseconds < 1000) return three_digits(milliseconds) + " ms";
  return three_digits(milliseconds / 1000) + " s ";
}

std::string wrapped(const std::string& words, std::size_t first_column, std::size_t indent) {
  const std::size_t width = output_width();
  std::istringstream stream(words);
  std::string lines, word;
  std::size_t column = first_column;
  while (stream >> word) {
    const bool first = lines.empty();
    if (!first && column + 1 + word.size() > width && indent + word.size() <= width) {
      lines += "\n" + std::string(indent, ' ') + word;
      column = indent + word.size();
    } else {
      lines += (first ? "" : " ") + word;
      column += word.size() + (first ? 0 : 1);
    }
  }
  return lines;
}

Table::Table(const std::vector<Seat>& seats) : rung_width_(4), narrow_(false) {
  for (const Seat& seat : seats) rung_width_ = std::max(rung_width_, seat.rung->name.size());
  narrow_ = 2 + rung_width_ + 2 + kBesideRung > output_width();
  if (narrow_) rung_width_ = 0;
}

std::string Table::header() const {
  return styled(Style::dim, "  " + left(narrow_ ? "" : "rung", rung_width_ + 2) +
                                left("where", kWhere) + left("result", kResult) +
                                right("max error", kError) + right("time", kTime) +
                                right("speed-up", kSpeedUp));
}

std::string Table::row(const Row& row, const std::vector<Row>& before) const {
  const Outcome& outcome = row.outcome;
  if (outcome.status == Status::skipped) return "";
  // A rung that runs at two places is named once.
  const bool again = !before.empty() && before.back().rung == row.rung &&
                     before.back().outcome.status != Status::skipped;
  const std::string name = again ? "" : row.rung->name;
  std::string line = (narrow_ && !again ? "  " + name + "\n" : "") + "  " +
                     left(narrow_ ? "" : name, rung_width_ + 2) + left(name_of(row.where), kWhere) +
                     styled(style_of(outcome.status), left(name_of(outcome.status), kResult));
  const std::size_t indent = 2 + rung_width_ + 2 + kWhere + kResult;
  if (outcome.ran) {
    const auto faster = speed_up(row, before);
    line += right(error_text(outcome), kError) +
            right(time_means_something(row) ? time_text(outcome.milliseconds) : "-", kTime) +
            right(faster ? ratio_text(*faster) : "-", kSpeedUp);
    if (!outcome.remark.empty()) line += "\n    " + wrapped(outcome.remark, 4, 4);
    if (!outcome.reason.empty()) line += "\n    " + wrapped(printable(outcome.reason), 4, 4);
  } else {
    // Below the name, if the text would hardly fit beside it.
    const bool below = narrow_ && indent + kBesideRung > output_width();
    line += below ? "\n    " + wrapped(printable(outcome.reason), 4, 4)
                  : wrapped(printable(outcome.reason), indent, indent);
  }
  return line;
}

std::string Table::skipped(const std::vector<Row>& rows) const {
  std::string lines;
  for (const Where where : kEverywhere) {
    std::size_t count = 0;
    std::string reason;
    for (const Row& row : rows) {
      if (row.where != where || row.outcome.status != Status::skipped) continue;
      ++count;
      reason = row.outcome.reason;
    }
    if (count == 0) continue;
    const std::string who = text(count, count == 1 ? " rung" : " rungs");
    const std::size_t width = std::max(who.size(), rung_width_) + 2;
    const std::size_t indent = 2 + width + kWhere + kResult;
    lines += (lines.empty() ? "" : "\n") +
             styled(Style::dim, "  " + left(who, width) + left(name_of(where), kWhere) +
                                    left("skipped", kResult)) +
             wrapped(printable(reason), indent, indent);
  }
  return lines;
}

std::string Table::footnote(const std::vector<Row>& rows) const {
  std::vector<std::string> sizes;
  for (const Row& row : rows) {
    const std::string size = row.outcome.relative_to;
    if (!row.outcome.ran || row.outcome.exact || size.empty()) continue;
    if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  }
  if (sizes.empty()) return "";
  return styled(Style::dim,
                "  * " + wrapped("error relative to " + joined(sizes, ", or to "), 4, 4));
}

Report merged(const std::vector<Report>& reports, const std::vector<std::string>& problem_names) {
  Report all = reports.front();
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    Outcome sum{.status = Status::skipped};
    std::map<std::string, std::vector<std::string>> declined;  // problems grouped by reason
    std::size_t ran = 0;
    sum.exact = true;
    for (std::size_t p = 0; p < reports.size(); ++p) {
      const Outcome& one = reports[p].rows[i].outcome;
      if (one.status == Status::declined) declined[one.reason].push_back(problem_names[p]);
      if (one.status == Status::skipped) sum.reason = one.reason;
      if (one.status == Status::differs && sum.status != Status::differs) {
        sum.status = Status::differs;
        sum.reason = problem_names[p] + ": " + one.reason;
      }
      if (one.status == Status::agrees && sum.status != Status::differs)
        sum.status = Status::agrees;
      if (!one.ran) continue;
      ++ran;
      sum.exact = sum.exact && one.exact;
      sum.max_error = std::max(sum.max_error, one.max_error);
      if (sum.remark.empty()) sum.remark = one.remark;
      sum.relative_to = one.relative_to;
      sum.milliseconds += one.milliseconds;
    }
    sum.ran = ran != 0;
    if (!declined.empty() && sum.status != Status::differs) {
      if (sum.status == Status::skipped) sum.status = Status::declined;
      sum.reason.clear();
      for (const auto& [reason, names] : declined) {
        const std::string who =
            names.size() == reports.size() ? ""
            : names.size() > 3 ? text("declined for ", names.size(), " of ", reports.size(), ": ")
                               : "declined for " + joined(names, ", ") + ": ";
        sum.reason += (sum.reason.empty() ? "" : "; ") + who + reason;
      }
    }
    all.rows[i].outcome = std::move(sum);
  }
  return all;
}

std::string title_lines(const Ladder& ladder, const std::string& problem, Data data) {
  return styled(Style::bold, ladder.name) + "  " +
         wrapped(ladder.summary, ladder.name.size() + 2, 4) + "\n" +
         styled(Style::dim,
                wrapped(printable(problem) + (data == Data::integer
                                                  ? "; compared bit for bit"
                                                  : "; compared within a bound on rounding"),
                        0, 4));
}

}  // namespace convladder::command

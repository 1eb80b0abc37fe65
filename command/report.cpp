#include "command/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command/ladders/ladder_command.hpp"
#include "command/program.hpp"
#include "command/terminal.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "ladders/best_rung.hpp"

namespace convladder::command {
namespace {

constexpr int kGpuWarmUpRuns = 2;  // a GPU's first launch loads the kernel's code

nlohmann::ordered_json row_json(const Row& row) {
  const Outcome& outcome = row.outcome;
  nlohmann::ordered_json json = {{"rung", row.rung->name},
                                 {"where", name_of(row.where)},
                                 {"status", name_of(outcome.status)},
                                 {"reason", outcome.reason},
                                 {"exact", nullptr},
                                 {"max_error", nullptr},
                                 {"milliseconds", nullptr},
                                 {"remark", nullptr}};
  if (!outcome.ran) return json;
  if (!outcome.remark.empty()) json["remark"] = outcome.remark;
  json["exact"] = outcome.exact;
  // JSON has neither NaN nor infinity; the reason reports them.
  if (std::isfinite(outcome.max_error)) json["max_error"] = outcome.max_error;
  json["milliseconds"] = outcome.milliseconds;
  return json;
}

/// Declines all seats that could run, because the reference takes too long.
Report without_reference(Prepared prepared, const std::vector<Seat>& seats,
                         const Observer& observer, const std::string& reason) {
  Report report{std::move(prepared.task), prepared.data, {}, {}};
  report.task.given.clear();
  report.task.drawn.clear();
  for (const Seat& seat : seats) {
    Row row{seat.rung, seat.where, {}};
    if (can_run(seat)) {
      row.outcome = {.status = Status::declined,
                     .reason = "the reference, with which it is compared, " + reason};
    } else {
      row.outcome = {.status = Status::skipped, .reason = why_no_gpu()};
    }
    if (observer.end) observer.end(row, report.rows);
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace

Comparison comparison_of(const Task& task, Data data, Arrays inputs) {
  Comparison comparison(*task.ladder, task.problem, data, std::move(inputs),
                        task.given.empty() ? Roundings::independent : Roundings::any);
  require_float_range(comparison);
  return comparison;
}

Report run(Prepared prepared, const std::vector<Seat>& seats, bool keep_outputs,
           const Observer& observer, RunOptions run_options) {
  const double seconds =
      slowness_of_this_machine() *
      expected_seconds_of_reference(*prepared.task.ladder, prepared.task.problem);
  if (run_options.limit > 0 && seconds > run_options.limit)
    return without_reference(std::move(prepared), seats, observer,
                             over_limit(seconds, run_options.limit));
  if (observer.start) observer.start(prepared, seconds);
  const Comparison comparison =
      comparison_of(prepared.task, prepared.data, std::move(prepared.inputs));
  Report report{std::move(prepared.task), prepared.data, {}, {}};
  if (command_of(report.task.ladder->name).below_table)
    report.units = comparison.expected().front().integers;
  report.task.given.clear();
  report.task.drawn.clear();
  run_options.expected_seconds = [&](const Rung& rung) {
    return expected_seconds(*report.task.ladder, rung, comparison.problem()).value_or(0);
  };
  for (const Seat& seat : seats) {
    if (observer.begin) observer.begin(seat);
    Row row{seat.rung, seat.where, {}};
    run_options.warm_up_runs = seat.where == Where::gpu ? kGpuWarmUpRuns : 0;
    row.outcome = comparison.run(*seat.rung, seat.where, run_options);
    if (!keep_outputs) row.outcome.outputs.clear();
    if (observer.end) observer.end(row, report.rows);
    report.rows.push_back(std::move(row));
  }
  return report;
}

bool time_means_something(const Row& row) {
  return row.outcome.ran && row.where != Where::emulated;
}

std::optional<double> speed_up(const Row& row, const std::vector<Row>& before) {
  if (!time_means_something(row) || row.outcome.milliseconds <= 0) return {};
  for (const Row& other : before) {
    const bool same_place = other.where == row.where || !other.rung->is_cuda();
    if (other.rung->name == row.rung->previous && same_place && time_means_something(other)) {
      return other.outcome.milliseconds / row.outcome.milliseconds;
    }
  }
  return {};
}

std::string compare_json(const std::vector<Report>& reports) {
  nlohmann::ordered_json json = {{"gpu", nullptr}, {"ladders", nlohmann::ordered_json::array()}};
  if (const Device* gpu = device_at(Where::gpu)) json["gpu"] = gpu->name();
  for (const Report& report : reports) {
    nlohmann::ordered_json ladder = {{"ladder", report.task.ladder->name},
                                     {"problem", report.task.title},
                                     {"rungs", nlohmann::ordered_json::array()}};
    for (const Row& row : report.rows) ladder["rungs"].push_back(row_json(row));
    json["ladders"].push_back(std::move(ladder));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool gpu_required() {
  const char* const required = std::getenv("CONVLADDER_REQUIRE_GPU");
  return required != nullptr && *required != '\0' && std::string_view(required) != "0";
}

int status_of(const std::vector<Report>& reports) {
  std::size_t differ = 0, without_gpu = 0;
  for (const Report& report : reports) {
    for (const Row& row : report.rows) {
      if (row.outcome.status == Status::differs) ++differ;
      if (row.outcome.status == Status::skipped && row.where == Where::gpu) ++without_gpu;
    }
  }
  if (gpu_required() && without_gpu != 0) {
    std::fprintf(
        stderr, "convladder: CONVLADDER_REQUIRE_GPU is set, but %zu %s skipped on the GPU: %s\n",
        without_gpu, without_gpu == 1 ? "rung was" : "rungs were", printable(why_no_gpu()).c_str());
    return kSomeDiffer;
  }
  return differ == 0 ? kAllAgree : kSomeDiffer;
}

std::string tally(const std::vector<Report>& reports) {
  std::size_t counts[4] = {};
  for (const Report& report : reports) {
    for (const Row& row : report.rows) ++counts[static_cast<std::size_t>(row.outcome.status)];
  }
  const auto count = [&](Status status) { return counts[static_cast<std::size_t>(status)]; };
  std::string line = styled(
      Style::good, text(count(Status::agrees), count(Status::agrees) == 1 ? " agrees" : " agree"));
  if (count(Status::differs)) {
    line += ", " + styled(Style::bad, text(count(Status::differs),
                                           count(Status::differs) == 1 ? " differs" : " differ"));
  }
  if (count(Status::declined)) line += text(", ", count(Status::declined), " declined");
  if (count(Status::skipped)) line += text(", ", count(Status::skipped), " skipped");
  return line;
}

}  // namespace convladder::command

/// @file progress.hpp
/// @brief A progress bar below the lines that a long run prints.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace convladder::command {

/// Prints lines on standard output and, if standard error is a terminal, a bar in the line below
/// them. Otherwise only the lines are printed, each flushed, so that a log shows the progress.
class Progress {
 public:
  /// A bar of `steps` steps, which appears after a short delay. `work` is the total weight of the
  /// steps, in any unit.
  explicit Progress(std::size_t steps, double work);
  /// All steps have the same weight.
  explicit Progress(std::size_t steps) : Progress(steps, static_cast<double>(steps)) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Sets the description of the current work. @param detail its progress; called whenever the bar
  /// is drawn
  void begin(const std::string& what, std::function<std::string()> detail = {});
  /// Completes one step.
  void step();
  /// Sets the weight of each following step.
  void set_work_of_a_step(double work);
  /// Pauses the bar until go_on() and shows `what`: this time does not count for the estimate.
  void wait(const std::string& what);
  void go_on();
  /// "about 20 s left", estimated from the speed so far; empty at the start.
  std::string time_left();
  /// A function that estimates the seconds of other work that must be done first.
  void set_other_work(std::function<double()> seconds_left);
  /// Prints a line of the run's output. @throws BadInput if it cannot be written
  void line(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  void draw();
  void erase();
  std::string time_left_locked() const;

  const std::size_t steps_;
  const double work_;
  const Clock::time_point start_ = Clock::now();
  std::size_t done_ = 0;
  double work_done_ = 0, work_of_a_step_ = 1;
  Clock::duration waited_{};
  std::optional<Clock::time_point> waiting_since_;
  std::function<double()> other_work_;
  std::string what_, what_before_;
  std::function<std::string()> detail_;
  bool drawn_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread ticker_;  // last: it uses all the others
};

}  // namespace convladder::command

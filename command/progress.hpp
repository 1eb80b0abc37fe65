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

/// Prints lines on standard output and, where standard error is a terminal, a bar in the line below
/// them. Elsewhere there are only the lines, each flushed, so that a log shows how far the run is.
class Progress {
 public:
  /// A bar of `steps` steps; it appears when the run has taken a moment. `work` is what they are
  /// worth together, in any unit.
  explicit Progress(std::size_t steps, double work);
  /// Every step is worth the same.
  explicit Progress(std::size_t steps) : Progress(steps, static_cast<double>(steps)) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What is being done now. @param detail how far that is; asked whenever the bar is drawn
  void begin(const std::string& what, std::function<std::string()> detail = {});
  /// One more step is done.
  void step();
  /// What each step from now on is worth.
  void set_work_of_a_step(double work);
  /// Nothing is done until go_on(), but for `what`: that time does not count for the pace.
  void wait(const std::string& what);
  void go_on();
  /// "about 20 s left", by the pace so far; empty at the beginning.
  std::string time_left();
  /// Who knows of other work that must be done first: seconds that it will take.
  void set_other_work(std::function<double()> seconds_left);
  /// A line of the run's output. @throws BadInput if it cannot be written
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

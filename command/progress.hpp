/// @file progress.hpp
/// @brief A progress bar below the lines that a long run prints.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace convladder::command {

/// Prints lines on standard output and, where standard error is a terminal, a bar in the line below
/// them. Elsewhere there are only the lines, each flushed, so that a log shows how far the run is.
class Progress {
 public:
  /// A bar of `steps` steps; it appears when the run has taken a moment.
  explicit Progress(std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What is being done now.
  void begin(const std::string& what);
  /// One more step is done.
  void step();
  /// A line of the run's output. @throws BadInput if it cannot be written
  void line(const std::string& text);

 private:
  void draw();
  void erase();

  const std::size_t steps_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t done_ = 0;
  std::string what_;
  bool drawn_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread ticker_;  // last: it uses all the others
};

}  // namespace convladder::command

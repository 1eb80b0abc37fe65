/// @file interruptible.hpp
/// @brief Work for which Ctrl-C need not wait.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace convladder::python {

/// A run in a thread of its own.
struct Run {
  std::mutex mutex;         ///< Guards the other two.
  bool done = false;        ///< Nobody works on it any more.
  bool left_alone = false;  ///< Nobody waits for it any more.
};

/// Leaves a run that may still go on. @param kept what it reads and writes; Python's objects are
/// released, with the GIL, by the next call of release_kept() after its end
void leave_alone(const std::shared_ptr<Run>& run, std::shared_ptr<void> kept);

/// Marks the run as done.
void end(Run& run);

/// Releases what was kept for runs that have ended since they were left alone. Needs the GIL.
void release_kept();

/// What body() returns, called without the GIL in a thread of its own. Ctrl-C need not wait for it:
/// the run then goes on in its thread, with what body() owns, and nobody gets its result.
/// @param kept Python's objects whose memory body() uses
/// @pre the caller has released the GIL
/// @throws nb::python_error KeyboardInterrupt, or what else a handler of signals raises
template <class Body>
auto interruptible(Body body, const std::shared_ptr<void>& kept = {}) {
  const auto run = std::make_shared<Run>();
  std::packaged_task<decltype(body())()> task(std::move(body));
  auto result = task.get_future();
  std::thread([run, task = std::move(task)]() mutable {
    task();
    task = {};  // what body() owns
    end(*run);
  }).detach();
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    const nanobind::gil_scoped_acquire python;
    if (PyErr_CheckSignals() == 0) continue;
    leave_alone(run, kept);
    throw nanobind::python_error();
  }
  return result.get();
}

}  // namespace convladder::python

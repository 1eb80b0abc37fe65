/// @file interruptible.hpp
/// @brief Work that Ctrl-C can interrupt.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace convladder::python {

/// A run in a separate thread.
struct Run {
  std::mutex mutex;         ///< Guards the other two.
  bool done = false;        ///< The run has ended.
  bool left_alone = false;  ///< No caller waits for it any more.
};

/// Abandons a run that may still be in progress. @param kept objects that it uses; Python's objects
/// are released, with the GIL, by the next call of release_kept() after its end
void leave_alone(const std::shared_ptr<Run>& run, std::shared_ptr<void> kept);

/// Marks the run as done.
void end(Run& run);

/// Releases the objects of abandoned runs that have ended. Needs the GIL.
void release_kept();

/// Returns the result of body(), called without the GIL in a separate thread. Ctrl-C need not wait
/// for it: the run then continues in its thread with the objects that body() owns, and its result
/// is dropped.
/// @param kept Python's objects whose memory body() uses
/// @pre the caller has released the GIL
/// @throws nb::python_error KeyboardInterrupt, or another exception of a signal handler
template <class Body>
auto interruptible(Body body, const std::shared_ptr<void>& kept = {}) {
  const auto run = std::make_shared<Run>();
  std::packaged_task<decltype(body())()> task(std::move(body));
  auto result = task.get_future();
  std::thread([run, task = std::move(task)]() mutable {
    task();
    task = {};  // objects that body() owns
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

#include "interruptible.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <utility>
#include <vector>

namespace convladder::python {
namespace {

/// Runs that no caller waits for and that have not ended.
std::atomic<int> runs_left_alone = 0;

/// An abandoned run, and the objects that it uses.
using Left = std::pair<std::shared_ptr<Run>, std::shared_ptr<void>>;

/// All abandoned runs. Guarded by the GIL, and never destroyed: at the end of the program a run may
/// still use its objects, and there is no interpreter to release them.
std::vector<Left>& left() {
  static auto& all = *new std::vector<Left>;
  return all;
}

}  // namespace

void leave_alone(const std::shared_ptr<Run>& run, std::shared_ptr<void> kept) {
  // A process that ends frees the memory that a run uses.
  static const int at_exit = on_exit(
      [](int status, void*) {
        if (runs_left_alone == 0) return;
        std::fflush(nullptr);
        _exit(status);
      },
      nullptr);
  static_cast<void>(at_exit);
  const std::lock_guard lock(run->mutex);
  if (run->done) return;
  run->left_alone = true;
  ++runs_left_alone;
  left().emplace_back(run, std::move(kept));
}

void end(Run& run) {
  const std::lock_guard lock(run.mutex);
  run.done = true;
  if (run.left_alone) --runs_left_alone;
}

void release_kept() {
  std::erase_if(left(), [](const Left& kept) {
    const std::lock_guard lock(kept.first->mutex);
    return kept.first->done;
  });
}

}  // namespace convladder::python

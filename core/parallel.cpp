#include "core/parallel.hpp"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <vector>

namespace convladder {
namespace {

/// Spins until done(), for a short time only: a sleeping thread is woken with a delay of some 10
/// microseconds.
template <class Done>
void wait_awake(const Done& done) {
  constexpr auto kMoment = std::chrono::microseconds(100);
  const auto begin = std::chrono::steady_clock::now();
  while (!done() && std::chrono::steady_clock::now() - begin < kMoment) {
  }
}

/// A pool of one thread fewer than there are cores. Any number of other threads may share work with
/// them at the same time.
class Pool {
 public:
  /// Of this process: a child created by fork() has none of its parent's threads.
  const pid_t process = getpid();

  void start() {
    try {
      for (int i = 1; i < cores(); ++i) std::thread([this] { help(); }).detach();
    } catch (const std::system_error&) {
      // Work is then shared with fewer threads, or done by the caller alone.
    }
  }

  void share(int helpers, const std::function<void()>& work) {
    Offer offer{&work, helpers};
    {
      const std::lock_guard lock(mutex_);
      offers_.push_back(&offer);
      ++offered_;
    }
    for (int i = 0; i < helpers; ++i) wake_.notify_one();
    work();
    {
      const std::lock_guard lock(mutex_);
      std::erase(offers_, &offer);
    }
    wait_awake([&] { return offer.running == 0; });
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return offer.running == 0; });
  }

 private:
  /// Work that requests helpers. It exists until it is no longer listed and no helper runs it.
  struct Offer {
    const std::function<void()>* work;
    int wanted;                    ///< Helpers that may still join.
    std::atomic<int> running = 0;  ///< Helpers that are running.
  };

  /// The first offer that requests a helper; null if there is none.
  Offer* open_offer() {
    const auto open =
        std::ranges::find_if(offers_, [](const Offer* offer) { return offer->wanted > 0; });
    return open == offers_.end() ? nullptr : *open;
  }

  /// The loop of a pool thread, for the lifetime of the process.
  void help() {
    for (std::unique_lock lock(mutex_);;) {
      const std::int64_t seen = offered_;
      Offer* const offer = open_offer();
      if (offer == nullptr) {
        lock.unlock();
        wait_awake([&] { return offered_ != seen; });
        lock.lock();
        wake_.wait(lock, [&] { return offered_ != seen; });
        continue;
      }
      --offer->wanted;
      ++offer->running;
      lock.unlock();
      (*offer->work)();
      lock.lock();
      --offer->running;
      ended_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::vector<Offer*> offers_;
  std::atomic<std::int64_t> offered_ = 0;
};

/// The process's pool. It is never destroyed: its threads may outlive everything else.
Pool& pool() {
  static std::atomic<Pool*> current = nullptr;
  Pool* found = current;
  if (found != nullptr && found->process == getpid()) return *found;
  auto* const made = new Pool;
  if (!current.compare_exchange_strong(found, made)) {
    delete made;
    return *found;
  }
  made->start();
  return *made;
}

}  // namespace

void work_with_helpers(int helpers, const std::function<void()>& work) {
  if (helpers <= 0) return work();
  pool().share(helpers, work);
}

}  // namespace convladder

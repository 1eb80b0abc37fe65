#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>

#include "benchmarks/gpu/calls.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "benchmarks/gpu/quantile.hpp"
#include "benchmarks/gpu/round.hpp"
#include "core/cuda/launch.hpp"

namespace convladder::benchmarks {
namespace {

// How long a measurement takes. A graph holds launches of about kGraphUs, so that its own launch
// (a few us) does not count; each entrant gets about kBudgetUs, but at least kLeastRepeats.
constexpr double kGraphUs = 1000;
constexpr double kBudgetUs = 30000;
constexpr double kSlowUs = 20000;      // a run that takes this long is repeated only kSlowRepeats
constexpr double kTwiceUs = 4000;      // graphs shorter than this run once more, untimed, before
constexpr double kRotationUs = 20000;  // longer rotations are replaced by a flush before each run
constexpr int kLeastRepeats = 7;
constexpr int kMostRepeats = 21;
constexpr int kSlowRepeats = 2;
constexpr int kMostLaunches = 100;
// A baseline this many times slower than the fastest is left out.
constexpr double kHopeless = 20;

}  // namespace

void Round::run(const std::function<void(const std::string&)>& note) {
  for (Participant& p : *participants_) prepare(p);
  drop_hopeless();
  for (Participant& p : *participants_) guarded(p, [&] { record(p); });
  int most = 0;
  for (const Participant& p : *participants_) most = std::max(most, p.repeats);
  // From the slowest clock of the GPU to the fastest: everybody's turn comes in every repeat.
  for (int repeat = 0; repeat < most; ++repeat) {
    for (Participant& p : *participants_) {
      if (!p.out() && repeat < p.repeats) guarded(p, [&] { time(p, repeat == p.repeats - 1); });
    }
  }
  for (Participant& p : *participants_) {
    p.graph.reset();
    if (p.out()) {
      note(p.name + ": " + p.timing.wrong);
      continue;
    }
    std::sort(p.times_us.begin(), p.times_us.end());
    p.timing.median_us = quantile(p.times_us, 0.5);
    p.timing.spread_us = quantile(p.times_us, 0.75) - quantile(p.times_us, 0.25);
  }
}

void Round::guarded(Participant& p, const std::function<void()>& work) {
  if (p.out()) return;
  try {
    work();
  } catch (const std::bad_alloc&) {
    p.timing.wrong = "asks for more memory, while it runs, than is free";
    p.timing.declined = true;
  } catch (const std::runtime_error& error) {
    p.timing.wrong = error.what();
    gpu::check(cudaDeviceSynchronize());  // throws where the device is lost
  }
}

void Round::prepare(Participant& p) {
  guarded(p, [&] {
    estimate(p);
    if (p.very_slow()) return;
    for (int copy = 1; memory_->has_created() && copy < copies(); ++copy) p.run(copy);
    estimate(p);
  });
}

void Round::estimate(Participant& p) {
  wait();
  pool_.forget();
  start_.record();
  const Calls before = calls();
  forget_largest_launch();
  p.run(0);
  const KernelLaunch largest = largest_launch();
  p.timing.launches = static_cast<int>(calls().launches - before.launches);
  p.timing.host_syncs = static_cast<int>(calls().waits - before.waits);
  stop_.record();
  wait();
  p.estimate_us = stop_.since(start_);
  if (p.kind == Participant::Kind::rung) describe_kernel(largest, p.timing);
  p.timing.memory_bytes = pool_.most_used();
  if (p.workspace != nullptr) p.timing.memory_bytes += p.workspace_bytes;
  p.finish(0);
}

void Round::drop_hopeless() {
  double best = 0;
  for (const Participant& p : *participants_) {
    if (p.kind == Participant::Kind::baseline && !p.out() && (best == 0 || p.estimate_us < best))
      best = p.estimate_us;
  }
  std::erase_if(*participants_, [&](const Participant& p) {
    return p.kind != Participant::Kind::rung && p.checked && !p.out() && best > 0 &&
           p.estimate_us > kHopeless * best;
  });
}

void Round::record(Participant& p) {
  const double t = std::max(p.estimate_us, 1.0);
  const auto fill = static_cast<int>(std::clamp(kGraphUs / t, 1.0, 1.0 * kMostLaunches));
  p.launches = fill;
  if (l2_ == L2::cold) {
    p.flush = t * copies() > kRotationUs;
    p.launches = p.flush ? 1 : std::max(1, fill / copies()) * copies();
  }
  const double graph_us = t * p.launches;
  p.repeats = p.very_slow() ? 1
              : graph_us > kSlowUs
                  ? kSlowRepeats
                  : static_cast<int>(
                        std::clamp(kBudgetUs / graph_us, 1.0 * kLeastRepeats, 1.0 * kMostRepeats));
  try {
    const Graph single([&] { p.run(0); });
    if (p.kind == Participant::Kind::rung) single.describe(p.timing);
    p.graph = std::make_unique<Graph>([&] {
      for (int i = 0; i < p.launches; ++i) p.run(i % copies());
    });
  } catch (const std::runtime_error&) {
    // It waits for the host inside of a run.
    gpu::check(cudaDeviceSynchronize());
    p.captured = false;
    p.graph.reset();
  }
  measure_host(p);
}

void Round::measure_host(Participant& p) {
  if (p.very_slow()) {  // what the host adds is lost in it
    p.timing.host_us = p.estimate_us;
    return;
  }
  std::vector<double> times;
  const int repeats = p.estimate_us > kSlowUs ? 1 : kLeastRepeats;
  for (int i = 0; i < repeats; ++i) {
    if (l2_ == L2::cold) flush();
    wait();
    const auto start = std::chrono::steady_clock::now();
    p.run(0);
    wait();
    p.finish(0);
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  p.timing.host_us = quantile(times, 0.5);
}

void Round::flush() const {
  const auto half = static_cast<std::int64_t>(flush_->bytes() / 32 * 16);
  launch_copy(static_cast<char*>(flush_->data()) + half, flush_->data(), half);
}

void Round::enqueue(const Participant& p) const {
  if (p.graph != nullptr) return p.graph->launch();
  for (int i = 0; i < p.launches; ++i) p.run(i % copies());
}

void Round::time(Participant& p, bool last) {
  if (last && p.checked) memory_->poison();
  if (p.flush) {
    flush();
  } else if (p.estimate_us * p.launches < kTwiceUs) {
    enqueue(p);  // brings the L2 into its state; the timed launches are queued behind it
  }
  start_.record();
  enqueue(p);
  stop_.record();
  wait();
  p.times_us.push_back(stop_.since(start_) / p.launches);
  if (last && p.checked && p.kind != Participant::Kind::limit) {
    // Other people's algorithms may round differently, but not compute something else.
    const int used = std::min(copies(), p.launches);
    p.timing.wrong = memory_->wrong(
        used, *p.right, p.kind == Participant::Kind::baseline ? baseline_tolerance_ : 1.0);
    if (p.created != nullptr && p.timing.wrong.empty())
      p.timing.wrong = memory_->wrong({p.created->begin(), p.created->begin() + used});
    p.finish(0);
  }
}

}  // namespace convladder::benchmarks

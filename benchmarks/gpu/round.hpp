/// @file round.hpp
/// @brief A round of a contest: everybody's turn again and again, in one state of the L2.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/contest.hpp"
#include "benchmarks/gpu/contest_memory.hpp"
#include "benchmarks/gpu/device_objects.hpp"
#include "benchmarks/gpu/graph.hpp"

namespace convladder::benchmarks {

/// Somebody who takes part, on his way through a measurement.
struct Participant {
  enum class Kind { rung, baseline, limit };  ///< A limit does less than the same work.

  std::string name;
  Kind kind = Kind::rung;
  bool checked = true;                          ///< Its outputs are those of the contest.
  const std::vector<Samples>* right = nullptr;  ///< What they are held against, if checked.
  std::function<void(int copy)> run;            ///< Enqueues one run on a copy of the arrays.
  /// Reads what a run left for the host, once the GPU is done.
  std::function<void(int copy)> finish = [](int) {};
  std::unique_ptr<Buffer> workspace = {};
  std::int64_t workspace_bytes = 0;
  /// By copy; where it stays, as `run` writes to it.
  std::shared_ptr<std::vector<CreatedOutputs>> created = {};

  Timing timing = {};
  double estimate_us = 0;
  int launches = 1;    ///< Runs in a graph.
  bool flush = false;  ///< Cold by a flush before each run, not by rotation.
  bool captured = true;
  int repeats = 0;
  std::unique_ptr<Graph> graph = {};
  std::vector<double> times_us = {};

  bool out() const { return !timing.wrong.empty(); }
  /// Timed once; what the L2 holds at its begin does not matter to it.
  bool very_slow() const { return estimate_us > 100'000; }
};

/// A measurement in one state of the L2.
class Round {
 public:
  Round(ContestMemory& memory, L2 l2, const Buffer& flush, double baseline_tolerance,
        std::vector<Participant>& participants)
      : memory_(&memory), l2_(l2), flush_(&flush), baseline_tolerance_(baseline_tolerance),
        participants_(&participants) {}

  /// Times all of them. @param note told what could not be timed, and why
  void run(const std::function<void(const std::string&)>& note);

 private:
  /// A failure is the participant's, not the contest's.
  void guarded(Participant& p, const std::function<void()>& work);

  /// A first run, which loads code, and a second one for an estimate.
  void prepare(Participant& p);

  /// One run: how long it takes, what it launches, and the memory that it needs.
  void estimate(Participant& p);

  /// How many copies of the arrays take turns.
  int copies() const { return l2_ == L2::cold ? memory_->copies() : 1; }

  /// Leaves out baselines and limits that are far slower than the fastest baseline.
  void drop_hopeless();

  /// Decides how often it runs, and records that as a graph, where it can be recorded.
  void record(Participant& p);

  /// The time of a run on the host's clock.
  void measure_host(Participant& p);

  /// Empties the L2 of what runs use.
  void flush() const;

  /// As many runs as are timed together.
  void enqueue(const Participant& p) const;

  /// Times them. The last time, what they leave is checked.
  void time(Participant& p, bool last);

  ContestMemory* memory_;
  L2 l2_;
  const Buffer* flush_;
  double baseline_tolerance_;
  std::vector<Participant>* participants_;
  Event start_, stop_;
  Pool pool_;
};

}  // namespace convladder::benchmarks

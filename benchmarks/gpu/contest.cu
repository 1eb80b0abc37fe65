#include <algorithm>
#include <chrono>
#include <cmath>
#include <list>
#include <memory>
#include <new>

#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/calls.hpp"
#include "benchmarks/gpu/contest.hpp"
#include "benchmarks/gpu/graph.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"
#include "core/error.hpp"
#include "core/half.hpp"

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
// Longer runs are timed once; what the L2 holds at their begin does not matter to them.
constexpr double kVerySlowUs = 100000;
constexpr int kMostLaunches = 100;
constexpr int kMostCopies = 64;
// Arrays of this many times the L2 leave nothing behind when they have gone through it.
constexpr double kFlushes = 3;
constexpr double kFlushesAtLeast = 2;
// Baselines may err this many times as much as rungs: Winograd's and FFT's rounding errors are
// hundreds of times those of plain sums. It is still far less than another result would differ.
constexpr double kLooserFp32 = 300, kLooserTf32 = 4;
// A baseline this many times slower than the fastest is left out.
constexpr double kHopeless = 20;

double l2_bytes() {
  int bytes = 0;
  gpu::check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0));
  return bytes;
}

/// Device memory, freed with this object.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t code = cudaMalloc(&data_, std::max<std::size_t>(bytes, 256));
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw std::bad_alloc();
    }
    gpu::check(code);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { static_cast<void>(cudaFree(data_)); }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

std::size_t bytes_of(const ArraySpec& spec) {
  return static_cast<std::size_t>(element_count(spec.shape)) * size_of(spec.dtype);
}

/// An event with a time.
class Event {
 public:
  Event() { gpu::check(cudaEventCreate(&event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  void record() const { gpu::check(cudaEventRecord(event_, rung_stream())); }
  /// Microseconds from `start` to this event, which must have been reached.
  double since(const Event& start) const {
    float milliseconds = 0;
    gpu::check(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Elements as numbers, exactly.
std::vector<double> numbers_of(const Array& array) {
  if (array.dtype() == DType::i32) {
    const auto integers = array.as<std::int32_t>();
    return {integers.begin(), integers.end()};
  }
  const Array widened = rounded_to(array, DType::f32);
  const auto floats = widened.as<float>();
  return {floats.begin(), floats.end()};
}

void wait() { gpu::check(cudaStreamSynchronize(rung_stream())); }

/// The memory that cudaMallocAsync() gives out. Kept, as applications keep it: by default each wait
/// for the GPU hands all of it back to the system, which takes longer than most runs.
class Pool {
 public:
  Pool() {
    gpu::check(cudaDeviceGetDefaultMemPool(&pool_, 0));
    set(cudaMemPoolAttrReleaseThreshold, ~std::uint64_t{0});
  }
  /// From now on most_used() counts anew.
  void forget() const { set(cudaMemPoolAttrUsedMemHigh, 0); }
  /// Bytes that were allocated at once.
  std::int64_t most_used() const {
    std::uint64_t bytes = 0;
    gpu::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &bytes));
    return static_cast<std::int64_t>(bytes);
  }

 private:
  void set(cudaMemPoolAttr attribute, std::uint64_t value) const {
    gpu::check(cudaMemPoolSetAttribute(pool_, attribute, &value));
  }

  cudaMemPool_t pool_ = nullptr;
};

/// What a rung created in its last run on a copy of the arrays.
struct Created {
  Shape shape;
  void* data = nullptr;
};
using CreatedOutputs = std::map<std::string, Created>;

/// Several copies of a contest's arrays, and scratch memory.
class Memory {
 public:
  Memory(const Contest& contest, int copies) : contest_(&contest) {
    for (const WholeOutput& whole : contest.wholes) {
      Buffer& buffer = right_.emplace_back(whole.right.size_bytes());
      gpu::check(cudaMemcpy(buffer.data(), whole.right.data(), whole.right.size_bytes(),
                            cudaMemcpyHostToDevice));
    }
    for (int copy = 0; copy < copies; ++copy) {
      Copy& arrays = copies_.emplace_back();
      for (const ArraySpec& spec : contest.signature.inputs) {
        const Array& array = contest.inputs.at(spec.name);
        Buffer& buffer = arrays.buffers.emplace_back(array.size_bytes());
        if (copy == 0) {
          gpu::check(
              cudaMemcpy(buffer.data(), array.data(), buffer.bytes(), cudaMemcpyHostToDevice));
        } else {
          gpu::check(cudaMemcpy(buffer.data(), copies_.front().inputs[arrays.inputs.size()].data,
                                buffer.bytes(), cudaMemcpyDeviceToDevice));
        }
        arrays.inputs.push_back({spec.name, spec.dtype, buffer.data()});
      }
      for (const ArraySpec& spec : contest.signature.outputs) {
        if (spec.dynamic) continue;
        Buffer& buffer = arrays.buffers.emplace_back(bytes_of(spec));
        arrays.outputs.push_back({spec.name, spec.dtype, buffer.data()});
      }
    }
    gpu::check(cudaDeviceSynchronize());
  }

  int copies() const { return static_cast<int>(copies_.size()); }
  /// Are there outputs that rungs create, and that a first run allocates?
  bool has_created() const {
    const auto& outputs = contest_->signature.outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [](const ArraySpec& spec) { return spec.dynamic; });
  }

  /// The arrays of a copy. Outputs whose size a rung finds out itself are allocated on a first run
  /// there and used again in later ones, of any rung: `created` is told which. None is freed, as a
  /// recorded run may still name it.
  Arguments arguments(int copy, void* workspace, CreatedOutputs* created = nullptr) {
    Copy& arrays = copies_[static_cast<std::size_t>(copy)];
    if (created != nullptr) created->clear();
    return Arguments(arrays.inputs, arrays.outputs, {.workspace = workspace},
                     [&arrays, created](const std::string& name, DType dtype, const Shape& shape) {
                       const std::size_t bytes =
                           static_cast<std::size_t>(element_count(shape)) * size_of(dtype);
                       auto& made = arrays.made[{name, bytes}];
                       if (made == nullptr) made = std::make_unique<Buffer>(bytes);
                       if (created != nullptr) (*created)[name] = {shape, made->data()};
                       return made->data();
                     });
  }

  /// Fills all outputs with what is never right: 0xff bytes, which are NaN, and -1 in the argmax of
  /// a strided pooling, where every output has a candidate; and in created ones 0x7f, as -1 is a
  /// number of rulebooks.
  void poison() const {
    for (const Copy& copy : copies_) {
      for (std::size_t i = 0; i < copy.outputs.size(); ++i) {
        gpu::check(cudaMemsetAsync(copy.outputs[i].data, 0xff, bytes_of(output(i)), rung_stream()));
      }
      for (const auto& [name_and_size, buffer] : copy.made)
        gpu::check(cudaMemsetAsync(buffer->data(), 0x7f, buffer->bytes(), rung_stream()));
    }
  }

  /// Empty, or what is wrong with the outputs of the first `copies` copies.
  std::string wrong(int copies, double tolerance_factor) const {
    for (int copy = 0; copy < copies; ++copy) {
      for (std::size_t i = 0; i < copies_[static_cast<std::size_t>(copy)].outputs.size(); ++i) {
        const std::string what = wrong_output(copy, i, tolerance_factor);
        if (!what.empty()) return what;
      }
    }
    return "";
  }

  /// Empty, or what is wrong with what a rung created in the first `created.size()` copies. Those
  /// in the canonical order are compared on the GPU, others on the host: of them the first copy and
  /// the last.
  std::string wrong(const std::vector<CreatedOutputs>& created) const {
    for (std::size_t copy = 0; copy < created.size(); ++copy) {
      bool canonical = true;
      for (std::size_t i = 0; i < contest_->wholes.size(); ++i) {
        const WholeOutput& whole = contest_->wholes[i];
        const auto made = created[copy].find(whole.spec.name);
        if (made == created[copy].end()) {
          if (whole.spec.optional) continue;
          return "did not create its output " + whole.spec.name;
        }
        if (made->second.shape != whole.spec.shape) {
          return text(whole.spec.name, " has shape ", to_string(made->second.shape), ", expected ",
                      to_string(whole.spec.shape));
        }
        canonical = canonical && different_words(made->second.data, i) == 0;
      }
      if (canonical || (copy != 0 && copy + 1 != created.size())) continue;
      const std::string what = contest_->difference(downloaded(created[copy]));
      if (!what.empty()) return what;
    }
    return "";
  }

 private:
  struct Copy {
    std::list<Buffer> buffers;
    std::vector<Arguments::Slot> inputs, outputs;
    std::map<std::pair<std::string, std::size_t>, std::unique_ptr<Buffer>> made;
  };

  unsigned long long different_words(const void* found, std::size_t whole) const {
    const Array& right = contest_->wholes[whole].right;
    return counted([&](unsigned long long* count) {
      launch_count_different(found,
                             std::next(right_.begin(), static_cast<std::ptrdiff_t>(whole))->data(),
                             right.size(), count);
    });
  }

  std::map<std::string, Array, std::less<>> downloaded(const CreatedOutputs& created) const {
    std::map<std::string, Array, std::less<>> outputs;
    for (const auto& [name, made] : created) {
      Array array(DType::i32, made.shape);
      gpu::check(cudaMemcpy(array.data(), made.data, array.size_bytes(), cudaMemcpyDeviceToHost));
      outputs.emplace(name, std::move(array));
    }
    return outputs;
  }

  /// What a kernel that `launch` starts has counted.
  static unsigned long long counted(const std::function<void(unsigned long long*)>& launch) {
    const Buffer counter(sizeof(unsigned long long));
    unsigned long long count = 0;
    gpu::check(cudaMemsetAsync(counter.data(), 0, counter.bytes(), rung_stream()));
    launch(static_cast<unsigned long long*>(counter.data()));
    wait();
    gpu::check(cudaMemcpy(&count, counter.data(), sizeof count, cudaMemcpyDeviceToHost));
    return count;
  }

  const ArraySpec& output(std::size_t i) const {
    std::vector<const ArraySpec*> specs;
    for (const ArraySpec& spec : contest_->signature.outputs) {
      if (!spec.dynamic) specs.push_back(&spec);
    }
    return *specs[i];
  }

  std::string wrong_output(int copy, std::size_t i, double tolerance_factor) const {
    const Arguments::Slot& slot = copies_[static_cast<std::size_t>(copy)].outputs[i];
    const ArraySpec& spec = output(i);
    const std::size_t size = size_of(slot.dtype);
    const unsigned long long count = counted([&](unsigned long long* unwritten) {
      launch_count_unwritten(slot.data, size, element_count(spec.shape), unwritten);
    });
    if (count != 0) return text(slot.name, ": ", count, " elements were not written, or NaN");
    for (const Samples& samples : contest_->samples) {
      if (samples.output != slot.name) continue;
      const auto n = static_cast<std::int64_t>(samples.places.size());
      const Buffer places(samples.places.size() * sizeof(std::int64_t));
      const Buffer found(samples.places.size() * size);
      gpu::check(
          cudaMemcpy(places.data(), samples.places.data(), places.bytes(), cudaMemcpyHostToDevice));
      launch_gather(slot.data, size, static_cast<const std::int64_t*>(places.data()), n,
                    found.data());
      wait();
      Array gathered(slot.dtype, {n});
      gpu::check(
          cudaMemcpy(gathered.data(), found.data(), gathered.size_bytes(), cudaMemcpyDeviceToHost));
      const std::vector<double> values = numbers_of(gathered);
      for (std::size_t k = 0; k < values.size(); ++k) {
        const double value = values[k];
        // Written positively and negated, so that NaN fails.
        if (!(std::abs(value - samples.values[k]) <= tolerance_factor * samples.tolerances[k])) {
          return text(slot.name, "[", samples.places[k], "]: expected ", samples.values[k],
                      ", found ", value, " (allowed ", tolerance_factor * samples.tolerances[k],
                      ")");
        }
      }
    }
    return "";
  }

  const Contest* contest_;
  std::vector<Copy> copies_;
  std::list<Buffer> right_;  // as Contest::wholes
};

enum class Kind { rung, baseline, limit };

/// Somebody who takes part, on his way through a measurement.
struct Participant {
  std::string name;
  Kind kind = Kind::rung;
  bool checked = true;                ///< Its outputs are those of the contest.
  std::function<void(int copy)> run;  ///< Enqueues one run on a copy of the arrays.
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
  bool very_slow() const { return estimate_us > kVerySlowUs; }
};

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// A measurement in one state of the L2.
class Round {
 public:
  Round(Memory& memory, L2 l2, const Buffer& flush, double baseline_tolerance,
        std::vector<Participant>& participants)
      : memory_(&memory), l2_(l2), flush_(&flush), baseline_tolerance_(baseline_tolerance),
        participants_(&participants) {}

  void run(const std::function<void(const std::string&)>& note) {
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

 private:
  /// A failure is the participant's, not the contest's.
  void guarded(Participant& p, const std::function<void()>& work) {
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

  /// A first run, which loads code, and a second one for an estimate.
  void prepare(Participant& p) {
    guarded(p, [&] {
      estimate(p);
      if (p.very_slow()) return;
      for (int copy = 1; memory_->has_created() && copy < copies(); ++copy) p.run(copy);
      estimate(p);
    });
  }

  void estimate(Participant& p) {
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
    if (p.kind == Kind::rung) describe_kernel(largest, p.timing);
    p.timing.memory_bytes = pool_.most_used();
    if (p.workspace != nullptr) p.timing.memory_bytes += p.workspace_bytes;
    p.finish(0);
  }

  int copies() const { return l2_ == L2::cold ? memory_->copies() : 1; }

  void drop_hopeless() {
    double best = 0;
    for (const Participant& p : *participants_) {
      if (p.kind == Kind::baseline && !p.out() && (best == 0 || p.estimate_us < best))
        best = p.estimate_us;
    }
    std::erase_if(*participants_, [&](const Participant& p) {
      return p.kind != Kind::rung && p.checked && !p.out() && best > 0 &&
             p.estimate_us > kHopeless * best;
    });
  }

  void record(Participant& p) {
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
                    : static_cast<int>(std::clamp(kBudgetUs / graph_us, 1.0 * kLeastRepeats,
                                                  1.0 * kMostRepeats));
    try {
      const Graph single([&] { p.run(0); });
      if (p.kind == Kind::rung) single.describe(p.timing);
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

  void measure_host(Participant& p) {
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

  void flush() const {
    const auto half = static_cast<std::int64_t>(flush_->bytes() / 32 * 16);
    launch_copy(static_cast<char*>(flush_->data()) + half, flush_->data(), half);
  }

  void enqueue(const Participant& p) const {
    if (p.graph != nullptr) return p.graph->launch();
    for (int i = 0; i < p.launches; ++i) p.run(i % copies());
  }

  void time(Participant& p, bool last) {
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
    if (last && p.checked && p.kind != Kind::limit) {
      // Other people's algorithms may round differently, but not compute something else.
      const int used = std::min(copies(), p.launches);
      p.timing.wrong = memory_->wrong(used, p.kind == Kind::baseline ? baseline_tolerance_ : 1.0);
      if (p.created != nullptr && p.timing.wrong.empty())
        p.timing.wrong = memory_->wrong({p.created->begin(), p.created->begin() + used});
      p.finish(0);
    }
  }

  Memory* memory_;
  L2 l2_;
  const Buffer* flush_;
  double baseline_tolerance_;
  std::vector<Participant>* participants_;
  Event start_, stop_;
  Pool pool_;
};

/// All of other people's that take part.
std::vector<Baseline> baselines_of(const Contest& contest, Memory& memory, const Scratch& scratch) {
  std::vector<Baseline> all;
  for (const std::vector<Baseline>& some :
       {cudnn_baselines(contest, scratch),
        cudnn_graph_baselines(contest, scratch, memory.arguments(0, nullptr)),
        cublas_baselines(contest), cutlass_baselines(contest)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<Participant> participants_of(const Contest& contest, Memory& memory,
                                         const std::vector<Baseline>& baselines,
                                         std::list<Buffer>& copy_buffers) {
  std::vector<Participant> all;
  for (const Entrant& entrant : contest.rungs) {
    Participant& p = all.emplace_back();
    p.name = entrant.name;
    try {
      const std::size_t bytes = entrant.code->workspace_bytes(contest.problem);
      p.workspace = std::make_unique<Buffer>(bytes);
      p.workspace_bytes = static_cast<std::int64_t>(bytes);
    } catch (const std::bad_alloc&) {
      p.timing.wrong = "needs a larger workspace than fits beside the arrays";
      p.timing.declined = true;
      continue;
    }
    p.created =
        std::make_shared<std::vector<CreatedOutputs>>(static_cast<std::size_t>(memory.copies()));
    p.run = [&contest, &memory, code = entrant.code, workspace = p.workspace->data(),
             created = p.created](int copy) {
      code->run(contest.problem,
                memory.arguments(copy, workspace, &(*created)[static_cast<std::size_t>(copy)]));
    };
    p.finish = [&contest, &memory, code = entrant.code, workspace = p.workspace->data()](int copy) {
      code->finish(contest.problem, memory.arguments(copy, workspace));
    };
  }
  for (const Baseline& baseline : baselines) {
    Participant& p = all.emplace_back();
    p.name = baseline.name;
    p.kind = baseline.limit ? Kind::limit : Kind::baseline;
    p.run = [&memory, run = baseline.run](int copy) { run(memory.arguments(copy, nullptr)); };
  }
  // A copy that moves as many bytes as have to be moved.
  const auto half = static_cast<std::int64_t>(contest.bytes / 32) * 16;
  if (half > 0) {
    std::vector<std::pair<void*, void*>> pairs;
    for (int copy = 0; copy < memory.copies(); ++copy) {
      void* from = copy_buffers.emplace_back(static_cast<std::size_t>(half)).data();
      void* to = copy_buffers.emplace_back(static_cast<std::size_t>(half)).data();
      pairs.emplace_back(from, to);
    }
    Participant& p = all.emplace_back();
    p.name = "copy";
    p.kind = Kind::limit;
    p.checked = false;
    p.run = [pairs, half](int copy) {
      const auto& [from, to] = pairs[static_cast<std::size_t>(copy)];
      launch_copy(to, from, half);
    };
  }
  return all;
}

}  // namespace

Standings measure(const Contest& contest, const std::function<void(const std::string&)>& note) {
  const double l2 = l2_bytes();
  const int copies = static_cast<int>(std::clamp(std::ceil(kFlushes * l2 / contest.bytes) + 1, 2.0,
                                                 static_cast<double>(kMostCopies)));
  const bool can_be_cold = copies * contest.bytes >= kFlushesAtLeast * l2;
  Standings standings;
  try {
    static const Buffer scratch(kScratchBytes);
    const Buffer flush(static_cast<std::size_t>(kFlushes * l2));
    Memory memory(contest, can_be_cold ? copies : 1);
    const std::vector<Baseline> baselines =
        baselines_of(contest, memory, {scratch.data(), scratch.bytes()});
    std::vector<std::string> very_slow;
    for (const L2 state : {L2::warm, L2::cold}) {
      if (state == L2::cold && !can_be_cold) continue;
      std::list<Buffer> copy_buffers;
      std::vector<Participant> participants =
          participants_of(contest, memory, baselines, copy_buffers);
      for (Participant& p : participants) {
        if (std::find(very_slow.begin(), very_slow.end(), p.name) == very_slow.end()) continue;
        p.timing.wrong = "takes so long that it is not timed with a cold L2";
        p.timing.declined = true;
      }
      Round(memory, state, flush, contest.tf32 ? kLooserTf32 : kLooserFp32, participants).run(note);
      Standing& standing = standings[static_cast<std::size_t>(state)].emplace();
      for (Participant& p : participants) {
        if (p.very_slow()) very_slow.push_back(p.name);
        if (p.kind == Kind::rung) {
          standing.rungs.push_back(p.timing);
        } else if (!p.out()) {
          (p.kind == Kind::baseline ? standing.baselines : standing.limits)[p.name] =
              p.timing.median_us;
        }
      }
    }
  } catch (const std::bad_alloc&) {
    throw BadInput(text("memory: not enough of it (gpu) for ", describe(contest.problem)));
  }
  return standings;
}

namespace {

/// The best of some runs of a graph of several launches, in microseconds a launch.
double best_us(int launches, const std::function<void()>& run) {
  const Graph graph([&] {
    for (int i = 0; i < launches; ++i) run();
  });
  const Event start, stop;
  std::vector<double> times;
  for (int i = 0; i < 8; ++i) {
    graph.launch();
    start.record();
    graph.launch();
    stop.record();
    wait();
    times.push_back(stop.since(start) / launches);
  }
  std::sort(times.begin(), times.end());
  return quantile(times, 0.5);
}

}  // namespace

Ceilings measure_ceilings() {
  Ceilings ceilings;
  const auto copy_tb_s = [](std::int64_t bytes) {
    const Buffer from(static_cast<std::size_t>(bytes / 2)), to(static_cast<std::size_t>(bytes / 2));
    return static_cast<double>(bytes) * 1e-6 /
           best_us(10, [&] { launch_copy(to.data(), from.data(), bytes / 2); });
  };
  ceilings.copy_tb_s = copy_tb_s(400'000'000);
  ceilings.copy_l2_tb_s = copy_tb_s(25'000'000 / 32 * 32);
  const Buffer unused(256);
  double operations = 0;
  const double fma_us =
      best_us(5, [&] { operations = launch_fma(static_cast<float*>(unused.data())); });
  ceilings.fma_tflops = operations * 1e-6 / fma_us;

  Contest cube;
  cube.tf32 = true;
  const GemmProblem problem{.M = 8192, .N = 8192, .K = 8192};
  cube.problem = problem;
  const std::vector<Baseline> cublas = cublas_baselines(cube);
  if (!cublas.empty()) {
    const std::size_t bytes = std::size_t{8192} * 8192 * 4;
    const Buffer a(bytes), b(bytes), c(bytes);
    for (const Buffer* array : {&a, &b})
      gpu::check(cudaMemset(array->data(), 0x3c, bytes));  // 0x3c3c3c3c is 0.0115
    const Arguments arrays({{"a", DType::f32, a.data()}, {"b", DType::f32, b.data()}},
                           {{"c", DType::f32, c.data()}}, {}, {});
    cublas.front().run(arrays);
    wait();
    constexpr double kOperations = 2.0 * 8192 * 8192 * 8192;
    ceilings.tf32_tflops = kOperations * 1e-6 / best_us(2, [&] { cublas.front().run(arrays); });
    // As the product of a sparse convolution's pairs, on arrays of its own.
    Contest halves;
    halves.ladder = "sparse_conv";
    halves.problem =
        SparseConvProblem{.Cin = 8192, .Cout = 8192, .pairs = 8192, .dtype = DType::f16};
    const std::vector<Baseline> product = cublas_baselines(halves);
    product.front().run(arrays);
    wait();
    ceilings.fp16_tflops = kOperations * 1e-6 / best_us(2, [&] { product.front().run(arrays); });
  }
  return ceilings;
}

}  // namespace convladder::benchmarks

/// @file cudnn_graph.cu
/// @brief cuDNN's graph interface: the engines that PyTorch's benchmark mode chooses among, which
/// the older interface's algorithms (cudnn.cu) are only a part of.
///
/// cuDNN proposes engines with settings, best guess first; each is tried, and the fastest remains.
#include "benchmarks/gpu/baselines.hpp"

#ifdef CONVLADDER_HAVE_CUDNN
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>

#include "benchmarks/gpu/cudnn.hpp"
#include "benchmarks/gpu/cudnn_operation.hpp"
#include "benchmarks/gpu/graph.hpp"
#include "core/cuda/launch.hpp"
#include "core/half.hpp"

namespace convladder::benchmarks {
namespace {

// How long the search in a contest may take: so much, and as long as so many runs of the best so
// far. Proposals come best guess first.
constexpr double kSearchMs = 300, kSearchRuns = 40;
// Engines are compared by graphs of about this long.
constexpr double kTrialUs = 300;
constexpr int kMostTrials = 20;
// Slower ones are not timed any further; a first run, which also loads code, says less.
constexpr double kClearlySlower = 1.5, kMuchSlower = 5, kLoadingUs = 20000;
// Of the fastest engine with fewer multiplications and the fastest with plain arithmetic, one is
// omitted if it is this many times slower than the other.
constexpr double kHopeless = 20;
// This engine has no note on its algorithm, but takes the very time of winograd_nonfused, and errs
// like it, a hundred times as much as sums do (cuDNN 9.19, H200).
constexpr std::int64_t kWinogradWeightGradient = 17;
// That many proposals of each heuristic are asked for. In fp32 the first are on tensor cores.
constexpr std::int64_t kMostProposals = 64;
// Engines whose kernels are compiled only now, which takes half a second, are tried only where they
// are among a heuristic's best guesses.
constexpr std::size_t kWorthCompiling = 2;

/// An engine with its settings, as cuDNN proposes it.
struct Proposal {
  std::shared_ptr<Descriptor> config;
  std::int64_t engine = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> settings;  // knob and value
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool compiled_now = false;  // not when cuDNN was built

  bool has(cudnnBackendNumericalNote_t note) const {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  }
  /// TF32 is exact enough for some contests.
  bool is_on_tensor_cores() const { return has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE); }
  /// fp16, whose range is another, is exact enough for none.
  bool is_below_tf32() const {
    return has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
           has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  }
  /// "winograd ", "fft " or nothing.
  std::string algorithm(const Direction& direction) const {
    if (direction.operation == kWeightGradient.operation && engine == kWinogradWeightGradient)
      return "winograd ";
    return has(CUDNN_NUMERICAL_NOTE_WINOGRAD) ? "winograd "
           : has(CUDNN_NUMERICAL_NOTE_FFT)    ? "fft "
                                              : "";
  }
};

/// The properties of an engine.
Proposal understood(const Descriptor& engine) {
  Proposal proposal;
  proposal.engine =
      engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1).at(0);
  proposal.notes = engine.get<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behaviour = engine.get<cudnnBackendBehaviorNote_t>(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  proposal.compiled_now = std::find(behaviour.begin(), behaviour.end(),
                                    CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behaviour.end();
  return proposal;
}

/// An engine with settings that a heuristic has chosen.
Proposal configured(Descriptor&& config) {
  const std::vector<Descriptor> engine = descriptors(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  Proposal proposal = understood(engine[0]);
  const std::vector<Descriptor> choices =
      descriptors(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS);
  const std::size_t chosen = config.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  for (std::size_t i = 0; i < chosen; ++i) {
    const Descriptor& choice = choices[i];
    proposal.settings.emplace_back(
        choice
            .get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1)
            .at(0),
        choice.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1).at(0));
  }
  proposal.config = std::make_shared<Descriptor>(std::move(config));
  return proposal;
}

/// A heuristic's proposals, best guess first; none if it does not know this operation.
std::vector<Proposal> proposals_of(cudnnBackendHeurMode_t mode, const OneOperation& operation) {
  std::vector<Proposal> all;
  try {
    Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operation.graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    heuristic.finish();
    std::vector<Descriptor> configs =
        descriptors(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMostProposals);
    const std::size_t count = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, configs);
    for (std::size_t i = 0; i < count; ++i) {
      Proposal proposal = configured(std::move(configs[i]));
      if (i < kWorthCompiling || !proposal.compiled_now) all.push_back(std::move(proposal));
    }
  } catch (const std::runtime_error&) {
    all.clear();
  }
  return all;
}

/// Every engine as it is, without settings: in number order.
std::vector<Proposal> all_engines(const OneOperation& operation) {
  std::vector<Proposal> all;
  const std::int64_t count =
      operation.graph
          .get<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1)
          .at(0);
  for (std::int64_t index = 0; index < count; ++index) {
    try {
      Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, operation.graph);
      engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, index);
      engine.finish();
      Proposal proposal = understood(engine);
      if (proposal.compiled_now) continue;
      proposal.config = std::make_shared<Descriptor>(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      proposal.config->set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
      proposal.config->finish();
      all.push_back(std::move(proposal));
    } catch (const std::runtime_error&) {
      // Not an engine for this operation.
    }
  }
  return all;
}

/// All proposals, each once. The first two lists are what PyTorch's benchmark mode tries.
std::vector<Proposal> proposals(const OneOperation& operation) {
  std::vector<Proposal> all;
  std::set<std::pair<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>>> seen;
  for (const std::vector<Proposal>& some :
       {proposals_of(CUDNN_HEUR_MODE_A, operation),
        proposals_of(CUDNN_HEUR_MODE_FALLBACK, operation), all_engines(operation),
        proposals_of(CUDNN_HEUR_MODE_B, operation)}) {
    for (const Proposal& proposal : some) {
      if (seen.emplace(proposal.engine, proposal.settings).second) all.push_back(proposal);
    }
  }
  return all;
}

/// A proposal that can run.
class Plan {
 public:
  Plan(std::shared_ptr<const OneOperation> operation, const Proposal& proposal)
      : operation_(std::move(operation)), config_(proposal.config) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *config_);
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cudnn_handle());
    plan_.finish();
  }

  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(
        plan_.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1)
            .at(0));
  }

  void run(const void* x, const void* w, const void* y, void* workspace) const {
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                 std::vector<std::int64_t>{kX, kW, kY});
    pack.set_all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                 std::vector<const void*>{x, w, y});
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.finish();
    check(cudnnBackendExecute(cudnn_handle(), plan_.raw(), pack.raw()));
  }

 private:
  // What the plan was made of has to outlive it.
  std::shared_ptr<const OneOperation> operation_;
  std::shared_ptr<Descriptor> config_;
  Descriptor plan_{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
};

/// An engine that has been tried.
struct Candidate {
  std::string algorithm;  ///< As Proposal::algorithm().
  std::int64_t engine;
  std::shared_ptr<Plan> plan;
  double us;
};

double microseconds(int repeats, const std::function<void()>& work) {
  std::array<cudaEvent_t, 2> events{};
  for (cudaEvent_t& event : events) gpu::check(cudaEventCreate(&event));
  gpu::check(cudaEventRecord(events[0], rung_stream()));
  work();
  gpu::check(cudaEventRecord(events[1], rung_stream()));
  const cudaError_t status = cudaStreamSynchronize(rung_stream());
  float milliseconds = 0;
  if (status == cudaSuccess)
    static_cast<void>(cudaEventElapsedTime(&milliseconds, events[0], events[1]));
  for (const cudaEvent_t event : events) static_cast<void>(cudaEventDestroy(event));
  gpu::check(status);
  return 1e3 * static_cast<double>(milliseconds) / repeats;
}

/// The time of a run, or one that is clearly longer than `best`.
double tried(const std::function<void()>& run, double best) {
  const double loading = microseconds(1, run);
  if (best > 0 && loading > kMuchSlower * best + kLoadingUs) return loading;
  const double first = microseconds(1, run);
  // A lone launch has its overhead in it, which matters only to short ones.
  if (first > kTrialUs || (best > 0 && first > kClearlySlower * best + 30)) return first;
  const int repeats = std::clamp(static_cast<int>(kTrialUs / first), 2, kMostTrials);
  const Graph graph([&] {
    for (int i = 0; i < repeats; ++i) run();
  });
  graph.launch();
  return microseconds(repeats, [&] { graph.launch(); });
}

/// The fastest in plain arithmetic and the fastest that saves multiplications: at most one of each.
std::vector<Candidate> search(const Conv2dProblem& p, const Contest& contest,
                              const Direction& direction, const Scratch& scratch,
                              const std::function<void(const Plan&)>& run) {
  const auto start = std::chrono::steady_clock::now();
  const auto operation = std::make_shared<const OneOperation>(p, contest.nhwc, direction);
  std::vector<Candidate> best;  // of each algorithm
  double best_us = 0;           // of all
  for (const Proposal& proposal : proposals(*operation)) {
    const bool exact_floats = p.dtype == DType::f32 && !contest.tf32;
    if (proposal.is_below_tf32() || (exact_floats && proposal.is_on_tensor_cores())) continue;
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    if (best_us > 0 && passed.count() > kSearchMs + kSearchRuns * best_us / 1000) break;
    const std::string algorithm = proposal.algorithm(direction);
    const auto rival = std::find_if(best.begin(), best.end(), [&](const Candidate& candidate) {
      return candidate.algorithm.empty() == algorithm.empty();
    });
    try {
      const auto plan = std::make_shared<Plan>(operation, proposal);
      if (plan->workspace_bytes() > scratch.bytes) continue;
      const double us = tried([&] { run(*plan); }, rival == best.end() ? 0 : rival->us);
      const Candidate candidate{algorithm, proposal.engine, plan, us};
      if (rival == best.end()) {
        best.push_back(candidate);
      } else if (us < rival->us) {
        *rival = candidate;
      }
      best_us = best_us > 0 ? std::min(best_us, us) : us;
    } catch (const std::runtime_error&) {
      // Proposed, but not possible after all: cuDNN says so only now.
      gpu::check(cudaDeviceSynchronize());
    }
  }
  std::erase_if(best,
                [&](const Candidate& candidate) { return candidate.us > kHopeless * best_us; });
  return best;
}

}  // namespace

std::vector<Baseline> cudnn_graph_baselines(const Contest& contest, const Scratch& scratch,
                                            const Arguments& trial) {
  const auto* p = std::get_if<Conv2dProblem>(&contest.problem);
  // A convolution alone is not the work of one with bias and ReLU.
  if (p == nullptr || p->bias || p->activation != Activation::none) return {};
  using Run = std::function<void(const Plan&, const Arguments&)>;
  Direction direction{};
  Run run;
  // Calls body(T{}) for the type of the arrays.
  const auto in_type = [dtype = p->dtype](const auto& body) { with_float_type(dtype, body); };
  if (contest.ladder == "conv2d") {
    direction = kForward;
    run = [=](const Plan& plan, const Arguments& arrays) {
      in_type([&]<class T>(T) {
        plan.run(arrays.in<T>("x"), arrays.in<T>("weights"), arrays.out<T>("y"), scratch.data);
      });
    };
  } else if (contest.ladder == "conv2d_dgrad") {
    direction = kInputGradient;
    run = [=](const Plan& plan, const Arguments& arrays) {
      in_type([&]<class T>(T) {
        plan.run(arrays.out<T>("dx"), arrays.in<T>("weights"), arrays.in<T>("dy"), scratch.data);
      });
    };
  } else if (contest.ladder == "conv2d_wgrad") {
    direction = kWeightGradient;
    run = [=](const Plan& plan, const Arguments& arrays) {
      in_type([&]<class T>(T) {  // of 16 bits dw takes half of the room
        plan.run(arrays.in<T>("x"), arrays.out<float>("dw"), arrays.in<T>("dy"), scratch.data);
      });
    };
  } else {
    return {};
  }
  std::vector<Baseline> baselines;
  for (const Candidate& candidate :
       search(*p, contest, direction, scratch, [&](const Plan& plan) { run(plan, trial); })) {
    const std::string name = text("cudnn graph ", candidate.algorithm, "eng", candidate.engine);
    const auto enqueue = [run, plan = candidate.plan](const Arguments& arrays) {
      run(*plan, arrays);
    };
    if (contest.ladder != "conv2d_wgrad") {
      baselines.push_back({name, enqueue});
      continue;
    }
    // cuDNN adds up a float db of floats alone.
    if (p->dtype == DType::f32)
      baselines.push_back({name, with_bias_gradient(*p, contest.nhwc, enqueue)});
    baselines.push_back({name + ", dw alone", enqueue, true});
  }
  return baselines;
}

}  // namespace convladder::benchmarks

#else

namespace convladder::benchmarks {
std::vector<Baseline> cudnn_graph_baselines(const Contest&, const Scratch&, const Arguments&) {
  return {};
}
}  // namespace convladder::benchmarks

#endif

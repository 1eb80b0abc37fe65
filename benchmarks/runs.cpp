#include "benchmarks/runs.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "core/device.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
#include "oracle/data.hpp"
#include "oracle/judge.hpp"
#include "oracle/memory_order.hpp"
#include "oracle/reference.hpp"
#include "oracle/samples.hpp"
#include "provenance/provenance.hpp"
#ifdef CONVLADDER_HAVE_NVCC
#include "benchmarks/gpu/contest.hpp"
#endif

namespace convladder::benchmarks {
namespace {

using Key =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

Key key_of(const Row& row) {
  return {row.ladder, row.rung, row.problem, row.dtype, row.layout, row.l2};
}

/// Where a row stands: ladder, problem, layout, dtype, L2 state, rung.
std::array<std::size_t, 5> order_of(const Row& row) {
  std::size_t ladder = 0, rung = 0, problem = 0;
  for (const Ladder& candidate : ladders()) {
    if (candidate.name == row.ladder) {
      while (rung < candidate.rungs.size() && candidate.rungs[rung].name != row.rung) ++rung;
      break;
    }
    ++ladder;
  }
  for (const BenchmarkProblem& candidate : benchmark_problems()) {
    if (candidate.ladder == row.ladder && candidate.id == row.problem) break;
    ++problem;
  }
  const std::size_t dtype = row.dtype == "tf32"   ? 1
                            : row.dtype == "fp16" ? 2
                            : row.dtype == "bf16" ? 3
                                                  : 0;
  const std::size_t variant = (row.layout == "nhwc" ? 4u : 0u) + dtype;
  return {ladder, problem, variant, row.l2 == "warm" ? 0u : 1u, rung};
}

}  // namespace

Run new_run() {
  Run run;
  run.driver = driver_version();
  run.toolkit = toolkit_version();
  run.date = today();
  run.commit = commit();
  const Device* gpu = device_at(Where::gpu);
  if (gpu != nullptr) run.gpu = gpu->name();
#ifdef CONVLADDER_HAVE_NVCC
  run.cudnn = cudnn_version();
#endif
  return run;
}

std::string why_not_resumed(const Run& earlier, const Run& now) {
  for (const auto& [what, then, today] : {std::tuple{"GPU", earlier.gpu, now.gpu},
                                          {"driver", earlier.driver, now.driver},
                                          {"toolkit", earlier.toolkit, now.toolkit},
                                          {"cuDNN", earlier.cudnn, now.cudnn}}) {
    if (then != today) {
      return text("holds a run with ", what, " ", then.empty() ? "none" : then, ", this one has ",
                  today.empty() ? "none" : today);
    }
  }
  return "";
}

const Row* row_of(const Run& run, const std::string& ladder, const std::string& rung,
                  const std::string& problem, const std::string& dtype, const std::string& layout,
                  const std::string& l2) {
  const auto hash = built_source_hashes().find(rung);
  for (const Row& row : run.rows) {
    if (key_of(row) == Key{ladder, rung, problem, dtype, layout, l2} &&
        hash != built_source_hashes().end() && row.source_hash == hash->second) {
      return &row;
    }
  }
  return nullptr;
}

void merge(Run& run, std::vector<Row> rows) {
  std::map<Key, Row*> fresh;
  for (Row& row : rows) fresh.emplace(key_of(row), &row);
  for (const Row& row : run.rows) {
    const auto found = fresh.find(key_of(row));
    if (found == fresh.end()) continue;
    const auto keep = [](const std::map<std::string, double>& before,
                         std::map<std::string, double>& now) {
      for (const auto& [name, us] : before)
        if (name.starts_with(kMeasuredBeside)) now.emplace(name, us);
    };
    keep(row.baselines, found->second->baselines);
    keep(row.limits, found->second->limits);
  }
  std::erase_if(run.rows, [&](const Row& row) { return fresh.contains(key_of(row)); });
  run.rows.insert(run.rows.end(), std::move_iterator(rows.begin()), std::move_iterator(rows.end()));
  std::stable_sort(run.rows.begin(), run.rows.end(),
                   [](const Row& a, const Row& b) { return order_of(a) < order_of(b); });
}

#ifdef CONVLADDER_HAVE_NVCC
namespace {

// Samples of a result: at most kMostSamples elements, at most about kSampledProducts products.
constexpr double kMostSamples = 4096, kLeastSamples = 48, kSampledProducts = 3e7;
// Smaller outputs are checked whole.
constexpr std::int64_t kWholeOutput = 512;

/// A problem in one precision and layout.
struct Variant {
  Problem problem;
  std::string dtype, layout;
};

/// The types of a sparse convolution, the strictest first.
std::vector<Variant> variants_of(const SparseConvProblem& problem, bool bf16) {
  std::vector<Variant> variants;
  for (const auto& [dtype, precision] : {std::pair{DType::f32, Precision::fp32},
                                         {DType::f32, Precision::tf32},
                                         {DType::f16, Precision::fp32},
                                         {DType::bf16, Precision::fp32}}) {
    if (dtype == DType::bf16 && !bf16) continue;
    SparseConvProblem variant = problem;
    variant.dtype = dtype;
    variant.precision = precision;
    variants.push_back({variant, dtype_name(variant), "rows"});
  }
  return variants;
}

/// Max pooling over a rulebook, its gradient, or the step to a dense tensor.
bool pools_or_copies(const Problem& problem) {
  return std::holds_alternative<SparsePoolProblem>(problem) ||
         std::holds_alternative<SparseToDenseProblem>(problem);
}

/// All that its ladder knows, the strict precision first.
std::vector<Variant> variants_of(const BenchmarkProblem& benchmark) {
  const Problem& problem = benchmark.problem;
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem))
    return variants_of(*conv, benchmark.bf16);
  if (std::holds_alternative<RulebookProblem>(problem)) return {{problem, "int32", "rows"}};
  if (pools_or_copies(problem)) return {{problem, "fp32", "rows"}};
  std::vector<Variant> variants;
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    if (const auto* gemm = std::get_if<GemmProblem>(&problem)) {
      GemmProblem variant = *gemm;
      variant.precision = precision;
      variants.push_back({variant, name_of(precision), "row_major"});
    } else if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        Conv2dProblem variant = *conv;
        variant.precision = precision;
        variant.layout = layout;
        variants.push_back({variant, name_of(precision), name_of(layout)});
      }
    } else if (const auto* columns = std::get_if<Im2colProblem>(&problem)) {
      if (precision != Precision::fp32) continue;  // copies and plain sums
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        Im2colProblem variant = *columns;
        variant.layout = layout;
        variants.push_back({variant, name_of(precision), name_of(layout)});
      }
    } else if (precision == Precision::fp32) {
      variants.push_back({problem, name_of(precision), "nchw"});
    }
  }
  return variants;
}

std::vector<std::int64_t> places_in(const ArraySpec& spec, std::int64_t longest) {
  const std::int64_t size = element_count(spec.shape);
  const auto wanted = static_cast<std::int64_t>(
      std::clamp(kSampledProducts / static_cast<double>(longest), kLeastSamples, kMostSamples));
  std::vector<std::int64_t> places;
  if (size <= std::min(kWholeOutput, wanted)) {
    for (std::int64_t i = 0; i < size; ++i) places.push_back(i);
    return places;
  }
  std::mt19937_64 random(static_cast<std::uint64_t>(size));
  for (std::int64_t i = 0; i < wanted; ++i) {
    // Both ends, where tiles and loops have their remainders, and anywhere between.
    const std::int64_t any = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
    places.push_back(i < 8 ? i : i < 16 ? size - 1 - (i - 8) : any);
  }
  return places;
}

/// A problem's data and some of its right answers, which all variants of the same type have in
/// common.
struct SampledData {
  DType dtype = DType::f32;
  Arrays inputs;
  std::vector<std::vector<std::int64_t>> places;  // by output; row-major
  std::vector<std::vector<ExpectedElement>> elements;
};

DType dtype_of(const Problem& problem) {
  const auto* conv = std::get_if<SparseConvProblem>(&problem);
  return conv == nullptr ? DType::f32 : conv->dtype;
}

/// The arrays of a problem that are not drawn.
Arrays given_to(const BenchmarkProblem& benchmark, const Problem& problem) {
  if (benchmark.sites.empty()) return {};
  const Signature signature = ladder(benchmark.ladder).signature(problem);
  if (benchmark.ladder == "sparse_to_dense") return {{"coords", sites_of(benchmark)}};
  const Rulebook& rulebook = rulebook_of(benchmark);
  Arrays given = rulebook_inputs(rulebook, signature);
  if (benchmark.ladder == "sparse_max_pool_dgrad") {
    const auto C = std::get<SparsePoolProblem>(problem).C;
    given.emplace("argmax", argmax_of_made_up(rulebook, C, Data::real, 1));
  }
  return given;
}

/// Elements of an output of which all is known.
std::vector<ExpectedElement> elements_of(const Expected& output,
                                         const std::vector<std::int64_t>& places) {
  std::vector<ExpectedElement> elements;
  for (const std::int64_t place : places) {
    const auto i = static_cast<std::size_t>(place);
    elements.push_back({output.integers.empty() ? output.values[i] : output.integers[i],
                        output.magnitude.empty() ? 0 : output.magnitude[i]});
  }
  return elements;
}

SampledData data_of(const BenchmarkProblem& benchmark, const Problem& problem) {
  const Signature signature = ladder(benchmark.ladder).signature(problem);
  const std::int64_t longest = longest_sum(benchmark.ladder, problem);
  SampledData data;
  data.dtype = dtype_of(problem);
  if (std::holds_alternative<RulebookProblem>(problem)) {
    data.inputs = {{"coords", sites_of(benchmark)}};
    return data;
  }
  data.inputs = make_inputs(signature, Data::real, 1, longest, given_to(benchmark, problem));
  // All of a pooling or a copy is quickly there.
  std::vector<Expected> all;
  if (pools_or_copies(problem)) all = reference(benchmark.ladder, problem, data.inputs);
  for (const ArraySpec& spec : signature.outputs) {
    const std::vector<std::int64_t> places = places_in(spec, longest);
    data.elements.push_back(
        all.empty() ? reference_at(benchmark.ladder, problem, data.inputs, spec.name, places)
                    : elements_of(all[data.places.size()], places));
    data.places.push_back(places);
  }
  return data;
}

/// All outputs of a rulebook problem, and how to compare those of a rung with them.
void expect_rulebook(Contest& contest, const Rulebook& rulebook) {
  const auto& book = std::get<RulebookProblem>(contest.problem);
  const bool split = orders_of(book.form) == 2;
  const std::map<std::string, const Array*> right = {
      {"out_coords", &rulebook.out_coords},
      {"pairs", &rulebook.pairs},
      {"nbr", &rulebook.nbr},
      {"mask", &rulebook.mask},
      {"order", split ? &rulebook.split_order : &rulebook.order}};
  for (ArraySpec& spec : contest.signature.outputs) {
    const Array& array = *right.at(spec.name);
    spec.shape = array.shape();
    contest.wholes.push_back({spec, array});
  }
  contest.difference = [wholes = contest.wholes, problem = contest.problem](Arrays outputs) {
    const Arrays found = canonical(problem, std::move(outputs));
    for (const WholeOutput& whole : wholes) {
      const auto array = found.find(whole.spec.name);
      if (array == found.end()) continue;
      const auto expected = whole.right.as<std::int32_t>();
      const auto numbers = array->second.as<std::int32_t>();
      const auto [wrong, instead] = std::ranges::mismatch(numbers, expected);
      if (wrong == numbers.end() && instead == expected.end()) continue;
      return text(whole.spec.name, "[", wrong - numbers.begin(), "]: expected ", *instead,
                  ", found ", *wrong);
    }
    return std::string();
  };
}

/// The bytes that have to be read and written at least: every array once. But of the rulebook of a
/// sparse convolution or pooling, which lies there in several forms, the masks of the rows and an
/// index for each pair; and nothing of it for the gradient of a pooling, whose argmax says
/// everything.
double least_bytes(const Contest& contest) {
  const auto* conv = std::get_if<SparseConvProblem>(&contest.problem);
  const auto* pool = std::get_if<SparsePoolProblem>(&contest.problem);
  double bytes = 0;
  for (const auto* specs : {&contest.signature.inputs, &contest.signature.outputs}) {
    for (const ArraySpec& spec : *specs) {
      const bool of_rulebook =
          (conv != nullptr || pool != nullptr) && spec.dtype == DType::i32 && spec.name != "argmax";
      if (spec.optional || of_rulebook) continue;
      bytes +=
          static_cast<double>(element_count(spec.shape)) * static_cast<double>(size_of(spec.dtype));
    }
  }
  const auto indices = [](const auto& over) {
    return 4.0 * (static_cast<double>(over.pairs) +
                  static_cast<double>(mask_words(over.book.KV)) * over.M);
  };
  if (conv != nullptr) bytes += indices(*conv);
  if (pool != nullptr && contest.ladder == "sparse_max_pool") bytes += indices(*pool);
  return bytes;
}

Contest contest_of(const BenchmarkProblem& benchmark, const Variant& variant,
                   const SampledData& data) {
  Contest contest;
  contest.ladder = benchmark.ladder;
  contest.problem = variant.problem;
  contest.signature = ladder(benchmark.ladder).signature(variant.problem);
  contest.tf32 = precision_of(variant.problem) == Precision::tf32;
  contest.nhwc = variant.layout == "nhwc";
  Expected rounding;
  rounding.longest_sum = longest_sum(benchmark.ladder, variant.problem);
  rounding.precision = precision_of(variant.problem);
  rounding.factors = dtype_of(variant.problem);
  const double allowed = allowed_error(rounding, Data::real);
  for (const ArraySpec& spec : contest.signature.inputs) {
    contest.inputs.emplace(spec.name, in_memory(data.inputs.at(spec.name), spec.order));
  }
  for (std::size_t i = 0; i < data.places.size(); ++i) {
    const ArraySpec& spec = contest.signature.outputs[i];
    Samples samples{spec.name, {}, {}, {}};
    for (std::size_t k = 0; k < data.places[i].size(); ++k) {
      const auto& [value, magnitude] = data.elements[i][k];
      const double tolerance = allowed * magnitude;
      samples.places.push_back(place_in_memory(data.places[i][k], spec.order));
      samples.values.push_back(value);
      samples.tolerances.push_back(tolerance +
                                   error_of_rounding(std::abs(value) + tolerance, spec.dtype));
    }
    contest.samples.push_back(std::move(samples));
  }
  if (std::holds_alternative<RulebookProblem>(variant.problem))
    expect_rulebook(contest, rulebook_of(benchmark));
  contest.bytes = least_bytes(contest);
  return contest;
}

/// The name of the rate that limits arithmetic in that type.
const char* ceiling_of(const std::string& dtype) {
  return dtype == "tf32"                      ? "tf32_tflops"
         : dtype == "fp16" || dtype == "bf16" ? "fp16_tflops"
                                              : "fma_tflops";
}

/// The least time, in microseconds, that the operations and the bytes of a row take.
double floor_us(const Row& row, double flops, const std::map<std::string, double>& ceilings) {
  const double peak = ceilings.at(ceiling_of(row.dtype));
  const double arithmetic = peak > 0 ? flops / peak * 1e-6 : 0;
  const auto copy = row.limits.find("copy");
  return std::max(arithmetic, copy == row.limits.end() ? 0 : copy->second);
}

bool complete(const Run& run, const Plan& plan, const Rung& rung, const Variant& variant) {
  const auto has = [&](L2 l2) {
    return row_of(run, plan.problem->ladder, rung.name, plan.problem->id, variant.dtype,
                  variant.layout, name_of(l2)) != nullptr;
  };
  return has(L2::warm);
}

}  // namespace

bool measure(Run& run, const std::vector<Plan>& plans, const Watcher& watcher) {
  bool right = true;
  if (!run.ceilings.contains("fp16_tflops")) {
    const Ceilings ceilings = measure_ceilings();
    // What an earlier run measured of them stays, as its rows were held against it.
    run.ceilings.merge(std::map<std::string, double>{{"copy_tb_s", ceilings.copy_tb_s},
                                                     {"copy_l2_tb_s", ceilings.copy_l2_tb_s},
                                                     {"fma_tflops", ceilings.fma_tflops},
                                                     {"tf32_tflops", ceilings.tf32_tflops},
                                                     {"fp16_tflops", ceilings.fp16_tflops}});
  }
  for (const Plan& plan : plans) {
    watcher.begin(plan);
    const BenchmarkProblem& benchmark = *plan.problem;
    // Rung, layout and type, in its strictest precision.
    std::set<std::tuple<std::string, std::string, DType>> taken;
    std::optional<SampledData> data;  // once it is needed
    for (Variant& variant : variants_of(benchmark)) {
      std::vector<Entrant> entrants;
      std::vector<const Rung*> rungs;
      bool whole = false;
      for (const Rung* rung : plan.rungs) {
        const auto& code = rung->code_at(Where::gpu);
        const std::tuple key{rung->name, variant.layout, dtype_of(variant.problem)};
        if (!code || taken.contains(key)) continue;
        if (complete(run, plan, *rung, variant)) {
          taken.insert(key);
          continue;
        }
        // A rulebook may take seconds to make: only where something is left to be timed.
        if (!whole) variant.problem = whole_problem(benchmark, variant.problem);
        whole = true;
        if (code->supports(variant.problem)) continue;
        taken.insert(key);
        entrants.push_back({rung->name, &*code});
        rungs.push_back(rung);
      }
      if (entrants.empty()) continue;
      if (!data || data->dtype != dtype_of(variant.problem))
        data = data_of(benchmark, variant.problem);
      Contest contest = contest_of(benchmark, variant, *data);
      contest.rungs = entrants;
      const std::string where =
          text(benchmark.ladder, " ", benchmark.id, " ", variant.dtype, " ", variant.layout, ": ");
      const Standings standings = benchmarks::measure(
          contest, [&](const std::string& what) { watcher.note(where + what); });
      std::vector<Row> rows;
      for (const L2 l2 : {L2::warm, L2::cold}) {
        const auto& standing = standings[static_cast<std::size_t>(l2)];
        if (!standing) continue;
        for (std::size_t i = 0; i < rungs.size(); ++i) {
          const Timing& timing = standing->rungs[i];
          if (!timing.wrong.empty()) {
            if (!timing.declined) {
              right = false;
              watcher.differs(where + rungs[i]->name + ": " + timing.wrong);
            }
            continue;
          }
          Row row;
          row.ladder = benchmark.ladder;
          row.rung = rungs[i]->name;
          row.source_hash = built_source_hashes().at(row.rung);
          row.problem = benchmark.id;
          row.dtype = variant.dtype;
          row.layout = variant.layout;
          row.l2 = name_of(l2);
          row.median_us = timing.median_us;
          row.spread_us = timing.spread_us;
          row.host_us = timing.host_us;
          row.bytes = static_cast<std::int64_t>(contest.bytes);
          row.launches = timing.launches;
          row.host_syncs = timing.host_syncs;
          row.registers = timing.registers;
          row.shared_bytes = timing.shared_bytes;
          row.spills = timing.spills;
          row.occupancy = timing.occupancy;
          row.memory_bytes = timing.memory_bytes;
          row.baselines = standing->baselines;
          row.limits = standing->limits;
          const double flops = operations(variant.problem);
          row.tflops = flops / timing.median_us * 1e-6;
          const double peak = run.ceilings.at(ceiling_of(row.dtype));
          if (flops > 0 && peak > 0)
            row.limits[row.dtype == "fp32" ? "fma" : "tensor cores"] = flops / peak * 1e-6;
          row.roofline = floor_us(row, flops, run.ceilings) / timing.median_us;
          rows.push_back(std::move(row));
        }
      }
      merge(run, rows);
      watcher.timed(rows);
      watcher.save(run);
    }
  }
  return right;
}

#else

bool measure(Run&, const std::vector<Plan>&, const Watcher&) {
  throw std::logic_error("a build without nvcc has no GPU to measure on");
}

#endif

}  // namespace convladder::benchmarks

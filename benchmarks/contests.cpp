#include "benchmarks/contests.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "benchmarks/sites.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
#include "oracle/judge.hpp"
#include "oracle/memory_order.hpp"
#include "oracle/reference.hpp"
#include "oracle/rulebook.hpp"
#include "oracle/transform_bounds.hpp"

namespace convladder::benchmarks {
namespace {

// Samples of a result: at most kMostSamples elements, at most about kSampledProducts products.
constexpr double kMostSamples = 4096, kLeastSamples = 48, kSampledProducts = 3e7;
// Smaller outputs are checked whole.
constexpr std::int64_t kWholeOutput = 512;

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

/// The arrays of a problem that are not drawn.
Arrays given_to(const BenchmarkProblem& benchmark, const Problem& problem) {
  if (benchmark.sites.empty()) return {};
  const Signature signature = ladder(benchmark.ladder).signature(problem);
  if (benchmark.ladder == "sparse_to_dense" || benchmark.ladder == "sparse_global_pool")
    return {{"coords", sites_of(benchmark)}};
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

/// The same of voxelize: sites exactly, means within the bound on rounding.
void expect_voxels(Contest& contest) {
  const std::vector<Expected> right = reference("voxelize", contest.problem, contest.inputs);
  for (std::size_t i = 0; i < right.size(); ++i) {
    const Expected& output = right[i];
    Array array(output.spec.dtype, output.spec.shape);
    if (output.spec.dtype == DType::i32) {
      std::ranges::copy(output.integers, array.as<std::int32_t>().begin());
    } else {
      std::ranges::transform(output.values, array.as<float>().begin(),
                             [](double value) { return static_cast<float>(value); });
    }
    contest.signature.outputs[i].shape = output.spec.shape;
    contest.wholes.push_back({output.spec, std::move(array)});
  }
  contest.difference = [right, problem = contest.problem](Arrays outputs) {
    for (const Expected& output : right) {
      const Verdict verdict =
          judge(output, outputs.at(output.spec.name), Data::real, problem, OutputTile{});
      if (!verdict.agrees) return verdict.difference;
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
  if (pool != nullptr && contest.ladder != "sparse_max_pool_dgrad") bytes += indices(*pool);
  return bytes;
}

}  // namespace

SampledData data_of(const BenchmarkProblem& benchmark, const Problem& problem) {
  const Signature signature = ladder(benchmark.ladder).signature(problem);
  const std::int64_t longest = longest_sum(benchmark.ladder, problem);
  SampledData data;
  data.dtype = dtype_of(problem);
  if (std::holds_alternative<RulebookProblem>(problem)) {
    data.inputs = {{"coords", sites_of(benchmark)}};
    return data;
  }
  if (std::holds_alternative<VoxelizeProblem>(problem)) {
    data.inputs = {{"points", points_named(benchmark.points)}};
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
  if (data.dtype != DType::f32) return data;  // transforms are of floats
  for (const Rung& rung : ladder(benchmark.ladder).rungs) {
    const auto* conv = std::get_if<Conv2dProblem>(&problem);
    if (rung.float_spectra) data.fourier = fourier_bound_at(problem, data.inputs, data.places[0]);
    if (rung.winograd.m == 0 || conv == nullptr || !winograd_takes(*conv, rung.winograd)) continue;
    if (data.winograd.contains(rung.winograd)) continue;
    const auto bound_at =
        benchmark.ladder == "conv2d_wgrad" ? winograd_gradient_bound_at : winograd_bound_at;
    data.winograd.emplace(rung.winograd,
                          bound_at(problem, data.inputs, rung.winograd, data.places[0]));
  }
  return data;
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
  if (const auto* fft = std::get_if<FftProblem>(&variant.problem)) rounding.passes = fft->passes();
  const auto sampled = [&](const Expected& bound, std::size_t i,
                           const std::vector<double>* magnitudes) {
    const ArraySpec& spec = contest.signature.outputs[i];
    const double allowed = allowed_error(bound, Data::real);
    Samples samples{spec.name, {}, {}, {}};
    for (std::size_t k = 0; k < data.places[i].size(); ++k) {
      const auto& [value, magnitude] = data.elements[i][k];
      const double tolerance = allowed * (magnitudes ? (*magnitudes)[k] : magnitude);
      samples.places.push_back(place_in_memory(data.places[i][k], spec.order));
      samples.values.push_back(value);
      samples.tolerances.push_back(tolerance +
                                   error_of_rounding(std::abs(value) + tolerance, spec.dtype));
    }
    return samples;
  };
  for (const ArraySpec& spec : contest.signature.inputs) {
    contest.inputs.emplace(spec.name, in_memory(data.inputs.at(spec.name), spec.order));
  }
  for (std::size_t i = 0; i < data.places.size(); ++i)
    contest.samples.push_back(sampled(rounding, i, nullptr));
  for (const auto& [tile, bound] : data.winograd) {
    Expected of_winograd = rounding;
    of_winograd.longest_sum = bound.longest_sum;
    contest.winograd_samples[tile] = contest.samples;  // db is a plain sum
    contest.winograd_samples[tile][0] = sampled(of_winograd, 0, &bound.magnitude);
  }
  if (!data.fourier.empty()) {
    Expected of_fourier = rounding;
    of_fourier.passes = kFourierPasses;
    contest.fourier_samples = {sampled(of_fourier, 0, &data.fourier)};
  }
  if (std::holds_alternative<RulebookProblem>(variant.problem))
    expect_rulebook(contest, rulebook_of(benchmark));
  if (std::holds_alternative<VoxelizeProblem>(variant.problem)) expect_voxels(contest);
  contest.bytes = least_bytes(contest);
  return contest;
}

}  // namespace convladder::benchmarks

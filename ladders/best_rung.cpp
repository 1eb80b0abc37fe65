#include "ladders/best_rung.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <tuple>

#include "core/array.hpp"

namespace convladder {
namespace {

/// A product of counts, in double because it may exceed 64 bits; it is an estimate.
double product(std::initializer_list<double> factors) {
  double result = 1;
  for (const double factor : factors) result *= factor;
  return result;
}

double rounded_up(double count, double multiple) { return std::ceil(count / multiple) * multiple; }

/// The counts on which a rung's time depends.
struct Counts {
  double products = 0;  ///< Multiply-adds of the definition; for pooling, comparisons or additions.
  double tiles = 0;     ///< Multiply-adds of a GEMM in tiles of 6 x 16, padding included.
  double columns = 0;   ///< Elements of the column matrix, or of packed or gathered operands.
  double passes = 0;    ///< Points times passes of an FFT.
  double elements = 0;  ///< Elements of all inputs and outputs.
};

Counts counts_of(const Conv2dProblem& conv) {
  const double pixels = product({1.0 * conv.N, 1.0 * conv.P, 1.0 * conv.Q});
  const double taps = product({1.0 * conv.C / conv.groups, 1.0 * conv.R, 1.0 * conv.S});
  const double plane = product({1.0 * conv.H, 1.0 * conv.W});
  const double planes =
      conv.N * (1.0 * conv.C + conv.K) + product({1.0 * conv.C, 1.0 * conv.K}) / conv.groups;
  const double products = pixels * taps * conv.K;
  // Per group; each copied column costs as much as 25 rows of the GEMM. Groups with one input
  // channel or with few filters are not computed as a GEMM unless they are large
  // (cpu_reference/conv2d/input_tile.hpp).
  const double filters = 1.0 * conv.K / conv.groups;
  const double rows = rounded_up(filters, 6) + 25;
  const bool few = filters <= 32 && conv.R * conv.S > 1 && taps <= 512;
  const bool one_channel = conv.C == conv.groups && taps <= 512;
  return {.products = products,
          .tiles = one_channel || few ? 2 * products
                                      : rounded_up(pixels, 16) * taps * conv.groups * rows,
          .columns = pixels * taps * conv.groups,
          .passes = planes * plane * std::log2(2 + plane)};
}

Counts counts_of(const GemmProblem& gemm) {
  const double M = gemm.M, N = gemm.N, K = gemm.K;
  return {.products = M * N * K,
          .tiles = rounded_up(M, 6) * rounded_up(N, 16) * (K + 10),  // 10: start and stores
          .columns = M * K + K * N};
}

Counts counts_of(const GemmBatchProblem& batch) {
  Counts counts = counts_of(batch.product);
  counts.products *= batch.count();
  counts.tiles *= batch.count();
  counts.columns *= batch.count();
  return counts;
}

Counts counts_of(const FftProblem& fft) {
  const double points = static_cast<double>(fft.points());
  return {.products = product({1.0 * fft.N, 1.0 * fft.rows(), 1.0 * fft.frequencies(),
                               1.0 * fft.rows(), 1.0 * fft.L}),
          .passes = points * (fft.passes() + 1)};
}

Counts counts_of(const SparseConvProblem& conv) {
  const double pairs = static_cast<double>(conv.pairs);
  return {.products = pairs * conv.Cin * conv.Cout, .columns = pairs * (conv.Cin + conv.Cout)};
}

Counts counts_of(const SparsePoolProblem& pool) {
  return {.products = static_cast<double>(pool.pairs) * pool.C};
}

Counts counts_of(const RulebookProblem& book) {
  return {.products = product({1.0 * book.sites, 1.0 * book.KV})};
}

Counts counts_of(const VoxelizeProblem& problem) { return {.products = 1.0 * problem.points}; }

/// For the other problems, only the elements of the arrays are counted.
template <class P>
Counts counts_of(const P&) {
  return {};
}

Counts counts_of(const Ladder& ladder, const Problem& problem) {
  Counts counts = std::visit([](const auto& typed) { return counts_of(typed); }, problem);
  const Signature signature = ladder.signature(problem);
  for (const auto* specs : {&signature.inputs, &signature.outputs}) {
    for (const ArraySpec& spec : *specs) {
      double elements = 1;
      for (const std::int64_t extent : spec.shape) elements *= static_cast<double>(extent);
      counts.elements += std::max(elements, 0.0);
    }
  }
  return counts;
}

/// Nanoseconds per unit of each count.
struct Costs {
  double product = 0, tile = 0, column = 0, pass = 0, element = 0;
};

double nanoseconds(const Costs& costs, const Counts& counts) {
  return costs.product * counts.products + costs.tile * counts.tiles +
         costs.column * counts.columns + costs.pass * counts.passes +
         costs.element * counts.elements;
}

constexpr double kStartNanoseconds = 1000;  // fixed cost of every rung

/// Costs by rung, measured with `compare --rung 'cpu_reference/*'` as the least of four runs on
/// problems of several shapes. A new C++ rung gets a row here.
const std::map<std::string_view, Costs>& costs_of_rungs() {
  static const std::map<std::string_view, Costs> costs = {
      {"cpu_reference/conv2d/direct", {.product = 1, .element = 1}},
      {"cpu_reference/conv2d/reordered", {.product = 0.1, .element = 0.15}},
      {"cpu_reference/conv2d/im2col_gemm", {.product = 0.04, .column = 0.5, .element = 0.15}},
      {"cpu_reference/conv2d/implicit_gemm", {.product = 0.15, .column = 3.8, .element = 0.15}},
      {"cpu_reference/conv2d/im2col_gemm_blocked", {.tile = 0.008, .element = 0.15}},
      {"cpu_reference/conv2d/winograd_1d", {.product = 0.33, .element = 2}},
      {"cpu_reference/conv2d/winograd_2x2", {.product = 0.8, .element = 4}},
      {"cpu_reference/conv2d/winograd_4x4", {.product = 0.85, .element = 8}},
      {"cpu_reference/conv2d/winograd_complex", {.product = 0.95, .element = 8}},
      {"cpu_reference/conv2d/winograd_split_rows", {.product = 0.33, .element = 2}},
      {"cpu_reference/conv2d/fft_whole_image", {.pass = 2, .element = 1}},
      {"cpu_reference/conv2d/fft_overlap_save", {.pass = 0.8, .element = 1}},
      {"cpu_reference/conv2d/fft_real", {.pass = 0.45, .element = 1}},
      {"cpu_reference/conv2d_dgrad/direct", {.product = 2.8, .element = 1}},
      {"cpu_reference/conv2d_dgrad/gemm_col2im", {.product = 0.07, .column = 2, .element = 1}},
      {"cpu_reference/conv2d_wgrad/direct", {.product = 1.1, .element = 1}},
      {"cpu_reference/conv2d_wgrad/im2col_gemm", {.product = 0.05, .column = 0.75, .element = 1}},
      {"cpu_reference/conv2d_wgrad/winograd_2x2", {.product = 0.3, .element = 4}},
      {"cpu_reference/conv2d_wgrad/winograd", {.product = 0.07, .element = 4}},
      {"cpu_reference/gemm/triple_loop", {.product = 1.2, .element = 1}},
      {"cpu_reference/gemm/eigen", {.product = 0.07, .element = 0.15}},
      {"cpu_reference/gemm/blocked", {.tile = 0.01, .column = 0.4, .element = 0.15}},
      {"cpu_reference/im2col/im2col", {.element = 0.6}},
      {"cpu_reference/im2col/im2row", {.element = 0.6}},
      {"cpu_reference/col2im/col2im", {.element = 0.7}},
      {"cpu_reference/fft/dft", {.product = 1.7, .element = 15}},
      {"cpu_reference/fft/radix2", {.pass = 1.17, .element = 2}},
      {"cpu_reference/fft/stockham", {.pass = 1.1, .element = 2}},
      {"cpu_reference/fft/real_pairs", {.pass = 0.55, .element = 2}},
      {"cpu_reference/fft/real_pairs_inverse", {.pass = 0.55, .element = 2}},
      {"cpu_reference/fft/rows_and_columns", {.pass = 1.2, .element = 2}},
      {"cpu_reference/fft/bluestein", {.pass = 10, .element = 20}},
      {"cpu_reference/rulebook/hash_map", {.product = 55}},
      {"cpu_reference/rulebook/sorted_search", {.product = 50}},
      {"cpu_reference/rulebook/neighbour_table", {.product = 55}},
      {"cpu_reference/sparse_conv/direct", {.product = 0.75, .element = 1}},
      {"cpu_reference/sparse_conv/gather_gemm_scatter",
       {.product = 0.08, .column = 1, .element = 1}},
      {"cpu_reference/sparse_dgrad/direct", {.product = 0.65, .element = 1}},
      {"cpu_reference/sparse_dgrad/gather_gemm_scatter",
       {.product = 0.07, .column = 0.7, .element = 1}},
      {"cpu_reference/sparse_wgrad/direct", {.product = 0.8, .element = 1}},
      {"cpu_reference/sparse_wgrad/gather_gemm_scatter",
       {.product = 0.08, .column = 1, .element = 1}},
      {"cpu_reference/sparse_max_pool/direct", {.product = 5, .element = 1}},
      {"cpu_reference/sparse_max_pool_dgrad/direct", {.element = 1}},
      {"cpu_reference/sparse_max_pool_dgrad/gather", {.product = 4, .element = 1}},
      {"cpu_reference/sparse_avg_pool/direct", {.product = 1, .element = 1}},
      {"cpu_reference/sparse_global_pool/direct", {.element = 1}},
      {"cpu_reference/sparse_to_dense/direct", {.element = 0.15}},
      {"cpu_reference/sparse_to_dense/row_grid", {.element = 2.5}},
      {"cpu_reference/tile_map/maps", {.element = 10}},
      {"cpu_reference/voxelize/hash_map", {.product = 80}},
      {"cpu_reference/voxelize/sorted_points", {.product = 55}},
  };
  return costs;
}

/// The costs of a ladder's reference on one core, and whether the reference uses all cores.
struct ReferenceCosts {
  Costs costs;
  bool parallel = false;
};
ReferenceCosts costs_of_reference(const Ladder& ladder, const Problem& problem) {
  constexpr double kProduct = 0.5, kOutput = 2, kMeeting = 150;
  if (std::holds_alternative<SparseConvProblem>(problem))
    return {{.product = kProduct, .element = kOutput}, true};
  if (std::holds_alternative<RulebookProblem>(problem)) return {{.product = kMeeting}, false};
  if (const auto* fft = std::get_if<FftProblem>(&problem)) {
    // The reference applies the definition to the odd part of a length.
    double odd = 1;
    for (int length : {fft->L, fft->rows()}) {
      while (length % 2 == 0) length /= 2;
      odd = std::max(odd, 1.0 * length);
    }
    return {{.pass = 20, .element = 10 * odd}, true};
  }
  const bool grows = ladder.name != "tile_map" && ladder.name != "voxelize";
  return {{.product = kProduct, .element = kOutput}, grows};
}

std::optional<double> expected_seconds(const Rung& rung, const Counts& counts) {
  const auto costs = costs_of_rungs().find(rung.name);
  if (costs == costs_of_rungs().end()) return {};
  return (kStartNanoseconds + nanoseconds(costs->second, counts)) * 1e-9;
}

}  // namespace

std::optional<double> expected_seconds(const Ladder& ladder, const Rung& rung,
                                       const Problem& problem) {
  return expected_seconds(rung, counts_of(ladder, problem));
}

double expected_seconds_of_reference(const Ladder& ladder, const Problem& problem) {
  const ReferenceCosts reference = costs_of_reference(ladder, problem);
  const double cores =
      reference.parallel ? std::max(1.0, 1.0 * std::thread::hardware_concurrency()) : 1.0;
  return nanoseconds(reference.costs, counts_of(ladder, problem)) * 1e-9 / cores;
}

std::vector<RankedRung> ranked_rungs(const Ladder& ladder, const Problem& problem,
                                     bool allow_transforms) {
  const Counts counts = counts_of(ladder, problem);
  std::vector<RankedRung> ranking;
  for (auto rung = ladder.rungs.rbegin(); rung != ladder.rungs.rend(); ++rung) {
    const auto& code = rung->code_at(Where::cpu);
    if (!code || code->supports(problem)) continue;
    ranking.push_back({&*rung, expected_seconds(*rung, counts)});
  }
  const auto key = [&](const RankedRung& of) {
    return std::tuple(!allow_transforms && of.rung->transforms(), !of.seconds,
                      of.seconds.value_or(0));
  };
  std::ranges::stable_sort(ranking, {}, key);
  return ranking;
}

}  // namespace convladder

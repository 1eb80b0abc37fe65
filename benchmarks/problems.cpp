#include "benchmarks/problems.hpp"

#include <algorithm>
#include <array>
#include <list>
#include <map>

#include "core/text.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/voxels.hpp"

namespace convladder::benchmarks {
namespace {

struct NamedConvolution {
  const char* id;
  Conv2dProblem problem;
  const char* teaches;
};

/// The convolutions: extremes of arithmetic, traffic and parallelism, most from well-known
/// networks.
std::vector<NamedConvolution> convolutions() {
  const auto make = [](int N, int C, int H, int W, int K, int R, int S, int pad, int stride,
                       int groups = 1) {
    return validated(Conv2dProblem{.N = N,
                                   .C = C,
                                   .H = H,
                                   .W = W,
                                   .K = K,
                                   .R = R,
                                   .S = S,
                                   .pad = {pad, pad, pad, pad},
                                   .stride = {stride, stride},
                                   .groups = groups});
  };
  return {
      {"B1", make(1, 6, 768, 512, 6, 6, 6, 0, 1), "few channels: direct convolution's own ground"},
      {"B2", make(1, 3, 1920, 2400, 3, 3, 3, 0, 1), "a photograph: nothing but bandwidth"},
      {"B3", make(32, 3, 224, 224, 64, 7, 7, 3, 2), "ResNet's first layer: three channels"},
      {"B4", make(32, 64, 56, 56, 64, 3, 3, 1, 1), "ResNet's 3x3: the everyday layer"},
      {"B5", make(32, 64, 56, 56, 256, 1, 1, 0, 1), "1x1: a matrix product, bound by memory"},
      {"B6", make(32, 256, 14, 14, 256, 3, 3, 1, 1), "98 tiles of 128 x 128 for 132 SMs"},
      {"B7", make(32, 512, 7, 7, 512, 3, 3, 1, 1), "52 tiles and long sums: split-k"},
      {"B8", make(32, 256, 56, 56, 512, 1, 1, 0, 2), "1x1 with stride 2: a strided gather"},
      {"B9", make(16, 64, 224, 224, 64, 3, 3, 1, 1), "VGG's second layer: columns of 1.85 GB"},
      {"B10", make(64, 512, 28, 28, 512, 3, 3, 1, 1), "VGG's 4_2: as much arithmetic as it gets"},
      {"B11", make(16, 1, 161, 700, 32, 5, 20, 0, 2), "DeepSpeech: one channel, a wide filter"},
      {"B12", make(32, 512, 14, 14, 512, 3, 3, 1, 1, 512), "MobileNet's depthwise layer"},
      {"B15", make(256, 64, 56, 56, 512, 1, 1, 0, 1), "1x1 with a tall output: the order of tiles"},
  };
}

/// The same layer as a network has it: with bias and ReLU.
BenchmarkProblem with_bias_and_relu(const NamedConvolution& layer) {
  Conv2dProblem problem = layer.problem;
  problem.bias = true;
  problem.activation = Activation::relu;
  return {"conv2d", text(layer.id, "-relu"), "with bias and ReLU: fused, or a pass over y",
          validated(problem)};
}

constexpr std::uint64_t kSeed = 1;  // of simulated and random sites

/// Where sites come from.
struct SiteSource {
  std::int64_t count;
  PerAxis shape;
  const char* words;
};

/// By name, see sites_of(). The counts are those of the generators; sites_of() compares.
const std::map<std::string, SiteSource>& site_sources() {
  static const std::map<std::string, SiteSource> all = {
      {"sweep", {125562, kLidarShape, "a LiDAR sweep"}},
      {"large", {913903, kLidarShape, "a long LiDAR sweep"}},
      {"half", {113971, {{40, 800, 800, 0}}, "the sweep at half its resolution"}},
      {"quarter", {44678, {{20, 400, 400, 0}}, "the sweep at a quarter of its resolution"}},
      {"eighth", {14780, {{9, 200, 200, 0}}, "the sweep at an eighth of its resolution"}},
      {"shell-64", {12576, every_axis(64), "a sphere's surface"}},
      {"shell-256", {202400, every_axis(256), "a sphere's surface"}},
      {"shell-1024", {3292736, every_axis(1024), "a sphere's surface"}},
      {"random-100k", {100'000, kLidarShape, "sites that hardly ever meet"}},
      {"cube-10", {1'000, every_axis(10), "every cell: few sites"}},
      {"cube-46", {97'336, every_axis(46), "every cell: as many sites as in a sweep"}},
      {"cube-100", {1'000'000, every_axis(100), "every cell: all look-ups find"}},
      {"cube-215", {9'938'375, every_axis(215), "every cell: as many sites as it gets"}},
  };
  return all;
}

/// A rulebook's mode and window.
struct Window {
  const char* id;
  SparseMode mode;
  PerAxis kernel, stride, pad;
};

const Window kSubm3 = {"subm3", SparseMode::subm, every_axis(3), every_axis(1), every_axis(0)};
const Window kK3s2 = {"k3s2", SparseMode::strided, every_axis(3), every_axis(2), every_axis(1)};
const Window kK3s1 = {"k3s1", SparseMode::strided, every_axis(3), every_axis(1), every_axis(1)};
const Window kK2s2 = {"k2s2", SparseMode::strided, every_axis(2), every_axis(2), every_axis(0)};
const Window kBack = {"back", SparseMode::inverse, every_axis(3), every_axis(2), every_axis(1)};
// The backbone's last two strided layers, which do not pad along z.
const Window kFlat = {"k3s2", SparseMode::strided, every_axis(3), every_axis(2), {{0, 1, 1, 0}}};
const Window kTop = {
    "k311s211", SparseMode::strided, {{3, 1, 1, 0}}, {{2, 1, 1, 0}}, every_axis(0)};

RulebookProblem book_of(const std::string& sites, const Window& window, RulebookForm form) {
  const SiteSource& source = site_sources().at(sites);
  return validated(RulebookProblem{.mode = window.mode,
                                   .sites = static_cast<int>(source.count),
                                   .shape = source.shape,
                                   .kernel = window.kernel,
                                   .stride = window.stride,
                                   .pad = window.pad,
                                   .form = form});
}

void add_rulebooks(std::vector<BenchmarkProblem>& all) {
  const auto add = [&](const std::string& sites, const Window& window, RulebookForm form,
                       const std::string& teaches) {
    all.push_back({"rulebook", text(sites, "-", window.id, "-", name_of(form)), teaches,
                   book_of(sites, window, form), sites});
  };
  for (const char* sites : {"sweep", "large"}) {
    using enum RulebookForm;
    add(sites, kSubm3, table, "submanifold: for an output-stationary convolution");
    add(sites, kSubm3, sorted, "submanifold: with the sort by mask");
    add(sites, kSubm3, pairs, "submanifold: for a scatter, or a product a tap");
    add(sites, kK3s2, table, "half the resolution: the outputs have to be found");
    add(sites, kK3s2, pairs, "half the resolution, as pairs");
    add(sites, kK2s2, table, "windows that do not overlap: one output an input");
    add(sites, kK3s1, table, "sites that grow at their borders: many times as many outputs");
    add(sites, kK3s1, pairs, "sites that grow at their borders, as pairs");
  }
  add("sweep", kSubm3, RulebookForm::split, "submanifold: an order for each half of the taps");
  add("sweep", kBack, RulebookForm::table, "inverse: back to the sites before k3s2");
  for (const auto& [name, source] : site_sources()) {
    const bool one_size_of_many =
        name.starts_with("shell-") || name.starts_with("random-") || name.starts_with("cube-");
    if (one_size_of_many) add(name, kSubm3, RulebookForm::table, source.words);
  }
}

void add_sparse_convolutions(std::vector<BenchmarkProblem>& all, const std::string& ladder) {
  const auto add = [&](const std::string& sites, int Cin, int Cout, const Window& window,
                       const std::string& teaches, bool bf16, bool relu = false) {
    const SparseConvProblem layer = {.book = book_of(sites, window, RulebookForm::pairs),
                                     .Cin = Cin,
                                     .Cout = Cout,
                                     .bias = relu,
                                     .activation = relu ? Activation::relu : Activation::none};
    const std::string channels = Cin == Cout ? text(Cin) : text(Cin, "-", Cout);
    all.push_back({ladder, text(sites, "-", channels, "-", window.id, relu ? "-relu" : ""), teaches,
                   layer, sites, bf16});
  };
  const bool forward = ladder == "sparse_conv";
  if (forward) add("sweep", 16, 16, kSubm3, "few channels: the first layers", false);
  add("sweep", 32, 32, kSubm3, "bound by traffic, and by the look-ups", false);
  add("sweep", 64, 64, kSubm3, "the everyday layer", true);
  if (forward) add("sweep", 64, 64, kSubm3, "with bias and ReLU", false, true);
  add("sweep", 128, 128, kSubm3, "many channels: arithmetic", false);
  for (const int channels : {32, 64, 128})
    add("large", channels, channels, kSubm3, "more than the L2 holds", false);
  add("sweep", 16, 32, kK3s2, "half the resolution", false);
  if (!forward) return;
  add("half", 32, 32, kSubm3, "a backbone's second stage", false);
  add("half", 32, 64, kK3s2, "a backbone's second stage, to the third", false);
  add("quarter", 64, 64, kSubm3, "a backbone's third stage", false);
  add("quarter", 64, 64, kFlat, "a backbone's third stage, to the fourth", false);
  add("eighth", 64, 64, kSubm3, "a backbone's fourth stage: little work for a GPU", false);
  add("eighth", 64, 128, kTop, "a backbone's last layer: three taps", false);
}

void add_sparse_poolings(std::vector<BenchmarkProblem>& all, const std::string& ladder) {
  const auto add = [&](const std::string& sites, int C, const Window& window,
                       const std::string& teaches) {
    const SparsePoolProblem pool = {.book = book_of(sites, window, RulebookForm::pairs), .C = C};
    all.push_back({ladder, text(sites, "-", C, "-", window.id), teaches, pool, sites});
  };
  add("sweep", 16, kK2s2, "windows that do not overlap, few channels: the indices weigh most");
  add("sweep", 64, kK2s2, "windows that do not overlap: traffic alone");
  add("half", 32, kK3s2, "windows that overlap: features are read again");
  add("half", 64, kK3s2, "windows that overlap, more channels");
}

void add_sparse_to_dense(std::vector<BenchmarkProblem>& all) {
  const auto add = [&](const std::string& sites, int C, const std::string& teaches) {
    const RulebookProblem grid = book_of(sites, kSubm3, RulebookForm::pairs);
    all.push_back({"sparse_to_dense", text(sites, "-", C), teaches,
                   validated(SparseToDenseProblem{.grid = grid, .C = C}), sites});
  };
  add("eighth", 64, "a backbone's fourth stage, for a dense head");
  add("eighth", 128, "as many channels as a backbone hands on");
  add("quarter", 32, "an emptier grid: nearly all stores are zeros");
}

std::vector<BenchmarkProblem> make_problems() {
  std::vector<BenchmarkProblem> all;
  const std::vector<NamedConvolution> named = convolutions();
  for (const char* ladder : {"conv2d", "conv2d_dgrad", "conv2d_wgrad"}) {
    for (const auto& [id, problem, teaches] : named) {
      // B15 is about its large output.
      if (std::string(id) == "B15" && std::string(ladder) != "conv2d") continue;
      all.push_back({ladder, id, teaches, problem});
      if (std::string(id) == "B4" && std::string(ladder) == "conv2d")
        all.push_back(with_bias_and_relu({id, problem, teaches}));
    }
  }
  for (const char* ladder : {"im2col", "col2im"}) {
    for (const auto& [id, problem, teaches] : named) {
      const std::string name = id;
      if (name == "B3" || name == "B4" || name == "B9" || name == "B10")
        all.push_back({ladder, id, teaches, columns_of(problem)});
    }
  }
  for (const int size : {1024, 2048, 4096, 8192}) {
    all.push_back({"gemm", text("cube-", size), "square matrices",
                   validated(GemmProblem{.M = size, .N = size, .K = size})});
  }
  // B15 as a product: c is 1.6 GB, so that the order of its tiles decides how often a is read.
  for (const TileMap map : {TileMap::row_major, TileMap::identity1, TileMap::identity8,
                            TileMap::grouped, TileMap::hilbert}) {
    all.push_back({"gemm", text("tall-", name_of(map)), "a tall product under a tile map",
                   validated(GemmProblem{.M = 256 * 56 * 56, .N = 512, .K = 64, .map = map})});
  }
  add_rulebooks(all);
  for (const char* ladder : {"sparse_conv", "sparse_dgrad", "sparse_wgrad"})
    add_sparse_convolutions(all, ladder);
  for (const char* ladder : {"sparse_max_pool", "sparse_max_pool_dgrad"})
    add_sparse_poolings(all, ladder);
  add_sparse_to_dense(all);
  return all;
}

/// The outermost layer of the cells of a ball in a cube, one cell thick.
Array shell_sites(int side) {
  std::vector<std::int32_t> rows;
  const double radius = side / 2.0;
  const auto offset = [&](int i) { return i + 0.5 - radius; };
  for (int z = 0; z < side; ++z) {
    for (int y = 0; y < side; ++y) {
      const double rest = offset(z) * offset(z) + offset(y) * offset(y);
      if (rest >= radius * radius) continue;
      for (int x = 0; x < side; ++x) {
        const double square = rest + offset(x) * offset(x);
        if (square >= (radius - 1) * (radius - 1) && square < radius * radius)
          rows.insert(rows.end(), {0, z, y, x});
      }
    }
  }
  Array coords(DType::i32, {static_cast<std::int64_t>(rows.size() / 4), 4});
  std::copy(rows.begin(), rows.end(), coords.as<std::int32_t>().begin());
  return coords;
}

Array cube_sites(int side) {
  Array coords(DType::i32, {std::int64_t{side} * side * side, 4});
  auto to = coords.as<std::int32_t>().begin();
  for (int z = 0; z < side; ++z) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) to = std::ranges::copy(std::array{0, z, y, x}, to).out;
    }
  }
  return coords;
}

const Array& sites_named(const std::string& name);

Array make_sites(const std::string& name) {
  const SiteSource& source = site_sources().at(name);
  const int side = source.shape[0];
  if (name == "sweep" || name == "large") return lidar_sweep(source.count, kSeed);
  if (name.starts_with("shell-")) return shell_sites(side);
  if (name.starts_with("cube-")) return cube_sites(side);
  const auto strided = [](const std::string& from, const Window& window) {
    return make_rulebook(book_of(from, window, RulebookForm::pairs), sites_named(from)).out_coords;
  };
  if (name == "half") return strided("sweep", kK3s2);
  if (name == "quarter") return strided("half", kK3s2);
  if (name == "eighth") return strided("quarter", kFlat);
  const RulebookProblem grid{.sites = static_cast<int>(source.count), .shape = source.shape};
  return random_sites(validated(grid), source.count, kSeed);
}

const Array& sites_named(const std::string& name) {
  static std::map<std::string, Array> made;
  auto sites = made.find(name);
  if (sites == made.end()) {
    sites = made.emplace(name, make_sites(name)).first;
    const std::int64_t count = sites->second.shape()[0];
    if (count != site_sources().at(name).count)
      throw std::logic_error(text("the sites ", name, " are ", count, ": correct their table"));
  }
  return sites->second;
}

}  // namespace

const std::vector<BenchmarkProblem>& benchmark_problems() {
  static const std::vector<BenchmarkProblem> all = make_problems();
  return all;
}

std::string describe(const BenchmarkProblem& benchmark) {
  const auto* pool = std::get_if<SparsePoolProblem>(&benchmark.problem);
  if (pool != nullptr && pool->pairs == 0)
    return text(convladder::describe(pool->book), ", ", pool->C, " channels");
  const auto* conv = std::get_if<SparseConvProblem>(&benchmark.problem);
  if (conv == nullptr || conv->pairs != 0) return convladder::describe(benchmark.problem);
  std::string line =
      text(convladder::describe(conv->book), ", ", conv->Cin, " to ", conv->Cout, " channels");
  if (conv->bias) line += ", bias";
  if (conv->activation != Activation::none) line += text(", ", name_of(conv->activation));
  return line;
}

const Array& sites_of(const BenchmarkProblem& benchmark) { return sites_named(benchmark.sites); }

const RulebookProblem* book_of(const Problem& problem) {
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem)) return &conv->book;
  if (const auto* pool = std::get_if<SparsePoolProblem>(&problem)) return &pool->book;
  if (const auto* dense = std::get_if<SparseToDenseProblem>(&problem)) return &dense->grid;
  return std::get_if<RulebookProblem>(&problem);
}

const Rulebook& rulebook_of(const BenchmarkProblem& benchmark) {
  constexpr std::size_t kKept = 4;
  // By what the ids of problems tell apart: the sites and the window.
  struct Made {
    std::string sites, window;
    Rulebook book;
  };
  static std::list<Made> made;
  RulebookProblem book = *book_of(benchmark.problem);
  book.form = RulebookForm::pairs;  // the oracle's has all forms
  const std::string window = convladder::describe(book);
  for (auto known = made.begin(); known != made.end(); ++known) {
    if (known->sites != benchmark.sites || known->window != window) continue;
    made.splice(made.begin(), made, known);
    return known->book;
  }
  if (made.size() == kKept) made.pop_back();
  made.push_front({benchmark.sites, window, make_rulebook(book, sites_of(benchmark))});
  return made.front().book;
}

Problem whole_problem(const BenchmarkProblem& benchmark, const Problem& variant) {
  if (const auto* conv = std::get_if<SparseConvProblem>(&variant))
    return convolution_over(rulebook_of(benchmark), *conv);
  if (const auto* pool = std::get_if<SparsePoolProblem>(&variant))
    return pooling_over(rulebook_of(benchmark), pool->C);
  return variant;
}

double operations(const Problem& problem) {
  if (const auto* p = std::get_if<Conv2dProblem>(&problem)) {
    const int channels = p->C / p->groups;
    return 2.0 * p->N * p->K * p->P * p->Q * channels * p->R * p->S;
  }
  if (const auto* p = std::get_if<GemmProblem>(&problem)) return 2.0 * p->M * p->N * p->K;
  if (const auto* p = std::get_if<SparseConvProblem>(&problem))
    return 2.0 * static_cast<double>(p->pairs) * p->Cin * p->Cout;
  return 0;
}

}  // namespace convladder::benchmarks

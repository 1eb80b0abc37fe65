#include "tests/sparse_problems.hpp"

#include <array>

#include "core/padding_after.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"
#include "tests/sparse_edges.hpp"

namespace convladder::testing {
namespace {

/// Channels and rows that decide which tiles rungs take, and whether rows are copied in pieces of
/// 16 bytes. One side has few channels wherever that makes no difference, and the taps are few.
std::vector<NamedSites> layer_cases(const std::string& ladder) {
  struct Layer {
    const char* name;
    int rows, taps;
    Channels channels;
    std::size_t misalignment = 0;
    bool weights = true;  ///< Whether the weight gradient, whose tiles are of channels, needs it.
  };
  constexpr Layer kLayers[] = {
      // Few rows, and wide on both sides: tiles of the weights, and several steps over channels.
      {"wide", 60, 3, {64, 64}},
      {"wide", 50, 3, {32, 64}},
      {"wide, in four whole tiles", 40, 3, {128, 128}},
      {"wide, after the last whole tile", 40, 3, {36, 132}},
      {"wide, misaligned", 50, 3, {40, 72}, 4},
      // More rows than the 1024 for which there are small tiles.
      {"many rows", 1030, 3, {8, 24}},
      {"many rows, up to 64 channels", 800, 2, {40, 64}, 0, false},
      {"many rows, over 64 channels", 800, 2, {24, 136}, 0, false},
      // On a machine that tests make small: a tile or two for each multiprocessor.
      {"some rows", 300, 1, {24, 32}},
      {"some rows, over 64 channels", 300, 1, {40, 72}},
      {"some rows, odd, up to 32 channels", 300, 1, {17, 23}},
      {"some rows, odd, up to 64 channels", 300, 1, {19, 41}},
      {"some rows, odd", 400, 1, {9, 23}},
      {"some rows, odd, over 32 channels", 400, 1, {23, 41}},
      {"some rows, odd, over 64 channels", 400, 1, {19, 67}}};
  std::vector<NamedSites> list;
  Dice dice(64);
  for (const Layer& layer : kLayers) {
    if (ladder == "sparse_wgrad" && !layer.weights) continue;
    // The input gradient's rows are those of the input.
    Channels channels = layer.channels;
    if (ladder == "sparse_dgrad") std::swap(channels.in, channels.out);
    // A quarter of the cells are sites. Two taps make up to twice as many rows of them.
    const SparseMode mode = layer.taps == 3 ? kSubm : kStrided;
    const RulebookProblem book = book_of(mode, 1, {{4 * layer.rows}}, {{layer.taps}});
    list.push_back({layer.name, random_case(book, layer.rows, dice), kRows, Size::small,
                    layer.misalignment, channels});
  }
  if (ladder == "sparse_wgrad") {
    // One tap with so many pairs that several blocks share them, each with more steps than its ring
    // has stages.
    for (const Channels channels : {Channels{16, 24}, Channels{40, 64}, Channels{72, 128}}) {
      list.push_back({text("a long list of pairs, up to ", channels.out, " channels"),
                      random_case(book_of(kSubm, 1, {{4 * 2100}}, {{1}}), 2100, dice),
                      kRows,
                      Size::full,
                      {},
                      channels});
      list.back().rungs = {"cuda_optimized/sparse_wgrad/split_k_wgmma"};
    }
    // So many tiles of channels and taps that one part has all pairs of a tap: more steps than the
    // ring has stages. The sites are so far apart that only the centre has pairs.
    const SparseCase apart = case_where(book_of(kSubm, 1, {{16 * 100}}, {{31}}),
                                        [](const Site& site) { return site.at[0] % 16 == 0; });
    list.push_back({"long parts of the pairs", apart, kRows, Size::full, 0, Channels{2056, 8}});
    list.back().once = true;
    for (const char* const rung : {"split_k", "split_k_atomics", "split_k_mma"})
      list.back().rungs.push_back(text("cuda_optimized/sparse_wgrad/", rung));
  }
  return list;
}

/// Channels for the i-th problem, and bytes between a 256-byte boundary and its arrays. So many of
/// each that all combinations come up over the list, and bias and activation with each.
constexpr std::array<Channels, 7> kChannels = {
    {{1, 1}, {3, 7}, {16, 16}, {17, 4}, {5, 33}, {33, 17}, {24, 40}}};
constexpr std::array<std::size_t, 5> kMisalignments = {0, 4, 0, 8, 12};

/// The same for poolings: of each width of a vector, with rows in one block and in several.
constexpr std::array<int, 9> kPoolChannels = {1, 3, 16, 17, 6, 33, 8, 132, 2};

/// And for dense tensors and global poolings: around a tile.
constexpr std::array<int, 7> kDenseChannels = {1, 32, 3, 33, 31, 16, 65};
constexpr std::int64_t kMostElements = 100'000;  ///< Of a dense tensor, or of images.

}  // namespace

bool pools_over_rulebook(const std::string& ladder) {
  return ladder == "sparse_avg_pool" || ladder.starts_with("sparse_max_pool");
}

TestProblem sparse_problem(const std::string& ladder, const std::string& name,
                           const SparseCase& sites, const SparseConvProblem& layer) {
  if (ladder == "rulebook") {
    TestProblem test{.name = name, .problem = sites.book};
    test.given.emplace("coords", sites.coords);
    return test;
  }
  if (ladder == "sparse_to_dense") {
    TestProblem test{
        .name = name,
        .problem = validated(SparseToDenseProblem{.grid = sites.book, .C = layer.Cin})};
    test.given.emplace("coords", sites.coords);
    return test;
  }
  if (ladder == "sparse_global_pool") {
    TestProblem test{
        .name = name,
        .problem = validated(SparseGlobalPoolProblem{
            .grid = sites.book,
            .C = layer.Cin,
            .reduce = layer.Cout % 2 == 1 ? PoolReduction::mean : PoolReduction::max})};
    test.given.emplace("coords", sites.coords);
    return test;
  }
  const Rulebook book = make_rulebook(sites.book, sites.coords);
  if (pools_over_rulebook(ladder)) {
    const SparsePoolProblem pool = pooling_over(book, layer.Cin);
    TestProblem test{.name = name, .problem = pool};
    test.given = rulebook_inputs(book, convladder::ladder(ladder).signature(pool));
    if (ladder == "sparse_max_pool_dgrad")
      test.given.emplace("argmax", argmax_of_made_up(book, pool.C, Data::integer, 1));
    return test;
  }
  TestProblem test{.name = name, .problem = convolution_over(book, layer)};
  test.given = rulebook_inputs(book, convladder::ladder(ladder).signature(test.problem));
  return test;
}

std::vector<TestProblem> sparse_problems(const std::string& ladder) {
  const bool pools = pools_over_rulebook(ladder), to_dense = ladder == "sparse_to_dense";
  const bool to_images = ladder == "sparse_global_pool", sites_alone = to_dense || to_images;
  std::vector<NamedSites> cases = edge_cases();
  if (ladder != "rulebook" && !to_dense)
    std::erase_if(cases, [](const NamedSites& entry) { return entry.shows == Shows::places; });
  if (ladder != "rulebook" && !sites_alone && !pools)
    for (NamedSites& layer : layer_cases(ladder)) cases.push_back(std::move(layer));
  if (pools) {  // a sum over nothing needs no care, a maximum or a mean does
    RulebookProblem gaps = book_of(kInverse, 2, {{17, 19}}, every_axis(1));
    gaps.stride = every_axis(3);
    Dice dice(7);
    cases.push_back({"outputs without candidates", random_case(gaps, 60, dice), kRows});
    cases.push_back({"rows of whole vectors, arrays at 16 n + 8 bytes",
                     random_case(book_of(kSubm, 2, {{9, 8}}, every_axis(3)), 40, dice), kRows,
                     Size::small, 8, Channels{8, 8}});
  }
  if (to_images) {
    // Some of the images have no site, and the rows of the others are mixed.
    RulebookProblem book = book_of(kSubm, 2, {{20, 40}}, every_axis(1));
    book.batch = 5;
    Dice dice(9);
    for (const Channels channels : {Channels{33, 1}, {40, 2}})
      cases.push_back({"several parts of the rows", random_case(book, 300, dice), kRows,
                       Size::small, 0, channels});
    book.batch = 900;
    book.shape = {{2, 3}};
    for (const Channels channels : {Channels{2, 1}, {3, 2}})
      cases.push_back(
          {"images without a site", random_case(book, 70, dice), kRows, Size::small, 0, channels});
  }
  std::vector<TestProblem> list;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const NamedSites& entry = cases[i];
    Channels channels = entry.channels.value_or(kChannels[i % kChannels.size()]);
    if (pools && !entry.channels) channels.in = kPoolChannels[i % kPoolChannels.size()];
    if (sites_alone) {
      if (!entry.channels) channels.in = kDenseChannels[i % kDenseChannels.size()];
      // One mode has all sets of sites, most of them in grids that are small enough.
      const RulebookProblem& book = entry.sites.book;
      const std::int64_t cells = to_dense ? key_count(book, book.shape) : book.batch;
      if (book.mode != kSubm || cells * channels.in > kMostElements || !entry.rungs.empty())
        continue;
    }
    SparseConvProblem layer{.Cin = channels.in, .Cout = channels.out};
    if (ladder == "sparse_conv") {
      layer.bias = i % 3 == 1;
      if (i % 4 == 1) layer.activation = Activation::relu;
    }
    list.push_back(sparse_problem(ladder, entry.name, entry.sites, layer));
    list.back().size = entry.size;
    list.back().once = entry.once;
    list.back().rungs = entry.rungs;
    list.back().misalignment =
        entry.misalignment.value_or(kMisalignments[i % kMisalignments.size()]);
  }
  return list;
}

std::vector<TestProblem> sparse_rounding_problems(const std::string& ladder) {
  if (ladder != "sparse_conv" && ladder != "sparse_dgrad" && ladder != "sparse_wgrad") return {};
  struct Case {
    int rows;
    Channels channels;  ///< The sums are over those of the input, or over the rows.
    std::size_t misalignment = 0;
  };
  // Few rows and wide, more rows than tiles for few have, and rows that are copied one by one.
  constexpr Case kCases[] = {{150, {128, 136}}, {1030, {128, 24}}, {140, {129, 33}, 4}};
  std::vector<TestProblem> list;
  Dice dice(128);
  for (const Case& one : kCases) {
    // One tap: at the border of a kernel, sums are shorter.
    const RulebookProblem book = book_of(kSubm, 1, {{2 * one.rows}}, {{1}});
    Channels channels = one.channels;
    if (ladder == "sparse_dgrad") std::swap(channels.in, channels.out);
    list.push_back(sparse_problem(ladder, kRounding, random_case(book, one.rows, dice),
                                  {.Cin = channels.in, .Cout = channels.out}));
    list.back().misalignment = one.misalignment;
    list.back().equal_sums = true;
  }
  return list;
}

std::vector<TestProblem> random_sparse_problems(const std::string& ladder, int count,
                                                std::uint64_t seed) {
  // Convolutions do not see where sites are: fewer of them, and fewer taps, make as many tiles.
  const bool rows_alone = ladder != "rulebook" && ladder != "sparse_to_dense";
  const int most_sites = rows_alone ? 70 : 150, most_taps = rows_alone ? 30 : 256;
  Dice dice(seed);
  std::vector<TestProblem> list;
  while (static_cast<int>(list.size()) < count) {
    RulebookProblem book{.mode = static_cast<SparseMode>(dice(0, 3)), .ndim = dice(1, 4)};
    book.batch = dice(1, 3);
    int cells = book.batch, taps = 1;
    for (int axis = 0; axis < book.ndim; ++axis) {
      book.shape[axis] = dice(1, book.ndim == 1 ? 200 : book.ndim == 4 ? 6 : 16);
      book.kernel[axis] = dice(1, book.ndim == 4 ? 3 : 4);
      book.dilation[axis] = dice(1, 3);
      cells *= book.shape[axis];
      if (book.mode == kSubm) book.kernel[axis] |= 1;
      taps *= book.kernel[axis];
      if (book.mode == kSubm) continue;
      book.stride[axis] = dice(1, 3);
      book.pad[axis] = dice(0, 4);
      if (book.mode == kTransposed)
        book.out_padding[axis] = dice(0, std::max(book.stride[axis], book.dilation[axis]) - 1);
    }
    if (taps > most_taps) continue;
    try {
      if (book.mode != kSubm && dice(0, 3) == 0) {
        PerAxis after;
        for (int axis = 0; axis < book.ndim; ++axis) after[axis] = dice(0, 4);
        book = with_padding_after(book, after);
      }
      const SparseCase sites = random_case(book, dice(0, std::min(cells, most_sites)), dice);
      list.push_back(sparse_problem(ladder, text("random ", list.size() + 1, " of seed ", seed),
                                    sites, {.Cin = dice(1, 20), .Cout = dice(1, 20)}));
    } catch (const BadInput&) {
      continue;  // a kernel that does not fit
    }
  }
  return list;
}

}  // namespace convladder::testing

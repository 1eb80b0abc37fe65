#include "check/trial.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "core/error.hpp"
// Where an assignment has sparse ladders.
#if __has_include("oracle/made_up_sites.hpp") && !defined(CHECK_WITHOUT_SITES)
#include "oracle/made_up_sites.hpp"
#define CHECK_HAS_SITES
#endif

namespace convladder::check {
namespace {

Problem read_conv2d(Options& options) {
  Conv2dProblem conv;
  conv.N = options.take_number("n", 1);
  conv.C = options.take_number("c", 3);
  conv.H = options.take_number("h", 16);
  conv.W = options.take_number("w", 40);
  conv.K = options.take_number("k", 4);
  conv.R = options.take_number("r", 3);
  conv.S = options.take_number("s", 3);
  const std::vector<int> pad = options.take_numbers("pad");
  require(pad.size() <= 2 || pad.size() == 4, "pad", joined(pad, ","),
          "must be P, or PH,PW, or top,bottom,left,right");
  if (pad.size() == 4) conv.pad = {pad[0], pad[1], pad[2], pad[3]};
  if (pad.size() == 1 || pad.size() == 2)
    conv.pad = {pad.front(), pad.front(), pad.back(), pad.back()};
  const std::vector<int> stride = options.take_for_each("stride", 2, 1);
  const std::vector<int> dilation = options.take_for_each("dilation", 2, 1);
  conv.stride = {stride[0], stride[1]};
  conv.dilation = {dilation[0], dilation[1]};
  conv.groups = options.take_number("groups", 1);
  conv.bias = options.take("bias").has_value();
  constexpr std::array kActivations = {"none", "relu"};
  if (options.take_word("activation", kActivations) == 1) conv.activation = Activation::relu;
  return validated(conv);
}

Problem read_columns(Options& options) {
  Im2colProblem problem;
  problem.N = options.take_number("n", 1);
  problem.C = options.take_number("c", 3);
  std::vector<int> sizes = options.take_numbers("size");
  if (sizes.empty()) sizes = {12, 20};
  require(sizes.size() <= 3, "size", joined(sizes, ","), "must be W, H,W or D,H,W");
  const std::size_t rank = sizes.size();
  problem.rank = static_cast<int>(rank);
  const std::vector<int> kernel = options.take_for_each("kernel", rank, 3);
  const std::vector<int> stride = options.take_for_each("stride", rank, 1);
  const std::vector<int> dilation = options.take_for_each("dilation", rank, 1);
  std::vector<int> pad = options.take_numbers("pad");  // one an axis, or before and after each
  if (pad.empty()) pad = {0};
  if (pad.size() == 1) pad.assign(rank, pad.front());
  require(pad.size() == rank || pad.size() == 2 * rank, "pad", joined(pad, ","),
          text("must be 1, ", rank, " or ", 2 * rank, " numbers"));
  const std::array<WindowAxis*, 3> axes = {&problem.depth, &problem.height, &problem.width};
  for (std::size_t i = 0; i < rank; ++i) {
    const bool both_ends = pad.size() == 2 * rank;
    *axes[3 - rank + i] = {.size = sizes[i],
                           .kernel = kernel[i],
                           .pad_before = both_ends ? pad[2 * i] : pad[i],
                           .pad_after = both_ends ? pad[2 * i + 1] : pad[i],
                           .stride = stride[i],
                           .dilation = dilation[i]};
  }
  constexpr std::array kWords = {"write", "add", "none"};
  constexpr std::array kRequests = {Request::write, Request::add, Request::none};
  problem.request = kRequests[options.take_word("request", kWords)];
  return validated(problem);
}

TileMap read_map(Options& options) {
  std::vector<std::string> names;
  for (const TileMapName& map : kTileMaps) names.emplace_back(map.name);
  return kTileMaps[options.take_word("map", names)].map;
}

Problem read_gemm(Options& options) {
  return validated(GemmProblem{.M = options.take_number("m", 200),
                               .N = options.take_number("n", 168),
                               .K = options.take_number("k", 128),
                               .map = read_map(options)});
}

Problem read_tile_map(Options& options) {
  TileMapProblem problem;
  problem.map = read_map(options);
  std::vector<int> tiles = options.take_numbers("tiles");
  if (tiles.empty()) tiles = {12, 10, 8};
  if (tiles.size() == 2) tiles.push_back(1);
  require(tiles.size() == 3, "tiles", joined(tiles, ","), "must be TM,TN or TM,TN,STEPS");
  problem.tiles_m = tiles[0];
  problem.tiles_n = tiles[1];
  problem.k_steps = tiles[2];
  problem.batch = options.take_number("batch", 1);
  problem.splits = options.take_number("splits", 1);
  problem.blocks = options.take_number("blocks", problem.blocks);
  problem.group_rows = options.take_number("group-rows", problem.group_rows);
  return validated(problem);
}

#ifdef CHECK_HAS_SITES
PerAxis per_axis(const std::vector<int>& numbers) {
  PerAxis axes = every_axis(0);
  for (std::size_t i = 0; i < numbers.size(); ++i) axes[static_cast<int>(i)] = numbers[i];
  return axes;
}

/// A rulebook, and the sites that it is about.
Problem read_rulebook(Options& options, Trial& trial) {
  RulebookProblem book;
  std::vector<int> shape = options.take_numbers("shape");
  if (shape.empty()) shape = {10, 12, 14};
  require(shape.size() <= kMaxAxes, "shape", joined(shape, ","), "has 1 to 4 axes");
  const std::size_t axes = shape.size();
  const auto each = [&](const char* option, int otherwise) {
    return per_axis(options.take_for_each(option, axes, otherwise));
  };
  book.ndim = static_cast<int>(axes);
  book.shape = per_axis(shape);
  book.mode = static_cast<SparseMode>(options.take_word("mode", kSparseModes));
  book.form = static_cast<RulebookForm>(options.take_word("form", kRulebookForms));
  book.batch = options.take_number("batch", 1);
  book.kernel = each("kernel", 3);
  book.stride = each("stride", 1);
  book.pad = each("pad", 0);
  book.dilation = each("dilation", 1);
  book.out_padding = each("out-padding", 0);
  const auto places = static_cast<Places>(options.take_word("places", kPlaces));
  const auto order = static_cast<SiteOrder>(options.take_word("order", kSiteOrders));
  const int count = options.take_number("sites", 100);
  constexpr std::array kBad = {"none", "repeated", "outside"};
  if (const std::size_t bad = options.take_word("bad-sites", kBad); bad != 0) {
    const BadSite kind = bad == 1 ? BadSite::repeated : BadSite::outside;
    trial.spoilt = {.kind = kind, .count = 3, .seed = 1};
  }
  book = validated(book);  // before sites are drawn in it
  Array coords = made_up_sites(book, count, places, order, 1);
  book.sites = static_cast<int>(coords.shape()[0]);
  trial.given.emplace("coords", std::move(coords));
  return validated(book);
}
#endif

/// Pairs of window and tap along an axis that read an element of it.
std::int64_t inside(const WindowAxis& axis) {
  std::int64_t count = 0;
  for (std::int64_t i = -axis.pad_before; i < axis.size + axis.pad_after; ++i) {
    if (i < 0 || i >= axis.size) continue;
    for (int tap = 0; tap < axis.kernel; ++tap) {
      const std::int64_t begin = i + axis.pad_before - std::int64_t{tap} * axis.dilation;
      if (begin >= 0 && begin % axis.stride == 0 && begin / axis.stride < axis.out) ++count;
    }
  }
  return count;
}

}  // namespace

std::vector<std::string> split(const std::string& words) {
  std::istringstream in(words);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

Trial read_trial(const std::string& ladder, const std::vector<std::string>& words) {
  Options options(words);
  const int offset = options.take_number("offset", 0);
  require(offset >= 0 && offset < 256 && offset % 4 == 0, "offset", offset,
          "must be a multiple of 4 bytes below 256");
  std::optional<std::int64_t> most_blocks;
  if (const auto given = options.take("most-blocks")) {
    most_blocks = whole("most-blocks", *given);
    require(*most_blocks >= 1, "most-blocks", *given, "must be at least 1");
  }
  Trial trial;
  trial.offset = static_cast<std::size_t>(offset);
  trial.most_blocks = most_blocks;
  if (ladder == "conv2d" || ladder == "conv2d_wgrad") {
    trial.problem = read_conv2d(options);
  } else if (ladder == "gemm") {
    trial.problem = read_gemm(options);
  } else if (ladder == "tile_map") {
    trial.problem = read_tile_map(options);
#ifdef CHECK_HAS_SITES
  } else if (ladder == "rulebook") {
    trial.problem = read_rulebook(options, trial);
#endif
  } else {
    trial.problem = read_columns(options);
  }
  options.require_none_left();
  return trial;
}

std::optional<double> number_of(const std::string& name, const Problem& problem) {
  if (!name.starts_with("problem.")) return {};
  const std::string what = name.substr(name.find('.') + 1);
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    if (what == "p") return conv->P;
    if (what == "q") return conv->Q;
  } else if (const auto* columns = std::get_if<Im2colProblem>(&problem)) {
    const std::int64_t elements = std::int64_t{columns->N} * columns->rows() * columns->columns();
    if (what == "bytes_of_col") return static_cast<double>(elements) * sizeof(float);
    if (what == "taps_in_the_padding") {
      const std::int64_t reads = std::int64_t{columns->N} * columns->C * inside(columns->depth) *
                                 inside(columns->height) * inside(columns->width);
      return static_cast<double>(elements - reads);
    }
  }
  if (const auto* map = std::get_if<TileMapProblem>(&problem); map && what == "idle_blocks") {
    const BlockGrid grid = grid_of(*map);
    return static_cast<double>(grid.x * grid.y - std::int64_t{map->tiles_m} * map->tiles_n);
  }
  throw BadInput(text("counter = ", name, ": this problem has no counter of that name"));
}

}  // namespace convladder::check

#include "command/ladders/sites.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "command/points.hpp"
#include "core/error.hpp"
#include "core/padding_after.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/made_up_sites.hpp"
#include "oracle/voxels.hpp"

namespace convladder::command {
namespace {

constexpr int kExampleSites = 200;
constexpr int kExampleKernel = 3;
constexpr int kExampleExtents[kMaxAxes] = {400, 24, 10, 6};  // by the number of axes

/// The source of a problem's sites.
struct Sites {
  std::optional<Array> coords = {};  ///< Empty: drawn at random once the grid is known.
  std::vector<int> shape = {};       ///< Empty: not given.
  std::string name = {};             ///< For the title, unless the source is a file of coordinates.
};

/// At most one of several options may be given.
void require_one_of(const Parameters& parameters, const std::vector<std::string>& names) {
  std::string first;
  for (const std::string& name : names) {
    if (!parameters.given(name)) continue;
    require(first.empty(), name, parameters.word(name).value_or(""),
            text("the sites are already given by ", first));
    first = name;
  }
}

void require_not_given(const Parameters& parameters, const std::string& name,
                       const std::string& rule) {
  require(!parameters.given(name), name, parameters.word(name).value_or(""), rule);
}

Sites read_point_sites(Parameters& parameters) {
  const std::string file = parameters.word("points").value_or("");
  const auto [numbers, grid] = read_points(parameters);
  const std::int64_t count = numbers.shape()[0];
  Voxels voxels = voxels_of(grid, numbers.as<float>(), numbers.shape()[1]);
  note_left_out(parameters, "points = " + file, voxels.outside, count);
  parameters.note(text("points = ", file, ": ", count - voxels.outside, " points lie in ",
                       voxels.coords.shape()[0], " voxels"));
  return {std::move(voxels.coords),
          {grid.shape[0], grid.shape[1], grid.shape[2]},
          std::filesystem::path(file).filename().string()};
}

Sites read_lidar_sites(const Parameters& parameters, std::uint64_t seed) {
  return {lidar_sweep(lidar_voxels(parameters), seed),
          {kLidarShape[0], kLidarShape[1], kLidarShape[2]},
          "simulated LiDAR sweep"};
}

Sites read_sites(Parameters& parameters, std::uint64_t seed) {
  require_one_of(parameters, {"coords", "points", "lidar", "sites"});
  for (const char* name : {"places", "order"}) {
    for (const char* other : {"coords", "points", "lidar"}) {
      if (parameters.given(other))
        require_not_given(parameters, name, text("applies to made-up sites, not to --", other));
    }
  }
  if (!parameters.given("points")) {
    for (const char* name : {"voxel", "range", "columns"})
      require_not_given(parameters, name, "is used with --points only");
  }
  Sites sites;
  if (parameters.given("points")) {
    require_not_given(parameters, "shape", "the grid of points is given by --range and --voxel");
    return read_point_sites(parameters);
  }
  if (parameters.given("lidar")) {
    require_not_given(parameters, "shape", "the simulated sweep has its own grid");
    return read_lidar_sites(parameters, seed);
  }
  sites.shape = parameters.numbers("shape");
  require(sites.shape.size() <= kMaxAxes, "shape", joined(sites.shape, ","),
          text("has ", sites.shape.size(), " axes; there may be 1 to ", kMaxAxes));
  if (!parameters.given("coords")) return sites;
  sites.coords = parameters.array("coords", {"[sites][1 + axes]"}, DType::i32);
  const Shape& table = sites.coords->shape();
  const std::string file = parameters.word("coords").value_or("");
  require(table[1] >= 2 && table[1] <= 1 + kMaxAxes, "coords", file,
          text("has ", table[1], table[1] == 1 ? " column" : " columns",
               "; a batch index and 1 to 4 coordinates are 2 to 5 columns"));
  require(sites.shape.empty() || static_cast<std::int64_t>(sites.shape.size()) == table[1] - 1,
          "shape", joined(sites.shape, ","),
          text("must be ", table[1] - 1, table[1] == 2 ? " extent" : " extents",
               ", one per axis of ", parameters.source("coords", table)));
  return sites;
}

/// The index of the given word among the words; 0 if absent.
template <class Enum, std::size_t count>
Enum read_enum(const Parameters& parameters, const std::string& name,
               const std::array<std::string_view, count>& names) {
  const std::vector<std::string> words(names.begin(), names.end());
  const std::string word = parameters.word(name, words).value_or(words.front());
  return static_cast<Enum>(std::find(words.begin(), words.end(), word) - words.begin());
}

/// Made-up sites in a grid that is known.
Array draw_sites(const RulebookProblem& book, Parameters& parameters, std::uint64_t seed) {
  const std::int64_t room = key_count(book, book.shape);
  const std::optional<int> asked = parameters.number("sites");
  if (asked) require(*asked >= 0, "sites", *asked, "must be at least 0");
  const std::int64_t count = std::min(std::int64_t{asked.value_or(kExampleSites)}, room);
  Array coords = made_up_sites(book, count, read_enum<Places>(parameters, "places", kPlaces),
                               read_enum<SiteOrder>(parameters, "order", kSiteOrders), seed);
  if (asked && coords.shape()[0] < *asked)
    parameters.note(text("sites = ", *asked, ": the grid has room for ", coords.shape()[0]));
  return coords;
}

/// The number of axes if neither sites nor a shape give it: the length of the longest list.
std::size_t rank_of_lists(const Parameters& parameters) {
  std::size_t rank = 1;
  for (const char* name : {"kernel", "stride", "dilation", "out-padding"})
    rank = std::max(rank, parameters.numbers(name).size());
  if (rank == 1) {
    const std::size_t pads = parameters.numbers("pad").size();
    rank = pads > kMaxAxes && pads % 2 == 0 ? pads / 2 : std::max(rank, pads);
  }
  require(rank <= kMaxAxes, "axes", rank, text("must be 1 to ", kMaxAxes));
  return rank > 1 ? rank : 3;
}

/// The largest number in a column of coords, plus 1; at least `least`.
int extent_of(const Array& coords, int column, int least) {
  const auto numbers = coords.as<std::int32_t>();
  const auto columns = static_cast<std::size_t>(coords.shape()[1]);
  std::int32_t largest = least - 1;
  for (auto i = static_cast<std::size_t>(column); i < numbers.size(); i += columns)
    largest = std::max(largest, numbers[i]);
  require(largest < std::numeric_limits<std::int32_t>::max(), "coords", largest,
          "must be less than 2^31 - 1");
  return largest + 1;
}

/// Completes the axes, and the grid if its extents are not given.
void set_grid(RulebookProblem& book, const Sites& sites, Parameters& parameters) {
  require(!parameters.pads_same(), "pad", "same",
          "is for dense ladders: the output sites of a sparse ladder follow from numbers");
  const std::size_t rank = sites.coords ? static_cast<std::size_t>(sites.coords->shape()[1]) - 1
                           : sites.shape.empty() ? rank_of_lists(parameters)
                                                 : sites.shape.size();
  book.ndim = static_cast<int>(rank);
  const auto set = [&](PerAxis& to, const char* name, int fallback) {
    const std::vector<int> values = parameters.for_each_axis(name, rank, fallback);
    std::copy(values.begin(), values.end(), to.value);
  };
  set(book.kernel, "kernel", kExampleKernel);
  set(book.stride, "stride", 1);
  set(book.dilation, "dilation", 1);
  set(book.out_padding, "out-padding", 0);
  const std::vector<int> pads = parameters.numbers("pad");
  if (rank > 0 && pads.size() == 2 * rank) {  // before and after, for each axis
    PerAxis after;
    for (int axis = 0; axis < book.ndim; ++axis) {
      book.pad[axis] = pads[2 * static_cast<std::size_t>(axis)];
      after[axis] = pads[2 * static_cast<std::size_t>(axis) + 1];
    }
    book = with_padding_after(book, after);
  } else {
    require(pads.size() <= 1 || pads.size() == rank, "pad", joined(pads, ","),
            text("must be one number, one per axis of this ", rank,
                 "-D problem, or before and after each axis"));
    set(book.pad, "pad", 0);
    book = with_padding_after(book, book.pad);
  }
  std::copy(sites.shape.begin(), sites.shape.end(), book.shape.value);
  if (!sites.shape.empty()) return;
  for (int axis = 0; axis < book.ndim; ++axis) {
    if (!sites.coords) {
      book.shape[axis] = kExampleExtents[rank - 1];
    } else if (sites.coords->size() != 0) {
      book.shape[axis] = extent_of(*sites.coords, 1 + axis, 1);
    } else {  // no site, but a grid large enough for the kernel
      const std::int64_t window = window_extent(book.kernel[axis], book.dilation[axis]);
      book.shape[axis] =
          static_cast<int>(std::clamp<std::int64_t>(window, 1, std::numeric_limits<int>::max()));
    }
  }
  if (sites.coords) {
    parameters.note(text(
        "shape: ", joined(std::vector<int>(book.shape.value, book.shape.value + book.ndim), ","),
        sites.coords->size() != 0
            ? ", the smallest grid that holds all sites"
            : "; it must be given, because there are no sites to determine it"));
  }
}

}  // namespace

SitesOfBook read_sites_of_book(Parameters& parameters, std::uint64_t seed) {
  RulebookProblem book;
  book.mode = read_enum<SparseMode>(parameters, "mode", kSparseModes);
  book.form = read_enum<RulebookForm>(parameters, "form", kRulebookForms);
  if (book.mode == SparseMode::subm) {
    require_not_given(parameters, "pad",
                      "mode subm has a fixed padding, which centres the kernel on the site");
  }
  Sites sites = read_sites(parameters, seed);
  set_grid(book, sites, parameters);
  if (const auto batch = parameters.number("batch")) {
    book.batch = *batch;
  } else if (sites.coords) {
    book.batch = extent_of(*sites.coords, 0, 1);
  }
  if (sites.coords) {
    book.sites = static_cast<int>(sites.coords->shape()[0]);
  } else {
    book = validated(book);
    sites.coords = draw_sites(book, parameters, seed);
    book.sites = static_cast<int>(sites.coords->shape()[0]);
  }
  book = validated(book);
  return {book, std::move(*sites.coords), std::move(sites.name)};
}

}  // namespace convladder::command

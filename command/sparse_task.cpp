/// @file sparse_task.cpp
/// @brief Problems of rulebooks and of what is computed over them, from options.
#include <algorithm>
#include <cmath>
#include <limits>

#include "command/files.hpp"
#include "command/points.hpp"
#include "command/task.hpp"
#include "core/error.hpp"
#include "core/site_errors.hpp"
#include "oracle/lidar_sweep.hpp"
#include "oracle/made_up_sites.hpp"
#include "oracle/rulebook.hpp"
#include "oracle/voxels.hpp"

namespace convladder::command {
namespace {

constexpr int kExampleSites = 200;
constexpr int kExampleKernel = 3, kExampleChannels = 16;
constexpr int kExampleExtents[kMaxAxes] = {400, 24, 10, 6};  // by the number of axes

/// Where the sites of a problem come from.
struct Sites {
  std::optional<Array> coords = {};  ///< Empty: to be drawn, once the grid is known.
  std::vector<int> shape = {};       ///< Empty: not told.
  std::string name = {};             ///< For the title, where it is no file of coordinates.
};

/// Only one of several options may be given.
void require_one_of(const Parameters& parameters, const std::vector<std::string>& names) {
  std::string first;
  for (const std::string& name : names) {
    if (!parameters.given(name)) continue;
    require(first.empty(), name, parameters.word(name).value_or(""),
            text("the sites come from ", first, " already"));
    first = name;
  }
}

void require_not_given(const Parameters& parameters, const std::string& name,
                       const std::string& rule) {
  require(!parameters.given(name), name, parameters.word(name).value_or(""), rule);
}

Sites read_point_sites(Parameters& parameters) {
  const std::string file = parameters.word("points").value_or("");
  for (const char* name : {"voxel", "range"})
    require(parameters.given(name), "points", file, text("needs --", name, " beside it"));
  const std::vector<float> side = parameters.reals("voxel"), range = parameters.reals("range");
  require(side.size() == 1, "voxel", joined(side, ","), "must be one number");
  require(range.size() == 6, "range", joined(range, ","), "must be six numbers: x0,y0,z0,x1,y1,z1");
  std::array<float, 6> corners{};
  std::copy(range.begin(), range.end(), corners.begin());
  const VoxelGrid grid = voxel_grid(corners, side.front());
  const Points points = read_points(parameters);
  Voxels voxels = voxels_of(grid, points.numbers, points.columns);
  const std::int64_t count = static_cast<std::int64_t>(points.numbers.size()) / points.columns;
  if (voxels.outside != 0) {
    parameters.note(text("points = ", file, ": ", voxels.outside, " of ", count,
                         " points lie outside of the range and are dropped"));
  }
  parameters.note(text("points = ", file, ": ", count - voxels.outside, " points lie in ",
                       voxels.coords.shape()[0], " voxels"));
  return {std::move(voxels.coords),
          {grid.shape[0], grid.shape[1], grid.shape[2]},
          std::filesystem::path(file).filename().string()};
}

Sites read_lidar_sites(const Parameters& parameters, std::uint64_t seed) {
  std::int64_t voxels = kOneTurn;
  if (const std::string word = parameters.word("lidar").value_or(""); !word.empty()) {
    voxels = parse_whole("lidar", word);
    require(voxels >= 1 && voxels <= kMostLidarVoxels, "lidar", word,
            text("must be 1 to ", kMostLidarVoxels, " voxels"));
  }
  return {lidar_sweep(voxels, seed),
          {kLidarShape[0], kLidarShape[1], kLidarShape[2]},
          "simulated LiDAR sweep"};
}

Sites read_sites(Parameters& parameters, std::uint64_t seed) {
  require_one_of(parameters, {"coords", "points", "lidar", "sites"});
  for (const char* name : {"places", "order"}) {
    for (const char* other : {"coords", "points", "lidar"}) {
      if (parameters.given(other))
        require_not_given(parameters, name, text("goes with made-up sites, not with --", other));
    }
  }
  if (!parameters.given("points")) {
    for (const char* name : {"voxel", "range"})
      require_not_given(parameters, name, "goes with --points");
  }
  Sites sites;
  if (parameters.given("points")) {
    require_not_given(parameters, "shape", "the grid of points comes from --range and --voxel");
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
               "; a batch id and 1 to 4 coordinates are 2 to 5"));
  require(sites.shape.empty() || static_cast<std::int64_t>(sites.shape.size()) == table[1] - 1,
          "shape", joined(sites.shape, ","),
          text("must be ", table[1] - 1, table[1] == 2 ? " extent" : " extents",
               ", one an axis of ", parameters.source("coords", table)));
  return sites;
}

/// One of the words, as its place among them; the first if not given.
template <class Enum, std::size_t count>
Enum read_enum(const Parameters& parameters, const std::string& name,
               const std::array<std::string_view, count>& names) {
  const std::vector<std::string> words(names.begin(), names.end());
  const std::string word = parameters.word(name, words).value_or(words.front());
  return static_cast<Enum>(std::find(words.begin(), words.end(), word) - words.begin());
}

/// Made-up sites, in a grid that is known.
Array draw_sites(const RulebookProblem& book, Parameters& parameters, std::uint64_t seed) {
  const std::int64_t room = key_count(book, book.shape);
  const std::optional<int> asked = parameters.number("sites");
  if (asked) require(*asked >= 0, "sites", *asked, "must be at least 0");
  const std::int64_t count = std::min(std::int64_t{asked.value_or(kExampleSites)}, room);
  Array coords = made_up_sites(book, count, read_enum<Places>(parameters, "places", kPlaces),
                               read_enum<SiteOrder>(parameters, "order", kSiteOrders), seed);
  if (asked && coords.shape()[0] < *asked)
    parameters.note(text("sites = ", *asked, ": there is room for ", coords.shape()[0]));
  return coords;
}

/// The number of axes where neither sites nor a shape tell it: as the longest list has numbers.
std::size_t rank_of_lists(const Parameters& parameters) {
  std::size_t rank = 1;
  for (const char* name : {"kernel", "stride", "pad", "dilation", "out-padding"})
    rank = std::max(rank, parameters.numbers(name).size());
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

/// Fills in the axes, and the grid if nobody told its extents.
void set_grid(RulebookProblem& book, const Sites& sites, Parameters& parameters) {
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
  set(book.pad, "pad", 0);
  set(book.dilation, "dilation", 1);
  set(book.out_padding, "out-padding", 0);
  std::copy(sites.shape.begin(), sites.shape.end(), book.shape.value);
  if (!sites.shape.empty()) return;
  for (int axis = 0; axis < book.ndim; ++axis) {
    if (!sites.coords) {
      book.shape[axis] = kExampleExtents[rank - 1];
    } else if (sites.coords->size() != 0) {
      book.shape[axis] = extent_of(*sites.coords, 1 + axis, 1);
    } else {  // no site, and yet a grid in which the kernel has room
      const std::int64_t window = window_extent(book.kernel[axis], book.dilation[axis]);
      book.shape[axis] =
          static_cast<int>(std::clamp<std::int64_t>(window, 1, std::numeric_limits<int>::max()));
    }
  }
  if (sites.coords) {
    parameters.note(text(
        "shape: ", joined(std::vector<int>(book.shape.value, book.shape.value + book.ndim), ","),
        sites.coords->size() != 0 ? ", the smallest that holds all sites"
                                  : ", for there are no sites to tell it"));
  }
}

bool pools(const Ladder& ladder) { return ladder.name.starts_with("sparse_max_pool"); }

/// The arrays of floats that a sparse ladder takes.
std::vector<std::string> float_arrays(const std::string& ladder) {
  if (ladder == "sparse_conv") return {"features", "weights", "bias"};
  if (ladder == "sparse_dgrad") return {"weights", "dy"};
  if (ladder == "sparse_wgrad" || ladder == "sparse_max_pool_dgrad") return {"features", "dy"};
  if (ladder == "sparse_max_pool" || ladder == "sparse_to_dense") return {"features"};
  return {};
}

/// What the forward pass would have chosen: from the features among `arrays`, which are taken out,
/// or from made-up ones. @param source what messages call the features
Array argmax_of(const Rulebook& rulebook, int C, std::uint64_t seed, Arrays& arrays,
                const std::string& source) {
  auto features = arrays.extract("features");
  if (features.empty()) return argmax_of_made_up(rulebook, C, Data::integer, seed);
  const SparsePoolProblem pool = pooling_over(rulebook, C);
  const Array& given = features.mapped();
  const Shape needed = sparse_max_pool_signature(pool).inputs[0].shape;
  if (given.shape() != needed) {
    throw BadInput(text(source, ": does not fit the problem (", describe(pool), "), which needs ",
                        to_string(needed)));
  }
  return argmax_over(rulebook.nbr, given);
}

/// The most memory that building a rulebook takes: all meetings of sites and taps, twice, and the
/// tables [KV][rows].
double rulebook_bytes(const RulebookProblem& book) {
  constexpr double kBytesOfMeeting = 100, kBytesOfEntry = 4;
  const double meetings = static_cast<double>(book.sites) * book.KV;
  double found = book.sites;
  if (book.mode != SparseMode::subm) {
    double reached = meetings;  // at most as many as there are taps in reach of each stride
    if (book.mode != SparseMode::transposed) {
      reached = book.sites;
      for (int axis = 0; axis < book.ndim; ++axis)
        reached *= std::ceil(static_cast<double>(book.kernel[axis]) / book.stride[axis]);
    }
    found = std::min(reached, static_cast<double>(key_count(book, book.out_shape)));
  }
  return kBytesOfMeeting * meetings + kBytesOfEntry * book.KV * (book.sites + found);
}

}  // namespace

bool is_sparse(const Ladder& ladder) {
  return ladder.name == "rulebook" || ladder.name.starts_with("sparse_");
}

Task sparse_task(const Ladder& ladder, const RulebookProblem& book, Array coords,
                 const SparseConvProblem& layer, std::uint64_t seed, Arrays arrays,
                 const std::string& source_of_features) {
  const auto numbers = coords.as<std::int32_t>();
  require_no_errors(book, find_site_errors(book, numbers), numbers);
  const bool to_dense = ladder.name == "sparse_to_dense";
  if (!to_dense)
    require_available(rulebook_bytes(book), text("the rulebook (", describe(book), ")"));
  Task task{.ladder = &ladder, .problem = book, .title = {}};
  if (to_dense) task.problem = validated(SparseToDenseProblem{.grid = book, .C = layer.Cin});
  if (to_dense || ladder.name == "rulebook") {
    task.given.emplace("coords", std::move(coords));
  } else {
    Rulebook rulebook = make_rulebook(book, coords);
    if (pools(ladder)) {
      task.problem = pooling_over(rulebook, layer.Cin);
    } else {
      task.problem = convolution_over(rulebook, layer);
    }
    task.given = rulebook_inputs(rulebook, ladder.signature(task.problem));
    if (ladder.name == "sparse_max_pool_dgrad")
      task.given.emplace("argmax",
                         argmax_of(rulebook, layer.Cin, seed, arrays, source_of_features));
    task.out_coords = std::move(rulebook.out_coords);
  }
  task.given.merge(arrays);
  task.title = describe(task.problem);
  return task;
}

Task read_sparse(const Ladder& ladder, Parameters parameters, std::uint64_t seed) {
  const bool to_dense = ladder.name == "sparse_to_dense", pooling = pools(ladder);
  const bool convolves = !to_dense && !pooling && ladder.name != "rulebook";
  std::vector<std::string> names = {"coords", "points", "voxel", "range", "lidar",
                                    "sites",  "places", "order", "shape", "batch"};
  const std::vector<std::string> floats = float_arrays(ladder.name);
  names.insert(names.end(), floats.begin(), floats.end());
  if (!to_dense) {
    names.insert(names.end(), {"mode", "kernel", "stride", "pad", "dilation", "out-padding"});
  }
  if (ladder.name != "rulebook") names.emplace_back("cin");
  if (convolves) names.insert(names.end(), {"cout", "dtype"});
  if (ladder.name == "sparse_conv") names.emplace_back("activation");
  if (ladder.name == "rulebook") names.emplace_back("form");
  parameters.require_only(ladder.name, names);

  RulebookProblem book;
  book.mode = read_enum<SparseMode>(parameters, "mode", kSparseModes);
  book.form = read_enum<RulebookForm>(parameters, "form", kRulebookForms);
  if (book.mode == SparseMode::subm) {
    require_not_given(parameters, "pad",
                      "mode subm has its own, which puts the kernel's centre on the site");
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

  Extents extents;
  Arrays given;
  for (const char* name : {"cin", "cout"}) extents.tell_option(parameters, name);
  for (const std::string& name : floats) {
    if (!parameters.array_given(name)) continue;
    const bool weights = name == "weights";
    Array array = *parameters.array(name, {weights                     ? "[taps][cin][cout]"
                                           : name == "bias"            ? "[cout]"
                                           : name == "dy" && convolves ? "[output row][cout]"
                                           : name == "dy"              ? "[output row][cin]"
                                                                       : "[input row][cin]"});
    const Shape& shape = array.shape();
    const std::string source = parameters.source(name, shape);
    if (name == "features" || weights || !convolves) extents.tell("cin", shape[1], source);
    if (name != "features" && convolves) extents.tell("cout", shape.back(), source);
    if (weights && shape[0] != book.KV) {
      throw BadInput(text(source, ": must have ", book.KV, " taps, as the kernel has"));
    }
    given.emplace(name, std::move(array));
  }
  SparseConvProblem layer{.Cin = extents.value("cin", kExampleChannels),
                          .Cout = extents.value("cout", kExampleChannels),
                          .bias = parameters.given("bias")};
  if (convolves) parameters.set_dtype(layer);
  if (parameters.word("activation", {"none", "relu"}) == "relu")
    layer.activation = Activation::relu;
  const auto features = given.find("features");
  const std::string source =
      features == given.end() ? "" : parameters.source("features", features->second.shape());
  Task task =
      sparse_task(ladder, book, std::move(*sites.coords), layer, seed, std::move(given), source);
  if (!sites.name.empty()) task.title = sites.name + ", " + task.title;
  task.notes = parameters.notes();
  return task;
}

}  // namespace convladder::command

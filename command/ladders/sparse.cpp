#include "command/ladders/sparse.hpp"

#include <algorithm>
#include <cmath>

#include "command/files.hpp"
#include "command/ladders/sites.hpp"
#include "core/error.hpp"

namespace convladder::command {
namespace {

constexpr int kExampleChannels = 16;

/// The most memory that building a rulebook takes: twice all pairs of sites and taps, and the
/// tables [KV][rows].
double rulebook_bytes(const RulebookProblem& book) {
  constexpr double kBytesOfMeeting = 100, kBytesOfEntry = 4;
  const double meetings = static_cast<double>(book.sites) * book.KV;
  double found = book.sites;
  if (book.mode != SparseMode::subm) {
    double reached = meetings;  // at most the number of taps within each stride
    if (book.mode != SparseMode::transposed) {
      reached = book.sites;
      for (int axis = 0; axis < book.ndim; ++axis)
        reached *= std::ceil(static_cast<double>(book.kernel[axis]) / book.stride[axis]);
    }
    found = std::min(reached, static_cast<double>(key_count(book, book.out_shape)));
  }
  return kBytesOfMeeting * meetings + kBytesOfEntry * book.KV * (book.sites + found);
}

Task read_sparse(const Ladder& ladder, Parameters parameters, std::uint64_t seed,
                 const SparseParameters& own) {
  std::vector<std::string> names = {"coords", "points", "voxel", "range", "columns", "lidar",
                                    "sites",  "places", "order", "shape", "batch"};
  for (const SparseArray& array : own.arrays) names.push_back(array.name);
  names.insert(names.end(), own.options.begin(), own.options.end());
  parameters.require_only(ladder.name, names);

  SitesOfBook sites = read_sites_of_book(parameters, seed);
  Extents extents;
  Arrays given;
  for (const char* name : {"cin", "cout"}) extents.tell_option(parameters, name);
  for (const auto& [name, axes] : own.arrays) {
    if (!parameters.array_given(name)) continue;
    Array array = *parameters.array(name, {text("[", joined(axes, "]["), "]")});
    const Shape& shape = array.shape();
    const std::string source = parameters.source(name, shape);
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis] == "cin" || axes[axis] == "cout")
        extents.tell(axes[axis], shape[axis], source);
    }
    if (name == "weights" && shape[0] != sites.book.KV) {
      throw BadInput(text(source, ": must have ", sites.book.KV, " taps, like the kernel"));
    }
    given.emplace(name, std::move(array));
  }
  SparseConvProblem layer{.Cin = extents.value("cin", kExampleChannels),
                          .Cout = extents.value("cout", kExampleChannels),
                          .bias = parameters.given("bias")};
  parameters.set_dtype(layer);
  if (parameters.word("activation", {"none", "relu"}) == "relu")
    layer.activation = Activation::relu;
  const PoolReduction reduce = parameters.word("reduce", {"max", "mean"}) == "mean"
                                   ? PoolReduction::mean
                                   : PoolReduction::max;
  const auto features = given.find("features");
  const std::string source =
      features == given.end() ? "" : parameters.source("features", features->second.shape());
  Task task = sparse_task(ladder, sites.book, std::move(sites.coords), layer, seed,
                          std::move(given), source, reduce);
  if (!sites.name.empty()) task.title = sites.name + ", " + task.title;
  task.notes = parameters.notes();
  return task;
}

}  // namespace

Task sparse_task(const Ladder& ladder, const RulebookProblem& book, Array coords,
                 const SparseConvProblem& layer, std::uint64_t seed, Arrays arrays,
                 const std::string& source_of_features, PoolReduction reduce) {
  Task task{.ladder = &ladder, .problem = book, .title = {}};
  OverSites over{book,  std::move(coords), layer, seed, std::move(arrays), source_of_features,
                 reduce};
  command_of(ladder.name).set_over_sites(task, over);
  task.given.merge(over.arrays);
  task.title = describe(task.problem);
  return task;
}

std::vector<std::string> kernel_options_and(const std::vector<std::string>& others) {
  std::vector<std::string> all = {"mode", "kernel", "stride", "pad", "dilation", "out-padding"};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

std::function<std::vector<Task>(const Ladder&, const Options&)> sparse_reader(
    SparseParameters own) {
  return [own = std::move(own)](const Ladder& ladder, const Options& options) {
    return std::vector{read_sparse(ladder, options.problem, options.seed, own)};
  };
}

void require_room_for(const RulebookProblem& book) {
  require_available(rulebook_bytes(book), text("the rulebook (", describe(book), ")"));
}

Rulebook rulebook_over(const OverSites& over) {
  require_room_for(over.book);
  return make_rulebook(over.book, over.coords);
}

void take_rulebook(Task& task, Rulebook rulebook) {
  task.given = rulebook_inputs(rulebook, task.ladder->signature(task.problem));
  task.out_coords = std::move(rulebook.out_coords);
}

}  // namespace convladder::command

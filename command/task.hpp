/// @file task.hpp
/// @brief From the options of the command line to problems with their data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/options.hpp"
#include "command/photograph.hpp"
#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder::command {

/// A problem as it was asked for.
struct Task {
  const Ladder* ladder = nullptr;
  Problem problem;
  std::string title;  ///< describe(problem), after the photograph's name where there is one.
  Arrays given = {};  ///< The arrays that came from files, and those that follow from them.
  Arrays drawn = {};  ///< The arrays that came from a photograph and its filter.
  /// Sparse convolutions: the sites of the rulebook's output rows, saved beside the result.
  std::optional<Array> out_coords = {};
  const Filter* filter = nullptr;       ///< That filter; null without a photograph.
  int sample_bits = 8;                  ///< Of the photograph.
  std::vector<std::string> notes = {};  ///< Conversions and choices to tell the user.
};

/// The problem that the options describe; for tile_map without a map, one for each map.
/// @throws BadInput for impossible sizes, unusable files, and what contradicts itself
std::vector<Task> read_tasks(const Options& options);

/// A photograph under a filter, as a problem of the ladder conv2d.
/// @param same pads by same_padding(), not by `steps`
Task photograph_task(const std::string& path, const Filter& filter, const Conv2dProblem& steps,
                     bool same = false);

/// A task with all its data.
struct Prepared {
  Task task;
  Arrays inputs;
  Data data = Data::integer;
};

/// Makes up the arrays that were not given, and decides how results are compared: exactly, if the
/// data are such that no order of summation rounds.
/// @throws BadInput for values that the problem cannot have (require_valid_values()), numbers that
/// do not fit its type, and if Data::integer is asked for and not possible
Prepared prepare(Task task, std::optional<Data> wanted, std::uint64_t seed);

/// The rulebook problem as it is, a sparse convolution or a pooling over it, or the sites alone,
/// for a dense tensor or a global pooling.
/// @param book validated; its `sites` are the rows of `coords`
/// @param layer of a convolution: channels, types, bias and activation; of others, Cin alone
/// @param arrays given ones. The gradient of a pooling takes `features`, of which its argmax is.
/// @param source_of_features what messages call them
/// @param reduce what a global pooling makes of an image
/// @param seed of features that are needed and not given
/// @throws BadInput if the rulebook that a ladder needs has unusable sites, or does not fit into
/// the memory
Task sparse_task(const Ladder& ladder, const RulebookProblem& book, Array coords,
                 const SparseConvProblem& layer, std::uint64_t seed, Arrays arrays = {},
                 const std::string& source_of_features = "features",
                 PoolReduction reduce = PoolReduction::max);

}  // namespace convladder::command

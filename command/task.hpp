/// @file task.hpp
/// @brief Converts the options of the command line to problems with their data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/options.hpp"
#include "command/photograph.hpp"
#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder::command {

/// A problem as requested on the command line.
struct Task {
  const Ladder* ladder = nullptr;
  Problem problem;
  std::string title;  ///< describe(problem), after the photograph's name where there is one.
  Arrays given = {};  ///< The arrays that came from files, and arrays that follow from them.
  Arrays drawn = {};  ///< The arrays that came from a photograph and its filter.
  /// Sparse convolutions: the sites of the rulebook's output rows, saved beside the result.
  std::optional<Array> out_coords = {};
  const Filter* filter = nullptr;       ///< The filter of the photograph; null without a
                                        ///< photograph.
  int sample_bits = 8;                  ///< Of the photograph.
  std::vector<std::string> notes = {};  ///< Conversions and choices to report to the user.
};

/// The problem that the options describe; for tile_map without a map, one per map.
/// @throws BadInput for impossible sizes, unusable files and contradictions
std::vector<Task> read_tasks(const Options& options);

/// A photograph under a filter, as a problem of the ladder conv2d.
/// @param same whether the padding comes from same_padding() instead of `steps`
Task photograph_task(const std::string& path, const Filter& filter, const Conv2dProblem& steps,
                     bool same = false);

/// A task with all its data.
struct Prepared {
  Task task;
  Arrays inputs;
  Data data = Data::integer;
};

/// Makes up the arrays that were not given, and decides how results are compared: exactly, if no
/// order of summation rounds these data.
/// @throws BadInput for values that the problem does not allow (require_valid_values()), for
/// numbers that do not fit its type, and if Data::integer is requested but impossible
Prepared prepare(Task task, std::optional<Data> wanted, std::uint64_t seed);

/// The rulebook problem itself, a sparse convolution or pooling over it, or the sites alone for a
/// dense tensor or a global pooling.
/// @param book validated; its `sites` are the rows of `coords`
/// @param layer of a convolution: channels, types, bias and activation; of others, Cin alone
/// @param arrays the given ones. The gradient of a pooling takes `features`, from which its argmax
/// is computed.
/// @param source_of_features the name of the features in messages
/// @param reduce reduction of a global pooling
/// @param seed of features that are needed but not given
/// @throws BadInput if the rulebook that a ladder needs has invalid sites, or does not fit into
/// memory
Task sparse_task(const Ladder& ladder, const RulebookProblem& book, Array coords,
                 const SparseConvProblem& layer, std::uint64_t seed, Arrays arrays = {},
                 const std::string& source_of_features = "features",
                 PoolReduction reduce = PoolReduction::max);

}  // namespace convladder::command

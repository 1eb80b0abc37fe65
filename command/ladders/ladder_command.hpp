/// @file ladder_command.hpp
/// @brief What the program needs from a ladder: each file in this folder adds rows.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command/task.hpp"

namespace convladder::command {

struct Report;

/// Sites and the operation on them; see sparse_task().
struct OverSites {
  RulebookProblem book;                         ///< Validated.
  Array coords;                                 ///< The sites of `book`.
  SparseConvProblem layer;                      ///< Channels and the other parameters of a
                                                ///< convolution.
  std::uint64_t seed = 1;                       ///< Seed of arrays that are needed but not given.
  Arrays arrays = {};                           ///< Arrays that are given.
  std::string source_of_features = "features";  ///< The name of the features in messages.
  PoolReduction reduce = PoolReduction::max;    ///< Reduction of a global pooling.
};

/// The properties of a ladder that the program uses.
struct LadderCommand {
  /// Reads the problems from the options of `compare`; see read_tasks().
  std::function<std::vector<Task>(const Ladder&, const Options&)> read;
  /// The problem as C++ source: "GemmProblem{.M = 1, ...}".
  std::function<std::string(const Problem&)> in_code;
  /// The terms that the outputs sum: products of these inputs. If empty, each float array by
  /// itself, in copies and plain sums.
  std::vector<std::vector<std::string>> terms = {};
  /// For ladders over sites: sets a task's problem and the arrays that follow from the sites.
  std::function<void(Task&, OverSites&)> set_over_sites = {};
  /// For ladders where one command line may describe several problems: the part of a title that
  /// distinguishes them.
  std::function<std::string(const Problem&)> name_among = {};
  /// The picture that `--save` draws beside the outputs, as a PNG file; empty if there is none for
  /// this problem.
  std::function<std::optional<std::vector<std::byte>>(const Task&, const Arrays& outputs)> picture =
      {};
  /// Lines below the table of results, for which Report::units holds the reference result.
  std::function<std::string(const std::vector<Report>&)> below_table = {};
};

/// The ladder's row. @throws std::logic_error if there is none
const LadderCommand& command_of(const std::string& ladder);

}  // namespace convladder::command

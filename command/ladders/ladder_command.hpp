/// @file ladder_command.hpp
/// @brief What the program asks of a ladder: each file beside this one fills rows.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "command/task.hpp"

namespace convladder::command {

struct Report;

/// Sites, and what shall be computed over them; see sparse_task().
struct OverSites {
  RulebookProblem book;                         ///< Validated.
  Array coords;                                 ///< Its sites.
  SparseConvProblem layer;                      ///< Channels, and what else a convolution has.
  std::uint64_t seed = 1;                       ///< Of what is needed and not given.
  Arrays arrays = {};                           ///< Given ones.
  std::string source_of_features = "features";  ///< What messages call them.
  PoolReduction reduce = PoolReduction::max;    ///< Of a global pooling.
};

/// A ladder as the program sees it.
struct LadderCommand {
  /// Its problems from the options of `compare`; see read_tasks().
  std::function<std::vector<Task>(const Ladder&, const Options&)> read;
  /// The problem in C++: "GemmProblem{.M = 1, ...}".
  std::function<std::string(const Problem&)> in_code;
  /// What its outputs add up: products of these inputs. Empty: each array of floats by itself, in
  /// copies and plain sums.
  std::vector<std::vector<std::string>> terms = {};
  /// For ladders over sites: sets a task's problem and its arrays that follow from the sites.
  std::function<void(Task&, OverSites&)> set_over_sites = {};
  /// For ladders of whose problems a command line may mean several: what tells them apart.
  std::function<std::string(const Problem&)> name_among = {};
  /// What `--save` draws of the outputs beside them, if there can be such a picture: a PNG file, or
  /// nothing this time.
  std::function<std::optional<std::vector<std::byte>>(const Task&, const Arrays& outputs)> picture =
      {};
  /// Lines below the table of results, for which Report::units holds the right answer.
  std::function<std::string(const std::vector<Report>&)> below_table = {};
};

/// The ladder's row. @throws std::logic_error if there is none
const LadderCommand& command_of(const std::string& ladder);

}  // namespace convladder::command

/// @file options.hpp
/// @brief Parses the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command/conditions.hpp"
#include "command/parameters.hpp"
#include "core/rung.hpp"
#include "oracle/data.hpp"

namespace convladder::command {

enum class Command { help, compare, list, bench, fuzz, inspect };

/// The parsed command line.
struct Options {
  Command command = Command::help;
  std::string help;  ///< The text, for Command::help.
  std::optional<std::string> ladder;
  Parameters problem;                   ///< The options that describe a problem.
  std::vector<std::string> rungs;       ///< Glob patterns; empty: all rungs.
  std::vector<Where> places;            ///< Empty: all places.
  std::vector<std::string> benchmarks;  ///< bench: problem names.
  std::optional<Data> data;             ///< Empty: integer if possible.
  std::uint64_t seed = 1;
  bool seed_given = false;                    ///< fuzz draws a seed otherwise.
  std::optional<int> seconds, most_problems;  ///< fuzz: the time limit.
  std::optional<int> limit;                   ///< Time limit of a run in seconds; compare: 0 means
                                              ///< none.
  std::string source;                         ///< inspect: replaces the rung's file.
  int blocks = 0;                             ///< inspect: the most blocks that are counted; 0:
                                              ///< all.
  std::optional<std::string> device;          ///< The card of the emulated GPU; empty: the default.
  Conditions conditions;
  std::optional<std::string> json, save, html, trace;
  std::optional<std::string> export_sites;  ///< bench: a folder.
};

/// @param arguments without the program's name
/// @throws BadInput that names the nearest valid word
Options parse_options(const std::vector<std::string>& arguments);

}  // namespace convladder::command

/// @file options.hpp
/// @brief The command line, taken apart.
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

/// What the command line asks for.
struct Options {
  Command command = Command::help;
  std::string help;  ///< The text, for Command::help.
  std::optional<std::string> ladder;
  Parameters problem;                   ///< The options that describe a problem.
  std::vector<std::string> rungs;       ///< Globs; empty: all rungs.
  std::vector<Where> places;            ///< Empty: everywhere.
  std::vector<std::string> benchmarks;  ///< bench: problem names.
  std::optional<Data> data;             ///< Empty: integer if that is possible.
  std::uint64_t seed = 1;
  bool seed_given = false;                    ///< fuzz draws one otherwise.
  std::optional<int> seconds, most_problems;  ///< fuzz: when it ends.
  std::optional<int> limit;                   ///< Seconds that a run may take; compare: 0: any.
  std::string source;                         ///< inspect: stands in for the rung's file.
  int blocks = 0;                             ///< inspect: the most that count; 0: all.
  std::optional<std::string> device;          ///< The emulated card; empty: the default.
  Conditions conditions;
  std::optional<std::string> json, save, html, trace;
  std::optional<std::string> export_sites;  ///< bench: a folder.
};

/// @param arguments without the program's name
/// @throws BadInput that names the nearest valid word
Options parse_options(const std::vector<std::string>& arguments);

}  // namespace convladder::command

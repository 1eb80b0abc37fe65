/// @file sites.hpp
/// @brief Where the sites of sparse problems come from: options, files, or made up.
#pragma once

#include <string>

#include "command/parameters.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::command {

/// Sites, and how a kernel moves over them.
struct SitesOfBook {
  RulebookProblem book;  ///< Validated.
  Array coords;          ///< Its sites.
  std::string name;      ///< For the title; empty for files of coordinates and made-up sites.
};

/// Reads both. @param seed of sites that are made up
SitesOfBook read_sites_of_book(Parameters& parameters, std::uint64_t seed);

}  // namespace convladder::command

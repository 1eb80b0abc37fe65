/// @file sites.hpp
/// @brief The sites of sparse problems: from options, from files, or made up.
#pragma once

#include <string>

#include "command/parameters.hpp"
#include "core/rulebook_problem.hpp"

namespace convladder::command {

/// Sites, and the kernel that moves over them.
struct SitesOfBook {
  RulebookProblem book;  ///< Validated.
  Array coords;          ///< The sites of `book`.
  std::string name;      ///< For the title; empty for files of coordinates and for made-up sites.
};

/// Reads sites and kernel. @param seed of made-up sites
SitesOfBook read_sites_of_book(Parameters& parameters, std::uint64_t seed);

}  // namespace convladder::command

/// @file bench_sites.hpp
/// @brief `bench --export-sites`: writes the sparse benchmark problems for other programs.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/runs.hpp"

namespace convladder::command {

/// Writes problems.json and one file of coordinates for each kind of sites.
/// @return an ExitStatus. @throws BadInput if none of the problems is sparse
int write_sites(const std::string& path, const std::vector<benchmarks::Plan>& plans);

}  // namespace convladder::command

/// @file bench_tables.hpp
/// @brief The tables of `bench`.
#pragma once

#include <string>
#include <vector>

#include "benchmarks/runs.hpp"

namespace convladder::command {

/// The tables of a problem: one for each dtype and layout.
std::vector<std::string> tables_of(const benchmarks::BenchmarkProblem& problem,
                                   const std::vector<benchmarks::Row>& rows);

/// The machine and the date of a run.
std::string machine_line(const benchmarks::Run& run);

/// The measured ceilings of that machine.
std::string ceilings_line(const benchmarks::Run& run);

}  // namespace convladder::command

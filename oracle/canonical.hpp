/// @file canonical.hpp
/// @brief A canonical order of rows for results whose own order is free.
#pragma once

#include "core/problem.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The same outputs in the order in which results are compared and saved. For rulebooks: outputs
/// are numbered in the order of their sites, unless the mode fixes their rows, and pairs are sorted
/// by k, then output, then input row; an `order` refers to rows in that numbering. Outputs of other
/// ladders, and rulebooks with invalid numbers, are returned unchanged.
Arrays canonical(const Problem& problem, Arrays outputs);

}  // namespace convladder

/// @file canonical.hpp
/// @brief One order of rows for results whose own order is free.
#pragma once

#include "core/problem.hpp"
#include "oracle/data.hpp"

namespace convladder {

/// The same outputs in the order in which results are compared and saved. For rulebooks: outputs
/// numbered in the order of their sites, unless the mode fixes their rows, and pairs sorted by k,
/// then output, then input row; an `order` is of rows in that numbering. Outputs of other ladders,
/// and rulebooks whose numbers make no sense, come back as they are.
Arrays canonical(const Problem& problem, Arrays outputs);

}  // namespace convladder

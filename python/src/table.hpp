/// @file table.hpp
/// @brief Rungs and places, by the names that Python's callers give.
#pragma once

#include <string>

#include "core/device.hpp"
#include "core/rung.hpp"

namespace convladder::python {

/// The place that is called `word`. @throws BadInput
Where where_named(const std::string& word);

/// The ladder's rung of that full name. @throws BadInput that tells the nearest
const Rung& rung_named(const Ladder& ladder, const std::string& name);

/// What the rung runs there. @throws BadInput if it does not, or this computer has no such place
const AnyImplementation& code_of(const Rung& rung, Where where);

}  // namespace convladder::python

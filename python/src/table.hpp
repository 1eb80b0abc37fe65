/// @file table.hpp
/// @brief Rungs and places, by the names that Python callers use.
#pragma once

#include <string>

#include "core/device.hpp"
#include "core/rung.hpp"

namespace convladder::python {

/// The place with the name `word`. @throws BadInput
Where where_named(const std::string& word);

/// The ladder's rung with that full name. @throws BadInput that names the nearest
const Rung& rung_named(const Ladder& ladder, const std::string& name);

/// The rung's code for that place. @throws BadInput if there is none, or this computer does not
/// have the place
const AnyImplementation& code_of(const Rung& rung, Where where);

}  // namespace convladder::python

/// @file save.hpp
/// @brief Writes the files of `compare --save DIR`: DIR/<ladder>/<rung, '/' as
/// '.'>/<where>/NAME.npy.
#pragma once

#include <vector>

#include "command/files.hpp"
#include "command/report.hpp"

namespace convladder::command {

/// Throws BadInput if the results of these rows could not be written there.
void check_folders(const OutputFolder& folder, const Ladder& ladder,
                   const std::vector<Seat>& seats);

/// Writes the outputs of every rung that ran, in canonical order where the order is free, without
/// the optional outputs, and the pictures of filtered photographs and tile maps. Files of an
/// earlier run for the other rungs are removed. All changes become visible at
/// OutputFolder::commit().
void stage_outputs(OutputFolder& folder, const Report& report);

}  // namespace convladder::command

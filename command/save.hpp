/// @file save.hpp
/// @brief What `compare --save DIR` writes: DIR/<ladder>/<rung, '/' as '.'>/<where>/NAME.npy.
#pragma once

#include <vector>

#include "command/files.hpp"
#include "command/report.hpp"

namespace convladder::command {

/// Throws BadInput if these rows' results could not be written there.
void check_folders(const OutputFolder& folder, const Ladder& ladder,
                   const std::vector<Seat>& seats);

/// Writes the outputs of every rung that ran, in the canonical order where their own is free and
/// without the optional ones, and pictures of filtered photographs and tile maps;
/// what an earlier run left there of the others will be removed. All of it shows up at
/// OutputFolder::commit().
void stage_outputs(OutputFolder& folder, const Report& report);

}  // namespace convladder::command

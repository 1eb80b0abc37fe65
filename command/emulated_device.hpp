/// @file emulated_device.hpp
/// @brief --device: the card that the emulated GPU stands for.
#pragma once

#include <string>
#include <vector>

#include "command/report.hpp"

namespace convladder::command {

/// "sm_75 (T4, RTX 20 series), sm_80 (A100, A30), ...": what --device takes.
std::string device_list();

/// Makes the emulated GPU that card. @throws BadInput that names the nearest architecture
void choose_device(const std::string& architecture);

/// The architecture of --device; empty without it.
const std::string& chosen_device();

/// Which of the CUDA rungs in these reports the card of --device cannot run, and why, in a line:
/// "sm_75 (T4) cannot run 16 of 40 CUDA rungs: 4 need sm_80 (mma ...), 12 need sm_90a (wgmma)".
/// Empty without --device, and where nothing was emulated.
std::string device_line(const std::vector<Report>& reports);

}  // namespace convladder::command

/// @file emulated_device.hpp
/// @brief --device: the card that the emulated GPU models.
#pragma once

#include <string>
#include <vector>

#include "command/report.hpp"

namespace convladder::command {

/// The values that --device accepts: "sm_75 (T4, RTX 20 series), sm_80 (A100, A30), ...".
std::string device_list();

/// Sets the device model of the emulated GPU. @throws BadInput that names the nearest architecture
void choose_device(const std::string& architecture);

/// The architecture given by --device; empty without the option.
const std::string& chosen_device();

/// One line that says which CUDA rungs of these reports the card of --device cannot run, and why:
/// "sm_75 (T4) cannot run 16 of 40 CUDA rungs: 4 need sm_80 (mma ...), 12 need sm_90a (wgmma)".
/// Empty without --device, and if nothing was emulated.
std::string device_line(const std::vector<Report>& reports);

}  // namespace convladder::command

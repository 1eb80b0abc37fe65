/// @file listing.hpp
/// @brief The source of a kernel, with what was seen at each line.
#pragma once

#include <string>
#include <vector>

#include "command/inspect/inspect.hpp"

namespace convladder::command {

/// A line of a file, and the accesses that it makes.
struct ListedLine {
  unsigned number = 0;
  std::string text;
  std::vector<const cuda_on_cpu::microscope::Line*> accesses;
};

/// A stretch of a file.
struct ListedFile {
  std::string file;
  std::vector<ListedLine> lines;
};

/// The functions that a kernel's accesses are in, file by file, the inspected one first.
std::vector<ListedFile> listing(const Inspection& inspection,
                                const cuda_on_cpu::microscope::Kernel& kernel);

/// "conv2d_direct_tiled" of "void convladder::...::conv2d_direct_tiled<3>".
std::string short_name_of(const cuda_on_cpu::microscope::Kernel& kernel);
/// "conv2d_direct_tiled: 1 launch of 3 x 8 x 4 blocks of 32 x 8 x 1 threads, ...".
std::string title_of(const cuda_on_cpu::microscope::Kernel& kernel);
/// "x: load, 16 bytes a lane".
std::string name_of(const cuda_on_cpu::microscope::Line& line);
/// What an access costs: "4.0 sectors, 4.0 would do", "1.0 turn of the banks".
std::string cost_of(const cuda_on_cpu::microscope::Line& line);
/// The same in a few letters, with what would do: "3.2/2.8 sect.", "2.0/1.0 turns".
std::string short_cost_of(const cuda_on_cpu::microscope::Line& line);
/// What matters most, in sentences.
std::vector<std::string> findings(const Inspection& inspection);
/// "RAW", ...: "RAW in tile[36]: ...", in a sentence.
std::string sentence_of(const cuda_on_cpu::microscope::Race& race);
/// @param is_used whether the result may depend on it
std::string sentence_of(const cuda_on_cpu::microscope::Unwritten& read, bool is_used);

}  // namespace convladder::command

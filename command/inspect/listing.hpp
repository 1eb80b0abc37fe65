/// @file listing.hpp
/// @brief The source of a kernel, annotated with the counts of each line.
#pragma once

#include <string>
#include <vector>

#include "command/inspect/inspect.hpp"

namespace convladder::command {

/// A line of a file, and its accesses.
struct ListedLine {
  unsigned number = 0;
  std::string text;
  std::vector<const cuda_on_cpu::microscope::Line*> accesses;
};

/// A range of lines of a file.
struct ListedFile {
  std::string file;
  std::vector<ListedLine> lines;
};

/// The functions that contain a kernel's accesses, file by file, the inspected file first.
std::vector<ListedFile> listing(const Inspection& inspection,
                                const cuda_on_cpu::microscope::Kernel& kernel);

/// "conv2d_direct_tiled" of "void convladder::...::conv2d_direct_tiled<3>".
std::string short_name_of(const cuda_on_cpu::microscope::Kernel& kernel);
/// "conv2d_direct_tiled: 1 launch of 3 x 8 x 4 blocks of 32 x 8 x 1 threads, ...".
std::string title_of(const cuda_on_cpu::microscope::Kernel& kernel);
/// "x: load, 16 bytes per lane".
std::string name_of(const cuda_on_cpu::microscope::Line& line);
/// The cost of an access: "4.0 sectors, ideally 4.0", "1.0 wavefronts".
std::string cost_of(const cuda_on_cpu::microscope::Line& line);
/// The same, abbreviated and with the ideal: "3.2/2.8 sect.", "2.0/1.0 wavefr.".
std::string short_cost_of(const cuda_on_cpu::microscope::Line& line);
/// The most important findings, in sentences.
std::vector<std::string> findings(const Inspection& inspection);
/// "RAW in tile[36]: ..." as a sentence.
std::string sentence_of(const cuda_on_cpu::microscope::Race& race);
/// @param is_used whether the result may depend on the read
std::string sentence_of(const cuda_on_cpu::microscope::Unwritten& read, bool is_used);

}  // namespace convladder::command

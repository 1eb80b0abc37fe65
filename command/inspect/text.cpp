#include "core/text.hpp"

#include "command/inspect/inspect.hpp"
#include "command/inspect/listing.hpp"
#include "command/terminal.hpp"

namespace convladder::command {
namespace {

namespace microscope = cuda_on_cpu::microscope;

constexpr std::size_t kMargin = 41;  ///< Columns before the line's number.

/// "load4", "copy16": what a lane does, and with how many bytes.
std::string instruction_of(const microscope::Line& line) {
  constexpr const char* kWords[] = {"load", "store", "atomic", "copy"};
  return text(kWords[static_cast<std::size_t>(line.operation)], line.width);
}

std::string margin_of(const microscope::Line& line) {
  const std::string array = line.array == "dynamic shared memory" ? "shared"
                            : line.array.empty()                  ? microscope::name_of(line.space)
                                                                  : line.array;
  return text(right(std::to_string(line.counts.requests), 8), " ", left(array, 9).substr(0, 9), " ",
              left(instruction_of(line), 7), " ", short_cost_of(line));
}

}  // namespace

std::string inspect_text(const Inspection& inspection) {
  const microscope::Report& seen = inspection.seen;
  std::string out = text(styled(Style::bold, inspection.rung), " on ", inspection.problem, "\n");
  if (inspection.source.find(inspection.rung) == std::string::npos)
    out += text("with ", printable(inspection.source), " in its place\n");
  if (seen.blocks_counted < seen.blocks_run) {
    out += text(seen.blocks_counted, " of ", seen.blocks_run,
                " blocks were counted, evenly spread over the grid; the counts below are theirs\n");
  }
  for (const microscope::Kernel& kernel : seen.kernels) {
    out += text("\n", styled(Style::bold, title_of(kernel)), "\n");
    for (const ListedFile& file : listing(inspection, kernel)) {
      out += styled(Style::dim, text(left("requests array     what    costs", kMargin + 6),
                                     printable(file.file))) +
             "\n";
      unsigned before = 0;
      for (const ListedLine& line : file.lines) {
        if (before != 0 && line.number != before + 1) out += styled(Style::dim, "...") + "\n";
        before = line.number;
        const std::string number = right(std::to_string(line.number), 5);
        if (line.accesses.empty()) {
          out += left("", kMargin) + styled(Style::dim, number) + " " + printable(line.text) + "\n";
        }
        for (std::size_t i = 0; i < line.accesses.size(); ++i) {
          out += left(margin_of(*line.accesses[i]), kMargin) +
                 (i == 0 ? styled(Style::dim, number) + " " + printable(line.text) : "") + "\n";
        }
      }
    }
  }
  out += styled(Style::dim,
                "\ncosts: actual / ideal per request; 32-byte sectors for global memory, "
                "wavefronts for shared memory") +
         "\n\n";
  for (const std::string& finding : findings(inspection)) out += finding + "\n";
  for (const microscope::Race& race : seen.races)
    out += styled(race.is_error ? Style::bad : Style::dim, sentence_of(race)) + "\n";
  for (const microscope::Unwritten& read : seen.unwritten)
    out += styled(Style::bad, sentence_of(read, true)) + "\n";
  for (const microscope::Unwritten& read : inspection.unused)
    out += styled(Style::dim, sentence_of(read, false)) + "\n";
  if (!inspection.agrees)
    out += styled(Style::bad, text("differs: ", printable(inspection.reason))) + "\n";
  if (inspection.is_in_order())
    out += styled(Style::good, "agrees with the reference; no race, no read of unwritten memory") +
           "\n";
  return out;
}

}  // namespace convladder::command

#include "source_lines.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace cuda_on_cpu::microscope {
namespace {

/// A temporary file that is deleted with its owner.
class TemporaryFile {
 public:
  TemporaryFile() {
    const int file = mkstemp(name_);
    if (file < 0) throw std::runtime_error("no temporary file can be created in /tmp");
    close(file);
  }
  ~TemporaryFile() { unlink(name_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const char* name() const { return name_; }

 private:
  char name_[32] = "/tmp/microscope-XXXXXX";
};

/// The output of a program. @throws std::runtime_error if it cannot be run
std::string output_of(const std::vector<std::string>& command, const std::string& input = "") {
  const TemporaryFile in, out;
  std::ofstream(in.name()) << input;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, in.name(), 0 /* O_RDONLY */, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.name(), 1 /* O_WRONLY */, 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments.front(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error(command.front() + " of binutils is required, but cannot be run");
  }
  std::ostringstream text;
  text << std::ifstream(out.name()).rdbuf();
  return text.str();
}

}  // namespace

std::vector<std::vector<SourceLine>> source_lines(const std::string& library,
                                                  const std::vector<std::uintptr_t>& pcs) {
  std::ostringstream addresses;
  for (const std::uintptr_t pc : pcs) addresses << std::hex << "0x" << pc - 1 << '\n';
  std::istringstream lines(
      output_of({"addr2line", "-a", "-f", "-i", "-e", library}, addresses.str()));
  std::vector<std::vector<SourceLine>> result;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      result.emplace_back();
      continue;
    }
    std::string place;
    if (result.empty() || !std::getline(lines, place)) break;
    SourceLine found;
    found.function = short_name(demangled(line));
    const std::size_t colon = place.rfind(':');
    found.file = place.substr(0, colon);
    found.line = static_cast<unsigned>(std::strtoul(place.c_str() + colon + 1, nullptr, 10));
    result.back().push_back(std::move(found));
  }
  result.resize(pcs.size());
  return result;
}

Variables variables_of(const std::string& library) {
  std::istringstream lines(output_of({"readelf", "--syms", "--wide", library}));
  Variables variables;
  for (std::string line; std::getline(lines, line);) {
    // Num: Value Size Type Bind Vis Ndx Name
    std::istringstream fields(line);
    std::string number, value, size, type, bind, visibility, index, name;
    if (!(fields >> number >> value >> size >> type >> bind >> visibility >> index >> name))
      continue;
    if (type != "TLS" && type != "OBJECT") continue;
    if (index == "UND") continue;
    const std::uint64_t at = std::strtoull(value.c_str(), nullptr, 16);
    const Variable variable{std::strtoull(size.c_str(), nullptr, 0), short_name(demangled(name))};
    if (type == "OBJECT") {
      variables.others.emplace(at, variable);
      continue;
    }
    if (!name.starts_with("cuda_on_cpu_marker_") && variable.name != "cuda_on_cpu_probe") {
      variables.thread_local_ones.emplace(at, variable);
    }
  }
  return variables;
}

}  // namespace cuda_on_cpu::microscope

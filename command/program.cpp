#include "command/program.hpp"

#include <cstdio>
#include <exception>
#include <new>

#include "command/bench.hpp"
#include "command/compare.hpp"
#include "command/emulated_device.hpp"
#include "command/files.hpp"
#include "command/fuzz.hpp"
#include "command/inspect/inspect.hpp"
#include "command/list.hpp"
#include "command/options.hpp"
#include "command/terminal.hpp"
#include "command/tour.hpp"
#include "core/error.hpp"
#include "ladders/rung_libraries.hpp"

namespace convladder::command {
namespace {

/// `bench` and `fuzz` are in a library of their own where libraries are opened, so that a
/// comparison in a fresh clone does not wait for it.
#ifdef CONVLADDER_OPENS_RUNGS
int measure(const char* command, const Options& options) {
  void* const function = function_in_program("measurements", "bench and fuzz", command);
  return reinterpret_cast<decltype(&convladder_bench)>(function)(options);
}
int bench(const Options& options) { return measure("convladder_bench", options); }
int fuzz(const Options& options) { return measure("convladder_fuzz", options); }
int inspect(const Options& options) {
  void* const function = function_in_program("inspection", "inspect", "convladder_inspect");
  return reinterpret_cast<decltype(&convladder_inspect)>(function)(options);
}
#else
int bench(const Options& options) { return convladder_bench(options); }
int fuzz(const Options& options) { return convladder_fuzz(options); }
int inspect(const Options&) {
  throw MissingLibrary(
      "inspect opens libraries of rungs, and this build links the rungs into the program: run "
      "./ladder inspect");
}
#endif

int run(const Options& options) {
  if (options.json && is_standard_output(*options.json)) keep_standard_output_for_files();
  if (options.device) choose_device(*options.device);
  switch (options.command) {
    case Command::help: std::fputs(options.help.c_str(), stdout); return kAllAgree;
    case Command::list: return list(options);
    case Command::bench: return bench(options);
    case Command::fuzz: return fuzz(options);
    case Command::inspect: return inspect(options);
    case Command::compare: return options.ladder ? compare(options) : tour(options);
  }
  return kProgramError;
}

/// Formats a message as one line, and optionally a second line with the nearest valid word. Control
/// characters in the user's input are replaced by '?'.
std::string error_lines(const std::string& message) {
  static const std::string kNearest = "\nnearest: ";
  const std::size_t second = message.rfind(kNearest);
  std::string lines = printable(message.substr(0, second));
  if (second != std::string::npos)
    lines += "\nnearest: " + printable(message.substr(second + kNearest.size()));
  return lines;
}

int fail(ExitStatus status, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "convladder: %s\n", error_lines(message).c_str());
  return status;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  return reported([&] { return run(parse_options(arguments)); });
}

int reported(const std::function<int()>& body) {
  try {
    const int status = body();
    flush_output();
    return status;
  } catch (const BadInput& error) {
    return fail(kBadInput, error.what());
  } catch (const MissingLibrary& error) {
    return fail(kSetUpFailed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kBadInput, "memory: there is not enough memory for this problem");
  } catch (const std::exception& error) {
    return fail(kProgramError, std::string("an error of the program itself: ") + error.what());
  } catch (...) {
    return fail(kProgramError, "an error of the program itself");
  }
}

}  // namespace convladder::command

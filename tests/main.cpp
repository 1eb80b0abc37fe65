/// @file main.cpp
/// @brief The suite: all of doctest's options, and seven of its own.
///
///     suite                                  every test
///     suite --where gpu --record FILE        the rungs on the GPU; then writes what was verified
///     suite --device sm_86                   the emulated rungs, as on that card
///     suite --report DIR                     prints what the tests in CTest left in DIR
///     suite --record-taken FILE              writes which problems each rung takes (taken.hpp)
///     suite --record-non-finite FILE         writes how far NaN and infinity reach
///     (non_finite.hpp) suite --gpu-record                     says what was verified on a GPU, if
///     no test did so
///
/// The environment (tests/settings.hpp): CONVLADDER_SMALL, CONVLADDER_SEED, CONVLADDER_REQUIRE_GPU,
/// CONVLADDER_HUGE, CONVLADDER_POISON, CONVLADDER_REPORT_DIR.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // cuda_on_cpu's own handler explains a wrong memory access
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/non_finite.hpp"
#include "tests/outcome.hpp"
#include "tests/report.hpp"
#include "tests/rungs.hpp"
#include "tests/settings.hpp"
#include "tests/taken.hpp"
#include "tests/verified.hpp"

namespace {

using namespace convladder::testing;

struct Options {
  std::string where, device, record, record_taken, record_non_finite, report;
  std::vector<char*> rest;  // for doctest
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string* value = word == "--where"               ? &options.where
                         : word == "--device"            ? &options.device
                         : word == "--record"            ? &options.record
                         : word == "--record-taken"      ? &options.record_taken
                         : word == "--record-non-finite" ? &options.record_non_finite
                         : word == "--report"            ? &options.report
                                                         : nullptr;
    if (value != nullptr && i + 1 < argc) {
      *value = argv[++i];
    } else {
      options.rest.push_back(argv[i]);
    }
  }
  return options;
}

int print_report(const std::string& folder) {
  const std::vector<ReportEntry> entries = read_report(folder);
  if (entries.empty()) {
    std::printf("SKIPPED: no rung was checked\n");
    return 77;
  }
  const std::string table = report_table(entries);
  std::printf("%s", table.c_str());
  std::ofstream(folder + ".txt") << table;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--gpu-record") {
    const std::string line = gpu_record_line();
    if (!line.empty()) std::printf("%s\n", line.c_str());
    return 0;
  }
  Options options = parse(argc, argv);
  if (!options.report.empty()) return print_report(options.report);
  if (!options.record_taken.empty()) return record_taken(options.record_taken) ? 0 : 1;
  if (!options.record_non_finite.empty())
    return record_non_finite(options.record_non_finite) ? 0 : 1;

  if (!options.device.empty()) {
    if (!choose_device(options.device.c_str())) {
      std::fprintf(stderr, "suite: there is no model of a device called %s\n",
                   options.device.c_str());
      return 2;
    }
    options.where = "emulated";
  }
  register_rung_tests();
  doctest::Context context(static_cast<int>(options.rest.size()), options.rest.data());
  if (!options.where.empty()) context.addFilter("test-suite", options.where.c_str());
  context.run();
  if (context.shouldExit()) return 0;  // --help, --list-test-cases ...

  if (!options.where.empty()) std::printf("%s", report_table(report_entries()).c_str());
  int status = conclude();
  if (!options.record.empty() && !write_record(options.record, report_entries())) status = 1;
  return status;
}

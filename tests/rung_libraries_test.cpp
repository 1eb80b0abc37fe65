/// @file rung_libraries_test.cpp
/// @brief Libraries of rungs: what is missing is said, and what is being built is waited for.
#include "ladders/rung_libraries.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace convladder::testing {
namespace {

namespace fs = std::filesystem;

/// The folder in which a build tells how far it is; none once this object is gone.
class RunningBuild {
 public:
  RunningBuild() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("CONVLADDER_BUILD", folder_.c_str(), 1);
  }
  RunningBuild(const RunningBuild&) = delete;
  RunningBuild& operator=(const RunningBuild&) = delete;
  ~RunningBuild() {
    unsetenv("CONVLADDER_BUILD");
    fs::remove_all(folder_);
  }

  void tell(const std::string& file, const std::string& content = "") const {
    std::ofstream(folder_ / file) << content;
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("convladder_build_" + std::to_string(getpid()));
};

std::string why_missing(const std::string& folder, const std::string& name) {
  try {
    constant_in_library(folder, name);
  } catch (const MissingLibrary& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_SUITE_BEGIN("rung libraries");

TEST_CASE("a library that is not there is named, with the target that builds it") {
  const std::string why = why_missing("cuda_naive/nothing", "convladder::nothing");
  CHECK(why.find("the rungs of cuda_naive/nothing") != std::string::npos);
  CHECK(why.find("rungs_cuda_naive_nothing") != std::string::npos);
}

#ifdef CONVLADDER_OPENS_RUNGS
TEST_CASE("a function that a library lacks is named") {
  const std::string why = why_missing("cpu_reference/gemm", "convladder::cpu_reference::nothing");
  CHECK(why.find("convladder::cpu_reference::nothing") != std::string::npos);
}

TEST_CASE("a library of commands that is not there is named, with what it holds") {
  std::string why;
  try {
    function_in_program("nothing", "this and that", "function");
  } catch (const MissingLibrary& error) {
    why = error.what();
  }
  CHECK(why.find("this and that cannot be opened") != std::string::npos);
  CHECK(why.find("nothing") != std::string::npos);
}
#endif

TEST_CASE("a library that is being built is waited for, and the observer is told") {
  const RunningBuild build;
  std::vector<std::string> told;
  observe_waits([&](const std::string& folder) { told.push_back(folder); });
  const auto start = std::chrono::steady_clock::now();
  std::jthread builder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    build.tell("rungs_cuda_naive_later");
  });
  // There is no such file in the end: but it was waited for.
  CHECK(why_missing("cuda_naive/later", "convladder::later").find("cannot be opened") !=
        std::string::npos);
  observe_waits(nullptr);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(150));
  CHECK(told == std::vector<std::string>{"cuda_naive/later", ""});
}

TEST_CASE("there is no wait after the build, and a failed build is reported") {
  const RunningBuild build;
  build.tell("failed");
  CHECK(why_missing("cuda_naive/failing", "convladder::failing").find("the build failed") !=
        std::string::npos);
  build.tell("done");
  CHECK(why_missing("cuda_naive/done", "convladder::done").find("cannot be opened") !=
        std::string::npos);
}

TEST_CASE("build_progress is the share of steps that are done") {
  CHECK_FALSE(build_progress().has_value());
  const RunningBuild build;
  CHECK_FALSE(build_progress().has_value());
  build.tell("progress", "30 120\n");
  CHECK(build_progress() == 0.25);
  build.tell("progress", "30 ");  // half written
  CHECK_FALSE(build_progress().has_value());
  build.tell("done");
  CHECK_FALSE(build_progress().has_value());
}

TEST_SUITE_END();

}  // namespace convladder::testing

/// @file jail.cpp
/// @brief Runs a compiler on a student's file, where it can read and write what it must, and no
/// more.
///
///     jail LEVEL CPU_SECONDS [--read PATH]... [--write FOLDER]... -- PROGRAM [ARGUMENT...]
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "course/grader/sandbox.hpp"

namespace convladder::grader {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void become(int count, char** words) {
  if (count < 3) throw std::invalid_argument("needs a level and seconds");
  Policy policy{.level = level_named(words[1]),
                .calls = Calls::build,
                .cpu_seconds = std::stoul(words[2]),
                .data_bytes = 2048 * kMiB,
                .file_bytes = 64 * kMiB,
                .open_files = 256,
                .processes = 4096};  // of the whole user
  int i = 3;
  for (; i + 1 < count && std::strcmp(words[i], "--") != 0; i += 2) {
    const std::string option = words[i];
    if (option != "--read" && option != "--write") throw std::invalid_argument(option);
    (option == "--read" ? policy.readable : policy.writable).emplace_back(words[i + 1]);
  }
  if (i + 1 >= count) throw std::invalid_argument("needs a program");
  shut_in(policy, find_offers());
  execv(words[i + 1], words + i + 1);
  throw std::runtime_error(std::string(words[i + 1]) + ": " + std::strerror(errno));
}

}  // namespace
}  // namespace convladder::grader

int main(int count, char** words) {
  try {
    convladder::grader::become(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "jail: %s\n", error.what());
  }
  return 125;
}

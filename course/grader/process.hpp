/// @file process.hpp
/// @brief A worker's process, from its start until nothing of it is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "course/grader/sandbox.hpp"

namespace convladder::grader {

/// An open file, closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int number() const { return number_; }  ///< -1: none.
  int release();                          ///< Its number; it is no longer closed.
  void close();                           ///< Now.

 private:
  int number_;
};

/// Memory of a fixed size that can be handed to another process.
class SharedMemory {
 public:
  /// Zeros.
  explicit SharedMemory(std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return {data_, size_}; }  ///< All of it.
  int file() const { return file_.number(); }                    ///< Its descriptor.
  void make_read_only();                                         ///< For everybody, for good.

 private:
  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_;
};

/// How a process ended.
struct Ended {
  bool timed_out = false;      ///< By the clock outside, or by its limit of CPU time.
  bool too_much_text = false;  ///< It printed more than kMostText.
  int signal = 0;              ///< That ended it; 0: none.
  int status = 0;              ///< Of its exit.
  std::string text = {};       ///< What it printed; it proves nothing.
  double cpu_seconds = 0;      ///< Of it, and of what it started.
};

inline constexpr std::size_t kMostText =
    std::size_t{64} * 1024;  ///< Of a worker's output, in bytes.

/// Makes this process inherit what a worker leaves behind, and none that looks into it.
void become_keeper(Level level, const Offers& offers);

/// Runs the program shut in, until it and all it started are gone.
/// @param files descriptors 3, 4 ... of the worker; all others are closed
/// @param wall_seconds then it is killed; time in which others had the processor does not count,
/// so that a busy machine gives the same result
/// @throws std::runtime_error if it cannot be started
Ended run_shut_in(const Policy& policy, const Offers& offers, std::span<const int> files,
                  double wall_seconds);

}  // namespace convladder::grader

/// @file
/// @brief The dynamic shared memory of the block that an OS thread runs.
#pragma once

#include <cstddef>
#include <string>

namespace cuda_on_cpu {

/// A buffer of the largest size a block may ask for, between two pages that fault. Behind the bytes
/// that the present block asked for stands a guard band.
class SharedBuffer {
 public:
  SharedBuffer();
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  /// Makes `bytes` usable and fills them.
  void prepare(std::size_t bytes, unsigned char fill);
  /// A sentence if the block has written behind its bytes (the band is restored), else empty.
  std::string check_guard();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void fill_guard();

  unsigned char* mapping_;
  unsigned char* data_;
  std::size_t bytes_;
};

}  // namespace cuda_on_cpu

/// @file
/// @brief The dynamic shared memory of the block that an OS thread runs.
#pragma once

#include <cstddef>
#include <string>

namespace cuda_on_cpu {

/// A buffer of the largest size that a block may request, between two inaccessible pages. A guard
/// band follows the bytes of the current block.
class SharedBuffer {
 public:
  SharedBuffer();
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  /// Makes `bytes` bytes usable and fills them.
  void prepare(std::size_t bytes, unsigned char fill);
  /// A sentence if the block has written beyond its bytes (the band is restored), otherwise empty.
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

/// @file
/// @brief The ranges of static shared memory, one per .cu file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cuda_on_cpu {

/// A file's range in the calling OS thread's thread-local storage.
struct StaticSharedPlace {
  unsigned char* begin;
  std::size_t bytes;
};

/// The range that contains `address` in the calling OS thread; `begin` is null if there is none.
StaticSharedPlace find_static_shared(const void* address);

/// All ranges of the calling OS thread, in the same order in each OS thread, so that another
/// thread's copy of a variable can be found.
const std::vector<StaticSharedPlace>& static_shared_places();

/// Checks the guard bands after the static shared variables that the calling OS thread's block has
/// used, once the block has ended. Returns a sentence without its subject, "wrote beyond ...", or
/// an empty string.
/// @param fill the value with which they were filled
std::string check_static_shared_guards(unsigned char fill);

/// Bytes of the largest range: no kernel declares more.
std::size_t largest_static_shared();

/// Ends the process with a message unless the linker has arranged all ranges as static_shared.hpp
/// requires.
void check_static_shared_layout();

}  // namespace cuda_on_cpu

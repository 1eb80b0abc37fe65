/// @file
/// @brief The ranges of static shared memory, one for each .cu file.
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

/// The range that holds `address`, as the calling OS thread sees it; `begin` is null if there is
/// none.
StaticSharedPlace find_static_shared(const void* address);

/// All ranges of the calling OS thread, in the same order in each: so another thread's copy of a
/// variable can be found.
const std::vector<StaticSharedPlace>& static_shared_places();

/// Looks at the guard bands behind the static shared variables that the calling OS thread's block
/// has used, once it has ended. A sentence without its subject, "wrote behind ...", or nothing.
/// @param fill what they were filled with
std::string check_static_shared_guards(unsigned char fill);

/// Bytes of the largest of all ranges: no kernel declares more.
std::size_t largest_static_shared();

/// Ends the process with a sentence unless the linker has laid out all ranges as static_shared.hpp
/// needs.
void check_static_shared_layout();

}  // namespace cuda_on_cpu

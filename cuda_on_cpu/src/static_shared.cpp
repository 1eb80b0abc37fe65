#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_on_cpu/static_shared.hpp>
#include <functional>
#include <vector>

#include "settings.hpp"
#include "static_shared_registry.hpp"

namespace cuda_on_cpu {
namespace {

struct Range {
  detail::MarkerAddress begin;
  detail::MarkerAddress end;
};

/// Filled by the initializers of the marker objects, before main() or while a library is loaded.
std::vector<Range>& ranges() {
  static std::vector<Range> list;
  return list;
}

/// The block that each range was last filled for, by this OS thread.
std::uint64_t& filled_for(std::size_t range) {
  thread_local std::vector<std::uint64_t> blocks;
  if (blocks.size() <= range) blocks.resize(range + 1);
  return blocks[range];
}

std::size_t find_range(const void* address) {
  const auto* const byte = static_cast<const unsigned char*>(address);
  std::size_t i = 0;
  while (i < ranges().size() && !(std::less_equal<>()(ranges()[i].begin(), byte) &&
                                  std::less<>()(byte, ranges()[i].end()))) {
    ++i;
  }
  return i;
}

[[noreturn]] void end_process(const char* what) {
  std::fprintf(stderr,
               "cuda_on_cpu: %s. Compile the kernels with cuda_on_cpu_add_kernels() and link that "
               "object library itself, without link-time optimization.\n",
               what);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

detail::StaticSharedRange::StaticSharedRange(MarkerAddress begin, MarkerAddress end) {
  ranges().push_back({begin, end});
}

void detail::fill_static_shared(std::uint64_t& probe) {
  const std::size_t range = find_range(&probe);
  if (range == ranges().size()) end_process("a __shared__ variable lies outside its markers");
  if (filled_for(range) != block_number) {
    unsigned char* const begin = ranges()[range].begin();
    std::memset(begin, fill_byte(current_settings()),
                static_cast<std::size_t>(ranges()[range].end() - begin));
    filled_for(range) = block_number;
  }
  probe = block_number;
}

StaticSharedPlace find_static_shared(const void* address) {
  const std::size_t range = find_range(address);
  if (range == ranges().size()) return {nullptr, 0};
  unsigned char* const begin = ranges()[range].begin();
  return {begin, static_cast<std::size_t>(ranges()[range].end() - begin)};
}

void check_static_shared_layout() {
  for (const Range& range : ranges()) {
    if (!std::less<>()(range.begin(), range.end())) {
      end_process("the markers around static shared memory were linked in the wrong order");
    }
  }
}

}  // namespace cuda_on_cpu

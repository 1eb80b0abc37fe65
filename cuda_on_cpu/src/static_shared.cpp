#include <algorithm>
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

struct Markers {
  detail::MarkerAddress begin;
  detail::MarkerAddress end;
};

/// Filled by the initializers of the marker objects, before main() or when a library is loaded.
std::vector<Markers>& markers() {
  static std::vector<Markers> list;
  return list;
}

/// One file's static shared memory in the calling OS thread.
struct Range {
  unsigned char* begin;
  unsigned char* end;
  std::uint64_t filled_for;  ///< The block for which it was last filled.
};

/// A declaration that was executed in the calling OS thread's block.
struct Passed {
  const detail::SharedProbe* probe;
  const char* file;
  int line;
};

std::vector<Passed>& passed() {
  thread_local std::vector<Passed> list;
  return list;
}

/// All ranges of the calling OS thread, sorted by address. They are searched at every matrix
/// instruction, so they are cached per OS thread.
std::vector<Range>& ranges() {
  thread_local std::vector<Range> list;
  if (list.size() != markers().size()) {
    list.clear();
    for (const Markers& file : markers()) list.push_back({file.begin(), file.end(), 0});
    std::ranges::sort(list, std::less<>(), &Range::begin);
  }
  return list;
}

/// Null if no range contains `address`.
Range* find_range(const void* address) {
  const auto* const byte = static_cast<const unsigned char*>(address);
  auto range = std::ranges::upper_bound(ranges(), byte, std::less<>(), &Range::begin);
  if (range == ranges().begin()) return nullptr;
  --range;
  return std::less<>()(byte, range->end) ? &*range : nullptr;
}

[[noreturn]] void end_process(const char* what) {
  std::fprintf(stderr,
               "cuda_on_cpu: %s. Compile the kernels with cuda_on_cpu_add_kernels() and link that "
               "object library itself, without link-time optimisation.\n",
               what);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

detail::StaticSharedRange::StaticSharedRange(MarkerAddress begin, MarkerAddress end) {
  markers().push_back({begin, end});
}

void detail::fill_static_shared(SharedProbe& probe, const char* file, int line) {
  Range* const range = find_range(&probe);
  if (range == nullptr) end_process("a __shared__ variable lies outside of its markers");
  if (range->filled_for != block_number) {
    std::memset(range->begin, fill_byte(current_settings()),
                static_cast<std::size_t>(range->end - range->begin));
    range->filled_for = block_number;
  }
  probe.block = block_number;
  passed().push_back({&probe, file, line});
}

std::string check_static_shared_guards(unsigned char fill) {
  std::string sentence;
  for (const Passed& declaration : passed()) {
    const auto& guard = declaration.probe->guard;
    // All bytes are equal if each equals its successor and the first is correct.
    if (guard[0] == fill && std::memcmp(guard, guard + 1, sizeof guard - 1) == 0) continue;
    std::size_t offset = 0;
    while (guard[offset] == fill) ++offset;
    sentence = "wrote beyond the shared variable that is declared at " +
               std::string(declaration.file) + ":" + std::to_string(declaration.line) + ", first " +
               std::to_string(offset) + " bytes beyond its end";
    break;
  }
  passed().clear();
  return sentence;
}

StaticSharedPlace find_static_shared(const void* address) {
  const Range* const range = find_range(address);
  if (range == nullptr) return {nullptr, 0};
  return {range->begin, static_cast<std::size_t>(range->end - range->begin)};
}

const std::vector<StaticSharedPlace>& static_shared_places() {
  thread_local std::vector<StaticSharedPlace> list;
  if (list.size() != markers().size()) {
    list.clear();
    for (const Markers& file : markers()) {
      list.push_back({file.begin(), static_cast<std::size_t>(file.end() - file.begin())});
    }
  }
  return list;
}

std::size_t largest_static_shared() {
  std::size_t largest = 0;
  for (const Range& file : ranges()) {
    largest = std::max(largest, static_cast<std::size_t>(file.end - file.begin));
  }
  return largest;
}

void check_static_shared_layout() {
  for (const Markers& file : markers()) {
    if (!std::less<>()(file.begin(), file.end())) {
      end_process("the markers around static shared memory were linked in the wrong order");
    }
  }
}

}  // namespace cuda_on_cpu

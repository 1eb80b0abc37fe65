// Finds the array that an address belongs to, and records which parts were accessed.
#include <link.h>

#include <algorithm>
#include <bit>
#include <cuda_on_cpu/inspect.hpp>

#include "state.hpp"

namespace cuda_on_cpu::microscope {

void State::name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                       const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (const std::size_t around = array_in(live_, begin); around != kNoArray)
    arrays_[around].has_names = true;
  named_[begin] = arrays_.size();
  arrays_.push_back({name, begin, bytes, element_bytes, Space::global});
}

std::optional<Space> State::space_of(Block& block, std::uintptr_t address) const {
  if (address >= block.shared_begin && address < block.shared_end) return Space::shared;
  if (address >= library_begin_ && address < library_end_) {
    const bool is_variable = std::ranges::any_of(variables_memory_, [&](const auto& memory) {
      return address >= memory.first && address < memory.second;
    });
    return is_variable ? std::optional(Space::constant) : std::nullopt;
  }
  const inspect::MemoryPlace found = inspect::find_memory(reinterpret_cast<const void*>(address));
  switch (found.space) {
    case inspect::MemorySpace::device: return Space::global;
    case inspect::MemorySpace::dynamic_shared: return Space::shared;
    case inspect::MemorySpace::static_shared:
      // This OS thread's copy of the library's variables.
      if (block.static_base == 0) {
        find_library([&](const dl_phdr_info& info) {
          block.static_base = reinterpret_cast<std::uintptr_t>(info.dlpi_tls_data);
        });
      }
      // The memory between the variables belongs to the emulator.
      if (variable_at(variables_.thread_local_ones, address - block.static_base) == nullptr)
        return {};
      return Space::shared;
    case inspect::MemorySpace::host:
      break;  // a local variable of a thread, or memory of the
              // program
  }
  return {};
}

std::pair<std::string, std::uint64_t> State::element_at(std::size_t array,
                                                        std::uintptr_t address) const {
  if (array == kNoArray) return {"", 0};
  const Array& of = arrays_[array];
  return {of.name, (address - of.begin) / of.element_bytes};
}

std::size_t State::array_in(const std::map<std::uintptr_t, std::size_t>& ranges,
                            std::uintptr_t address) const {
  const auto next = ranges.upper_bound(address);
  if (next == ranges.begin()) return kNoArray;
  const std::size_t found = std::prev(next)->second;
  return address < arrays_[found].begin + arrays_[found].bytes ? found : kNoArray;
}

std::size_t State::array_of(const Block& block, Space space, std::uintptr_t address) {
  const auto named = [&](const std::string& name, std::uintptr_t begin, std::size_t bytes) {
    const auto [found, is_new] = by_name_.try_emplace(name, arrays_.size());
    if (is_new) arrays_.push_back({name, begin, bytes, 4, space});
    arrays_[found->second].begin = begin;  // of the calling block
    return found->second;
  };
  const auto variable = [&](const std::map<std::uint64_t, Variable>& variables,
                            std::uintptr_t base) {
    const auto* const found = variable_at(variables, address - base);
    return found == nullptr ? kNoArray
                            : named(found->second.name, base + found->first, found->second.bytes);
  };
  switch (space) {
    case Space::global: {
      const std::size_t found = array_in(named_, address);
      return found != kNoArray ? found : array_in(live_, address);
    }
    case Space::shared:
      for (const auto& [begin, end] : block.cluster->shared) {
        if (address >= begin && address < end)
          return named("dynamic shared memory", begin, end - begin);
      }
      return variable(variables_.thread_local_ones, block.static_base);
    case Space::constant: return variable(variables_.others, library_begin_);
  }
  return kNoArray;
}

void State::allocated(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  live_[begin] = arrays_.size();
  arrays_.push_back({"allocation " + std::to_string(++unnamed_), begin, bytes, 4, Space::global});
  shadow_.forget(begin, bytes);
}

void State::freed(const void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == live_.end()) return;
  const Array& allocation = arrays_[found->second];
  const std::uintptr_t begin = allocation.begin, end = begin + allocation.bytes;
  arrays_[found->second].footprint = touched_bytes(allocation);
  while (true) {
    const auto inside = named_.lower_bound(begin);
    if (inside == named_.end() || inside->first >= end) break;
    arrays_[inside->second].footprint = touched_bytes(arrays_[inside->second]);
    named_.erase(inside);
  }
  live_.erase(found);
}

void State::host_wrote(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (array_in(live_, begin) != kNoArray) shadow_.set_written(begin, bytes);
}

std::uint64_t State::touched_bytes(const Array& array) {
  std::uint64_t bytes = 0;
  shadow_.for_each_word(
      array.begin, array.bytes,
      [&](const Shadow::Page& page, std::size_t index, std::uint8_t mask, std::uintptr_t) {
        bytes +=
            static_cast<unsigned>(std::popcount(static_cast<unsigned>(page.touched[index] & mask)));
      });
  return bytes;
}

}  // namespace cuda_on_cpu::microscope

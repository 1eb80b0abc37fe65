#include "state.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace cuda_on_cpu::microscope {
namespace {

thread_local std::unique_ptr<Block> block_of_this_thread;

/// The variable that holds this offset, or null.
const std::pair<const std::uint64_t, Variable>* variable_at(
    const std::map<std::uint64_t, Variable>& variables, std::uint64_t offset) {
  const auto next = variables.upper_bound(offset);
  if (next == variables.begin()) return nullptr;
  const auto& found = *std::prev(next);
  return offset < found.first + found.second.bytes ? &found : nullptr;
}

}  // namespace

constinit std::atomic<State*> State::active_{nullptr};

State::State(const Options& options) : options_(options) {
  if (active() != nullptr) throw std::logic_error("there is a microscope already");
  blocks_.push_back({});  // number 0 is none
  variables_ = variables_of(file());
  const bool is_open = find_library([&](const dl_phdr_info& info) {
    library_begin_ = info.dlpi_addr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& part = info.dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      library_end_ =
          std::max<std::uintptr_t>(library_end_, info.dlpi_addr + part.p_vaddr + part.p_memsz);
    }
  });
  if (!is_open) throw std::runtime_error(options_.library + " is not open");
  inspect::set_watcher(this);
  active_ = this;
}

bool State::find_library(const std::function<void(const dl_phdr_info&)>& visit) const {
  const std::pair search{&options_.library, &visit};
  return dl_iterate_phdr(
             [](dl_phdr_info* info, std::size_t, void* data) {
               const auto& [name, tell] = *static_cast<decltype(search)*>(data);
               if (*name != info->dlpi_name) return 0;
               (*tell)(*info);
               return 1;
             },
             const_cast<void*>(static_cast<const void*>(&search))) != 0;
}

State::~State() {
  active_ = nullptr;
  inspect::set_watcher(nullptr);
}

Block* State::running() {
  Block* const block = block_of_this_thread.get();
  inspect::ThreadPosition position;
  return block != nullptr && inspect::in_kernel(&position) ? block : nullptr;
}

unsigned State::thread() {
  inspect::ThreadPosition position{};
  inspect::in_kernel(&position);
  return position.thread;
}

void State::name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                       const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto next = live_.upper_bound(begin);
  if (next != live_.begin()) arrays_[std::prev(next)->second].has_names = true;
  named_[begin] = arrays_.size();
  arrays_.push_back({name, begin, bytes, element_bytes, Space::global});
}

// --- Hooks

void State::called(Block& block, std::uintptr_t pc) {
  if (!block.counted) return;
  const std::lock_guard lock(mutex_);
  Block::Thread& thread = block.threads[State::thread()];
  thread.call = calls_.child(thread.call, pc);
}

void State::returned(Block& block) const {
  if (!block.counted) return;
  Block::Thread& thread = block.threads[State::thread()];
  thread.call = calls_[thread.call].parent;
}

void State::entered(Block& block, std::uintptr_t pc) {
  Block::Thread& thread = block.threads[State::thread()];
  thread.pc = pc;
  if (thread.suspended != 0 || !block.counted) return;
  thread.events.push_back({.pc = pc, .call = thread.call, .kind = Event::Kind::block});
}

void State::access(Block& block, Operation operation, std::uintptr_t address, std::size_t bytes,
                   std::uintptr_t pc) {
  const unsigned number = State::thread();
  if (block.threads[number].suspended != 0) return;
  const std::lock_guard lock(mutex_);
  bool is_memory = false;
  const Space space = space_of(block, address, &is_memory);
  if (!is_memory) return;
  const Node place = calls_.child(block.threads[number].call, pc);
  note(block, number, {operation, space, address, bytes, place});
}

void State::wrote(Block& block, std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bool is_memory = false;
  const Space space = space_of(block, address, &is_memory);
  if (!is_memory || (space != Space::global && space != Space::shared)) return;
  if (space == Space::shared) begin_pages(block, address, bytes);
  shadow_.set_written(address, bytes);
}

void State::atomic_begins(Block& block, std::uintptr_t address, std::size_t bytes,
                          std::uintptr_t pc) {
  access(block, Operation::atomic, address, bytes, pc);
  ++block.threads[State::thread()].suspended;
}

void State::atomic_ended(Block& block) { --block.threads[State::thread()].suspended; }

Space State::space_of(Block& block, std::uintptr_t address, bool* is_memory) const {
  *is_memory = true;
  if (address >= block.shared_begin && address < block.shared_end) return Space::shared;
  if (address >= library_begin_ && address < library_end_) {
    return Space::constant;
  }
  const inspect::MemoryPlace found = inspect::find_memory(reinterpret_cast<const void*>(address));
  switch (found.space) {
    case inspect::MemorySpace::device: return Space::global;
    case inspect::MemorySpace::dynamic_shared: return Space::shared;
    case inspect::MemorySpace::static_shared:
      // This OS thread's copy of the library's variables; it is there now.
      if (block.static_base == 0) {
        find_library([&](const dl_phdr_info& info) {
          block.static_base = reinterpret_cast<std::uintptr_t>(info.dlpi_tls_data);
        });
      }
      // What lies between the variables is the emulator's.
      *is_memory =
          variable_at(variables_.thread_local_ones, address - block.static_base) != nullptr;
      return Space::shared;
    case inspect::MemorySpace::host: break;
  }
  *is_memory = false;  // a thread's own, or the program's
  return Space::global;
}

/// An event, and what it tells about races and unwritten memory.
void State::note(Block& block, unsigned thread, const Access& access) {
  if (overflowed_) return;
  settle(block);
  const bool writes = access.operation != Operation::load;
  if (access.space == Space::shared) begin_pages(block, access.address, access.bytes);
  if (access.space == Space::global || access.space == Space::shared) {
    if (block.counted) {
      const bool reads = access.operation != Operation::store && !access.pending;
      if (reads) check_written(block, thread, access);
      check_order(block, thread, access);
    }
    if (writes && !access.pending) shadow_.set_written(access.address, access.bytes);
  }
  if (access.operation == Operation::atomic) blocks_[block.number].atomics = true;
  if (!block.counted) return;
  if (++events_ > options_.most_events) {
    overflowed_ = true;
    active_ = nullptr;  // the rest runs unobserved
    return;
  }
  // Lanes are aligned by addresses of code: of a function of ours, by the block that calls it.
  const std::uintptr_t pc = calls_[access.place].pc;
  Block::Thread& mine = block.threads[thread];
  mine.events.push_back({(pc & kWhereBit) != 0 ? mine.pc : pc, access.address, mine.call,
                         access.place,
                         static_cast<std::uint16_t>(std::min<std::size_t>(access.bytes, 65535)),
                         Event::Kind::access, access.space, access.operation});
}

/// A block finds its shared memory as if nobody had written there.
void State::begin_pages(const Block& block, std::uintptr_t begin, std::size_t bytes) {
  for (std::uintptr_t at = begin / Shadow::kPageBytes; at * Shadow::kPageBytes < begin + bytes;
       ++at) {
    Shadow::Page& page = shadow_.page(at * Shadow::kPageBytes);
    if (page.block == block.birth) continue;
    page.written.fill(0);
    page.block = block.birth;
  }
}

// --- Races

void State::check_order(Block& block, unsigned thread, const Access& access) {
  const bool shared = access.space == Space::shared;
  const bool atomic = access.operation == Operation::atomic;
  // An asynchronous copy is two accesses: of its source, a load; of its destination, a store.
  const bool writes = access.operation == Operation::store || atomic || access.pending;
  const auto stale = [&](const Stamp& stamp) {
    return stamp.block == 0 || (shared && stamp.block < block.birth);
  };
  /// Whether the stamp's access is ordered before this one.
  const auto before = [&](const Stamp& stamp) {
    if (stamp.block == block.number) {
      return stamp.thread == thread || block.order.is_before(stamp.thread, stamp.clock, thread);
    }
    return blocks_[stamp.block].phase < blocks_[block.number].phase;
  };
  const auto report = [&](const Stamp& stamp, std::uintptr_t word, Race::Kind kind) {
    const bool other_block = stamp.block != block.number;
    // A plain load of what others change by atomics only sees an old value or a new one.
    const bool loads_beside = !shared && stamp.atomic != atomic && kind != Race::Kind::waw &&
                              access.operation != Operation::store;
    const bool perhaps =
        loads_beside ||
        (other_block && (stamp.atomic || atomic ||
                         (blocks_[stamp.block].atomics && blocks_[block.number].atomics)));
    race(block, thread, access, word, stamp, kind,
         perhaps ? "an atomic operation may order them" : "", !perhaps);
  };
  shadow_.for_each_word(
      access.address, access.bytes, [&](Shadow::Page& page, std::size_t index, std::uint8_t mask) {
        Word& word = page.words[index];
        page.touched[index] |= mask;
        const std::uintptr_t address =
            (access.address & ~(Shadow::kPageBytes - 1)) + index * 4;  // for reports: in this page
        if (!stale(word.write) && (word.write.bytes & mask) != 0 &&
            !(atomic && word.write.atomic)) {
          if (word.write.pending) {
            race(block, thread, access, address, word.write,
                 writes ? Race::Kind::waw : Race::Kind::raw,
                 "the first is an asynchronous copy that was not waited for", true);
          } else if (!before(word.write)) {
            report(word.write, address, writes ? Race::Kind::waw : Race::Kind::raw);
          }
        }
        const Stamp mine{block.number,  block.order.clock(thread),
                         access.place,  static_cast<std::uint16_t>(thread),
                         mask,          atomic,
                         access.pending};
        if (writes) {
          for (const Stamp& read : word.reads) {
            if (stale(read) || (read.bytes & mask) == 0 || before(read)) continue;
            report(read, address, Race::Kind::war);
          }
          word.write = mine;
          return;
        }
        // Where there is no room, the reader that the others know of goes.
        std::size_t slot = 1;
        for (std::size_t i = 0; i < word.reads.size(); ++i) {
          const Stamp& read = word.reads[i];
          if (stale(read) || before(read)) {
            slot = i;
            break;
          }
        }
        word.reads[slot] = mine;
      });
}

void State::race(Block& block, unsigned thread, const Access& access, std::uintptr_t word,
                 const Stamp& other, Race::Kind kind, const char* why, bool is_error) {
  const std::size_t array = array_of(block, access.space, access.address);
  const auto [found, is_new] =
      race_numbers_.try_emplace({kind, other.place, access.place, array}, races_.size());
  if (!is_new) return;
  const std::uintptr_t address = std::max(word, access.address);
  FoundRace race;
  race.race.kind = kind;
  race.race.is_error = is_error;
  race.race.space = access.space;
  race.race.array = array == kNoArray ? "" : arrays_[array].name;
  race.race.element = array == kNoArray ? 0 : element_of(arrays_[array], address);
  race.race.first = {"", 0, blocks_[other.block].index, other.thread};
  race.race.second = {"", 0, block.index, thread};
  race.race.why = why;
  race.first = other.place;
  race.second = access.place;
  races_.push_back(std::move(race));
  if (kind == Race::Kind::waw && access.operation == Operation::store && is_error &&
      access.bytes <= sizeof OpenStore::before) {
    OpenStore open{access.address, access.bytes, {}, races_.size() - 1};
    std::memcpy(open.before, reinterpret_cast<const void*>(access.address), access.bytes);
    block.open_stores.push_back(open);
  }
}

/// Many threads may store one value in one place.
void State::settle(Block& block) {
  if (block.open_stores.empty()) [[likely]]
    return;
  for (const OpenStore& open : block.open_stores) {
    if (std::memcmp(open.before, reinterpret_cast<const void*>(open.address), open.bytes) != 0) {
      continue;
    }
    races_[open.race].race.is_error = false;
    races_[open.race].race.why = "both store the same value";
  }
  block.open_stores.clear();
}

void State::check_written(Block& block, unsigned thread, const Access& access) {
  const bool shared = access.space == Space::shared;
  if (!shared) {
    // Of other memory it is not known who wrote it before.
    auto next = live_.upper_bound(access.address);
    if (next == live_.begin()) return;
    const Array& allocation = arrays_[std::prev(next)->second];
    if (access.address >= allocation.begin + allocation.bytes) return;
  }
  bool written = true;
  std::uintptr_t first = 0;
  std::uintptr_t at = access.address & ~std::uintptr_t{3};
  shadow_.for_each_word(access.address, access.bytes,
                        [&](Shadow::Page& page, std::size_t index, std::uint8_t mask) {
                          if ((page.written[index] & mask) != mask && written) {
                            written = false;
                            first = at;
                          }
                          at += 4;
                        });
  if (written) return;
  const std::size_t array = array_of(block, access.space, access.address);
  if (!unwritten_places_.insert({access.place, array}).second) return;
  const std::uintptr_t address = std::max(first, access.address);
  unwritten_.push_back({{{"", 0, block.index, thread},
                         access.space,
                         array == kNoArray ? "" : arrays_[array].name,
                         array == kNoArray ? 0 : element_of(arrays_[array], address)},
                        access.place});
}

// --- Arrays

std::uint64_t State::element_of(const Array& array, std::uintptr_t address) const {
  return (address - array.begin) / array.element_bytes;
}

std::size_t State::array_of(const Block& block, Space space, std::uintptr_t address) {
  const auto in = [&](const std::map<std::uintptr_t, std::size_t>& ranges) {
    const auto next = ranges.upper_bound(address);
    if (next == ranges.begin()) return kNoArray;
    const std::size_t found = std::prev(next)->second;
    return address < arrays_[found].begin + arrays_[found].bytes ? found : kNoArray;
  };
  const auto named = [&](const std::string& name, std::uintptr_t begin, std::size_t bytes) {
    const auto [found, is_new] = by_name_.try_emplace(name, arrays_.size());
    if (is_new) arrays_.push_back({name, begin, bytes, 4, space});
    arrays_[found->second].begin = begin;  // of the block that asks
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
      const std::size_t found = in(named_);
      return found != kNoArray ? found : in(live_);
    }
    case Space::shared:
      if (address >= block.shared_begin && address < block.shared_end) {
        return named("dynamic shared memory", block.shared_begin,
                     block.shared_end - block.shared_begin);
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
  auto next = live_.upper_bound(begin);
  if (next == live_.begin()) return;
  const Array& allocation = arrays_[std::prev(next)->second];
  if (begin < allocation.begin + allocation.bytes) shadow_.set_written(begin, bytes);
}

std::uint64_t State::touched_bytes(const Array& array) {
  std::uint64_t bytes = 0;
  shadow_.for_each_word(array.begin, array.bytes,
                        [&](const Shadow::Page& page, std::size_t index, std::uint8_t mask) {
                          bytes += static_cast<unsigned>(
                              std::popcount(static_cast<unsigned>(page.touched[index] & mask)));
                        });
  return bytes;
}

// --- Launches and blocks

void State::launch_begins(const inspect::LaunchShape& launch) {
  const std::lock_guard lock(mutex_);
  phase_ = ((phase_ >> 32) + 1) << 32;
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  stride_blocks_ = blocks;
  const auto same = std::ranges::find_if(kernels_, [&](const Kernel& kernel) {
    return kernel.name == launch.kernel && std::ranges::equal(kernel.grid, launch.grid) &&
           std::ranges::equal(kernel.block, launch.block) &&
           kernel.shared_bytes == launch.shared_bytes;
  });
  kernel_ = static_cast<std::size_t>(same - kernels_.begin());
  if (same == kernels_.end()) {
    Kernel kernel{launch.kernel, 0, {}, {}, launch.shared_bytes, 0, {}};
    std::ranges::copy(launch.grid, kernel.grid);
    std::ranges::copy(launch.block, kernel.block);
    kernels_.push_back(std::move(kernel));
  }
  ++kernels_[kernel_].launches;
}

void State::block_begins(std::uint64_t index, unsigned threads,
                         const inspect::MemoryPlace& shared) {
  const std::lock_guard lock(mutex_);
  auto block = std::make_unique<Block>(threads, index);
  block->number = block->birth = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back({phase_, index});
  block->kernel = kernel_;
  block->shared_begin = reinterpret_cast<std::uintptr_t>(shared.base);
  block->shared_end = block->shared_begin + shared.bytes;
  const std::uint64_t wanted = options_.blocks_a_launch, of = stride_blocks_;
  // Evenly: those where the count of wanted blocks goes up.
  block->counted = wanted == 0 || wanted >= of || (index + 1) * wanted / of != index * wanted / of;
  ++blocks_run_;
  blocks_counted_ += block->counted;
  block_of_this_thread = std::move(block);
}

void State::block_ended() {
  const std::lock_guard lock(mutex_);
  if (block_of_this_thread == nullptr) return;
  settle(*block_of_this_thread);
  flush(*block_of_this_thread);
  block_of_this_thread.reset();
}

void State::barrier_passed() {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  settle(block);
  flush(block);
  block.order.barrier();
  if (block.counted) kernels_[block.kernel].barriers += (block.threads.size() + 31) / 32;
}

void State::lanes_met(unsigned warp, unsigned lanes) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  block.order.meeting(warp, lanes);
  if (!block.counted || overflowed_) return;
  ++block.meetings;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1u)) continue;
    block.threads[warp * 32 + lane].events.push_back(
        {.pc = block.meetings, .address = lanes, .kind = Event::Kind::meeting});
  }
}

void State::released(const void* object) {
  const std::lock_guard lock(mutex_);
  block_of_this_thread->order.release(object, State::thread());
}

void State::acquired(const void* object, unsigned thread) {
  const std::lock_guard lock(mutex_);
  block_of_this_thread->order.acquire(object, thread);
}

void State::grid_barrier_passed() {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  const BlockInfo before = blocks_[block.number];
  block.number = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back({before.phase + 1, before.index});
}

// --- Instructions that functions of cuda_on_cpu stand for

Node State::place_of(Block& block, unsigned thread, const std::source_location& where) {
  const auto [found, is_new] = where_numbers_.try_emplace(
      {where.file_name(), {where.line(), where.column()}}, wheres_.size());
  if (is_new) wheres_.push_back(where);
  return calls_.child(block.threads[thread].call, kWhereBit | found->second);
}

void State::touched(Operation operation, const void* address, std::size_t bytes,
                    const std::source_location& where) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  const unsigned thread = State::thread();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  bool is_memory = false;
  const Space space = space_of(block, begin, &is_memory);
  if (is_memory)
    note(block, thread, {operation, space, begin, bytes, place_of(block, thread, where)});
}

void State::copy_issued(const void* to, const void* from, std::size_t bytes,
                        const std::source_location& where) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  const unsigned thread = State::thread();
  const Node place = place_of(block, thread, where);
  if (from != nullptr) {
    note(block, thread,
         {Operation::async, Space::global, reinterpret_cast<std::uintptr_t>(from), bytes, place});
  }
  note(block, thread,
       {Operation::async, Space::shared, reinterpret_cast<std::uintptr_t>(to), bytes, place, true});
}

void State::read_by_unit(const void* from, std::size_t bytes, const std::source_location& where) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  if (overflowed_ || !block.counted) return;
  const unsigned thread = State::thread();
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  bool is_memory = false;
  const Space space = space_of(block, begin, &is_memory);
  if (!is_memory) return;
  const Access access{Operation::load, space, begin, bytes, place_of(block, thread, where)};
  check_written(block, thread, access);
  check_order(block, thread, access);
}

void State::copy_landed(const void* to, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (block_of_this_thread == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(to);
  Block& block = *block_of_this_thread;
  begin_pages(block, begin, bytes);
  shadow_.for_each_word(begin, bytes,
                        [&](Shadow::Page& page, std::size_t index, std::uint8_t mask) {
                          page.written[index] |= mask;
                          page.words[index].write.pending = false;
                        });
}

// --- Counting

void State::flush(Block& block) {
  if (!block.counted || overflowed_) return;
  for (std::size_t first = 0; first < block.threads.size(); first += 32) {
    std::array<const std::vector<Event>*, 32> events{};
    for (std::size_t lane = 0; lane < 32 && first + lane < block.threads.size(); ++lane) {
      events[lane] = &block.threads[first + lane].events;
    }
    const auto warp = static_cast<unsigned>(first / 32);
    align_lanes(calls_, events, [&](const WarpAccess& access) { count(block, warp, access); });
  }
  for (Block::Thread& thread : block.threads) thread.events.clear();
}

void State::count(const Block& block, unsigned warp, const WarpAccess& access) {
  const Event& first = access.first();
  Request request;
  request.lanes = access.lanes;
  request.width = first.width;
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    request.address[lane] = (*access.event)[lane]->address;
  }
  const auto space = first.space;
  const auto operation = first.operation;
  const bool atomic = operation == Operation::atomic;
  const Counts counts = space == Space::global   ? count_global(request, atomic)
                        : space == Space::shared ? count_shared(request, atomic)
                                                 : count_plain(request);
  const std::size_t array = array_of(block, space, first.address);
  Seen& seen = counts_[{block.kernel, first.place, space, operation, first.width, array}];
  seen.counts += counts;
  if (seen.samples.size() < kSamples) {
    const std::uintptr_t begin = array == kNoArray ? 0 : arrays_[array].begin;
    Sample sample{block.index, warp, access.lanes, {}, begin % 128};
    for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
      sample.byte[lane] = request.address[lane] - begin;
    }
    seen.samples.push_back(sample);
  }
  if (array != kNoArray && space == Space::global && operation != Operation::store)
    arrays_[array].loads += counts.lanes;
}

// --- The report

std::vector<State::Resolved> State::resolve(const std::set<Node>& places) const {
  // All return addresses on the way up, looked up together.
  std::vector<std::uintptr_t> pcs;
  std::map<std::uintptr_t, std::size_t> number;
  for (const Node place : places) {
    for (Node node = place; node != 0; node = calls_[node].parent) {
      const std::uintptr_t pc = calls_[node].pc;
      if ((pc & kWhereBit) != 0 || pc < library_begin_ || pc >= library_end_) continue;
      if (number.try_emplace(pc, pcs.size()).second) pcs.push_back(pc - library_begin_);
    }
  }
  std::vector<std::vector<SourceLine>> lines;
  if (!pcs.empty()) lines = source_lines(file(), pcs);
  const auto is_own = [&](const std::string& file) {
    return file.find("/cuda_on_cpu/include/") == std::string::npos && !file.starts_with("/usr/") &&
           file != "??" && file != "<built-in>" &&
           std::ranges::none_of(options_.helpers, [&](const std::string& helper) {
             return file.find(helper) != std::string::npos;
           });
  };
  std::vector<Resolved> result;
  for (const Node place : places) {
    // From the innermost line on; the first of the source, or else of what is no helper.
    std::optional<Resolved> innermost, of_source;
    const auto consider = [&](const Resolved& line) {
      if (!innermost && is_own(line.file)) innermost = line;
      if (!of_source && line.file == options_.source) of_source = line;
    };
    for (Node node = place; node != 0 && !of_source; node = calls_[node].parent) {
      const std::uintptr_t pc = calls_[node].pc;
      if ((pc & kWhereBit) != 0) {
        const std::source_location& where = wheres_[pc & ~kWhereBit];
        consider({where.file_name(), where.line(), short_name(where.function_name())});
      } else if (const auto found = number.find(pc); found != number.end()) {
        for (const SourceLine& line : lines[found->second]) {
          consider({line.file, line.line, line.function});
        }
      }
    }
    result.push_back(of_source ? *of_source : innermost.value_or(Resolved{}));
  }
  return result;
}

Report State::report() {
  const std::lock_guard lock(mutex_);
  std::set<Node> places;
  for (const auto& [key, seen] : counts_) places.insert(key.place);
  for (const FoundRace& race : races_) {
    places.insert(race.first);
    places.insert(race.second);
  }
  for (const FoundUnwritten& read : unwritten_) places.insert(read.place);
  const std::vector<Resolved> resolved = resolve(places);
  std::map<Node, const Resolved*> line_of;
  std::size_t next = 0;
  for (const Node place : places) line_of[place] = &resolved[next++];

  Report report;
  report.kernels = kernels_;
  using Key = std::tuple<std::size_t, std::string, unsigned, Space, Operation, unsigned,
                         std::string, std::string>;
  std::map<Key, Seen> merged;
  for (const auto& [key, seen] : counts_) {
    const Resolved& line = *line_of.at(key.place);
    const std::string array = key.array == kNoArray ? "" : arrays_[key.array].name;
    Seen& of_line = merged[{key.kernel, line.file, line.line, key.space, key.operation, key.width,
                            array, line.function}];
    of_line.counts += seen.counts;
    if (of_line.samples.empty()) of_line.samples = seen.samples;
  }
  for (const auto& [key, seen] : merged) {
    const auto& [kernel, file, line, space, operation, width, array, function] = key;
    report.kernels[kernel].lines.push_back(
        {file, line, function, space, operation, width, array, seen.counts, seen.samples});
  }

  // One of each pair of lines: template instances and callers are not told apart.
  std::set<std::tuple<Race::Kind, bool, std::string, unsigned, std::string, unsigned, std::string>>
      seen;
  for (const FoundRace& found : races_) {
    Race race = found.race;
    const Resolved &first = *line_of.at(found.first), &second = *line_of.at(found.second);
    race.first.file = first.file;
    race.first.line = first.line;
    race.second.file = second.file;
    race.second.line = second.line;
    if (seen.insert({race.kind, race.is_error, first.file, first.line, second.file, second.line,
                     race.array})
            .second) {
      report.races.push_back(std::move(race));
    }
  }
  std::ranges::stable_sort(report.races,
                           [](const Race& a, const Race& b) { return a.is_error > b.is_error; });
  std::set<std::tuple<std::string, unsigned, std::string>> seen_reads;
  for (const FoundUnwritten& found : unwritten_) {
    Unwritten read = found.read;
    read.place.file = line_of.at(found.place)->file;
    read.place.line = line_of.at(found.place)->line;
    if (seen_reads.insert({read.place.file, read.place.line, read.array}).second) {
      report.unwritten.push_back(std::move(read));
    }
  }
  for (Array& array : arrays_) {
    if (array.space != Space::global || array.has_names) continue;
    if (array.loads != 0) report.loads[array.name] += array.loads;
    const auto alive = [&](const std::map<std::uintptr_t, std::size_t>& ranges) {
      const auto found = ranges.find(array.begin);
      return found != ranges.end() && &arrays_[found->second] == &array;
    };
    if (alive(named_) || alive(live_)) array.footprint = touched_bytes(array);
    if (array.footprint != 0) report.footprint[array.name] += array.footprint;
  }
  report.blocks_run = blocks_run_;
  report.blocks_counted = blocks_counted_;
  report.events = events_;
  report.overflowed = overflowed_;
  return report;
}

// --- The public face

Counts& Counts::operator+=(const Counts& other) {
  requests += other.requests;
  lanes += other.lanes;
  bytes += other.bytes;
  sectors += other.sectors;
  sectors_ideal += other.sectors_ideal;
  wavefronts += other.wavefronts;
  excess += other.excess;
  contention += other.contention;
  return *this;
}

const char* name_of(Space space) {
  constexpr const char* kNames[] = {"global", "shared", "constant"};
  return kNames[static_cast<std::size_t>(space)];
}

const char* name_of(Operation operation) {
  constexpr const char* kNames[] = {"load", "store", "atomic", "async"};
  return kNames[static_cast<std::size_t>(operation)];
}

Microscope::Microscope(const Options& options) : state_(std::make_unique<State>(options)) {}
Microscope::~Microscope() = default;
void Microscope::name_array(const void* memory, std::size_t bytes, std::size_t element_bytes,
                            const std::string& name) {
  state_->name_array(memory, bytes, element_bytes, name);
}
Report Microscope::report() { return state_->report(); }

}  // namespace cuda_on_cpu::microscope

#include "state.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace cuda_on_cpu::microscope {
namespace {

thread_local std::unique_ptr<Block> block_of_this_thread;

}  // namespace

constinit std::atomic<State*> State::active_{nullptr};

State::State(const Options& options) : options_(options) {
  if (active() != nullptr) throw std::logic_error("there is a microscope already");
  blocks_.push_back({});  // number 0 means none
  variables_ = variables_of(file());
  const bool is_open = find_library([&](const dl_phdr_info& info) {
    library_begin_ = info.dlpi_addr;
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const auto& part = info.dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
      library_end_ = std::max(library_end_, end);
      if ((part.p_flags & PF_W) != 0) variables_memory_.emplace_back(begin, end);
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

// --- Hooks

void State::called(Block& block, std::uintptr_t pc) {
  if (!block.counted) return;
  const std::lock_guard lock(mutex_);
  Block::Thread& thread = block.threads[State::thread()];
  thread.call = calls_.child(thread.call, pc);
  thread.callers.push_back(thread.pc);
}

void State::returned(Block& block, std::uintptr_t pc) {
  if (!block.counted) return;
  const std::lock_guard lock(mutex_);
  Block::Thread& thread = block.threads[State::thread()];
  thread.call = calls_[thread.call].parent;
  thread.left = pc;
  if (thread.callers.empty()) return;  // of the kernel itself
  thread.pc = thread.callers.back();
  thread.callers.pop_back();
}

void State::entered(Block& block, std::uintptr_t pc) {
  Block::Thread& thread = block.threads[State::thread()];
  // g++ places the instructions after a function's exit in a block of their own, whose address is
  // unrelated to the caller's code.
  constexpr std::uintptr_t kExitBytes = 16;
  if (pc - std::exchange(thread.left, 0) <= kExitBytes) return;
  thread.pc = pc;
  if (thread.suspended != 0 || !block.counted) return;
  thread.events.push_back({.pc = pc, .call = thread.call, .kind = Event::Kind::block});
}

void State::access(Block& block, Operation operation, std::uintptr_t address, std::size_t bytes,
                   std::uintptr_t pc) {
  const unsigned number = State::thread();
  if (block.threads[number].suspended != 0) return;
  const std::lock_guard lock(mutex_);
  const std::optional<Space> space = space_of(block, address);
  if (!space) return;
  const Node place = calls_.child(block.threads[number].call, pc);
  note(block, number, {operation, *space, address, bytes, place});
}

void State::wrote(Block& block, std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::optional<Space> space = space_of(block, address);
  if (space != Space::global && space != Space::shared) return;
  if (space == Space::shared) begin_pages(block, address, bytes);
  shadow_.set_written(address, bytes);
}

void State::atomic_begins(Block& block, std::uintptr_t address, std::size_t bytes,
                          std::uintptr_t pc) {
  access(block, Operation::atomic, address, bytes, pc);
  ++block.threads[State::thread()].suspended;
}

void State::atomic_ended(Block& block) { --block.threads[State::thread()].suspended; }

/// Records an event, and checks it for races and unwritten memory.
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
    active_ = nullptr;  // the remaining events are not observed
    return;
  }
  // Lanes are aligned by code addresses: in a function of the library, by the basic block that
  // calls it.
  const std::uintptr_t pc = calls_[access.place].pc;
  Block::Thread& mine = block.threads[thread];
  mine.events.push_back({(pc & kWhereBit) != 0 ? mine.pc : pc, access.address, access.other_end,
                         mine.call, access.place,
                         static_cast<std::uint16_t>(std::min<std::size_t>(access.bytes, 65535)),
                         Event::Kind::access, access.space, access.operation});
}

/// Shared memory counts as unwritten at the start of a block.
void State::begin_pages(const Block& block, std::uintptr_t begin, std::size_t bytes) {
  for (std::uintptr_t at = begin / Shadow::kPageBytes; at * Shadow::kPageBytes < begin + bytes;
       ++at) {
    Shadow::Page& page = shadow_.page(at * Shadow::kPageBytes);
    if (page.block == block.birth) continue;
    page.written.fill(0);
    page.block = block.birth;
  }
}

// --- Launches and blocks

void State::launch_begins(const inspect::LaunchShape& launch) {
  const std::lock_guard lock(mutex_);
  phase_ = ((phase_ >> 32) + 1) << 32;
  launch_blocks_ = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const auto same = std::ranges::find_if(kernels_, [&](const Kernel& kernel) {
    return kernel.name == launch.kernel && std::ranges::equal(kernel.grid, launch.grid) &&
           std::ranges::equal(kernel.block, launch.block) &&
           kernel.shared_bytes == launch.shared_bytes;
  });
  kernel_ = static_cast<std::size_t>(same - kernels_.begin());
  if (same == kernels_.end()) {
    Kernel kernel{};
    kernel.name = launch.kernel;
    kernel.shared_bytes = launch.shared_bytes;
    std::ranges::copy(launch.grid, kernel.grid);
    std::ranges::copy(launch.block, kernel.block);
    kernels_.push_back(std::move(kernel));
  }
  ++kernels_[kernel_].launches;
  if (options_.launch_began) options_.launch_began(kernels_[kernel_], launch_blocks_);
}

void State::block_begins(std::uint64_t index, unsigned threads,
                         const inspect::MemoryPlace& shared) {
  const std::lock_guard lock(mutex_);
  auto block = std::make_unique<Block>(threads, index);
  block->number = block->birth = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back({phase_, index, ++clusters_, 0});
  block->cluster = std::make_shared<ClusterView>(threads, 1);
  block->kernel = kernel_;
  block->shared_begin = reinterpret_cast<std::uintptr_t>(shared.base);
  block->shared_end = block->shared_begin + shared.bytes;
  block->cluster->shared = {{block->shared_begin, block->shared_end}};
  const std::uint64_t wanted = options_.blocks_a_launch, of = launch_blocks_;
  // Evenly spread: the blocks at which the scaled count increases.
  block->counted = wanted == 0 || wanted >= of || (index + 1) * wanted / of != index * wanted / of;
  ++kernels_[kernel_].blocks_run;
  kernels_[kernel_].blocks_counted += block->counted;
  if (options_.trace && block->counted) trace_begins(*block);
  block_of_this_thread = std::move(block);
}

void State::block_joins(const void* cluster, unsigned rank, unsigned blocks) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  std::shared_ptr<ClusterView>& view = begun_clusters_[cluster];
  if (view == nullptr) {
    view = std::make_shared<ClusterView>(static_cast<unsigned>(block.threads.size()), blocks);
    view->birth = block.number;
  }
  block.cluster = view;
  block.rank = rank;
  block.birth = view->birth;
  view->shared.emplace_back(block.shared_begin, block.shared_end);
  blocks_[block.number].cluster = blocks_[view->birth].cluster;
  blocks_[block.number].rank = rank;
  if (view->shared.size() == blocks) begun_clusters_.erase(cluster);
}

void State::block_ended() {
  const std::lock_guard lock(mutex_);
  if (block_of_this_thread == nullptr) return;
  settle(*block_of_this_thread);
  flush(*block_of_this_thread);
  block_of_this_thread.reset();
  if (options_.block_ended) options_.block_ended();
}

void State::barrier_passed() {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  settle(block);
  flush(block);
  block.order().barrier(block.rank);
  if (!block.counted) return;
  kernels_[block.kernel].barriers += (block.threads.size() + 31) / 32;
  if (options_.trace) ++traces_[block.trace].block.intervals;
}

void State::lanes_met(unsigned warp, unsigned lanes) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  block.order().meeting(block.in_order(warp * 32), lanes);
  if (!block.counted || overflowed_) return;
  ++block.meetings;
  for_each_lane(lanes, [&](unsigned lane) {
    block.threads[warp * 32 + lane].events.push_back(
        {.pc = block.meetings, .address = lanes, .kind = Event::Kind::meeting});
  });
}

void State::released(const void* object) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  block.order().release(object, block.in_order(State::thread()));
}

void State::acquired(const void* object, unsigned rank, unsigned thread) {
  const std::lock_guard lock(mutex_);
  ClusterOrder& order = block_of_this_thread->order();
  order.acquire(object, order.number(rank, thread));
}

void State::grid_barrier_passed() {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  const BlockInfo before = blocks_[block.number];
  block.number = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back({before.phase + 1, before.index, before.cluster, before.rank});
  kernels_[block.kernel].grid_barriers += block.counted;
}

// --- Instructions that functions of cuda_on_cpu emulate

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
  if (const std::optional<Space> space = space_of(block, begin))
    note(block, thread, {operation, *space, begin, bytes, place_of(block, thread, where)});
}

void State::copy_issued(const void* to, std::size_t bytes, const void* from, std::size_t read,
                        const std::source_location& where) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  const unsigned thread = State::thread();
  const Node place = place_of(block, thread, where);
  const auto destination = reinterpret_cast<std::uintptr_t>(to);
  const auto source = read == 0 ? 0 : reinterpret_cast<std::uintptr_t>(from);
  if (source != 0)
    note(block, thread, {Operation::async, Space::global, source, read, place, destination});
  note(block, thread, {Operation::async, Space::shared, destination, bytes, place, source, true});
}

void State::copy_shared(const void* to, std::size_t bytes, const std::source_location& where) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  if (overflowed_) return;
  const unsigned thread = State::thread();
  const auto begin = reinterpret_cast<std::uintptr_t>(to);
  begin_pages(block, begin, bytes);
  if (!block.counted) return;
  check_order(block, thread,
              {.operation = Operation::async,
               .space = Space::shared,
               .address = begin,
               .bytes = bytes,
               .place = place_of(block, thread, where),
               .pending = true});
}

void State::unit_read_ended(const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const Block& block = *block_of_this_thread;
  shadow_.for_each_word(reinterpret_cast<std::uintptr_t>(from), bytes,
                        [&](Shadow::Page& page, std::size_t index, std::uint8_t, std::uintptr_t) {
                          for (Stamp& read : page.words[index].reads) {
                            if (!read.pending) continue;
                            // The memory was read until now: earlier acquire operations do not
                            // cover this read.
                            read.pending = false;
                            read.clock = block.cluster->order.clock(block.in_order(read.thread));
                          }
                        });
}

void State::read_by_unit(const void* from, std::size_t bytes, const std::source_location& where,
                         bool goes_on) {
  const std::lock_guard lock(mutex_);
  Block& block = *block_of_this_thread;
  if (overflowed_ || !block.counted) return;
  const unsigned thread = State::thread();
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  const std::optional<Space> space = space_of(block, begin);
  if (!space) return;
  const Access access{.operation = Operation::load,
                      .space = *space,
                      .address = begin,
                      .bytes = bytes,
                      .place = place_of(block, thread, where),
                      .goes_on = goes_on};
  check_written(block, thread, access);
  check_order(block, thread, access);
}

void State::factors_given(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const Block& block = *block_of_this_thread;
  if (block.counted && !overflowed_) kernels_[block.kernel].factor_bytes += bytes;
}

void State::copy_landed(const void* to, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (block_of_this_thread == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(to);
  Block& block = *block_of_this_thread;
  begin_pages(block, begin, bytes);
  shadow_.for_each_word(
      begin, bytes, [&](Shadow::Page& page, std::size_t index, std::uint8_t mask, std::uintptr_t) {
        page.written[index] |= mask;
        page.words[index].write.pending = false;
      });
  if (options_.trace && block.counted) trace_landing(block, begin, bytes);
}

// --- Counting

namespace {

/// Calls `visit` for each request that this one consists of: an instruction moves at most 16 bytes
/// per lane.
template <class Visit>
void for_each_piece(Request request, Visit visit) {
  const unsigned bytes = request.width;
  request.width = widest_piece(bytes);
  for (unsigned at = 0; at < bytes; at += request.width) {
    visit(request);
    for_each_lane(request.lanes, [&](unsigned lane) { request.address[lane] += request.width; });
  }
}

/// Adds a request that remains after merging.
void add_joined(const Counts& left, Counts& to) {
  to.joined_requests += left.requests;
  to.joined_wavefronts += left.wavefronts;
  to.joined_excess += left.excess;
}

}  // namespace

void State::flush(Block& block) {
  if (!block.counted || overflowed_) return;
  std::vector<std::vector<SharedStep>> shared((block.threads.size() + 31) / 32);
  for (std::size_t first = 0; first < block.threads.size(); first += 32) {
    std::array<const std::vector<Event>*, 32> events{};
    for (std::size_t lane = 0; lane < 32 && first + lane < block.threads.size(); ++lane) {
      events[lane] = &block.threads[first + lane].events;
    }
    const auto warp = static_cast<unsigned>(first / 32);
    std::vector<SharedStep>& steps = shared[warp];
    align_lanes(
        calls_, events,
        [&](const WarpAccess& access) {
          count(block, warp, access);
          if (access.first().space == Space::shared) steps.push_back(step_of(block, access));
        },
        [&] { steps.emplace_back(); });
  }
  join_neighbours(shared, [&](const SharedStep& first, const Request& request) {
    count_joined(block, first, request);
  });
  for (Block::Thread& thread : block.threads) thread.events.clear();
}

void State::count(const Block& block, unsigned warp, const WarpAccess& access) {
  const Event& first = access.first();
  Request request;
  request.lanes = access.lanes;
  for_each_lane(access.lanes, [&](unsigned lane) {
    request.address[lane] = (*access.event)[lane]->address;
    request.other_end[lane] = (*access.event)[lane]->other_end;
  });
  request.width = first.width;
  if (first.operation == Operation::async) {
    const std::size_t array = array_of(
        block, Space::shared, first.space == Space::shared ? first.address : first.other_end);
    if (array != kNoArray) request.destination = arrays_[array].begin;
    count(block, warp, first, request);
    return;
  }
  for_each_piece(request, [&](const Request& piece) { count(block, warp, first, piece); });
}

SharedStep State::step_of(const Block& block, const WarpAccess& access) {
  const Event& first = access.first();
  const std::size_t array = array_of(block, Space::shared, first.address);
  SharedStep step{&first, access.lanes, array, array == kNoArray ? 0 : arrays_[array].begin, {}};
  for_each_lane(access.lanes, [&](unsigned lane) {
    step.byte[lane] = static_cast<std::uint32_t>((*access.event)[lane]->address - step.begin);
  });
  return step;
}

/// At the line of the first of the merged accesses.
void State::count_joined(const Block& block, const SharedStep& first, const Request& request) {
  const Event& event = *first.event;
  const LineKey key{
      block.kernel, event.place, event.space, event.operation, widest_piece(event.width),
      first.array};
  Counts& counts = counts_[key].counts;
  for_each_piece(request, [&](const Request& piece) {
    add_joined(count_shared(piece, event.operation), counts);
  });
}

void State::count(const Block& block, unsigned warp, const Event& event, const Request& request) {
  const auto space = event.space;
  const auto operation = event.operation;
  const Counts counts = space == Space::global   ? count_global(request, operation)
                        : space == Space::shared ? count_shared(request, operation)
                                                 : count_plain(request);
  const std::size_t array = array_of(block, space, event.address);
  const LineKey key{block.kernel, event.place, space, operation, request.width, array};
  Seen& seen = counts_[key];
  seen.counts += counts;
  if (space == Space::shared && operation == Operation::async) {  // none is merged
    add_joined(counts, seen.counts);
  }
  const bool is_sample = seen.samples.size() < kSamples;
  if (!is_sample && !options_.trace) return;
  const std::uintptr_t begin = array == kNoArray ? 0 : arrays_[array].begin;
  Sample sample{block.index, warp, request.lanes, {}, begin % 128};
  for_each_lane(request.lanes,
                [&](unsigned lane) { sample.byte[lane] = request.address[lane] - begin; });
  if (is_sample) seen.samples.push_back(sample);
  if (!options_.trace) return;
  Trace& trace = traces_[block.trace];
  trace.block.requests.push_back({trace.block.intervals - 1, warp, 0, request.lanes, sample.byte});
  trace.lines.push_back(key);
}

}  // namespace cuda_on_cpu::microscope

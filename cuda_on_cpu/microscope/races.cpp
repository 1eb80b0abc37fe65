// The state of each word of memory: detects races and reads of unwritten memory.
#include <cstring>
#include <optional>
#include <tuple>

#include "state.hpp"

namespace cuda_on_cpu::microscope {

void State::check_order(Block& block, unsigned thread, const Access& access) {
  const bool shared = access.space == Space::shared;
  const bool atomic = access.operation == Operation::atomic;
  // An asynchronous copy consists of two accesses: a load of its source and a store to its
  // destination.
  const bool writes = access.operation == Operation::store || atomic || access.pending;
  const auto stale = [&](const Stamp& stamp) {
    return stamp.block == 0 || (shared && stamp.block < block.birth);
  };
  /// Whether the stamped access is ordered before this one.
  const auto before = [&](const Stamp& stamp) {
    const BlockInfo &theirs = blocks_[stamp.block], &mine = blocks_[block.number];
    if (theirs.phase == mine.phase && theirs.cluster == mine.cluster) {
      const unsigned other = block.cluster->order.number(theirs.rank, stamp.thread);
      const unsigned me = block.in_order(thread);
      return other == me || block.order().is_before(other, stamp.clock, me);
    }
    return theirs.phase < mine.phase;
  };
  const auto report = [&](const Stamp& stamp, std::uintptr_t address, Race::Kind kind) {
    const bool other_block = stamp.block != block.number;
    // A plain load of a word that is modified only by atomics reads an old or a new value.
    const bool loads_beside = !shared && stamp.atomic != atomic && kind != Race::Kind::waw &&
                              access.operation != Operation::store;
    const bool perhaps =
        loads_beside ||
        (other_block && (stamp.atomic || atomic ||
                         (blocks_[stamp.block].atomics && blocks_[block.number].atomics)));
    race(block, thread, access, address, stamp, kind,
         perhaps ? "an atomic operation may order them" : "", !perhaps);
  };
  shadow_.for_each_word(
      access.address, access.bytes,
      [&](Shadow::Page& page, std::size_t index, std::uint8_t mask, std::uintptr_t address) {
        Word& word = page.words[index];
        page.touched[index] |= mask;
        if (!stale(word.write) && (word.write.bytes & mask) != 0 &&
            !(atomic && word.write.atomic)) {
          if (word.write.pending) {
            race(block, thread, access, address, word.write,
                 writes ? Race::Kind::waw : Race::Kind::raw,
                 "the first access is an asynchronous copy that no thread has waited for", true);
          } else if (!before(word.write)) {
            report(word.write, address, writes ? Race::Kind::waw : Race::Kind::raw);
          }
        }
        const Stamp mine{block.number,
                         block.order().clock(block.in_order(thread)),
                         access.place,
                         static_cast<std::uint16_t>(thread),
                         mask,
                         atomic,
                         access.pending || access.goes_on};
        if (writes) {
          for (const Stamp& read : word.reads) {
            if (stale(read) || (read.bytes & mask) == 0) continue;
            if (read.pending) {
              race(block, thread, access, address, read, Race::Kind::war,
                   "the first access is a tensor core's, which no thread has waited for", true);
            } else if (!before(read)) {
              report(read, address, Race::Kind::war);
            }
          }
          word.write = mine;
          return;
        }
        // If there is no room, the reader that is already ordered before the others is dropped.
        std::size_t slot = 1;
        for (std::size_t i = 0; i < word.reads.size(); ++i) {
          const Stamp& read = word.reads[i];
          if (stale(read) || (before(read) && !read.pending)) {
            slot = i;
            break;
          }
        }
        word.reads[slot] = mine;
      });
}

void State::race(Block& block, unsigned thread, const Access& access, std::uintptr_t address,
                 const Stamp& other, Race::Kind kind, const char* why, bool is_error) {
  const std::size_t array = array_of(block, access.space, access.address);
  if (!race_places_.insert({kind, other.place, access.place, array}).second) return;
  FoundRace race;
  race.race.kind = kind;
  race.race.is_error = is_error;
  race.race.space = access.space;
  std::tie(race.race.array, race.race.element) = element_at(array, address);
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

/// Several threads may store the same value to one location.
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
  // For memory that existed before the observation, the writer is unknown.
  if (access.space != Space::shared && array_in(live_, access.address) == kNoArray) return;
  std::optional<std::uintptr_t> first;
  shadow_.for_each_word(
      access.address, access.bytes,
      [&](Shadow::Page& page, std::size_t index, std::uint8_t mask, std::uintptr_t address) {
        if ((page.written[index] & mask) != mask && !first) first = address;
      });
  if (!first) return;
  const std::size_t array = array_of(block, access.space, access.address);
  if (!unwritten_places_.insert({access.place, array}).second) return;
  const auto [name, element] = element_at(array, *first);
  unwritten_.push_back({{{"", 0, block.index, thread}, access.space, name, element}, access.place});
}

}  // namespace cuda_on_cpu::microscope

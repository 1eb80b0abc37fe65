#include "requests.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace cuda_on_cpu::microscope {
namespace {

constexpr unsigned kSector = 32, kBanks = 32, kBankBytes = 4, kLine = kBanks * kBankBytes;
constexpr unsigned kWidest = 16;  ///< bytes per lane of one instruction

/// Groups of lanes that the banks serve together: 128 bytes per wavefront.
unsigned lanes_at_a_time(unsigned width) { return width <= kBankBytes ? 32 : width <= 8 ? 16 : 8; }

/// A mask.
std::uint32_t group_of_lanes(unsigned from, unsigned lanes) {
  return lanes == 32 ? ~0u : ((1u << lanes) - 1) << from;
}

/// Calls `visit(mask)` for this many active lanes at a time, the lowest first.
template <class Visit>
void for_active_lanes(std::uint32_t lanes, unsigned at_a_time, Visit visit) {
  while (lanes != 0) {
    std::uint32_t rest = lanes;
    for (unsigned lane = 0; lane < at_a_time && rest != 0; ++lane) rest &= rest - 1;
    visit(lanes ^ rest);
    lanes = rest;
  }
}

/// Sorts the values and removes duplicates. @return their number
std::size_t distinct(std::vector<std::uintptr_t>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
  return values.size();
}

/// The number of distinct bytes that are requested.
std::size_t distinct_bytes(const Request& request) {
  std::vector<std::uintptr_t> begins;
  for_each_lane(request.lanes, [&](unsigned lane) { begins.push_back(request.address[lane]); });
  std::ranges::sort(begins);
  std::size_t bytes = 0;
  std::uintptr_t end = 0;
  for (const std::uintptr_t begin : begins) {
    const std::uintptr_t own_end = begin + request.width;
    if (own_end <= end) continue;
    bytes += own_end - std::max(begin, end);
    end = own_end;
  }
  return bytes;
}

/// True if each active lane and the lane `apart` from it (1: its neighbour, 2: the one after it, in
/// groups of four lanes) request the same bytes.
bool are_alike(const Request& request, unsigned apart) {
  bool alike = true;
  for_each_lane(request.lanes, [&](unsigned lane) {
    const unsigned other = lane ^ apart;
    alike = alike && (request.lanes >> other & 1u) != 0 &&
            request.address[lane] == request.address[other];
  });
  return alike;
}

/// The 4-byte words that contain these bytes.
void add_words(std::vector<std::uintptr_t>& words, std::uintptr_t begin, unsigned bytes) {
  for (std::uintptr_t word = begin / kBankBytes; word * kBankBytes < begin + bytes; ++word)
    words.push_back(word);
}

unsigned most_at_one_bank(const std::vector<std::uintptr_t>& words) {
  std::array<unsigned, kBanks> of_bank{};
  for (const std::uintptr_t word : words) ++of_bank[word % kBanks];
  return std::ranges::max(of_bank);
}

/// For asynchronous copies of less than 16 bytes per lane: a bank of the source serves one lane at
/// a time, even if several lanes copy the same word.
unsigned turns_of_copy(const Request& request, std::uint32_t lanes) {
  std::vector<std::uintptr_t> to, from;
  for_each_lane(lanes, [&](unsigned lane) {
    add_words(to, request.address[lane], request.width);
    if (request.other_end[lane] != 0) add_words(from, request.other_end[lane], request.width);
  });
  distinct(to);
  return std::max(most_at_one_bank(to), most_at_one_bank(from));
}

/// For copies of 16 bytes per lane: lanes are served together if the indices of their 16-byte parts
/// within a line differ in the same bits at source and destination. Zero-filled parts fit any
/// group.
unsigned turns_of_pieces(const Request& request, std::uint32_t lanes) {
  std::map<std::uintptr_t, std::vector<std::uintptr_t>> words;  // by these bits
  std::vector<std::uintptr_t> zeros;
  for_each_lane(lanes, [&](unsigned lane) {
    const std::uintptr_t to = request.address[lane] - request.destination;
    const std::uintptr_t from = request.other_end[lane];
    add_words(from == 0 ? zeros : words[(to ^ from) / kWidest % (kLine / kWidest)], to, kWidest);
  });
  std::vector<std::uintptr_t>& first = words.empty() ? words[0] : words.begin()->second;
  first.insert(first.end(), zeros.begin(), zeros.end());
  unsigned turns = 0;
  for (auto& [bits, of_them] : words) {
    distinct(of_them);
    turns += most_at_one_bank(of_them);
  }
  return turns;
}

std::uint64_t most_at_one_address(const Request& request) {
  std::vector<std::uintptr_t> all;
  for_each_lane(request.lanes, [&](unsigned lane) { all.push_back(request.address[lane]); });
  std::ranges::sort(all);
  std::uint64_t most = 0, run = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    run = i > 0 && all[i] == all[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

/// The offset of the first lane's bytes within its 16-byte part.
unsigned begin_in_piece(const SharedStep& step) {
  return step.byte[static_cast<std::size_t>(std::countr_zero(step.lanes))] % kWidest;
}

/// Locations at which a compiler does not know the address modulo 16.
std::unordered_set<Node> unaligned_places(const std::vector<std::vector<SharedStep>>& warps) {
  std::unordered_map<Node, std::vector<std::uint32_t>> remainders;  // for the n-th execution of the
                                                                    // location
  std::unordered_set<Node> unaligned;
  for (const std::vector<SharedStep>& steps : warps) {
    std::unordered_map<Node, std::size_t> times;
    for (const SharedStep& step : steps) {
      if (step.event == nullptr) continue;
      const Node place = step.event->place;
      std::vector<std::uint32_t>& known = remainders[place];
      const std::size_t time = times[place]++;
      if (time == known.size()) known.push_back(begin_in_piece(step));
      for_each_lane(step.lanes, [&](unsigned lane) {
        if (step.byte[lane] % kWidest != known[time]) unaligned.insert(place);
      });
    }
  }
  return unaligned;
}

/// Steps that are merged into one request.
struct Open {
  const SharedStep* first;
  unsigned from, to;  ///< the requested bytes of the part
};
/// The property that they share.
struct Together {
  std::size_t array;
  Operation operation;
  std::uint32_t lanes;
  unsigned width;  ///< 0: a 16-byte part; otherwise bytes that are loaded again
  std::array<std::uint32_t, 32> byte;
  auto operator<=>(const Together&) const = default;
};

Request request_of(const SharedStep& step, unsigned width) {
  Request request;
  request.lanes = step.lanes;
  request.width = width;
  for_each_lane(step.lanes,
                [&](unsigned lane) { request.address[lane] = step.begin + step.byte[lane]; });
  return request;
}

/// The request for all bytes of `open`, which are in one 16-byte part.
Request request_of(const Open& open) {
  const SharedStep& first = *open.first;
  const unsigned own = begin_in_piece(first);
  if (open.from == own && open.to == own + first.event->width)
    return request_of(first, first.event->width);
  unsigned width = 1;
  while (open.from / width != (open.to - 1) / width) width *= 2;
  Request request = request_of(first, width);
  for_each_lane(first.lanes, [&](unsigned lane) {
    request.address[lane] = request.address[lane] - own + std::uint64_t{open.from / width} * width;
  });
  return request;
}

}  // namespace

Counts count_plain(const Request& request) {
  Counts counts;
  counts.requests = 1;
  counts.lanes = static_cast<std::uint64_t>(std::popcount(request.lanes));
  counts.bytes = counts.lanes * request.width;
  return counts;
}

Counts count_global(const Request& request, Operation operation) {
  Counts counts = count_plain(request);
  const bool is_copy = operation == Operation::async && request.width == kWidest;
  const unsigned group = is_copy ? lanes_at_a_time(request.width) : 32;
  for (unsigned from = 0; from < 32; from += group) {
    std::vector<std::uintptr_t> sectors, filled;
    for_each_lane(request.lanes & group_of_lanes(from, group), [&](unsigned lane) {
      const std::uintptr_t begin = request.address[lane], end = begin + request.width;
      for (std::uintptr_t sector = begin / kSector; sector * kSector < end; ++sector)
        sectors.push_back(sector);
      if (is_copy) filled.push_back((request.other_end[lane] - request.destination) / kSector);
    });
    counts.sectors += std::max(distinct(sectors), distinct(filled));
  }
  counts.sectors_ideal = (distinct_bytes(request) + kSector - 1) / kSector;
  if (operation == Operation::atomic) counts.contention = most_at_one_address(request);
  return counts;
}

Counts count_shared(const Request& request, Operation operation) {
  Counts counts = count_plain(request);
  if (operation == Operation::async && request.width <= kWidest) {
    const unsigned together = lanes_at_a_time(request.width);
    for (unsigned from = 0; from < 32; from += together) {
      const std::uint32_t lanes = request.lanes & group_of_lanes(from, together);
      if (lanes == 0) continue;
      const unsigned turns =
          request.width < kWidest ? turns_of_copy(request, lanes) : turns_of_pieces(request, lanes);
      counts.wavefronts += turns;
      counts.excess += turns - 1;
    }
    return counts;
  }
  unsigned group = lanes_at_a_time(request.width);
  if (group < 32 && operation == Operation::load &&
      (are_alike(request, 1) || are_alike(request, 2))) {
    group *= 2;
  }
  const unsigned most_bytes = std::min(request.width, kWidest);
  for_active_lanes(request.lanes, group, [&](std::uint32_t lanes) {
    // Wider accesses, copies of a struct, are a sequence of 16-byte parts.
    for (unsigned piece = 0; piece < request.width; piece += most_bytes) {
      std::vector<std::uintptr_t> words;
      for_each_lane(lanes, [&](unsigned lane) {
        const std::uintptr_t begin = request.address[lane] + piece;
        add_words(words, begin, std::min(most_bytes, request.width - piece));
      });
      distinct(words);
      const unsigned turns = most_at_one_bank(words);
      counts.wavefronts += turns;
      counts.excess += turns - 1;
    }
  });
  if (operation == Operation::atomic) counts.contention = most_at_one_address(request);
  return counts;
}

void join_neighbours(const std::vector<std::vector<SharedStep>>& warps,
                     const std::function<void(const SharedStep&, const Request&)>& tell) {
  const std::unordered_set<Node> unaligned = unaligned_places(warps);
  for (const std::vector<SharedStep>& steps : warps) {
    std::map<Together, Open> open;
    const auto end_those = [&](auto which) {
      std::erase_if(open, [&](const auto& one) {
        if (!which(one.first)) return false;
        const bool is_piece = one.first.width == 0;
        tell(*one.second.first,
             is_piece ? request_of(one.second) : request_of(*one.second.first, one.first.width));
        return true;
      });
    };
    for (const SharedStep& step : steps) {
      const bool is_atomic = step.event != nullptr && step.event->operation == Operation::atomic;
      if (step.event == nullptr || is_atomic) end_those([](const Together&) { return true; });
      if (step.event == nullptr) continue;
      const unsigned width = step.event->width;
      const Operation operation = step.event->operation;
      end_those([&](const Together& other) {
        return other.array == step.array && other.operation != operation;
      });
      if (operation == Operation::async) continue;
      Together together{step.array, operation, step.lanes, width, {}};
      const unsigned from = begin_in_piece(step);
      const bool is_piece = !unaligned.contains(step.event->place) && from + width <= kWidest;
      if (is_atomic || (!is_piece && operation == Operation::store)) {
        tell(step, request_of(step, width));
        continue;
      }
      if (is_piece) together.width = 0;
      for_each_lane(step.lanes, [&](unsigned lane) {
        together.byte[lane] = is_piece ? step.byte[lane] - from : step.byte[lane];
      });
      Open& one = open.try_emplace(together, Open{&step, from, from + width}).first->second;
      one.from = std::min(one.from, from);
      one.to = std::max(one.to, from + width);
    }
    end_those([](const Together&) { return true; });
  }
}

}  // namespace cuda_on_cpu::microscope

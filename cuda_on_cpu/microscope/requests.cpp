#include "requests.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace cuda_on_cpu::microscope {
namespace {

constexpr unsigned kSector = 32, kBanks = 32, kBankBytes = 4;

/// Lanes that the banks serve together: they give 128 bytes a turn.
unsigned lanes_at_a_time(unsigned width) { return width <= kBankBytes ? 32 : width <= 8 ? 16 : 8; }

/// A mask.
std::uint32_t group_of_lanes(unsigned from, unsigned lanes) {
  return lanes == 32 ? ~0u : ((1u << lanes) - 1) << from;
}

/// How many different values there are.
std::size_t distinct(std::vector<std::uintptr_t>& values) {
  std::ranges::sort(values);
  return values.size() - std::ranges::unique(values).size();
}

/// Distinct bytes that are asked for.
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

/// True if each lane that asks and the one `apart` from it (1: its neighbour, 2: the one after, in
/// fours of lanes) ask for the same bytes.
bool are_alike(const Request& request, unsigned apart) {
  bool alike = true;
  for_each_lane(request.lanes, [&](unsigned lane) {
    const unsigned other = lane ^ apart;
    alike = alike && (request.lanes >> other & 1u) != 0 &&
            request.address[lane] == request.address[other];
  });
  return alike;
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
  // A copy of 16 bytes a lane is made a quarter of a warp at a time, as shared memory takes it in;
  // a sector that two of them share is fetched for both.
  const unsigned group = operation == Operation::async ? lanes_at_a_time(request.width) : 32;
  for (unsigned from = 0; from < 32; from += group) {
    std::vector<std::uintptr_t> sectors;
    for_each_lane(request.lanes & group_of_lanes(from, group), [&](unsigned lane) {
      const std::uintptr_t begin = request.address[lane], end = begin + request.width;
      for (std::uintptr_t sector = begin / kSector; sector * kSector < end; ++sector) {
        sectors.push_back(sector);
      }
    });
    counts.sectors += distinct(sectors);
  }
  counts.sectors_ideal = (distinct_bytes(request) + kSector - 1) / kSector;
  if (operation == Operation::atomic) counts.contention = most_at_one_address(request);
  return counts;
}

Counts count_shared(const Request& request, Operation operation) {
  Counts counts = count_plain(request);
  unsigned group = lanes_at_a_time(request.width);
  if (group < 32 && operation == Operation::load &&
      (are_alike(request, 1) || are_alike(request, 2))) {
    group *= 2;
  }
  const unsigned most_bytes = std::min(request.width, 16u);
  for (unsigned from = 0; from < 32; from += group) {
    const std::uint32_t of_group = group_of_lanes(from, group);
    if ((request.lanes & of_group) == 0) continue;
    // Wider ones, copies of a struct, are pieces of 16 bytes one after another.
    for (unsigned piece = 0; piece < request.width; piece += most_bytes) {
      std::vector<std::uintptr_t> words;
      for_each_lane(request.lanes & of_group, [&](unsigned lane) {
        const std::uintptr_t begin = request.address[lane] + piece;
        const std::uintptr_t end = begin + std::min(most_bytes, request.width - piece);
        for (std::uintptr_t word = begin / kBankBytes; word * kBankBytes < end; ++word) {
          words.push_back(word);
        }
      });
      std::ranges::sort(words);
      words.erase(std::ranges::unique(words).begin(), words.end());
      std::array<unsigned, kBanks> of_bank{};
      for (const std::uintptr_t word : words) ++of_bank[word % kBanks];
      counts.wavefronts += std::ranges::max(of_bank);
      counts.excess += std::ranges::max(of_bank) - 1;
    }
  }
  if (operation == Operation::atomic) counts.contention = most_at_one_address(request);
  return counts;
}

}  // namespace cuda_on_cpu::microscope

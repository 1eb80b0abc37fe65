#include "joined.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace cuda_on_cpu::microscope {
namespace {

constexpr unsigned kPiece = 16;  ///< bytes a lane of the widest instruction

/// Places at which a compiler does not know how far an address is from a piece's begin.
std::unordered_set<Node> unaligned_places(const std::vector<std::vector<SharedStep>>& warps) {
  std::unordered_map<Node, std::vector<std::uint32_t>> remainders;  // for the n-th time there
  std::unordered_set<Node> unaligned;
  for (const std::vector<SharedStep>& steps : warps) {
    std::unordered_map<Node, std::size_t> times;
    for (const SharedStep& step : steps) {
      if (step.event == nullptr) continue;
      const Node place = step.event->place;
      std::vector<std::uint32_t>& known = remainders[place];
      const std::size_t time = times[place]++;
      if (time == known.size())
        known.push_back(step.byte[static_cast<std::size_t>(std::countr_zero(step.lanes))] % kPiece);
      for_each_lane(step.lanes, [&](unsigned lane) {
        if (step.byte[lane] % kPiece != known[time]) unaligned.insert(place);
      });
    }
  }
  return unaligned;
}

/// Steps of which one request is left.
struct Open {
  const SharedStep* first;
  unsigned from, to;  ///< the bytes that are asked for, in the piece
};
/// What they have in common.
struct Together {
  std::size_t array;
  Operation operation;
  std::uint32_t lanes;
  unsigned width;  ///< 0: a piece; else bytes that are loaded again
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

/// The request for all bytes of `open`, which are in one piece.
Request request_of(const Open& open) {
  const SharedStep& first = *open.first;
  const unsigned own = first.byte[static_cast<std::size_t>(std::countr_zero(first.lanes))] % kPiece;
  if (open.from == own && open.to == own + first.event->width)
    return request_of(first, first.event->width);
  unsigned width = 1;
  while (open.from / width != (open.to - 1) / width) width *= 2;
  Request request = request_of(first, width);
  for_each_lane(first.lanes, [&](unsigned lane) {
    request.address[lane] = request.address[lane] - own + open.from / width * width;
  });
  return request;
}

}  // namespace

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
      const unsigned from =
          step.byte[static_cast<std::size_t>(std::countr_zero(step.lanes))] % kPiece;
      const bool is_piece = !unaligned.contains(step.event->place) && from + width <= kPiece;
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

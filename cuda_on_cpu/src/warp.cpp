#include "warp.hpp"

namespace cuda_on_cpu {

unsigned Warp::complete(unsigned lane, unsigned needed) {
  const WarpCall& call = calls_[lane];
  for (unsigned i = 0; i < kLanes; ++i) {
    if (!(needed >> i & 1u)) continue;
    if (calls_[i].function != call.function || calls_[i].mask != call.mask) return 0;
  }

  if (!meetings_) meetings_ = std::make_unique<detail::WarpValues[]>(kLanes);
  unsigned free = 0;
  while (meetings_[free].readers != 0) ++free;
  detail::WarpValues& values = meetings_[free];
  values.lanes = needed;
  for (unsigned i = 0; i < kLanes; ++i) {
    if (!(needed >> i & 1u)) continue;
    values.value[i] = calls_[i].value;
    meeting_of_[i] = free;
    ++values.readers;
  }
  pending_ &= ~needed;
  return needed;
}

void Warp::abandon_meetings() {
  for (unsigned i = 0; i < kLanes; ++i) meetings_[i].readers = 0;
}

}  // namespace cuda_on_cpu

// What a block did, request by request. (Requests are added where they are counted.)
#include "state.hpp"

namespace cuda_on_cpu::microscope {

void State::trace_begins(Block& block) {
  block.trace = traces_.size();
  traces_.push_back({{.kernel = block.kernel,
                      .launch = phase_ >> 32,
                      .block = block.index,
                      .intervals = 1,
                      .requests = {},
                      .landings = {}},
                     {}});
}

void State::trace_landing(Block& block, std::uintptr_t begin, std::size_t bytes) {
  const std::size_t array = array_of(block, Space::shared, begin);
  if (array == kNoArray) return;
  TracedBlock& trace = traces_[block.trace].block;
  trace.landings.push_back(
      {trace.intervals - 1, arrays_[array].name, begin - arrays_[array].begin, bytes});
}

}  // namespace cuda_on_cpu::microscope

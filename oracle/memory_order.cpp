#include "oracle/memory_order.hpp"

namespace convladder {
namespace {

/// Calls visit(offset in the order of the shape, offset in memory) for every element.
template <class Visit>
void for_each_element(const MemoryOrder& order, const Visit& visit) {
  const std::size_t rank = order.view.size();
  Shape strides(rank, 0);  // of the view's axes, in the order of the shape
  std::int64_t elements = 1;
  for (std::size_t axis = rank; axis-- > 0;) {
    strides[axis] = elements;
    elements *= order.view[axis];
  }
  std::vector<std::int64_t> index(rank);  // along order.axes
  std::int64_t from = 0;
  for (std::int64_t to = 0; to < elements; ++to) {
    visit(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    for (std::size_t i = rank; i-- > 0;) {  // the next element in memory: an odometer
      const auto axis = static_cast<std::size_t>(order.axes[i]);
      from += strides[axis];
      if (++index[i] < order.view[axis]) break;
      from -= index[i] * strides[axis];
      index[i] = 0;
    }
  }
}

}  // namespace

Array in_memory(const Array& array, const MemoryOrder& order) {
  if (order.view.empty()) return array;
  Array stored(array.dtype(), array.shape());
  const std::size_t size = size_of(array.dtype());
  for_each_element(order, [&](std::size_t from, std::size_t to) {
    std::memcpy(stored.data() + to * size, array.data() + from * size, size);
  });
  return stored;
}

Array from_memory(Array array, const MemoryOrder& order) {
  if (order.view.empty()) return array;
  Array restored(array.dtype(), array.shape());
  const std::size_t size = size_of(array.dtype());
  for_each_element(order, [&](std::size_t from, std::size_t to) {
    std::memcpy(restored.data() + from * size, array.data() + to * size, size);
  });
  return restored;
}

std::int64_t place_in_memory(std::int64_t place, const MemoryOrder& order) {
  if (order.view.empty()) return place;
  Shape index(order.view.size());
  for (std::size_t axis = index.size(); axis-- > 0; place /= order.view[axis]) {
    index[axis] = place % order.view[axis];
  }
  std::int64_t stored = 0;
  for (const int axis : order.axes) {
    const auto at = static_cast<std::size_t>(axis);
    stored = stored * order.view[at] + index[at];
  }
  return stored;
}

}  // namespace convladder

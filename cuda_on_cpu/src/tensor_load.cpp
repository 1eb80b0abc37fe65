#include "tensor_load.hpp"

#include <algorithm>
#include <cstring>

#include "watching.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kMaxRow = std::size_t{256} * 4;  ///< bytes
constexpr std::uint32_t kNanFill = 0x7ff77ff7u;

}  // namespace

std::uint32_t rounded_to_tf32_by_tma(std::uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;  // a NaN
  return (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;       // a carry propagates into the
                                                               // exponent
}

std::size_t TensorLoad::rows() const {
  if (map.im2col) return map.pixels;
  std::size_t product = 1;
  for (unsigned i = 1; i < map.rank; ++i) product *= steps(i);
  return product;
}

std::size_t TensorLoad::row_pitch() const { return std::max<std::size_t>(row_bytes(), span()); }

std::size_t TensorLoad::bytes() const {
  return bulk != nullptr ? bulk_bytes : rows() * row_bytes();
}

const char* TensorLoad::defect() const {
  if (bulk != nullptr) {
    const auto both =
        reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(bulk) | bulk_bytes;
    if (both % 16 != 0) return "with addresses or a size that are not multiples of 16 bytes";
    return nullptr;
  }
  if (reinterpret_cast<std::uintptr_t>(to) % 128 != 0) {
    return "with a destination not aligned to 128 bytes";
  }
  if (at[0] * static_cast<std::int64_t>(element()) % 16 != 0)
    return "with an innermost coordinate that is not a multiple of 16 bytes";
  if (map.im2col) {
    for (unsigned i = 1; i + 1 < map.rank; ++i) {
      const std::int64_t low = map.lower[i - 1];
      const std::int64_t high = std::int64_t{map.last[i]} + map.upper[i - 1];
      if (at[i] < low || at[i] > high) return "with a first pixel outside the map's bounding box";
    }
  }
  return nullptr;
}

void TensorLoad::store_row(std::size_t row, const unsigned char* bytes) const {
  unsigned char* const begin = to + row * row_pitch();
  if (span() == 0) {
    std::memcpy(begin, bytes, row_bytes());
    return;
  }
  for (std::size_t i = 0; i < row_bytes(); i += 16) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin) + i;
    std::memcpy(begin + (swizzled(address, span()) - reinterpret_cast<std::uintptr_t>(begin)),
                bytes + i, 16);
  }
}

TensorLoad::Inside TensorLoad::inside(const std::int64_t* position) const {
  const std::int64_t count = inner(), size = std::int64_t{map.last[0]} + 1;
  const std::int64_t begin = std::clamp<std::int64_t>(-position[0], 0, count);
  std::int64_t end = std::clamp<std::int64_t>(size - position[0], begin, count);
  std::uint64_t address = map.address + static_cast<std::uint64_t>(position[0] + begin) * element();
  for (unsigned i = 1; i < map.rank; ++i) {
    if (position[i] < 0 || position[i] > std::int64_t{map.last[i]}) end = begin;
    address += static_cast<std::uint64_t>(position[i]) * map.strides[i - 1];
  }
  return {reinterpret_cast<unsigned char*>(address), static_cast<std::size_t>(begin) * element(),
          static_cast<std::size_t>(end - begin) * element()};
}

void TensorLoad::load_row(const std::int64_t* position, unsigned char* bytes) const {
  const std::uint32_t outside = map.nan_fill ? kNanFill : 0;
  for (std::size_t i = 0; i < row_bytes(); i += sizeof outside)
    std::memcpy(bytes + i, &outside, sizeof outside);
  const auto [from, begin, there] = inside(position);
  if (there == 0) return;
  detail::tell_watcher([&, at_from = from, count = there](inspect::Watcher& watcher) {
    watcher.read_by_unit(at_from, count, site, false);
  });
  unsigned char* const to_first = bytes + begin;
  std::memcpy(to_first, from, there);
  if (map.type != CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 &&
      map.type != CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ)
    return;
  for (std::size_t i = 0; i < there; i += sizeof(std::uint32_t)) {
    std::uint32_t number;
    std::memcpy(&number, to_first + i, sizeof number);
    number = rounded_to_tf32_by_tma(number);
    std::memcpy(to_first + i, &number, sizeof number);
  }
}

void TensorLoad::clear() const {
  if (bulk != nullptr) {
    std::memset(to, 0xff, bulk_bytes);
    return;
  }
  unsigned char nans[kMaxRow];
  std::fill(std::begin(nans), std::end(nans), 0xff);
  for (std::size_t row = 0; row < rows(); ++row) store_row(row, nans);
}

void TensorLoad::land() const {
  if (bulk != nullptr) {
    std::memcpy(to, bulk, bulk_bytes);
  } else {
    map.im2col ? land_columns() : land_tiles();
  }
}

template <class Visit>
void TensorLoad::for_each_row(const Visit& visit) const {
  unsigned step[kMaxTensorRank] = {};
  for (std::size_t row = 0; row < rows(); ++row) {
    std::int64_t position[kMaxTensorRank];
    for (unsigned i = 0; i < map.rank; ++i) {
      position[i] = std::int64_t{at[i]} + std::int64_t{step[i]} * map.element_strides[i];
    }
    visit(row, position);
    for (unsigned i = 1; i < map.rank && ++step[i] == steps(i); ++i) step[i] = 0;
  }
}

void TensorLoad::land_tiles() const {
  unsigned char bytes[kMaxRow];
  for_each_row([&](std::size_t row, const std::int64_t* position) {
    load_row(position, bytes);
    store_row(row, bytes);
  });
}

void TensorLoad::store() const {
  for_each_row([&](std::size_t row, const std::int64_t* position) {
    const Inside there = inside(position);
    const unsigned char* const begin = to + row * row_pitch();
    for (std::size_t i = there.begin; i < there.begin + there.length; ++i) {
      const auto address = reinterpret_cast<std::uintptr_t>(begin) + i;
      there.address[i - there.begin] =
          begin[swizzled(address, span()) - reinterpret_cast<std::uintptr_t>(begin)];
    }
  });
}

void TensorLoad::land_columns() const {
  unsigned char bytes[kMaxRow];
  const unsigned images = map.rank - 1u;  // the dimension of N
  std::int64_t base[kMaxTensorRank];
  std::copy_n(at.begin(), map.rank, base);
  for (std::size_t row = 0; row < rows(); ++row) {
    std::int64_t position[kMaxTensorRank];
    std::copy_n(base, map.rank, position);
    for (unsigned i = 1; i < images; ++i) position[i] += offset[i - 1];
    load_row(position, bytes);
    store_row(row, bytes);
    // The next pixel of the bounding box: along W, then H, then D, then in the next image.
    for (unsigned i = 1; i < map.rank; ++i) {
      base[i] += map.element_strides[i];
      if (i == images || base[i] <= std::int64_t{map.last[i]} + map.upper[i - 1]) break;
      base[i] = map.lower[i - 1];
    }
  }
}

}  // namespace cuda_on_cpu

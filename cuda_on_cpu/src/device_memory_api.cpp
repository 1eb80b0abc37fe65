#include <cstring>
#include <cuda_on_cpu/runtime_api.hpp>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "device_arena.hpp"
#include "error_state.hpp"
#include "settings.hpp"
#include "streams.hpp"
#include "watching.hpp"

namespace cuda_on_cpu {
namespace {

using Allocation = DeviceArena::Allocation;

constexpr std::size_t kHostAlignment = 4096;
constexpr std::size_t kPitchAlignment = 512;

struct HostMemory {
  std::size_t bytes;
  cudaMemoryType type;  ///< host (pinned) or managed
};

/// Pinned and managed memory by its address, protected by the arena's lock.
std::map<std::uintptr_t, HostMemory>& host_memory() {
  static std::map<std::uintptr_t, HostMemory> blocks;
  return blocks;
}

cudaMemoryType type_of(const DeviceArena& arena, const void* pointer) {
  if (arena.contains(pointer)) return cudaMemoryTypeDevice;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto next = host_memory().upper_bound(address);
  if (next == host_memory().begin()) return cudaMemoryTypeUnregistered;
  const auto& [begin, block] = *std::prev(next);
  return address - begin < block.bytes ? block.type : cudaMemoryTypeUnregistered;
}

/// The reason why `bytes` bytes at `pointer` cannot be copied or set, for a pointer into the arena;
/// otherwise empty.
std::string check_range(const DeviceArena& arena, const void* pointer, std::size_t bytes) {
  if (!arena.contains(pointer)) return {};
  const Allocation* const a = arena.find(pointer);
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  if (a != nullptr && begin >= a->payload && begin + bytes <= a->payload + a->bytes) return {};
  return std::to_string(bytes) + " bytes from " + arena.describe(pointer) +
         " on do not lie in one live allocation";
}

const char* name(cudaMemcpyKind kind) {
  constexpr const char* kNames[] = {"cudaMemcpyHostToHost", "cudaMemcpyHostToDevice",
                                    "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
                                    "cudaMemcpyDefault"};
  return kNames[kind];
}

/// The reason why a copy of this kind between these pointers is invalid, otherwise empty.
std::string check_direction(const DeviceArena& arena, const void* to, const void* from,
                            cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return {};
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const auto check = [&](const char* role, const void* pointer, bool device) -> std::string {
    const cudaMemoryType type = type_of(arena, pointer);
    if (type == cudaMemoryTypeManaged || (type == cudaMemoryTypeDevice) == device) return {};
    return std::string("with ") + name(kind) + " the " + role + " must be " +
           (device ? "device" : "host") + " memory, but it is not";
  };
  std::string wrong = check("destination", to, to_device);
  return wrong.empty() ? check("source", from, from_device) : wrong;
}

/// One row of `width` bytes, or several.
struct Rows {
  std::size_t width;
  std::size_t height = 1;
  /// Bytes from the first to one past the last.
  std::size_t span(std::size_t pitch) const { return pitch * (height - 1) + width; }
};

void tell_of_write(const void* memory, std::size_t bytes) {
  detail::tell_watcher([&](inspect::Watcher& watcher) { watcher.host_wrote(memory, bytes); });
}

cudaError_t copy(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 Rows rows, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return remember(cudaErrorInvalidMemcpyDirection);
  }
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return remember(cudaErrorInvalidValue);
  if (rows.height > 1 && (to_pitch < rows.width || from_pitch < rows.width)) {
    return remember(cudaErrorInvalidPitchValue);
  }
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Access access(arena);
  std::string wrong = check_direction(arena, to, from, kind);
  if (wrong.empty()) wrong = check_range(arena, to, rows.span(to_pitch));
  if (wrong.empty()) wrong = check_range(arena, from, rows.span(from_pitch));
  if (!wrong.empty()) return remember(cudaErrorInvalidValue, "A copy is refused: " + wrong + ".");
  for (std::size_t row = 0; row < rows.height; ++row) {
    std::memmove(static_cast<unsigned char*>(to) + row * to_pitch,
                 static_cast<const unsigned char*>(from) + row * from_pitch, rows.width);
    tell_of_write(static_cast<unsigned char*>(to) + row * to_pitch, rows.width);
  }
  return cudaSuccess;
}

cudaError_t set(void* pointer, std::size_t pitch, int byte, Rows rows) {
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Access access(arena);
  if (type_of(arena, pointer) == cudaMemoryTypeUnregistered) {
    return remember(cudaErrorInvalidValue,
                    "cudaMemset is refused: the pointer is not device, pinned or managed memory.");
  }
  if (const std::string wrong = check_range(arena, pointer, rows.span(pitch)); !wrong.empty()) {
    return remember(cudaErrorInvalidValue, "cudaMemset is refused: " + wrong + ".");
  }
  for (std::size_t row = 0; row < rows.height; ++row) {
    std::memset(static_cast<unsigned char*>(pointer) + row * pitch, byte, rows.width);
    tell_of_write(static_cast<unsigned char*>(pointer) + row * pitch, rows.width);
  }
  return cudaSuccess;
}

cudaError_t allocate_host(void** pointer, std::size_t bytes, cudaMemoryType type) {
  if (pointer == nullptr) return remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  void* const block = ::operator new(bytes, std::align_val_t{kHostAlignment}, std::nothrow);
  if (block == nullptr) return remember(cudaErrorMemoryAllocation);
  std::memset(block, fill_byte(current_settings()), bytes);
  const DeviceArena::Lock lock(DeviceArena::instance());
  host_memory()[reinterpret_cast<std::uintptr_t>(block)] = {bytes, type};
  *pointer = block;
  return cudaSuccess;
}

cudaError_t free_host(void* pointer, cudaMemoryType type) {
  const DeviceArena::Lock lock(DeviceArena::instance());
  const auto found = host_memory().find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == host_memory().end() || found->second.type != type) {
    return remember(cudaErrorInvalidValue,
                    "A free is refused: the pointer was not allocated by the corresponding "
                    "function, or has already been freed.");
  }
  host_memory().erase(found);
  ::operator delete(pointer, std::align_val_t{kHostAlignment});
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Access access(arena);
  *pointer = arena.allocate(bytes, fill_byte(current_settings()));
  if (*pointer == nullptr) return remember(cudaErrorMemoryAllocation);
  detail::tell_watcher([&](inspect::Watcher& watcher) { watcher.allocated(*pointer, bytes); });
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  DeviceArena& arena = DeviceArena::instance();
  if (!arena.contains(pointer)) return free_host(pointer, cudaMemoryTypeManaged);
  const DeviceArena::Access access(arena);
  const Allocation* const allocation = arena.find_start(pointer);
  if (allocation == nullptr) {
    return remember(cudaErrorInvalidValue,
                    "cudaFree is refused: the pointer is to " + arena.describe(pointer) + ".");
  }
  const std::string overrun = arena.check_guards(*allocation);
  arena.free(*allocation);
  detail::tell_watcher([&](inspect::Watcher& watcher) { watcher.freed(pointer); });
  return overrun.empty() ? cudaSuccess : remember(cudaErrorIllegalAddress, overrun);
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t refused = check_stream(stream, "cudaMallocAsync");
  return refused == cudaSuccess ? cudaMalloc(pointer, bytes) : refused;
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const cudaError_t refused = check_stream(stream, "cudaFreeAsync");
  return refused == cudaSuccess ? cudaFree(pointer) : refused;
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned /*flags*/) {
  return allocate_host(pointer, bytes, cudaMemoryTypeManaged);
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned /*flags*/) {
  return allocate_host(pointer, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return cudaMallocHost(pointer, bytes, flags);
}
cudaError_t cudaFreeHost(void* pointer) {
  return pointer == nullptr ? cudaSuccess : free_host(pointer, cudaMemoryTypeHost);
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  if (pitch == nullptr) return remember(cudaErrorInvalidValue);
  *pitch = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  return cudaMalloc(pointer, *pitch * height);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const cudaError_t refused = check_stream(stream, "cudaMemcpy");
  return refused == cudaSuccess ? copy(to, bytes, from, bytes, {bytes}, kind) : refused;
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  const cudaError_t refused = check_stream(stream, "cudaMemcpy2D");
  return refused == cudaSuccess ? copy(to, to_pitch, from, from_pitch, {width, height}, kind)
                                : refused;
}

cudaError_t cudaMemset(void* pointer, int byte, std::size_t bytes) {
  return cudaMemsetAsync(pointer, byte, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* pointer, int byte, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t refused = check_stream(stream, "cudaMemset");
  return refused == cudaSuccess ? set(pointer, bytes, byte, {bytes}) : refused;
}
cudaError_t cudaMemset2D(void* pointer, std::size_t pitch, int byte, std::size_t width,
                         std::size_t height) {
  const cudaError_t refused = check_stream(nullptr, "cudaMemset2D");
  return refused == cudaSuccess ? set(pointer, pitch, byte, {width, height}) : refused;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return remember(cudaErrorInvalidValue);
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  *total_bytes = arena.limit();
  *free_bytes = arena.limit() - std::min(arena.used(), arena.limit());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return remember(cudaErrorInvalidValue);
  DeviceArena& arena = DeviceArena::instance();
  const DeviceArena::Lock lock(arena);
  void* const address = const_cast<void*>(pointer);
  const cudaMemoryType type = type_of(arena, pointer);
  *attributes = {type, type == cudaMemoryTypeUnregistered ? -2 : 0,
                 type == cudaMemoryTypeUnregistered ? nullptr : address,
                 type == cudaMemoryTypeDevice ? nullptr : address};
  return cudaSuccess;
}

cudaError_t detail::copy_to_symbol(const void* symbol, std::size_t symbol_bytes, const void* from,
                                   std::size_t bytes, std::size_t offset, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  if (const cudaError_t refused = check_stream(stream, "cudaMemcpyToSymbol");
      refused != cudaSuccess) {
    return refused;
  }
  if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
      kind != cudaMemcpyDefault) {
    return remember(cudaErrorInvalidMemcpyDirection);
  }
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return remember(cudaErrorInvalidValue, "cudaMemcpyToSymbol is refused: the symbol has " +
                                               std::to_string(symbol_bytes) + " bytes.");
  }
  // In the emulator the symbol is an ordinary variable, which only this function accepts as device
  // memory.
  unsigned char* const to = static_cast<unsigned char*>(const_cast<void*>(symbol)) + offset;
  return copy(to, bytes, from, bytes, {bytes},
              kind == cudaMemcpyDeviceToDevice ? cudaMemcpyDeviceToHost : cudaMemcpyDefault);
}

cudaError_t detail::copy_from_symbol(void* to, const void* symbol, std::size_t symbol_bytes,
                                     std::size_t bytes, std::size_t offset, cudaMemcpyKind kind) {
  if (const cudaError_t refused = check_stream(nullptr, "cudaMemcpyFromSymbol");
      refused != cudaSuccess) {
    return refused;
  }
  if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
      kind != cudaMemcpyDefault) {
    return remember(cudaErrorInvalidMemcpyDirection);
  }
  if (offset > symbol_bytes || bytes > symbol_bytes - offset) {
    return remember(cudaErrorInvalidValue, "cudaMemcpyFromSymbol is refused: the symbol has " +
                                               std::to_string(symbol_bytes) + " bytes.");
  }
  const unsigned char* const from = static_cast<const unsigned char*>(symbol) + offset;
  return copy(to, bytes, from, bytes, {bytes},
              kind == cudaMemcpyDeviceToDevice ? cudaMemcpyHostToDevice : cudaMemcpyDefault);
}

}  // namespace cuda_on_cpu

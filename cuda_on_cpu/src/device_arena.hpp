/// @file
/// @brief Device memory: a range of addresses that is accessible only while a kernel or a copy
/// runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace cuda_on_cpu {

/// Allocates device memory with guard bands around each allocation.
///
/// The range is reserved once and is very large, so addresses are not reused while fresh ones
/// remain: freed memory is unmapped, and an access to it faults. An allocation's pages are
///
///     | guard band, 1 KiB | payload | guard band, 1 KiB and up to the end of the page |
///
/// A guard band holds a 16-bit pattern that reads as NaN and differs from fresh memory and from the
/// NaNs of arithmetic operations.
class DeviceArena {
 public:
  struct Allocation {
    std::uintptr_t payload;
    std::size_t bytes;
    std::uintptr_t extent;  ///< start of its pages
    std::size_t extent_bytes;
    std::uint64_t number;  ///< counted from 1
    /// The part that asynchronous copies may read: all of the allocation or a part of it.
    std::uintptr_t readable, readable_end;
    std::uintptr_t end() const { return extent + extent_bytes; }
  };

  /// Holds the device's lock; everything except contains() and the describe functions requires one.
  class Lock {
   public:
    explicit Lock(DeviceArena& arena) : lock_(arena.mutex_) {}

   private:
    std::lock_guard<std::mutex> lock_;
  };
  /// A Lock that also makes device memory accessible to this process.
  class Access {
   public:
    explicit Access(DeviceArena& arena);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    Lock lock_;
    DeviceArena& arena_;
  };

  static DeviceArena& instance();

  /// Null if the limit or the machine's memory does not suffice. Requires Access. `bytes` is not 0.
  void* allocate(std::size_t bytes, unsigned char fill);
  /// `allocation` must be alive. Requires Access.
  void free(const Allocation& allocation);
  /// The live allocation with this address in its payload or guard bands, or null.
  const Allocation* find(const void* address) const;
  /// The live allocation that starts here, or null.
  const Allocation* find_start(const void* address) const;
  /// Live allocations by address.
  const std::map<std::uintptr_t, Allocation>& live() const { return live_; }

  /// A sentence for each allocation whose guard bands were overwritten (the bands are restored),
  /// otherwise empty. Requires Access.
  std::string check_guards();
  std::string check_guards(const Allocation& allocation);

  /// Device memory stays accessible after an Access until keep_open_no_more() has been called as
  /// often. Both require a Lock.
  void keep_open() { ++kept_open_; }
  void keep_open_no_more();

  std::size_t limit() const { return limit_; }
  void set_limit(std::size_t bytes) { limit_ = bytes; }
  void reset_limit();
  std::size_t used() const { return used_; }

  bool contains(const void* address) const {
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    return a >= begin_ && a < end_;
  }
  /// Whether asynchronous copies may read these bytes: they are in one live allocation, in its
  /// readable part. Requires Access, which a launch has while its threads run.
  bool is_readable(const void* address, std::size_t bytes) const {
    const Allocation* const found = find(address);
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    return found != nullptr && a >= found->readable && a + bytes <= found->readable_end;
  }
  /// Sets the readable part of the live allocation with this address. For other addresses it has no
  /// effect. Requires a Lock.
  void set_readable(const void* address, std::size_t bytes);
  /// "byte 12 of device allocation 3 (1024 bytes)" and similar, for any address in the range.
  std::string describe(const void* address) const;

 private:
  DeviceArena();
  /// Start of `bytes` free addresses, or 0.
  std::uintptr_t find_gap(std::size_t bytes) const;
  /// Opens or closes all live pages.
  void open();
  void close();
  void protect(int protection) const;

  std::mutex mutex_;
  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  std::uintptr_t next_ = 0;  ///< where the search for free addresses continues
  std::size_t limit_ = 0;
  std::size_t used_ = 0;
  std::uint64_t count_ = 0;
  bool open_ = false;  ///< whether live pages are accessible
  int kept_open_ = 0;
  std::map<std::uintptr_t, Allocation> live_;   ///< by extent
  std::map<std::uintptr_t, Allocation> freed_;  ///< by extent, the most recent ones, for reports
                                                ///< only
};

}  // namespace cuda_on_cpu

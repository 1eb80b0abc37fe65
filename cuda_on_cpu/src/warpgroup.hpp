/// @file
/// @brief The asynchronous matrix products (`wgmma`) of one warpgroup: 4 warps, 128 threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_on_cpu/builtins.hpp>
#include <cuda_on_cpu/ptx.hpp>
#include <deque>
#include <string>
#include <vector>

#include "warp.hpp"

namespace cuda_on_cpu {

inline constexpr unsigned kWarpgroup = 4 * kLanes;

/// One `wgmma.mma_async.m64nN`, as a thread issues it: 32 bytes deep, 8 or 16 numbers.
struct WgmmaCall {
  ptx::FactorType type;
  unsigned n;
  std::uint64_t a;
  std::uint64_t b;
  bool row_major_b;
  bool accumulate;
  detail::Site site;
  bool column_major_a = false;
  const std::uint32_t* registers = nullptr;  ///< the thread's part of a, if that is where a is
};

/// An operand in shared memory, as a descriptor says: rows of 32 bytes along the depth, or across
/// it with 16-bit numbers: a row-major b, a column-major a.
class WgmmaOperand {
 public:
  explicit WgmmaOperand(std::uint64_t descriptor);
  /// Where a half of a row begins, 16 bytes.
  std::uint32_t address(unsigned row, unsigned half) const;
  /// Across the depth: where the eight numbers from 8 * `eight` on of a step of it begin.
  std::uint32_t address_across(unsigned step, unsigned eight) const;
  bool is_swizzled() const { return span_ != 0; }
  /// Addresses between which so many rows along the depth lie, in any case.
  struct Span {
    std::uint32_t begin, end;
  };
  Span span_of(unsigned rows) const;

 private:
  std::uint32_t permuted(std::uint32_t plain) const;

  std::uint32_t start_, leading_, stride_;
  std::uint32_t base_;   ///< how far from the start of the swizzle's pattern
  unsigned row_, span_;  ///< bytes; the swizzle's, or 0
};

/// Some of a block's shared memory.
struct SharedRange {
  const unsigned char* begin = nullptr;
  std::uint32_t address = 0;  ///< of the beginning, 18 bits
  std::uint32_t bytes = 0;
  bool holds(std::uint32_t at, std::uint32_t count) const {
    return at >= address && at - address <= bytes && count <= bytes - (at - address);
  }
};

/// Collects what the threads issue, and multiplies when they all wait for it.
///
/// When a product is issued, its operands are copied, and its accumulators taken over from the
/// registers, which become NaNs. When it is waited for, the operands must still be the same, and
/// the registers still NaNs: the hardware reads and writes them at any time in between.
///
/// Each function but finish() is called by one thread, `thread` of the warpgroup, and returns what
/// that thread did wrong, or an empty text.
class Warpgroup {
 public:
  /// Finds the shared memory around an 18-bit address; empty where there is none.
  using FindShared = SharedRange (*)(void* context, std::uint32_t address);
  Warpgroup(FindShared find, void* context) : find_(find), context_(context) {}

  std::string issue(unsigned thread, float* registers, const WgmmaCall& call);
  void fence(unsigned thread) { threads_[thread].fenced = true; }
  std::string commit(unsigned thread);
  /// Returns true in `complete` for the last thread to arrive.
  std::string arrive(unsigned thread, unsigned groups, const detail::Site& site, bool* complete);
  /// All threads have arrived: does what they wait for.
  std::string finish();

  /// Where a product was issued that nobody has waited for; null if there is none.
  const detail::Site* unfinished() const {
    return products_.empty() ? nullptr : &products_.front().call.site;
  }

 private:
  /// The accumulators of one array of registers in each thread, while products write them.
  struct Accumulators {
    unsigned n = 0;
    std::array<float*, kWarpgroup> registers{};
    std::vector<float> values;       ///< [64][n]
    std::uint64_t last_product = 0;  ///< number of the last product that was issued for them
    bool in_use = false;
  };
  struct Product {
    WgmmaCall call;
    std::size_t accumulators;
    std::vector<std::uint32_t> operands;                       ///< a [64][8 words], then b [n][8]
    std::array<const std::uint32_t*, kWarpgroup> registers{};  ///< of a, or null
  };
  struct Thread {
    std::uint64_t issued = 0;
    std::uint64_t committed = 0;  ///< groups
    bool fenced = false;
  };

  /// Calls visit(row, half, its 16 bytes) for a factor's rows; where it lies across the depth,
  /// visit(step of the depth, i, its numbers 8 i ... 8 i + 7).
  template <class Visit>
  std::string read_factor(const WgmmaCall& call, bool is_a, const Visit& visit) const;
  /// As read_factor(), for rows along the depth. False, and visits none, if not all addresses
  /// around the factor are known to be shared memory: then the places are to be looked up one by
  /// one.
  template <class Visit>
  bool visit_rows(const WgmmaOperand& operand, unsigned rows, const Visit& visit) const;
  /// Whether the factors are known to be in shared memory as they were at the issue.
  bool is_untouched(const Product& product) const;
  /// Reads what lies in shared memory.
  /// @param is_issued it is now; else somebody has waited for it
  std::string read(const WgmmaCall& call, std::vector<std::uint32_t>* operands,
                   bool is_issued) const;
  std::size_t accumulators_of(unsigned thread, const float* registers) const;
  static void take(Accumulators& accumulators, unsigned thread, float* registers, bool with_values);
  void multiply(const Product& product);
  template <ptx::FactorType kType>
  void multiply_as(const Product& product);
  void multiply_coarsely(const Product& product);  ///< of factors of 8 bits
  /// The sums that a product is added to: zeros for those that begin with it.
  float* sums_of(const Product& product);
  std::string give_back(Accumulators& accumulators);
  std::string describe_overwritten(const Product& product) const;

  FindShared find_;
  void* context_;
  std::array<Thread, kWarpgroup> threads_{};
  std::deque<Product> products_;
  std::uint64_t first_product_ = 0;        ///< number of products_.front()
  std::vector<std::uint64_t> group_ends_;  ///< number of the first product behind each group
  std::vector<Accumulators> accumulators_;
  std::vector<std::uint32_t> operands_now_;

  unsigned arrived_ = 0;  ///< threads in the wait
  unsigned first_at_ = 0;
  unsigned groups_ = 0;  ///< that may stay open
  detail::Site site_;
};

}  // namespace cuda_on_cpu

/// @file
/// @brief The asynchronous matrix multiplications (`wgmma`) of one warpgroup: 4 warps, 128 threads.
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

/// One `wgmma.mma_async.m64nN` as issued by a thread: 32 bytes along k, 8 or 16 elements.
struct WgmmaCall {
  ptx::FactorType type;
  unsigned n;
  std::uint64_t a;
  std::uint64_t b;
  bool row_major_b;
  bool accumulate;
  detail::Site site;
  bool column_major_a = false;
  const std::uint32_t* registers = nullptr;  ///< the thread's part of a, if a is in registers
};

/// An operand in shared memory, as described by a descriptor: K-major rows of 32 bytes, or MN-major
/// with 16-bit elements: a row-major b, a column-major a.
class WgmmaOperand {
 public:
  explicit WgmmaOperand(std::uint64_t descriptor);
  /// The address of a half of a row, 16 bytes.
  std::uint32_t address(unsigned row, unsigned half) const;
  /// MN-major: the address of the eight elements from 8 * `eight` on of a k-step.
  std::uint32_t address_across(unsigned step, unsigned eight) const;
  bool is_swizzled() const { return span_ != 0; }
  /// Bounds of the addresses of this many K-major rows.
  struct Span {
    std::uint32_t begin, end;
  };
  Span span_of(unsigned rows) const;

 private:
  std::uint32_t permuted(std::uint32_t plain) const;

  std::uint32_t start_, leading_, stride_;
  std::uint32_t base_;   ///< offset from the start of the swizzle pattern
  unsigned row_, span_;  ///< bytes of the swizzle, or 0
};

/// A part of a block's shared memory.
struct SharedRange {
  const unsigned char* begin = nullptr;
  std::uint32_t address = 0;  ///< start address, 18 bits
  std::uint32_t bytes = 0;
  bool holds(std::uint32_t at, std::uint32_t count) const {
    return at >= address && at - address <= bytes && count <= bytes - (at - address);
  }
};

/// Collects the instructions that the threads issue, and multiplies when all threads wait.
///
/// When an instruction is issued, its operands are copied, and its accumulators are taken over from
/// the registers, which become NaNs. At the wait, the operands must be unchanged and the registers
/// must still hold NaNs: the hardware reads and writes them at any time in between.
///
/// Each function except finish() is called by one thread, `thread` of the warpgroup, and returns a
/// description of that thread's error, or an empty text.
class Warpgroup {
 public:
  /// Finds the shared memory around an 18-bit address; empty if there is none.
  using FindShared = SharedRange (*)(void* context, std::uint32_t address);
  Warpgroup(FindShared find, void* context) : find_(find), context_(context) {}

  std::string issue(unsigned thread, float* registers, const WgmmaCall& call);
  void fence(unsigned thread) { threads_[thread].fenced = true; }
  std::string commit(unsigned thread);
  /// Sets `complete` to true for the last thread to arrive.
  std::string arrive(unsigned thread, unsigned groups, const detail::Site& site, bool* complete);
  /// All threads have arrived: executes the instructions that they wait for.
  std::string finish();

  /// The source location of an instruction that no thread has waited for; null if there is none.
  const detail::Site* unfinished() const {
    return products_.empty() ? nullptr : &products_.front().call.site;
  }

 private:
  /// The accumulators of one array of registers in each thread, while instructions write them.
  struct Accumulators {
    unsigned n = 0;
    std::array<float*, kWarpgroup> registers{};
    std::vector<float> values;       ///< [64][n]
    std::uint64_t last_product = 0;  ///< number of the last instruction issued for them
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

  /// Calls visit(row, half, its 16 bytes) for the rows of a K-major operand; for an MN-major
  /// operand, visit(k-step, i, its elements 8 i ... 8 i + 7).
  template <class Visit>
  std::string read_factor(const WgmmaCall& call, bool is_a, const Visit& visit) const;
  /// As read_factor(), for K-major operands. Returns false and visits none if some addresses around
  /// the operand are not known to be shared memory: then the locations must be looked up one by
  /// one.
  template <class Visit>
  bool visit_rows(const WgmmaOperand& operand, unsigned rows, const Visit& visit) const;
  /// Whether the operands in shared memory are known to be unchanged since the issue.
  bool is_untouched(const Product& product) const;
  /// Reads the operand in shared memory.
  /// @param is_issued whether it is being issued; otherwise a thread has waited for it
  std::string read(const WgmmaCall& call, std::vector<std::uint32_t>* operands,
                   bool is_issued) const;
  std::size_t accumulators_of(unsigned thread, const float* registers) const;
  static void take(Accumulators& accumulators, unsigned thread, float* registers, bool with_values);
  void multiply(const Product& product);
  template <ptx::FactorType kType>
  void multiply_as(const Product& product);
  void multiply_coarsely(const Product& product);  ///< FP8 operands
  /// The accumulators to which a product is added: zeros for the first product.
  float* sums_of(const Product& product);
  std::string give_back(Accumulators& accumulators);
  std::string describe_overwritten(const Product& product) const;

  FindShared find_;
  void* context_;
  std::array<Thread, kWarpgroup> threads_{};
  std::deque<Product> products_;
  std::uint64_t first_product_ = 0;        ///< number of products_.front()
  std::vector<std::uint64_t> group_ends_;  ///< number of the first instruction after each group
  std::vector<Accumulators> accumulators_;
  std::vector<std::uint32_t> operands_now_;

  unsigned arrived_ = 0;  ///< threads in the wait
  unsigned first_at_ = 0;
  unsigned groups_ = 0;  ///< groups that may remain pending
  detail::Site site_;
};

}  // namespace cuda_on_cpu

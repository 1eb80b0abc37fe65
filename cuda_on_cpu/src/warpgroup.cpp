#include "warpgroup.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "report_text.hpp"
#include "tensor_core.hpp"
#include "tensor_load.hpp"
#include "watching.hpp"

namespace cuda_on_cpu {
namespace {

constexpr unsigned kRows = 64;
constexpr unsigned kWords = 8;                    ///< registers per row of an operand
constexpr std::uint32_t kInFlight = 0xffffffffu;  ///< a register that will be written

/// Calls visit(index, row, column) for each accumulator that a thread of the warpgroup holds.
template <class Visit>
void for_each_register(unsigned thread, unsigned n, Visit visit) {
  const unsigned warp = thread / kLanes, group = thread % kLanes / 4, place = thread % 4;
  for (unsigned i = 0; i < n / 2; ++i) {
    visit(i, 16 * warp + group + i / 2 % 2 * 8, i / 4 * 8 + 2 * place + i % 2);
  }
}

/// Whether two threads issue the same instruction.
bool is_same(const WgmmaCall& one, const WgmmaCall& other) {
  return (one.registers == nullptr) == (other.registers == nullptr) && one.type == other.type &&
         one.n == other.n && one.a == other.a && one.b == other.b &&
         one.row_major_b == other.row_major_b && one.column_major_a == other.column_major_a &&
         one.accumulate == other.accumulate && one.site.line() == other.site.line();
}

/// Copies a thread's part of an operand a [64][kWords].
void copy_registers(unsigned thread, const std::uint32_t* registers, std::uint32_t* a) {
  const unsigned row = thread / kLanes * 16 + thread % kLanes / 4, word = thread % 4;
  for (unsigned i = 0; i < 4; ++i) {
    a[(row + i % 2 * 8) * kWords + word + i / 2 * 4] = registers[i];
  }
}

/// The operands of a product with n columns, a [64][depth] and b [n / 4][depth][4].
template <FactorType kType>
void unpack_factors(const std::uint32_t* operands, unsigned n, double* a, Doubles* b) {
  constexpr unsigned kPart = per_register(kType), kDepth = kWords * kPart;
  for (unsigned i = 0; i < kRows * kWords; ++i, a += kPart) unpack<kType>(operands[i], a);
  for (unsigned j = 0; j < n; ++j) {
    for (unsigned word = 0; word < kWords; ++word) {
      double values[kPart];
      unpack<kType>(operands[(kRows + j) * kWords + word], values);
      for (unsigned i = 0; i < kPart; ++i) {
        b[j / kColumns * kDepth + word * kPart + i][j % kColumns] = values[i];
      }
    }
  }
}

constexpr unsigned kTogether = 8;  ///< rows that are multiplied at a time

/// Where the operands of a product are zero. Tiles that exceed their problem are mostly zero.
struct Zeros {
  bool rows[kRows / kTogether];  ///< these rows of a
  bool columns[256 / kColumns];  ///< these columns of b
  bool may_skip;  ///< a zero times any element of the other operand is zero: all elements are
                  ///< finite
};

CUDA_ON_CPU_HOT_LOOP
void find_zeros(const double* a, const Doubles* b, unsigned depth, unsigned n, Zeros* zeros) {
  constexpr std::int64_t kNoSign = INT64_MAX;
  Longs infinite = {};  // -1 where an element is not finite
  const auto all_zero = [&](const Doubles* numbers, unsigned count) __attribute__((always_inline)) {
    Longs any = {};
    for (unsigned i = 0; i < count; ++i) {
      const Longs magnitude = Longs(numbers[i]) & kNoSign;
      any |= magnitude;
      infinite |= magnitude >= 0x7ff0000000000000;
    }
    return (any[0] | any[1] | any[2] | any[3]) == 0;
  };
  for (std::size_t i = 0; i < kRows / kTogether; ++i) {
    zeros->rows[i] =
        all_zero(reinterpret_cast<const Doubles*>(a) + i * kTogether * depth / kColumns,
                 kTogether * depth / kColumns);
  }
  for (std::size_t j = 0; j < n / kColumns; ++j) zeros->columns[j] = all_zero(b + j * depth, depth);
  zeros->may_skip = (infinite[0] | infinite[1] | infinite[2] | infinite[3]) == 0;
}

/// d [64][n] += a [64][depth] * b, rounded once, towards zero. b is [n / 4][depth][4], with the
/// columns last. The products are exact, with or without fused multiply-add.
CUDA_ON_CPU_HOT_LOOP
void multiply_tile(const double* a, const Doubles* b, unsigned depth, unsigned n,
                   const Zeros& zeros, float* d) {
  for (unsigned row = 0; row < kRows; row += kTogether) {
    for (unsigned j = 0; j < n / kColumns; ++j) {
      Floats part[kTogether];
      Doubles sum[kTogether];
      for (unsigned i = 0; i < kTogether; ++i) {
        std::memcpy(&part[i], d + std::size_t{row + i} * n + std::size_t{j} * kColumns,
                    sizeof part[i]);
      }
      if (zeros.may_skip && (zeros.rows[row / kTogether] || zeros.columns[j]) &&
          zeros_leave(part, kTogether))
        continue;
      for (unsigned i = 0; i < kTogether; ++i) sum[i] = __builtin_convertvector(part[i], Doubles);
      for (unsigned k = 0; k < depth; ++k) {
        const Doubles factor = b[j * depth + k];
        for (unsigned i = 0; i < kTogether; ++i) sum[i] += a[(row + i) * depth + k] * factor;
      }
      for (unsigned i = 0; i < kTogether; ++i) {
        round_towards_zero(sum[i], &part[i]);
        std::memcpy(d + std::size_t{row + i} * n + std::size_t{j} * kColumns, &part[i],
                    sizeof part[i]);
      }
    }
  }
}

/// The largest power of two that is not larger; for subnormal e4m3 numbers the smallest normal one;
/// 0 for 0.
double power_of_two(double number) {
  constexpr double kLeast = 0x1p-6;
  const double magnitude = std::fabs(number);
  if (magnitude == 0 || !std::isfinite(magnitude)) return 0;
  return std::max(kLeast, std::exp2(std::ilogb(magnitude)));
}

constexpr unsigned kDepthOf8Bits = 4 * kWords;

/// FP8 operands in the layouts above, and power_of_two() of each element. Too large for a kernel's
/// stack.
struct CoarseFactors {
  double a[kRows * kDepthOf8Bits], powers_a[kRows * kDepthOf8Bits];
  Doubles b[256 / kColumns * kDepthOf8Bits], powers_b[256 / kColumns * kDepthOf8Bits];
};

/// d [64][n] += a * b with the hardware's arithmetic for FP8: see wgmma_m64k32_e4m3().
CUDA_ON_CPU_HOT_LOOP
void multiply_tile_coarsely(const CoarseFactors& factors, unsigned n, const Zeros& zeros,
                            float* d) {
  constexpr unsigned depth = kDepthOf8Bits;
  const double* const a = factors.a;
  const double* const powers_a = factors.powers_a;
  const Doubles* const b = factors.b;
  const Doubles* const powers_b = factors.powers_b;
  constexpr int kCutOff = 10;  // bits of a float's fraction after the 13th
  constexpr double kFraction = 0x1p13;
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned j = 0; j < n / kColumns; ++j) {
      Floats part;
      std::memcpy(&part, d + std::size_t{row} * n + std::size_t{j} * kColumns, sizeof part);
      const Ints bits = Ints(part), cut_off = bits & ((1 << kCutOff) - 1);
      const bool is_cut = (cut_off[0] | cut_off[1] | cut_off[2] | cut_off[3]) == 0;
      if (zeros.may_skip && is_cut && (zeros.rows[row / kTogether] || zeros.columns[j]) &&
          zeros_leave(&part, 1))
        continue;
      const Doubles old = __builtin_convertvector(part, Doubles);
      Doubles largest = Doubles(Longs(old) & 0x7ff0000000000000);
      Doubles plain = old;  // only to detect infinities and NaNs
      for (unsigned k = 0; k < depth; ++k) {
        const Doubles power = powers_a[row * depth + k] * powers_b[j * depth + k];
        largest = power > largest ? power : largest;
        if (!zeros.may_skip) plain += a[row * depth + k] * b[j * depth + k];
      }
      const Doubles nothing = {}, one = nothing + 1.0;
      const Longs is_finite = (Longs(plain) & 0x7ff0000000000000) != 0x7ff0000000000000;
      largest = (is_finite & (largest > nothing)) ? largest : one;
      const Doubles units = kFraction / largest;
      // Conversions to integers truncate, too.
      Ints sum = __builtin_convertvector(is_finite ? old * units : nothing, Ints);
      for (unsigned k = 0; k < depth; ++k) {
        const Doubles term = a[row * depth + k] * b[j * depth + k] * units;
        sum += __builtin_convertvector(is_finite ? term : nothing, Ints);
      }
      const auto exact = __builtin_convertvector(sum, Doubles) / units;
      const auto result = __builtin_convertvector(is_finite ? exact : plain, Floats);
      const Ints finite = __builtin_convertvector(is_finite, Ints);
      part = Floats(Ints(result) & (~((1 << kCutOff) - 1) | ~finite));
      std::memcpy(d + std::size_t{row} * n + std::size_t{j} * kColumns, &part, sizeof part);
    }
  }
}

}  // namespace

WgmmaOperand::WgmmaOperand(std::uint64_t descriptor) {
  const auto field = [=](unsigned bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3fffu) << 4;
  };
  start_ = field(0);
  leading_ = field(16);
  stride_ = field(32);
  base_ = static_cast<std::uint32_t>(descriptor >> 49 & 7u) << 7;
  const auto mode = static_cast<unsigned>(descriptor >> 62);
  span_ = mode == 0 ? 0 : 256u >> mode;
  row_ = mode == 0 ? 16 : span_;
}

inline std::uint32_t WgmmaOperand::permuted(std::uint32_t plain) const {
  const std::uint32_t in_pattern = plain - base_;
  return (plain ^ in_pattern ^ static_cast<std::uint32_t>(swizzled(in_pattern, span_))) & 0x3ffffu;
}

inline std::uint32_t WgmmaOperand::address(unsigned row, unsigned half) const {
  // With a swizzle, both halves of a row lie in its span.
  return permuted(start_ + row / 8 * stride_ + row % 8 * row_ +
                  half * (is_swizzled() ? 16 : leading_));
}

WgmmaOperand::Span WgmmaOperand::span_of(unsigned rows) const {
  // A swizzle permutes only within its 128 bytes.
  constexpr std::uint64_t kMoved = 128;
  const std::uint64_t last = std::uint64_t{start_} + (rows - 1) / 8 * std::uint64_t{stride_} +
                             std::uint64_t{7} * row_ + (is_swizzled() ? 16 : leading_);
  const std::uint64_t end = (last + 16 + kMoved - 1) / kMoved * kMoved;
  if (end > 0x40000) return {0, ~0u};  // relative to address 0
  return {static_cast<std::uint32_t>(start_ / kMoved * kMoved), static_cast<std::uint32_t>(end)};
}

inline std::uint32_t WgmmaOperand::address_across(unsigned step, unsigned eight) const {
  const unsigned pieces = span_ / 16;
  return permuted(start_ + step / 8 * stride_ + step % 8 * span_ + eight / pieces * leading_ +
                  eight % pieces * 16);
}

template <class Visit>
bool Warpgroup::visit_rows(const WgmmaOperand& operand, unsigned rows, const Visit& visit) const {
  const WgmmaOperand::Span span = operand.span_of(rows);
  const SharedRange range = find_(context_, span.begin);
  if (!range.holds(span.begin, span.end - span.begin)) return false;
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned half = 0; half < 2; ++half)
      visit(row, half, range.begin + (operand.address(row, half) - range.address));
  }
  return true;
}

bool Warpgroup::is_untouched(const Product& product) const {
  const WgmmaCall& call = product.call;
  // The watcher is told of each 16-byte part; MN-major operands are sorted first.
  if (call.registers != nullptr || call.column_major_a || call.row_major_b ||
      detail::the_watcher != nullptr)
    return false;
  std::uint64_t changed = 0;
  const auto compare_with = [&changed](const std::uint32_t* words) {
    return [words, &changed](unsigned row, unsigned half, const unsigned char* now) {
      std::uint64_t a[2], b[2];
      std::memcpy(a, words + std::size_t{row} * kWords + std::size_t{half} * 4, sizeof a);
      std::memcpy(b, now, sizeof b);
      changed |= (a[0] ^ b[0]) | (a[1] ^ b[1]);
    };
  };
  const std::uint32_t* const a = product.operands.data();
  return visit_rows(WgmmaOperand(call.a), kRows, compare_with(a)) &&
         visit_rows(WgmmaOperand(call.b), call.n, compare_with(a + std::size_t{kRows} * kWords)) &&
         changed == 0;
}

template <class Visit>
std::string Warpgroup::read_factor(const WgmmaCall& call, bool is_a, const Visit& visit) const {
  const WgmmaOperand operand(is_a ? call.a : call.b);
  const bool across = is_a ? call.column_major_a : call.row_major_b;
  const auto defect = [&](const std::string& what) {
    return std::string("issues a wgmma at ") + describe_site(call.site) + " whose operand " +
           (is_a ? "a" : "b") + what;
  };
  if (across && !operand.is_swizzled())
    return defect(" is MN-major without a swizzle, which is not supported here");
  if (!across && visit_rows(operand, is_a ? kRows : call.n, visit)) return {};
  SharedRange range;
  // The halves of each row; for MN-major operands, eight elements at a time of each of 16 k-steps.
  const unsigned rows = is_a ? kRows : call.n;
  const unsigned lines = across ? 2 * kWords : rows, pieces = across ? rows / 8 : 2;
  for (unsigned line = 0; line < lines; ++line) {
    for (unsigned piece = 0; piece < pieces; ++piece) {
      const std::uint32_t address =
          across ? operand.address_across(line, piece) : operand.address(line, piece);
      if (!range.holds(address, 16)) range = find_(context_, address);
      if (!range.holds(address, 16)) {
        return defect(" reaches shared address " + std::to_string(address) +
                      ", which is outside of the block's shared memory");
      }
      visit(line, piece, range.begin + (address - range.address));
    }
  }
  return {};
}

std::string Warpgroup::read(const WgmmaCall& call, std::vector<std::uint32_t>* operands,
                            bool is_issued) const {
  operands->resize(std::size_t{kRows + call.n} * kWords);
  const auto told = [&](const unsigned char* from) {
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      is_issued ? watcher.read_by_unit(from, 16, call.site, true)
                : watcher.unit_read_ended(from, 16);
    });
    return from;
  };
  const auto rows_to = [&](std::uint32_t* to) {
    return [=](unsigned row, unsigned half, const unsigned char* from) {
      std::memcpy(to + std::size_t{row} * kWords + std::size_t{half} * 4, told(from), 16);
    };
  };
  const auto columns_to = [&](std::uint32_t* to) {
    return [=](unsigned step, unsigned eight, const unsigned char* from) {
      std::uint16_t numbers[8];
      std::memcpy(numbers, told(from), sizeof numbers);
      for (unsigned i = 0; i < 8; ++i) {
        std::uint32_t& word = to[(std::size_t{eight} * 8 + i) * kWords + step / 2];
        word = step % 2 == 0 ? numbers[i] : word | std::uint32_t{numbers[i]} << 16;
      }
    };
  };
  std::uint32_t* const a = operands->data();
  std::uint32_t* const b = a + std::size_t{kRows} * kWords;
  std::string defect;
  if (call.registers == nullptr) {
    defect = call.column_major_a ? read_factor(call, true, columns_to(a))
                                 : read_factor(call, true, rows_to(a));
  }
  if (!defect.empty()) return defect;
  return call.row_major_b ? read_factor(call, false, columns_to(b))
                          : read_factor(call, false, rows_to(b));
}

std::size_t Warpgroup::accumulators_of(unsigned thread, const float* registers) const {
  std::size_t i = 0;
  while (i < accumulators_.size() && accumulators_[i].registers[thread] != registers) ++i;
  return i;
}

void Warpgroup::take(Accumulators& accumulators, unsigned thread, float* registers,
                     bool with_values) {
  const unsigned n = accumulators.n;
  if (with_values) {
    for_each_register(thread, n, [&](unsigned i, unsigned row, unsigned column) {
      accumulators.values[row * n + column] = registers[i];
    });
  }
  std::memset(registers, 0xff, n / 2 * sizeof(float));
  accumulators.registers[thread] = registers;
}

std::string Warpgroup::issue(unsigned thread, float* registers, const WgmmaCall& call) {
  Thread& me = threads_[thread];
  if (call.registers != nullptr && !me.fenced) {
    return "issues a wgmma at " + describe_site(call.site) +
           " whose operand a lies in registers, without a wgmma_fence() since its last wait";
  }
  const std::uint64_t number = me.issued;
  if (number < first_product_ + products_.size()) {
    // The usual case: another thread has issued the same instruction, for accumulators that were
    // taken over before.
    const Product& begun = products_[number - first_product_];
    const Accumulators& sums = accumulators_[begun.accumulators];
    if (call.registers == nullptr && sums.registers[thread] == registers && sums.n == call.n &&
        is_same(begun.call, call)) {
      ++me.issued;
      return {};
    }
  }
  const std::size_t known = accumulators_of(thread, registers);
  if (number == first_product_ + products_.size()) {  // the first thread that issues it
    Product product{call, known, {}, {}};
    if (std::string defect = read(call, &product.operands, true); !defect.empty()) return defect;
    detail::tell_watcher([&](inspect::Watcher& watcher) {
      watcher.factors_given(product.operands.size() * sizeof(std::uint32_t));
    });
    if (known == accumulators_.size()) {
      const auto free = std::find_if(accumulators_.begin(), accumulators_.end(),
                                     [](const Accumulators& a) { return !a.in_use; });
      product.accumulators = static_cast<std::size_t>(free - accumulators_.begin());
      if (free == accumulators_.end()) accumulators_.emplace_back();
      Accumulators& mine = accumulators_[product.accumulators];
      mine.in_use = true;
      mine.n = call.n;
      mine.values.assign(std::size_t{kRows} * call.n, 0.0f);
    }
    accumulators_[product.accumulators].last_product = number;
    products_.push_back(std::move(product));
  }
  Product& product = products_[number - first_product_];
  Accumulators& accumulators = accumulators_[product.accumulators];
  if (!is_same(product.call, call)) {
    return "issues a wgmma at " + describe_site(call.site) +
           " where another thread of its warpgroup issued a different one, at " +
           describe_site(product.call.site);
  }
  if (accumulators.n != call.n ||
      (known != product.accumulators && accumulators.registers[thread] != nullptr) ||
      (known != accumulators_.size() && known != product.accumulators)) {
    return "issues a wgmma at " + describe_site(call.site) +
           " whose accumulators overlap those of another one in flight";
  }
  if (accumulators.registers[thread] == nullptr) {
    if (!me.fenced) {
      return "issues a wgmma at " + describe_site(call.site) +
             " for registers that it has accessed, without a wgmma_fence() in between";
    }
    take(accumulators, thread, registers, call.accumulate);
  }
  if (call.registers != nullptr) {
    product.registers[thread] = call.registers;
    copy_registers(thread, call.registers, product.operands.data());
  }
  ++me.issued;
  return {};
}

std::string Warpgroup::commit(unsigned thread) {
  Thread& me = threads_[thread];
  if (me.committed == group_ends_.size()) group_ends_.push_back(me.issued);
  if (group_ends_[me.committed++] != me.issued) {
    return "commits a group of wgmmas that differs in number from another thread's of its "
           "warpgroup";
  }
  return {};
}

std::string Warpgroup::arrive(unsigned thread, unsigned groups, const detail::Site& site,
                              bool* complete) {
  Thread& me = threads_[thread];
  if (arrived_ == 0) {
    first_at_ = thread;
    groups_ = groups;
    site_ = site;
  } else if (groups != groups_ || site.line() != site_.line() ||
             me.issued != threads_[first_at_].issued ||
             me.committed != threads_[first_at_].committed) {
    return "waits for wgmmas at " + describe_site(site) +
           ", but has issued or committed other wgmmas than a thread of its warpgroup that waits "
           "at " +
           describe_site(site_);
  }
  me.fenced = false;
  *complete = ++arrived_ == kWarpgroup;
  return {};
}

std::string Warpgroup::finish() {
  arrived_ = 0;
  if (group_ends_.size() <= groups_) return {};
  const std::uint64_t end = group_ends_[group_ends_.size() - 1 - groups_];
  std::string defect;
  for (; first_product_ < end && defect.empty(); ++first_product_) {
    const Product& product = products_.front();
    if (!is_untouched(product)) {
      defect = read(product.call, &operands_now_, false);
      for (unsigned thread = 0; product.call.registers != nullptr && thread < kWarpgroup;
           ++thread) {
        copy_registers(thread, product.registers[thread], operands_now_.data());
      }
      if (defect.empty() && operands_now_ != product.operands)
        defect = describe_overwritten(product);
    }
    multiply(product);
    products_.pop_front();
  }
  for (Accumulators& accumulators : accumulators_) {
    if (defect.empty() && accumulators.in_use && accumulators.last_product < end) {
      defect = give_back(accumulators);
    }
  }
  return defect;
}

std::string Warpgroup::describe_overwritten(const Product& product) const {
  std::size_t word = 0;
  while (operands_now_[word] == product.operands[word]) ++word;
  constexpr std::size_t kWordsOfA = std::size_t{kRows} * kWords;
  const bool is_a = word < kWordsOfA;
  return std::string("waits for a wgmma issued at ") + describe_site(product.call.site) +
         " whose operand " + (is_a ? "a" : "b") +
         " was overwritten before the wait, first in row " +
         std::to_string((is_a ? word : word - kWordsOfA) / kWords);
}

void Warpgroup::multiply(const Product& product) {
  switch (product.call.type) {
    case FactorType::tf32: return multiply_as<FactorType::tf32>(product);
    case FactorType::f16: return multiply_as<FactorType::f16>(product);
    case FactorType::bf16: return multiply_as<FactorType::bf16>(product);
    case FactorType::e4m3: return multiply_coarsely(product);
  }
}

float* Warpgroup::sums_of(const Product& product) {
  std::vector<float>& values = accumulators_[product.accumulators].values;
  if (!product.call.accumulate) std::fill(values.begin(), values.end(), 0.0f);
  return values.data();
}

template <FactorType kType>
void Warpgroup::multiply_as(const Product& product) {
  constexpr unsigned kDepth = kWords * per_register(kType);
  const unsigned n = product.call.n;
  alignas(Doubles) double a[kRows * kDepth];
  Doubles b[256 / kColumns * kDepth];
  unpack_factors<kType>(product.operands.data(), n, a, b);
  Zeros zeros;
  find_zeros(a, b, kDepth, n, &zeros);
  multiply_tile(a, b, kDepth, n, zeros, sums_of(product));
}

void Warpgroup::multiply_coarsely(const Product& product) {
  const unsigned n = product.call.n;
  const auto factors = std::make_unique<CoarseFactors>();
  unpack_factors<FactorType::e4m3>(product.operands.data(), n, factors->a, factors->b);
  std::transform(std::begin(factors->a), std::end(factors->a), factors->powers_a, power_of_two);
  for (unsigned i = 0; i < n / kColumns * kDepthOf8Bits; ++i) {
    for (unsigned j = 0; j < kColumns; ++j)
      factors->powers_b[i][j] = power_of_two(factors->b[i][j]);
  }
  Zeros zeros;
  find_zeros(factors->a, factors->b, kDepthOf8Bits, n, &zeros);
  multiply_tile_coarsely(*factors, n, zeros, sums_of(product));
}

std::string Warpgroup::give_back(Accumulators& accumulators) {
  const unsigned n = accumulators.n;
  bool touched = false;
  for (unsigned thread = 0; thread < kWarpgroup; ++thread) {
    float* const registers = accumulators.registers[thread];
    for_each_register(thread, n, [&](unsigned i, unsigned row, unsigned column) {
      touched |= std::bit_cast<std::uint32_t>(registers[i]) != kInFlight;
      registers[i] = accumulators.values[row * n + column];
    });
    accumulators.registers[thread] = nullptr;
  }
  accumulators.in_use = false;
  return touched ? "waits for wgmmas whose accumulators some thread has written in the meantime"
                 : std::string();
}

}  // namespace cuda_on_cpu

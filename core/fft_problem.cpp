#include "core/fft_problem.hpp"

#include <bit>

#include "core/array.hpp"
#include "core/error.hpp"

namespace convladder {

FftProblem validated(FftProblem p) {
  require(p.N >= 0, "n", p.N, "must be at least 0");
  require(p.L >= 1, "length", p.L, "must be at least 1");
  if (p.ring == FftRing::mersenne) {
    require(
        p.L <= kLongestMersenneLine && std::has_single_bit(static_cast<unsigned>(p.L)), "length",
        p.L,
        text("over the ring mersenne it must be a power of two, at most ", kLongestMersenneLine));
  }
  return p;
}

std::string describe(const FftProblem& p) {
  std::string line = text("n ", p.N, ", length ", p.L);
  if (p.direction != FftDirection::forward) line += text(", ", name_of(p.direction));
  if (p.ring != FftRing::complex) line += text(", ", name_of(p.ring));
  return line;
}

Signature fft_signature(const FftProblem& p) {
  const Shape shape = {p.N, p.L, 2};
  return {{{"x", "njc", shape, DType::f32}}, {{"y", "nkc", shape, DType::f32}}};
}

}  // namespace convladder

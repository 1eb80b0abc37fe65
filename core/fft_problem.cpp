#include "core/fft_problem.hpp"

#include <bit>

#include "core/array.hpp"
#include "core/error.hpp"
#include "core/fft_to_real.hpp"

namespace convladder {
namespace {

/// As given on the command line: "256", or "16,16".
std::string length_of(const FftProblem& p) {
  return p.has_planes() ? text(p.H, ",", p.L) : text(p.L);
}

bool is_order_of_mersenne_root(int length) {
  return length <= kLongestMersenneLine && std::has_single_bit(static_cast<unsigned>(length));
}

}  // namespace

FftProblem validated(FftProblem p) {
  require(p.N >= 0, "n", p.N, "must be at least 0");
  require(p.H >= 0, "length", text(p.H, ",", p.L), "must be at least 1, along each axis");
  require(p.L >= 1, "length", length_of(p), "must be at least 1");
  if (p.ring == FftRing::mersenne) {
    require(
        is_order_of_mersenne_root(p.L) && is_order_of_mersenne_root(p.rows()), "length",
        length_of(p),
        text("over the ring mersenne it must be a power of two, at most ", kLongestMersenneLine));
  }
  checked_product({p.N, p.rows(), p.L, 2}, "numbers of y");
  return p;
}

std::string describe(const FftProblem& p) {
  std::string line = text("n ", p.N, ", length ");
  line += p.has_planes() ? text(p.H, " x ", p.L) : text(p.L);
  if (p.is_real()) line += text(", ", name_of(p.input));
  if (p.direction != FftDirection::forward) line += text(", ", name_of(p.direction));
  if (p.ring != FftRing::complex) line += text(", ", name_of(p.ring));
  return line;
}

Signature fft_signature(const FftProblem& p) {
  Shape points = {p.N, p.L}, frequencies = {p.N, p.frequencies(), 2};
  if (p.has_planes()) {
    points.insert(points.begin() + 1, p.H);
    frequencies.insert(frequencies.begin() + 1, p.H);
  }
  std::string axes = p.has_planes() ? "nhw" : "nj";
  if (!p.is_real()) {
    points.push_back(2);
    axes += "c";
  }
  const std::string axes_of_frequencies = p.has_planes() ? "nuvc" : "nkc";
  if (is_to_real(p)) {
    return {{{"x", axes_of_frequencies, frequencies, DType::f32}},
            {{"y", axes, points, DType::f32}}};
  }
  return {{{"x", axes, points, DType::f32}}, {{"y", axes_of_frequencies, frequencies, DType::f32}}};
}

}  // namespace convladder

/// @file definition.hpp
/// @brief The interface of a ladder's definition: each file in this folder provides a Definition.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oracle/reference.hpp"
#include "oracle/samples.hpp"

namespace convladder::oracle {

/// The definition of a ladder's operation, in double precision; see reference() and reference_at().
struct Definition {
  std::function<std::int64_t(const Problem&)> longest_sum;  ///< See longest_sum().
  std::function<std::vector<Expected>(const Problem&, const Arrays&)> outputs;  ///< All outputs.
  /// The element at `place` of the output `name`, computed individually; empty: not available.
  std::function<ExpectedElement(const Problem&, const Arrays&, const std::string& name,
                                std::int64_t place)>
      element;
  std::function<std::int64_t(const Problem&)> headroom;  ///< See headroom(); empty: 1.
  /// See expected_of_winograd(); empty: no rung of the ladder uses Winograd's algorithm.
  std::function<Expected(const Expected&, const Problem&, const Arrays&, WinogradTile,
                         double least)>
      winograd;
  /// See expected_of_spectra(); empty: not applicable.
  std::function<Expected(const Expected&, const Problem&, const Arrays&, double least)> spectra;
};

/// A Definition in functions of the ladder's own problem type.
template <class P>
struct DefinitionOf {
  std::int64_t (*longest_sum)(const P&);                      ///< Like Definition.
  std::vector<Expected> (*outputs)(const P&, const Arrays&);  ///< Like Definition.
  ExpectedElement (*element)(const P&, const Arrays&, const std::string&,
                             std::int64_t) = nullptr;  ///< Like Definition; null: none.
  std::int64_t (*headroom)(const P&) = nullptr;        ///< Like Definition; null: 1.
  Expected (*winograd)(const Expected&, const Problem&, const Arrays&, WinogradTile,
                       double) = nullptr;  ///< Like Definition; null: none.
  Expected (*spectra)(const Expected&, const Problem&, const Arrays&,
                      double) = nullptr;  ///< Like Definition; null: none.
};

/// For the variant type of problems, which must hold the ladder's own type.
template <class P>
Definition define(DefinitionOf<P> of) {
  Definition definition{
      [of](const Problem& p) { return of.longest_sum(std::get<P>(p)); },
      [of](const Problem& p, const Arrays& inputs) { return of.outputs(std::get<P>(p), inputs); },
      {},
      {},
      {},
      {}};
  if (of.winograd != nullptr) definition.winograd = of.winograd;
  if (of.spectra != nullptr) definition.spectra = of.spectra;
  if (of.headroom != nullptr) {
    definition.headroom = [of](const Problem& p) { return of.headroom(std::get<P>(p)); };
  }
  if (of.element != nullptr) {
    definition.element = [of](const Problem& p, const Arrays& inputs, const std::string& name,
                              std::int64_t place) {
      return of.element(std::get<P>(p), inputs, name, place);
    };
  }
  return definition;
}

/// The ladder's row. @throws std::logic_error if there is none
const Definition& definition_of(const std::string& ladder);

/// An output of zeros. @param rounds whether its values are sums, whose rounding is bounded
inline Expected expected_for(const ArraySpec& spec, std::int64_t longest, bool rounds = true) {
  const auto count = static_cast<std::size_t>(element_count(spec.shape));
  return {spec,
          std::vector<double>(count),
          rounds ? std::vector<double>(count) : std::vector<double>(),
          {},
          longest,
          Precision::fp32};
}

/// Adds a product to element i.
inline void accumulate(Expected& to, std::int64_t i, double a, double b) {
  to.values[static_cast<std::size_t>(i)] += a * b;
  to.magnitude[static_cast<std::size_t>(i)] += std::abs(a * b);
}

// Products row by row: the inner loops of most definitions, which take most of their time.

/// A row of an input: every `step`th element from `first` on.
struct Row {
  std::span<const float> of;  ///< the whole array
  std::int64_t first;         ///< its first element
  std::int64_t step = 1;      ///< elements between neighbours
};

/// Adds a product to each of `count` sums, every `step`th from `first` on: that of `factor` and the
/// row's next element.
void accumulate_row(Expected& to, std::int64_t first, std::int64_t step, double factor,
                    const Row& row, std::int64_t count);

/// Adds the products of two rows to sum `i`, one after the other.
void accumulate_products(Expected& to, std::int64_t i, const Row& a, const Row& b,
                         std::int64_t count);

/// An int32 output.
inline Expected integers_of(const ArraySpec& spec, const Array& array) {
  Expected expected;
  expected.spec = spec;
  expected.spec.shape = array.shape();
  const auto numbers = array.as<std::int32_t>();
  expected.integers.assign(numbers.begin(), numbers.end());
  return expected;
}

/// Adds a product to a sum.
inline void add(ExpectedElement& to, double a, double b) {
  to.value += a * b;
  to.magnitude += std::abs(a * b);
}

/// The inputs, with 16-bit types converted to float: the same values.
inline Arrays in_float(const Arrays& inputs) {
  Arrays result;
  for (const auto& [name, array] : inputs)
    result.emplace(name, array.dtype() == DType::i32 ? array : rounded_to(array, DType::f32));
  return result;
}

/// Element i.
inline double at(std::span<const float> values, std::int64_t i) {
  return double{values[static_cast<std::size_t>(i)]};
}

/// The indices of a row-major offset in an array of four axes, the last three extents of which are
/// given.
struct Indices {
  /// Those of offset `place`.
  Indices(std::int64_t place, std::int64_t second, std::int64_t third, std::int64_t fourth)
      : a(place / fourth / third / second), b(place / fourth / third % second),
        c(place / fourth % third), d(place % fourth) {}
  std::int64_t a, b, c, d;  ///< along the axes, the outermost first
};

}  // namespace convladder::oracle

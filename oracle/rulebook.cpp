#include "oracle/rulebook.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/parallel.hpp"
#include "core/site_errors.hpp"

namespace convladder {
namespace {

/// Batch and coordinates; compares lexicographically, as canonical order wants it.
using Place = std::array<std::int32_t, 1 + kMaxAxes>;

struct Meeting {
  std::int32_t k;
  std::int32_t row;  ///< of coords
  Place found;       ///< the site that it meets
};

Place place_of(const RulebookProblem& book, std::span<const std::int32_t> coords, int row) {
  Place place{};
  const auto columns = static_cast<std::size_t>(1 + book.ndim);
  std::copy_n(coords.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * columns),
              columns, place.begin());
  return place;
}

/// All (tap, found coordinate) of a coordinate along one axis.
std::vector<std::array<int, 2>> meetings_along(const RulebookProblem& book, int axis, int at) {
  std::vector<std::array<int, 2>> found;
  const std::int64_t s = book.stride[axis], p = book.pad[axis], d = book.dilation[axis];
  const std::int64_t reach = p + d * book.kernel[axis];
  for (int k = 0; k < book.kernel[axis]; ++k) {
    if (book.mode == SparseMode::transposed) {
      const std::int64_t out = at * s - p + k * d;
      if (out >= 0 && out < book.out_shape[axis]) found.push_back({k, static_cast<int>(out)});
      continue;
    }
    // All outputs near enough, tried one by one.
    const std::int64_t first = std::max<std::int64_t>(0, (at - reach) / s - 1);
    const std::int64_t last =
        std::min<std::int64_t>(book.out_shape[axis] - 1, (at + reach) / s + 1);
    for (std::int64_t out = first; out <= last; ++out) {
      if (at == out * s - p + k * d) found.push_back({k, static_cast<int>(out)});
    }
  }
  return found;
}

/// Everything that site `row` meets.
void add_meetings(const RulebookProblem& book, const Place& site, std::int32_t row,
                  std::vector<Meeting>& to) {
  std::vector<Meeting> partial = {{0, row, {site[0]}}};
  for (int axis = 0; axis < book.ndim; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    std::vector<Meeting> longer;
    for (const auto& [k, out] : meetings_along(book, axis, site[a + 1])) {
      for (Meeting meeting : partial) {
        meeting.k = meeting.k * book.kernel[axis] + k;
        meeting.found[a + 1] = out;
        longer.push_back(meeting);
      }
    }
    partial = std::move(longer);
  }
  to.insert(to.end(), partial.begin(), partial.end());
}

std::vector<Meeting> all_meetings(const RulebookProblem& book,
                                  std::span<const std::int32_t> coords) {
  constexpr int kRows = 4096;  // of a piece of the work
  const int pieces = ceil_div(book.sites, kRows);
  std::vector<std::vector<Meeting>> found(static_cast<std::size_t>(pieces));
  parallel_for(pieces, [&](std::int64_t piece) {
    const int begin = static_cast<int>(piece) * kRows;
    for (int row = begin; row < std::min(begin + kRows, book.sites); ++row)
      add_meetings(book, place_of(book, coords, row), row, found[static_cast<std::size_t>(piece)]);
  });
  std::vector<Meeting> all;
  for (const auto& piece : found) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

Array table(std::vector<std::int64_t> shape, std::int32_t value) {
  Array array(DType::i32, std::move(shape));
  std::ranges::fill(array.as<std::int32_t>(), value);
  return array;
}

}  // namespace

Rulebook make_rulebook(const RulebookProblem& book, const Array& coords) {
  const auto numbers = coords.as<std::int32_t>();
  require_no_errors(book, find_site_errors(book, numbers), numbers);
  std::vector<Meeting> meetings = all_meetings(book, numbers);

  // The sites that the rulebook names, with their rows: found ones in ascending order, or those of
  // the input.
  std::vector<std::pair<Place, std::int32_t>> rows;
  if (book.mode == SparseMode::subm) {
    for (int row = 0; row < book.sites; ++row) rows.push_back({place_of(book, numbers, row), row});
  } else {
    for (const Meeting& meeting : meetings) rows.push_back({meeting.found, 0});
  }
  std::sort(rows.begin(), rows.end());
  if (book.mode != SparseMode::subm) {
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].second = static_cast<std::int32_t>(i);
  }
  const auto row_of = [&](const Place& place) {
    const auto found = std::lower_bound(
        rows.begin(), rows.end(), place,
        [](const auto& entry, const Place& wanted) { return entry.first < wanted; });
    return found != rows.end() && found->first == place ? found->second : -1;
  };

  const bool inverse = book.mode == SparseMode::inverse;
  const auto found_rows = static_cast<int>(rows.size());
  Rulebook result{.problem = book,
                  .N = inverse ? found_rows : book.sites,
                  .M = inverse ? book.sites : found_rows};
  std::vector<std::array<std::int32_t, 3>> pairs;  // k, out, in
  pairs.reserve(meetings.size());
  for (const Meeting& meeting : meetings) {
    const std::int32_t found = row_of(meeting.found);
    if (found < 0) continue;
    if (inverse) {
      pairs.push_back({meeting.k, meeting.row, found});
    } else {
      pairs.push_back({meeting.k, found, meeting.row});
    }
  }
  std::sort(pairs.begin(), pairs.end());

  const std::int64_t columns = 1 + book.ndim;
  if (book.mode == SparseMode::subm || inverse) {
    result.out_coords = coords;
  } else {
    result.out_coords = Array(DType::i32, {found_rows, columns});
    auto to = result.out_coords.as<std::int32_t>().begin();
    for (const auto& [place, row] : rows) to = std::copy_n(place.begin(), columns, to);
  }
  result.pairs = Array(DType::i32, {static_cast<std::int64_t>(pairs.size()), kPairColumns});
  result.offsets = table({std::int64_t{book.KV} + 1}, 0);
  result.nbr = table({book.KV, result.M}, -1);
  result.nbr_back = table({book.KV, result.N}, -1);
  result.mask = table({result.M, mask_words(book.KV)}, 0);
  auto row = result.pairs.as<std::int32_t>().begin();
  const auto at = [](std::int64_t i, std::int64_t width, std::int64_t j) {
    return static_cast<std::size_t>(i * width + j);
  };
  for (const auto& [k, out, in] : pairs) {
    for (const std::int32_t number : {k, in, out}) *row++ = number;
    ++result.offsets.as<std::int32_t>()[static_cast<std::size_t>(k) + 1];
    result.nbr.as<std::int32_t>()[at(k, result.M, out)] = in;
    result.nbr_back.as<std::int32_t>()[at(k, result.N, in)] = out;
    std::int32_t& word = result.mask.as<std::int32_t>()[at(out, mask_words(book.KV), k / 32)];
    word = static_cast<std::int32_t>(static_cast<std::uint32_t>(word) | 1u << k % 32);
  }
  const auto offsets = result.offsets.as<std::int32_t>();
  for (std::size_t k = 1; k < offsets.size(); ++k) offsets[k] += offsets[k - 1];
  return result;
}

SparseConvProblem convolution_over(const Rulebook& rulebook, int Cin, int Cout) {
  SparseConvProblem conv{.book = rulebook.problem,
                         .Cin = Cin,
                         .Cout = Cout,
                         .N = rulebook.N,
                         .M = rulebook.M,
                         .pairs = rulebook.pairs.shape()[0]};
  const auto offsets = rulebook.offsets.as<std::int32_t>();
  for (std::size_t k = 1; k < offsets.size(); ++k)
    conv.most_pairs = std::max<std::int64_t>(conv.most_pairs, offsets[k] - offsets[k - 1]);
  return validated(conv);
}

Arrays rulebook_inputs(const Rulebook& rulebook, const Signature& signature) {
  const std::map<std::string, const Array*> all = {{"pairs", &rulebook.pairs},
                                                   {"offsets", &rulebook.offsets},
                                                   {"nbr", &rulebook.nbr},
                                                   {"nbr_back", &rulebook.nbr_back}};
  Arrays inputs;
  for (const ArraySpec& spec : signature.inputs) {
    if (const auto found = all.find(spec.name); found != all.end())
      inputs.emplace(spec.name, *found->second);
  }
  return inputs;
}

}  // namespace convladder

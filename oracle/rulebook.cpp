#include "oracle/rulebook.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <vector>

#include "core/parallel.hpp"
#include "core/site_errors.hpp"

namespace convladder {
namespace {

/// Batch index and coordinates, compared lexicographically, as the canonical order requires.
using Place = std::array<std::int32_t, 1 + kMaxAxes>;

/// A site and its row.
using NumberedPlace = std::pair<Place, std::int32_t>;

Place place_of(const RulebookProblem& book, std::span<const std::int32_t> coords, int row) {
  Place place{};
  const auto columns = static_cast<std::size_t>(1 + book.ndim);
  std::copy_n(coords.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * columns),
              columns, place.begin());
  return place;
}

template <class Range>
void sort_if_needed(Range& range) {
  if (!std::is_sorted(range.begin(), range.end())) std::sort(range.begin(), range.end());
}

/// The sites of coords with their rows, ascending.
std::vector<NumberedPlace> sorted_sites(const RulebookProblem& book,
                                        std::span<const std::int32_t> coords) {
  std::vector<NumberedPlace> sites;
  sites.reserve(static_cast<std::size_t>(book.sites));
  for (int row = 0; row < book.sites; ++row) sites.push_back({place_of(book, coords, row), row});
  sort_if_needed(sites);
  return sites;
}

/// The output coordinate of `at` at tap `k` of an axis, or -1.
std::int32_t met_along(const RulebookProblem& book, int axis, std::int64_t at, std::int64_t k) {
  const std::int64_t s = book.stride[axis], p = book.pad[axis], d = book.dilation[axis];
  const auto exists = [&](std::int64_t out) { return out >= 0 && out < book.out_shape[axis]; };
  if (book.mode == SparseMode::transposed) {
    const std::int64_t out = at * s - p + k * d;
    return exists(out) ? static_cast<std::int32_t>(out) : -1;
  }
  // Nearby outputs are tried one by one, so that the rounding of a division does not matter.
  const std::int64_t near = (at + p - k * d) / s;
  for (std::int64_t out = near - 1; out <= near + 1; ++out) {
    if (exists(out) && at == out * s - p + k * d) return static_cast<std::int32_t>(out);
  }
  return -1;
}

/// Calls visit(output site, row) for all output sites of tap k. They ascend like the sites: along
/// each axis, a larger coordinate leads to a larger one.
template <class Visit>
void for_each_meeting(const RulebookProblem& book, const std::vector<NumberedPlace>& sites, int k,
                      const Visit& visit) {
  std::array<int, kMaxAxes> tap{};
  for (int axis = book.ndim - 1, rest = k; axis >= 0; --axis) {
    tap[static_cast<std::size_t>(axis)] = rest % book.kernel[axis];
    rest /= book.kernel[axis];
  }
  for (const auto& [site, row] : sites) {
    Place found = {site[0]};
    bool meets = true;
    for (int axis = 0; axis < book.ndim && meets; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      found[a + 1] = met_along(book, axis, site[a + 1], tap[a]);
      meets = found[a + 1] >= 0;
    }
    if (meets) visit(found, row);
  }
}

/// All sites that the given ones lead to at any tap, ascending, without duplicates.
std::vector<Place> found_sites(const RulebookProblem& book,
                               const std::vector<NumberedPlace>& sites) {
  std::vector<std::vector<Place>> lists(static_cast<std::size_t>(book.KV));
  parallel_for(book.KV, [&](std::int64_t k) {
    for_each_meeting(book, sites, static_cast<int>(k),
                     [&, &list = lists[static_cast<std::size_t>(k)]](
                         const Place& found, std::int32_t) { list.push_back(found); });
  });
  while (lists.size() > 1) {  // pairwise
    std::vector<std::vector<Place>> merged((lists.size() + 1) / 2);
    parallel_for(static_cast<std::int64_t>(merged.size()), [&](std::int64_t i) {
      const auto to = static_cast<std::size_t>(i);
      if (2 * to + 1 == lists.size()) {
        merged[to] = std::move(lists[2 * to]);
      } else {
        std::ranges::set_union(lists[2 * to], lists[2 * to + 1], std::back_inserter(merged[to]));
      }
    });
    lists = std::move(merged);
  }
  return std::move(lists.front());
}

/// Out and in of a tap's pairs.
using RowPairs = std::vector<std::array<std::int32_t, 2>>;

/// The pairs of tap k between the sites and those of the rulebook, sorted by output.
RowPairs pairs_of_tap(const RulebookProblem& book, const std::vector<NumberedPlace>& sites,
                      const std::vector<NumberedPlace>& named, int k) {
  RowPairs pairs;
  auto name = named.begin();  // ascends with the output
  for_each_meeting(book, sites, k, [&](const Place& found, std::int32_t row) {
    while (name != named.end() && name->first < found) ++name;
    if (name == named.end() || name->first != found) return;
    if (book.mode == SparseMode::inverse) {
      pairs.push_back({row, name->second});
    } else {
      pairs.push_back({name->second, row});
    }
  });
  sort_if_needed(pairs);
  return pairs;
}

Array table(std::vector<std::int64_t> shape, std::int32_t value) {
  Array array(DType::i32, std::move(shape));
  std::ranges::fill(array.as<std::int32_t>(), value);
  return array;
}

/// The taps of the rows of a table [KV][rows]: mask [rows][mask_words(KV)].
Array masks(const RulebookProblem& book, const Array& nbr) {
  const std::int64_t rows = nbr.shape()[1];
  const int words = mask_words(book.KV);
  Array mask = table({rows, words}, 0);
  const auto numbers = nbr.as<std::int32_t>();
  const auto bits = mask.as<std::int32_t>();
  constexpr std::int64_t kRows = 4096;  // of a part of the work
  parallel_for(ceil_div(rows, kRows), [&](std::int64_t piece) {
    for (int k = 0; k < book.KV; ++k) {
      for (std::int64_t row = piece * kRows; row < std::min(rows, (piece + 1) * kRows); ++row) {
        if (numbers[static_cast<std::size_t>(k * rows + row)] < 0) continue;
        std::int32_t& word = bits[static_cast<std::size_t>(row * words + k / 32)];
        word = static_cast<std::int32_t>(static_cast<std::uint32_t>(word) | 1u << k % 32);
      }
    }
  });
  return mask;
}

/// The rows of a table [KV][rows] sorted by their taps, for each of `parts` parts of the taps:
/// [parts][rows]. Compares row by row, the highest tap first.
Array orders(const RulebookProblem& book, const Array& nbr, int parts) {
  const std::int64_t rows = nbr.shape()[1];
  Array result(DType::i32, {parts, rows});
  const auto numbers = nbr.as<std::int32_t>();
  parallel_for(parts, [&](std::int64_t part) {
    const int begin = first_tap(book.KV, parts, static_cast<int>(part));
    const int end = first_tap(book.KV, parts, static_cast<int>(part) + 1);
    // The taps of each row as words: the highest taps in the first word, and in its highest bits.
    constexpr int kBits = 64;
    const auto words = static_cast<std::size_t>(std::max(1, ceil_div(end - begin, kBits)));
    std::vector<std::uint64_t> taps(static_cast<std::size_t>(rows) * words, 0);
    for (int k = end - 1; k >= begin; --k) {
      const auto word = static_cast<std::size_t>((end - 1 - k) / kBits);
      const std::uint64_t bit = std::uint64_t{1} << (kBits - 1 - (end - 1 - k) % kBits);
      for (std::int64_t row = 0; row < rows; ++row) {
        if (numbers[static_cast<std::size_t>(k * rows + row)] >= 0)
          taps[static_cast<std::size_t>(row) * words + word] |= bit;
      }
    }
    const auto order = result.as<std::int32_t>().subspan(static_cast<std::size_t>(part * rows),
                                                         static_cast<std::size_t>(rows));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const auto* of_a = taps.data() + static_cast<std::size_t>(a) * words;
      const auto* of_b = taps.data() + static_cast<std::size_t>(b) * words;
      return std::lexicographical_compare(of_a, of_a + words, of_b, of_b + words);
    });
  });
  return result;
}

}  // namespace

Rulebook make_rulebook(const RulebookProblem& book, const Array& coords) {
  const auto numbers = coords.as<std::int32_t>();
  require_no_errors(book, find_site_errors(book, numbers), numbers);
  const std::vector<NumberedPlace> sites = sorted_sites(book, numbers);

  // The output sites of the rulebook with their rows: those of the input, or computed ones in
  // ascending order.
  std::vector<NumberedPlace> named;
  if (book.mode == SparseMode::subm) {
    named = sites;
  } else {
    for (const Place& place : found_sites(book, sites))
      named.push_back({place, static_cast<std::int32_t>(named.size())});
  }

  const bool inverse = book.mode == SparseMode::inverse;
  const auto named_rows = static_cast<int>(named.size());
  Rulebook result{.problem = book,
                  .N = inverse ? named_rows : book.sites,
                  .M = inverse ? book.sites : named_rows};
  const std::int64_t columns = 1 + book.ndim;
  if (book.mode == SparseMode::subm || inverse) {
    result.out_coords = coords;
  } else {
    result.out_coords = Array(DType::i32, {named_rows, columns});
    auto to = result.out_coords.as<std::int32_t>().begin();
    for (const auto& [place, row] : named) to = std::copy_n(place.begin(), columns, to);
  }

  std::vector<RowPairs> pairs(static_cast<std::size_t>(book.KV));  // by tap
  parallel_for(book.KV, [&](std::int64_t k) {
    pairs[static_cast<std::size_t>(k)] = pairs_of_tap(book, sites, named, static_cast<int>(k));
  });
  result.offsets = table({std::int64_t{book.KV} + 1}, 0);
  const auto offsets = result.offsets.as<std::int32_t>();
  for (std::size_t k = 0; k < pairs.size(); ++k)
    offsets[k + 1] = offsets[k] + static_cast<std::int32_t>(pairs[k].size());
  result.pairs = Array(DType::i32, {offsets.back(), kPairColumns});
  result.nbr = table({book.KV, result.M}, -1);
  result.nbr_back = table({book.KV, result.N}, -1);
  parallel_for(book.KV, [&](std::int64_t k) {
    const auto tap = static_cast<std::size_t>(k);
    auto row = result.pairs.as<std::int32_t>().begin() + std::int64_t{kPairColumns} * offsets[tap];
    for (const auto& [out, in] : pairs[tap]) {
      for (const std::int32_t number : {static_cast<std::int32_t>(k), in, out}) *row++ = number;
      result.nbr.as<std::int32_t>()[static_cast<std::size_t>(k * result.M + out)] = in;
      result.nbr_back.as<std::int32_t>()[static_cast<std::size_t>(k * result.N + in)] = out;
    }
  });
  result.mask = masks(book, result.nbr);
  result.mask_back = masks(book, result.nbr_back);
  parallel_for(4, [&](std::int64_t i) {
    const bool back = i >= 2, split = i % 2 == 1;
    Array& order = back ? (split ? result.split_order_back : result.order_back)
                        : (split ? result.split_order : result.order);
    order = orders(book, back ? result.nbr_back : result.nbr, split ? 2 : 1);
  });
  return result;
}

SparseConvProblem convolution_over(const Rulebook& rulebook, SparseConvProblem layer) {
  SparseConvProblem conv = layer;
  conv.book = rulebook.problem;
  conv.N = rulebook.N;
  conv.M = rulebook.M;
  conv.pairs = rulebook.pairs.shape()[0];
  const auto offsets = rulebook.offsets.as<std::int32_t>();
  for (std::size_t k = 1; k < offsets.size(); ++k)
    conv.most_pairs = std::max<std::int64_t>(conv.most_pairs, offsets[k] - offsets[k - 1]);
  return validated(conv);
}

SparsePoolProblem pooling_over(const Rulebook& rulebook, int C) {
  return validated(SparsePoolProblem{.book = rulebook.problem,
                                     .C = C,
                                     .N = rulebook.N,
                                     .M = rulebook.M,
                                     .pairs = rulebook.pairs.shape()[0]});
}

Array argmax_over(const Array& nbr, const Array& features) {
  const std::int64_t taps = nbr.shape()[0], rows = nbr.shape()[1], C = features.shape()[1];
  Array argmax = table({rows, C}, -1);
  const auto candidates = nbr.as<std::int32_t>();
  const auto values = features.as<float>();
  const auto winners = argmax.as<std::int32_t>();
  parallel_for(rows, [&](std::int64_t row) {
    const auto value = [&](std::int64_t in, std::int64_t c) {
      return values[static_cast<std::size_t>(in * C + c)];
    };
    // From the last tap to the first, so that among equal candidates the first is written last.
    for (std::int64_t k = taps - 1; k >= 0; --k) {
      const std::int32_t in = candidates[static_cast<std::size_t>(k * rows + row)];
      if (in < 0) continue;
      for (std::int64_t c = 0; c < C; ++c) {
        std::int32_t& winner = winners[static_cast<std::size_t>(row * C + c)];
        if (winner < 0 || !exceeds(value(winner, c), value(in, c))) winner = in;
      }
    }
  });
  return argmax;
}

Array argmax_of_made_up(const Rulebook& rulebook, int C, Data data, std::uint64_t seed) {
  const Signature forward = sparse_max_pool_signature(pooling_over(rulebook, C));
  const Arrays drawn = make_inputs(forward, data, seed, 1, rulebook_inputs(rulebook, forward));
  return argmax_over(rulebook.nbr, drawn.at("features"));
}

Arrays rulebook_inputs(const Rulebook& rulebook, const Signature& signature) {
  const std::map<std::string, const Array*> all = {
      {"pairs", &rulebook.pairs},
      {"offsets", &rulebook.offsets},
      {"nbr", &rulebook.nbr},
      {"mask", &rulebook.mask},
      {"order", &rulebook.order},
      {"split_order", &rulebook.split_order},
      {"nbr_back", &rulebook.nbr_back},
      {"mask_back", &rulebook.mask_back},
      {"order_back", &rulebook.order_back},
      {"split_order_back", &rulebook.split_order_back}};
  Arrays inputs;
  for (const ArraySpec& spec : signature.inputs) {
    if (const auto found = all.find(spec.name); found != all.end())
      inputs.emplace(spec.name, found->second->reshaped(spec.shape));
  }
  return inputs;
}

}  // namespace convladder

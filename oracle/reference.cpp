#include "oracle/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/parallel.hpp"
#include "core/site_errors.hpp"
#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"

namespace convladder {
namespace {

Expected expected_for(const ArraySpec& spec, std::int64_t longest, bool rounds = true) {
  const auto count = static_cast<std::size_t>(element_count(spec.shape));
  return {spec,
          std::vector<double>(count),
          rounds ? std::vector<double>(count) : std::vector<double>(),
          {},
          longest,
          Precision::fp32};
}

/// Adds a product to element i.
void accumulate(Expected& to, std::int64_t i, double a, double b) {
  to.values[static_cast<std::size_t>(i)] += a * b;
  to.magnitude[static_cast<std::size_t>(i)] += std::abs(a * b);
}

/// Visits all products of the convolution that belong to image n and output channel k:
/// visit(x offset, weight offset, y offset). Both gradients and the forward pass sum over these
/// triples.
template <class Visit>
void for_each_product(const Conv2dProblem& conv, int n, int k, const Visit& visit) {
  const int group_c = conv.C / conv.groups, group_k = conv.K / conv.groups;
  const Index4 x_at{conv.C, conv.H, conv.W};
  const Index4 w_at{group_c, conv.R, conv.S};
  const Index4 y_at{conv.K, conv.P, conv.Q};
  for (int c = 0; c < group_c; ++c) {
    for (int r = 0; r < conv.R; ++r) {
      for (int p = 0; p < conv.P; ++p) {
        const int h = p * conv.stride.h - conv.pad.top + r * conv.dilation.h;
        if (h < 0 || h >= conv.H) continue;
        for (int s = 0; s < conv.S; ++s) {
          const std::int64_t weight = w_at(k, c, r, s);
          for (int q = 0; q < conv.Q; ++q) {
            const int w = q * conv.stride.w - conv.pad.left + s * conv.dilation.w;
            if (w < 0 || w >= conv.W) continue;
            visit(x_at(n, k / group_k * group_c + c, h, w), weight, y_at(n, k, p, q));
          }
        }
      }
    }
  }
}

std::vector<Expected> conv2d(const Conv2dProblem& conv, const Arrays& inputs) {
  const auto x = inputs.at("x").as<float>(), weights = inputs.at("weights").as<float>();
  Expected y = expected_for(conv2d_signature(conv).outputs[0], longest_sum("conv2d", conv));
  parallel_for(std::int64_t{conv.N} * conv.K, [&](std::int64_t nk) {
    const int n = static_cast<int>(nk / conv.K), k = static_cast<int>(nk % conv.K);
    if (conv.bias) {
      const double bias = inputs.at("bias").as<float>()[static_cast<std::size_t>(k)];
      const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
      for (std::int64_t i = nk * plane; i < (nk + 1) * plane; ++i) accumulate(y, i, bias, 1.0);
    }
    for_each_product(conv, n, k, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
      accumulate(y, yi, x[static_cast<std::size_t>(xi)], weights[static_cast<std::size_t>(wi)]);
    });
  });
  // The magnitude stays that of the whole sum: |relu(a) - relu(b)| <= |a - b|, so that the bound on
  // the sum's rounding holds for what ReLU makes of it.
  if (conv.activation == Activation::relu) {
    for (double& value : y.values) value = value < 0 ? 0 : value;
  }
  return {y};
}

std::vector<Expected> conv2d_dgrad(const Conv2dProblem& conv, const Arrays& inputs) {
  const auto dy = inputs.at("dy").as<float>(), weights = inputs.at("weights").as<float>();
  Expected dx =
      expected_for(conv2d_dgrad_signature(conv).outputs[0], longest_sum("conv2d_dgrad", conv));
  // Output channels of one image add to the same dx: only images and groups are independent.
  const int group_k = conv.K / conv.groups;
  parallel_for(std::int64_t{conv.N} * conv.groups, [&](std::int64_t ng) {
    const int n = static_cast<int>(ng / conv.groups), g = static_cast<int>(ng % conv.groups);
    for (int k = g * group_k; k < (g + 1) * group_k; ++k) {
      for_each_product(conv, n, k, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
        accumulate(dx, xi, dy[static_cast<std::size_t>(yi)], weights[static_cast<std::size_t>(wi)]);
      });
    }
  });
  return {dx};
}

std::vector<Expected> conv2d_wgrad(const Conv2dProblem& conv, const Arrays& inputs) {
  const auto x = inputs.at("x").as<float>(), dy = inputs.at("dy").as<float>();
  const Signature signature = conv2d_wgrad_signature(conv);
  const std::int64_t longest = longest_sum("conv2d_wgrad", conv);
  Expected dw = expected_for(signature.outputs[0], longest);
  Expected db = expected_for(signature.outputs[1], longest);
  parallel_for(conv.K, [&](std::int64_t k) {
    const std::int64_t plane = std::int64_t{conv.P} * conv.Q;
    for (int n = 0; n < conv.N; ++n) {
      for_each_product(
          conv, n, static_cast<int>(k), [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
            accumulate(dw, wi, x[static_cast<std::size_t>(xi)], dy[static_cast<std::size_t>(yi)]);
          });
      const std::int64_t first = (std::int64_t{n} * conv.K + k) * plane;
      for (std::int64_t i = first; i < first + plane; ++i) {
        accumulate(db, k, dy[static_cast<std::size_t>(i)], 1.0);
      }
    }
  });
  return {dw, db};
}

/// Visits all (col offset, x offset) pairs of image n and channel c; x offset is -1 in the padding.
template <class Visit>
void for_each_column_element(const Im2colProblem& p, std::int64_t n, std::int64_t c,
                             const Visit& visit) {
  const auto input = [](const WindowAxis& axis, int window, int tap) {
    const int i = window * axis.stride - axis.pad_before + tap * axis.dilation;
    return i >= 0 && i < axis.size ? i : -1;
  };
  const Index4 row_at{p.depth.kernel, p.height.kernel, p.width.kernel};
  const Index4 window_at{p.depth.out, p.height.out, p.width.out};
  const Index4 pixel_at{p.depth.size, p.height.size, p.width.size};
  for (int t = 0; t < p.depth.kernel; ++t) {
    for (int r = 0; r < p.height.kernel; ++r) {
      for (int s = 0; s < p.width.kernel; ++s) {
        const std::int64_t row = row_at(static_cast<int>(c), t, r, s);
        for (int o = 0; o < p.depth.out; ++o) {
          const int d = input(p.depth, o, t);
          for (int u = 0; u < p.height.out; ++u) {
            const int h = input(p.height, u, r);
            for (int v = 0; v < p.width.out; ++v) {
              const int w = input(p.width, v, s);
              const std::int64_t col = (n * p.rows() + row) * p.columns() + window_at(0, o, u, v);
              visit(col, d < 0 || h < 0 || w < 0
                             ? -1
                             : (n * p.C + c) * p.channel_size() + pixel_at(0, d, h, w));
            }
          }
        }
      }
    }
  }
}

/// The output's values before the run, by its request; a copy's result has no rounding to bound.
void start_from_old_values(Expected& to, const Arrays& inputs, Request request) {
  if (request == Request::write) return;
  const auto old = inputs.at("into").as<float>();
  for (std::size_t i = 0; i < old.size(); ++i) {
    to.values[i] = old[i];
    if (!to.magnitude.empty()) to.magnitude[i] = std::abs(static_cast<double>(old[i]));
  }
}

std::vector<Expected> im2col(const Im2colProblem& p, const Arrays& inputs) {
  const auto x = inputs.at("x").as<float>();
  // Only `add` rounds: a copy is exact.
  Expected col = expected_for(im2col_signature(p).outputs[0], longest_sum("im2col", p),
                              p.request == Request::add);
  start_from_old_values(col, inputs, p.request);
  if (p.request == Request::none) return {col};
  parallel_for(std::int64_t{p.N} * p.C, [&](std::int64_t nc) {
    for_each_column_element(p, nc / p.C, nc % p.C, [&](std::int64_t col_i, std::int64_t x_i) {
      const auto i = static_cast<std::size_t>(col_i);
      const double value = x_i < 0 ? 0.0 : double{x[static_cast<std::size_t>(x_i)]};
      col.values[i] += value;
      if (!col.magnitude.empty()) col.magnitude[i] += std::abs(value);
    });
  });
  return {col};
}

std::vector<Expected> col2im(const Im2colProblem& p, const Arrays& inputs) {
  const auto col = inputs.at("col").as<float>();
  Expected x = expected_for(col2im_signature(p).outputs[0], longest_sum("col2im", p),
                            p.request != Request::none);
  start_from_old_values(x, inputs, p.request);
  if (p.request == Request::none) return {x};
  parallel_for(std::int64_t{p.N} * p.C, [&](std::int64_t nc) {
    for_each_column_element(p, nc / p.C, nc % p.C, [&](std::int64_t col_i, std::int64_t x_i) {
      if (x_i >= 0) accumulate(x, x_i, col[static_cast<std::size_t>(col_i)], 1.0);
    });
  });
  return {x};
}

std::vector<Expected> gemm(const GemmProblem& p, const Arrays& inputs) {
  const auto a = inputs.at("a").as<float>(), b = inputs.at("b").as<float>();
  Expected c = expected_for(gemm_signature(p).outputs[0], p.K);
  parallel_for(p.M, [&](std::int64_t m) {
    for (std::int64_t k = 0; k < p.K; ++k) {
      const double a_mk = a[static_cast<std::size_t>(m * p.K + k)];
      for (std::int64_t n = 0; n < p.N; ++n) {
        accumulate(c, m * p.N + n, a_mk, b[static_cast<std::size_t>(k * p.N + n)]);
      }
    }
  });
  return {c};
}

Expected integers_of(const ArraySpec& spec, const Array& array) {
  Expected expected;
  expected.spec = spec;
  expected.spec.shape = array.shape();
  const auto numbers = array.as<std::int32_t>();
  expected.integers.assign(numbers.begin(), numbers.end());
  return expected;
}

std::vector<Expected> rulebook(const RulebookProblem& book, const Arrays& inputs) {
  const Rulebook right = make_rulebook(book, inputs.at("coords"));
  const std::map<std::string, const Array*> arrays = {
      {"out_coords", &right.out_coords},
      {"pairs", &right.pairs},
      {"nbr", &right.nbr},
      {"mask", &right.mask},
      {"order", orders_of(book.form) == 2 ? &right.split_order : &right.order}};
  std::vector<Expected> expected;
  for (const ArraySpec& spec : rulebook_signature(book).outputs)
    expected.push_back(integers_of(spec, *arrays.at(spec.name)));
  return expected;
}

/// Visits all products of a sparse convolution or of one of its gradients: visit(features offset,
/// weights offset, y offset).
template <class Visit>
void for_each_sparse_product(const SparseConvProblem& conv, const Arrays& inputs,
                             const Visit& visit) {
  const auto pairs = inputs.at("pairs").as<std::int32_t>();
  for (std::size_t i = 0; i < pairs.size(); i += kPairColumns) {
    const std::int64_t k = pairs[i], in = pairs[i + 1], out = pairs[i + 2];
    for (std::int64_t ci = 0; ci < conv.Cin; ++ci) {
      for (std::int64_t co = 0; co < conv.Cout; ++co) {
        visit(in * conv.Cin + ci, (k * conv.Cin + ci) * conv.Cout + co, out * conv.Cout + co);
      }
    }
  }
}

/// Adds the bias to rows of Cout sums, and activates them.
void finish_rows(const SparseConvProblem& conv, const Arrays& inputs, Expected& y) {
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    if (conv.bias) {
      const auto bias = inputs.at("bias").as<float>();
      accumulate(y, static_cast<std::int64_t>(i), bias[i % bias.size()], 1.0);
    }
    if (conv.activation == Activation::relu) y.values[i] = std::max(y.values[i], 0.0);
  }
}

std::vector<Expected> sparse(const std::string& ladder, const SparseConvProblem& conv,
                             const Arrays& inputs) {
  const auto of = [&](const char* name) {
    const auto found = inputs.find(name);
    return found == inputs.end() ? Array() : rounded_to(found->second, DType::f32);
  };
  const Array x_array = of("features"), w_array = of("weights"), dy_array = of("dy");
  const auto features = x_array.as<float>(), weights = w_array.as<float>(),
             dy = dy_array.as<float>();
  const auto at = [](std::span<const float> values, std::int64_t i) {
    return double{values[static_cast<std::size_t>(i)]};
  };
  const std::int64_t longest = longest_sum(ladder, conv);
  Expected expected;
  if (ladder == "sparse_conv") {
    expected = expected_for(sparse_conv_signature(conv).outputs[0], longest);
    for_each_sparse_product(conv, inputs, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
      accumulate(expected, y, at(features, x), at(weights, w));
    });
    finish_rows(conv, inputs, expected);
  } else if (ladder == "sparse_dgrad") {
    expected = expected_for(sparse_dgrad_signature(conv).outputs[0], longest);
    for_each_sparse_product(conv, inputs, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
      accumulate(expected, x, at(dy, y), at(weights, w));
    });
  } else {
    expected = expected_for(sparse_wgrad_signature(conv).outputs[0], longest);
    for_each_sparse_product(conv, inputs, [&](std::int64_t x, std::int64_t w, std::int64_t y) {
      accumulate(expected, w, at(features, x), at(dy, y));
    });
  }
  return {expected};
}

std::vector<Expected> max_pool(const SparsePoolProblem& pool, const Arrays& inputs) {
  const Signature signature = sparse_max_pool_signature(pool);
  const Array argmax = argmax_over(inputs.at("nbr"), inputs.at("features"));
  const auto winners = argmax.as<std::int32_t>();
  const auto features = inputs.at("features").as<float>();
  Expected y = expected_for(signature.outputs[0], 1, /*rounds=*/false);
  for (std::size_t i = 0; i < winners.size(); ++i) {
    const auto C = static_cast<std::size_t>(pool.C);
    if (winners[i] >= 0) y.values[i] = features[static_cast<std::size_t>(winners[i]) * C + i % C];
  }
  return {y, integers_of(signature.outputs[1], argmax)};
}

std::vector<Expected> max_pool_dgrad(const SparsePoolProblem& pool, const Arrays& inputs) {
  const auto dy = inputs.at("dy").as<float>();
  const auto winners = inputs.at("argmax").as<std::int32_t>();
  Expected dx = expected_for(sparse_max_pool_dgrad_signature(pool).outputs[0],
                             longest_sum("sparse_max_pool_dgrad", pool));
  for (std::size_t i = 0; i < winners.size(); ++i) {
    if (winners[i] < 0) continue;
    const std::int64_t c = static_cast<std::int64_t>(i) % pool.C;
    accumulate(dx, std::int64_t{winners[i]} * pool.C + c, dy[i], 1.0);
  }
  return {dx};
}

/// Channel after channel, each cell reached by its strides. Sites that are not usable are refused.
std::vector<Expected> to_dense(const SparseToDenseProblem& p, const Arrays& inputs) {
  const auto coords = inputs.at("coords").as<std::int32_t>();
  require_no_errors(p.grid, find_site_errors(p.grid, coords), coords);
  const auto features = inputs.at("features").as<float>();
  Expected x = expected_for(sparse_to_dense_signature(p).outputs[0], 1, /*rounds=*/false);
  const Shape& shape = x.spec.shape;
  const auto columns = static_cast<std::size_t>(1 + p.grid.ndim);
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(p.C),
                      c = i % static_cast<std::size_t>(p.C);
    std::int64_t stride = 1, place = 0;
    for (std::size_t axis = columns - 1; axis >= 1; --axis) {
      place += stride * coords[row * columns + axis];
      stride *= shape[axis + 1];
    }
    place += stride * static_cast<std::int64_t>(c) + stride * p.C * coords[row * columns];
    x.values[static_cast<std::size_t>(place)] = features[i];
  }
  return {x};
}

/// The place of a point on a Hilbert curve through a square whose side is a power of two: from the
/// largest quarter to the smallest, each turned back to the curve's first direction.
std::int64_t distance_along_hilbert(std::int64_t side, std::int64_t x, std::int64_t y) {
  std::int64_t distance = 0;
  for (std::int64_t half = side / 2; half >= 1; half /= 2) {
    const bool right = x >= half, upper = y >= half;
    distance += half * half * (right ? (upper ? 2 : 3) : (upper ? 1 : 0));
    x %= half;
    y %= half;
    if (upper) continue;
    if (right) {
      x = half - 1 - x;
      y = half - 1 - y;
    }
    std::swap(x, y);
  }
  return distance;
}

/// The block, counted within a plane of the grid (one z), that computes this tile.
std::int64_t block_of_tile(const TileMapProblem& p, std::int64_t m, std::int64_t n) {
  switch (p.map) {
    case TileMap::row_major:
    case TileMap::horizontal: return m * p.tiles_n + n;
    case TileMap::split_k:
    case TileMap::batched:
    case TileMap::identity1: return n * p.tiles_m + m;
    case TileMap::identity2:
    case TileMap::identity4:
    case TileMap::identity8: {
      // As wide as asked for, unless half of that is wide enough for (nearly) all tile columns.
      std::int64_t width = p.map == TileMap::identity2 ? 2 : p.map == TileMap::identity4 ? 4 : 8;
      const auto enough_columns = [](std::int64_t w) { return w == 8 ? 6 : w == 4 ? 3 : w; };
      while (p.tiles_n < enough_columns(width)) width /= 2;
      return n / width * (width * p.tiles_m) + m * width + n % width;
    }
    case TileMap::grouped: {
      const std::int64_t group = m / p.group_rows;
      const std::int64_t rows =
          std::min<std::int64_t>(p.group_rows, p.tiles_m - group * p.group_rows);
      return group * p.group_rows * p.tiles_n + n * rows + m % p.group_rows;
    }
    case TileMap::hilbert: {
      const std::int64_t along = p.tiles_m > p.tiles_n ? m : n,
                         across = p.tiles_m > p.tiles_n ? n : m;
      std::int64_t side = 1;
      while (side < std::min(p.tiles_m, p.tiles_n)) side *= 2;
      return along / side * side * side + distance_along_hilbert(side, along % side, across);
    }
    case TileMap::stream_k: break;
  }
  throw std::logic_error("no tile of stream_k belongs to one block");
}

/// All units, found the other way round than the rungs do: from each tile to its block or blocks.
/// Sorted afterwards.
std::vector<Expected> tile_map(const TileMapProblem& p) {
  std::vector<std::array<std::int32_t, kUnitColumns>> units;
  const auto add = [&](std::int64_t block, std::int64_t batch, std::int64_t m, std::int64_t n,
                       std::int64_t k_begin, std::int64_t k_end) {
    units.push_back({static_cast<std::int32_t>(block), static_cast<std::int32_t>(batch),
                     static_cast<std::int32_t>(m), static_cast<std::int32_t>(n),
                     static_cast<std::int32_t>(k_begin), static_cast<std::int32_t>(k_end)});
  };
  const BlockGrid grid = grid_of(p);
  // stream_k: of all steps, the first `large` blocks have share + 1 each, the others share.
  const std::int64_t steps = std::int64_t{p.batch} * p.tiles_m * p.tiles_n * p.k_steps;
  const std::int64_t share = steps / grid.x, large = steps % grid.x;
  const auto first_step_of = [&](std::int64_t block) {
    return block * share + std::min(block, large);
  };
  const auto owner_of = [&](std::int64_t step) {
    return step < large * (share + 1) ? step / (share + 1)
                                      : large + (step - large * (share + 1)) / share;
  };
  const std::int64_t part = ceil_div(p.k_steps, p.splits);
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t m = 0; m < p.tiles_m; ++m) {
      for (std::int64_t n = 0; n < p.tiles_n; ++n) {
        if (p.map == TileMap::stream_k) {
          const std::int64_t tile = ((batch * p.tiles_m + m) * p.tiles_n + n) * p.k_steps;
          for (std::int64_t block = owner_of(tile); block <= owner_of(tile + p.k_steps - 1);
               ++block) {
            add(block, batch, m, n, std::max(first_step_of(block) - tile, std::int64_t{0}),
                std::min(first_step_of(block + 1) - tile, std::int64_t{p.k_steps}));
          }
          continue;
        }
        for (std::int64_t k = 0; k < p.k_steps; k += part) {
          const std::int64_t z = (batch * p.splits + k / part) % grid.z;
          add(z * grid.x * grid.y + block_of_tile(p, m, n), batch, m, n, k,
              std::min<std::int64_t>(k + part, p.k_steps));
        }
      }
    }
  }
  // By block; the units of a block, in its order of work, ascend in their other columns.
  std::sort(units.begin(), units.end());
  Expected expected;
  expected.spec = tile_map_signature(p).outputs[0];
  expected.spec.shape[0] = static_cast<std::int64_t>(units.size());
  for (const auto& unit : units) {
    expected.integers.insert(expected.integers.end(), unit.begin(), unit.end());
  }
  return {expected};
}

}  // namespace

std::int64_t longest_sum(const std::string& ladder, const Problem& problem) {
  if (const auto* conv = std::get_if<Conv2dProblem>(&problem)) {
    const std::int64_t taps = std::int64_t{conv->R} * conv->S;
    if (ladder == "conv2d") return conv->C / conv->groups * taps + 1;  // and the bias
    if (ladder == "conv2d_dgrad") return conv->K / conv->groups * taps;
    return std::max<std::int64_t>(1, std::int64_t{conv->N} * conv->P * conv->Q);
  }
  if (const auto* columns = std::get_if<Im2colProblem>(&problem)) {
    return ladder == "im2col" ? 2 : columns->kernel_volume() + 1;  // and the old value
  }
  if (const auto* product = std::get_if<GemmProblem>(&problem)) return product->K;
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem)) {
    if (ladder == "sparse_wgrad") return std::max<std::int64_t>(1, conv->most_pairs);
    const int channels = ladder == "sparse_conv" ? conv->Cin : conv->Cout;
    return std::int64_t{conv->book.KV} * channels + (conv->bias ? 1 : 0);
  }
  if (const auto* pool = std::get_if<SparsePoolProblem>(&problem))
    return ladder == "sparse_max_pool" ? 1 : pool->book.KV;
  return 1;
}

namespace {

std::vector<Expected> outputs_of(const std::string& ladder, const Problem& problem,
                                 const Arrays& inputs) {
  if (ladder == "conv2d") return conv2d(std::get<Conv2dProblem>(problem), inputs);
  if (ladder == "conv2d_dgrad") return conv2d_dgrad(std::get<Conv2dProblem>(problem), inputs);
  if (ladder == "conv2d_wgrad") return conv2d_wgrad(std::get<Conv2dProblem>(problem), inputs);
  if (ladder == "im2col") return im2col(std::get<Im2colProblem>(problem), inputs);
  if (ladder == "col2im") return col2im(std::get<Im2colProblem>(problem), inputs);
  if (ladder == "gemm") return gemm(std::get<GemmProblem>(problem), inputs);
  if (ladder == "tile_map") return tile_map(std::get<TileMapProblem>(problem));
  if (ladder == "rulebook") return rulebook(std::get<RulebookProblem>(problem), inputs);
  if (const auto* conv = std::get_if<SparseConvProblem>(&problem))
    return sparse(ladder, *conv, inputs);
  if (const auto* pool = std::get_if<SparsePoolProblem>(&problem))
    return ladder == "sparse_max_pool" ? max_pool(*pool, inputs) : max_pool_dgrad(*pool, inputs);
  if (const auto* dense = std::get_if<SparseToDenseProblem>(&problem))
    return to_dense(*dense, inputs);
  throw std::logic_error("no reference for the ladder " + ladder);
}

}  // namespace

std::vector<Expected> reference(const std::string& ladder, const Problem& problem,
                                const Arrays& inputs) {
  std::vector<Expected> expected = outputs_of(ladder, problem, inputs);
  for (Expected& output : expected) {
    output.precision = precision_of(problem);
    if (const auto* conv = std::get_if<SparseConvProblem>(&problem)) output.factors = conv->dtype;
  }
  return expected;
}

}  // namespace convladder

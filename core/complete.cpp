/// @file complete.cpp
/// @brief Checks of every direct call of a rung: see Implementation::operator().
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/array.hpp"
#include "core/array_names.hpp"
#include "core/error.hpp"
#include "core/implementation.hpp"

namespace convladder {
namespace {

constexpr std::size_t kAlignment = 256;  // alignment of a workspace, see Context

bool is_same(const PerAxis& a, const PerAxis& b, int axes) {
  return std::equal(a.value, a.value + axes, b.value);
}

// Whether a problem has the members that validated() computes.

bool has_results_of(const Conv2dProblem& valid, const Conv2dProblem& p) {
  return p.P == valid.P && p.Q == valid.Q;
}
bool has_results_of(const Im2colProblem& valid, const Im2colProblem& p) {
  return p.depth.out == valid.depth.out && p.height.out == valid.height.out &&
         p.width.out == valid.width.out;
}
bool has_results_of(const RulebookProblem& valid, const RulebookProblem& p) {
  return p.KV == valid.KV && is_same(p.out_shape, valid.out_shape, p.ndim) &&
         is_same(p.pad, valid.pad, p.ndim);
}
bool has_results_of(const SparseConvProblem&, const SparseConvProblem& p) {
  return has_results_of(validated(p.book), p.book);
}
bool has_results_of(const SparsePoolProblem&, const SparsePoolProblem& p) {
  return has_results_of(validated(p.book), p.book);
}
bool has_results_of(const SparseToDenseProblem& valid, const SparseToDenseProblem& p) {
  return has_results_of(valid.grid, p.grid);
}
bool has_results_of(const SparseGlobalPoolProblem& valid, const SparseGlobalPoolProblem& p) {
  return has_results_of(valid.grid, p.grid);
}
template <class Problem>
bool has_results_of(const Problem&, const Problem&) {
  return true;  // validated() computes no member
}

/// Whether an output keeps its old values, which are never read.
bool writes_nothing(const Im2colProblem& problem) { return problem.request == Request::none; }
template <class Problem>
bool writes_nothing(const Problem&) {
  return false;
}

/// Whether the array is one of the forms of a rulebook, of which a rung reads only some.
bool is_of_rulebook(const std::string_view name) {
  constexpr std::array<std::string_view, 6> kForms = {"pairs", "offsets", "nbr",
                                                      "mask",  "order",   "split_order"};
  constexpr std::string_view kBack = "_back";
  return std::ranges::find(
             kForms, name.ends_with(kBack) ? name.substr(0, name.size() - kBack.size()) : name) !=
         kForms.end();
}

template <class Problem, class A>
void check(const Problem& problem, const A& arrays, Signature (*signature)(const Problem&)) {
  if (!has_results_of(validated(problem), problem)) {
    throw BadInput(text("problem = ", describe(problem),
                        ": must come from validated(), which computes its other members"));
  }
  if (writes_nothing(problem)) return;
  const Signature all = signature(problem);
  // Outputs that a rung creates have no pointer.
  const auto spec_of = [&](std::string_view name) -> const ArraySpec* {
    for (const auto* specs : {&all.inputs, &all.outputs}) {
      for (const ArraySpec& spec : *specs) {
        if (spec.name == name) return &spec;
      }
    }
    return nullptr;
  };
  bool wants_rulebook = false, has_rulebook = false;
  A copy = arrays;  // for_each_array() also sets them
  for_each_array(copy, [&](std::string_view name, auto& array) {
    const bool given = static_cast<bool>(array);
    if (name.starts_with("create")) {
      return require(given, std::string(name), "nothing", "must be a function: see OutputCreator");
    }
    const ArraySpec* const spec = spec_of(name);
    if (spec == nullptr || element_count(spec->shape) == 0) return;
    if (is_of_rulebook(name)) {
      wants_rulebook = wants_rulebook || name != "offsets";  // also present for an empty list of
                                                             // pairs
      has_rulebook = has_rulebook || given;
    } else {
      require(given, std::string(name), "null",
              text("the problem requires this array, ", to_string(spec->shape)));
    }
  });
  require(has_rulebook || !wants_rulebook, "rulebook", "null",
          "a rung reads the rulebook in some form, such as pairs or nbr");
}

}  // namespace

void require_workspace(std::size_t bytes, const void* workspace) {
  require(bytes == 0 || workspace != nullptr, "workspace", "null",
          text("must have ", bytes, " bytes for this problem: see workspace_bytes"));
  require(reinterpret_cast<std::uintptr_t>(workspace) % kAlignment == 0, "workspace", workspace,
          text("must begin at a multiple of ", kAlignment, " bytes"));
}

void require_complete(const Conv2dProblem& problem, const Conv2dArrays& arrays) {
  check(problem, arrays, conv2d_signature);
}
void require_complete(const Conv2dProblem& problem, const Conv2dDgradArrays& arrays) {
  check(problem, arrays, conv2d_dgrad_signature);
}
void require_complete(const Conv2dProblem& problem, const Conv2dWgradArrays& arrays) {
  check(problem, arrays, conv2d_wgrad_signature);
}
void require_complete(const GemmProblem& problem, const GemmArrays& arrays) {
  check(problem, arrays, gemm_signature);
}
void require_complete(const Im2colProblem& problem, const Im2colArrays& arrays) {
  check(problem, arrays, im2col_signature);
}
void require_complete(const Im2colProblem& problem, const Col2imArrays& arrays) {
  check(problem, arrays, col2im_signature);
}
void require_complete(const FftProblem& problem, const FftArrays& arrays) {
  check(problem, arrays, fft_signature);
}
void require_complete(const TileMapProblem& problem, const TileMapArrays& arrays) {
  check(problem, arrays, tile_map_signature);
}
void require_complete(const RulebookProblem& problem, const RulebookArrays& arrays) {
  check(problem, arrays, rulebook_signature);
}
void require_complete(const SparseConvProblem& problem, const SparseConvArrays& arrays) {
  check(problem, arrays, sparse_conv_signature);
}
void require_complete(const SparseConvProblem& problem, const SparseDgradArrays& arrays) {
  check(problem, arrays, sparse_dgrad_signature);
}
void require_complete(const SparseConvProblem& problem, const SparseWgradArrays& arrays) {
  check(problem, arrays, sparse_wgrad_signature);
}
void require_complete(const SparsePoolProblem& problem, const SparseMaxPoolArrays& arrays) {
  check(problem, arrays, sparse_max_pool_signature);
}
void require_complete(const SparsePoolProblem& problem, const SparseMaxPoolDgradArrays& arrays) {
  check(problem, arrays, sparse_max_pool_dgrad_signature);
}
void require_complete(const SparsePoolProblem& problem, const SparseAvgPoolArrays& arrays) {
  check(problem, arrays, sparse_avg_pool_signature);
}
void require_complete(const SparseToDenseProblem& problem, const SparseToDenseArrays& arrays) {
  check(problem, arrays, sparse_to_dense_signature);
}
void require_complete(const SparseGlobalPoolProblem& problem,
                      const SparseGlobalPoolArrays& arrays) {
  check(problem, arrays, sparse_global_pool_signature);
}
void require_complete(const VoxelizeProblem& problem, const VoxelizeArrays& arrays) {
  check(problem, arrays, voxelize_signature);
}

}  // namespace convladder

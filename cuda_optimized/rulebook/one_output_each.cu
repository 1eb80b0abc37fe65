/// @file one_output_each.cu
/// @brief rulebook, windows that do not overlap: each input has one output, and one division.
///
/// - Before: gather.cu
/// - The other kernels: bit_grid.cuh, as in bit_grid_of_outputs.cu
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** Where the kernel is as long as the stride, as in the 2 x 2 x 2 layers between the
/// levels of a U-Net and in most pooling, windows lie side by side. Each input lies in one of them,
/// and there is nothing to ask: along each axis one division gives the output and the tap.
///
///     input + pad   0 1 | 2 3 | 4 5 | 6 7          kernel 2, stride 2
///     output         0     1     2     3            quotient
///     tap           0 1   0 1   0 1   0 1           remainder
///
/// That is one bit to set and one pair to store for an input, where kernel 3 with stride 2 has 27
/// questions and 3.4 pairs. A kernel shorter than the stride leaves gaps: the remainder of an input
/// in a gap is no tap. Where windows overlap, the remainder is the first tap, and the next one is a
/// stride further with the output before: a loop. As each input has one place in the table, inputs
/// are scattered here and not gathered: N stores, where each of M outputs would look up 8 cells.
///
/// **Expect.** Per input one division an axis (a multiplication: core/fast_division.hpp), an atomic
/// on a bit of its own grid, one on the outputs', then a store to nbr and an atomic on a mask. So
/// with kernel 2 and stride 2 (sweep-k2s2-table, large-k2s2-table) it should be ahead of gather.cu.
/// **Costs.** As bit_grid_of_outputs.cu: memory for each cell, the host waits once. Declined: modes
/// subm and transposed, dilation, grids of 2^31 cells and more.
/// **Try.** Keep the bits of a window's 8 inputs side by side, as one byte an output, instead of in
/// two grids. What does that byte say at the end, and which pass over memory is gone?
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/bit_grid.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_grid::kMaxBlocks;
using bit_grid::kThreads;
using bit_grid::Progress;

/// Calls visit(tap, cell) for every tap of the axes from kAxis on that leads a given site to a
/// found cell: the remainder is the first such tap, and others are a stride apart. `tap` and `cell`
/// are those of the axes before.
template <int kAxis = 0, class Visit>
__device__ void visit_windows(const Lattice& lattice, const LatticeSite& site, int tap,
                              std::uint32_t cell, const Visit& visit) {
  if constexpr (kAxis == kMaxAxes) {
    visit(tap, cell);
  } else {
    const LatticeAxis& axis = lattice.axes[kAxis];
    const int from = site.at[kAxis] + axis.pad;
    int at = axis.by_stride.quotient(from);
    // Once, where windows do not overlap; not at all in a gap between them.
    for (int k = axis.by_stride.remainder(from, at); k < axis.kernel && at >= 0; k += axis.stride) {
      if (at < axis.found)
        visit_windows<kAxis + 1>(
            lattice, site, tap * axis.kernel + k,
            cell * static_cast<std::uint32_t>(axis.found) + static_cast<std::uint32_t>(at), visit);
      --at;
    }
  }
}

/// Sets the bits of all given sites, and of their outputs. A row outside, or whose bit is there
/// already, is counted and leads nowhere. Any one-dimensional grid.
/// @param given, found bits, all zero
__global__ void mark_places(Lattice lattice, const std::int32_t* coords, std::uint32_t* given,
                            std::uint32_t* found, Progress* progress) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; row < lattice.sites; row += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, row);
    if (!bit_grid::mark_given(lattice, site, given)) {
      atomicAdd(&progress->unusable, 1u);
      continue;
    }
    const auto set = [&](int, std::uint32_t cell) {
      atomicOr(&found[cell / 32], bit_grid::bit_of(cell));
    };
    visit_windows(lattice, site, 0, static_cast<std::uint32_t>(site.batch), set);
  }
}

/// Stores each given row's pair at its place of the table. Any one-dimensional grid.
__global__ void store_pairs(Lattice lattice, const std::int32_t* coords, bit_grid::Table table) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t given = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; given < lattice.sites; given += grid_threads) {
    const LatticeSite site = lattice_site(lattice, coords, given);
    visit_windows(lattice, site, 0, static_cast<std::uint32_t>(site.batch),
                  [&](int tap, std::uint32_t cell) { table.store(given, tap, cell); });
  }
}

Declined supports(const RulebookProblem& book) {
  if (const Declined why = small_lattice_supports(book)) return why;
  if (book.mode == SparseMode::transposed) return "modes strided and inverse only";
  for (int axis = 0; axis < book.ndim; ++axis) {
    if (book.kernel[axis] > 1 && book.dilation[axis] > 1) return "dilation 1 only";
  }
  return {};
}

/// coords [N][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words] and the form.
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const Arguments& arrays) {
  const Lattice lattice(book);
  const bit_grid::Table table = bit_grid::create_table(book, lattice, arrays, mark_places);
  launch(store_pairs, {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, lattice,
         arrays.in<std::int32_t>("coords"), table);
  create_form(book, table.M, table.nbr, table.mask, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(bit_grid::found_in_words(book), ", ", form_in_words(book));
}

}  // namespace

Implementation<RulebookProblem> one_output_each() {
  return {.supports = supports,
          .workspace_bytes = bit_grid::workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook

/// @file bit_grid_of_outputs.cu
/// @brief rulebook, new sites: a bit for each cell; set bits are distinct and in order, unsorted.
///
/// - Before: hash_set_of_outputs.cu
/// - After: gather.cu
/// - The other kernels: bit_grid.cuh, block_sum.cuh
/// - The same maths: cpu_reference/rulebook/hash_map.cpp
///
/// **The idea.** An output's row is the number of outputs before it. Let every cell of the outputs'
/// grid have a bit, and every input set those of its outputs: `atomicOr`, which does not mind how
/// often. Then the cells are in order because memory is, and no output is there twice. The row of
/// an output is the number of bits in the words before, plus those below its own in its word
/// (`__popc`).
///
///     cells      . . x . | x x . . | . . . . | . x . x       4 to a word here, 32 there
///     first          0         1         3         3          bits in the words before
///     rows           0     1 2                   3   4         + bits below in the word
///
/// `first` is a running sum over all words. Each block adds up a tile of 1024 words, and the last
/// block to finish replaces the tiles' sums by those of the tiles before. Then each block knows
/// where its tile begins, and writes `first` and a list of cells. A second grid, of the inputs'
/// cells, finds rows that repeat a site: their bit is there already.
///
/// **Expect.** In a sweep on 80 x 1600 x 1600 cells, kernel 3, stride 2 (sweep-k3s2-table): 3.2 MB
/// of bits for the outputs and 25.6 MB for the inputs, filled with zeros first. 126 thousand
/// atomics on the inputs' words, at most 300 thousand on the outputs', as neighbouring taps share
/// one. The table, 14.8 MB, is filled with -1 and then scattered to, 423 thousand times.
/// **Costs.** Memory and time grow with the grid. The host waits once. Declined: mode subm, grids
/// of 2^31 cells (256 MB) and more, windows that end beyond 2^31.
/// **Try.** Set bits by `|=` instead of `atomicOr`. Why are outputs lost, and not always the same?
#include "core/rulebook_problem.hpp"
#include "core/rung.hpp"
#include "cuda_optimized/rulebook/bit_grid.cuh"
#include "cuda_optimized/rulebook/table_forms.cuh"

namespace convladder::BACKEND::cuda_optimized::rulebook {
namespace {

using bit_grid::kMaxBlocks;
using bit_grid::kThreads;

/// Stores each pair at its place of the table: one thread a given row. Any one-dimensional grid.
__global__ void scatter_pairs(Lattice lattice, const std::int32_t* coords, bit_grid::Table table) {
  const std::int64_t grid_threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t given = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; given < lattice.sites; given += grid_threads) {
    const SiteRuns runs(lattice, lattice_site(lattice, coords, given));
    visit_found(lattice, runs, 0, runs.batch,
                [&](int tap, std::uint32_t cell) { table.store(given, tap, cell); });
  }
}

Declined supports(const RulebookProblem& book) { return small_lattice_supports(book); }

/// coords [N][1 + ndim] to out_coords [M][1 + ndim], nbr [KV][M], mask [M][words] and the form.
/// @throws BadInput for sites outside of the grid, and for duplicates
void run(const RulebookProblem& book, const Arguments& arrays) {
  const Lattice lattice(book);
  const bit_grid::Table table = bit_grid::create_table(book, lattice, arrays, bit_grid::mark_sites);
  launch(scatter_pairs, {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, lattice,
         arrays.in<std::int32_t>("coords"), table);
  create_form(book, table.M, table.nbr, table.mask, arrays);
}

std::string choice_in_words(const RulebookProblem& book) {
  return text(bit_grid::found_in_words(book), ", ", form_in_words(book));
}

}  // namespace

Implementation<RulebookProblem> bit_grid_of_outputs() {
  return {.supports = supports,
          .workspace_bytes = bit_grid::workspace_bytes,
          .run = run,
          .choice = choice_in_words};
}

}  // namespace convladder::BACKEND::cuda_optimized::rulebook

/// @file site_check.cu
/// @brief The kernels of site_check.hpp.
#include <vector>

#include "core/cuda/algorithms.hpp"
#include "core/cuda/grid_stride.hpp"
#include "core/cuda/site_check.hpp"

namespace convladder::BACKEND {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;  ///< Largest grid; larger problems are processed by a
                                              ///< grid-stride loop.

/// coords [sites][1 + ndim]; one thread per row. Launch with any one-dimensional grid.
__global__ void count_outside(RulebookProblem book, const std::int32_t* coords,
                              SiteErrors* errors) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    if (is_inside(book, site_of(book, coords, row))) continue;
    atomicAdd(&errors->outside, 1);
    atomicMin(&errors->first_outside, static_cast<std::int32_t>(row));
  }
}

/// keys [sites], rows [sites]: 0, 1, 2 ... Launch with any one-dimensional grid.
__global__ void number_sites(RulebookProblem book, const std::int32_t* coords, std::int64_t* keys,
                             std::int32_t* rows) {
  for (const std::int64_t row : grid_stride(book.sites)) {
    keys[row] = key_of(book, book.shape, site_of(book, coords, row));
    rows[row] = static_cast<std::int32_t>(row);
  }
}

/// keys [sites], ascending, and their rows. Launch with any one-dimensional grid.
__global__ void count_equal_neighbours(std::int64_t sites, const std::int64_t* keys,
                                       const std::int32_t* rows, SiteErrors* errors) {
  const std::int64_t threads = threads_of_grid();
  for (std::int64_t i = 1 + thread_of_grid(); i < sites; i += threads) {
    if (keys[i] == keys[i - 1]) count_duplicate(errors, rows[i]);
  }
}

}  // namespace

void require_no_errors_on_device(const RulebookProblem& book, const std::int32_t* coords,
                                 const SiteErrors* errors) {
  const SiteErrors found = downloaded(errors);
  if (found.outside == 0 && found.duplicates == 0) return;
  // The message includes a row of coords.
  std::vector<std::int32_t> rows(static_cast<std::size_t>(book.sites) *
                                 static_cast<std::size_t>(1 + book.ndim));
  download(coords, rows.size(), rows.data());
  require_no_errors(book, found, rows);
}

SiteCheck::SiteCheck(const RulebookProblem& book, const std::int32_t* coords)
    : book_(book), coords_(coords), errors_(1) {
  const SiteErrors none;
  check(cudaMemcpyAsync(errors(), &none, sizeof none, cudaMemcpyHostToDevice, current_stream()));
  if (book.sites == 0) return;
  launch(count_outside, {blocks_for(book.sites, kThreads, kMaxBlocks), kThreads}, book, coords,
         errors());
  require_no_errors_on_device(book_, coords_, errors());
}

void SiteCheck::require_distinct() const { require_no_errors_on_device(book_, coords_, errors()); }

void sort_sites(const RulebookProblem& book, const std::int32_t* coords, std::int64_t* keys,
                std::int32_t* rows, SiteErrors* errors) {
  const DeviceArray<std::int64_t> unsorted_keys(book.sites);
  const DeviceArray<std::int32_t> unsorted_rows(book.sites);
  const unsigned blocks = blocks_for(book.sites, kThreads, kMaxBlocks);
  launch(number_sites, {blocks, kThreads}, book, coords, unsorted_keys.data(),
         unsorted_rows.data());
  sort_pairs(unsorted_keys.data(), unsorted_rows.data(), keys, rows, book.sites,
             key_bits(key_count(book, book.shape) - 1));
  launch(count_equal_neighbours, {blocks, kThreads}, std::int64_t{book.sites}, keys, rows, errors);
}

}  // namespace convladder::BACKEND

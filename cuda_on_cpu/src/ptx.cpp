/// @file
/// @brief The tensor-core instructions. The lane that leaves a meeting first computes for all: the
/// others are still suspended in it, and their operands on their stacks.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <cuda_on_cpu/ptx.hpp>

#include "block_runner.hpp"
#include "report_text.hpp"
#include "tf32.hpp"

namespace cuda_on_cpu::ptx {
namespace {

using detail::Site;
using detail::WarpFunction;
using detail::WarpMeeting;

/// Meets the warp, and lets one lane call `compute` with the operands of all.
template <class Operands, class Compute>
void compute_together(WarpFunction function, const char* name, Operands& mine, const Site& site,
                      Compute compute) {
  const WarpMeeting meeting(function, detail::kFullWarp, reinterpret_cast<std::uintptr_t>(&mine),
                            site);
  if (meeting.lanes() != detail::kFullWarp) {
    BlockRunner::of_running_kernel(name).fail_thread(
        cudaErrorLaunchFailure, "calls " + std::string(name) + " at " + describe_site(site) +
                                    " in a warp of which some lanes have exited, or never were.");
  }
  if (!meeting.is_first()) return;
  std::array<Operands*, kLanes> lanes;
  for (unsigned i = 0; i < kLanes; ++i) {
    lanes[i] = reinterpret_cast<Operands*>(static_cast<std::uintptr_t>(meeting.of(i)));
  }
  compute(lanes);
}

struct MatrixLoad {
  const void* row;
  std::uint32_t* fragment;
};

void load_matrices(WarpFunction function, const char* name, unsigned matrices,
                   std::uint32_t* fragment, const void* row, const Site& site) {
  BlockRunner& runner = BlockRunner::of_running_kernel(name);
  if (runner.lane() < 8 * matrices && reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    runner.fail_thread(cudaErrorMisalignedAddress, "calls " + std::string(name) + " at " +
                                                       describe_site(site) +
                                                       " with a row not aligned to 16 bytes.");
  }
  MatrixLoad mine{row, fragment};
  compute_together(function, name, mine, site, [&](const std::array<MatrixLoad*, kLanes>& lanes) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      for (unsigned m = 0; m < matrices; ++m) {
        const auto* const bytes = static_cast<const unsigned char*>(lanes[8 * m + lane / 4]->row);
        std::memcpy(&lanes[lane]->fragment[m], bytes + std::size_t{4} * (lane % 4), 4);
      }
    }
  });
}

struct MatrixProduct {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

void multiply(const std::array<MatrixProduct*, kLanes>& lanes) {
  double a[16][8], b[8][8], d[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const MatrixProduct& of = *lanes[lane];
    const unsigned group = lane / 4, place = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      a[group + i % 2 * 8][place + i / 2 * 4] = value_of_tf32(of.a[i]);
      d[group + i / 2 * 8][2 * place + i % 2] = static_cast<double>(of.d[i]);
    }
    for (unsigned i = 0; i < 2; ++i) b[place + i * 4][group] = value_of_tf32(of.b[i]);
  }
  for (unsigned m = 0; m < 16; ++m) {
    for (unsigned k = 0; k < 8; ++k) {
      for (unsigned n = 0; n < 8; ++n) d[m][n] += a[m][k] * b[k][n];
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned group = lane / 4, place = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      lanes[lane]->d[i] = rounded_towards_zero(d[group + i / 2 * 8][2 * place + i % 2]);
    }
  }
}

}  // namespace

void ldmatrix_x1(std::uint32_t (&fragment)[1], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x1, "ldmatrix.x1", 1, fragment, row, site);
}
void ldmatrix_x2(std::uint32_t (&fragment)[2], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x2, "ldmatrix.x2", 2, fragment, row, site);
}
void ldmatrix_x4(std::uint32_t (&fragment)[4], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x4, "ldmatrix.x4", 4, fragment, row, site);
}

std::uint32_t cvt_rna_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Infinities and NaNs are only cut off, as measured on an H200. Else half of the last bit that
  // stays is added: a carry is the exponent's.
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  return (bits + (finite ? 0x1000u : 0)) & ~0x1fffu;
}

void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      Site site) {
  MatrixProduct mine{d, a, b};
  compute_together(WarpFunction::mma_m16n8k8_tf32, "mma.sync.m16n8k8.tf32", mine, site, multiply);
}

}  // namespace cuda_on_cpu::ptx

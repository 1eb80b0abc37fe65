/// @file
/// @brief The tensor-core instructions. The lane that leaves a meeting first computes for all
/// lanes: the others are still suspended in it, and their operands are on their stacks.
#include <array>
#include <bit>
#include <cstring>
#include <cuda_on_cpu/ptx.hpp>

#include "block_runner.hpp"
#include "model_device.hpp"
#include "report_text.hpp"
#include "tensor_core.hpp"
#include "watching.hpp"

namespace cuda_on_cpu::ptx {
namespace {

using detail::Site;
using detail::WarpFunction;
using detail::WarpMeeting;

/// Ends the kernel unless the device supports the instruction. (Every model supports ldmatrix.)
void need(bool has, const char* name, const char* architecture, const Site& site) {
  if (has) return;
  BlockRunner& runner = BlockRunner::of_running_kernel(name);
  runner.fail_thread(cudaErrorIllegalInstruction,
                     "calls " + std::string(name) + " at " + describe_site(site) + ", but " +
                         text_of_need(name, architecture, *runner.launch().settings.model) + ".");
}

const control::DeviceModel& device_of(const char* function) {
  return *BlockRunner::of_running_kernel(function).launch().settings.model;
}

/// Lets the warp meet, and calls `compute` in one lane with the operands of all.
template <class Operands, class Compute>
void compute_together(WarpFunction function, const char* name, Operands& mine, const Site& site,
                      Compute compute) {
  const WarpMeeting meeting(function, detail::kFullWarp, reinterpret_cast<std::uintptr_t>(&mine),
                            site);
  if (meeting.lanes() != detail::kFullWarp) {
    BlockRunner::of_running_kernel(name).fail_thread(
        cudaErrorLaunchFailure, "calls " + std::string(name) + " at " + describe_site(site) +
                                    " in a warp in which some lanes have exited or do not exist.");
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

/// A lane's 4 bytes of a matrix with these 8 rows.
std::uint32_t part_of_matrix(const std::array<const unsigned char*, 8>& rows, unsigned lane,
                             bool transposed) {
  const unsigned group = lane / 4, place = lane % 4;
  std::uint32_t part;
  if (transposed) {
    std::uint16_t two[2];
    for (unsigned i = 0; i < 2; ++i) {
      std::memcpy(&two[i], rows[2 * place + i] + std::size_t{2} * group, sizeof two[i]);
    }
    std::memcpy(&part, two, sizeof part);
  } else {
    std::memcpy(&part, rows[group] + std::size_t{4} * place, sizeof part);
  }
  return part;
}

/// Requires the row address of a lane to be aligned, and reports the access to the watcher.
void name_row(inspect::Operation operation, const char* name, unsigned matrices, const void* row,
              const Site& site) {
  BlockRunner& runner = BlockRunner::of_running_kernel(name);
  if (runner.lane() >= 8 * matrices) return;
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    runner.fail_thread(cudaErrorMisalignedAddress, "calls " + std::string(name) + " at " +
                                                       describe_site(site) +
                                                       " with a row not aligned to 16 bytes.");
  }
  detail::tell_watcher(
      [&](inspect::Watcher& watcher) { watcher.touched(operation, row, 16, site); });
}

void load_matrices(WarpFunction function, const char* name, unsigned matrices, bool transposed,
                   std::uint32_t* fragment, const void* row, const Site& site) {
  name_row(inspect::Operation::load, name, matrices, row, site);
  MatrixLoad mine{row, fragment};
  compute_together(function, name, mine, site, [&](const std::array<MatrixLoad*, kLanes>& lanes) {
    for (unsigned m = 0; m < matrices; ++m) {
      std::array<const unsigned char*, 8> rows;
      for (unsigned i = 0; i < 8; ++i) {
        rows[i] = static_cast<const unsigned char*>(lanes[8 * m + i]->row);
      }
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        lanes[lane]->fragment[m] = part_of_matrix(rows, lane, transposed);
      }
    }
  });
}

struct MatrixStore {
  void* row;
  const std::uint32_t* fragment;
};

struct MatrixProduct {
  float* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

constexpr unsigned kRows = 16, kParts = 8 / kColumns;  ///< Elements of d, and vectors per row.

/// d [16][8] += a [16][depth] * b [depth][8], rounded once, towards zero. The products are exact.
CUDA_ON_CPU_HOT_LOOP
void multiply_tile(const double* a, const Doubles* b, unsigned depth, Floats* d) {
  for (unsigned m = 0; m < kRows; ++m, a += depth, d += kParts) {
    Doubles sums[kParts];
    for (unsigned j = 0; j < kParts; ++j) sums[j] = __builtin_convertvector(d[j], Doubles);
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned j = 0; j < kParts; ++j) sums[j] += a[k] * b[k * kParts + j];
    }
    for (unsigned j = 0; j < kParts; ++j) round_towards_zero(sums[j], &d[j]);
  }
}

/// Whether the product leaves all accumulators unchanged because an operand is zero, which is
/// frequent for tiles that exceed their problem.
template <FactorType kType>
bool changes_nothing(const std::array<MatrixProduct*, kLanes>& lanes) {
  std::uint32_t any_a = 0, any_b = 0;
  bool finite = true, stay = true;
  for (const MatrixProduct* const of : lanes) {
    for (unsigned i = 0; i < 4; ++i) {
      any_a |= magnitudes<kType>(of->a[i]);
      finite &= are_finite<kType>(of->a[i]);
    }
    for (unsigned i = 0; i < 2; ++i) {
      any_b |= magnitudes<kType>(of->b[i]);
      finite &= are_finite<kType>(of->b[i]);
    }
    Floats sums;
    std::memcpy(&sums, of->d, sizeof sums);
    stay &= zeros_leave(&sums, 1);
  }
  return (any_a == 0 || any_b == 0) && finite && stay;
}

template <FactorType kType>
void multiply(const std::array<MatrixProduct*, kLanes>& lanes) {
  if (changes_nothing<kType>(lanes)) return;
  constexpr unsigned kPart = per_register(kType), kDepth = 8 * kPart;
  double a[kRows][kDepth];
  Doubles b[kDepth][kParts];
  Floats d[kRows][kParts];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const MatrixProduct& of = *lanes[lane];
    const unsigned group = lane / 4, place = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      unpack<kType>(of.a[i], &a[group + i % 2 * 8][(place + i / 2 * 4) * kPart]);
      const unsigned column = 2 * place + i % 2;
      d[group + i / 2 * 8][column / kColumns][column % kColumns] = of.d[i];
    }
    for (unsigned i = 0; i < 2; ++i) {
      double values[kPart];
      unpack<kType>(of.b[i], values);
      for (unsigned j = 0; j < kPart; ++j) {
        b[(place + i * 4) * kPart + j][group / kColumns][group % kColumns] = values[j];
      }
    }
  }
  multiply_tile(&a[0][0], &b[0][0], kDepth, &d[0][0]);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned group = lane / 4, place = lane % 4;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned column = 2 * place + i % 2;
      lanes[lane]->d[i] = d[group + i / 2 * 8][column / kColumns][column % kColumns];
    }
  }
}

template <FactorType kType>
void multiply_together(WarpFunction function, const char* name, float* d, const std::uint32_t* a,
                       const std::uint32_t* b, const Site& site) {
  need(device_of(name).has_bf16_mma(), name, "sm_80", site);
  MatrixProduct mine{d, a, b};
  compute_together(function, name, mine, site, multiply<kType>);
}

}  // namespace

void ldmatrix_x1(std::uint32_t (&fragment)[1], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x1, "ldmatrix.x1", 1, false, fragment, row, site);
}
void ldmatrix_x2(std::uint32_t (&fragment)[2], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x2, "ldmatrix.x2", 2, false, fragment, row, site);
}
void ldmatrix_x4(std::uint32_t (&fragment)[4], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x4, "ldmatrix.x4", 4, false, fragment, row, site);
}
void ldmatrix_x2_trans(std::uint32_t (&fragment)[2], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x2_trans, "ldmatrix.x2.trans", 2, true, fragment, row, site);
}
void ldmatrix_x4_trans(std::uint32_t (&fragment)[4], const void* row, Site site) {
  load_matrices(WarpFunction::ldmatrix_x4_trans, "ldmatrix.x4.trans", 4, true, fragment, row, site);
}

void stmatrix_x4_trans(void* row, const std::uint32_t (&fragment)[4], Site site) {
  constexpr const char* kName = "stmatrix.x4.trans";
  need(device_of(kName).compute_capability >= 90, kName, "sm_90", site);
  name_row(inspect::Operation::store, kName, 4, row, site);
  MatrixStore mine{row, fragment};
  compute_together(
      WarpFunction::stmatrix_x4_trans, kName, mine, site,
      [](const std::array<MatrixStore*, kLanes>& lanes) {
        for (unsigned i = 0; i < kLanes; ++i) {
          const unsigned m = i / 8, row_in_matrix = i % 8;
          std::uint16_t elements[8];  // columns, which correspond to groups
          for (unsigned group = 0; group < 8; ++group) {
            const std::uint32_t part = lanes[4 * group + row_in_matrix / 2]->fragment[m];
            elements[group] = static_cast<std::uint16_t>(part >> 16 * (row_in_matrix % 2));
          }
          std::memcpy(lanes[i]->row, elements, sizeof elements);
        }
      });
}

std::uint32_t cvt_rna_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Infinities and NaNs are only truncated, as measured on an H200. Otherwise half of the last kept
  // bit is added; a carry propagates into the exponent.
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  return (bits + (finite ? 0x1000u : 0)) & ~0x1fffu;
}

void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      Site site) {
  multiply_together<FactorType::tf32>(WarpFunction::mma_m16n8k8_tf32, "mma.sync.m16n8k8.tf32", d, a,
                                      b, site);
}
void mma_m16n8k16_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                      Site site) {
  multiply_together<FactorType::f16>(WarpFunction::mma_m16n8k16_f16, "mma.sync.m16n8k16.f16", d, a,
                                     b, site);
}
void mma_m16n8k16_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                       Site site) {
  multiply_together<FactorType::bf16>(WarpFunction::mma_m16n8k16_bf16, "mma.sync.m16n8k16.bf16", d,
                                      a, b, site);
}

}  // namespace cuda_on_cpu::ptx

#include "ladders/fft.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::fft_ladder() {
  return {
      "fft",
      "discrete Fourier transform of lines and planes, complex or real",
      [](const Problem& problem) { return fft_signature(std::get<FftProblem>(problem)); },
      {
          CPU_ROW(cpu_reference, fft, dft, "", "the definition: a sum of L products a point"),
          branch("cpu_reference/fft/dft",
                 CPU_ROW(cpu_reference, fft, radix2, "cpu_reference/fft/dft",
                         "halves of halves: log2 L passes of butterflies, in reversed order")),
          CPU_ROW(cpu_reference, fft, stockham, "cpu_reference/fft/radix2",
                  "each pass writes to a second line, already in order: nothing is reversed"),
          branch("cpu_reference/fft/stockham",
                 CPU_ROW(cpu_reference, fft, real_pairs, "cpu_reference/fft/stockham",
                         "two real lines as one complex line: conjugates take them apart")),
          branch("cpu_reference/fft/real_pairs",
                 CPU_ROW(cpu_reference, fft, real_pairs_inverse, "cpu_reference/fft/real_pairs",
                         "the half spectra of two real lines as one, transformed back")),
          branch("cpu_reference/fft/stockham",
                 CPU_ROW(cpu_reference, fft, rows_and_columns, "cpu_reference/fft/stockham",
                         "two dimensions: a plane's rows are lines, and then its columns")),
          branch(
              "cpu_reference/fft/dft",
              chirp(CPU_ROW(cpu_reference, fft, bluestein, "cpu_reference/fft/stockham",
                            "any length: a convolution with a chirp, by transforms of a power of "
                            "two"))),
          CUDA_ROW(cuda_naive, fft, dft, "cpu_reference/fft/dft", "one thread a point of y"),
          CUDA_ROW(cuda_optimized, fft, passes, "cpu_reference/fft/stockham",
                   "a kernel a pass, a thread a butterfly: the line goes through memory log2 L "
                   "times"),
          CUDA_ROW(cuda_optimized, fft, shared, "cuda_optimized/fft/passes",
                   "all passes in one kernel: a block keeps its lines in shared memory"),
          CUDA_ROW(cuda_optimized, fft, registers, "cuda_optimized/fft/shared",
                   "eight points a thread in registers: three passes between two exchanges"),
          CUDA_ROW(cuda_optimized, fft, sixteen_points, "cuda_optimized/fft/registers",
                   "sixteen points a thread: 4096 are 16 * 16 * 16, with two exchanges in "
                   "place of three"),
          branch("cuda_optimized/fft/registers",
                 CUDA_ROW(cuda_optimized, fft, real_pairs, "cuda_optimized/fft/registers",
                          "two real lines as one complex line, taken apart by half an "
                          "exchange")),
          branch("cuda_optimized/fft/real_pairs",
                 CUDA_ROW(cuda_optimized, fft, real_pairs_inverse, "cuda_optimized/fft/real_pairs",
                          "the half spectra of two real lines put together by half an "
                          "exchange, and transformed back")),
          branch("cuda_optimized/fft/registers",
                 CUDA_ROW(cuda_optimized, fft, plane, "cuda_optimized/fft/registers",
                          "a small plane is a line whose passes begin anew for the rows")),
          branch("cuda_optimized/fft/shared",
                 CUDA_ROW(cuda_optimized, fft, warp, "cuda_optimized/fft/shared",
                          "short lines in a warp: lanes exchange points by shuffles")),
          branch("cuda_optimized/fft/registers",
                 CUDA_ROW(cuda_optimized, fft, four_step, "cuda_optimized/fft/registers",
                          "long lines as matrices: columns, a turn of each point, rows")),
          branch("cuda_optimized/fft/four_step",
                 CUDA_ROW(cuda_optimized, fft, rows_and_columns, "cuda_optimized/fft/four_step",
                          "large planes: four_step's two kernels, without a turn between "
                          "them")),
          branch("cpu_reference/fft/bluestein",
                 chirp(CUDA_ROW(cuda_optimized, fft, bluestein, "cuda_optimized/fft/passes",
                                "any length: a convolution with a chirp, by passes over lines of a "
                                "power of two"))),
      }};
}

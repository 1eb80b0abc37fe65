#include "ladders/fft.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::fft_ladder() {
  return {"fft",
          "discrete Fourier transform of complex lines, forward and inverse",
          [](const Problem& problem) { return fft_signature(std::get<FftProblem>(problem)); },
          {
              CPU_ROW(cpu_reference, fft, dft, "", "the definition: a sum of L products a point"),
              branch("cpu_reference/fft/dft",
                     CPU_ROW(cpu_reference, fft, radix2, "cpu_reference/fft/dft",
                             "halves of halves: log2 L passes of butterflies, in reversed order")),
              CPU_ROW(cpu_reference, fft, stockham, "cpu_reference/fft/radix2",
                      "each pass writes to a second line, already in order: nothing is reversed"),
              CUDA_ROW(cuda_naive, fft, dft, "cpu_reference/fft/dft", "one thread a point of y"),
              CUDA_ROW(cuda_optimized, fft, passes, "cpu_reference/fft/stockham",
                       "a kernel a pass, a thread a butterfly: the line goes through memory log2 L "
                       "times"),
              CUDA_ROW(cuda_optimized, fft, shared, "cuda_optimized/fft/passes",
                       "all passes in one kernel: a block keeps its lines in shared memory"),
              CUDA_ROW(cuda_optimized, fft, registers, "cuda_optimized/fft/shared",
                       "eight points a thread in registers: three passes between two exchanges"),
              branch("cuda_optimized/fft/shared",
                     CUDA_ROW(cuda_optimized, fft, warp, "cuda_optimized/fft/shared",
                              "short lines in a warp: lanes exchange points by shuffles")),
              branch("cuda_optimized/fft/registers",
                     CUDA_ROW(cuda_optimized, fft, four_step, "cuda_optimized/fft/registers",
                              "long lines as matrices: columns, a turn of each point, rows")),
          }};
}

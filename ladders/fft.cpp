#include "ladders/fft.hpp"

#include "ladders/rows.hpp"
#include "ladders/tables.hpp"

convladder::Ladder convladder::fft_ladder() {
  return {
      "fft", "discrete Fourier transform of lines and planes, complex or real",
      [](const Problem& problem) { return fft_signature(std::get<FftProblem>(problem)); },
      in_order({
          spine(
              "",
              {
                  CPU_ROW(cpu_reference, fft, dft, "", "definition: a sum of L products per point"),
                  CPU_ROW(
                      cpu_reference, fft, radix2, "cpu_reference/fft/dft",
                      "Cooley-Tukey radix 2: log2 L passes of butterflies, in bit-reversed order"),
                  CPU_ROW(
                      cpu_reference, fft, stockham, "cpu_reference/fft/radix2",
                      "Stockham: each pass writes to a second buffer, in order; no bit reversal"),
                  CUDA_ROW(cuda_naive, fft, dft, "cpu_reference/fft/dft",
                           "naive CUDA: one thread per point of y"),
                  CUDA_ROW(cuda_optimized, fft, passes, "cpu_reference/fft/stockham",
                           "one kernel per pass, one thread per butterfly: log2 L round trips "
                           "through global memory"),
                  CUDA_ROW(cuda_optimized, fft, shared_memory, "cuda_optimized/fft/passes",
                           "shared memory: one kernel computes all passes, and each block keeps "
                           "its lines in shared memory"),
                  CUDA_ROW(cuda_optimized, fft, radix8, "cuda_optimized/fft/shared_memory",
                           "register radix 8: a thread holds eight points and computes three "
                           "radix-2 passes between exchanges"),
                  CUDA_ROW(cuda_optimized, fft, radix16, "cuda_optimized/fft/radix8",
                           "register radix 16: 4096 = 16 x 16 x 16 points take two exchanges "
                           "instead of three"),
              }),
          alternatives({
              CPU_ROW(cpu_reference, fft, real_pairs, "cpu_reference/fft/stockham",
                      "real FFT: two real lines are transformed as one complex line and separated "
                      "by conjugate symmetry"),
              CPU_ROW(cpu_reference, fft, real_pairs_inverse, "cpu_reference/fft/real_pairs",
                      "inverse real FFT: the half spectra of two real lines are combined and "
                      "transformed back"),
              CPU_ROW(cpu_reference, fft, rows_and_columns, "cpu_reference/fft/stockham",
                      "2-D FFT: the rows of a plane, then its columns"),
              chirp(CPU_ROW(cpu_reference, fft, bluestein, "cpu_reference/fft/dft",
                            "Bluestein: any length, as a convolution with a chirp by transforms of "
                            "a power of two")),
              CUDA_ROW(cuda_optimized, fft, real_pairs, "cuda_optimized/fft/radix8",
                       "real FFT: two real lines as one complex line, separated by one "
                       "shared-memory exchange of half the points"),
              CUDA_ROW(cuda_optimized, fft, real_pairs_inverse, "cuda_optimized/fft/real_pairs",
                       "inverse real FFT: two half spectra are combined by half an exchange and "
                       "transformed back"),
              CUDA_ROW(cuda_optimized, fft, plane, "cuda_optimized/fft/radix8",
                       "small 2-D FFT: a plane is one line in shared memory"),
              CUDA_ROW(cuda_optimized, fft, warp, "cuda_optimized/fft/shared_memory",
                       "warp FFT: short lines stay in a warp, lanes exchange points by shuffles"),
              CUDA_ROW(cuda_optimized, fft, four_step, "cuda_optimized/fft/radix8",
                       "four-step FFT: long lines as matrices; columns, twiddle factors, rows"),
              CUDA_ROW(cuda_optimized, fft, rows_and_columns, "cuda_optimized/fft/four_step",
                       "large 2-D FFT: the two kernels of the four-step FFT without the twiddle "
                       "factors between them"),
              chirp(CUDA_ROW(
                  cuda_optimized, fft, bluestein, "cpu_reference/fft/bluestein",
                  "Bluestein: any length, as a convolution with a chirp by power-of-two passes")),
          }),
      })};
}

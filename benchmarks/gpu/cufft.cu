/// @file cufft.cu
/// @brief cuFFT's transforms of lines and planes, complex or real.
#include <memory>
#include <vector>

#include "benchmarks/gpu/baselines.hpp"
#include "benchmarks/gpu/kernels.hpp"
#include "core/cuda/launch.hpp"

#ifdef CONVLADDER_HAVE_CUFFT
#include <cufft.h>

namespace convladder::benchmarks {
namespace {

void check(cufftResult result) {
  if (result != CUFFT_SUCCESS) throw std::runtime_error(text("cuFFT's error ", result));
}

/// cuFFT's plan: all that it prepares for lines of a length, or for planes, its own table and
/// scratch memory, too.
class Plan {
 public:
  explicit Plan(const FftProblem& p) {
    std::vector<int> lengths;
    if (p.has_planes()) lengths.push_back(p.H);
    lengths.push_back(p.L);
    // Null: arrays are as ours, one line or plane behind the other, and distances are not read.
    check(cufftPlanMany(&plan_, static_cast<int>(lengths.size()), lengths.data(), nullptr, 1, 0,
                        nullptr, 1, 0, p.is_real() ? CUFFT_R2C : CUFFT_C2C, p.N));
    check(cufftSetStream(plan_, rung_stream()));
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() { static_cast<void>(cufftDestroy(plan_)); }

  cufftHandle get() const { return plan_; }

 private:
  cufftHandle plan_ = 0;
};

}  // namespace

std::vector<Baseline> cufft_baselines(const Contest& contest) {
  const auto* fft = std::get_if<FftProblem>(&contest.problem);
  if (fft == nullptr || fft->ring != FftRing::complex) return {};
  const int direction = fft->direction == FftDirection::forward ? CUFFT_FORWARD : CUFFT_INVERSE;
  return {{"cufft", [plan = std::make_shared<Plan>(*fft), direction,
                     is_real = fft->is_real()](const Arguments& arrays) {
             // cuFFT leaves its input alone where the output is another array.
             auto* const x = const_cast<float*>(arrays.in<float>("x"));
             auto* const y = reinterpret_cast<cufftComplex*>(arrays.out<float>("y"));
             if (is_real) return check(cufftExecR2C(plan->get(), x, y));
             check(cufftExecC2C(plan->get(), reinterpret_cast<cufftComplex*>(x), y, direction));
           }}};
}

}  // namespace convladder::benchmarks

#else

namespace convladder::benchmarks {
std::vector<Baseline> cufft_baselines(const Contest&) { return {}; }
}  // namespace convladder::benchmarks

#endif

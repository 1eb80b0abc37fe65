/// @file cufft.cu
/// @brief cuFFT's transform of complex lines.
#include <memory>

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

/// cuFFT's plan: all that it prepares for lines of a length, its own table and scratch memory, too.
class Plan {
 public:
  explicit Plan(const FftProblem& p) {
    int length = p.L;
    check(
        cufftPlanMany(&plan_, 1, &length, nullptr, 1, length, nullptr, 1, length, CUFFT_C2C, p.N));
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
  return {{"cufft", [plan = std::make_shared<Plan>(*fft), direction](const Arguments& arrays) {
             // cuFFT leaves its input alone where the output is another array.
             auto* x = reinterpret_cast<cufftComplex*>(const_cast<float*>(arrays.in<float>("x")));
             check(cufftExecC2C(plan->get(), x,
                                reinterpret_cast<cufftComplex*>(arrays.out<float>("y")),
                                direction));
           }}};
}

}  // namespace convladder::benchmarks

#else

namespace convladder::benchmarks {
std::vector<Baseline> cufft_baselines(const Contest&) { return {}; }
}  // namespace convladder::benchmarks

#endif

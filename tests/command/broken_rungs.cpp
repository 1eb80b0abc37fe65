/// @file broken_rungs.cpp
/// @brief The program `convladder` with rungs that are broken as CONVLADDER_BROKEN says: what
/// `fuzz` must find.
///
/// - wrong: cuda_naive/gemm/direct gives a wrong number where N is 33 or more and K is odd;
/// - crash: it ends the process where M is 20 or more;
/// - hang: it does not end where M is 20 or more;
/// - choice: it tells tall from wide matrices, and is wrong where M is 20 or more, and 1 more than
/// N;
/// - blind: cuda_naive/rulebook/two_phases takes sites that cannot be used.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <variant>

#include "command/interrupt.hpp"
#include "command/program.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "ladders/ladders.hpp"

namespace convladder {
namespace {

/// The rung's code where it is emulated. The table is not to be changed, but its rows can be.
AnyImplementation& code_of(const std::string& in_ladder, const std::string& name) {
  for (const Rung& rung : ladder(in_ladder).rungs) {
    if (rung.name == name) return *const_cast<Rung&>(rung).code[static_cast<int>(Where::emulated)];
  }
  std::abort();
}

void make_blind() {
  AnyImplementation& code = code_of("rulebook", "cuda_naive/rulebook/two_phases");
  for (auto* part : {&code.run, &code.finish}) {
    *part = [right = *part](const Problem& problem, const Arguments& arrays) {
      try {
        right(problem, arrays);
      } catch (const BadInput&) {
      }
    };
  }
}

/// Of several products, or of transposed matrices, the one that the rung computes.
const GemmProblem& product_of(const Problem& problem) {
  const auto* batch = std::get_if<GemmBatchProblem>(&problem);
  return batch != nullptr ? batch->product : std::get<GemmProblem>(problem);
}

void break_rung(const std::string& how) {
  if (how == "blind") return make_blind();
  AnyImplementation& code = code_of("gemm", "cuda_naive/gemm/direct");
  const AnyImplementation right = code;
  code.choice = [=](const Problem& problem) {
    const GemmProblem& p = product_of(problem);
    return std::string(p.M > p.N ? "tall" : "wide");
  };
  code.run = [=](const Problem& problem, const Arguments& arrays) {
    const GemmProblem& p = product_of(problem);
    if (how == "crash" && p.M >= 20) std::raise(SIGABRT);
    while (how == "hang" && p.M >= 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    right.run(problem, arrays);
    const bool wrong = (how == "wrong" && p.N >= 33 && p.K % 2 == 1) ||
                       (how == "choice" && p.M >= 20 && p.M == p.N + 1);
    if (!wrong) return;
    device_at(Where::emulated)->synchronize();
    device_at(Where::emulated)->upload(arrays.out<float>("c"), "\0\0\x80\x7f", sizeof(float));
  };
}

}  // namespace
}  // namespace convladder

int main(int argc, char** argv) {
  convladder::command::handle_interrupts();
  convladder::break_rung(std::getenv("CONVLADDER_BROKEN"));
  return convladder::command::run_program({argv + 1, argv + argc});
}

#include <cstdio>

#include "ladders/ladders.hpp"
#include "oracle/runner.hpp"

int main() {
  using namespace convladder;
  const Problem b1 = validated(Conv2dProblem{.C = 6, .H = 768, .W = 512, .K = 6, .R = 6, .S = 6});
  const Comparison comparison(ladder("conv2d"), b1, Data::integer, 1);
  for (const Rung& rung : ladder("conv2d").rungs) {
    for (const Where where : kEverywhere) {
      const Outcome outcome = comparison.run(rung, where);
      std::printf("%s %s %s %s %.1f ms\n", rung.name.c_str(), name_of(where), name_of(outcome.status),
                  outcome.reason.c_str(), outcome.milliseconds);
    }
  }
}

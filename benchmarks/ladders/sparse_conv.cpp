#include <string>

#include "benchmarks/ladders/problems_of_ladders.hpp"
#include "benchmarks/sites.hpp"
#include "core/text.hpp"

namespace convladder::benchmarks {
namespace {

void add_sparse_convolutions(BenchmarkProblems& all, const std::string& ladder) {
  const auto add = [&](const std::string& sites, int Cin, int Cout, const Window& window,
                       const std::string& teaches, bool bf16, bool relu = false) {
    const SparseConvProblem layer = {.book = book_over(sites, window, RulebookForm::pairs),
                                     .Cin = Cin,
                                     .Cout = Cout,
                                     .bias = relu,
                                     .activation = relu ? Activation::relu : Activation::none};
    const std::string channels = Cin == Cout ? text(Cin) : text(Cin, "-", Cout);
    all.push_back({ladder, text(sites, "-", channels, "-", window.id, relu ? "-relu" : ""), teaches,
                   layer, sites, bf16});
  };
  const bool forward = ladder == "sparse_conv";
  if (forward) add("sweep", 16, 16, kSubm3, "few channels: the first layers", false);
  add("sweep", 32, 32, kSubm3, "bound by traffic, and by the look-ups", false);
  add("sweep", 64, 64, kSubm3, "the everyday layer", true);
  if (forward) add("sweep", 64, 64, kSubm3, "with bias and ReLU", false, true);
  add("sweep", 128, 128, kSubm3, "many channels: arithmetic", false);
  for (const int channels : {32, 64, 128})
    add("large", channels, channels, kSubm3, "more than the L2 holds", false);
  add("sweep", 16, 32, kK3s2, "half the resolution", false);
  if (!forward) return;
  add("half", 32, 32, kSubm3, "a backbone's second stage", false);
  add("half", 32, 64, kK3s2, "a backbone's second stage, to the third", false);
  add("quarter", 64, 64, kSubm3, "a backbone's third stage", false);
  add("quarter", 64, 64, kFlat, "a backbone's third stage, to the fourth", false);
  add("eighth", 64, 64, kSubm3, "a backbone's fourth stage: little work for a GPU", false);
  add("eighth", 64, 128, kTop, "a backbone's last layer: three taps", false);
}

}  // namespace

BenchmarkProblems sparse_conv_problems() {
  BenchmarkProblems all;
  for (const char* ladder : {"sparse_conv", "sparse_dgrad", "sparse_wgrad"})
    add_sparse_convolutions(all, ladder);
  return all;
}

}  // namespace convladder::benchmarks

/// @file takes_test.cpp
/// @brief What each rung takes, as it is written down in golden/takes.txt. To the tests of a rung
/// an answer of supports() is right whatever it is, so that a rung which declines too much would
/// pass them: that is seen here alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "tests/dice.hpp"
#include "tests/problems.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

/// Sizes around the limits that rungs have, which are seldom wide.
int around(Dice& dice, int most) {
  constexpr int kSizes[] = {1, 2, 4, 8, 12, 16, 32, 48, 64, 128, 256, 1024, 65536};
  int size = 0;
  do {
    size = kSizes[dice(0, 12)] + dice(-1, 1);
    if (dice(0, 2) == 0) size = dice(1, 40);
  } while (size < 1 || size > most);
  return size;
}

Conv2dProblem conv_to_ask(Dice& dice) {
  Conv2dProblem p;
  p.groups = dice(0, 2) == 0 ? around(dice, 64) : 1;
  p.N = dice(0, 9) == 0 ? 0 : around(dice, 64);
  p.C = p.groups * (dice(0, 2) == 0 ? 1 : around(dice, 256));
  p.K = p.groups * (dice(0, 2) == 0 ? 1 : around(dice, 256));
  p.H = around(dice, 65537);
  p.W = around(dice, p.H > 256 ? 257 : 65537);
  p.R = dice(0, 2) == 0 ? around(dice, 33) : dice(1, 7);
  p.S = dice(0, 2) == 0 ? around(dice, 33) : p.R;
  p.pad = {dice(0, 3), dice(0, 3), dice(0, 3), dice(0, 3)};
  if (dice(0, 1) == 0) p.pad = {p.R / 2, p.R / 2, p.S / 2, p.S / 2};
  if (dice(0, 2) == 0) p.stride = {dice(1, 4), dice(1, 4)};
  if (dice(0, 3) == 0) p.dilation = {dice(1, 33), dice(1, 4)};
  p.bias = dice(0, 1) == 0;
  if (dice(0, 3) == 0) p.map = kTileMaps[static_cast<std::size_t>(dice(0, 10))].map;
  return validated(p);
}

Im2colProblem columns_to_ask(Dice& dice) {
  Im2colProblem p{.N = dice(0, 9) == 0 ? 0 : around(dice, 256),
                  .C = around(dice, 256),
                  .rank = dice(1, 3),
                  .request = static_cast<Request>(dice(0, 2))};
  const auto axis = [&](int longest) {
    return WindowAxis{
        around(dice, longest), dice(1, 5), dice(0, 4), dice(0, 4), dice(1, 5), dice(1, 4)};
  };
  p.width = axis(65537);
  if (p.rank >= 2) p.height = axis(257);
  if (p.rank >= 3) p.depth = axis(33);
  return validated(p);
}

Problem problem_to_ask(const std::string& ladder, Dice& dice) {
  if (ladder.starts_with("conv2d")) return conv_to_ask(dice);
  if (ladder == "im2col" || ladder == "col2im") return columns_to_ask(dice);
  if (ladder == "gemm")
    return validated(GemmProblem{.M = around(dice, 65537),
                                 .N = around(dice, 65537),
                                 .K = around(dice, 65537),
                                 .map = kTileMaps[static_cast<std::size_t>(dice(0, 10))].map});
  return random_problems(ladder, 1, static_cast<std::uint64_t>(dice(0, 1'000'000))).front().problem;
}

/// Rungs of sparse ladders do not look at the sites when they are asked: sizes that no sites have
/// will do.
void vary_sizes(Problem& problem, Dice& dice) {
  if (auto* conv = std::get_if<SparseConvProblem>(&problem)) {
    if (dice(0, 3) > 0) {
      conv->Cin = around(dice, 257);
      conv->Cout = around(dice, 257);
    }
    conv->bias = dice(0, 1) == 0;
    if (dice(0, 3) == 0) conv->book.KV = around(dice, 257);
    if (dice(0, 9) == 0) conv->M = 0;
  } else if (auto* pool = std::get_if<SparsePoolProblem>(&problem)) {
    pool->C = around(dice, 257);
  } else if (auto* dense = std::get_if<SparseToDenseProblem>(&problem)) {
    dense->C = around(dice, 257);
  }
}

/// Problems just within a limit of some rung, or just beyond, which dice do not find.
std::vector<Problem> at_limits(const std::string& ladder) {
  if (ladder == "conv2d_dgrad") {
    // 63 of 64 products are of padding.
    return {validated(Conv2dProblem{.H = 8, .W = 8, .R = 8, .S = 8})};
  }
  if (ladder == "rulebook") {
    // An input, or an output, whose windows reach beyond 2^31.
    std::vector<Problem> list;
    for (const SparseMode mode : {SparseMode::strided, SparseMode::transposed}) {
      const int extent = mode == SparseMode::strided ? 1 << 30 : 1 << 29;
      list.emplace_back(validated(RulebookProblem{
          .mode = mode, .ndim = 1, .shape = {{extent}}, .stride = {{2}}, .pad = {{1}}}));
    }
    return list;
  }
  if (ladder == "sparse_conv" || ladder == "sparse_dgrad" || ladder == "sparse_wgrad") {
    // More tiles of 32 channels than grid.y takes.
    constexpr int kMany = 65535 * 32 + 1;
    std::vector<Problem> list;
    for (const TestProblem& test : random_problems(ladder, 12, 1)) {  // of all modes
      auto many_in = std::get<SparseConvProblem>(test.problem), many_out = many_in;
      many_in.Cin = many_out.Cout = kMany;
      list.insert(list.end(), {many_in, many_out});
    }
    return list;
  }
  return {};
}

std::vector<Problem> forms_to_ask(const std::string& ladder) {
  constexpr int kProblems = 400;
  Dice dice(2026);
  std::vector<Problem> all;
  const auto add = [&](const Problem& problem) {
    for (const std::vector<Problem>& forms : forms_of(problem))
      all.insert(all.end(), forms.begin(), forms.end());
  };
  for (const Problem& problem : at_limits(ladder)) add(problem);
  for (int count = 0; count < kProblems;) {
    try {
      Problem problem = problem_to_ask(ladder, dice);
      vary_sizes(problem, dice);
      add(problem);
      ++count;
    } catch (const BadInput&) {
      continue;  // a window that does not fit
    }
  }
  return all;
}

/// "<rung>.<where> <taken> of <asked>", by the rung and place.
std::map<std::string, std::string> written_down() {
  std::ifstream file(CONVLADDER_SOURCE_DIR "/tests/golden/takes.txt");
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with("#")) lines[line.substr(0, line.find(' '))] = line;
  return lines;
}

}  // namespace

TEST_SUITE_BEGIN("takes");

TEST_CASE("each rung takes what golden/takes.txt says, or the lines below belong there") {
  std::map<std::string, std::string> left = written_down();
  for (const Ladder& ladder : ladders()) {
    const std::vector<Problem> forms = forms_to_ask(ladder.name);
    for (const Rung& rung : ladder.rungs) {
      const Where where = rung.is_cuda() ? Where::emulated : Where::cpu;
      if (!rung.code_at(where)) continue;
      const auto taken = std::ranges::count_if(
          forms, [&](const Problem& form) { return !rung.code_at(where)->supports(form); });
      const std::string line =
          text(rung.name, ".", name_of(where), " ", taken, " of ", forms.size());
      const std::string was = std::exchange(left[line.substr(0, line.find(' '))], "");
      if (line != was) FAIL_CHECK(line);
    }
  }
  for (const auto& [name, line] : left) CHECK_MESSAGE(line.empty(), "no such rung: " << line);
}

TEST_SUITE_END();

}  // namespace convladder::testing

/// @file sparse_test.cpp
/// @brief Rulebooks and sparse convolutions beyond the common problems: golden answers, counts by
/// hand, and sites that must be refused.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/device.hpp"
#include "core/padding_after.hpp"
#include "ladders/ladders.hpp"
#include "ladders/rows.hpp"
#include "oracle/canonical.hpp"
#include "oracle/rulebook.hpp"
#include "tests/check.hpp"
#include "tests/contains.hpp"
#include "tests/dice.hpp"
#include "tests/golden.hpp"
#include "tests/identities.hpp"
#include "tests/refusal.hpp"
#include "tests/settings.hpp"
#include "tests/sparse_checks.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

std::int64_t pairs_of(const SparseCase& sites) { return rulebook_of(sites).pairs.shape()[0]; }

bool everywhere(const Site&) { return true; }

/// A rung of the forward pass that takes one type of numbers alone. @tparam kForgets the last
/// channel
template <class T, bool kForgets>
Rung convolution_of() {
  const Implementation<SparseConvArrays> code = {
      .supports = [](const SparseConvProblem& conv) -> Declined {
        if (conv.dtype != dtype_of<T>()) return text(name_of(dtype_of<T>()), " only");
        return {};
      },
      .run =
          [](const SparseConvProblem& conv, const SparseConvArrays& arrays, const Context&) {
            const T* features = arrays.features;
            const T* weights = arrays.weights;
            const std::int32_t* pairs = arrays.pairs;
            std::vector<float> sums(static_cast<std::size_t>(conv.M * conv.Cout));
            for (std::int64_t pair = 0; pair < conv.pairs; ++pair, pairs += kPairColumns) {
              for (int ci = 0; ci < conv.Cin - (kForgets ? 1 : 0); ++ci) {
                for (int co = 0; co < conv.Cout; ++co) {
                  sums[static_cast<std::size_t>(pairs[2] * conv.Cout + co)] +=
                      to_float(features[pairs[1] * conv.Cin + ci]) *
                      to_float(weights[(pairs[0] * conv.Cin + ci) * conv.Cout + co]);
                }
              }
            }
            std::ranges::transform(sums, arrays.y.template as<T>(),
                                   [](float sum) { return rounded_to<T>(sum); });
          }};
  return cpu_row("test/sparse_conv/one_type", AnyImplementation(code), "", "takes one type alone");
}

}  // namespace

TEST_SUITE_BEGIN("sparse");

TEST_CASE("golden: the reference gives all twenty answers") {
  REQUIRE(golden_cases().size() == 20);
  for (const GoldenCase& golden : golden_cases()) {
    INFO(golden.name, ": ", golden.why);
    const Rulebook book = rulebook_of(golden.sites);
    CHECK(numbers(book.out_coords) == golden.out_coords);
    CHECK(numbers(book.pairs) == golden.pairs);
    if (golden.all_ones_output.empty()) continue;
    const SparseConvProblem conv = convolution_over(book, {});
    Arrays inputs = rulebook_inputs(book, sparse_conv_signature(conv));
    for (const auto& [name, shape] :
         {std::pair{"features", Shape{conv.N, 1}}, {"weights", Shape{book.problem.KV, 1, 1}}}) {
      Array ones(DType::f32, shape);
      std::ranges::fill(ones.as<float>(), 1.0f);
      inputs.emplace(name, ones);
    }
    const std::vector<double> y = reference("sparse_conv", conv, inputs)[0].values;
    CHECK(std::vector<int>(y.begin(), y.end()) == golden.all_ones_output);
  }
}

TEST_CASE("pairs counted by hand: lines, planes, cubes, a checkerboard") {
  const auto line = [](const Site& s) { return s.at[0] == 4 && s.at[1] == 4; };
  const auto plane = [](const Site& s) { return s.at[0] == 4; };
  // Along an axis of L sites a kernel of K taps, dilated by d, has K L - d (K^2 - 1) / 4 pairs.
  const auto along = [](int L, int K, int d) { return K * L - d * (K * K - 1) / 4; };
  for (const int L : {4, 7, 9}) {
    for (const int K : {1, 3, 5}) {
      for (const int d : {1, 2}) {
        if (d * (K / 2) > L) continue;
        const int one = along(L, K, d);
        const RulebookProblem cube = subm(3, every_axis(L), every_axis(K), d);
        CHECK(pairs_of(case_where(cube, everywhere)) == one * one * one);
        if (L != 9) continue;
        CHECK(pairs_of(case_where(cube, line)) == one);
        CHECK(pairs_of(case_where(cube, plane)) == one * one);
      }
    }
  }
  CHECK(pairs_of(case_where(subm(3, every_axis(4)), [](const Site& s) {
          return (s.at[0] + s.at[1] + s.at[2]) % 2 == 0;
        })) == 32 + 12 * 18);
  RulebookProblem level = subm(3, every_axis(5));
  level.mode = SparseMode::strided;
  level.stride = every_axis(2);
  level.pad = every_axis(1);
  const Rulebook book = rulebook_of(case_where(level, everywhere));
  CHECK(book.pairs.shape()[0] == 343);
  CHECK(book.M == 27);
}

TEST_CASE("pairs counted by hand: a sphere's shell has as many neighbours as its voxels have") {
  const auto in_shell = [](int z, int y, int x) {
    const int distance = (z - 6) * (z - 6) + (y - 6) * (y - 6) + (x - 6) * (x - 6);
    return distance >= 20 && distance <= 30;
  };
  std::int64_t pairs = 0;
  for (int z = 0; z < 13; ++z) {
    for (int y = 0; y < 13; ++y) {
      for (int x = 0; x < 13; ++x) {
        if (!in_shell(z, y, x)) continue;
        for (int k = 0; k < 27; ++k) {
          pairs += in_shell(z + k / 9 - 1, y + k / 3 % 3 - 1, x + k % 3 - 1) ? 1 : 0;
        }
      }
    }
  }
  const SparseCase shell = case_where(
      subm(3, every_axis(13)), [&](const Site& s) { return in_shell(s.at[0], s.at[1], s.at[2]); });
  CHECK(pairs > 1000);
  CHECK(pairs_of(shell) == pairs);
}

TEST_CASE("a single voxel under k3 s2 p1 has two outputs for each odd coordinate") {
  RulebookProblem level = subm(3, every_axis(8));
  level.mode = SparseMode::strided;
  level.stride = every_axis(2);
  level.pad = every_axis(1);
  for (int z = 2; z <= 3; ++z) {
    for (int y = 2; y <= 3; ++y) {
      for (int x = 2; x <= 3; ++x)
        CHECK(rulebook_of(case_of(level, {{0, z, y, x}})).M == 1 << (z % 2 + y % 2 + x % 2));
    }
  }
}

TEST_CASE(
    "defect sparse 5: unusable sites are refused by every rung, with how many and the first") {
  struct Bad {
    std::vector<std::vector<int>> rows;
    std::string says;
  };
  const auto outside = [](const std::string& rows, const RulebookProblem& book, int first) {
    return text(rows, " lie outside of batch 2 and shape ", book.ndim == 3 ? "3," : "",
                "6,7; the first is row ", first);
  };
  const auto all_bad = [&](const RulebookProblem& book) {
    return std::vector<Bad>{
        {{{0, 1, 1}, {0, 2, 2}, {0, 1, 1}},
         "1 of 3 rows repeat the site of a row before; the first is row 2"},
        {{{0, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
         "2 of 4 rows repeat the site of a row before; the first is row 1"},
        {{{0, 1, 1}, {0, -1, 2}}, outside("1 of 2 rows", book, 1)},
        {{{0, 6, 1}, {0, 1, 7}, {0, 0, 0}}, outside("2 of 3 rows", book, 0)},
        {{{0, 0, 0}, {2, 1, 1}, {-1, 1, 1}}, outside("2 of 3 rows", book, 1)},
        {{{0, 0, 0}, {2, 1, 1}}, outside("1 of 2 rows", book, 1)},  // nothing else is wrong
        {{{0, 6, 1}, {0, 0, 0}}, outside("1 of 2 rows", book, 0)},
        {{{0, 0, 0}, {1, 2147483647, 1}}, "1 of 2 rows lie outside"},
        {{{0, 0, 0}, {1, -2147483647 - 1, 1}}, "1 of 2 rows lie outside"},
        {{{0, 0, 7}, {0, 1, 0}}, "1 of 2 rows lie outside"}};  // (0,7) has the key of (1,0)
  };
  const auto said = [](const auto& run) -> std::string {
    try {
      run();
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const int ndim : {2, 3}) {
    // In three dimensions with kernels of their own, in all forms, and the last thread first.
    RulebookProblem book = subm(ndim, ndim == 3 ? PerAxis{{3, 6, 7}} : PerAxis{{6, 7}});
    book.batch = 2;
    set_emulated_thread_order(ndim - 2, settings().seed);
    for (const SparseMode mode :
         {SparseMode::subm, SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
      book.mode = mode;
      for (Bad& bad : all_bad(book)) {
        if (ndim == 3) {
          for (std::vector<int>& row : bad.rows) row.insert(row.begin() + 1, 1);
        }
        const SparseCase sites = case_of(book, bad.rows);
        CHECK_MESSAGE(said([&] { rulebook_of(sites); }).find(bad.says) != std::string::npos,
                      bad.says);
        for (const Rung& rung : ladder("rulebook").rungs) {
          for (const Where where : kEverywhere) {
            const auto& code = rung.code_at(where);
            if (!code || device_at(where) == nullptr) continue;
            for (const std::vector<Problem>& forms : forms_of(sites.book)) {
              const Problem& form = forms.front();
              const bool pairs = std::get<RulebookProblem>(form).form == RulebookForm::pairs;
              if ((ndim == 2 && !pairs) || code->supports(form)) continue;
              const std::string message = said([&] {
                run_guarded(ladder("rulebook"), form, {{"coords", sites.coords}}, *code, where);
              });
              INFO(rung.name, " (", name_of(where), "), ", describe(form), ": ", message);
              CHECK(message.find(bad.says) != std::string::npos);
            }
          }
        }
      }
    }
  }
  set_emulated_thread_order(0, settings().seed);
}

TEST_CASE("rows in fours, and each array alone begins elsewhere") {
  // Problems of the lists misalign arrays in turn; which ones meet such rows is left to chance.
  const Ladder& convolutions = ladder("sparse_conv");
  Dice dice(4);
  const TestProblem test =
      sparse_problem(convolutions.name, "fours", random_case(subm(2, {{9, 8}}), 40, dice),
                     {.Cin = 8, .Cout = 16, .bias = true});
  std::vector<std::string> names;
  const Signature signature = convolutions.signature(test.problem);
  for (const auto* specs : {&signature.inputs, &signature.outputs})
    for (const ArraySpec& spec : *specs) names.push_back(spec.name);
  const Comparison comparison(convolutions, test.problem, Data::integer, settings().seed,
                              test.given);
  for (const Rung& rung : convolutions.rungs) {
    for (const Where where : kEverywhere) {
      const auto& code = rung.code_at(where);
      if (!code || device_at(where) == nullptr || code->supports(test.problem)) continue;
      for (const std::string& name : names) {
        const Outcome outcome = comparison.run(rung, where, {.offsets = {{name, 4}}});
        INFO(rung.name, " (", name_of(where), "), ", name, ": ", outcome.reason);
        CHECK(outcome.status == Status::agrees);
        CHECK(outcome.exact);
      }
    }
  }
}

TEST_CASE("identities apply to rungs that support 16-bit types only") {
  const auto failures = [](const Rung& rung) {
    const CheckReport report =
        check_identities(ladder("sparse_conv"), rung, Where::cpu, {.seed = settings().seed});
    CHECK(report.problems + static_cast<int>(report.failures.size()) > 0);
    return joined(report.failures, "; ");
  };
  CHECK(failures(convolution_of<Half, false>()) == "");
  CHECK(failures(convolution_of<BFloat16, false>()) == "");
  CHECK(failures(convolution_of<Half, true>()) != "");
  CHECK(failures(convolution_of<BFloat16, true>()) != "");
}

TEST_CASE("rungs that promise pairs in canonical order have it themselves") {
  // More rows than a tile has, sorted and in no order.
  Dice dice(27);
  const RulebookProblem volume = subm(3, {{4, 5, 40}});
  std::vector<SparseCase> all = {case_where(volume, everywhere), random_case(volume, 500, dice),
                                 case_where(subm(1, {{700}}, {{5}}, 3), everywhere)};
  for (const SparseMode mode : {SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
    RulebookProblem halved = volume;
    halved.mode = mode;
    halved.stride = every_axis(2);
    halved.pad = every_axis(1);
    all.push_back(random_case(halved, 500, dice));
  }
  for (const char* name : {"count_scan_fill", "input_lists"}) {
    for (const Rung& rung : ladder("rulebook").rungs) {
      if (!rung.name.ends_with(name)) continue;
      for (const Where where : kEverywhere) {
        const auto& code = rung.code_at(where);
        if (!code || device_at(where) == nullptr) continue;
        int taken = 0;
        for (const SparseCase& sites : all) {
          if (code->supports(sites.book)) continue;  // declined
          ++taken;
          const RungRun ran =
              run_guarded(ladder("rulebook"), sites.book, {{"coords", sites.coords}}, *code, where);
          INFO(rung.name, " (", name_of(where), "), ", sites.book.sites, " sites");
          CHECK(ran.damage == "");
          CHECK(numbers(ran.outputs.at("pairs")) == numbers(rulebook_of(sites).pairs));
        }
        INFO(rung.name, " (", name_of(where), ")");
        CHECK(taken == 3);  // those of submanifold rulebooks, or those of new sites
      }
    }
  }
}

TEST_CASE("padding that differs at both ends sets the output extents alone") {
  RulebookProblem book = subm(2, {{9, 8}}, {{3, 4}});
  book.stride = {{2, 1}};
  book.pad = {{2, 0}};
  const PerAxis after = {{0, 3}};
  book.mode = SparseMode::strided;
  const RulebookProblem strided = validated(with_padding_after(book, after));
  CHECK(strided.out_shape[0] == (9 + 2 + 0 - 3) / 2 + 1);
  CHECK(strided.out_shape[1] == (8 + 0 + 3 - 4) / 1 + 1);
  CHECK(contains(describe(strided), ", pad 2,0,0,3"));
  book.mode = SparseMode::transposed;
  book.out_padding = {{1, 0}};
  const RulebookProblem transposed = validated(with_padding_after(book, after));
  CHECK(transposed.out_shape[0] == 8 * 2 - 2 - 0 + 3 + 1);
  CHECK(transposed.out_shape[1] == 7 * 1 - 0 - 3 + 4);
  CHECK(contains(describe(transposed), ", pad 2,0,0,3, out-padding 1,0"));
  // The same padding at both ends is as it always was.
  const RulebookProblem same = validated(with_padding_after(book, book.pad));
  CHECK(describe(same) == describe(validated(book)));
  CHECK(same.out_shape[0] == validated(book).out_shape[0]);

  book.out_padding = {{2, 0}};
  CHECK_THROWS_WITH_AS(with_padding_after(book, after),
                       doctest::Contains("out-padding = 2: must be at least 0"), BadInput);
  book.mode = SparseMode::strided;
  CHECK_THROWS_WITH_AS(with_padding_after(book, after), "out-padding = 2: is for mode transposed",
                       BadInput);
  book.out_padding = {};
  CHECK_THROWS_WITH_AS(with_padding_after(book, {{0, -1}}), "pad = -1: must be at least 0",
                       BadInput);
}

TEST_CASE("parameters that make no sense are refused, with their names") {
  RulebookProblem even = subm(2, {{6, 6}}, {{3, 2}});
  CHECK(refusal(even).find("kernel = 2: must be odd in mode subm") == 0);
  RulebookProblem stride = subm(2, {{6, 6}});
  stride.stride = {{1, 2}};
  CHECK(refusal(stride).find("stride = 2: must be 1 in mode subm") == 0);
  RulebookProblem small = subm(2, {{6, 2}});
  small.mode = SparseMode::strided;
  CHECK(refusal(small).find("shape = 2: the kernel does not fit") == 0);
  RulebookProblem padding = subm(1, {{6}});
  padding.mode = SparseMode::transposed;
  padding.out_padding = {{1}};
  CHECK(refusal(padding).find("out-padding = 1: must be at least 0 and less than") == 0);
  padding.stride = {{2}};
  CHECK(refusal(padding).empty());
  RulebookProblem keys = subm(4, every_axis(2147483647));
  CHECK(refusal(keys).find("64-bit keys") != std::string::npos);
  RulebookProblem axes = subm(5, every_axis(1));
  CHECK(refusal(axes).find("shape = 5 axes: must be 1 to 4 axes") == 0);
}

TEST_SUITE_END();

}  // namespace convladder::testing

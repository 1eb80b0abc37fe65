/// @file sparse_test.cpp
/// @brief Rulebooks and sparse convolutions beyond the common problems: golden answers, counts by
/// hand, sites that must be refused, and the defects of well-known implementations.
///
/// "sparse n": number n of the catalogue of defects in spconv 1.x (1 to 12) and 2.x (13 to 17).
/// Not tests, because a correct result does not show them:
/// - sparse 8 (a fallback that starts with half-filled counters): there is no fallback here.
/// - sparse 11 (a cached rulebook used for other sites): nothing caches rulebooks.
/// - sparse 12 (64 KiB of local memory a thread for candidate lists): a matter of the compiler's
/// output;
///   no rung keeps a list of candidates.
#include <doctest/doctest.h>

#include <algorithm>
#include <cuda_on_cpu/control.hpp>

#include "core/device.hpp"
#include "core/site_errors.hpp"
#include "ladders/ladders.hpp"
#include "oracle/rulebook.hpp"
#include "tests/check.hpp"
#include "tests/dice.hpp"
#include "tests/settings.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

constexpr const char* kSparseLadders[] = {"rulebook", "sparse_conv", "sparse_dgrad",
                                          "sparse_wgrad"};

/// Checks every rung of every sparse ladder on these sites, in every place that is there; at least
/// one rung of each ladder must take them.
void check_all_rungs(const SparseCase& sites) {
  const CheckOptions options{.seed = settings().seed, .poison = settings().poison};
  for (const char* name : kSparseLadders) {
    const std::vector<TestProblem> tests = {sparse_problem(name, "defect", sites)};
    int most = 0;
    for (const Rung& rung : ladder(name).rungs) {
      for (const Where where : kEverywhere) {
        if (!rung.code_at(where) || device_at(where) == nullptr) continue;
        const CheckReport report = check_rung_on(tests, ladder(name), rung, where, options);
        INFO(rung.name, " (", name_of(where), "), seed ", settings().seed);
        for (const std::string& failure : report.failures) FAIL_CHECK(failure);
        most = std::max(most, report.problems);
      }
    }
    CHECK(most == 1);
  }
}

Rulebook rulebook_of(const SparseCase& sites) { return make_rulebook(sites.book, sites.coords); }

std::int64_t pairs_of(const SparseCase& sites) { return rulebook_of(sites).pairs.shape()[0]; }

std::vector<std::int32_t> numbers(const Array& array) {
  const auto span = array.as<std::int32_t>();
  return {span.begin(), span.end()};
}

RulebookProblem subm(int ndim, PerAxis shape, PerAxis kernel = every_axis(3), int dilation = 1) {
  return {.mode = SparseMode::subm,
          .ndim = ndim,
          .shape = shape,
          .kernel = kernel,
          .dilation = every_axis(dilation)};
}

std::string refusal(const RulebookProblem& book) {
  try {
    validated(book);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

bool everywhere(const Site&) { return true; }

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
  RulebookProblem book = subm(2, {{6, 7}});
  book.batch = 2;
  struct Bad {
    std::vector<std::vector<int>> rows;
    std::string says;
  };
  const std::vector<Bad> all = {
      {{{0, 1, 1}, {0, 2, 2}, {0, 1, 1}},
       "1 of 3 rows repeat the site of a row before; the first is row 2"},
      {{{0, 1, 1}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}},
       "2 of 4 rows repeat the site of a row before; the first is row 1"},
      {{{0, 1, 1}, {0, -1, 2}},
       "1 of 2 rows lie outside of batch 2 and shape 6,7; the first is row 1"},
      {{{0, 6, 1}, {0, 1, 7}, {0, 0, 0}},
       "2 of 3 rows lie outside of batch 2 and shape 6,7; the first is row 0"},
      {{{0, 0, 0}, {2, 1, 1}, {-1, 1, 1}},
       "2 of 3 rows lie outside of batch 2 and shape 6,7; the first is row 1"},
      {{{0, 0, 0}, {1, 2147483647, 1}}, "1 of 2 rows lie outside"},
      {{{0, 0, 0}, {1, -2147483647 - 1, 1}}, "1 of 2 rows lie outside"},
      {{{0, 0, 7}, {0, 1, 0}}, "1 of 2 rows lie outside"}};  // (0,7) has the key of (1,0)
  for (const SparseMode mode :
       {SparseMode::subm, SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
    book.mode = mode;
    for (const Bad& bad : all) {
      const SparseCase sites = case_of(book, bad.rows);
      const auto said = [&](const auto& run) -> std::string {
        try {
          run();
        } catch (const BadInput& error) {
          return error.what();
        }
        return "accepted";
      };
      CHECK_MESSAGE(said([&] { rulebook_of(sites); }).find(bad.says) != std::string::npos,
                    bad.says);
      for (const Rung& rung : ladder("rulebook").rungs) {
        for (const Where where : kEverywhere) {
          const auto& code = rung.code_at(where);
          if (!code || device_at(where) == nullptr || code->supports(sites.book)) continue;
          const std::string message = said([&] {
            run_guarded(ladder("rulebook"), sites.book, {{"coords", sites.coords}}, *code, where);
          });
          INFO(rung.name, " (", name_of(where), "), ", name_of(mode), ": ", message);
          CHECK(message.find(bad.says) != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("rungs that promise pairs in canonical order have it themselves") {
  // More rows than a tile has, sorted and in no order.
  Dice dice(27);
  const RulebookProblem volume = subm(3, {{4, 5, 40}});
  const std::vector<SparseCase> all = {case_where(volume, everywhere),
                                       random_case(volume, 500, dice),
                                       case_where(subm(1, {{700}}, {{5}}, 3), everywhere)};
  for (const char* name : {"count_scan_fill", "mirrored_lists"}) {
    for (const Rung& rung : ladder("rulebook").rungs) {
      if (!rung.name.ends_with(name)) continue;
      for (const Where where : kEverywhere) {
        const auto& code = rung.code_at(where);
        if (!code || device_at(where) == nullptr) continue;
        for (const SparseCase& sites : all) {
          const RungRun ran =
              run_guarded(ladder("rulebook"), sites.book, {{"coords", sites.coords}}, *code, where);
          INFO(rung.name, " (", name_of(where), "), ", sites.book.sites, " sites");
          CHECK(ran.damage == "");
          CHECK(numbers(ran.outputs.at("pairs")) == numbers(rulebook_of(sites).pairs));
        }
      }
    }
  }
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

TEST_CASE("defect sparse 1: more candidates than axes") {
  Dice dice(1);
  check_all_rungs(random_case(subm(2, {{20, 21}}, every_axis(3), 2), 200, dice));
  check_all_rungs(random_case(subm(2, {{20, 21}}, every_axis(7)), 100, dice));
  check_all_rungs(random_case(subm(4, every_axis(5)), 100, dice));
}

TEST_CASE("defect sparse 2: a dilated submanifold kernel keeps its centre") {
  const SparseCase sites = case_of(subm(1, {{9}}, every_axis(3), 2), {{0, 1}, {0, 3}, {0, 4}});
  CHECK(numbers(rulebook_of(sites).pairs) ==
        std::vector<std::int32_t>{0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 1, 0});
  check_all_rungs(sites);
}

TEST_CASE("defect sparse 3: an even kernel has no centre") {
  CHECK(!refusal(subm(3, every_axis(8), every_axis(2))).empty());
}

TEST_CASE("defect sparse 4: stride and dilation over 1 together") {
  Dice dice(4);
  for (const SparseMode mode : {SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
    RulebookProblem book = subm(2, {{15, 12}}, every_axis(3), 2);
    book.mode = mode;
    book.stride = every_axis(2);
    check_all_rungs(random_case(book, 80, dice));
  }
}

TEST_CASE("defect sparse 6: a site that stands there twice is an error, not a race") {
  const SparseCase twice = case_of(subm(1, {{4}}), {{0, 1}, {0, 2}, {0, 1}});
  const SiteErrors errors = find_site_errors(twice.book, twice.coords.as<std::int32_t>());
  CHECK(errors.outside == 0);
  CHECK(errors.duplicates == 1);
  CHECK(errors.first_duplicate == 2);
}

TEST_CASE("defect sparse 7 and 9: no output at all, and none lost to a filler") {
  RulebookProblem book{.mode = SparseMode::strided, .ndim = 3, .shape = {{8, 20, 20}}};
  book.stride = every_axis(2);
  book.pad = {{0, 1, 1}};
  const SparseCase vanish = case_of(book, {{0, 7, 3, 3}});
  CHECK(rulebook_of(vanish).M == 0);
  check_all_rungs(vanish);
  // The last output has the largest key that there is.
  check_all_rungs(case_of(book, {{0, 6, 19, 19}, {0, 0, 0, 0}}));
  // Every candidate is an output: no filler between them.
  book.kernel = every_axis(2);
  book.pad = every_axis(0);
  check_all_rungs(case_of(book, {{0, 0, 0, 0}, {0, 7, 19, 19}, {0, 4, 5, 6}}));
}

TEST_CASE("defect sparse 10: a 1x1 kernel with a stride or padding is not a plain product") {
  RulebookProblem book{
      .mode = SparseMode::strided, .ndim = 2, .shape = {{9, 9}}, .kernel = every_axis(1)};
  book.stride = every_axis(2);
  Dice dice(10);
  const SparseCase sites = random_case(book, 50, dice);
  CHECK(rulebook_of(sites).M < 50);
  check_all_rungs(sites);
  book.stride = every_axis(1);
  book.pad = {{2, 1}};
  const SparseCase shifted = random_case(book, 50, dice);
  CHECK(numbers(rulebook_of(shifted).out_coords) != numbers(shifted.coords));
  check_all_rungs(shifted);
}

TEST_CASE("defect sparse 13 and 14: output volumes beyond 2^31 keep their sites") {
  for (const int extent : {1224, 1324}) {
    RulebookProblem book{.mode = SparseMode::transposed,
                         .ndim = 3,
                         .shape = every_axis(extent),
                         .kernel = every_axis(2)};
    book.stride = every_axis(2);
    const SparseCase sites = case_of(book, {{0, 285, 280, 256}});
    const Rulebook right = rulebook_of(sites);
    REQUIRE(right.M == 8);
    for (int row = 0; row < 8; ++row) {
      const Site site = site_of(sites.book, right.out_coords.as<std::int32_t>().data(), row);
      CHECK(site.at[0] == 570 + row / 4);
      CHECK(site.at[1] == 560 + row / 2 % 2);
      CHECK(site.at[2] == 512 + row % 2);
    }
    check_all_rungs(sites);
  }
}

TEST_CASE("defect sparse 15: 27 outputs of one input") {
  RulebookProblem book{.mode = SparseMode::strided, .ndim = 3, .shape = every_axis(13)};
  book.stride = every_axis(2);
  book.dilation = every_axis(2);
  book.pad = every_axis(2);
  const SparseCase one = case_of(book, {{0, 6, 6, 6}});
  CHECK(rulebook_of(one).M == 27);
  check_all_rungs(one);
}

TEST_CASE("defect sparse 16: the extent of a dilated transposed output") {
  for (int L = 1; L <= 5; ++L) {
    for (int K = 1; K <= 4; ++K) {
      for (int s = 1; s <= 3; ++s) {
        for (int d = 1; d <= 3; ++d) {
          RulebookProblem book{.mode = SparseMode::transposed,
                               .ndim = 1,
                               .shape = {{L}},
                               .kernel = {{K}},
                               .stride = {{s}},
                               .dilation = {{d}}};
          // The last output of the last input, without padding, is the last of the grid.
          CHECK(validated(book).out_shape[0] == (L - 1) * s + (K - 1) * d + 1);
        }
      }
    }
  }
}

TEST_CASE("defect sparse 17: more rows times taps than 32 bits hold are told apart") {
  SparseConvProblem conv{.book = validated(subm(3, every_axis(4)))};
  conv.pairs = std::int64_t{1} << 31;
  CHECK_THROWS_AS(validated(conv), BadInput);
  RulebookProblem many = subm(3, every_axis(1000));
  many.sites = 100'000'000;  // 27 * sites is over 2^31
  CHECK(rulebook_signature(validated(many)).inputs[0].shape == Shape{100'000'000, 4});
}

TEST_SUITE_END();

}  // namespace convladder::testing

/// @file sparse_defects_test.cpp
/// @brief The defects of well-known implementations of sparse convolution, each a test.
///
/// The catalogue of defects in spconv 1.x (D1 to D12) and 2.x (D13 to D17), as far as they concern
/// results. The test of Dn is called "defect sparse n"; a planted bug (tests/planted_bugs) is a
/// rung that has the defect, and that the common problems must find, too.
///
///     D1   fixed room for an input's candidates         test 1
///     D2   dilated kernels lose their centre            test 2
///     D3   even kernels have none                       test 3
///     D4   stride and dilation over 1, negative sites   test 4; negative sites: test 5
///     D5   sites are not validated                      test 5
///     D6   duplicates                                   test 6; refused by every rung: test 5
///     D7   empty results                                test 7 and 9
///     D8   a second build on counters of the first      test 8; counts_of_a_failed_build
///     D9   fillers counted as outputs                   test 7 and 9; output_taken_for_the_filler
///     D10  1x1 kernels taken for a plain product        test 10
///     D11  a cached rulebook used for other sites       test 11; first_rulebook_kept_for_all
///     D12  64 KiB of local memory a thread              test 12
///     D13  keys by the volume of the input              test 13 and 14; keys_of_32_bits
///     D14  64-bit keys cut to 32                        test 13 and 14; found_sites_of_32_bits
///     D15  a table too small for dilated outputs        test 15; taps_a_stride_apart_...
///     D16  the extent of dilated transposed outputs     test 16
///     D17  rows times taps in 32 bits                   test 17
#include <doctest/doctest.h>

#include <algorithm>
#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/inspect.hpp>
#include <memory>
#include <thread>
#include <type_traits>

#include "core/device.hpp"
#include "core/site_errors.hpp"
#include "ladders/ladders.hpp"
#include "oracle/canonical.hpp"
#include "oracle/rulebook.hpp"
#include "tests/check.hpp"
#include "tests/dice.hpp"
#include "tests/refusal.hpp"
#include "tests/settings.hpp"
#include "tests/sparse_checks.hpp"
#include "tests/sparse_problems.hpp"

namespace convladder::testing {
namespace {

constexpr const char* kSparseLadders[] = {"rulebook",        "sparse_conv",
                                          "sparse_dgrad",    "sparse_wgrad",
                                          "sparse_max_pool", "sparse_max_pool_dgrad"};

/// Checks every rung of every sparse ladder on these sites, one after the other, in every place
/// that is there; at least one rung of each ladder must take them all.
void check_all_rungs(const std::vector<SparseCase>& cases) {
  CheckOptions options = options_for(settings());
  options.real_mode = false;  // all of them are mistakes about places, which exact data show
  for (const char* name : kSparseLadders) {
    std::vector<TestProblem> tests;
    for (const SparseCase& sites : cases) {
      tests.push_back(sparse_problem(name, "defect", sites));
      tests.back().once = settings().small;
    }
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
    CHECK(most == static_cast<int>(cases.size()));
  }
}

void check_all_rungs(const SparseCase& sites) { check_all_rungs(std::vector{sites}); }

/// Calls body(rung, where, code, form) for each rung of the rulebook ladder that takes a form of
/// the problem, in every place that is there, with the first such form.
template <class Body>
void for_each_rulebook_rung(const RulebookProblem& book, const Body& body) {
  for (const Rung& rung : ladder("rulebook").rungs) {
    for (const Where where : kEverywhere) {
      const auto& code = rung.code_at(where);
      if (!code || device_at(where) == nullptr) continue;
      std::optional<Problem> form;
      for (const std::vector<Problem>& forms : forms_of(book)) {
        for (const Problem& candidate : forms) {
          if (!form && !code->supports(candidate)) form = candidate;
        }
      }
      if (!form) continue;
      INFO(rung.name, " (", name_of(where), "): ", describe(*form));
      body(rung, where, *code, std::get<RulebookProblem>(*form));
    }
  }
}

/// The sites as a mirror shows them, row by row.
SparseCase mirrored(SparseCase sites) {
  const auto columns = static_cast<std::size_t>(1 + sites.book.ndim);
  const auto to = sites.coords.as<std::int32_t>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (i % columns > 0) {
      const int axis = static_cast<int>(i % columns) - 1;
      to[i] = sites.book.shape[axis] - 1 - to[i];
    }
  }
  return sites;
}

/// Runs a rulebook's rung repeatedly on the same memory, which is not cleared in between.
class SameMemory {
 public:
  SameMemory(const AnyImplementation& code, Where where, const RulebookProblem& book)
      : code_(&code), device_(device_at(where)), book_(book),
        workspace_(allocated(code.workspace_bytes(book))),
        coords_(allocated(static_cast<std::size_t>(book.sites * (1 + book.ndim)) *
                          sizeof(std::int32_t))) {}

  /// @throws BadInput for sites that are refused.
  Arrays run(const Array& coords) {
    device_->upload(coords_.get(), coords.data(), coords.size_bytes());
    std::map<std::string, std::pair<Array, Memory>> created;
    const Arguments arguments({{"coords", DType::i32, coords_.get()}}, {},
                              {.workspace = workspace_.get()},
                              [&](const std::string& name, DType dtype, const Shape& shape) {
                                Array array(dtype, shape);
                                Memory memory = allocated(array.size_bytes());
                                return created.insert_or_assign(name, std::pair{array, memory})
                                    .first->second.second.get();
                              });
    code_->run(book_, arguments);
    device_->synchronize();
    code_->finish(book_, arguments);
    Arrays outputs;
    for (auto& [name, output] : created) {
      auto& [array, memory] = output;
      device_->download(array.data(), memory.get(), array.size_bytes());
      outputs.emplace(name, std::move(array));
    }
    return outputs;
  }

 private:
  using Memory = std::shared_ptr<void>;
  Memory allocated(std::size_t bytes) const {
    Device* const device = device_;
    return {device->allocate(bytes), [device](void* memory) { device->release(memory); }};
  }

  const AnyImplementation* code_;
  Device* device_;
  RulebookProblem book_;
  Memory workspace_, coords_;
};

}  // namespace

TEST_SUITE_BEGIN("sparse");

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

TEST_CASE("defect sparse 8: a build that failed leaves nothing to the next one") {
  // Where spconv's hash table cannot be built, the rulebook is made once more, by other code, on
  // counters that are filled already. Here, too, one build may stop in the middle: at sites that it
  // refuses. Then comes another, in the same memory. (Each rung has one way only: none falls back.)
  for (const SparseMode mode :
       {SparseMode::subm, SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
    RulebookProblem book = subm(3, {{5, 6, 7}});
    book.mode = mode;
    Dice dice(8);
    const SparseCase good = random_case(book, 70, dice);
    SparseCase bad = good;  // two rows of the same site
    const auto rows = bad.coords.as<std::int32_t>();
    std::copy_n(rows.begin(), 4, rows.end() - 4);
    for_each_rulebook_rung(good.book, [&](const Rung&, Where where, const AnyImplementation& code,
                                          const RulebookProblem& form) {
      SameMemory memory(code, where, form);
      CHECK_THROWS_AS(memory.run(bad.coords), BadInput);
      for (int again = 0; again < 2; ++again) {
        const Arrays found = canonical(form, memory.run(good.coords));
        for (const Expected& expected : reference("rulebook", form, {{"coords", good.coords}})) {
          const auto output = found.find(expected.spec.name);
          if (output == found.end()) continue;  // an optional one
          const Verdict verdict = judge(expected, output->second, Data::integer, form, {});
          CHECK_MESSAGE(verdict.agrees, verdict.difference);
        }
      }
    });
  }
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

TEST_CASE("defect sparse 11: the same layer on other sites has another rulebook") {
  // A problem is its parameters and sizes: nothing in it could hold a rulebook, or find one. Nor
  // may a rung keep one, for the next problem that looks the same.
  static_assert(std::is_trivially_copyable_v<SparseConvProblem> &&
                std::is_trivially_copyable_v<RulebookProblem>);
  Dice dice(11);
  for (const SparseMode mode : {SparseMode::subm, SparseMode::strided, SparseMode::inverse}) {
    RulebookProblem book = subm(2, {{9, 11}});
    book.mode = mode;
    if (mode != SparseMode::subm) {
      book.stride = every_axis(2);
      book.pad = every_axis(1);
    }
    const SparseCase one = random_case(book, 40, dice), other = mirrored(one);
    const auto problem = [](const SparseCase& sites) {
      return std::get<SparseConvProblem>(sparse_problem("sparse_conv", "", sites).problem);
    };
    // To all appearances the same; but the pairs are others.
    REQUIRE(describe(problem(one)) == describe(problem(other)));
    REQUIRE(problem(one).M == problem(other).M);
    REQUIRE(problem(one).most_pairs == problem(other).most_pairs);
    REQUIRE(numbers(rulebook_of(one).pairs) != numbers(rulebook_of(other).pairs));
    check_all_rungs({one, other, one});
  }
}

TEST_CASE("defect sparse 12: no list of candidates in local memory") {
  // 4096 candidates, as mmcv has them, are 64 KiB a thread: a GPU sets that aside for every thread
  // that can be resident, 16.5 GiB on an H200. Here they would lie on the threads' stacks.
  constexpr std::size_t kMost = 32 * 1024;
  namespace control = cuda_on_cpu::control;
  const unsigned workers = control::worker_threads();
  control::set_worker_threads(1);  // all blocks on the thread that launches them
  for (const SparseMode mode :
       {SparseMode::subm, SparseMode::strided, SparseMode::transposed, SparseMode::inverse}) {
    RulebookProblem book = subm(3, {{7, 8, 9}}, every_axis(5));
    book.mode = mode;
    Dice dice(12);
    const SparseCase sites = random_case(book, 60, dice);
    for_each_rulebook_rung(sites.book, [&](const Rung&, Where where, const AnyImplementation& code,
                                           const RulebookProblem& form) {
      if (where != Where::emulated) return;
      std::size_t deepest = 0;
      std::thread([&] {  // has no stacks of earlier kernels
        run_guarded(ladder("rulebook"), form, {{"coords", sites.coords}}, code, where);
        deepest = cuda_on_cpu::inspect::deepest_stack();
      })
          .join();
      CHECK(deepest > 0);
      CHECK(deepest <= kMost);
    });
  }
  control::set_worker_threads(workers);
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

/// @file benchmarks_test.cpp
/// @brief The table of benchmark problems, the files of runs, and going on with one.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "benchmarks/contests.hpp"
#include "benchmarks/runs.hpp"
#include "ladders/ladders.hpp"
#include "provenance/provenance.hpp"

namespace convladder::testing {
namespace {

using namespace benchmarks;

/// A row of a rung as it is now.
Row row_of_rung(const std::string& rung, const std::string& problem,
                const std::string& l2 = "warm") {
  Row row;
  row.ladder = "conv2d";
  row.rung = rung;
  row.source_hash = built_source_hashes().at(rung);
  row.problem = problem;
  row.dtype = "fp32";
  row.layout = "nchw";
  row.l2 = l2;
  row.median_us = 123.456;
  row.spread_us = 1;
  row.roofline = 0.5;
  row.bytes = 18'733'000;
  row.launches = 2;
  row.baselines = {{"cudnn implicit_gemm", 200}, {"cudnn winograd", 50}};
  row.limits = {{"copy", 40}, {"fma", 61.728}};
  return row;
}

const std::string kDirect = "cuda_naive/conv2d/direct";
const std::string kTiled = "cuda_optimized/conv2d/direct/tiled";

const Row* find(const Run& run, const std::string& rung, const std::string& problem,
                const std::string& l2 = "warm") {
  return benchmarks::row_of(run, "conv2d", rung, problem, "fp32", "nchw", l2);
}

}  // namespace

TEST_SUITE_BEGIN("benchmarks");

TEST_CASE("the table of problems: ladders that exist, in order, each id once, all valid") {
  std::set<std::pair<std::string, std::string>> seen;
  std::size_t last = 0;
  for (const BenchmarkProblem& problem : benchmark_problems()) {
    CAPTURE(problem.ladder);
    CAPTURE(problem.id);
    CHECK(seen.emplace(problem.ladder, problem.id).second);
    CHECK_FALSE(problem.teaches.empty());
    std::size_t place = 0;
    while (place < ladders().size() && ladders()[place].name != problem.ladder) ++place;
    REQUIRE(place < ladders().size());
    CHECK(place >= last);
    last = place;
    // Their sizes fit, and there is a rung that takes them.
    const bool sparse = !problem.sites.empty();
    for (const ArraySpec& spec : ladders()[place].signature(problem.problem).outputs) {
      CHECK((sparse || spec.dynamic || element_count(spec.shape) > 0));  // some tell it later
    }
    CHECK(sparse == (problem.ladder == "rulebook" || problem.ladder.starts_with("sparse_")));
    if (sparse) CHECK(problem.id.starts_with(problem.sites + "-"));
    CHECK(problem.points.empty() == (problem.ladder != "voxelize"));
    CHECK_FALSE(describe(problem).empty());
    CHECK(std::ranges::any_of(ladders()[place].rungs, [&](const Rung& rung) {
      const auto& code = rung.code_at(rung.is_cuda() ? Where::emulated : Where::cpu);
      return code && !code->supports(problem.problem);
    }));
    // Ids are words: they stand in file names and on command lines.
    CHECK(problem.id.find_first_of(" /,;\"'*?") == std::string::npos);
  }
  for (const char* ladder : {"conv2d", "conv2d_dgrad", "conv2d_wgrad"}) {
    for (int i = 1; i <= 12; ++i) CHECK(seen.contains({ladder, text("B", i)}));
  }
  for (const int size : {1024, 2048, 4096, 8192})
    CHECK(seen.contains({"gemm", text("cube-", size)}));
  for (const char* sites : {"sweep", "large"}) {
    for (const char* id : {"-subm3-table", "-subm3-sorted", "-subm3-pairs", "-k3s2-table",
                           "-k3s2-pairs", "-k3s1-table", "-k2s2-table"}) {
      CHECK(seen.contains({"rulebook", text(sites, id)}));
    }
    for (const int channels : {32, 64, 128}) {
      for (const char* ladder : {"sparse_conv", "sparse_dgrad", "sparse_wgrad"})
        CHECK(seen.contains({ladder, text(sites, "-", channels, "-subm3")}));
    }
  }
  for (const char* ladder : {"sparse_max_pool", "sparse_max_pool_dgrad", "sparse_avg_pool"}) {
    for (const char* id : {"sweep-16-k2s2", "sweep-64-k2s2", "half-32-k3s2", "half-64-k3s2"})
      CHECK(seen.contains({ladder, id}));
  }
  for (const char* id : {"half-64-max", "half-64-mean", "eighth-128-mean"})
    CHECK(seen.contains({"sparse_global_pool", id}));
  for (const char* id : {"eighth-64", "eighth-128", "quarter-32"})
    CHECK(seen.contains({"sparse_to_dense", id}));
  for (const char* id : {"sweep-points", "large-points", "shuffled-points"})
    CHECK(seen.contains({"voxelize", id}));
}

TEST_CASE("sites of sparse problems are as many as the table says, and all that ids promise") {
  std::set<std::string> seen;
  for (const BenchmarkProblem& problem : benchmark_problems()) {
    const bool is_large = problem.sites == "large" || problem.sites == "shell-1024" ||
                          problem.sites == "cube-215" || problem.sites == "cube-100";
    if (problem.sites.empty() || is_large || !seen.insert(problem.sites).second) continue;
    CAPTURE(problem.sites);
    CHECK(sites_of(problem).shape()[0] > 0);  // throws where the table is wrong
  }
  CHECK(seen.size() == 12);
}

TEST_CASE("the sweep in other orders is the same sweep") {
  using Rows = std::vector<std::array<std::int32_t, 4>>;
  std::map<std::string, Rows> rows;
  for (const BenchmarkProblem& problem : benchmark_problems()) {
    const bool is_one = problem.sites == "sweep" || problem.sites == "scanned" ||
                        problem.sites == "reversed" || problem.sites == "shuffled";
    if (!is_one || rows.contains(problem.sites)) continue;
    const auto numbers = sites_of(problem).as<std::int32_t>();
    Rows& own = rows[problem.sites];
    for (std::size_t i = 0; i < numbers.size(); i += 4)
      own.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  }
  REQUIRE(rows.size() == 4);
  CHECK(std::ranges::is_sorted(rows["sweep"]));
  CHECK(std::ranges::equal(std::views::reverse(rows["reversed"]), rows["sweep"]));
  for (const char* name : {"scanned", "shuffled"}) {
    CHECK(!std::ranges::is_sorted(rows[name]));
    std::ranges::sort(rows[name]);
    CHECK(rows[name] == rows["sweep"]);
  }
}

TEST_CASE("a sparse problem is whole once its rulebook is there") {
  for (const BenchmarkProblem& problem : benchmark_problems()) {
    if (problem.ladder == "rulebook" && problem.id == "cube-10-subm3-table") {
      const Rulebook& book = rulebook_of(problem);
      CHECK(book.pairs.shape()[0] == 28 * 28 * 28);  // 3 L - 2 along each axis
      CHECK(&rulebook_of(problem) == &book);         // made once
      CHECK(operations(whole_problem(problem, problem.problem)) == 0);
    }
    if (problem.ladder == "sparse_conv" && problem.id == "eighth-64-128-k311s211") {
      const auto whole = std::get<SparseConvProblem>(whole_problem(problem, problem.problem));
      CHECK(whole.N == 14'780);
      CHECK(whole.M > 0);
      CHECK(whole.M <= 4 * 200 * 200);
      CHECK(whole.book.KV == 3);
      CHECK(whole.pairs >= whole.M);
      CHECK(operations(whole) == 2.0 * static_cast<double>(whole.pairs) * 64 * 128);
      CHECK(describe(problem).find("64 to 128 channels") != std::string::npos);
    }
  }
}

TEST_CASE("poolings and dense tensors: whole, without arithmetic, and no larger than fits") {
  int pools = 0, images = 0, tensors = 0;
  for (const BenchmarkProblem& problem : benchmark_problems()) {
    if (problem.ladder != "sparse_global_pool" && problem.ladder != "sparse_to_dense" &&
        !std::holds_alternative<SparsePoolProblem>(problem.problem))
      continue;
    CAPTURE(problem.ladder);
    CAPTURE(problem.id);
    const Problem whole = whole_problem(problem, problem.problem);
    CHECK(operations(whole) == 0);
    if (const auto* pool = std::get_if<SparsePoolProblem>(&whole)) {
      const Rulebook& book = rulebook_of(problem);
      CHECK(pool->N == sites_of(problem).shape()[0]);
      CHECK(pool->M == book.out_coords.shape()[0]);
      CHECK(pool->pairs >= pool->M);
      CHECK(pool->C == std::get<SparsePoolProblem>(problem.problem).C);
      // No argmax is -1, which is what outputs are poisoned with: each has a candidate.
      const auto outputs = book.pairs.as<std::int32_t>();
      std::vector<bool> has_candidate(static_cast<std::size_t>(pool->M));
      for (std::size_t i = 2; i < outputs.size(); i += kPairColumns)
        has_candidate[static_cast<std::size_t>(outputs[i])] = true;
      CHECK(std::ranges::find(has_candidate, false) == has_candidate.end());
      const std::string words = describe(problem);
      CHECK(words.find(text(pool->C, " channels")) != std::string::npos);
      CHECK(words.find("pairs") == std::string::npos);
      ++pools;
    } else if (const auto* dense = std::get_if<SparseToDenseProblem>(&whole)) {
      CHECK(dense->grid.sites == sites_of(problem).shape()[0]);
      CHECK(4 * cells_of(*dense) * dense->C <= 500'000'000);
      ++tensors;
    } else {
      const auto& global = std::get<SparseGlobalPoolProblem>(whole);
      CHECK(global.grid.sites == sites_of(problem).shape()[0]);
      ++images;
    }
  }
  CHECK(pools == 12);
  CHECK(images == 3);
  CHECK(tensors == 3);
}

TEST_CASE("operations are those of the definition") {
  for (const BenchmarkProblem& problem : benchmark_problems()) {
    if (problem.ladder == "conv2d" && problem.id == "B1") {
      CHECK(operations(problem.problem) == 2.0 * 763 * 507 * 6 * 6 * 36);
    }
    if (problem.ladder == "conv2d" && problem.id == "B12") {  // depthwise
      CHECK(operations(problem.problem) == 2.0 * 32 * 512 * 14 * 14 * 9);
    }
    if (problem.id == "cube-8192") CHECK(operations(problem.problem) == 2.0 * 8192 * 8192 * 8192);
    if (problem.ladder == "im2col") CHECK(operations(problem.problem) == 0);
  }
}

TEST_CASE("bounds of transforms are asked for problems of floats alone") {
  const Conv2dProblem conv = validated(
      Conv2dProblem{.N = 1, .C = 8, .H = 9, .W = 9, .K = 8, .R = 3, .S = 3, .pad = {1, 1, 1, 1}});
  for (const char* ladder : {"conv2d", "conv2d_dgrad"}) {
    BenchmarkProblem problem{ladder, "small", "", conv};
    problem.fp16 = true;
    std::map<DType, int> variants;
    for (const Variant& variant : variants_of(problem)) {
      CAPTURE(variant.dtype);
      const SampledData data = data_of(problem, variant.problem);
      CHECK(data.winograd.empty() == (data.dtype != DType::f32));
      CHECK(contest_of(problem, variant, data).samples.size() == 1);
      ++variants[data.dtype];
    }
    CHECK(variants.size() == 3);
  }
}

TEST_CASE("a run survives its file") {
  Run run;
  run.gpu = "NVIDIA H200";
  run.driver = "580.1";
  run.toolkit = "13.0";
  run.date = "2026-11-21";
  run.commit = "abc";
  run.ceilings = {{"copy_tb_s", 4.2}, {"fma_tflops", 65}};
  run.rows = {row_of_rung(kDirect, "B1"), row_of_rung(kDirect, "B1", "cold")};
  const Run again = from_json(to_json(run));
  CHECK(again.gpu == run.gpu);
  CHECK(again.cudnn.empty());
  CHECK(again.ceilings == run.ceilings);
  REQUIRE(again.rows.size() == 2);
  const Row& row = again.rows[0];
  CHECK(row.rung == kDirect);
  CHECK(row.median_us == 123.5);  // four digits
  CHECK(row.bytes == 18'733'000);
  CHECK(row.baselines == run.rows[0].baselines);
  CHECK(again.rows[1].l2 == "cold");
  CHECK(to_json(again) == to_json(from_json(to_json(again))));

  run.rows.clear();
  CHECK(from_json(to_json(run)).rows.empty());
  CHECK_THROWS(from_json("{}"));
  CHECK_THROWS(from_json("no JSON"));
}

TEST_CASE("a row has the keys that scripts rely on, in this order") {
  Run run;
  run.rows = {row_of_rung(kDirect, "B1")};
  const auto json = nlohmann::ordered_json::parse(to_json(run));
  const auto keys = [](const nlohmann::ordered_json& object) {
    std::string names;
    for (const auto& item : object.items()) names += item.key() + " ";
    return names;
  };
  CHECK(keys(json) == "gpu driver toolkit cudnn spconv date commit ceilings rows ");
  CHECK(
      keys(json["rows"][0]) ==
      "ladder rung source_hash problem dtype layout l2 median_us spread_us host_us tflops roofline "
      "bytes launches host_syncs registers shared_bytes spills occupancy baselines limits ");
}

TEST_CASE("scratch memory is told where a rung takes any") {
  Run run;
  run.rows = {row_of_rung(kDirect, "B1"), row_of_rung(kTiled, "B1")};
  run.rows[1].memory_bytes = std::int64_t{5} << 30;
  const auto json = nlohmann::json::parse(to_json(run));
  CHECK_FALSE(json["rows"][0].contains("memory_bytes"));
  CHECK(json["rows"][1]["memory_bytes"] == std::int64_t{5} << 30);
  const Run again = from_json(to_json(run));
  CHECK(again.rows[0].memory_bytes == 0);
  CHECK(again.rows[1].memory_bytes == std::int64_t{5} << 30);
}

TEST_CASE("going on with a run: rows of the same sources stay, others are timed again") {
  Run run;
  merge(run, {row_of_rung(kTiled, "B2"), row_of_rung(kTiled, "B1"),
              row_of_rung(kDirect, "B1", "cold"), row_of_rung(kDirect, "B1")});
  // In the order of the tables, whatever the order of measuring.
  REQUIRE(run.rows.size() == 4);
  CHECK(run.rows[0].rung == kDirect);
  CHECK(run.rows[1].rung == kTiled);
  CHECK(run.rows[2].l2 == "cold");
  CHECK(run.rows[3].problem == "B2");

  CHECK(find(run, kDirect, "B1") != nullptr);
  CHECK(find(run, kDirect, "B1", "cold") != nullptr);
  CHECK(find(run, kDirect, "B2") == nullptr);
  CHECK(find(run, kTiled, "B1", "cold") == nullptr);

  run.rows[0].source_hash = "of another time";
  CHECK(find(run, kDirect, "B1") == nullptr);
  run.rows[0].baselines = {{"spconv native", 5}, {"cudnn gone", 6}};
  Row fresh = row_of_rung(kDirect, "B1");
  fresh.median_us = 7;
  fresh.baselines = {{"cudnn new", 4}};
  merge(run, {fresh});
  // What another program has measured stays.
  CHECK(run.rows[0].baselines ==
        std::map<std::string, double>{{"cudnn new", 4}, {"spconv native", 5}});
  CHECK(run.rows.size() == 4);
  REQUIRE(find(run, kDirect, "B1") != nullptr);
  CHECK(find(run, kDirect, "B1")->median_us == 7);
}

TEST_CASE("rows of different machines do not mix") {
  Run now;
  now.gpu = "NVIDIA H200";
  now.driver = "580.1";
  Run earlier = now;
  earlier.date = "2020-01-01";
  earlier.commit = "another";
  CHECK(why_not_resumed(earlier, now).empty());
  earlier.driver = "570";
  CHECK(why_not_resumed(earlier, now) == "holds a run with driver 570, this one has 580.1");
  earlier.gpu = "NVIDIA A100";
  CHECK(why_not_resumed(earlier, now).find("GPU NVIDIA A100") != std::string::npos);
}

TEST_CASE("a rung is compared with the best baseline of its kind") {
  Row row = row_of_rung(kDirect, "B1");
  REQUIRE(best_baseline(row) != nullptr);
  CHECK(best_baseline(row)->first == "cudnn implicit_gemm");
  row.rung = "cuda_optimized/conv2d/winograd";
  CHECK(best_baseline(row)->first == "cudnn winograd");
  row.rung = kDirect;
  row.baselines = {{"cudnn fft_tiling", 50}};
  CHECK(best_baseline(row) == nullptr);
  // A time on the host's clock is none on the GPU's.
  row.baselines = {{"spconv native", 80}, {"spconv native, host clock", 60}};
  REQUIRE(best_baseline(row) != nullptr);
  CHECK(best_baseline(row)->first == "spconv native");
}

TEST_CASE("newest_run is the last by date") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / text("runs-", &kDirect);
  CHECK_FALSE(newest_run(folder));
  std::filesystem::create_directories(folder);
  CHECK_FALSE(newest_run(folder));
  for (const auto& [name, date] :
       {std::pair{"a.json", "2026-11-22"}, {"b.json", "2026-11-21"}, {"c.txt", "2027-01-01"}}) {
    Run run;
    run.date = date;
    run.gpu = name;
    std::ofstream(folder / name) << to_json(run);
  }
  const std::optional<Run> newest = newest_run(folder);
  std::filesystem::remove_all(folder);
  REQUIRE(newest);
  CHECK(newest->gpu == "a.json");
}

TEST_CASE("the committed runs can be read, and name rungs and problems") {
  std::optional<Run> run;
  CHECK_NOTHROW(
      run = newest_run(std::filesystem::path(CONVLADDER_SOURCE_DIR) / "benchmarks" / "results"));
  if (!run) return;
  CHECK_FALSE(run->rows.empty());
  for (const Row& row : run->rows) {
    CHECK(row.median_us > 0);
    CHECK((row.l2 == "warm" || row.l2 == "cold"));
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing

/// @file benchmarks_test.cpp
/// @brief The table of benchmark problems, the files of runs, and going on with one.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

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
const std::string kTiled = "cuda_optimized/conv2d/direct_tiled";

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
    // Their sizes fit, and the definition's rung takes them.
    for (const ArraySpec& spec : ladders()[place].signature(problem.problem).outputs) {
      CHECK(element_count(spec.shape) > 0);
    }
    CHECK_FALSE(ladders()[place].rungs.front().code_at(Where::cpu)->supports(problem.problem));
    // Ids are words: they stand in file names and on command lines.
    CHECK(problem.id.find_first_of(" /,;\"'*?") == std::string::npos);
  }
  for (const char* ladder : {"conv2d", "conv2d_dgrad", "conv2d_wgrad"}) {
    for (int i = 1; i <= 12; ++i) CHECK(seen.contains({ladder, text("B", i)}));
  }
  for (const int size : {1024, 2048, 4096, 8192})
    CHECK(seen.contains({"gemm", text("cube-", size)}));
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
  Row fresh = row_of_rung(kDirect, "B1");
  fresh.median_us = 7;
  merge(run, {fresh});
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

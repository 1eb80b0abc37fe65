/// @file verified_test.cpp
/// @brief The fingerprints of sources, and the check against the last run on a GPU.
#include "tests/verified.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/device.hpp"
#include "core/text.hpp"
#include "ladders/ladders.hpp"
#include "provenance/provenance.hpp"
#include "provenance/source_hash.hpp"
#include "tests/settings.hpp"

namespace convladder::testing {
namespace {

/// A folder of sources that is gone afterwards.
class SourceTree {
 public:
  SourceTree() : root_(std::filesystem::temp_directory_path() / text("hash-", this)) {
    std::filesystem::create_directories(root_);
  }
  SourceTree(const SourceTree&) = delete;
  SourceTree& operator=(const SourceTree&) = delete;
  ~SourceTree() { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << content;
  }
  const std::filesystem::path& root() const { return root_; }
  std::string hash(const std::string& name) const { return source_hash(root_, name); }

 private:
  std::filesystem::path root_;
};

}  // namespace

TEST_SUITE_BEGIN("verified");

TEST_CASE("without_comments drops comments and spaces that separate nothing") {
  CHECK(without_comments("int x = 1;  // one\n/* two\n */ int  y;") == "int x=1;int y;");
  CHECK(without_comments("a /* joins nothing */ b") == "a b");
  CHECK(without_comments("f( a,\n   b )") == without_comments("f(a, b)"));
}

TEST_CASE("without_comments leaves literals alone") {
  CHECK(without_comments("s = \"// no  comment\";") == "s=\"// no  comment\";");
  CHECK(without_comments("c = '\"'; // a quote") == "c='\"';");
  CHECK(without_comments("s = \"a\\\"// b\"; // c") == "s=\"a\\\"// b\";");
  CHECK(without_comments("n = 1'000'000; // digits") == "n=1'000'000;");
}

TEST_CASE("without_comments keeps a directive on its line") {
  CHECK(without_comments("#define A 1\nint x;\n#undef A\n") == "#define A 1\nint x;\n#undef A");
  CHECK(without_comments("#define A \\\n 1\nint x;") == "#define A 1\nint x;");
  CHECK(without_comments("#define A  // why\nint x;") == "#define A\nint x;");
}

TEST_CASE("source_hash does not see comments and formatting") {
  const SourceTree tree;
  tree.write("a.cu", "int x = 1;\n");
  const std::string hash = tree.hash("a.cu");
  CHECK(hash.size() == 16);
  tree.write("a.cu", "// a comment\nint   x\n  = 1; /* another */\n");
  CHECK(tree.hash("a.cu") == hash);
  tree.write("a.cu", "int x = 2;\n");
  CHECK(tree.hash("a.cu") != hash);
}

TEST_CASE("source_hash follows includes, beside the file and from the root, each once") {
  const SourceTree tree;
  tree.write("core/a.hpp", "#pragma once\n#include \"core/b.hpp\"\n#include <vector>\n");
  tree.write("core/b.hpp", "#pragma once\n#include \"core/a.hpp\"\nint b;\n");  // a circle
  tree.write("naive/near.cuh", "int near;\n");
  tree.write("naive/rung.cu", "#include \"core/a.hpp\"\n#include \"near.cuh\"\nint r;\n");
  const std::string hash = tree.hash("naive/rung.cu");

  tree.write("core/b.hpp", "#pragma once\n#include \"core/a.hpp\"\nint other;\n");
  CHECK(tree.hash("naive/rung.cu") != hash);
  tree.write("core/b.hpp", "#pragma once\n#include \"core/a.hpp\"\nint b;  // as before\n");
  CHECK(tree.hash("naive/rung.cu") == hash);
  tree.write("naive/near.cuh", "int far;\n");
  CHECK(tree.hash("naive/rung.cu") != hash);
}

TEST_CASE("source_hash leaves out the interface of all rungs, but not what else includes it") {
  const SourceTree tree;
  tree.write("core/implementation.hpp", "int a;\n");
  tree.write("core/b.hpp", "#include \"core/implementation.hpp\"\nint b;\n");
  tree.write("naive/rung.cu",
             "#include \"core/implementation.hpp\"\n#include \"core/b.hpp\"\nint r;\n");
  const std::string hash = tree.hash("naive/rung.cu");
  tree.write("core/implementation.hpp", "int other;\n");
  CHECK(tree.hash("naive/rung.cu") == hash);
  tree.write("core/b.hpp", "#include \"core/implementation.hpp\"\nint other;\n");
  CHECK(tree.hash("naive/rung.cu") != hash);
}

TEST_CASE("source_hash sees the kernels behind a header") {
  const SourceTree tree;
  tree.write("core/sort.hpp", "void sort();\n");
  tree.write("core/sort.cu", "void sort() { up(); }\n");
  tree.write("naive/rung.cu", "#include \"core/sort.hpp\"\n");
  const std::string hash = tree.hash("naive/rung.cu");
  tree.write("core/sort.cu", "void sort() { down(); }\n");
  CHECK(tree.hash("naive/rung.cu") != hash);
}

TEST_CASE("source_hash refuses a missing file") {
  const SourceTree tree;
  CHECK_THROWS_AS(tree.hash("absent.cu"), std::runtime_error);
  tree.write("a.cu", "#include \"absent.hpp\"\n");
  CHECK_THROWS_AS(tree.hash("a.cu"), std::runtime_error);
}

TEST_CASE("staleness: a rung that only a GPU verifies fails when it changed or is new") {
  const Verification record{
      .rungs = {{"same", "1"}, {"changed", "1"}, {"gpu_same", "1"}, {"gpu_changed", "1"}}};
  const Staleness found = staleness(record, {{"same", "1", false},
                                             {"changed", "2", false},
                                             {"new", "1", false},
                                             {"gpu_same", "1", true},
                                             {"gpu_changed", "2", true},
                                             {"gpu_new", "1", true}});
  CHECK(found.failures == std::vector<std::string>{"gpu_changed: changed since a GPU verified it",
                                                   "gpu_new: never verified on a GPU"});
  CHECK(found.changed == std::vector<std::string>{"changed"});
  CHECK(found.never == std::vector<std::string>{"new"});
}

TEST_CASE("staleness: without a record everything is new") {
  const Staleness found = staleness(std::nullopt, {{"a", "1", false}, {"b", "1", true}});
  CHECK(found.failures.size() == 1);
  CHECK(found.never == std::vector<std::string>{"a"});
}

TEST_CASE("a rung is verified when both its tests passed on the GPU") {
  const auto entry = [](const std::string& rung, const std::string& where, const std::string& kind,
                        const std::string& status) {
    return ReportEntry{"conv2d", rung, where, kind, status, 7, 42, {}, {}};
  };
  const std::vector<VerifiedRung> rungs = verified_rungs(
      {entry("a", "gpu", "problems", "passed"), entry("a", "gpu", "identities", "passed"),
       entry("b", "gpu", "problems", "passed"), entry("b", "gpu", "identities", "failed"),
       entry("c", "gpu", "problems", "failed"), entry("c", "gpu", "identities", "passed"),
       entry("d", "emulated", "problems", "passed"), entry("d", "emulated", "identities", "passed"),
       entry("e", "gpu", "problems", "passed")},
      {{"a", "11"}, {"b", "22"}, {"c", "33"}, {"d", "44"}, {"e", "55"}});
  REQUIRE(rungs.size() == 1);
  CHECK(rungs[0].rung == "a");
  CHECK(rungs[0].source_hash == "11");
  CHECK(rungs[0].problems == 7);
}

TEST_CASE("read_record understands what is written by hand, and refuses nonsense") {
  const SourceTree tree;
  CHECK_FALSE(read_record(tree.root() / "absent.json").has_value());
  tree.write("good.json",
             R"({"gpu": "G", "driver": "1", "toolkit": "13.0", "date": "2026-11-21", "commit": "c",
                 "rungs": [{"rung": "r", "source_hash": "h", "problems": 1, "comparisons": 2,
                            "identities": 3}]})");
  const auto record = read_record(tree.root() / "good.json");
  REQUIRE(record.has_value());
  CHECK(record->gpu == "G");
  CHECK(record->rungs.at(0).source_hash == "h");
  tree.write("bad.json", "{\"gpu\": 1");
  CHECK_THROWS(read_record(tree.root() / "bad.json"));
}

TEST_CASE("every CUDA rung of the table has a source and a hash") {
  int rungs = 0;
  for (const Ladder& ladder : ladders()) {
    for (const Rung& rung : ladder.rungs) {
      if (!rung.is_cuda()) continue;
      CAPTURE(rung.name);
      CHECK(built_source_hashes().contains(rung.name));
      ++rungs;
    }
  }
  CHECK(rungs > 0);
}

TEST_CASE("no rung that only a GPU can verify has changed since a GPU verified it") {
  const std::vector<RungState> states = rung_states();
  const std::optional<Verification> record = read_record(CONVLADDER_VERIFIED_FILE);
  const Staleness stale = staleness(record, states);
  if (record) {
    std::printf("last run on a GPU: %s, %s, %zu rungs\n", record->gpu.c_str(), record->date.c_str(),
                record->rungs.size());
  } else {
    std::printf("no run on a GPU is recorded in tests/verified_on_gpu.json\n");
  }
  for (const std::string& rung : stale.changed) {
    std::printf("  changed since then: %s\n", rung.c_str());
  }
  for (const std::string& rung : stale.never) std::printf("  not among them: %s\n", rung.c_str());
  for (const std::string& failure : stale.failures) FAIL_CHECK(failure);
  CHECK(!states.empty());
}

TEST_CASE("a GPU is there where CONVLADDER_REQUIRE_GPU asks for one") {
  CHECK((!settings().require_gpu || device_at(Where::gpu) != nullptr));
}

TEST_CASE("gpu_record_line counts every CUDA rung once, in a build without tests on a GPU") {
  const std::string line = gpu_record_line();
  CHECK(line.empty() == (toolkit_version() != "none"));
  if (!line.empty()) {
    CHECK(line.starts_with("GPU: none ran"));
    CHECK(line.find(text(" of ", rung_states().size(), " CUDA rungs")) != std::string::npos);
  }
}

TEST_SUITE_END();

}  // namespace convladder::testing

// The microscope: requests, sectors, wavefronts, races and unwritten memory of kernels with known
// results.
#include "microscope.hpp"

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cuda_on_cpu/control.hpp>
#include <cuda_on_cpu/microscope.hpp>
#include <numeric>
#include <vector>

namespace {

using namespace cuda_on_cpu::microscope;

constexpr std::size_t kElements = 4096;

/// Device memory under the microscope: "from", written by the host, and "to", unwritten.
class Bench {
 public:
  explicit Bench(const Options& options = {}) : lens(options) {
    cuda_on_cpu::control::reset();
    cuda_on_cpu::control::set_worker_threads(1);
    from = allocate("from");
    to = allocate("to");
    const std::vector<float> ones(kElements, 1.0f);
    cudaMemcpy(from, ones.data(), kElements * 4, cudaMemcpyHostToDevice);
  }
  ~Bench() {
    cudaFree(from);
    cudaFree(to);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Report report() {
    CHECK(cudaGetLastError() == cudaSuccess);
    return lens.report();
  }
  /// The totals of an array.
  Counts counts(const char* array, Operation operation) {
    const Report seen = report();
    REQUIRE(seen.kernels.size() == 1);
    Counts sum;
    for (const Line& line : seen.kernels[0].lines) {
      if (line.array == array && line.operation == operation) sum += line.counts;
    }
    return sum;
  }

  Microscope lens;
  float* from = nullptr;
  float* to = nullptr;

 private:
  float* allocate(const char* name) {
    void* memory = nullptr;
    cudaMalloc(&memory, kElements * 4);
    lens.name_array(memory, kElements * 4, 4, name);
    return static_cast<float*>(memory);
  }
};

std::vector<Race> errors_of(const Report& report) {
  std::vector<Race> errors;
  for (const Race& race : report.races) {
    if (race.is_error) errors.push_back(race);
  }
  return errors;
}

}  // namespace

TEST_SUITE_BEGIN("microscope");

TEST_CASE(
    "sectors of a request: copies with a stride, with an offset of one, and of four elements") {
  for (const int stride : {1, 2, 3, 4, 8, 16, 32}) {
    CAPTURE(stride);
    Bench bench;
    run_copy(bench.from, bench.to, 0, stride);
    const Counts loads = bench.counts("from", Operation::load);
    CHECK(loads.requests == 1);
    CHECK(loads.lanes == 32);
    CHECK(loads.bytes == 128);
    CHECK(loads.sectors == std::min(32, 4 * stride));
    CHECK(loads.sectors_ideal == 4);
    CHECK(bench.counts("to", Operation::store).sectors == 4);
  }
  Bench bench;
  run_copy(bench.from, bench.to, 1, 1);
  CHECK(bench.counts("from", Operation::load).sectors == 5);
}

TEST_CASE("a float4 is one load of 16 bytes") {
  Bench bench;
  run_copy_fours(bench.from, bench.to);
  const Counts loads = bench.counts("from", Operation::load);
  CHECK(loads.requests == 1);
  CHECK(loads.bytes == 512);
  CHECK(loads.sectors == 16);
  CHECK(bench.counts("to", Operation::store).sectors == 16);
}

TEST_CASE("one address for all lanes is one sector") {
  Bench bench;
  run_copy(bench.from, bench.to, 5, 0);
  const Counts loads = bench.counts("from", Operation::load);
  CHECK(loads.sectors == 1);
  CHECK(loads.sectors_ideal == 1);
}

TEST_CASE("a stride in shared memory takes as many wavefronts as lanes share a bank") {
  for (const int stride : {1, 2, 3, 4, 6, 8, 16, 32, 33}) {
    CAPTURE(stride);
    Bench bench;
    run_shared_stride(bench.to, stride);
    const Counts stores = bench.counts("tile", Operation::store);
    CHECK(stores.requests == 1);
    CHECK(stores.wavefronts == std::gcd(stride, 32));
    CHECK(stores.excess == std::gcd(stride, 32) - 1);
  }
}

TEST_CASE(
    "8 and 16 bytes per lane: more lanes per wavefront if all load the location of a lane 1 or 2 "
    "further") {
  struct Alike {
    int group, apart;
    bool more;
  };
  for (const int bytes : {8, 16}) {
    for (const auto& [group, apart, more] : {Alike{1, 1, false},
                                             {2, 1, true},
                                             {4, 1, true},
                                             {4, 2, true},
                                             {8, 4, false},
                                             {32, 1, true}}) {
      CAPTURE(bytes);
      CAPTURE(group);
      CAPTURE(apart);
      Bench bench;
      run_shared_wide(bench.to, bytes, group, apart);
      const Counts loads = bench.counts("line", Operation::load);
      CHECK(loads.requests == 1);
      CHECK(loads.wavefronts == bytes / 4 / (more ? 2 : 1));
      CHECK(loads.excess == 0);
      CHECK(bench.counts("line", Operation::store).wavefronts == bytes / 4);
    }
  }
}

TEST_CASE("16 bytes per lane: inactive lanes take no wavefront") {
  Bench bench;
  run_shared_few(bench.to);
  for (const Operation operation : {Operation::load, Operation::store}) {
    CHECK(bench.counts("few", operation).lanes == 8);
    CHECK(bench.counts("few", operation).wavefronts == 1);
  }
}

TEST_CASE(
    "adjacent accesses to shared memory are merged if they are known to lie in one 16-byte part") {
  for (const bool padded : {false, true}) {
    for (const Between between : {Between::nothing, Between::store, Between::copy}) {
      CAPTURE(padded);
      CAPTURE(static_cast<int>(between));
      Bench bench;
      run_add_neighbours(bench.from, bench.to, padded, between);
      const Counts loads = bench.counts("rows", Operation::load);
      CHECK(loads.requests == 2 * 2 * 8);
      // In rows of 65 floats the second warp's numbers have other offsets in their 16-byte parts. A
      // thread keeps loaded values until a store or a copy to the array.
      const unsigned times = between == Between::nothing ? 1 : 2;
      CHECK(loads.joined_requests == 2 * (padded ? 8 : 2) * times);
      CHECK(loads.joined_wavefronts == loads.joined_requests * (padded ? 1 : 2));
      CHECK(loads.joined_excess == 0);
      for (const Operation other : {Operation::store, Operation::async}) {
        const Counts counts = bench.counts("rows", other);
        CHECK(counts.joined_requests == counts.requests);
      }
    }
  }
}

TEST_CASE("a transpose: 32 wavefronts without padding, one with it") {
  for (const bool padded : {false, true}) {
    CAPTURE(padded);
    Bench bench;
    run_transpose(bench.from, bench.to, padded);
    const Counts loads = bench.counts("square", Operation::load);
    CHECK(loads.requests == 32);
    CHECK(loads.wavefronts == (padded ? 32 : 32 * 32));
    CHECK(bench.counts("square", Operation::store).excess == 0);
    const Report seen = bench.report();
    CHECK(seen.kernels[0].barriers == 32);
    CHECK(errors_of(seen).empty());
    CHECK(seen.unwritten.empty());
    CHECK(seen.loads.at("from") == 1024);
    CHECK(seen.footprint.at("from") == 4096);
  }
}

/// Lane i finds its value i % 4 locations after its first.
void fill_table(const Bench& bench) {
  std::vector<int> table(kElements, 0);
  for (int lane = 0; lane < 32; ++lane) table[static_cast<std::size_t>(lane * 8 + lane % 4)] = 1;
  cudaMemcpy(bench.from, table.data(), kElements * 4, cudaMemcpyHostToDevice);
}

TEST_CASE("lanes that leave a loop one after another: each iteration counts the remaining lanes") {
  Bench bench;
  fill_table(bench);
  run_probe(reinterpret_cast<const int*>(bench.from), reinterpret_cast<int*>(bench.to));
  const Counts loads = bench.counts("from", Operation::load);
  CHECK(loads.requests == 4);
  CHECK(loads.lanes == 32 + 24 + 16 + 8);
  CHECK(loads.sectors == 32 + 24 + 16 + 8);
  CHECK(bench.counts("to", Operation::store).requests == 1);
}

TEST_CASE("lanes that call a function reconverge after it returns") {
  Bench bench;
  fill_table(bench);
  run_look_up(reinterpret_cast<const int*>(bench.from), reinterpret_cast<int*>(bench.to));
  const Counts loads = bench.counts("from", Operation::load);
  CHECK(loads.requests == 4 * 3);
  CHECK(loads.lanes == 4 * 8 * (1 + 3));
  CHECK(bench.counts("to", Operation::store).requests == 4);
}

TEST_CASE("lanes that skip an iteration reconverge in the next one") {
  Bench bench;
  run_skip_odd(bench.from, bench.to);
  const Counts loads = bench.counts("from", Operation::load);
  CHECK(loads.requests == 4);
  CHECK(loads.lanes == 64);
  CHECK(bench.counts("to", Operation::store).requests == 1);
}

TEST_CASE("atomics: one request each, and the number of lanes at one address") {
  for (const int addresses : {1, 2, 8, 32}) {
    CAPTURE(addresses);
    Bench bench;
    cudaMemset(bench.to, 0, kElements * 4);
    run_add(bench.to, addresses);
    const Counts atomics = bench.counts("to", Operation::atomic);
    CHECK(atomics.requests == 1);
    CHECK(atomics.lanes == 32);
    CHECK(atomics.contention == 32 / addresses);
    CHECK(bench.report().races.empty());
  }
}

TEST_CASE("asynchronous copies: counted at both ends; read too early, a race") {
  for (const bool wait : {true, false}) {
    CAPTURE(wait);
    Bench bench;
    run_pipeline(bench.from, bench.to, 32, wait);
    CHECK(bench.counts("from", Operation::async).sectors == 4);
    CHECK(bench.counts("line", Operation::async).wavefronts == 1);
    CHECK(errors_of(bench.report()).empty() == wait);
  }
}

TEST_CASE("a trace lists requests in the order of their warp, and the waits for copies") {
  Bench bench({.trace = true});
  run_pipeline(bench.from, bench.to, 32, true);
  const Report seen = bench.report();
  REQUIRE(seen.traces.size() == 1);
  const TracedBlock& block = seen.traces[0];
  const Kernel& kernel = seen.kernels[block.kernel];
  std::vector<Operation> operations;
  for (const TracedRequest& request : block.requests) {
    CHECK(request.warp == 0);
    CHECK(request.lanes == ~0u);
    CHECK(request.interval < block.intervals);
    for (unsigned lane = 0; lane < 32; ++lane)
      CHECK(request.byte[lane] == request.byte[0] + 4 * lane);
    operations.push_back(kernel.lines[request.line].operation);
  }
  // From global memory to shared memory, and after the wait to global memory.
  CHECK(operations ==
        std::vector{Operation::async, Operation::async, Operation::load, Operation::store});
  std::size_t bytes = 0;
  for (const TracedLanding& landing : block.landings) {
    CHECK(landing.array == "line");
    bytes += landing.bytes;
  }
  CHECK(bytes == 32 * 4);
}

TEST_CASE("a trace separates the requests before a barrier from those after it") {
  Bench bench({.trace = true});
  run_neighbours(bench.to, true);
  const Report seen = bench.report();
  REQUIRE(seen.traces.size() == 1);
  const TracedBlock& block = seen.traces[0];
  CHECK(block.intervals == 2);
  for (const TracedRequest& request : block.requests) {
    const Line& line = seen.kernels[block.kernel].lines[request.line];
    const bool stores_the_line = line.array == "line" && line.operation == Operation::store;
    CHECK(request.interval == (stores_the_line ? 0 : 1));
  }
}

TEST_CASE("copies of 16 bytes per lane are executed a quarter of a warp at a time") {
  for (const int offset : {0, 1, 2}) {
    CAPTURE(offset);
    Bench bench;
    run_pipeline_fours(bench.from, bench.to, offset);
    const Counts reads = bench.counts("from", Operation::async);
    CHECK(reads.requests == 1);
    CHECK(reads.sectors == (offset % 2 == 0 ? 4 * 4 : 4 * 5));
    CHECK(reads.sectors_ideal == 16);
  }
}

TEST_CASE("variables are constant memory, and compile-time constants are not") {
  Bench bench;
  run_multiply(bench.to);
  CHECK(bench.counts("factors", Operation::load).lanes == 32);
  CHECK(bench.counts("kFactors", Operation::load).lanes == 0);
}

TEST_CASE("a run reports its progress") {
  cuda_on_cpu::control::reset();
  std::uint64_t blocks = 0, ended = 0;
  std::string kernel;
  Microscope lens({.launch_began =
                       [&](const Kernel& launched, std::uint64_t count) {
                         kernel = launched.name;
                         blocks += count;
                       },
                   .block_ended = [&] { ++ended; }});
  void* memory = nullptr;
  cudaMalloc(&memory, 4);
  run_blocks_store(static_cast<float*>(memory));
  cudaDeviceSynchronize();
  cudaFree(memory);
  CHECK(kernel.ends_with("blocks_store"));
  CHECK(blocks == 2);
  CHECK(ended == 2);
}

TEST_CASE("asynchronous copies of zeros do not access global memory") {
  for (const int read : {0, 12, 32}) {
    CAPTURE(read);
    Bench bench;
    run_pipeline(bench.from, bench.to, read, true);
    const Counts reads = bench.counts("from", Operation::async);
    CHECK(reads.requests == (read == 0 ? 0 : 1));
    CHECK(reads.lanes == static_cast<std::uint64_t>(read));
    CHECK(reads.sectors == static_cast<std::uint64_t>((read + 7) / 8));
    const Counts writes = bench.counts("line", Operation::async);
    CHECK(writes.requests == 1);
    CHECK(writes.lanes == 32);
  }
}

TEST_CASE("a missing barrier is a race with both lines, whatever the order of the threads") {
  using cuda_on_cpu::control::ThreadOrder;
  for (const auto order : {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    for (const bool barrier : {true, false}) {
      CAPTURE(barrier);
      Bench bench;
      cuda_on_cpu::control::set_thread_order(order, 1);
      run_neighbours(bench.to, barrier);
      const Report seen = bench.report();
      const std::vector<Race> errors = errors_of(seen);
      CHECK(errors.empty() == barrier);
      for (const Race& race : errors) {
        CHECK(race.space == Space::shared);
        CHECK(race.array == "line");
        CHECK(race.element < 64);
        CHECK(race.first.thread + race.second.thread == 63);
        CHECK(race.first.line != race.second.line);
        CHECK(race.first.file.ends_with("microscope.cu"));
      }
    }
  }
}

TEST_CASE("lanes of a warp are ordered by __syncwarp, and by nothing else") {
  for (const bool meet : {true, false}) {
    CAPTURE(meet);
    Bench bench;
    run_lanes_exchange(bench.to, meet);
    CHECK(errors_of(bench.report()).empty() == meet);
  }
}

TEST_CASE("blocks that store different values to one location race; equal values are a note") {
  {
    Bench bench;
    run_blocks_store(bench.to);
    const std::vector<Race> errors = errors_of(bench.report());
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].kind == Race::Kind::waw);
    CHECK(errors[0].first.block != errors[0].second.block);
  }
  Bench bench;
  run_all_store_one(bench.to);
  CHECK(errors_of(bench.report()).empty());
  CHECK_FALSE(bench.report().races.empty());
}

TEST_CASE("a read of unwritten memory: its line, array and element") {
  {
    Bench bench;
    run_never_written(bench.to);
    const Report seen = bench.report();
    REQUIRE(seen.unwritten.size() == 1);
    CHECK(seen.unwritten[0].array == "line");
    CHECK(seen.unwritten[0].element == 32);
    CHECK(seen.unwritten[0].place.thread == 31);
  }
  Bench bench;
  run_copy(bench.to, bench.from, 0, 1);
  const Report seen = bench.report();
  REQUIRE(seen.unwritten.size() == 1);
  CHECK(seen.unwritten[0].array == "to");
  CHECK(seen.unwritten[0].element == 0);
}

TEST_CASE("the barrier of a cluster orders its blocks, unless they arrive relaxed") {
  for (const bool releases : {true, false}) {
    CAPTURE(releases);
    Bench bench;
    run_tell_in_cluster(bench.to, releases);
    const std::vector<Race> errors = errors_of(bench.report());
    CHECK(errors.empty() == releases);
    if (releases) continue;
    REQUIRE(!errors.empty());
    CHECK(errors[0].array == "to");
    CHECK(errors[0].first.block != errors[0].second.block);
  }
}

TEST_CASE("a multicast load is one request, and ordered by the arrivals of the blocks") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    Bench bench;
    run_share_in_cluster(bench.from, bench.to, waits);
    const Report seen = bench.report();
    bool found = false;
    for (const Race& race : errors_of(seen)) {
      found |= race.space == Space::shared && race.first.block != race.second.block;
    }
    CHECK(found == !waits);
    CHECK(bench.counts("dynamic shared memory", Operation::async).requests == 4);
  }
}

TEST_CASE(
    "numbers stored in another block are ordered by a wait, and must not overwrite unread ones") {
  for (const bool waits : {true, false}) {
    for (const bool early : {false, true}) {
      CAPTURE(waits);
      CAPTURE(early);
      Bench bench;
      run_exchange_in_cluster(bench.to, waits, early);
      bool over = false, before = false;
      const Report seen = bench.report();
      for (const Race& race : errors_of(seen)) {
        if (race.space != Space::shared) continue;
        over |= race.kind == Race::Kind::war && race.first.block != race.second.block;
        before |= race.kind == Race::Kind::raw;
      }
      CHECK(errors_of(seen).empty() == (waits && !early));
      if (!waits) CHECK(over);
      if (early) CHECK(before);
      // Two blocks, two iterations, to each of two blocks: 32 lanes of 16 bytes.
      CHECK(bench.counts("dynamic shared memory", Operation::async).requests == 8);
    }
  }
}

TEST_SUITE_END();

#include <cuda.h>
#include <doctest/doctest.h>

#include <numeric>

#include "kernels.hpp"
#include "launch.hpp"
#include "own_interface.hpp"

namespace control = cuda_on_cpu::control;

namespace {

using cuda_on_cpu::control::ThreadOrder;
constexpr ThreadOrder kAllOrders[] = {ThreadOrder::forward, ThreadOrder::reverse,
                                      ThreadOrder::shuffled};

/// `rows` rows of 32 floats: 1, 2 ... and a tensor map of it, with boxes of one row.
struct Rows {
  std::vector<float> host;
  DeviceArray<float> device;
  CUtensorMap map{};

  explicit Rows(std::size_t rows) : host(counted(rows * 32)), device(host) {
    const cuuint64_t dims[] = {32, rows}, strides[] = {128};
    const cuuint32_t box[] = {32, 1}, steps[] = {1, 1};
    REQUIRE(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, device.data(), dims,
                                   strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  }
  static std::vector<float> counted(std::size_t floats) {
    std::vector<float> values(floats);
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }
};

}  // namespace

TEST_CASE("blocks of a cluster are neighbours, and know their rank") {
  const Defaults defaults;
  const dim3 grid(4, 6, 2), cluster(2, 3, 1);
  DeviceArray<unsigned> rank(48), blocks(48);
  REQUIRE(launch_in_clusters(cluster, cluster_ranks, {grid, 2}, rank.data(), blocks.data()) ==
          cudaSuccess);
  CHECK(blocks.host() == std::vector<unsigned>(48, 6));
  const std::vector<unsigned> ranks = rank.host();
  for (unsigned i = 0; i < 48; ++i) CHECK(ranks[i] == i % 4 % 2 + 2 * (i / 4 % 6 % 3));
  REQUIRE(launch(cluster_ranks, {grid, 2}, rank.data(), blocks.data()) == cudaSuccess);
  CHECK(rank.host() == std::vector<unsigned>(48, 0));
  CHECK(blocks.host() == std::vector<unsigned>(48, 1));
}

TEST_CASE("a launch with a cluster that does not fit is refused") {
  const Defaults defaults;
  DeviceArray<unsigned> rank(64), blocks(64);
  const auto run = [&](dim3 grid, dim3 cluster) {
    return launch_in_clusters(cluster, cluster_ranks, {grid, 1}, rank.data(), blocks.data());
  };
  CHECK(run(16, 8) == cudaSuccess);
  CHECK(run(18, 9) == cudaErrorInvalidClusterSize);
  CHECK(report_names("a cluster of 9 blocks is larger than 8"));
  CHECK(run(5, 2) == cudaErrorInvalidClusterSize);
  CHECK(report_names("gridDim.x, 5, is not a multiple of the cluster's, 2"));
  CHECK(run(dim3(4, 3), dim3(2, 2)) == cudaErrorInvalidClusterSize);
  CHECK(report_names("gridDim.y, 3"));
  CHECK(run(4, dim3(2, 0)) == cudaErrorInvalidClusterSize);
}

TEST_CASE("threads of a cluster meet at its barrier, without those that have exited") {
  const Defaults defaults;
  constexpr int kRounds = 3;
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 5);
    for (const unsigned blocks : {1u, 2u, 3u, 8u}) {
      DeviceArray<int> flags(std::vector<int>(24, 0)), seen(std::vector<int>(24 * kRounds, 0));
      REQUIRE(launch_in_clusters(blocks, meet_in_clusters, {24, 64}, flags.data(), seen.data(),
                                 kRounds) == cudaSuccess);
      const std::vector<int> result = seen.host();
      for (std::size_t i = 0; i < result.size(); ++i)
        CHECK(result[i] == static_cast<int>(i) % kRounds + 1);
    }
  }
}

TEST_CASE("a multicast load arrives in each block, and stages are passed on between blocks") {
  const Defaults defaults;
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 5);
    for (const unsigned blocks : {1u, 2u, 4u}) {
      constexpr int kRounds = 5;
      const Rows rows(8 * kRounds);
      DeviceArray<float> out(8 * kRounds * blocks * 32);
      REQUIRE(launch_in_clusters(blocks, share_boxes, {8, 64, 128 * blocks}, rows.map, kRounds,
                                 out.data(), ShareMisuse::none) == cudaSuccess);
      const std::vector<float> result = out.host();
      const std::size_t in_block = std::size_t{kRounds} * blocks * 32;
      for (std::size_t i = 0; i < result.size(); ++i) {
        REQUIRE(result[i] == rows.host[i / in_block / blocks * in_block + i % in_block]);
      }
    }
  }
}

TEST_CASE(
    "an invalid access to another block's shared memory is an error that names the location") {
  const Defaults defaults;
  const Rows rows(16);
  DeviceArray<float> out(16 * 64);
  const auto run = [&](ShareMisuse how) {
    return launch_in_clusters(2, share_boxes, {2, 64, 256}, rows.map, 2, out.data(), how);
  };
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 5);
    CHECK(run(ShareMisuse::mask_outside) == cudaErrorLaunchFailure);
    CHECK(report_names(place_of("clusters.cu", "shared load"), "block 2 of a cluster that has 2"));
    CHECK(run(ShareMisuse::empty_mask) == cudaErrorLaunchFailure);
    CHECK(
        report_names(place_of("clusters.cu", "shared load"), "with a mask that contains no block"));
    CHECK(run(ShareMisuse::no_first_meeting) == cudaErrorLaunchFailure);
    CHECK(report_names(place_of("clusters.cu", "shared load"), "has not been initialized"));
    CHECK(run(ShareMisuse::no_last_meeting) == cudaErrorLaunchFailure);
    CHECK(report_names(place_of("clusters.cu", "lets go"), "which has ended"));
    for (const bool waits : {false, true}) {
      CHECK(launch_in_clusters(2, share_with_one_that_ends, {2, 1, 256}, rows.map, waits) ==
            cudaErrorLaunchFailure);
      CHECK(report_names(place_of("clusters.cu", "into one that ends"),
                         waits ? "ended without a wait for the load" : "which has ended"));
    }
    CHECK(run(ShareMisuse::none) == cudaSuccess);  // no state is left behind
  }
}

TEST_CASE("blocks of a cluster store in each other's shared memory") {
  const Defaults defaults;
  constexpr unsigned kThreads = 40, kRounds = 3;
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 5);
    for (const unsigned blocks : {1u, 2u, 8u}) {
      DeviceArray<float4> out(8 * kThreads * kRounds);
      REQUIRE(launch_in_clusters(blocks, exchange_in_clusters,
                                 {8, kThreads, 16 * kThreads * blocks}, int{kRounds}, out.data(),
                                 ExchangeMisuse::none) == cudaSuccess);
      const std::vector<float4> result = out.host();
      for (unsigned i = 0; i < result.size(); ++i) {
        const unsigned round = i % kRounds, thread = i / kRounds % kThreads;
        const unsigned to = i / kRounds / kThreads % blocks;
        float first = 0;
        for (unsigned rank = 0; rank < blocks; ++rank)
          first = 2 * first + static_cast<float>(100 * rank + 10 * to + round);
        REQUIRE(result[i].x == first);
        REQUIRE(result[i].y == static_cast<float>(blocks * thread));
        REQUIRE(result[i].z == static_cast<float>(blocks));
        REQUIRE(result[i].w == 0.0f);
      }
    }
  }
}

TEST_CASE("an invalid store to another block is an error that names the location") {
  const Defaults defaults;
  DeviceArray<float4> out(2 * 32 * 2);
  const auto run = [&](ExchangeMisuse how) {
    return launch_in_clusters(2, exchange_in_clusters, {2, 32, 1024}, 2, out.data(), how);
  };
  const std::string place = place_of("clusters.cu", "exchanges");
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 5);
    CHECK(run(ExchangeMisuse::few_expected) == cudaErrorLaunchFailure);
    CHECK(report_names("stores bring more bytes than were expected", "expects 1016 bytes"));
    CHECK(run(ExchangeMisuse::no_first_meeting) == cudaErrorLaunchFailure);
    CHECK(report_names(place, "has not been initialized"));
    CHECK(run(ExchangeMisuse::unaligned) == cudaErrorMisalignedAddress);
    CHECK(report_names(place, "not aligned to 16 bytes"));
    CHECK(run(ExchangeMisuse::outside) == cudaErrorIllegalAddress);
    CHECK(report_names(place, "for an address that is not in shared memory"));
    CHECK(run(ExchangeMisuse::barrier_elsewhere) == cudaErrorLaunchFailure);
    CHECK(report_names(place, "a barrier in a different block"));
    CHECK(run(ExchangeMisuse::ended) == cudaErrorLaunchFailure);
    CHECK(report_names(place, "block 1 of the cluster, which has ended"));
    CHECK(run(ExchangeMisuse::no_wait) == cudaErrorLaunchFailure);
    CHECK(report_names(place, "ended without a wait for the data"));
    CHECK(run(ExchangeMisuse::none) == cudaSuccess);  // no state is left behind
  }
}

TEST_CASE("misuse of a cluster's barriers is an error that names the location") {
  const Defaults defaults;
  const auto fails_at = [](ClusterMisuse how, const char* mark, const char* why) {
    return launch_in_clusters(2, misuse_cluster, {4, 32}, how) == cudaErrorLaunchFailure &&
           report_names(place_of("clusters.cu", mark), why);
  };
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 5);
    CHECK(launch_in_clusters(2, misuse_cluster, {4, 32}, ClusterMisuse::none) == cudaSuccess);
    CHECK(fails_at(ClusterMisuse::wait_first, "waits first", "without having arrived"));
    CHECK(fails_at(ClusterMisuse::arrives_twice, "arrives twice", "twice"));
    CHECK(fails_at(ClusterMisuse::early_arrival, "arrives there", "has not been initialized"));
    CHECK(fails_at(ClusterMisuse::ended, "arrives there", "which has ended"));
    CHECK(launch_in_clusters(2, misuse_cluster, {4, 32}, ClusterMisuse::rank_outside) ==
          cudaErrorLaunchFailure);
    CHECK(report_names("calls mapa", "block 2 of a cluster that has 2"));
    CHECK(fails_at(ClusterMisuse::in_vain, "waits forever", "deadlock"));
    CHECK(report_names(place_of("clusters.cu", "last meeting"), "In the same cluster, block"));
  }
}

TEST_CASE("a cooperative launch of clusters synchronizes the whole grid") {
  const Defaults defaults;
  cudaLaunchAttribute attributes[] = {{cudaLaunchAttributeCooperative, {}},
                                      {cudaLaunchAttributeClusterDimension, {}}};
  attributes[0].val.cooperative = 1;
  attributes[1].val.clusterDim = {4, 1, 1};
  const cudaLaunchConfig_t config{20, 33, 0, nullptr, attributes, 2};
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 7);
    DeviceArray<unsigned> sums(std::vector<unsigned>(5, 0)), mistakes(std::vector<unsigned>{0});
    REQUIRE(cudaLaunchKernelEx(&config, grid_rounds, sums.data(), 5, mistakes.data()) ==
            cudaSuccess);
    CHECK(sums.host() == std::vector<unsigned>(5, 190));
    CHECK(mistakes.first() == 0);
  }
}

TEST_CASE(
    "blocks of clusters can wait for blocks of other clusters, and a wait forever is detected") {
  const Defaults defaults;
  for (const ThreadOrder order : kAllOrders) {
    control::set_thread_order(order, 9);
    // Within a cluster: across clusters, meetings would keep a block from ending before the next.
    DeviceArray<unsigned> next(std::vector<unsigned>{0});
    REQUIRE(launch_in_clusters(8, pass_backwards_in_clusters, {8, 2}, next.data()) == cudaSuccess);
    CHECK(next.first() == 8);
  }
  control::set_thread_order(ThreadOrder::forward);
  DeviceArray<unsigned> next(std::vector<unsigned>{0});
  REQUIRE(launch_in_clusters(2, pass_backwards_in_clusters, {10, 2}, next.data()) == cudaSuccess);
  CHECK(next.first() == 10);
  control::set_deadlock_timeout(std::chrono::milliseconds(50));
  DeviceArray<unsigned> flag(std::vector<unsigned>{0});
  CHECK(launch_in_clusters(2, poll_in_clusters_for_ever, {4, 32}, flag.data()) ==
        cudaErrorLaunchTimeout);
  CHECK(report_names("deadlock", place_of("clusters.cu", "forever")));
}

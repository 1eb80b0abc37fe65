#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "launch.hpp"

namespace {

template <class T>
void check_reversed() {
  std::vector<T> in(64);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i * i) + static_cast<T>(0.5);
  DeviceArray<T> input(in), out(64);
  REQUIRE(launch(reverse_lanes<T>, {1, 64}, input.data(), out.data()) == cudaSuccess);
  std::reverse(in.begin(), in.begin() + 32);
  std::reverse(in.begin() + 32, in.end());
  CHECK(out.host() == in);
}

}  // namespace

TEST_CASE("shuffles move values between lanes, within segments of any width") {
  const Defaults defaults;
  using cuda_on_cpu::control::ThreadOrder;
  for (const ThreadOrder order :
       {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    cuda_on_cpu::control::set_thread_order(order, 5);
    for (const int width : {32, 8}) {
      DeviceArray<int> up(64), down(64), exchanged(64), broadcast(64);
      REQUIRE(launch(shuffles, {1, 64}, up.data(), down.data(), exchanged.data(), broadcast.data(),
                     width) == cudaSuccess);
      for (int i = 0; i < 64; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int segment = i / width * width, offset = i % width;
        CAPTURE(width);
        CAPTURE(i);
        CHECK(up.host()[at] == (offset >= 3 ? i - 3 : i));
        CHECK(down.host()[at] == (offset + 3 < width ? i + 3 : i));
        CHECK(exchanged.host()[at] == segment + (offset ^ 5));
        CHECK(broadcast.host()[at] == segment + 2);
      }
    }
  }
}

TEST_CASE("shuffles support int, unsigned, long long, float and double") {
  const Defaults defaults;
  check_reversed<int>();
  check_reversed<unsigned>();
  check_reversed<long long>();
  check_reversed<float>();
  check_reversed<double>();
}

TEST_CASE("ballot, any and all count the lanes' votes") {
  const Defaults defaults;
  for (const std::uint32_t bits : {0u, 0x80000001u, 0xffffffffu}) {
    std::vector<int> predicate(32);
    for (unsigned i = 0; i < 32; ++i) predicate[i] = bits >> i & 1u ? -1 : 0;
    DeviceArray<int> in(predicate), any(32), all(32);
    DeviceArray<unsigned> ballot(32);
    REQUIRE(launch(votes, {1, 32}, in.data(), ballot.data(), any.data(), all.data()) ==
            cudaSuccess);
    CHECK(ballot.host() == std::vector<unsigned>(32, bits));
    CHECK(any.host() == std::vector<int>(32, bits != 0));
    CHECK(all.host() == std::vector<int>(32, bits == 0xffffffffu));
  }
}

TEST_CASE("match_any and match_all find the lanes with equal values") {
  const Defaults defaults;
  std::vector<int> value(64, 7);  // the second warp: all equal
  for (std::size_t i = 0; i < 32; ++i) value[i] = static_cast<int>(i % 2);
  DeviceArray<int> in(value);
  DeviceArray<unsigned> any(64), all(64);
  REQUIRE(launch(matches, {1, 64}, in.data(), any.data(), all.data()) == cudaSuccess);
  CHECK(any.host()[0] == 0x55555555u);
  CHECK(any.host()[1] == 0xaaaaaaaau);
  CHECK(any.host()[40] == 0xffffffffu);
  CHECK(all.host()[0] == 0);
  CHECK(all.host()[40] == 0xffffffffu);
}

TEST_CASE("lanes of disjoint masks meet independently") {
  const Defaults defaults;
  DeviceArray<int> out(32);
  REQUIRE(launch(half_warps, {1, 32}, out.data()) == cudaSuccess);
  for (int i = 0; i < 32; ++i) CHECK(out.host()[static_cast<std::size_t>(i)] == (i ^ 1));
}

TEST_CASE("lanes that have exited, or do not exist, are not waited for") {
  const Defaults defaults;
  DeviceArray<int> out(32);
  REQUIRE(launch(shuffle_after_exit, {1, 32}, out.data()) == cudaSuccess);
  CHECK(out.host()[18] == 19);
  REQUIRE(launch(shuffle_after_exit, {1, 10}, out.data()) == cudaSuccess);
  CHECK(out.host()[8] == 9);
}

TEST_CASE("a shuffle from a lane that does not take part returns NaN bytes") {
  const Defaults defaults;
  DeviceArray<float> out(16);
  REQUIRE(launch(shuffle_from_absent_lane, {1, 32}, out.data()) == cudaSuccess);
  for (const float value : out.host()) CHECK(std::isnan(value));
}

TEST_CASE("a lane must be in its own mask") {
  const Defaults defaults;
  CHECK(launch(lane_outside_its_mask, {1, 32}) == cudaErrorLaunchFailure);
  CHECK(
      report_names("thread (0,0,0)", place_of("warps.cu", "outside mask"), "include its own lane"));
}

TEST_CASE("a meeting that a lane of its mask never reaches is an error that names both lines") {
  const Defaults defaults;
  CHECK(launch(lane_missing_from_meeting, {1, 32}) == cudaErrorLaunchFailure);
  CHECK(report_names("thread (9,0,0)", place_of("warps.cu", "elsewhere"),
                     place_of("warps.cu", "meeting")));
}

TEST_CASE("__activemask returns lanes that can meet at once") {
  const Defaults defaults;
  DeviceArray<unsigned> count(std::vector<unsigned>{0});
  REQUIRE(launch(count_with_active_mask, {4, 96}, count.data()) == cudaSuccess);
  CHECK(count.first() == 4 * 32);
}

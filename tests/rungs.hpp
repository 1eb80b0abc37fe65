/// @file rungs.hpp
/// @brief Two tests for each rung in each place: its problems, and its identities.
#pragma once

namespace convladder::testing {

/// Registers the tests, named "<rung>.<where>" and "<rung>.<where>.identities", in the doctest
/// suites `cpu`, `emulated` and `gpu`. They follow the rung table: a new row has its tests at once.
void register_rung_tests();

}  // namespace convladder::testing

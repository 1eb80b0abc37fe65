#include "tests/settings.hpp"

#include <cstdlib>
#include <random>
#include <string_view>

namespace convladder::testing {
namespace {

bool flag(const char* name, bool otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::string_view(value) != "0";
}

std::uint64_t seed() {
  const char* value = std::getenv("CONVLADDER_SEED");
  if (value != nullptr && *value != '\0') return std::strtoull(value, nullptr, 10);
  return std::random_device{}() % 1'000'000;  // short enough to type
}

}  // namespace

const Settings& settings() {
  static const Settings read = {flag("CONVLADDER_SMALL", false), flag("CONVLADDER_HUGE", false),
                                flag("CONVLADDER_REQUIRE_GPU", false),
                                flag("CONVLADDER_POISON", true), seed()};
  return read;
}

}  // namespace convladder::testing

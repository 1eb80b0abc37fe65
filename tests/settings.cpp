#include "tests/settings.hpp"

#include <cstdlib>
#include <cuda_on_cpu/device_models.hpp>
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

bool has_device_option = false;

}  // namespace

bool choose_device(const char* architecture) {
  const auto* const model = cuda_on_cpu::control::find_device_model(architecture);
  if (model == nullptr) return false;
  cuda_on_cpu::control::set_device_model(*model);
  return has_device_option = true;
}

bool device_is_chosen() { return has_device_option; }

const Settings& settings() {
  static const Settings read = {flag("CONVLADDER_SMALL", false), flag("CONVLADDER_HUGE", false),
                                flag("CONVLADDER_REQUIRE_GPU", false),
                                flag("CONVLADDER_POISON", true), seed()};
  return read;
}

}  // namespace convladder::testing

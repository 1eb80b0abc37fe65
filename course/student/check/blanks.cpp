#include "check/blanks.hpp"

#include <algorithm>
#include <atomic>
#include <cuda_on_cpu/builtins.hpp>
#include <cuda_on_cpu/inspect.hpp>
#include <set>

#include "check/not_written.hpp"
#include "core/implementation.hpp"

namespace convladder::check {
namespace {

std::set<std::string>& known() {
  static std::set<std::string> names;  // made when the first is added, which is before main()
  return names;
}

std::atomic<const char*> reached = nullptr;

}  // namespace

bool add_blank(const char* name) { return known().insert(name).second; }

void stop_at_blank(const char* name) {
  reached = name;
  cuda_on_cpu::inspect::ThreadPosition position;
  if (cuda_on_cpu::inspect::in_kernel(&position)) cuda_on_cpu::__trap();
  throw DeviceError(std::string(name) + " is not written yet");
}

std::vector<std::string> not_written() { return {known().begin(), known().end()}; }

std::string take_reached_blank() {
  const char* const name = reached.exchange(nullptr);
  return name == nullptr ? "" : name;
}

}  // namespace convladder::check

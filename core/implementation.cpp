#include "core/implementation.hpp"

#include <stdexcept>

namespace convladder {

void* Arguments::find(const std::vector<Slot>& slots, std::string_view name, DType dtype,
                      const char* kind) {
  for (const Slot& slot : slots) {
    if (slot.name != name) continue;
    if (slot.dtype == dtype) return slot.data;
    throw std::logic_error(std::string(kind) + " " + slot.name + " holds " + name_of(slot.dtype));
  }
  throw std::logic_error("no " + std::string(kind) + " is called " + std::string(name));
}

}  // namespace convladder

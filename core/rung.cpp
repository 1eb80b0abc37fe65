#include "core/rung.hpp"

#include <stdexcept>

#include "core/text.hpp"

namespace convladder {

void* Arguments::find(const std::vector<Slot>& slots, std::string_view name, DType dtype,
                      const char* kind) {
  for (const Slot& slot : slots) {
    if (slot.name != name) continue;
    if (slot.dtype == dtype) return slot.data;
    throw std::logic_error(text(kind, " ", name, " holds ", name_of(slot.dtype)));
  }
  throw std::logic_error(text("no ", kind, " is called ", name));
}

}  // namespace convladder

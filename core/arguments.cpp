#include "core/arguments.hpp"

#include <algorithm>
#include <stdexcept>

namespace convladder {

const Arguments::Slot* Arguments::slot_named(std::string_view name,
                                             const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    if (slot.name == name) return &slot;
  }
  return nullptr;
}

Arguments Arguments::renamed(const std::vector<std::pair<std::string, std::string>>& names) const {
  Arguments result = *this;
  for (std::vector<Slot>* slots : {&result.inputs_, &result.outputs_}) {
    for (Slot& slot : *slots) {
      const auto entry = std::ranges::find(names, slot.name, [](const auto& n) { return n.first; });
      if (entry != names.end()) slot.name = entry->second;
    }
  }
  return result;
}

void Arguments::no_slot(const char* kind, std::string_view name) {
  throw std::logic_error("no " + std::string(kind) + " is called " + std::string(name));
}

void Arguments::find(std::string_view name, Input& array) const {
  const Slot* slot = slot_named(name, inputs_);
  array = slot != nullptr ? Input(slot->data, slot->dtype) : Input();
}

void Arguments::find(std::string_view name, Output& array) const {
  const Slot* slot = slot_named(name, outputs_);
  array = slot != nullptr ? Output(slot->data, slot->dtype) : Output();
}

void Arguments::find(std::string_view, OutputCreator& creator) const {
  creator = [create = creator_](const std::string& name, const Shape& shape) {
    return static_cast<std::int32_t*>(create(name, DType::i32, shape));
  };
}

void Arguments::find(std::string_view, FloatOutputCreator& creator) const {
  creator = [create = creator_](const std::string& name, const Shape& shape) {
    return static_cast<float*>(create(name, DType::f32, shape));
  };
}

}  // namespace convladder

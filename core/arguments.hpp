/// @file arguments.hpp
/// @brief The arrays of a run by name, for programs, and the way from there to a ladder's own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/array_names.hpp"
#include "core/implementation.hpp"
#include "core/types.hpp"

namespace convladder {

/// The arrays of one run, by name, and where it computes: as programs hold them, which treat all
/// ladders alike. A rung gets them as its ladder's arrays, Conv2dArrays say: see arrays_of().
class Arguments {
 public:
  /// An array of the run.
  struct Slot {
    std::string name;  ///< As in the ladder's Signature.
    DType dtype;       ///< Of its elements.
    void* data;        ///< Where the rung computes.
  };
  /// Allocates the output `name` with its final shape, and returns its memory.
  using Creator = std::function<void*(const std::string& name, DType dtype, const Shape& shape)>;

  /// @param creator called for dynamic outputs
  Arguments(std::vector<Slot> inputs, std::vector<Slot> outputs, Context context, Creator creator)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), context_(context),
        creator_(std::move(creator)) {}

  const Context& context() const { return context_; }  ///< Stream and workspace.

  /// The same run with arrays under other names: pairs of what each is called here and there.
  Arguments renamed(const std::vector<std::pair<std::string, std::string>>& names) const;

  /// An input's elements. @throws std::logic_error if there is none of that name and type.
  template <class T>
  const T* in(std::string_view name) const {
    return typed<const T>(slot_named(name, inputs_), "input", name);
  }
  /// An output's elements. @throws std::logic_error if there is none of that name and type.
  template <class T>
  T* out(std::string_view name) const {
    return typed<T>(slot_named(name, outputs_), "output", name);
  }
  /// An input that not every problem has: null where it has not.
  template <class T>
  const T* in_or_null(std::string_view name) const {
    return slot_named(name, inputs_) != nullptr ? in<T>(name) : nullptr;
  }

  /// Sets an array of a ladder: null where the run has none of that name.
  void find(std::string_view name, Input& array) const;
  void find(std::string_view name, Output& array) const;  ///< The same.
  /// The same, of a type that does not depend on the problem.
  /// @throws std::logic_error if the run's array of that name has another
  template <class T>
  void find(std::string_view name, const T*& array) const {
    Input found;
    find(name, found);
    array = found.as<const T>();
  }
  /// The same for an output.
  template <class T>
  void find(std::string_view name, T*& array) const {
    Output found;
    find(name, found);
    array = found.as<T>();
  }
  void find(std::string_view name, OutputCreator& creator) const;       ///< That of the run.
  void find(std::string_view name, FloatOutputCreator& creator) const;  ///< The same for floats.

 private:
  /// Null if there is none of that name.
  static const Slot* slot_named(std::string_view name, const std::vector<Slot>& slots);
  [[noreturn]] static void no_slot(const char* kind, std::string_view name);

  template <class T>
  static T* typed(const Slot* slot, const char* kind, std::string_view name) {
    if (slot == nullptr) no_slot(kind, name);
    return Output(slot->data, slot->dtype).as<std::remove_const_t<T>>();
  }

  std::vector<Slot> inputs_, outputs_;
  Context context_;
  Creator creator_;
};

/// A ladder's arrays, found by their names.
template <class A>
A arrays_of(const Arguments& arguments) {
  A arrays;
  for_each_array(arrays, [&](std::string_view name, auto& array) { arguments.find(name, array); });
  return arrays;
}

}  // namespace convladder

/// @file arguments.hpp
/// @brief The arrays of a run by name, and their conversion to a ladder's own array type.
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

/// The arrays of one run by name, and the context of the run. Programs use this form, which is the
/// same for all ladders. A rung receives its ladder's arrays instead, such as Conv2dArrays: see
/// arrays_of().
class Arguments {
 public:
  /// An array of the run.
  struct Slot {
    std::string name;  ///< The name in the ladder's Signature.
    DType dtype;       ///< Type of the elements.
    void* data;        ///< Address at the place where the rung runs.
  };
  /// Allocates the output `name` with its final shape, and returns its memory.
  using Creator = std::function<void*(const std::string& name, DType dtype, const Shape& shape)>;

  /// @param creator called for dynamic outputs
  Arguments(std::vector<Slot> inputs, std::vector<Slot> outputs, Context context, Creator creator)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), context_(context),
        creator_(std::move(creator)) {}

  const Context& context() const { return context_; }  ///< Stream and workspace.

  /// The same run with renamed arrays: pairs of the name here and the name there.
  Arguments renamed(const std::vector<std::pair<std::string, std::string>>& names) const;

  /// The elements of an input. @throws std::logic_error if there is none with that name and type.
  template <class T>
  const T* in(std::string_view name) const {
    return typed<const T>(slot_named(name, inputs_), "input", name);
  }
  /// The elements of an output. @throws std::logic_error if there is none with that name and type.
  template <class T>
  T* out(std::string_view name) const {
    return typed<T>(slot_named(name, outputs_), "output", name);
  }
  /// An optional input: null if the problem does not have it.
  template <class T>
  const T* in_or_null(std::string_view name) const {
    return slot_named(name, inputs_) != nullptr ? in<T>(name) : nullptr;
  }

  /// Sets an array of a ladder: null if the run has none with that name.
  void find(std::string_view name, Input& array) const;
  void find(std::string_view name, Output& array) const;  ///< An output.
  /// An array whose type does not depend on the problem.
  /// @throws std::logic_error if the run's array of that name has another type
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
  void find(std::string_view name, OutputCreator& creator) const;       ///< The creator of the run.
  void find(std::string_view name, FloatOutputCreator& creator) const;  ///< The creator of a float
                                                                        ///< output.

 private:
  /// Null if there is none with that name.
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

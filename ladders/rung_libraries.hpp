/// @file rung_libraries.hpp
/// @brief Shared libraries that are opened at the first call: rungs, and commands that a comparison
/// does not use.
///
/// Each folder of rungs, such as cuda_optimized/conv2d, is a library, rungs_cuda_optimized_conv2d,
/// in the folder of the library that contains this table. A program can therefore run before all
/// ladders are built, and an edit of a rung rebuilds one small library.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/rung.hpp"

namespace convladder {

/// A library is missing, or its build failed.
class MissingLibrary : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The address of the function `name` ("convladder::emulated::cuda_naive::conv2d::direct", without
/// parameters) in the folder's library. If the environment variable CONVLADDER_BUILD names the
/// folder of a running build (set_up_and_run in ./ladder), the call waits until that library is
/// built. @throws MissingLibrary
const void* constant_in_library(const std::string& folder, const std::string& name);

/// Loads the rungs of the folder from this file, another build of some of them. Must be called
/// before any rung of the folder runs. @throws MissingLibrary
void take_rungs_from(const std::string& folder, const std::string& file);

/// The address of the function `symbol` (extern "C") in another library of this build that contains
/// `what` ("bench and fuzz"). @throws MissingLibrary
void* function_in_program(const std::string& library, const std::string& what, const char* symbol);

/// A function that is called with the folder whose library is awaited, and with an empty name when
/// the wait ends.
using WaitObserver = std::function<void(const std::string& folder)>;
/// Sets the function that is notified of waits; null disables the notification.
void observe_waits(WaitObserver observer);

/// The progress of the running build, from 0 to 1; empty if no build is running or it has not
/// started.
std::optional<double> build_progress();

/// The code of the constant `name`. The constant is looked up when one of its functions is first
/// called.
/// @param read builds the code from the address of the constant
AnyImplementation code_in_library(const char* folder, const char* name,
                                  AnyImplementation (*read)(const void* constant));

/// The code of an Implementation<A> constant.
template <class A>
AnyImplementation code_in_library(const char* folder, const char* name) {
  return code_in_library(folder, name, [](const void* constant) {
    return AnyImplementation(*static_cast<const Implementation<A>*>(constant));
  });
}

}  // namespace convladder

/// @file rung_libraries.hpp
/// @brief Code that lies in libraries which are opened when it is first called: rungs, and commands
/// that a comparison does not need.
///
/// A folder of rungs, such as cuda_optimized/conv2d, is a library, rungs_cuda_optimized_conv2d,
/// beside the one that holds this table. So a program runs when some ladders are not built yet, and
/// an edit of a rung rebuilds one small library.
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

/// The function `name` ("convladder::emulated::cuda_naive::conv2d::direct", without parameters) of
/// the folder's library. If CONVLADDER_BUILD names the folder of a running build (see
/// set_up_and_run in ./ladder), waits until that library is built. @throws MissingLibrary
const void* constant_in_library(const std::string& folder, const std::string& name);

/// From now on the folder's rungs come from this file, another build of some of them. To be called
/// before any of them is. @throws MissingLibrary
void take_rungs_from(const std::string& folder, const std::string& file);

/// The function `symbol` (extern "C") of another library of this build, which holds `what` ("bench
/// and fuzz"). @throws MissingLibrary
void* function_in_program(const std::string& library, const std::string& what, const char* symbol);

/// Called with the folder whose library is being waited for, then with an empty name.
using WaitObserver = std::function<void(const std::string& folder)>;
/// Who is told of waits from now on; null: nobody.
void observe_waits(WaitObserver observer);

/// How far the running build is, from 0 to 1; nothing if none runs, or it has not begun.
std::optional<double> build_progress();

/// The code that the constant `name` is: found when one of its functions is first called.
/// @param read makes it of the constant, given its address
AnyImplementation code_in_library(const char* folder, const char* name,
                                  AnyImplementation (*read)(const void* constant));

/// The same of an Implementation<A>.
template <class A>
AnyImplementation code_in_library(const char* folder, const char* name) {
  return code_in_library(folder, name, [](const void* constant) {
    return AnyImplementation(*static_cast<const Implementation<A>*>(constant));
  });
}

}  // namespace convladder

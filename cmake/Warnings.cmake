# The warnings that every target of ours is built with: link `warnings` privately.
add_library(warnings INTERFACE)
target_compile_options(warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow -Xcudafe=--display_error_number>
  $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>
  # g++ 12 reports overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(CONVLADDER_WARNINGS_AS_ERRORS)
  target_compile_options(warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# For kernels, after `warnings`: clang's -Wconversion includes conversions to unsigned, about which nvcc and g++ do
# not warn.
add_library(kernel_warnings INTERFACE)
# No warnings for `|` between two calls, where a kernel deliberately makes both, or for nvcc's pragmas. (SHELL,
# because CMake drops an option that occurred before -Wall.)
target_compile_options(
  kernel_warnings
  INTERFACE "$<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion;SHELL:-Wno-unknown-pragmas;-Wno-bitwise-instead-of-logical>")

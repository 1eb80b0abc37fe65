# The warnings that every target of ours is built with: link `warnings` privately.
add_library(warnings INTERFACE)
target_compile_options(warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow -Xcudafe=--display_error_number>
  $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>
  # g++ 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(CONVLADDER_WARNINGS_AS_ERRORS)
  target_compile_options(warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# For kernels, behind `warnings`: clang's -Wconversion includes conversions to unsigned, of which nvcc and
# g++ say nothing there.
add_library(kernel_warnings INTERFACE)
# Nor on `|` between two calls, where a kernel makes both on purpose, nor on pragmas that are nvcc's.
# (SHELL, since CMake drops an option that stood before -Wall already.)
target_compile_options(
  kernel_warnings
  INTERFACE "$<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion;SHELL:-Wno-unknown-pragmas;-Wno-bitwise-instead-of-logical>")

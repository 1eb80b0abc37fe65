# The optimisation level of each kind of code in a Release build. Compilation takes most of the time between a clone
# and a result, and between an edit and its test result, so each level is only as high as it pays off.

# Code that computes beside the rungs: problems, references, the comparison. -O3 takes twice as long to compile.
add_library(core_code INTERFACE)
target_compile_options(core_code INTERFACE $<$<CONFIG:Release>:-O1>)

# Code that prepares, prints and reads, and tests: its time is spent in the libraries that it calls. Also with the
# sanitizers (RelWithDebInfo).
add_library(program_code INTERFACE)
target_compile_options(program_code INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O0>)

# Kernels on the CPU. Levels above -O1 take two to three times as long to compile, and the suite is not faster: of -O2
# and -O3, kernels on fibers benefit from these four options only.
add_library(kernel_code INTERFACE)
target_compile_options(kernel_code INTERFACE $<$<CONFIG:Release>:-O1 -fstrict-aliasing -finline-functions
  -funroll-loops $<$<CXX_COMPILER_ID:GNU>:-fpeel-loops>>)

# Kernels with many instances, which would take too long to compile after an edit, 4 to 9 s with the options above.
# They are compiled with little or no optimisation, except for the code that they include, in 1 to 2.5 s. Their tests
# take as long. (Those of the first row would take half as long again without any optimisation.)
set(little_optimised_kernels direct/cp_async direct/deinterleaved direct/double_buffered direct/row_tile)
set(unoptimised_kernels implicit_gemm_mma implicit_gemm_warp_specialized implicit_gemm/split_k)
set(optimised_kernels conv2d_wgrad/implicit_gemm/split_k)  # has few instances: compiles as fast with the options above
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(optimised_kernels)
  # With sanitizers it takes 6 to 8 s instead of 1 to 2 s. (All other files gain more than they lose.)
  list(APPEND unoptimised_kernels direct/register_window)
endif()

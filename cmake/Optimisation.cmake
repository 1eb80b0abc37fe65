# How far each kind of code is optimised in a Release build. To compile takes most of the time between a
# clone and a result, and between an edit and its verdict: so as far as it pays, and no further.

# What computes beside the rungs: problems, references, the judge. -O3 takes twice as long to compile.
add_library(core_code INTERFACE)
target_compile_options(core_code INTERFACE $<$<CONFIG:Release>:-O1>)

# What prepares, prints and reads, and tests: its time is spent in the libraries that it calls. Also with
# the sanitizers (RelWithDebInfo).
add_library(program_code INTERFACE)
target_compile_options(program_code INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O0>)

# Kernels on the CPU. Beyond -O1 they take two to three times as long to compile, and the suite is no
# faster: of what -O2 and -O3 add, these four are what kernels on fibers gain from.
add_library(kernel_code INTERFACE)
target_compile_options(kernel_code INTERFACE $<$<CONFIG:Release>:-O1 -fstrict-aliasing -finline-functions
  -funroll-loops $<$<CXX_COMPILER_ID:GNU>:-fpeel-loops>>)

# Kernels in so many shapes that an edit would take too long to compile, 4 to 9 s with the above: a little
# optimised themselves, or not at all, unlike what they include of others, 1 to 2.5 s. Their tests take as
# long. (Those of the first row would take half as long again without any optimisation.)
set(little_optimised_kernels direct/cp_async direct/deinterleaved direct/double_buffered direct/row_tile)
set(unoptimised_kernels implicit_gemm_mma implicit_gemm_warp_specialized implicit_gemm/split_k)
set(optimised_kernels conv2d_wgrad/implicit_gemm/split_k)  # has few shapes: as soon with the above
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(optimised_kernels)
  # With sanitizers it takes 6 to 8 s, instead of 1 to 2 s. (All others gain more than they cost.)
  list(APPEND unoptimised_kernels direct/register_window)
endif()

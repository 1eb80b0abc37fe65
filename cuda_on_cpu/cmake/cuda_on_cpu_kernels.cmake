# cuda_on_cpu_add_kernels(<target> [RUNTIME <library>] [INSPECT] <source.cu>...
#                         [LITTLE_OPTIMISED <source.cu>...] [UNOPTIMISED <source.cu>...])
#
# Compiles .cu files as C++20 against cuda_on_cpu's headers, into an OBJECT library. Link this library by its name to
# the executables and shared libraries that use the kernels:
#
#     cuda_on_cpu_add_kernels(my_kernels conv.cu scan.cu)
#     target_link_libraries(my_program PRIVATE my_kernels)
#
# Marker objects between the kernels' objects separate the static shared memory of one file from that of the next (see
# static_shared.hpp). The objects must therefore be linked in this order: not through a static library, and not with
# link-time optimisation. Each .cu file is compiled through a one-line .cpp file that includes it, so that its
# language here does not conflict with another target that nvcc compiles. RUNTIME names another build of the library
# than `cuda_on_cpu`, such as one with sanitizers.
#
# Files after LITTLE_OPTIMISED are compiled with the equivalent of -Og, those after UNOPTIMISED with -O0 (clang uses
# -O0 for both), whatever the target's level. Code from the precompiled header keeps the target's level. The options
# are for kernels with many template instances, which otherwise take long to compile.
#
# INSPECT compiles the files for the microscope and links cuda_on_cpu_microscope: every load and store of a kernel
# then calls it. The kernels become about a hundred times slower.
function(cuda_on_cpu_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSPECT" "RUNTIME" "LITTLE_OPTIMISED;UNOPTIMISED")
  if(NOT arg_RUNTIME)
    set(arg_RUNTIME cuda_on_cpu)
  endif()
  set(templates ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${target}.cuda_on_cpu)
  string(MAKE_C_IDENTIFIER ${target} prefix)

  set(index 0)
  set(marker cuda_on_cpu_marker_${prefix}_0)
  configure_file(${templates}/marker.cpp.in ${generated}/marker_0.cpp @ONLY)
  set(sources ${generated}/marker_0.cpp)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS arg_LITTLE_OPTIMISED arg_UNOPTIMISED)
    set(level "")
    if(source IN_LIST arg_LITTLE_OPTIMISED)
      set(level Og)
    elseif(source IN_LIST arg_UNOPTIMISED)
      set(level O0)
    endif()
    set(pragmas "")
    if(level)  # for the code below, therefore not for a precompiled header's
      set(pragmas "#ifdef __clang__\n#pragma clang optimize off\n#else\n#pragma GCC optimize(\"${level}\")\n#endif\n")
    endif()
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE kernel_source)
    cmake_path(GET source STEM stem)
    cmake_path(GET kernel_source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set(stem ${folder}.${stem})  # files of several folders may have the same name
    configure_file(${templates}/kernel.cpp.in ${generated}/${index}_${stem}.cpp @ONLY)

    math(EXPR next "${index} + 1")
    set(begin_marker cuda_on_cpu_marker_${prefix}_${index})
    set(marker cuda_on_cpu_marker_${prefix}_${next})
    configure_file(${templates}/range_marker.cpp.in ${generated}/marker_${next}.cpp @ONLY)
    list(APPEND sources ${generated}/${index}_${stem}.cpp ${generated}/marker_${next}.cpp)
    set(index ${next})
  endforeach()

  # A marker has almost no includes, so a precompiled header would only cost time.
  set(markers ${sources})
  list(FILTER markers INCLUDE REGEX "/marker_[0-9]+\\.cpp$")
  set_source_files_properties(${markers} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)

  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PUBLIC ${arg_RUNTIME})
  # g++ warns about every parameter aligned to 128 bytes, such as tensor maps. A constant that is used only in
  # `#pragma unroll` is unused for a compiler that does not support the pragma. clang supports it, and warns about
  # loops that it cannot unroll.
  target_compile_options(${target} PRIVATE
    -Wno-unknown-pragmas -Wno-psabi -Wno-unused-variable
    $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
  if(arg_INSPECT)
    # Unoptimised, in source order. The alignment of lanes follows the order of the code, so no code may be moved.
    target_compile_options(${target} PRIVATE
      -O0 -g1 -fsanitize=thread -fsanitize-coverage=trace-pc
      -Wno-deprecated-copy)  # for vector types, which then have their own assignment operator (vector_types.hpp)
    target_compile_definitions(${target} PRIVATE CUDA_ON_CPU_INSPECT)
    target_link_libraries(${target} PUBLIC cuda_on_cpu_microscope)
    # Copies within the kernels' files also call it.
    target_link_options(${target} INTERFACE -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset)
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD OFF
    INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()

# The rungs. Each folder of them, such as cuda_optimized/conv2d, is a library of objects; the target
# `rungs` brings them all into a program. Files are found by their place, so that a new rung needs no
# edit here.
#
# With BUILD_SHARED_LIBS each folder is a shared library, which a program opens when it first calls one
# of its rungs (ladders/rung_libraries.hpp): an edit compiles one file and links one small library, and
# a program can begin while the rest is being built. Otherwise programs are linked with all of them.
add_library(rungs INTERFACE)
add_custom_target(rung_libraries ALL)  # what a program that calls any rung needs beside itself

# What most kernels' files include takes most of the time to compile them. (nvcc compiles the files
# without, and so sees that each includes what it needs.)
set(kernel_headers ${PROJECT_SOURCE_DIR}/core/implementation.hpp ${PROJECT_SOURCE_DIR}/core/cuda/launch.hpp)

# The kernels that others are made of, compiled for cuda_on_cpu.
file(GLOB core_kernels CONFIGURE_DEPENDS core/cuda/*.cu)
cuda_on_cpu_add_kernels(core_kernels_emulated ${core_kernels})
target_include_directories(core_kernels_emulated PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(core_kernels_emulated PRIVATE warnings kernel_warnings kernel_code rung_coverage)
target_precompile_headers(core_kernels_emulated PRIVATE ${kernel_headers})
# As objects, in their order: see cuda_on_cpu_add_kernels(). CMake counts a precompiled header among them.
set(core_kernels_objects $<FILTER:$<TARGET_OBJECTS:core_kernels_emulated>,EXCLUDE,cmake_pch>)
if(BUILD_SHARED_LIBS)
  target_sources(core PRIVATE ${core_kernels_objects})
  target_link_libraries(core PRIVATE cuda_on_cpu)
else()
  target_link_libraries(rungs INTERFACE ${core_kernels_objects})
endif()

# calls_<folder>: the folders whose files define functions that its rungs call. Such a file has a header of
# its name. With BUILD_SHARED_LIBS they are a library of their own, rungs_<folder>_called: so a comparison
# of one ladder need not build all others that some of its rungs are made of.
set(calls_cpu_reference/conv2d cpu_reference/gemm cpu_reference/im2col)
set(calls_cpu_reference/conv2d_dgrad cpu_reference/col2im cpu_reference/gemm)
set(calls_cpu_reference/conv2d_wgrad cpu_reference/gemm cpu_reference/im2col)
set(calls_cpu_reference/sparse_conv cpu_reference/gemm)
set(calls_cpu_reference/sparse_dgrad cpu_reference/gemm)
set(calls_cpu_reference/sparse_wgrad cpu_reference/gemm)
set(calls_cuda_naive/conv2d cuda_naive/gemm cuda_naive/im2col)
set(calls_cuda_optimized/conv2d cuda_optimized/gemm cuda_optimized/im2col)
set(calls_cuda_optimized/conv2d_dgrad cuda_optimized/col2im cuda_optimized/conv2d cuda_optimized/gemm)
set(calls_cuda_optimized/conv2d_wgrad cuda_optimized/conv2d cuda_optimized/gemm cuda_optimized/im2col)
set(calls_cuda_optimized/sparse_dgrad cuda_optimized/sparse_conv)

# rungs_target(<variable> <folder>): the target of a folder such as cuda_optimized/conv2d.
function(rungs_target variable folder)
  string(REPLACE "/" "_" name "rungs_${folder}")
  set(${variable} ${name} PARENT_SCOPE)
endfunction()

# add_rungs(<target> <folder> <source>...): the library of a folder's rungs, or of those of these files.
function(add_rungs target folder)
  set(sources ${ARGN})
  set(objects ${target}_objects)
  if(folder MATCHES "^cpu_reference/")
    add_library(${objects} OBJECT ${sources})
    target_link_libraries(${objects} PUBLIC core PRIVATE Eigen3::Eigen warnings rung_coverage)
  else()
    cmake_path(GET folder FILENAME ladder)
    set(little_optimised)
    set(unoptimised)
    foreach(source IN LISTS sources)
      cmake_path(GET source STEM name)
      foreach(how IN ITEMS little_optimised unoptimised)
        if(name IN_LIST ${how}_kernels AND NOT "${ladder}/${name}" IN_LIST optimised_kernels)
          list(APPEND ${how} ${source})
          list(REMOVE_ITEM sources ${source})
        endif()
      endforeach()
    endforeach()
    cuda_on_cpu_add_kernels(${objects} ${sources} LITTLE_OPTIMISED ${little_optimised} UNOPTIMISED ${unoptimised})
    target_link_libraries(${objects} PUBLIC core PRIVATE warnings kernel_warnings kernel_code rung_coverage)
    target_precompile_headers(${objects} REUSE_FROM core_kernels_emulated)
  endif()
  set(object_files $<FILTER:$<TARGET_OBJECTS:${objects}>,EXCLUDE,cmake_pch>)
  if(BUILD_SHARED_LIBS)
    add_library(${target} SHARED ${object_files})
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${target} PRIVATE core cuda_on_cpu)
    foreach(called IN LISTS calls_${folder})
      rungs_target(called_target ${called})
      if(called IN_LIST split_folders)
        string(APPEND called_target _called)
      endif()
      target_link_libraries(${target} PRIVATE ${called_target})
    endforeach()
    if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # whose functions the program brings
      target_link_options(${target} PRIVATE LINKER:-z,defs)  # or a call beyond `calls_` fails too late
    endif()
    add_dependencies(rung_libraries ${target})
  else()
    target_link_libraries(rungs INTERFACE ${object_files})
  endif()
endfunction()

file(GLOB rung_folders RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
     cpu_reference/* cuda_naive/* cuda_optimized/*)
set(called_folders)
foreach(folder IN LISTS rung_folders)
  if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${folder})
    list(REMOVE_ITEM rung_folders ${folder})
  endif()
  list(APPEND called_folders ${calls_${folder}})
endforeach()
# Those that have files of both kinds.
set(split_folders)
foreach(folder IN LISTS rung_folders)
  file(GLOB sources_${folder} CONFIGURE_DEPENDS ${folder}/*.cpp ${folder}/*.cu)
  set(called_sources_${folder})
  if(BUILD_SHARED_LIBS AND folder IN_LIST called_folders)
    foreach(source IN LISTS sources_${folder})
      cmake_path(REMOVE_EXTENSION source LAST_ONLY OUTPUT_VARIABLE name)
      if(EXISTS ${name}.cuh OR EXISTS ${name}.hpp)
        list(APPEND called_sources_${folder} ${source})
      endif()
    endforeach()
    list(REMOVE_ITEM sources_${folder} ${called_sources_${folder}})
    if(sources_${folder})
      list(APPEND split_folders ${folder})
    else()
      set(sources_${folder} ${called_sources_${folder}})
    endif()
  endif()
endforeach()
set(rung_targets)
foreach(folder IN LISTS rung_folders)
  rungs_target(target ${folder})
  add_rungs(${target} ${folder} ${sources_${folder}})
  list(APPEND rung_targets ${target})
  if(folder IN_LIST split_folders)
    add_rungs(${target}_called ${folder} ${called_sources_${folder}})
    target_link_libraries(${target} PRIVATE ${target}_called)
    target_link_options(${target} PRIVATE LINKER:--no-as-needed)  # rungs are looked for there, too
    list(APPEND rung_targets ${target}_called)
  endif()
endforeach()
if(BUILD_SHARED_LIBS)
  target_compile_definitions(rungs INTERFACE CONVLADDER_OPENS_RUNGS)
  target_link_libraries(rungs INTERFACE ${CMAKE_DL_LIBS})
endif()

if(CONVLADDER_HAVE_NVCC)
  include(RungsOnGpu)
endif()

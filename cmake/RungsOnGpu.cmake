# The rungs once more, compiled by nvcc for GPUs.
file(GLOB_RECURSE gpu_sources CONFIGURE_DEPENDS core/cuda/*.cu cuda_naive/*.cu cuda_optimized/*.cu)

# wgmma and TMA belong to the architecture sm_90a, which nvcc compiles only when asked for it by name,
# and which no other GPU runs. Files whose code, or whose rungs' headers, name wgmma or sm_90a are compiled
# for it alone where sm_90 is wanted. Two headers do not count: kernels for older GPUs include them, too.
set(with_and_without_wgmma cuda_optimized/tile_map/tile_map.cuh cuda_optimized/gemm/shared/half_tiles.cuh)
function(convladder_uses_wgmma out file)  # whether `file` or a header that it includes, by whatever way, does
  get_property(uses GLOBAL PROPERTY "wgmma in ${file}")
  if("${uses}" STREQUAL "")
    set(uses FALSE)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${file} code REGEX "^[^/]*([Ww]gmma|sm_90a)")
    if(code AND NOT file IN_LIST with_and_without_wgmma)
      set(uses TRUE)
    endif()
    file(STRINGS ${PROJECT_SOURCE_DIR}/${file} lines REGEX "^#include \"(cuda_naive|cuda_optimized)/")
    foreach(line IN LISTS lines)
      if(NOT uses)
        string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
        convladder_uses_wgmma(uses ${included})
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY "wgmma in ${file}" ${uses})
  endif()
  set(${out} ${uses} PARENT_SCOPE)
endfunction()

set(sm90a_sources)
foreach(source IN LISTS gpu_sources)
  file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR} ${source})
  convladder_uses_wgmma(uses_wgmma ${file})
  if(uses_wgmma AND NOT file MATCHES "^core/")
    list(APPEND sm90a_sources ${source})
  endif()
endforeach()
set(sm90a_architectures ${CMAKE_CUDA_ARCHITECTURES})
if("90" IN_LIST sm90a_architectures OR "90-real" IN_LIST sm90a_architectures)
  set(sm90a_architectures 90a-real)
endif()
list(REMOVE_ITEM gpu_sources ${sm90a_sources})
add_library(kernels_sm90a OBJECT ${sm90a_sources})
set_target_properties(kernels_sm90a PROPERTIES CUDA_ARCHITECTURES "${sm90a_architectures}")
target_compile_options(kernels_sm90a PRIVATE --default-stream per-thread)
target_include_directories(kernels_sm90a PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(kernels_sm90a PUBLIC CUDA::cudart_static PRIVATE warnings)
add_library(kernels_gpu STATIC ${gpu_sources} $<TARGET_OBJECTS:kernels_sm90a>)
# A stream that can be captured into a graph, which the legacy default stream cannot.
target_compile_options(kernels_gpu PRIVATE --default-stream per-thread)
target_link_libraries(kernels_gpu PUBLIC core CUDA::cudart_static PRIVATE $<BUILD_INTERFACE:warnings>)
target_compile_definitions(core PUBLIC CONVLADDER_HAVE_NVCC)
target_link_libraries(core INTERFACE kernels_gpu)  # core/device.cpp asks core/cuda/device.cu
target_link_libraries(rungs INTERFACE kernels_gpu)

# What `./ladder check gpu-code` builds: device code of everything that nvcc compiles, which no program runs.
# For one architecture, or few, hardly optimised, without the host's half (which g++ compiles against
# cuda_on_cpu), a file takes a third of the time; and most of that goes into what it includes. So a unit
# holds one file of each ladder: two of one ladder would clash in its namespace. The preset
# `cuda` builds the whole, each file for itself.
set(CONVLADDER_GPU_CODE all CACHE STRING "The kernel files, without suffix, of which the target gpu_code makes device code; or all")
set(CONVLADDER_GPU_CODE_ALSO "" CACHE STRING "Further architectures of gpu_code, such as sm_75;sm_120")
set(CONVLADDER_GPU_CODE_SAMPLE "" CACHE STRING "Architectures for which gpu_code also compiles a sample of the kernel files")
set(kFilesOfSample 5)
add_custom_target(gpu_code)
function(add_gpu_code target architecture)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  set(units)
  set(sample)  # few files of different ladders, other ones with each change of a file
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source)
    file(RELATIVE_PATH file ${PROJECT_SOURCE_DIR} ${source})
    if(file MATCHES "^cuda_")
      file(MD5 ${source} digest)
      list(APPEND sample ${digest}:${source})
    endif()
    cmake_path(REMOVE_EXTENSION file)
    if(file MATCHES "^cuda_" AND NOT CONVLADDER_GPU_CODE STREQUAL "all" AND NOT file IN_LIST CONVLADDER_GPU_CODE)
      continue()
    endif()
    string(REGEX MATCH "^[^/]+/[^/]+" folder ${file})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR index_${folder} "${index_${folder}} + 1")
    set(unit ${index_${folder}})
    list(APPEND units ${unit})
    string(APPEND text_${unit} "#include \"${source}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES units)
  set(architectures ${architecture} ${CONVLADDER_GPU_CODE_ALSO})
  list(REMOVE_DUPLICATES architectures)
  set(cubins)
  if(CONVLADDER_GPU_CODE_SAMPLE AND sample)
    list(SORT sample)
    set(folders)
    set(text_sample)
    foreach(source IN LISTS sample)
      string(SUBSTRING ${source} 33 -1 source)
      file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${source})
      string(REGEX MATCH "^[^/]+/[^/]+" folder ${folder})  # whose namespace the file is in
      list(LENGTH folders length)
      if(length LESS kFilesOfSample AND NOT folder IN_LIST folders)
        list(APPEND folders ${folder})
        string(APPEND text_sample "#include \"${source}\"\n")
      endif()
    endforeach()
    list(APPEND units sample)
  endif()
  foreach(unit IN LISTS units)
    if(unit STREQUAL "sample")
      set(architectures ${architecture} ${CONVLADDER_GPU_CODE_SAMPLE})
      list(REMOVE_DUPLICATES architectures)
      if(architecture STREQUAL "sm_90a")  # older GPUs decline these rungs, newer ones get code without wgmma
        list(FILTER architectures INCLUDE REGEX "_(90a|1..)$")
      endif()
    endif()
    set(name ${PROJECT_BINARY_DIR}/gpu_code/${target}_${unit})
    file(CONFIGURE OUTPUT ${name}.cu CONTENT "${text_${unit}}" @ONLY)
    foreach(each IN LISTS architectures)
      set(cubin ${name}.${each}.cubin)
      set(quiet)
      if(NOT each STREQUAL architecture)
        set(quiet ,-w)  # of launch bounds, which are for the other one, ptxas says what it ignores
      endif()
      add_custom_command(
        OUTPUT ${cubin}
        COMMAND ${CMAKE_CUDA_COMPILER} -cubin -arch=${each} -Xcicc=-O1 -Xptxas=-O0${quiet} -std=c++20
                --default-stream per-thread -Xcudafe=--display_error_number -DCONVLADDER_HAVE_NVCC
                $<$<BOOL:${CONVLADDER_WARNINGS_AS_ERRORS}>:-Werror=all-warnings>
                -I${PROJECT_SOURCE_DIR} "-isystem=$<JOIN:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,;-isystem=>"
                -MD -MF ${cubin}.d -x cu ${name}.cu -o ${cubin}
        DEPENDS ${name}.cu
        DEPFILE ${cubin}.d
        COMMENT "Device code of ${target}, part ${unit}, ${each}"
        COMMAND_EXPAND_LISTS VERBATIM)
      list(APPEND cubins ${cubin})
    endforeach()
  endforeach()
  add_custom_target(gpu_code_of_${target} DEPENDS ${cubins})
  add_dependencies(gpu_code gpu_code_of_${target})
endfunction()
add_gpu_code(kernels_gpu sm_90)
add_gpu_code(kernels_sm90a sm_90a)

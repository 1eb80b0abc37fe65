# cmake --install: the ladders as a library, for find_package(ConvLadder). The command stays with the
# clone: it shows its sources, its photographs and its measurements.
#
#   ConvLadder::cpu        the C++ rungs
#   ConvLadder::emulated   the CUDA rungs on the CPU, and the CUDA runtime that runs them; of a build
#                          whose rungs are libraries (presets without nvcc)
#   ConvLadder::microscope what looks at kernels that cuda_on_cpu_add_kernels(... INSPECT) compiles, a
#                          function of the package; where the component `emulated` is
#   ConvLadder::cuda       the CUDA rungs for GPUs; of a build with nvcc
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(library_dir ${CMAKE_INSTALL_LIBDIR}/convladder)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ConvLadder)

# convladder_component(<name> <library>...): the target ConvLadder::<name>.
set(installed core)
set(components)
function(convladder_component name)
  add_library(convladder_${name} INTERFACE)
  target_link_libraries(convladder_${name} INTERFACE core ${ARGN})
  set_target_properties(convladder_${name} PROPERTIES EXPORT_NAME ${name})
  add_library(ConvLadder::${name} ALIAS convladder_${name})  # if this is part of a larger project
  set(installed ${installed} ${ARGN} convladder_${name} PARENT_SCOPE)
  set(components ${components} ${name} PARENT_SCOPE)
endfunction()

set(cpu_libraries ${rung_targets})
list(FILTER cpu_libraries INCLUDE REGEX "^rungs_cpu_reference_")
set(cuda_libraries ${rung_targets})
list(FILTER cuda_libraries EXCLUDE REGEX "^rungs_cpu_reference_")
if(BUILD_SHARED_LIBS)
  convladder_component(cpu ${cpu_libraries})
  convladder_component(emulated cuda_on_cpu ${cuda_libraries})
  convladder_component(microscope cuda_on_cpu_microscope)
  set_target_properties(
    ${cpu_libraries} ${cuda_libraries} core cuda_on_cpu cuda_on_cpu_microscope PROPERTIES
    INSTALL_RPATH "$ORIGIN")
else()
  set(cpu_objects)
  foreach(target IN LISTS cpu_libraries)
    list(APPEND cpu_objects $<TARGET_OBJECTS:${target}_objects>)
  endforeach()
  add_library(rungs_cpu STATIC ${cpu_objects})
  target_link_libraries(rungs_cpu PUBLIC core)  # and therefore precedes it on the linker's command line
  convladder_component(cpu rungs_cpu)
  if(CONVLADDER_HAVE_NVCC)
    convladder_component(cuda kernels_gpu)
  endif()
endif()

install(TARGETS ${installed} EXPORT ConvLadderTargets
        ARCHIVE DESTINATION ${library_dir} LIBRARY DESTINATION ${library_dir})
install(EXPORT ConvLadderTargets NAMESPACE ConvLadder:: DESTINATION ${config_dir})
configure_package_config_file(cmake/ConvLadderConfig.cmake.in ConvLadderConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(ConvLadderConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ConvLadderConfig.cmake
              ${PROJECT_BINARY_DIR}/ConvLadderConfigVersion.cmake DESTINATION ${config_dir})

# A program includes <convladder/conv2d.hpp>. Headers include one another by their paths from the folder `include`, so
# that a program's own file such as core/types.hpp is not found instead.
set(include_dir ${CMAKE_INSTALL_INCLUDEDIR}/convladder)
file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS core/*.hpp ladders/*.hpp)
list(REMOVE_ITEM headers ladders/ladders.hpp ladders/earlier_rungs.hpp ladders/rows.hpp ladders/rung_libraries.hpp ladders/tables.hpp)
install(CODE "
  foreach(header IN ITEMS ${headers})
    file(READ \"${PROJECT_SOURCE_DIR}/\${header}\" text)
    string(REGEX REPLACE \"#include \\\"ladders/\" \"#include \\\"convladder/\" text \"\${text}\")
    string(REGEX REPLACE \"#include \\\"core/\" \"#include \\\"convladder/core/\" text \"\${text}\")
    string(REGEX REPLACE \"^ladders/\" \"\" header \${header})
    file(WRITE \"${PROJECT_BINARY_DIR}/include/convladder/\${header}\" \"\${text}\")
  endforeach()")
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/convladder DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(emulated IN_LIST components)
  install(DIRECTORY cuda_on_cpu/include/ DESTINATION ${include_dir}/cuda_on_cpu)
  install(DIRECTORY cuda_on_cpu/cmake/ DESTINATION ${config_dir}/cuda_on_cpu)
endif()

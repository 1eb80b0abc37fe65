# Counters in the rungs' code only (./ladder check coverage): link `rung_coverage` privately. A program adds its
# counts to the files in profiles/, whoever runs it.
add_library(rung_coverage INTERFACE)
if(NOT CONVLADDER_COVERAGE)
  return()
endif()
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "CONVLADDER_COVERAGE needs clang++, whose coverage knows branches and template instances")
endif()
target_compile_options(rung_coverage INTERFACE
  # %m: a pool of files, into which each run of a program is merged.
  -fprofile-instr-generate=${CMAKE_BINARY_DIR}/profiles/%2m.profraw -fcoverage-mapping
  # Blocks run on several OS threads. Lost counts would cause wrong results: clang counts only a subset of the regions
  # and subtracts to obtain the others.
  -fprofile-update=atomic)
add_link_options(-fprofile-instr-generate)

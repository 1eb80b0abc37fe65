# Counters in the rungs' code, and in nothing else (./ladder check coverage): link `rung_coverage` privately.
# A program adds what it counted to the files in profiles/, whoever runs it.
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
  # Blocks run on several OS threads. A lost count would do more than miss one: clang counts only what it
  # must, and subtracts for the rest.
  -fprofile-update=atomic)
add_link_options(-fprofile-instr-generate)

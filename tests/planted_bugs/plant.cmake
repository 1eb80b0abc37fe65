# Writes the copy of a source with one planted bug:
#
#   cmake -D ROOT=<repository> -D BUG=<id, or "control"> -D RUNG=<rung's source> -D NAME=<namespace>
#         -D WITH=<sources to add, with commas between them> -D FOLDER=<where to> -P plant.cmake
#
# The rung's copy is <FOLDER>/rung<suffix>. It begins with a macro that puts all of it into namespace
# convladder::<NAME>, apart from the real rung. If the bug is in a file that the rung includes, that
# file's copy is <FOLDER>/<its path>: an include with quotes looks beside the including file first.
set(is_control ON)
string(COMPARE EQUAL "${BUG}" "control" is_control)
set(changed_file ${RUNG})

function(planted_bug id)
  cmake_parse_arguments(PARSE_ARGV 1 bug "" "RUNG;FILE;WITH;FIND;REPLACE;TEACHES" "")
  if(NOT id STREQUAL BUG)
    return()
  endif()
  set(file ${RUNG})
  if(bug_FILE)
    set(file ${bug_FILE})
  endif()
  file(READ ${ROOT}/${file} text)
  string(FIND "${text}" "${bug_FIND}" first)
  string(FIND "${text}" "${bug_FIND}" last REVERSE)
  if(first EQUAL -1)
    message(FATAL_ERROR "planted bug ${id}: ${file} does not contain\n  ${bug_FIND}")
  elseif(NOT first EQUAL last)
    message(FATAL_ERROR "planted bug ${id}: ${file} contains this more than once\n  ${bug_FIND}")
  endif()
  string(REPLACE "${bug_FIND}" "${bug_REPLACE}" text "${text}")
  set(changed_file ${file} PARENT_SCOPE)
  set(changed_text "${text}" PARENT_SCOPE)
  set(found ON PARENT_SCOPE)
endfunction()

if(NOT is_control)
  include(${CMAKE_CURRENT_LIST_DIR}/bugs.cmake)
  if(NOT found)
    message(FATAL_ERROR "no planted bug is called ${BUG}")
  endif()
endif()

if(changed_file STREQUAL RUNG AND NOT is_control)
  set(rung_text "${changed_text}")
else()
  file(READ ${ROOT}/${RUNG} rung_text)
  if(NOT is_control)
    file(WRITE ${FOLDER}/${changed_file} "${changed_text}")
  endif()
endif()
cmake_path(GET RUNG EXTENSION suffix)
if(suffix STREQUAL ".cu")
  set(macro BACKEND)        # convladder::BACKEND::<folder>::<ladder>
else()
  set(macro cpu_reference)  # convladder::cpu_reference::<ladder>
endif()
string(REPLACE "," ";" sources "${WITH}")
foreach(source IN LISTS sources)
  string(APPEND rung_text "\n#include \"${source}\"\n")
endforeach()
file(WRITE ${FOLDER}/rung${suffix} "#define ${macro} ${NAME}\n${rung_text}")

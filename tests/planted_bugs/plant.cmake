# Writes the copies of a rung with planted bugs that one unit holds:
#
#   cmake -D ROOT=<repository> -D RUNG=<rung's source> -D BUGS=<ids, or "control", with commas between>
#         -D BACKEND=<namespace, or nothing if the compiler is told> -D WITH=<sources to add, with commas
#         between> -D FOLDER=<where to> -P plant.cmake
#
# The unit is <FOLDER>/rung<suffix>. Without BACKEND, each copy in it stands in a namespace planted_<id>
# within the rung's own, so that all copies share what they do not change: what they include. If the
# bug is in a file that the rung includes, that file's copy is <FOLDER>/<its path>, and the unit is
# compiled with -iquote <FOLDER>.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" BUGS "${BUGS}")
file(REMOVE_RECURSE ${FOLDER})  # also what an entry from before has left
cmake_path(GET RUNG PARENT_PATH folder)
string(REPLACE "/" "::" namespace ${folder})
cmake_path(GET RUNG EXTENSION suffix)
set(unit "")
if(suffix STREQUAL ".cu")
  set(namespace "BACKEND::${namespace}")
  if(BACKEND)
    set(unit "#define BACKEND ${BACKEND}\n")
  endif()
endif()

function(add_copy id text)
  string(FIND "${text}" "namespace convladder::${namespace} {" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "planted bug ${id}: ${RUNG} has no namespace convladder::${namespace}")
  endif()
  if(NOT BACKEND)
    string(REPLACE "namespace convladder::${namespace} {"
                   "namespace convladder::${namespace}::planted_${id} {" text "${text}")
  endif()
  set(unit "${unit}\n${text}" PARENT_SCOPE)
  list(REMOVE_ITEM BUGS ${id})
  set(BUGS "${BUGS}" PARENT_SCOPE)
endfunction()

function(planted_bug id)
  if(NOT id IN_LIST BUGS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 bug "" "RUNG;FILE;WITH;FIND;REPLACE;TEACHES" "")
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
  if(bug_FILE)
    file(WRITE ${FOLDER}/${file} "${text}")
    file(READ ${ROOT}/${RUNG} text)
  endif()
  add_copy(${id} "${text}")
  set(unit "${unit}" PARENT_SCOPE)
  set(BUGS "${BUGS}" PARENT_SCOPE)
endfunction()

cmake_path(GET folder FILENAME ladder)
include(${CMAKE_CURRENT_LIST_DIR}/ladders/${ladder}.cmake)
if("control" IN_LIST BUGS)
  file(READ ${ROOT}/${RUNG} text)
  add_copy(control "${text}")
endif()
if(BUGS)
  message(FATAL_ERROR "no planted bug is called ${BUGS}")
endif()

string(REPLACE "," ";" sources "${WITH}")
foreach(source IN LISTS sources)
  string(APPEND unit "\n#include \"${source}\"\n")
endforeach()
file(WRITE ${FOLDER}/rung${suffix} "${unit}")

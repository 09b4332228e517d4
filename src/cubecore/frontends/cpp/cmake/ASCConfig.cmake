# The package ASC: the language ASC (kernels in .asc and .cpp files), compiled by cubecore c++.
#
# `eval "$(cubecore env)"` names the folder of this file in CMAKE_PREFIX_PATH. Pages: "AI Core SIMD
# compilation" (find_package(ASC), project(... LANGUAGES ASC CXX)).
cmake_policy(PUSH)
cmake_policy(VERSION 3.16)
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
get_filename_component(_cubecore_root "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)

# Objects of every language end in a library that cubecore loads.
# That of an executable alone, -fPIE, would not do.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fPIC>")
include_directories(SYSTEM "${_cubecore_root}/include" "${CMAKE_BINARY_DIR}/cubecore_headers")
execute_process(
  COMMAND "$ENV{CUBECORE_PYTHON}" -m cubecore c++ "--launch-headers=${CMAKE_BINARY_DIR}/cubecore_headers")

# Libraries of the vendor that programs link: headers of cubecore stand for them.
execute_process(
  COMMAND "$ENV{CUBECORE_PYTHON}" -m cubecore env --libraries
  OUTPUT_VARIABLE _cubecore_libraries
  OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(_cubecore_libraries)
foreach(_cubecore_library IN LISTS _cubecore_libraries)
  if(NOT TARGET ${_cubecore_library})
    add_library(${_cubecore_library} INTERFACE IMPORTED)
  endif()
endforeach()

# Definitions of macros, as options of the compiler or without -D.
function(ascendc_compile_definitions target)
  target_compile_definitions(${target} ${ARGN})
endfunction()

# CUBECORE_ONLY: the folder of a sample; of a project of many the others are left out.
if(CUBECORE_ONLY)
  macro(add_subdirectory _cubecore_folder)
    get_filename_component(_cubecore_path "${_cubecore_folder}" ABSOLUTE)
    string(FIND "${CUBECORE_ONLY}/" "${_cubecore_path}/" _cubecore_above)
    string(FIND "${_cubecore_path}/" "${CUBECORE_ONLY}/" _cubecore_below)
    if(_cubecore_above EQUAL 0 OR _cubecore_below EQUAL 0)
      _add_subdirectory("${_cubecore_folder}" ${ARGN})
    endif()
  endmacro()
endif()

set(ASC_FOUND TRUE)
cmake_policy(POP)

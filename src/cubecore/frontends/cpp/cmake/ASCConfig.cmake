# The package ASC: the language ASC (kernels in .asc and .cpp files), compiled by cubecore c++.
#
# `eval "$(cubecore env)"` names the folder of this file in CMAKE_PREFIX_PATH. Pages: "AI Core SIMD
# compilation" (find_package(ASC), project(... LANGUAGES ASC CXX)).
cmake_policy(PUSH)
cmake_policy(VERSION 3.16)
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
get_filename_component(_cubecore_root "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)

# Objects of every language end in a library that cubecore loads.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
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

set(ASC_FOUND TRUE)
cmake_policy(POP)

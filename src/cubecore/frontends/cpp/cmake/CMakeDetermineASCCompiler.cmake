# Finds the compiler of the language ASC: the Python that has cubecore.
if(NOT CMAKE_ASC_COMPILER)
  if(DEFINED ENV{CUBECORE_PYTHON})
    set(CMAKE_ASC_COMPILER "$ENV{CUBECORE_PYTHON}")
  else()
    message(FATAL_ERROR "CUBECORE_PYTHON is not set; run: eval \"$(cubecore env)\"")
  endif()
endif()
mark_as_advanced(CMAKE_ASC_COMPILER)
set(CMAKE_ASC_COMPILER_ENV_VAR "CUBECORE_PYTHON")
configure_file(
  "${CMAKE_CURRENT_LIST_DIR}/CMakeASCCompiler.cmake.in"
  "${CMAKE_PLATFORM_INFO_DIR}/CMakeASCCompiler.cmake" @ONLY)

# How files of the language ASC are compiled and linked.
set(CMAKE_INCLUDE_FLAG_ASC "-I")
set(CMAKE_ASC_DEFINE_FLAG "-D")
set(CMAKE_ASC_COMPILE_OPTIONS_PIC "")
set(CMAKE_ASC_COMPILE_OPTIONS_PIE "")
set(_cubecore "<CMAKE_ASC_COMPILER> -m cubecore c++")
set(CMAKE_ASC_COMPILE_OBJECT "${_cubecore} <DEFINES> <INCLUDES> <FLAGS> -o <OBJECT> -c <SOURCE>")
set(CMAKE_ASC_LINK_EXECUTABLE
    "${_cubecore} <FLAGS> <CMAKE_ASC_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
set(CMAKE_ASC_CREATE_SHARED_LIBRARY
    "${_cubecore} -shared <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
# A program finds the shared libraries of its project as other languages' programs do.
foreach(_cubecore_kind EXECUTABLE SHARED_LIBRARY)
  set(CMAKE_${_cubecore_kind}_RUNTIME_ASC_FLAG "-Wl,-rpath,")
  set(CMAKE_${_cubecore_kind}_RUNTIME_ASC_FLAG_SEP ":")
endforeach()
set(CMAKE_ASC_CREATE_SHARED_MODULE "${CMAKE_ASC_CREATE_SHARED_LIBRARY}")
set(CMAKE_ASC_CREATE_STATIC_LIBRARY "${_cubecore} -lib <OBJECTS> -o <TARGET>")
set(CMAKE_ASC_INFORMATION_LOADED 1)

# What kernel-launch projects include of a toolkit: ascendc_library and its kin. `cubecore env` names
# the folder of this toolkit in ASCEND_HOME_PATH. Page: "Kernel直调工程" (ascendc_library).
get_filename_component(_cubecore_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
list(PREPEND CMAKE_PREFIX_PATH "${_cubecore_root}/cmake")
find_package(ASC REQUIRED)
enable_language(ASC)
set(CMAKE_SKIP_RPATH ON)

# Objects of executables end in a library, too.
set(CMAKE_C_COMPILE_OPTIONS_PIE "${CMAKE_C_COMPILE_OPTIONS_PIC}")
set(CMAKE_CXX_COMPILE_OPTIONS_PIE "${CMAKE_CXX_COMPILE_OPTIONS_PIC}")
if(NOT TARGET host_intf_pub)
  add_library(host_intf_pub INTERFACE IMPORTED GLOBAL)
endif()

# The kernels as objects, whatever the library was to be, and the headers aclrtlaunch_NAME.h.
function(ascendc_library target type)
  set(files ${ARGN})
  list(TRANSFORM files REPLACE "^([^/].*)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  set(launches "${CMAKE_CURRENT_BINARY_DIR}/${target}_launches")
  execute_process(
    COMMAND "${CMAKE_ASC_COMPILER}" -m cubecore c++ "--launch-headers=${launches}" ${files}
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the kernels of ${target} cannot be read")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set_source_files_properties(${files} PROPERTIES LANGUAGE ASC)
  add_library(${target} OBJECT ${files})
  target_include_directories(${target} SYSTEM INTERFACE "${launches}")
endfunction()

function(ascendc_compile_definitions)
  target_compile_definitions(${ARGV})
endfunction()
function(ascendc_compile_options)
  target_compile_options(${ARGV})
endfunction()
function(ascendc_include_directories)
  target_include_directories(${ARGV})
endfunction()

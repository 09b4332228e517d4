// Functions that host code declares and no file of its project defines: each ends the program.
#pragma once

#include <cxxabi.h>

#include <string>

#include "cubecore/host/device.h"

namespace cubecore::op_host {

[[noreturn]] inline void Lacking(const char* name) {
  int state = 0;
  const char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &state);
  std::string text = std::string(plain == nullptr ? name : plain) + " is not provided; define it in op_host, or leave the call out";
  refused(text.c_str());
}

}  // namespace cubecore::op_host

#define CUBECORE_LACKING(OWN, NAME)    \
  extern "C" void OWN() __asm__(NAME); \
  extern "C" void OWN() { ::cubecore::op_host::Lacking(NAME); }

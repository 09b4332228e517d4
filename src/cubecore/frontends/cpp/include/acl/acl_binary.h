// Kernels that host code loads from a binary: declared for programs that have them, and refused
// where one is loaded. Pages of the acl API reference: aclrtBinaryLoadFromFile, aclrtLaunchKernel.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cubecore/host/device.h"

typedef void* aclrtBinary;
typedef void* aclrtBinHandle;
typedef void* aclrtFuncHandle;
typedef void* aclrtArgsHandle;
typedef void* aclrtParamHandle;
struct aclrtBinaryLoadOptions;
struct aclrtLaunchKernelCfg;

#define CUBECORE_OF_BINARIES(NAME)                                                              \
  template <typename... Any>                                                                    \
  inline int NAME(Any&&...) {                                                                   \
    ::cubecore::refused(                                                                        \
        #NAME " needs a kernel's binary for the NPU, which cubecore cannot run; compile the "   \
              "kernel's file with the program (cubecore c++ main.cpp kernel.cpp), and launch "  \
              "it by ACLRT_LAUNCH_KERNEL(name) of aclrtlaunch_name.h");                         \
  }
CUBECORE_OF_BINARIES(aclrtCreateBinary)
CUBECORE_OF_BINARIES(aclrtDestroyBinary)
CUBECORE_OF_BINARIES(aclrtBinaryLoad)
CUBECORE_OF_BINARIES(aclrtBinaryLoadFromFile)
CUBECORE_OF_BINARIES(aclrtBinaryLoadFromData)
CUBECORE_OF_BINARIES(aclrtBinaryUnLoad)
CUBECORE_OF_BINARIES(aclrtBinaryGetFunction)
CUBECORE_OF_BINARIES(aclrtBinaryGetFunctionByEntry)
CUBECORE_OF_BINARIES(aclrtKernelArgsInit)
CUBECORE_OF_BINARIES(aclrtKernelArgsAppend)
CUBECORE_OF_BINARIES(aclrtKernelArgsAppendPlaceHolder)
CUBECORE_OF_BINARIES(aclrtKernelArgsGetPlaceHolderBuffer)
CUBECORE_OF_BINARIES(aclrtKernelArgsParaUpdate)
CUBECORE_OF_BINARIES(aclrtKernelArgsFinalize)
CUBECORE_OF_BINARIES(aclrtLaunchKernel)
CUBECORE_OF_BINARIES(aclrtLaunchKernelWithConfig)
CUBECORE_OF_BINARIES(aclrtLaunchKernelWithHostArgs)
#undef CUBECORE_OF_BINARIES

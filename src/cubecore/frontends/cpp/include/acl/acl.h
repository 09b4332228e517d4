// The device as a host program sees it: memory that both see, streams that are done at once.
// Page: acl API reference (aclrtMalloc, aclrtMemcpy, aclrtSynchronizeStream and their kin).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cubecore/device.h"

typedef int aclError;
typedef void* aclrtStream;
typedef void* aclrtContext;
typedef void* aclrtEvent;
typedef int aclrtMemMallocPolicy;
typedef int aclrtMemcpyKind;

constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;
constexpr aclError ACL_ERROR_BAD_ALLOC = 200000;
enum : int {
  ACL_MEM_MALLOC_HUGE_FIRST,
  ACL_MEM_MALLOC_HUGE_ONLY,
  ACL_MEM_MALLOC_NORMAL_ONLY,
};
enum : int {
  ACL_MEMCPY_HOST_TO_HOST,
  ACL_MEMCPY_HOST_TO_DEVICE,
  ACL_MEMCPY_DEVICE_TO_HOST,
  ACL_MEMCPY_DEVICE_TO_DEVICE,
};

inline aclError aclInit(const char*) { return ACL_SUCCESS; }
inline aclError aclFinalize() { return ACL_SUCCESS; }
inline aclError aclrtSetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }
inline aclError aclrtCreateContext(aclrtContext* context, int32_t) {
  *context = nullptr;
  return ACL_SUCCESS;
}
inline aclError aclrtDestroyContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtSetCurrentContext(aclrtContext) { return ACL_SUCCESS; }
inline aclError aclrtCreateStream(aclrtStream* stream) {
  *stream = nullptr;
  return ACL_SUCCESS;
}
inline aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
inline const char* aclGetRecentErrMsg() { return ""; }

inline aclError aclrtMalloc(void** pointer, size_t size, aclrtMemMallocPolicy) {
  *pointer = reinterpret_cast<void*>(
      cubecore_host(cubecore::ALLOCATE, size, 0, nullptr, nullptr, nullptr));
  return *pointer == nullptr ? ACL_ERROR_BAD_ALLOC : ACL_SUCCESS;
}
inline aclError aclrtFree(void* pointer) {
  cubecore_host(cubecore::FREE, reinterpret_cast<uint64_t>(pointer), 0, nullptr, nullptr, nullptr);
  return ACL_SUCCESS;
}
inline aclError aclrtMallocHost(void** pointer, size_t size) {
  *pointer = std::malloc(size);
  return *pointer == nullptr ? ACL_ERROR_BAD_ALLOC : ACL_SUCCESS;
}
inline aclError aclrtFreeHost(void* pointer) {
  std::free(pointer);
  return ACL_SUCCESS;
}
inline aclError aclrtMemcpy(void* to, size_t, const void* from, size_t count,
                            aclrtMemcpyKind kind) {
  std::memmove(to, from, count);
  if (kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE)
    cubecore_host(cubecore::WRITTEN, reinterpret_cast<uint64_t>(to), count, nullptr, nullptr,
                  nullptr);
  return ACL_SUCCESS;
}
inline aclError aclrtMemcpyAsync(void* to, size_t most, const void* from, size_t count,
                                 aclrtMemcpyKind kind, aclrtStream) {
  return aclrtMemcpy(to, most, from, count, kind);
}
inline aclError aclrtMemset(void* to, size_t, int32_t value, size_t count) {
  std::memset(to, value, count);
  cubecore_host(cubecore::WRITTEN, reinterpret_cast<uint64_t>(to), count, nullptr, nullptr,
                nullptr);
  return ACL_SUCCESS;
}

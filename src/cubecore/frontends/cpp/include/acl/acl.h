// The device as a host program sees it: memory that both see, streams that are done at once.
// Page: acl API reference (aclrtMalloc, aclrtMemcpy, aclrtSynchronizeStream and their kin).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "acl/acl_binary.h"
#include "cubecore/host/acl_types.h"
#include "cubecore/host/device.h"

typedef int aclError;
typedef void* aclrtStream;
typedef void* aclrtContext;
typedef void* aclrtEvent;
typedef int aclrtMemMallocPolicy;
typedef int aclrtMemcpyKind;
typedef int aclrtDevAttr;
typedef int aclrtLastErrLevel;
typedef int aclrtRunMode;

constexpr aclError ACL_SUCCESS = 0;
constexpr aclError ACL_ERROR_NONE = 0;
constexpr aclError ACL_ERROR_INVALID_PARAM = 100000;
constexpr aclError ACL_ERROR_UNINITIALIZE = 100001;
constexpr aclError ACL_ERROR_REPEAT_INITIALIZE = 100002;
constexpr aclError ACL_ERROR_RT_PARAM_INVALID = 107000;
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

enum : int {
  ACL_DEV_ATTR_AICORE_CORE_NUM = 1,
  ACL_DEV_ATTR_CUBE_CORE_NUM,
  ACL_DEV_ATTR_VECTOR_CORE_NUM
};
enum : int { ACL_RT_THREAD_LEVEL };
enum : int { ACL_DEVICE, ACL_HOST };
enum : uint32_t { ACL_EVENT_SYNC = 1, ACL_EVENT_TIME_LINE = 8 };

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
inline aclError aclrtGetRunMode(aclrtRunMode* mode) {
  *mode = ACL_HOST;
  return ACL_SUCCESS;
}
inline aclError aclrtCreateStream(aclrtStream* stream) {
  *stream = nullptr;
  return ACL_SUCCESS;
}
inline aclError aclrtDestroyStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStream(aclrtStream) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeStreamWithTimeout(aclrtStream, int32_t) { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeDevice() { return ACL_SUCCESS; }
inline aclError aclrtSynchronizeDeviceWithTimeout(int32_t) { return ACL_SUCCESS; }
inline const char* aclGetRecentErrMsg() { return ""; }
inline const char* aclrtGetSocName() { return cubecore::soc_family(); }
inline aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = 1;
  return ACL_SUCCESS;
}
inline aclError aclrtGetDevice(int32_t* device) {
  *device = 0;
  return ACL_SUCCESS;
}
inline aclError aclrtGetDeviceInfo(uint32_t, aclrtDevAttr attribute, int64_t* value) {
  uint64_t fact = attribute == ACL_DEV_ATTR_VECTOR_CORE_NUM ? 1 : 0;
  *value = static_cast<int64_t>(cubecore_host(cubecore::CHIP, fact, 0, nullptr, nullptr, nullptr));
  return ACL_SUCCESS;
}
inline aclError aclrtGetLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
// An event holds when it was recorded, by the clock of this machine, in milliseconds; 0 before.
inline aclError aclrtCreateEvent(aclrtEvent* event) {
  *event = new double{};
  return ACL_SUCCESS;
}
inline aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) {
  return aclrtCreateEvent(event);
}
inline aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t) {
  return aclrtCreateEvent(event);
}
inline aclError aclrtDestroyEvent(aclrtEvent event) {
  delete static_cast<double*>(event);
  return ACL_SUCCESS;
}
inline aclError aclrtRecordEvent(aclrtEvent event, aclrtStream) {
  if (event == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *static_cast<double*>(event) = 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * now.tv_nsec;
  return ACL_SUCCESS;
}
// Time that passed here, as the program ran: `cubecore time` predicts that of a chip.
inline aclError aclrtEventElapsedTime(float* ms, aclrtEvent begin, aclrtEvent end) {
  if (begin == nullptr || end == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
  const double first = *static_cast<double*>(begin), last = *static_cast<double*>(end);
  if (first == 0 || last == 0) return ACL_ERROR_RT_PARAM_INVALID;
  *ms = static_cast<float>(last - first);
  return ACL_SUCCESS;
}
inline aclError aclrtSynchronizeEvent(aclrtEvent) { return ACL_SUCCESS; }
inline aclError aclrtStreamWaitEvent(aclrtStream, aclrtEvent) { return ACL_SUCCESS; }

// IEEE 754 binary16, as its bits.
typedef uint16_t aclFloat16;
inline float aclFloat16ToFloat(aclFloat16 value) {
  uint32_t sign = (value & 0x8000u) << 16, exponent = value >> 10 & 31, fraction = value & 0x3FF;
  float magnitude = exponent == 0 ? fraction * 0x1p-24f : 0.0f;
  if (exponent != 0) {
    uint32_t bits = (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    std::memcpy(&magnitude, &bits, 4);
  }
  uint32_t bits;
  std::memcpy(&bits, &magnitude, 4);
  bits |= sign;
  std::memcpy(&magnitude, &bits, 4);
  return magnitude;
}
// To the nearest, the even one of two.
inline aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<aclFloat16>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<aclFloat16>(sign | 0x7C00);
  if (magnitude < 0x38800000) {  // a subnormal: units of 2^-24
    float units;
    std::memcpy(&units, &magnitude, 4);
    units = units * 0x1p24f + 0x1p23f - 0x1p23f;
    return static_cast<aclFloat16>(sign | static_cast<uint32_t>(units));
  }
  uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000;
  return static_cast<aclFloat16>(sign | rounded >> 13);
}

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
  *pointer = cubecore_host_memory(size);
  return *pointer == nullptr ? ACL_ERROR_BAD_ALLOC : ACL_SUCCESS;
}
// Memory that aclrtMallocHost did not give stays as it is.
inline aclError aclrtFreeHost(void* pointer) {
  return cubecore_free_host(pointer) ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}
inline aclError aclrtMemcpy(void* to, size_t, const void* from, size_t count,
                            aclrtMemcpyKind kind) {
  if (kind == ACL_MEMCPY_DEVICE_TO_HOST)
    cubecore_host(cubecore::READ, reinterpret_cast<uint64_t>(from), count, nullptr, nullptr,
                  nullptr);
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
inline aclError aclrtMemsetAsync(void* to, size_t most, int32_t value, size_t count, aclrtStream) {
  return aclrtMemset(to, most, value, count);
}

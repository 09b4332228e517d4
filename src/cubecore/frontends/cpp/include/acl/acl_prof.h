// Ranges that a profiler shows: they enclose launches and change nothing here.
// Page: acl API reference, profiling (aclprofStr2Id, aclprofRangePushEx and their kin).
#pragma once

#include <functional>
#include <string_view>

#include "acl/acl.h"

// Code for older editions has these records itself, unless this name is defined.
#ifndef ACL_PROF_TENSOR_INFO_DEFINED
#define ACL_PROF_TENSOR_INFO_DEFINED
struct aclprofTensor {
  uint32_t type, format, dataType, shapeDim, shape[8];
};

struct aclprofTensorInfo {
  uint64_t opNameId, opTypeId;
  uint32_t resv, tensorNum, kernelType, blockNums;
  aclrtStream stream;
  aclprofTensor* tensors;
};

struct aclprofEventAttributes {
  uint16_t version, size;
  uint32_t messageType;
  union {
    aclprofTensorInfo* tensorInfo;
  } message;
};
#endif

constexpr uint16_t ACL_PROF_EVENT_ATTR_VERSION = 1;
constexpr uint32_t ACL_PROF_MESSAGE_TYPE_TENSOR_INFO = 0;

inline uint64_t aclprofStr2Id(const char* text) {
  return std::hash<std::string_view>()(text);
}
inline aclError aclprofRangePushEx(aclprofEventAttributes*) { return ACL_SUCCESS; }
inline aclError aclprofRangePop() { return ACL_SUCCESS; }

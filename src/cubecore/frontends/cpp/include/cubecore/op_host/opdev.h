// Types that functions over operators name (aclnn, the executor of L0 operators); nothing of them
// is provided, so that what uses them refuses. Page of aclnn: aclTensor, aclOpExecutor.
#pragma once

#include "cubecore/host/acl_types.h"
#include "cubecore/op_host/all.h"

struct aclTensor;
struct aclTensorList;
struct aclScalar;
struct aclScalarList;
struct aclIntArray;
struct aclFloatArray;
struct aclBoolArray;
struct aclOpExecutor;
using aclnnStatus = int32_t;

namespace op {
using ge::DataType;
using ge::Format;
using gert::Shape;
}  // namespace op

#define OP_TYPE_REGISTER(...) static_assert(true)

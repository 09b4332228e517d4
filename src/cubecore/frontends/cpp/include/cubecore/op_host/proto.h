// Prototypes for graphs, which are read and not used: the registration of OpDef says it all.
#pragma once

#include "cubecore/op_host/all.h"

namespace cubecore::op_host {

struct Prototype {
  Prototype Taken() const { return *this; }
};

}  // namespace cubecore::op_host

#define REG_OP(NAME)                                                                          \
  [[maybe_unused]] static const ::cubecore::op_host::Prototype cubecore_prototype_of_##NAME = \
      ::cubecore::op_host::Prototype()
#define INPUT(...) Taken()
#define OPTIONAL_INPUT(...) Taken()
#define DYNAMIC_INPUT(...) Taken()
#define OUTPUT(...) Taken()
#define DYNAMIC_OUTPUT(...) Taken()
#define ATTR(...) Taken()
#define REQUIRED_ATTR(...) Taken()
#define GRAPH(...) Taken()
#define DATATYPE(...) Taken()
#define OP_END_FACTORY_REG(...) Taken();

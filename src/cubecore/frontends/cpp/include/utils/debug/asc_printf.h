// Pages: printf, DumpTensor, ascendc_assert.
#pragma once

#include "kernel_operator.h"

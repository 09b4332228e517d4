// A page names this header; all of the class API lies behind one.
#pragma once

#include "kernel_operator.h"

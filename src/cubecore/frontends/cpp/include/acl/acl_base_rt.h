// Page: acl API reference.
#pragma once

#include "acl/acl.h"

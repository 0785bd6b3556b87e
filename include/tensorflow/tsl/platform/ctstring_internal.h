// Another path of tsl/platform/ctstring_internal.h.

#ifndef TENSORFLOW_TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_
#define TENSORFLOW_TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_

#include "tsl/platform/ctstring_internal.h"

#endif  // TENSORFLOW_TENSORFLOW_TSL_PLATFORM_CTSTRING_INTERNAL_H_

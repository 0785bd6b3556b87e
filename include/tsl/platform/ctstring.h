// Inline functions on TF_TString. See ctstring_internal.h for the layout and for each function.

#ifndef TENSORFLOW_TSL_PLATFORM_CTSTRING_H_
#define TENSORFLOW_TSL_PLATFORM_CTSTRING_H_

#include "tsl/platform/ctstring_internal.h"

#endif  // TENSORFLOW_TSL_PLATFORM_CTSTRING_H_

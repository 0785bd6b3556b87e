// The struct behind TF_Function.
#ifndef RUNNEL_CAPI_FUNCTION_H_
#define RUNNEL_CAPI_FUNCTION_H_

#include "capi/internal.h"
#include "function/function.h"

struct TF_Function {
  rn_function_t* function;  // Retained
};

// Makes a handle that takes the reference |function|, also on failure.
RN_MUST_USE rn_status_t rn_capi_function_wrap(rn_function_t* function, TF_Function** out);

#endif  // RUNNEL_CAPI_FUNCTION_H_

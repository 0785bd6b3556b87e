// Calling the functions of a plug-in. Private to capi/.
#ifndef RUNNEL_CAPI_PLUGIN_CALL_H_
#define RUNNEL_CAPI_PLUGIN_CALL_H_

#include "capi/internal.h"

// Calls a function with a status as its last argument, and returns that.
#define RN_PLUGIN_CALL(fn, ...)       \
  ({                                  \
    TF_Status call_status_ = {RN_OK}; \
    (fn)(__VA_ARGS__, &call_status_); \
    call_status_.rep;                 \
  })

#endif  // RUNNEL_CAPI_PLUGIN_CALL_H_

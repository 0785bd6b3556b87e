// Opening a plug-in, and calling its functions. Private to capi/.
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

// Opens the library |filename|, as dlopen does. NOT_FOUND, with the system's reason, if it cannot
// be opened.
RN_MUST_USE rn_status_t rn_plugin_open(const char* filename, void** out);

#endif  // RUNNEL_CAPI_PLUGIN_CALL_H_

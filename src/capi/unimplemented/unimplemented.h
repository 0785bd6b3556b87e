// For public functions that are not implemented yet: they set TF_UNIMPLEMENTED with their own name
// in the status and return nothing that must be freed. Every argument may be NULL.

#ifndef RUNNEL_CAPI_UNIMPLEMENTED_UNIMPLEMENTED_H_
#define RUNNEL_CAPI_UNIMPLEMENTED_UNIMPLEMENTED_H_

#include <stddef.h>
#include <stdio.h>

#include "tensorflow/c/tf_status.h"

// The parameters belong to the published signature but are not read yet.
#pragma GCC diagnostic ignored "-Wunused-parameter"

static inline void rn_capi_not_yet(TF_Status* status, const char* name) {
  char message[128];
  if (status == NULL) return;
  snprintf(message, sizeof message, "%s is not implemented yet", name);
  TF_SetStatus(status, TF_UNIMPLEMENTED, message);
}

// Sets |status| for the enclosing function.
#define RN_NOT_YET(status) rn_capi_not_yet(status, __func__)

// Sets the out-parameter |out| to zero or NULL.
#define RN_CLEAR(out) ((void)((out) != NULL && ((*(out) = 0), 1)))

#endif  // RUNNEL_CAPI_UNIMPLEMENTED_UNIMPLEMENTED_H_

// How a public function says that it is not implemented yet: TF_UNIMPLEMENTED and its own name in
// the status, and nothing to free in what it returns. NULL is taken everywhere.

#ifndef RUNNEL_CAPI_UNIMPLEMENTED_UNIMPLEMENTED_H_
#define RUNNEL_CAPI_UNIMPLEMENTED_UNIMPLEMENTED_H_

#include <stddef.h>
#include <stdio.h>

#include "tensorflow/c/tf_status.h"

// The parameters are part of the published signature; nothing reads them yet.
#pragma GCC diagnostic ignored "-Wunused-parameter"

static inline void rn_capi_not_yet(TF_Status* status, const char* name) {
  char message[128];
  if (status == NULL) return;
  snprintf(message, sizeof message, "%s is not implemented yet", name);
  TF_SetStatus(status, TF_UNIMPLEMENTED, message);
}

// Sets |status| for the function it stands in.
#define RN_NOT_YET(status) rn_capi_not_yet(status, __func__)

// Leaves zero or NULL behind the out-parameter |out|.
#define RN_CLEAR(out) ((void)((out) != NULL && ((*(out) = 0), 1)))

#endif  // RUNNEL_CAPI_UNIMPLEMENTED_UNIMPLEMENTED_H_

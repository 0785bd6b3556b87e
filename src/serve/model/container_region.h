// Shared memory between the server and a container, for the tensors of one batch at a time.
//
// The server makes it and seals its size, so that no container can shrink it and have the server
// killed by SIGBUS. Its pages are reserved when it is made, for the same reason.
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_REGION_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_REGION_H_

#include "base/status.h"

typedef struct rn_container_region_t {
  char* data;  // NULL: there is none
  size_t size;
} rn_container_region_t;

// Makes and maps |size| bytes or somewhat more. The caller owns |*out_fd|, to pass it on.
// RESOURCE_EXHAUSTED without memory or descriptors.
RN_MUST_USE rn_status_t rn_container_region_make(size_t size, rn_container_region_t* out,
                                                 int* out_fd);
void rn_container_region_free(rn_container_region_t* region);  // a zeroed one is fine

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_REGION_H_

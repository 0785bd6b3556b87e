// RecvTensor: gives a value of a step to the task that asks for it, when it is there. A value in
// the memory of a device is copied first.
#ifndef RUNNEL_DIST_WORKER_RECV_H_
#define RUNNEL_DIST_WORKER_RECV_H_

#include "dist/worker/steps.h"

typedef struct rn_recv_source_t {
  rn_steps_t* steps;
  rn_allocator_t allocator;
  rn_allocator_t memory;  // for copies of values, if their device has none for that
  // Called when a copy begins and when it |ends|. The rest of this must live until then.
  void (*count)(void* self, bool ends);
  void* self;
} rn_recv_source_t;

// Ends |call|, whose key is right and whose value is unset, now or later on any thread.
void rn_recv_serve(const rn_recv_source_t* source, rn_recv_tensor_t* call);

#endif  // RUNNEL_DIST_WORKER_RECV_H_

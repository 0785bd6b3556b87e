// A parking lot for calls that wait for something they share: space in a buffer, a lock.
//
// A call is tried under the lot's lock. If it cannot proceed it is parked in order of arrival;
// whenever a call has ended, all parked calls are tried again. The executor is notified with no
// locks held.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_PARKING_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_PARKING_H_

#include "kernels/cpu/data_flow/wait_line.h"

// Embedded in a resource.
typedef struct rn_parking_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards the resource as well
  rn_wait_line_t line;
  bool is_in_order;  // only the first parked call is tried; set once, after rn_parking_init
} rn_parking_t;

// Tries a call of |owner| with the lock held. False if it must wait. If true, the call is over: its
// outputs are set, or |*out_status| has the error.
typedef bool (*rn_parking_try_t)(rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                                 rn_status_t* out_status);

// Changes |owner| for a call before it is tried for the first time, with the lock held. A failure
// ends the call and must leave |owner| as it was.
typedef rn_status_t (*rn_parking_begin_t)(rn_resource_t* owner, rn_kernel_ctx_t* ctx);

void rn_parking_init(rn_parking_t* parking, rn_allocator_t allocator);
void rn_parking_destroy(rn_parking_t* parking);

// Runs the asynchronous call |ctx| of |owner|, which embeds |parking|; calls rn_done now or later.
// Holds a reference to |owner| until then. |cancelled| is the message of a cancelled call.
void rn_parking_call(rn_parking_t* parking, rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                     rn_parking_try_t attempt, const char* cancelled);
// The same for a call that begins with a change, which calls that wait may need. Nothing is changed
// if the call cannot wait: without memory for it, or when its step is cancelled.
void rn_parking_call_begin(rn_parking_t* parking, rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                           rn_parking_begin_t begin, rn_parking_try_t attempt,
                           const char* cancelled);
// Tries the parked calls, after a change that no call made. The caller holds a reference to the
// owner and no lock.
void rn_parking_retry(rn_parking_t* parking);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_PARKING_H_

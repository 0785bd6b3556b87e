// Calls that wait until something they share allows them to go on: places in a buffer, a lock.
//
// A call is tried under the lot's lock. One that cannot go on yet is parked, in order of arrival,
// and holds no thread; whenever a call has ended, all that are parked are tried again. A parked
// call is ended by a try or by its step's cancellation, whichever comes first; the executor is told
// without locks held.
#ifndef RUNNEL_KERNELS_CPU_DATA_FLOW_PARKING_H_
#define RUNNEL_KERNELS_CPU_DATA_FLOW_PARKING_H_

#include "framework/kernel.h"

typedef struct rn_parked_t rn_parked_t;

// Part of a resource.
typedef struct rn_parking_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards the resource too
  rn_parked_t *first, *last;
} rn_parking_t;

// Tries a call of |owner|, with the lock held: false if it must wait. Otherwise it is over, its
// outputs are set or |*out_status| tells why not.
typedef bool (*rn_parking_try_t)(rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                                 rn_status_t* out_status);

void rn_parking_init(rn_parking_t* parking, rn_allocator_t allocator);
void rn_parking_destroy(rn_parking_t* parking);

// Runs the asynchronous call |ctx| of |owner|, whose lot this is: rn_done is called now or later.
// Keeps a reference to |owner| as long as it takes. |cancelled| is what a cancelled call says.
void rn_parking_call(rn_parking_t* parking, rn_resource_t* owner, rn_kernel_ctx_t* ctx,
                     rn_parking_try_t attempt, const char* cancelled);
// Tries all that are parked, after a change that no call made. The caller holds a reference to
// |owner| and no lock.
void rn_parking_retry(rn_parking_t* parking, rn_resource_t* owner);

#endif  // RUNNEL_KERNELS_CPU_DATA_FLOW_PARKING_H_

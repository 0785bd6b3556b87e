// Traces of devices in a step's statistics. For the files of exec/ only.
//
// TensorFlow lists what a device itself did under names of their own: "DEVICE/stream:all" has its
// kernels, "DEVICE/stream:N" those of one stream with the copies on it, "DEVICE/memcpy" the copies.
// The rows of DEVICE itself have the times at which the host issued the work.
#ifndef RUNNEL_EXEC_TRACE_DEVICE_H_
#define RUNNEL_EXEC_TRACE_DEVICE_H_

#include "device/device.h"
#include "exec/executor.h"
#include "exec/state.h"

// Begins a trace of the device of |state| if the step is traced and the device can. A trace that
// cannot be begun is left out.
void rn_state_trace_begin(rn_state_t* state, const rn_run_t* run);
// Adds what the device did to the statistics. The device has finished.
void rn_state_trace_end(rn_state_t* state, const rn_run_t* run);

// Whether instruction |n| is traced: not if its kernel only passes values on.
static inline bool rn_state_traces(const rn_state_t* state, int32_t n) {
  const rn_kernel_t* kernel = state->trace ? state->plan->instrs[n].kernel : NULL;
  return kernel &&
         !(kernel->def->flags & (RN_KERNEL_FORWARDS | RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_ON_HOST));
}
// What the calling thread issues between these two belongs to instruction |n|.
static inline void rn_state_trace_instr(const rn_state_t* state, int32_t n) {
  if (rn_state_traces(state, n)) state->plan->device->vtable->trace_node(state->trace, n);
}
static inline void rn_state_trace_done(const rn_state_t* state, int32_t n) {
  if (rn_state_traces(state, n)) state->plan->device->vtable->trace_node(state->trace, -1);
}

#endif  // RUNNEL_EXEC_TRACE_DEVICE_H_

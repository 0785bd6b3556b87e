// Traces of a card: see rn_device_vtable_t.
//
// If CUPTI can be used (cupti.h), a trace has every kernel and copy by itself. Otherwise it has one
// entry per node, between two events: from when the card was done with what came before until it
// was done with the node, which includes the time that the host took to issue the work.
#ifndef RUNNEL_DEVICE_CUDA_TRACE_H_
#define RUNNEL_DEVICE_CUDA_TRACE_H_

#include "device/device.h"

RN_MUST_USE rn_status_t rn_cuda_trace_begin(rn_device_t* device, const rn_env_t* env,
                                            rn_device_trace_t** out);
void rn_cuda_trace_node(rn_device_trace_t* trace, int64_t node);
void rn_cuda_trace_end(rn_device_trace_t* trace, rn_trace_visit_t visit, void* self);

#endif  // RUNNEL_DEVICE_CUDA_TRACE_H_

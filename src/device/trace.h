// Traces: what a device did in a step, and for which nodes. Part of the device's vtable.
#ifndef RUNNEL_DEVICE_TRACE_H_
#define RUNNEL_DEVICE_TRACE_H_

#include <stdint.h>

typedef struct rn_device_trace_t rn_device_trace_t;  // the device's own

typedef enum rn_trace_kind_t {
  RN_TRACE_KERNEL = 0,  // or all that a node did, if the device cannot tell kernels apart
  RN_TRACE_TO_DEVICE,
  RN_TRACE_TO_HOST,
  RN_TRACE_WITHIN,  // a copy or a fill within the device's memory
} rn_trace_kind_t;

// Something that a device did.
typedef struct rn_trace_event_t {
  rn_trace_kind_t kind;
  const char* name;  // of a kernel; "" if unknown; valid during the call
  int64_t node;      // see trace_node; -1 if it was issued for none
  int64_t bytes;     // of a copy
  int32_t stream;
  int64_t start_ns, end_ns;  // of the environment's clock
} rn_trace_event_t;

typedef void (*rn_trace_visit_t)(void* self, const rn_trace_event_t* event);

#endif  // RUNNEL_DEVICE_TRACE_H_

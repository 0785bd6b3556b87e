// Forecasts: how long a step takes with a given placement, without running it.
//
// The forecaster follows the executor's rules. A node is ready when its inputs are on its device. A
// pool has a number of lanes; a free lane takes the first ready node of the pool's devices, in the
// order of the step, and runs it to its end; or all of its task, if the fleet says that nodes run
// in tasks. What costs nothing takes no lane. A value that is read on another device is sent there
// once, as soon as it is there; a link carries one value at a time and delivers it |latency_ns|
// after its last byte. A value's memory is held from the start of its node to the end of its last
// reader on each device.
#ifndef RUNNEL_PLACE_AUTO_FORECAST_H_
#define RUNNEL_PLACE_AUTO_FORECAST_H_

#include "place/auto/workload.h"

typedef struct rn_forecaster_t rn_forecaster_t;

typedef struct rn_forecast_t {
  int64_t step_ns;
  int64_t over_bytes;  // by which devices exceed their memory, in all
  int64_t sent_bytes, sent_count;
  int64_t busy_ns[RN_FLEET_MOST_DEVICES];  // of its nodes, in all
  int64_t high_bytes[RN_FLEET_MOST_DEVICES];
  int64_t high_at_ns[RN_FLEET_MOST_DEVICES];  // when it held the most
} rn_forecast_t;

// When a node ran, or when a value was sent.
typedef struct rn_forecast_span_t {
  int32_t node;            // that ran, or whose output was sent
  int32_t output;          // that was sent; -1: the node ran
  int32_t device;          // where it ran, or from where it was sent
  int32_t lane_or_device;  // of the pool; or the receiver
  int64_t start_ns, end_ns;
} rn_forecast_span_t;

// Both are borrowed and must outlive the forecaster. One thread at a time.
RN_MUST_USE rn_status_t rn_forecaster_create(const rn_workload_t* workload, const rn_fleet_t* fleet,
                                             rn_allocator_t allocator, rn_forecaster_t** out);
void rn_forecaster_destroy(rn_forecaster_t* forecaster);

// The step with |devices|, by group. Takes time in proportion to nodes and edges.
void rn_forecast(rn_forecaster_t* forecaster, const int32_t* devices, rn_forecast_t* out);
// The same, with the spans in the order in which nodes started and values were ready to be sent;
// they are the forecaster's until its next call.
void rn_forecast_spans(rn_forecaster_t* forecaster, const int32_t* devices, rn_forecast_t* out,
                       const rn_forecast_span_t** out_spans, size_t* out_count);

// Whether |a| is to be preferred: it fits better into memory, or else is faster, or else sends
// less.
bool rn_forecast_is_better(const rn_forecast_t* a, const rn_forecast_t* b);

#endif  // RUNNEL_PLACE_AUTO_FORECAST_H_

// What the search for a placement knows of a step and of the devices: numbers only, no ops.
//
// A workload is the nodes of a step in an order in which they could run, what each costs on each
// device, and the bytes that it leaves. Nodes of one group share a device. A fleet is the devices,
// the pools of threads that run their nodes, and the links between them. from_step.h makes a
// workload of a step; tests write them by hand.
#ifndef RUNNEL_PLACE_AUTO_WORKLOAD_H_
#define RUNNEL_PLACE_AUTO_WORKLOAD_H_

#include "base/arena.h"

// A set of devices is one word.
enum { RN_FLEET_MOST_DEVICES = 64 };

typedef struct rn_fleet_device_t {
  rn_str_t name;   // full name; Borrowed
  int32_t pool;    // whose threads run its nodes
  double speed;    // relative to the device that costs were measured on: 2 takes half the time
  int64_t memory;  // bytes that nodes of a step may hold; 0: no limit
  // When it learns that a step begins, and how long it takes to tell that its part has ended.
  int64_t start_ns, end_ns;
} rn_fleet_device_t;

// How a value gets from one device to another. A link carries one value at a time.
typedef struct rn_fleet_link_t {
  int64_t latency_ns;
  double ns_per_byte;
  int64_t open_ns;  // when it can carry the first value of a step: the receiver asks for values
} rn_fleet_link_t;

typedef struct rn_fleet_t {
  int32_t device_count;
  rn_fleet_device_t* devices;
  int32_t pool_count;
  int32_t* lanes;          // by pool: nodes that run at a time
  rn_fleet_link_t* links;  // [from * device_count + to]
  int64_t step_ns;         // what a step takes besides its nodes
  // Nodes run in tasks, as exec/tasks.c makes them: those that wait for the same values from other
  // devices run one after the other, and what waits for one of them waits for all. Otherwise every
  // node runs as soon as it can, as in stock TensorFlow.
  bool in_tasks;
} rn_fleet_t;

static inline const rn_fleet_link_t* rn_fleet_link(const rn_fleet_t* fleet, int32_t from,
                                                   int32_t to) {
  return &fleet->links[from * fleet->device_count + to];
}
// How long |bytes| are on the way.
int64_t rn_fleet_transfer_ns(const rn_fleet_t* fleet, int32_t from, int32_t to, int64_t bytes);
// INVALID_ARGUMENT if a number is out of range: no devices or too many, no lanes, a speed that is
// not positive, a negative latency.
RN_MUST_USE rn_status_t rn_fleet_check(const rn_fleet_t* fleet);

// Outputs are numbered over all nodes. A control edge is an output of no bytes.
typedef struct rn_workload_t {
  int32_t node_count, output_count, group_count, device_count;
  int32_t* group;         // by node
  int32_t* first_input;   // by node, and one more: into |inputs|
  int32_t* inputs;        // outputs of nodes with lower numbers, each once per node
  int32_t* first_output;  // by node, and one more: its outputs
  int64_t* bytes;         // by output
  bool* is_alias;         // by node: its outputs are the memory of its inputs
  int64_t* kept;          // by node: bytes that it keeps from step to step
  int64_t* cost_ns;       // [node * device_count + device]
  uint64_t* allowed;      // by group: the devices that it may have
  // Made by rn_workload_finish:
  int32_t* producer;      // by output
  int32_t* first_reader;  // by output, and one more: into |readers|
  int32_t* readers;       // nodes
  int64_t* load_ns;       // by group: the cost of its nodes on their cheapest device
} rn_workload_t;

// Checks everything that the arrays say, and makes the rest, in |arena|. INVALID_ARGUMENT if a
// number is out of range or a group has no device.
RN_MUST_USE rn_status_t rn_workload_finish(rn_workload_t* workload, rn_arena_t* arena);

#endif  // RUNNEL_PLACE_AUTO_WORKLOAD_H_

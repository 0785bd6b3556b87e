// Placement: which device runs each node of a step, and with which kernel; and the partition by
// device.
#ifndef RUNNEL_PLACE_PLACE_H_
#define RUNNEL_PLACE_PLACE_H_

#include "device/device.h"
#include "step/ir.h"

// Devices that nodes should have if they may: what a search has found (place/auto/wishes.h).
typedef struct rn_wishes_t {
  rn_map_t devices;  // name of a node -> number of the device + 1
} rn_wishes_t;

typedef struct rn_place_options_t {
  rn_device_t* const* devices;  // devices[0] is the CPU of this process
  int device_count;
  bool allow_soft_placement;
  bool log_placement;
  // For tools: a node that has no kernel here, or asks for a device that is not there, may go
  // anywhere.
  bool is_lenient;
  // The parts run in one process, with the client: feeds go straight to the device that reads them,
  // fetches come straight from it, and a value moves between host and device memory of one device
  // without a Send and a Recv.
  bool moves_inside;
  // By device: the task that it is of. Edges within a task are left as they are, unless they cross
  // devices in a loop: the task cuts them itself. NULL: all devices are of one task, and all edges
  // between them are cut.
  const int* tasks;
  const char* mark;  // between a node's name and the number of its Sends and Recvs; NULL: "/_"
  const rn_env_t* env;
  rn_str_t default_device;  // where nodes that name no device go if they can; "": any
  // By feed: the device of the resource that will be fed, "" if unknown; NULL: none is known.
  const rn_str_t* feed_devices;
  struct rn_homes_t* homes;  // of the graph's stateful nodes (place/homes.h); NULL: none are kept
  // By feed: the device whose memory will hold the value; by fetch: the device in whose memory the
  // value stays. NULL for host memory, and if all of them are there. Needs |moves_inside|.
  rn_device_t* const* feed_memory;
  rn_device_t* const* fetch_memory;
  const rn_wishes_t* wishes;          // NULL: none
  struct rn_auto_place_t* automatic;  // makes wishes from costs; needs |homes|. NULL: not asked for
} rn_place_options_t;

// Sets |device| and |kernel| of every remaining node. Feeds go to the device whose memory holds
// them. INVALID_ARGUMENT, with stock's message, if a node's device does not exist or no kernel
// fits.
RN_MUST_USE rn_status_t rn_place(rn_ir_t* ir, const rn_place_options_t* options);

// Which nodes must share a device, and which devices they may have.
typedef struct rn_place_groups_t {
  int32_t* group;     // by node of the IR: the node that stands for its group
  uint64_t* allowed;  // by node that stands for a group: a set of the first 64 devices
} rn_place_groups_t;

// What rn_place would keep to; the arrays are in the IR's arena. Fails as rn_place does, and if
// there are more than 64 devices.
RN_MUST_USE rn_status_t rn_place_find_groups(rn_ir_t* ir, const rn_place_options_t* options,
                                             rn_place_groups_t* out);

// Puts a Send and a Recv on every edge that crosses devices, so that each device's nodes can be
// compiled by themselves; with |tasks|, each task's. Fetches end up in host memory: on devices[0]
// unless |moves_inside|; with |tasks|, on any device of its task.
RN_MUST_USE rn_status_t rn_partition(rn_ir_t* ir, const rn_place_options_t* options);

// Whether an output of a node that was placed is in host memory.
bool rn_place_output_is_host(const rn_place_options_t* options, const rn_ir_node_t* node,
                             int32_t output);

#endif  // RUNNEL_PLACE_PLACE_H_

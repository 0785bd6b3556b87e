// The state of a partition: shared by partition.c, which puts Sends and Recvs on edges, and
// loops.c, which gives every device its own loop around them. For these two only.
#ifndef RUNNEL_PLACE_CUT_H_
#define RUNNEL_PLACE_CUT_H_

#include "place/place.h"
#include "step/make.h"

// A loop of the step; number 0 is the step itself.
typedef struct rn_cut_loop_t {
  int32_t parent;
  rn_str_t name;  // of its frame
  int64_t parallel;
  int32_t cond;  // its LoopCond; -1: there is none
} rn_cut_loop_t;

// A device with its own copy of a loop.
typedef struct rn_cut_driver_t {
  int32_t loop;
  rn_device_t* device;
  int32_t pivot;  // runs once per iteration, alive; -1: the client's own nodes drive the loop
} rn_cut_driver_t;

// An existing pair of Send and Recv.
typedef struct rn_cut_pair_t {
  int32_t output;       // of the source; -1: a control edge
  rn_device_t* device;  // where the Recv is
  bool to_host;
  int32_t recv;
  int32_t next;  // next pair of the same source, plus one; 0: none
} rn_cut_pair_t;

typedef struct rn_cut_node_t {
  int32_t loop;        // the loop of its outputs
  int32_t first_pair;  // first pair whose source it is, plus one; 0: none
} rn_cut_node_t;

typedef struct rn_cut_t {
  rn_ir_t* ir;
  const rn_place_options_t* options;
  RN_VEC(rn_cut_node_t) nodes;  // by node of the IR
  RN_VEC(rn_cut_loop_t) loops;
  RN_VEC(rn_cut_driver_t) drivers;
  RN_VEC(rn_cut_pair_t) pairs;
  RN_VEC(int32_t) sends;
  int32_t next_name, next_edge;
} rn_cut_t;

static inline rn_ir_node_t* rn_cut_at(const rn_cut_t* cut, int32_t index) {
  return rn_ir_node(cut->ir, index);
}

// A name that TensorFlow would give a Send, a Recv or a token of |source|.
RN_MUST_USE rn_status_t rn_cut_name(rn_cut_t* cut, rn_str_t source, rn_str_t* out);
// Adds a node that runs on |device| with outputs in |loop|. Pointers to nodes are invalid
// afterwards.
RN_MUST_USE rn_status_t rn_cut_add(rn_cut_t* cut, rn_ir_node_t* node, rn_device_t* device,
                                   int32_t loop, int32_t* out);
// Adds an unread constant for a control edge (|control| >= 0) or a loop to carry.
RN_MUST_USE rn_status_t rn_cut_token(rn_cut_t* cut, rn_device_t* device, int32_t control,
                                     int32_t* out);
// Cuts input |i| of |reader| if it crosses devices.
RN_MUST_USE rn_status_t rn_cut_input(rn_cut_t* cut, int32_t reader, int32_t i);

// Finds the loop of every node.
RN_MUST_USE rn_status_t rn_cut_find_loops(rn_cut_t* cut);
// Copies Enters and NextIterations to the devices that read them, so that nothing crosses between
// iterations.
RN_MUST_USE rn_status_t rn_cut_align_loops(rn_cut_t* cut);
// The node that a Recv on |device| within |loop| must wait for, so that it runs once per iteration:
// the pivot of an empty loop, created here, that iterates as the condition says.
RN_MUST_USE rn_status_t rn_cut_pivot(rn_cut_t* cut, int32_t loop, rn_device_t* device,
                                     int32_t* out);
// Makes sure that |device|, which sends within |loop|, iterates with it.
RN_MUST_USE rn_status_t rn_cut_drive(rn_cut_t* cut, int32_t loop, rn_device_t* device);

#endif  // RUNNEL_PLACE_CUT_H_

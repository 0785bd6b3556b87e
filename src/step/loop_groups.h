// Which nodes become one loop. Private to step/loop_groups.c and step/fuse_loops.c, which writes
// the loops.
//
// A device that compiles loops gives the kernels of elementwise ops and of reductions a number
// (|vector_op|, device/part.h). A group of such nodes on one device reads every input once. All
// elementwise members have the group's shape; what they read from outside may broadcast to it. Its
// reductions reduce values of that shape over the same axes. There are two kinds of groups:
//
// - A reduction and others like it, with what they reduce. Nothing in the group reads their
//   results.
// - Elementwise nodes, with sums along the last axis that they read and what is computed from such
//   sums: softmax, layer norms and their gradients.
//
// A node joins a group that reads it
// - if only the group reads it;
// - as a copy, if its inputs are read anyway, or if there is only one more and no other reader
//   needs the node in memory: reading that instead of the node costs the same, and the node may
//   vanish altogether. So the activations that a gradient needs are computed again from what the
//   gradient reads in any case;
// - or as a further result of the group: sums over a value are taken where the value is computed,
//   and sums along the last axis are results of the group that needs them. A Cast of a value is a
//   result of the group that computes the value.
//
// Small elementwise nodes of one shape join a group though they have nothing to do with it, because
// launching them costs more than running them.
#ifndef RUNNEL_STEP_LOOP_GROUPS_H_
#define RUNNEL_STEP_LOOP_GROUPS_H_

#include "step/ir.h"

enum {
  RN_LOOP_INPUTS = 24,
  RN_LOOP_MEMBERS = 64,
  RN_LOOP_OUTPUTS = 8,
  RN_LOOP_MAX_REDUCTIONS = 6,
};

typedef enum rn_loop_kind_t {
  RN_LOOP_NONE,
  RN_LOOP_POINT,   // elementwise
  RN_LOOP_REDUCE,  // a reduction over neighbouring axes, which are constants
} rn_loop_kind_t;

// The axes [begin, end) go. If |keeps|, they stay as dimensions of size 1.
typedef struct rn_loop_axes_t {
  int begin, end;
  bool keeps;
} rn_loop_axes_t;

typedef struct rn_loop_group_t {
  rn_shape_t shape;
  const rn_device_t* device;
  int32_t members[RN_LOOP_MEMBERS];  // nodes; the seed first
  bool is_copy[RN_LOOP_MEMBERS];     // the node itself stays
  int32_t member_count;
  int32_t reduction_count;
  rn_loop_axes_t axes;  // of the reductions
  bool takes_rows;      // reductions along the last axis, and what is computed from them, may join
} rn_loop_group_t;

typedef struct rn_loop_graph_t {
  rn_ir_t* ir;
  rn_ir_uses_t* uses;     // by node; |reads| is kept up to date
  uint8_t* kind;          // by node: rn_loop_kind_t
  rn_loop_axes_t* axes;   // by node: of reductions
  int32_t* held;          // by node: how many uses that are not by loops want its value in memory
  int32_t *order, count;  // the nodes in topological order
  int32_t* place;         // by node: in |order|
  bool* is_tainted;       // by node; scratch, all false
  int8_t* role;           // by node: 0, 1 a member, 2 a copy; scratch, all 0
  bool merges;            // nodes without a path between them may join
} rn_loop_graph_t;

RN_MUST_USE rn_status_t rn_loops_init(rn_loop_graph_t* loops, rn_ir_t* ir);
// Sorts the nodes again, after edges were changed.
RN_MUST_USE rn_status_t rn_loops_sort(rn_loop_graph_t* loops);

// Starts a group with |seed|, a loop, and takes in what it can.
void rn_loop_group_find(const rn_loop_graph_t* loops, int32_t seed, rn_loop_group_t* out);

// The number of node |index| among the members; -1: it is none.
int32_t rn_loop_member(const rn_loop_group_t* group, int32_t index);
// How many inputs of a member are operands: axes and shapes are not.
int32_t rn_loop_operands(const rn_loop_graph_t* loops, int32_t index);
// Whether a loop does nothing but broadcast, so that it is no group's seed or result.
bool rn_loop_only_repeats(const rn_loop_graph_t* loops, int32_t index);
// Whether nodes outside the group read member |m|.
bool rn_loop_is_output(const rn_loop_graph_t* loops, const rn_loop_group_t* group, int32_t m);

#endif  // RUNNEL_STEP_LOOP_GROUPS_H_

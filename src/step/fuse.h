// Inside elementwise fusion: fuse_elementwise.c finds groups of nodes, fuse_program.c turns one
// into a node.
#ifndef RUNNEL_STEP_FUSE_H_
#define RUNNEL_STEP_FUSE_H_

#include "step/ir.h"

// Columns of a part of a matrix that are worth a pass over each row of it.
#define RN_FUSE_COLUMNS 64
// Elements from which several results are made at once, and parts are not copied: below it, that
// costs more than the copies.
#define RN_FUSE_ELEMENTS 1024

typedef struct rn_fuse_t {
  rn_ir_t* ir;
  const rn_op_def_t *one, *many;  // the ops of a group with one result, and of any group
  const rn_op_def_t *split, *split_v, *concat;
  int32_t* consumers;      // by node: how many inputs of others read it
  int32_t *first, *reads;  // the nodes of those: by node, where they begin in |reads|
  bool* is_pinned;         // by node: fetched, a target, or with control edges: stays by itself
  int32_t* level;          // by node: edges of the longest path from it
  int32_t* waits;          // by node: equal for nodes that wait for the same asynchronous ones
  int32_t* group;          // by node: the root of the group it was taken into; -1: none
  int32_t* inside;         // by node: how many of its consumers are in the group being built
  int32_t* stamp;          // by node: the attempt at a group that |inside| counts for
  int32_t attempts;
  // For fuse_program.c, by node:
  int32_t *order, *stack, *operand, *readers;
  uint8_t* cursor;
} rn_fuse_t;

// Nodes over one shape, and, if the root is a ConcatV2, that.
typedef struct rn_fuse_group_t {
  int32_t root;
  int32_t parts;  // what the root puts side by side; 0: it is elementwise itself
  rn_shape_t shape;
  bool is_large;            // RN_FUSE_ELEMENTS
  RN_VEC(int32_t) members;  // root first, then as they were taken in
} rn_fuse_group_t;

// The axis of a matrix that |edge| names; -1 if it is no constant, or names none.
int rn_fuse_axis(const rn_fuse_t* f, rn_ir_edge_t edge);

// Turns the root into the fused node, drops the others and points to the fused node whoever reads
// them; if the program would have too many operands, the group is dissolved.
RN_MUST_USE rn_status_t rn_fuse_build(rn_fuse_t* f, const rn_fuse_group_t* group);

#endif  // RUNNEL_STEP_FUSE_H_

// Internals of elementwise fusion: fuse_elementwise.c finds groups of nodes, fuse_program.c turns
// each group into one node.
#ifndef RUNNEL_STEP_FUSE_H_
#define RUNNEL_STEP_FUSE_H_

#include "step/make.h"

// A part of a matrix needs at least this many columns to be processed row by row.
#define RN_FUSE_COLUMNS 64
// From this many elements on, a group computes several results in one pass and reads parts in
// place; below it, that costs more than copying.
#define RN_FUSE_ELEMENTS 1024

typedef struct rn_fuse_t {
  rn_ir_t* ir;
  const rn_op_def_t *one, *many;  // the op for groups with one result, and the op for any group
  const rn_op_def_t *split, *split_v, *concat;
  int32_t* consumers;      // by node: number of inputs that read it
  int32_t *first, *reads;  // by node: where its readers begin in |reads|
  bool* is_pinned;  // by node: must not be fused, because it is fetched, a target, or has control
                    // edges
  int32_t* level;   // by node: length in edges of the longest path from it
  int32_t* waits;   // by node: equal for nodes that wait for the same asynchronous ones
  int32_t* group;   // by node: the root of the group that it belongs to; -1 if none
  int32_t* inside;  // by node: number of its readers in the group being built
  int32_t* stamp;   // by node: the attempt that |inside| belongs to
  int32_t attempts;
  // Scratch of fuse_program.c, by node:
  int32_t *order, *stack, *operand, *readers;
  uint8_t* cursor;
} rn_fuse_t;

// Elementwise nodes over one shape; the root may also be a ConcatV2 of them.
typedef struct rn_fuse_group_t {
  int32_t root;
  int32_t parts;  // number of inputs that a ConcatV2 root joins; 0 if the root is elementwise
  rn_shape_t shape;
  bool is_large;            // has at least RN_FUSE_ELEMENTS elements
  RN_VEC(int32_t) members;  // root first, then in the order they were added
} rn_fuse_group_t;

// Turns the root into the fused node, removes the other members and redirects their readers to it.
// Leaves the nodes as they are if the program would need too many operands.
RN_MUST_USE rn_status_t rn_fuse_build(rn_fuse_t* f, const rn_fuse_group_t* group);

#endif  // RUNNEL_STEP_FUSE_H_

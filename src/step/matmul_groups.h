// Groups of nodes that one matmul by a common matrix computes for all of them. Private to
// hoist_rnn_inputs.c, hoist_loop_inputs.c and slice_matmul_columns.c.
#ifndef RUNNEL_STEP_MATMUL_GROUPS_H_
#define RUNNEL_STEP_MATMUL_GROUPS_H_

#include "step/make.h"

// When a common matmul pays: for at least this many nodes, with at most this many rows each and in
// all, by a matrix of at least this many bytes. A smaller matrix stays in the cache from one matmul
// to the next.
#define RN_MATMUL_LEAST_NODES 4
#define RN_MATMUL_MOST_ROWS 256
#define RN_MATMUL_MOST_ROWS_IN_ALL (1 << 14)
#define RN_MATMUL_LEAST_BYTES (1 << 20)

typedef struct rn_matmul_part_t {
  rn_ir_edge_t matrix;
  int64_t range[2];  // which part of the matrix, and how much; equal within a group
  int32_t node;      // what the common matmul computes
  int32_t source;    // what it reads for that
} rn_matmul_part_t;
typedef RN_VEC(rn_matmul_part_t) rn_matmul_parts_t;

// Sorts |parts| into groups of one matrix, range and device, and calls |visit| with each. |visit|
// may add nodes.
RN_MUST_USE rn_status_t rn_matmul_each_group(
    const rn_ir_t* ir, rn_matmul_parts_t* parts,
    rn_status_t (*visit)(void* pass, const rn_matmul_part_t* parts, size_t count), void* pass);

// Whether a source of the group depends on one of its nodes.
RN_MUST_USE rn_status_t rn_matmul_group_is_chain(rn_ir_t* ir, const rn_matmul_part_t* parts,
                                                 size_t count, bool* out);

// Makes a node for rows [first, first + count) of a matrix of |columns|, on the device of |like|, a
// matmul. The caller sets its input.
RN_MUST_USE rn_status_t rn_matmul_make_rows(rn_ir_t* ir, const rn_ir_node_t* like, int64_t first,
                                            int64_t count, int64_t columns, rn_ir_node_t* out);
// Adds the common matmul: |lefts|, matrices of |rows| by |depth| together, stacked, times |right|.
// It is like |like|, except that its result has |columns|. |*out| is -1 if there is no kernel.
RN_MUST_USE rn_status_t rn_matmul_add_common(rn_ir_t* ir, const rn_ir_node_t* like,
                                             const rn_ir_edge_t* lefts, int32_t count, int64_t rows,
                                             int64_t depth, int32_t right, int64_t columns,
                                             int32_t* out);

// The BiasAdd that is the only reader of |product|, a matmul of known shape; -1 if there is none.
// |uses| is by node.
int32_t rn_matmul_bias_add(const rn_ir_t* ir, const rn_ir_uses_t* uses, int32_t product);

#endif  // RUNNEL_STEP_MATMUL_GROUPS_H_

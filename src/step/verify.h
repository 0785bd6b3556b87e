// The verifier of a step's graph: what must hold after every pass, checked from the definitions
// alone.
//
// doc/invariants.md: invariant 20a.
#ifndef RUNNEL_STEP_VERIFY_H_
#define RUNNEL_STEP_VERIFY_H_

#include "step/ir.h"

// How far planning has come: each stage adds conditions.
typedef enum rn_ir_stage_t {
  RN_IR_PRUNED,       // edges, counts, types, shapes, order
  RN_IR_PLACED,       // every node has a device and a kernel for it; colocated nodes share a device
  RN_IR_PARTITIONED,  // no edge crosses devices
} rn_ir_stage_t;

// Remembers, by node, where the shapes of the client's own graph contradict each other: there its
// kernel will fail, and no pass is to blame. Zero-initialized; the arrays are in the IR's arena.
typedef struct rn_ir_excuses_t {
  size_t count;
  bool* is_excused;
} rn_ir_excuses_t;

// INTERNAL, naming the node and the condition, if |ir| is broken. If |is_clients|, nodes came from
// the client's graph since the last call, and contradictions between the shapes of those nodes are
// excused from now on.
RN_MUST_USE rn_status_t rn_ir_verify(rn_ir_t* ir, rn_ir_stage_t stage, bool is_clients,
                                     rn_ir_excuses_t* inout_excuses);

#endif  // RUNNEL_STEP_VERIFY_H_

// The plan under construction, shared by the phases of rn_plan_create. For the files of exec/ only.
#ifndef RUNNEL_EXEC_COMPILE_H_
#define RUNNEL_EXEC_COMPILE_H_

#include "exec/plan.h"

// What a node is compiled to.
typedef enum rn_fate_t {
  RN_FATE_ELSEWHERE = 0,  // removed, or on another device
  RN_FATE_VALUE,          // a feed or a constant: a slot, no instruction
  RN_FATE_ALIAS,          // an identity: its input's slot
  RN_FATE_INSTR,
} rn_fate_t;

typedef struct rn_compile_t {
  rn_ir_t* ir;
  const rn_plan_options_t* options;
  rn_plan_t* plan;
  rn_arena_t* scratch;  // the IR's
  rn_strbuf_t label;    // of the current instruction; one buffer serves all of them
  int32_t* order;       // IR nodes in topological order
  int32_t order_count;
  uint8_t* fate;        // by IR node: rn_fate_t
  int32_t* task;        // by IR node
  int32_t* instr;       // by IR node; -1
  int32_t* first_slot;  // by IR node; slots of an alias are its input's
  int32_t* node_of;     // by instruction: IR node
  bool* is_awaited;     // by IR node: has control consumers here, or is a target

  // By slot, filled by rn_compile_lifetimes:
  int32_t* producer;  // instruction; -1 for feeds and constants
  int32_t* root;      // the slot whose bytes it shares: itself, unless a forwarding kernel makes it
  int32_t* last_reader;  // instruction that reads it last, in order; -1
  bool* is_fetched;
  bool* crosses_tasks;  // readers, or producer and readers, in several tasks
  bool* escapes;        // by root: bytes may be needed after their last reader here
} rn_compile_t;

static inline const rn_ir_node_t* rn_compile_node(const rn_compile_t* c, int32_t node) {
  return rn_ir_node(c->ir, node);
}
static inline int32_t rn_compile_slot(const rn_compile_t* c, rn_ir_edge_t edge) {
  return c->fate[edge.node] == RN_FATE_ALIAS ? c->first_slot[edge.node]
                                             : c->first_slot[edge.node] + edge.output;
}

// order_memory.c: orders the nodes of a device without control flow so that less memory is in use
// at a time.
RN_MUST_USE rn_status_t rn_compile_order(rn_compile_t* c);
// tasks.c: numbers the tasks of the nodes in |order|.
RN_MUST_USE rn_status_t rn_compile_tasks(rn_compile_t* c);
// memory_plan.c: last readers, places for values of known shape, and what to clear when.
RN_MUST_USE rn_status_t rn_compile_lifetimes(rn_compile_t* c);
RN_MUST_USE rn_status_t rn_compile_memory(rn_compile_t* c);
RN_MUST_USE rn_status_t rn_compile_releases(rn_compile_t* c);
// compile_frames.c: static frames and edges of a plan with loops or conditionals.
RN_MUST_USE rn_status_t rn_compile_frames(rn_compile_t* c);
// compile_loops.c: finds the straight loops among the frames.
RN_MUST_USE rn_status_t rn_compile_loops(rn_compile_t* c);

#endif  // RUNNEL_EXEC_COMPILE_H_

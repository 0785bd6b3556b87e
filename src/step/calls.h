// State shared by the two passes that take calls apart. Private to step/inline_calls.c,
// step/splice_body.c, step/lower_control_flow.c and step/expand_composites.c.
#ifndef RUNNEL_STEP_CALLS_H_
#define RUNNEL_STEP_CALLS_H_

#include "function/function.h"
#include "step/make.h"

// What the passes know of a node besides the node itself.
typedef struct rn_call_note_t {
  int32_t call;     // the call whose body it came from; -1 if none
  bool is_awaited;  // a node runs after it, or it is a target
  bool is_pivoted;  // a call that is dead exactly when its control inputs are
  bool is_pruned;   // a call whose body is pruned to what its used results need
  // By output: the edge that replaced it; NULL while the node is still there.
  rn_ir_edge_t* replacement;
  int32_t end;  // of a replaced node: the node that runs after all of its replacement; -1 if none
} rn_call_note_t;

// A call that was expanded.
typedef struct rn_expanded_call_t {
  int32_t parent;  // the call that it was nested in; -1 if none
  const rn_function_body_t* body;
} rn_expanded_call_t;

typedef struct rn_calls_t {
  rn_ir_t* ir;
  const rn_calls_options_t* options;
  size_t first_count;            // number of nodes before the pass added any
  RN_VEC(rn_call_note_t) notes;  // by node
  RN_VEC(rn_expanded_call_t) calls;
  RN_VEC(int32_t) targets;  // to be added
  bool can_be_dead;  // the graph has conditionals or loops, so a call may be on an untaken branch
  bool has_changed;
} rn_calls_t;

// Whether |role| is one of conditionals and loops: Switch to NextIteration.
static inline bool rn_is_branching(uint8_t role) {
  return role >= RN_ROLE_SWITCH && role <= RN_ROLE_NEXT_ITERATION;
}

// Notes a node that was added last.
RN_MUST_USE rn_status_t rn_calls_note(rn_calls_t* calls, rn_call_note_t note);
// Notes that |node| runs after the nodes of its control edges.
void rn_calls_note_controls(rn_calls_t* calls, const rn_ir_node_t* node);

// Adds a node named "origin/name" of |op|, with attributes (see rn_ir_make_attrs), output types and
// inputs, all copied. Pointers to nodes are invalid afterwards.
typedef struct rn_calls_new_t {
  const rn_op_def_t* op;
  const char* name;
  int32_t number;  // suffix of the name; -1 for none
  const rn_attr_t* given;
  const rn_ir_edge_t* inputs;
  int32_t input_count;
  const int32_t* controls;
  int32_t control_count;
  const rn_dtype_t* types;
  int32_t output_count;
} rn_calls_new_t;
RN_MUST_USE rn_status_t rn_calls_add(rn_calls_t* calls, int32_t origin, const rn_calls_new_t* node,
                                     int32_t* out);
// Add an Identity of |edge| and a NoOp; both run after |controls|.
RN_MUST_USE rn_status_t rn_calls_identity(rn_calls_t* calls, int32_t origin, const char* name,
                                          int32_t number, rn_ir_edge_t edge,
                                          const int32_t* controls, int32_t control_count,
                                          int32_t* out);
RN_MUST_USE rn_status_t rn_calls_no_op(rn_calls_t* calls, int32_t origin, const char* name,
                                       const int32_t* controls, int32_t control_count,
                                       int32_t* out);
// The dtype of |edge|, without the reference mark.
rn_dtype_t rn_calls_type(const rn_calls_t* calls, rn_ir_edge_t edge);
// Adds a call of |function| with these inputs and output types.
RN_MUST_USE rn_status_t rn_calls_call(rn_calls_t* calls, int32_t origin, const char* name,
                                      int32_t number, const rn_func_attr_t* function,
                                      bool is_stateful, const rn_ir_edge_t* inputs,
                                      int32_t input_count, const int32_t* controls,
                                      int32_t control_count, const rn_dtype_t* types,
                                      int32_t output_count, int32_t* out);
// Copies |count| edges into the IR's arena.
RN_MUST_USE rn_status_t rn_calls_copy_edges(rn_ir_t* ir, const rn_ir_edge_t* from, int32_t count,
                                            rn_ir_edge_t** out);
// Makes |node| a call of |function| with the inputs and outputs that it has.
RN_MUST_USE rn_status_t rn_calls_become(rn_calls_t* calls, rn_ir_node_t* node,
                                        const rn_func_attr_t* function, bool is_stateful);
// Records that |edges| (in the IR's arena) and |end| replace node |index|.
void rn_calls_replace(rn_calls_t* calls, int32_t index, rn_ir_edge_t* edges, int32_t end);

// splice_body.c: puts the nodes of |body| in the place of node |index|, a call whose arguments and
// results have the types of |body|'s.
RN_MUST_USE rn_status_t rn_calls_splice(rn_calls_t* calls, int32_t index,
                                        const rn_function_body_t* body);

// lower_control_flow.c: lowers node |index|, of role IF, CASE or WHILE, if that is possible and
// requested.
RN_MUST_USE rn_status_t rn_calls_lower(rn_calls_t* calls, int32_t index);

// Replaces composite nodes by what they stand for (step/expand_composites.c).
RN_MUST_USE rn_status_t rn_expand_composites(rn_ir_t* ir);
// Whether |node| stands for several nodes of one kind, and puts those in the place of node |index|
// (step/expand_lists.c).
bool rn_expand_is_list(const rn_ir_node_t* node);
RN_MUST_USE rn_status_t rn_expand_list(rn_ir_t* ir, int32_t index);

#endif  // RUNNEL_STEP_CALLS_H_

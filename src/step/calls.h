// What the two passes over calls share. Private to step/inline_calls.c and
// step/lower_control_flow.c.
#ifndef RUNNEL_STEP_CALLS_H_
#define RUNNEL_STEP_CALLS_H_

#include "function/function.h"
#include "step/ir.h"

// What is known of a node of the IR beside the node itself.
typedef struct rn_call_note_t {
  int32_t call;               // the call whose body it came from; -1: none
  bool is_awaited;            // somebody runs after it, or it is a target
  bool is_pivoted;            // a call that is dead just when its control inputs are
  bool is_pruned;             // a call whose body runs only what is used of it
  rn_ir_edge_t* replacement;  // by output: what took its place; NULL: it is still there
  int32_t end;                // of a node that was replaced: what runs after all of it; -1
} rn_call_note_t;

// A call that was taken apart.
typedef struct rn_expanded_call_t {
  int32_t parent;  // the call that it came from; -1: none
  const rn_function_body_t* body;
} rn_expanded_call_t;

typedef struct rn_calls_t {
  rn_ir_t* ir;
  const rn_calls_options_t* options;
  size_t first_count;            // nodes before anything was added
  RN_VEC(rn_call_note_t) notes;  // by node
  RN_VEC(rn_expanded_call_t) calls;
  RN_VEC(int32_t) targets;  // to be added
  bool can_be_dead;         // there are conditionals or loops: a call may be on a way not taken
  bool has_changed;
} rn_calls_t;

// Adds a node that came with node |origin|: "origin/name" of |op| with these attributes (by place,
// in the IR's arena), types of outputs (copied) and inputs (copied). Pointers to nodes are invalid
// afterwards.
typedef struct rn_calls_new_t {
  const rn_op_def_t* op;
  const char* name;
  int32_t number;  // behind the name; -1: none
  const rn_attr_value_t* attrs;
  const rn_ir_edge_t* inputs;
  int32_t input_count;
  const int32_t* controls;
  int32_t control_count;
  const rn_dtype_t* types;
  int32_t output_count;
} rn_calls_new_t;
RN_MUST_USE rn_status_t rn_calls_add(rn_calls_t* calls, int32_t origin, const rn_calls_new_t* node,
                                     int32_t* out);
// An Identity of |edge|, and a node that does nothing, both running after |controls|.
RN_MUST_USE rn_status_t rn_calls_identity(rn_calls_t* calls, int32_t origin, const char* name,
                                          int32_t number, rn_ir_edge_t edge,
                                          const int32_t* controls, int32_t control_count,
                                          int32_t* out);
RN_MUST_USE rn_status_t rn_calls_no_op(rn_calls_t* calls, int32_t origin, const char* name,
                                       const int32_t* controls, int32_t control_count,
                                       int32_t* out);
// The type on |edge|, as a value.
rn_dtype_t rn_calls_type(const rn_calls_t* calls, rn_ir_edge_t edge);
// Room for attributes of |op| with the one called |name| of kind type set to |type|.
RN_MUST_USE rn_status_t rn_calls_type_attr(rn_calls_t* calls, const rn_op_def_t* op,
                                           rn_dtype_t type, rn_attr_value_t** out);
// A call of |function| with these inputs, which gives |types|.
RN_MUST_USE rn_status_t rn_calls_call(rn_calls_t* calls, int32_t origin, const char* name,
                                      int32_t number, const rn_func_attr_t* function,
                                      bool is_stateful, const rn_ir_edge_t* inputs,
                                      int32_t input_count, const int32_t* controls,
                                      int32_t control_count, const rn_dtype_t* types,
                                      int32_t output_count, int32_t* out);
// Says what took the place of node |index|: |edges| (in the IR's arena) and |end|.
void rn_calls_replace(rn_calls_t* calls, int32_t index, rn_ir_edge_t* edges, int32_t end);

// lower_control_flow.c: takes apart node |index|, of role IF, CASE or WHILE, if it can be and is to
// be.
RN_MUST_USE rn_status_t rn_calls_lower(rn_calls_t* calls, int32_t index);

#endif  // RUNNEL_STEP_CALLS_H_

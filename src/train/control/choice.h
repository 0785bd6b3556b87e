// What conditionals of all kinds share: branches, the agreement of their results, and functions
// made of them.
#ifndef RUNNEL_TRAIN_CONTROL_CHOICE_H_
#define RUNNEL_TRAIN_CONTROL_CHOICE_H_

#include "runnel/control_flow.h"
#include "train/control/region.h"

// A choice under construction; branches go by number.
typedef struct rn_choice_t {
  rn_scope_t* scope;  // the client's
  rn_scope_t* here;   // under it, "cond/"
  const rn_branch_t* branches;
  int branch_count;
  bool is_cond;         // what is done if the predicate holds comes last
  rn_edge_t** results;  // |count| of each branch
  int count;
  rn_waits_t waits;
  size_t node_count;  // before anything was built
  rn_arena_t arena;
} rn_choice_t;

// The node that calls one of the functions that branches became.
typedef struct rn_choice_call_t {
  const char** functions;
  rn_edge_t* inputs;  // of every function
  int input_count;
  int* types;  // of the results
  rn_shape_t* shapes;
  bool is_stateful;
} rn_choice_call_t;

// |choice| has scope, branches and counts. False after an error; rn_choice_end is due anyway.
bool rn_choice_begin(rn_choice_t* choice, const char* name);
// |out| becomes the results of no branch after an error, and the nodes are taken back.
void rn_choice_end(rn_choice_t* choice, rn_edge_t* out);

// Asks branch |number| for its results, which are of the inside then.
void rn_choice_build(rn_choice_t* choice, int number, rn_region_t* region, rn_str_t prefix,
                     rn_node_t* anchor);
// False, and an error that names the nodes, if results have different types.
bool rn_choice_agrees(rn_choice_t* choice);

// Makes functions of all branches and takes their nodes back.
bool rn_choice_define(rn_choice_t* choice, rn_choice_call_t* out_call);
// Ends the node that was begun in the client's scope and has its first input.
void rn_choice_finish(rn_choice_t* choice, const rn_choice_call_t* call, rn_edge_t* out);

#endif  // RUNNEL_TRAIN_CONTROL_CHOICE_H_

// What conditionals of all kinds share: branches, the agreement of their results, and functions
// made of them.
#ifndef RUNNEL_TRAIN_CONTROL_CHOICE_H_
#define RUNNEL_TRAIN_CONTROL_CHOICE_H_

#include "runnel/control_flow.h"
#include "train/control/region.h"

// A conditional under construction; branches are numbered.
typedef struct rn_choice_t {
  rn_scope_t* scope;  // the client's
  rn_scope_t* here;   // under it, "cond/"
  const rn_branch_t* branches;
  int branch_count;
  bool is_cond;         // then the branch for a true predicate is the last
  rn_edge_t** results;  // |count| per branch
  int count;
  rn_waits_t waits;
  size_t node_count;  // of the graph before the conditional was built
  rn_arena_t arena;
} rn_choice_t;

// The node that calls one function per branch.
typedef struct rn_choice_call_t {
  const char** functions;
  rn_edge_t* inputs;  // of every function
  int input_count;
  int* types;  // of the results
  rn_shape_t* shapes;
  bool is_stateful;
} rn_choice_call_t;

// |choice| has scope, branches and counts. False after an error; call rn_choice_end in either case.
bool rn_choice_begin(rn_choice_t* choice, const char* name);
// After an error, sets |out| to invalid edges and removes the nodes that were built.
void rn_choice_end(rn_choice_t* choice, rn_edge_t* out);

// Builds branch |number|. Its results are then edges inside the branch.
void rn_choice_build(rn_choice_t* choice, int number, rn_region_t* region, rn_str_t prefix,
                     rn_node_t* anchor);
// Returns false and sets an error that names the nodes if results have different types.
bool rn_choice_agrees(rn_choice_t* choice);

// Turns every branch into a function and removes its nodes from the graph.
bool rn_choice_define(rn_choice_t* choice, rn_choice_call_t* out_call);
// Completes the node that was begun in the client's scope and already has its first input.
void rn_choice_finish(rn_choice_t* choice, const rn_choice_call_t* call, rn_edge_t* out);

#endif  // RUNNEL_TRAIN_CONTROL_CHOICE_H_

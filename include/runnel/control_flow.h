// Conditionals and loops in C: branches and bodies are functions that build nodes.
//
//   static int twice(rn_scope_t* s, rn_edge_t* out, void* arg) {
//     const rn_edge_t* x = arg;
//     out[0] = rn_AddV2(s, *x, *x);
//     return 1;
//   }
//   rn_cond(s, is_small, rn_branch(twice, &x), rn_branch(square, &x), &y, 1);
//
// A builder gets a scope of its own and may use in it what was built outside: that is brought in by
// itself. Builders are called once each, while the graph is built, and may nest. What a branch or a
// body does besides must hang on its results by control inputs: what nothing waits for need not
// run.
//
// By default everything becomes Switch and Merge, Enter, Exit and NextIteration nodes, called as
// tf.compat.v1 calls them. With |functional| the nodes of each builder become a function of the
// graph's library, called by an If, Case or While node. Values and gradients are the same.
//
// All of these return false after an error, which is the scope's; |out| is then all RN_NO_EDGE, and
// the nodes that were built are gone, unless something else (a variable) was added meanwhile.
#ifndef RUNNEL_CONTROL_FLOW_H_
#define RUNNEL_CONTROL_FLOW_H_

#include "runnel/graph.h"
#include "runnel/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// One way to go on: |build| writes its results to |out|, which has room for those that were asked
// for, and returns how many there are.
typedef struct rn_branch_t {
  int (*build)(rn_scope_t* scope, rn_edge_t* out, void* arg);
  void* arg;
} rn_branch_t;
static inline rn_branch_t rn_branch(int (*build)(rn_scope_t* scope, rn_edge_t* out, void* arg),
                                    void* arg) {
  rn_branch_t branch = {build, arg};
  return branch;
}

typedef struct rn_cond_options_t {
  const char* name;  // NULL: "cond", "case" or "switch_case"
  bool functional;   // If and Case nodes
  bool exclusive;    // rn_case: a step fails in which more than one predicate holds
  char unused_;      // last: C++ wants initialisers in order
} rn_cond_options_t;
#define RN_COND_(...) RN_OPTIONS_(rn_cond_options_t, __VA_ARGS__, .unused_ = 0)

// |count| results, those of |then| if |predicate| (a scalar bool) holds, else those of |otherwise|;
// their types must be equal. Of the nodes of the branches those of one run.
RN_API bool rn_cond_(rn_scope_t* scope, rn_edge_t predicate, rn_branch_t then,
                     rn_branch_t otherwise, rn_edge_t* out, int count, rn_cond_options_t options);
#define rn_cond(scope, predicate, then, otherwise, out, ...) \
  rn_cond_((scope), (predicate), (then), (otherwise), (out), RN_COND_(__VA_ARGS__))

// The results of the first of |branches| whose predicate holds; if none does, those of |*otherwise|
// (NULL: a step fails then).
RN_API bool rn_case_(rn_scope_t* scope, const rn_edge_t* predicates, const rn_branch_t* branches,
                     int branch_count, const rn_branch_t* otherwise, rn_edge_t* out, int count,
                     rn_cond_options_t options);
#define rn_case(scope, predicates, branches, branch_count, otherwise, out, ...)   \
  rn_case_((scope), (predicates), (branches), (branch_count), (otherwise), (out), \
           RN_COND_(__VA_ARGS__))

// The results of branch number |index| (a scalar int32); out of range: of |*otherwise| (NULL: of
// the last branch).
RN_API bool rn_switch_case_(rn_scope_t* scope, rn_edge_t index, const rn_branch_t* branches,
                            int branch_count, const rn_branch_t* otherwise, rn_edge_t* out,
                            int count, rn_cond_options_t options);
#define rn_switch_case(scope, index, branches, branch_count, otherwise, out, ...)   \
  rn_switch_case_((scope), (index), (branches), (branch_count), (otherwise), (out), \
                  RN_COND_(__VA_ARGS__))

// Builds from |in| what goes to |out|; how many of each there are follows from the call.
typedef void (*rn_body_t)(rn_scope_t* scope, const rn_edge_t* in, rn_edge_t* out, void* arg);
// Whether a loop goes on: a scalar bool.
typedef rn_edge_t (*rn_condition_t)(rn_scope_t* scope, const rn_edge_t* values, void* arg);

typedef struct rn_while_options_t {
  const char* name;  // NULL: "while"
  bool functional;   // a While node
  // What is known of each value's shape in all turns; not set: the shape that it starts with.
  // NULL: none is set.
  const rn_opt_shape_t* invariants;
  rn_edge_t maximum_iterations;  // a scalar int32; RN_NO_EDGE: any number
  int parallel_iterations;       // 0: 10
  bool no_back_prop;             // gradients do not go through
  bool swap_memory;              // values that gradients need may leave the device's memory
  char unused_;                  // last: C++ wants initialisers in order
} rn_while_options_t;
#define RN_WHILE_(...) RN_OPTIONS_(rn_while_options_t, __VA_ARGS__, .unused_ = 0)

// |count| values that begin as |starts| and are what |body| makes of them again and again as long
// as |condition| holds. A value keeps its type, and a shape as its invariant says.
RN_API bool rn_while_(rn_scope_t* scope, rn_condition_t condition, rn_body_t body, void* arg,
                      const rn_edge_t* starts, rn_edge_t* out, int count,
                      rn_while_options_t options);
#define rn_while(scope, condition, body, arg, starts, out, ...) \
  rn_while_((scope), (condition), (body), (arg), (starts), (out), RN_WHILE_(__VA_ARGS__))

typedef struct rn_map_options_t {
  const char* name;  // NULL: "map", "foldl", "foldr" or "scan"
  bool functional;   // a While node
  bool lists;        // elements are kept in tensor lists, not in TensorArrays
  bool reverse;      // rn_fold, rn_scan: from the last row to the first
  // rn_map: the types of the results; NULL: those of the first |count| elements.
  const int* types;
  int parallel_iterations;  // 0: 10
  bool no_back_prop;
  bool swap_memory;
  char unused_;  // last: C++ wants initialisers in order
} rn_map_options_t;
#define RN_MAP_(...) RN_OPTIONS_(rn_map_options_t, __VA_ARGS__, .unused_ = 0)

// |body| over the rows of |elements|, tensors of equal first dimensions, row by row; its |count|
// results are stacked to |out|.
RN_API bool rn_map_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                    int element_count, rn_edge_t* out, int count, rn_map_options_t options);
#define rn_map(scope, body, arg, elements, element_count, out, ...) \
  rn_map_((scope), (body), (arg), (elements), (element_count), (out), RN_MAP_(__VA_ARGS__))

// |body| makes the next |count| states from the states, which come first in its |in|, and a row of
// each of |elements|. |initial| NULL: the first rows are the states to begin with, and there are as
// many states as elements. |out| gets the last states.
RN_API bool rn_fold_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                     int element_count, const rn_edge_t* initial, rn_edge_t* out, int count,
                     rn_map_options_t options);
#define rn_fold(scope, body, arg, elements, element_count, initial, out, ...)     \
  rn_fold_((scope), (body), (arg), (elements), (element_count), (initial), (out), \
           RN_MAP_(__VA_ARGS__))

// The same, where |out| gets all states but |initial|, stacked; with |reverse| the state that row i
// led to stays in row i.
RN_API bool rn_scan_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                     int element_count, const rn_edge_t* initial, rn_edge_t* out, int count,
                     rn_map_options_t options);
#define rn_scan(scope, body, arg, elements, element_count, initial, out, ...)     \
  rn_scan_((scope), (body), (arg), (elements), (element_count), (initial), (out), \
           RN_MAP_(__VA_ARGS__))

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // RUNNEL_CONTROL_FLOW_H_

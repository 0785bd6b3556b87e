// Conditionals and loops in C: branches and bodies are functions that build nodes.
//
//   static int twice(rn_scope_t* s, rn_edge_t* out, void* arg) {
//     const rn_edge_t* x = arg;
//     out[0] = rn_AddV2(s, *x, *x);
//     return 1;
//   }
//   rn_cond(s, is_small, rn_branch(twice, &x), rn_branch(square, &x), &y, 1);
//
// A builder gets its own scope and can use values from outside: they are brought in automatically.
// Each builder is called once, while the graph is built; builders can nest. If a branch or body has
// side effects, its results must depend on them by control inputs: nodes that nothing waits for
// need not run.
//
// By default everything becomes Switch, Merge, Enter, Exit and NextIteration nodes, named as in
// tf.compat.v1. With |functional| the nodes of each builder become a function of the graph's
// library, which an If, Case or While node calls. Values and gradients are the same.
//
// All of these return false after an error, which the scope keeps. |out| is then all RN_NO_EDGE,
// and the nodes that were built are removed, unless something else (a variable) was added
// meanwhile.
#ifndef RUNNEL_CONTROL_FLOW_H_
#define RUNNEL_CONTROL_FLOW_H_

#include "runnel/graph.h"
#include "runnel/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// A branch: |build| writes its results to |out|, which has room for the requested number, and
// returns how many there are.
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
  bool exclusive;    // rn_case: the step fails if several predicates hold
  char unused_;      // last, for initializers in C++
} rn_cond_options_t;
#define RN_COND_(...) RN_OPTIONS_(rn_cond_options_t, __VA_ARGS__, .unused_ = 0)

// |count| results: those of |then| if |predicate| (a scalar bool) holds, otherwise those of
// |otherwise|. Their types must be equal. Only the nodes of one branch run.
RN_API bool rn_cond_(rn_scope_t* scope, rn_edge_t predicate, rn_branch_t then,
                     rn_branch_t otherwise, rn_edge_t* out, int count, rn_cond_options_t options);
#define rn_cond(scope, predicate, then, otherwise, out, ...) \
  rn_cond_((scope), (predicate), (then), (otherwise), (out), RN_COND_(__VA_ARGS__))

// The results of the first of |branches| whose predicate holds; if none does, those of
// |*otherwise|, or the step fails if that is NULL.
RN_API bool rn_case_(rn_scope_t* scope, const rn_edge_t* predicates, const rn_branch_t* branches,
                     int branch_count, const rn_branch_t* otherwise, rn_edge_t* out, int count,
                     rn_cond_options_t options);
#define rn_case(scope, predicates, branches, branch_count, otherwise, out, ...)   \
  rn_case_((scope), (predicates), (branches), (branch_count), (otherwise), (out), \
           RN_COND_(__VA_ARGS__))

// The results of branch number |index| (a scalar int32); if it is out of range, those of
// |*otherwise|, or of the last branch if that is NULL.
RN_API bool rn_switch_case_(rn_scope_t* scope, rn_edge_t index, const rn_branch_t* branches,
                            int branch_count, const rn_branch_t* otherwise, rn_edge_t* out,
                            int count, rn_cond_options_t options);
#define rn_switch_case(scope, index, branches, branch_count, otherwise, out, ...)   \
  rn_switch_case_((scope), (index), (branches), (branch_count), (otherwise), (out), \
                  RN_COND_(__VA_ARGS__))

// Builds |out| from |in|; the call determines their numbers.
typedef void (*rn_body_t)(rn_scope_t* scope, const rn_edge_t* in, rn_edge_t* out, void* arg);
// Whether a loop continues: a scalar bool.
typedef rn_edge_t (*rn_condition_t)(rn_scope_t* scope, const rn_edge_t* values, void* arg);

typedef struct rn_while_options_t {
  const char* name;  // NULL: "while"
  bool functional;   // a While node
  // The known shape of each value in all iterations; if it is not set, the shape of its start.
  // NULL: none is set.
  const rn_opt_shape_t* invariants;
  rn_edge_t maximum_iterations;  // a scalar int32; RN_NO_EDGE: any number
  int parallel_iterations;       // 0: 10
  bool no_back_prop;             // no gradients through the loop
  bool swap_memory;              // values for gradients may move out of device memory
  char unused_;                  // last, for initializers in C++
} rn_while_options_t;
#define RN_WHILE_(...) RN_OPTIONS_(rn_while_options_t, __VA_ARGS__, .unused_ = 0)

// |count| values that begin as |starts|; |body| computes the next ones as long as |condition|
// holds. A value keeps its type, and its shape as far as its invariant says.
RN_API bool rn_while_(rn_scope_t* scope, rn_condition_t condition, rn_body_t body, void* arg,
                      const rn_edge_t* starts, rn_edge_t* out, int count,
                      rn_while_options_t options);
#define rn_while(scope, condition, body, arg, starts, out, ...) \
  rn_while_((scope), (condition), (body), (arg), (starts), (out), RN_WHILE_(__VA_ARGS__))

typedef struct rn_map_options_t {
  const char* name;  // NULL: "map", "foldl", "foldr" or "scan"
  bool functional;   // a While node
  bool lists;        // tensor lists instead of TensorArrays
  bool reverse;      // rn_fold, rn_scan: from the last row to the first
  // rn_map: the types of the results; NULL: those of the first |count| elements.
  const int* types;
  int parallel_iterations;  // 0: 10
  bool no_back_prop;
  bool swap_memory;
  char unused_;  // last, for initializers in C++
} rn_map_options_t;
#define RN_MAP_(...) RN_OPTIONS_(rn_map_options_t, __VA_ARGS__, .unused_ = 0)

// Applies |body| to each row of |elements|, tensors with equal first dimensions, and stacks its
// |count| results to |out|.
RN_API bool rn_map_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                    int element_count, rn_edge_t* out, int count, rn_map_options_t options);
#define rn_map(scope, body, arg, elements, element_count, out, ...) \
  rn_map_((scope), (body), (arg), (elements), (element_count), (out), RN_MAP_(__VA_ARGS__))

// |body| computes the next |count| states from the states, which come first in its |in|, and one
// row of each of |elements|. |initial| NULL: the first rows are the initial states, and there are
// as many states as elements. |out| gets the last states.
RN_API bool rn_fold_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                     int element_count, const rn_edge_t* initial, rn_edge_t* out, int count,
                     rn_map_options_t options);
#define rn_fold(scope, body, arg, elements, element_count, initial, out, ...)     \
  rn_fold_((scope), (body), (arg), (elements), (element_count), (initial), (out), \
           RN_MAP_(__VA_ARGS__))

// The same, but |out| gets all states except |initial|, stacked. With |reverse| the state after row
// i is in row i.
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

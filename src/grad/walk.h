// Internals of the walk. Private to grad/.
//
// A walk serves one request (rn_grad_request_t). It marks the nodes between ys and xs (those "on
// the way"), then visits each one after all its consumers on the way. One level visits the nodes of
// one frame: the first level the frame of the ys, and one level per loop the body of that loop,
// whose rules build in the backward loop.
#ifndef RUNNEL_GRAD_WALK_H_
#define RUNNEL_GRAD_WALK_H_

#include "base/arena.h"
#include "framework/grad_def.h"
#include "grad/grad.h"
#include "grad/inline.h"
#include "grad/loops.h"
#include "graph/build.h"

// A condition under which a value is alive: |pred| is |branch|, and |parent| holds. NULL means
// always. Equal conditions are the same object.
typedef struct rn_guard_t rn_guard_t;
struct rn_guard_t {
  const rn_guard_t* parent;
  rn_edge_t pred;  // a forward value; see rn_guard_of
  int branch;
  int depth;
  rn_guard_t* next;  // in the walk's list
  rn_edge_t token;   // an edge of the level that is alive when the guard holds; its node is NULL if
                     // not built yet
};

// The gradients that have arrived at an output so far; summed when its node is visited.
typedef RN_VEC(rn_gradient_t) rn_arrivals_t;

// What the handling of control flow records for a node.
typedef struct rn_note_t {
  const rn_guard_t* guard;  // when |has_guard|
  bool has_guard;
  bool is_forward;        // added to a forward frame, |loop|'s
  rn_while_loop_t* loop;  // of a node that was added
  rn_edge_t origin;       // for a value of the backward graph: the forward value that it equals
  rn_edge_t* brought;     // by output: its copy in the backward graph; NULL if none yet
  rn_shape_t* shapes;     // by output, if the walk knows more than the graph; else NULL
  uint8_t invariance;     // 0: not computed yet, 1: no, 2: yes
} rn_note_t;

enum {
  RN_MARK_LEADS = 1,    // some y depends on it by differentiable edges
  RN_MARK_FOLLOWS = 2,  // it depends on some x by differentiable edges
  RN_MARK_STOP = 4,
  RN_MARK_X = 8,
  RN_MARK_Y = 16,
  RN_MARK_REACH = 32,  // some y depends on it
};

typedef struct rn_pair_t rn_pair_t;  // see stacks.h

typedef struct rn_walk_t {
  const rn_grad_request_t* request;
  const rn_gradient_options_t* options;
  rn_graph_t* graph;
  rn_arena_t arena;
  size_t node_count;  // nodes of the graph when the walk began
  uint8_t* marks;     // by node id: RN_MARK_*
  int32_t* pending;   // by node id: number of edges on the way whose gradient has not been sent yet
  rn_arrivals_t** arrivals;  // by node id: an array by output; NULL if nothing arrived
  RN_VEC(rn_node_t*) stack;
  bool is_opening;   // calls are being inlined: older nodes may read newer ones
  bool allows_ints;  // an x of TF_AddGradients is an integer: integers carry gradients
  bool has_conds;    // Switch or Merge nodes of conditionals are on the way
  rn_while_loops_t loops;
  rn_pair_t** pair_of;  // by node id: the stack that it pushes to or pops from; NULL if none
  size_t pair_count;
  rn_pair_t* pairs;
  const rn_while_loop_t* base;  // the innermost loop that contains the ys; NULL if none
  rn_scope_t* around;           // where Enters into |base| are built; NULL if there is no base
  RN_VEC(rn_note_t) notes;      // by node id; may be shorter than the graph
  rn_guard_t* guards;
  int made_dense;   // log lines so far
  rn_str_t source;  // see rn_grad_t
} rn_walk_t;

typedef struct rn_backward_t rn_backward_t;

// The part of the walk in one frame.
typedef struct rn_level_t {
  rn_walk_t* walk;
  struct rn_level_t* outer;  // NULL for the first level
  rn_backward_t* backward;   // the loop whose body this is; NULL if none
  rn_scope_t* scope;  // where rules build; forward values that they read are brought into the
                      // backward frame
  rn_scope_t* here;   // the same frame, without that translation
  rn_scope_t* there;  // the forward frame
  RN_VEC(rn_node_t*) ready;  // a FIFO queue
  size_t ready_head;
} rn_level_t;

static inline bool rn_walk_has(const rn_walk_t* walk, const rn_node_t* node, int marks) {
  return (size_t)node->id < walk->node_count && (walk->marks[node->id] & marks) == marks;
}
// Whether |node| lies between ys and xs.
static inline bool rn_walk_on_way(const rn_walk_t* walk, const rn_node_t* node) {
  return rn_walk_has(walk, node, RN_MARK_LEADS | RN_MARK_FOLLOWS);
}
// Marks (marks.c). Whether gradients can flow through input |input| of |node|.
bool rn_walk_carries(const rn_walk_t* walk, const rn_node_t* node, int input);
// Whether a gradient will be sent from |node| to its input |i|. Values that leave or enter an
// iteration are not sent: the walk over a body begins and ends there.
bool rn_walk_sends(const rn_walk_t* walk, const rn_node_t* node, int i);
// Computes all marks again after the graph has grown.
RN_MUST_USE rn_status_t rn_walk_mark(rn_walk_t* walk);
// Fails if a node on the way is in a loop whose structure is not understood.
RN_MUST_USE rn_status_t rn_walk_check_strays(const rn_walk_t* walk);
// If requested, checks that some y depends on every x.
RN_MUST_USE rn_status_t rn_walk_check_reach(rn_walk_t* walk);
// Counts the gradients that each node will get.
void rn_walk_count_pending(rn_walk_t* walk);

// The first error of the builders.
RN_MUST_USE rn_status_t rn_walk_status(const rn_level_t* level);
// The note of |node|, made on first use; NULL if memory is short (the scope then holds the error).
rn_note_t* rn_walk_note(rn_level_t* level, const rn_node_t* node);

// Adds |gradient| to the arrivals at |at|.
RN_MUST_USE rn_status_t rn_level_arrive(rn_level_t* level, rn_edge_t at, rn_gradient_t gradient);
// The sum of what arrived at |edge|, in the order of arrival.
rn_gradient_t rn_level_sum(rn_level_t* level, rn_edge_t edge);
// The same as a dense tensor.
rn_edge_t rn_level_sum_dense(rn_level_t* level, rn_edge_t edge);
// |gradient| as a dense tensor; logs a line if that takes work. |node| is the node that needs it
// dense.
rn_edge_t rn_level_dense(rn_level_t* level, rn_gradient_t gradient, const rn_node_t* node);
// Sends |dx| to |input|, whose node becomes ready when all its consumers have done so.
RN_MUST_USE rn_status_t rn_level_pass_on(rn_level_t* level, rn_edge_t input, rn_gradient_t dx);
// Queues |node| once none of its gradients is pending.
RN_MUST_USE rn_status_t rn_level_start(rn_level_t* level, rn_node_t* node);
RN_MUST_USE rn_status_t rn_level_drain(rn_level_t* level);
// The type and shape of an edge's value; for a variable's handle, those of the variable's value if
// known.
int rn_walk_value(rn_walk_t* walk, rn_edge_t edge, rn_shape_t* out_shape);
// That value; reads the variable behind a handle.
rn_edge_t rn_level_value(rn_level_t* level, rn_edge_t edge);
// Zeros like the forward value |like|.
rn_edge_t rn_level_zeros(rn_level_t* level, rn_edge_t like);
// Records that |gradient|, the gradient of |like|, has the shape of |like|, which loops would
// otherwise hide.
RN_MUST_USE rn_status_t rn_level_shaped(rn_level_t* level, rn_edge_t gradient, rn_edge_t like);
void rn_level_clear(rn_level_t* level);

// Conditionals (guards.c). The condition under which a value is alive.
const rn_guard_t* rn_guard_of(rn_level_t* level, rn_edge_t edge);
// Whether |b| holds whenever |a| does.
bool rn_guard_implies(const rn_guard_t* a, const rn_guard_t* b);
void rn_guard_set(rn_level_t* level, rn_node_t* node, const rn_guard_t* guard);
// Changes |*inout| to be alive exactly when |at| is, with zeros where it was dead and |at| is
// alive.
RN_MUST_USE rn_status_t rn_guard_fit(rn_level_t* level, rn_edge_t at, rn_gradient_t* inout);
RN_MUST_USE rn_status_t rn_guard_visit_switch(rn_level_t* level, rn_node_t* node,
                                              const rn_gradient_t* dy, rn_gradient_t* dx);
RN_MUST_USE rn_status_t rn_guard_visit_merge(rn_level_t* level, rn_node_t* node, rn_gradient_t dy,
                                             rn_gradient_t* dx);

// Frames (frames.c). Whether |loop| is the frame of the ys or encloses it.
bool rn_walk_is_around(const rn_walk_t* walk, const rn_while_loop_t* loop);
// Brings |from|, if it is from an enclosing frame, into the frame of the ys; a hook of the first
// level.
rn_edge_t rn_level_reach(void* level, rn_edge_t from);
// Brings |value|, from any frame, to where the rules of |level| build. |is_new|: it was added after
// the walk began, in the frame of the ys.
rn_edge_t rn_level_read(rn_level_t* level, rn_edge_t value, bool is_new);

// Whether |node| existed when the walk began or was added to a forward frame.
static inline bool rn_walk_is_forward(const rn_walk_t* walk, const rn_node_t* node) {
  size_t id = (size_t)node->id;
  return id < walk->node_count || (id < walk->notes.count && walk->notes.items[id].is_forward);
}
// The loop of a forward node; NULL if none.
static inline rn_while_loop_t* rn_walk_frame(const rn_walk_t* walk, const rn_node_t* node) {
  size_t id = (size_t)node->id;
  if (id < walk->node_count) return rn_while_loop_of(&walk->loops, node);
  return id < walk->notes.count ? walk->notes.items[id].loop : NULL;
}

// The shape of an edge, as far as known.
static inline rn_shape_t rn_walk_shape(const rn_walk_t* walk, rn_edge_t edge) {
  size_t id = (size_t)edge.node->id;
  bool knows = id < walk->notes.count && walk->notes.items[id].shapes;
  return knows ? walk->notes.items[id].shapes[edge.index] : edge.node->outputs[edge.index].shape;
}
// Finds the shapes of values in |loop|, and in the loops inside it, that no iteration changes
// (shapes.c).
RN_MUST_USE rn_status_t rn_refine_shapes(rn_level_t* level, rn_while_loop_t* loop);

// The stack that |node| pushes to or pops from; NULL if none.
static inline rn_pair_t* rn_walk_pair(const rn_walk_t* walk, const rn_node_t* node) {
  return walk->pair_of && (size_t)node->id < walk->node_count ? walk->pair_of[node->id] : NULL;
}

// Loops (backward.c, bring.c). A loop is walked when all its exits on the way have been visited,
// and all loops that pop what it pushed have been walked.
RN_MUST_USE rn_status_t rn_backward_visit_exit(rn_level_t* level, rn_node_t* exit);
// Walks |loop|, which has no exit on the way, if gradients arrive through stacks.
RN_MUST_USE rn_status_t rn_backward_visit_silent(rn_level_t* level, rn_while_loop_t* loop);
// The shape of a forward value, for rules in a loop (see rn_grad_t).
rn_edge_t rn_backward_shape_of(void* level, rn_edge_t like, int dtype);
rn_edge_t rn_backward_columns_of(void* level, rn_edge_t matrix, int64_t first, int64_t count);
// Whether |edge| already has a copy in the backward graph.
bool rn_backward_has(rn_level_t* level, rn_edge_t edge);

// "No gradient defined for op …", with node and path (report.c).
RN_MUST_USE rn_status_t rn_walk_no_rule(const rn_walk_t* walk, const rn_node_t* node);

#endif  // RUNNEL_GRAD_WALK_H_

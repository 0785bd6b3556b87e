// A piece of a graph under construction: the nodes of one branch or of one loop. What is used in it
// and was built outside is brought in, once.
#ifndef RUNNEL_TRAIN_CONTROL_REGION_H_
#define RUNNEL_TRAIN_CONTROL_REGION_H_

#include "train/words.h"

typedef struct rn_brought_t {
  rn_edge_t outer, inner;
} rn_brought_t;

// Nodes that the call of a function waits for.
typedef struct rn_waits_t {
  RN_VEC(rn_node_t*) nodes;
} rn_waits_t;

typedef struct rn_region_t rn_region_t;
struct rn_region_t {
  rn_scope_t* outside;  // Borrowed; what brings edges in is built here
  rn_edge_t (*bring)(rn_region_t* region, rn_edge_t outer);
  void* arg;              // of |bring|
  bool has_open_borders;  // control inputs from outside stay what they are
  rn_waits_t* waits;      // of a function: gets the control inputs from outside
  // The rest is its own.
  rn_scope_hook_t hook;
  RN_VEC(uint64_t) bits;  // a bit for each node of the graph: whether it is inside
  RN_VEC(rn_brought_t) brought;
};

// A scope whose nodes are inside, with names that begin with |prefix|; nodes without inputs wait
// for |anchor| (may be NULL). A region has one such scope at a time. NULL after an error.
rn_scope_t* rn_region_enter(rn_region_t* region, rn_str_t prefix, rn_node_t* anchor);
// Makes |node| one of the inside.
void rn_region_note(rn_region_t* region, const rn_node_t* node);
// |edge| as the inside reads it.
rn_edge_t rn_region_map(rn_region_t* region, rn_edge_t edge);
void rn_region_clear(rn_region_t* region);

// A region that will be a function: its nodes are built in the graph, beside all others, reading
// Placeholders for what they need, until rn_region_define has copied them; then whoever called this
// takes them back. The names are those of a part |name| of |scope|. |outside| is owned then.
bool rn_region_begin_function(rn_region_t* region, rn_scope_t* scope, const char* name,
                              rn_waits_t* waits);
void rn_region_end_function(rn_region_t* region);  // takes those that were not begun, too
// The node under construction waits for |waits|, which are forgotten.
void rn_op_waits(rn_scope_t* scope, rn_waits_t* waits);
// Makes two functions read the same.
void rn_region_share(rn_region_t* a, rn_region_t* b);
// A Placeholder called as |like|, of its type.
rn_edge_t rn_placeholder_like(rn_scope_t* scope, rn_edge_t like, rn_shape_t shape);
// The nodes of a region as a function of the graph's library, "stem_kind_7". The name lives in
// |arena|; after an error it is "".
const char* rn_region_define(rn_scope_t* scope, const rn_region_t* region, rn_arena_t* arena,
                             rn_str_t stem, const char* kind, const rn_edge_t* inputs,
                             int input_count, const rn_edge_t* outputs, int output_count,
                             bool* inout_is_stateful);

// A list of shapes as an attribute of the node under construction.
void rn_attr_shapes(rn_scope_t* scope, const char* name, rn_arena_t* arena,
                    const rn_shape_t* shapes, int count);
// False, and the scope's error, unless |edge| is a bool that may be a scalar.
bool rn_is_predicate(rn_scope_t* scope, rn_edge_t edge, const char* who);
size_t rn_node_count(rn_scope_t* scope);
// The next node of |scope| is called as |part|, a scope under it that is about to go.
void rn_name_next_as(rn_scope_t* scope, rn_scope_t* part);

#endif  // RUNNEL_TRAIN_CONTROL_REGION_H_

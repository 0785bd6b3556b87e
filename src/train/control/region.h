// A piece of a graph under construction: the nodes of one branch or of one loop. What is used in it
// and was built outside is brought in, once.
#ifndef RUNNEL_TRAIN_CONTROL_REGION_H_
#define RUNNEL_TRAIN_CONTROL_REGION_H_

#include "train/words.h"

typedef struct rn_brought_t {
  rn_edge_t outer, inner;
} rn_brought_t;

// Nodes that a function call waits for: its control inputs.
typedef struct rn_waits_t {
  RN_VEC(rn_node_t*) nodes;
} rn_waits_t;

typedef struct rn_region_t rn_region_t;
struct rn_region_t {
  rn_scope_t* outside;  // Borrowed; nodes that bring edges in are built here
  rn_edge_t (*bring)(rn_region_t* region, rn_edge_t outer);
  void* arg;              // of |bring|
  bool has_open_borders;  // control inputs from outside are kept unchanged
  bool is_loop;           // what |bring| returns is alive in every iteration, even after the last
  rn_waits_t* waits;      // for a function: collects the control inputs from outside
  // The rest is private to region.c.
  rn_scope_hook_t hook;
  RN_VEC(uint64_t) bits;  // one bit per node of the graph: whether it is inside
  RN_VEC(rn_brought_t) brought;
};

// Opens a scope whose nodes are inside the region, with names that begin with |prefix|. Nodes
// without inputs, and in a loop nodes that read only what was brought in, get a control edge from
// |anchor| (may be NULL). A region has one such scope at a time. NULL after an error.
rn_scope_t* rn_region_enter(rn_region_t* region, rn_str_t prefix, rn_node_t* anchor);
// Marks |node| as inside.
void rn_region_note(rn_region_t* region, const rn_node_t* node);
// The edge that nodes inside use for |edge|.
rn_edge_t rn_region_map(rn_region_t* region, rn_edge_t edge);
void rn_region_clear(rn_region_t* region);

// Begins a region that will become a function. Its nodes are built in the graph, beside all others,
// and read Placeholders for their inputs, until rn_region_define has copied them; the caller then
// removes them. Their names are under the part |name| of |scope|. The region owns |outside| from
// then on.
bool rn_region_begin_function(rn_region_t* region, rn_scope_t* scope, const char* name,
                              rn_waits_t* waits);
void rn_region_end_function(rn_region_t* region);  // also accepts a region that was not begun
// Adds |waits| as control inputs to the node under construction, then clears the list.
void rn_op_waits(rn_scope_t* scope, rn_waits_t* waits);
// Gives two functions the same list of inputs.
void rn_region_share(rn_region_t* a, rn_region_t* b);
// A Placeholder with the name and the type of |like|.
rn_edge_t rn_placeholder_like(rn_scope_t* scope, rn_edge_t like, rn_shape_t shape);
// Adds the nodes of a region to the graph's library as a function called "stem_kind_7". The name
// lives in |arena|; after an error it is "".
const char* rn_region_define(rn_scope_t* scope, const rn_region_t* region, rn_arena_t* arena,
                             rn_str_t stem, const char* kind, const rn_edge_t* inputs,
                             int input_count, const rn_edge_t* outputs, int output_count,
                             bool* inout_is_stateful);

// Sets an attribute of the node under construction to a list of shapes.
void rn_attr_shapes(rn_scope_t* scope, const char* name, rn_arena_t* arena,
                    const rn_shape_t* shapes, int count);
// Returns false and sets the scope's error unless |edge| is a bool that may be a scalar.
bool rn_is_predicate(rn_scope_t* scope, rn_edge_t edge, const char* who);
size_t rn_node_count(rn_scope_t* scope);
// Gives the next node of |scope| the name of |part|, a scope under it that is about to be
// destroyed.
void rn_name_next_as(rn_scope_t* scope, rn_scope_t* part);

#endif  // RUNNEL_TRAIN_CONTROL_REGION_H_

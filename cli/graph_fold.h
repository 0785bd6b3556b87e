// Folding of large graphs: the nodes of a deep name scope are drawn as one box.
#ifndef RUNNEL_CLI_GRAPH_FOLD_H_
#define RUNNEL_CLI_GRAPH_FOLD_H_

#include "cli/graph_view.h"

// A folded scope. Drawn things share one numbering: nodes first, then folded scopes.
typedef struct rn_fold_group_t {
  rn_str_t path;    // "model/layer_1", borrowed from a node's name
  int32_t count;    // nodes in it that would be drawn
  int32_t first;    // one of them
  rn_str_t device;  // their common device; empty if they differ
} rn_fold_group_t;

typedef struct rn_fold_edge_t {
  int32_t from, to;  // things
  bool is_control;
  rn_view_edge_t source;  // the first of the edges that are drawn as one
  int32_t count;
} rn_fold_edge_t;

typedef struct rn_fold_t {
  int depth;       // scopes that are drawn open
  int32_t* thing;  // per node; -1 if it is not drawn
  rn_fold_group_t* groups;
  int32_t group_count;
  rn_fold_edge_t* edges;
  int32_t edge_count;
} rn_fold_t;

#define RN_FOLD_AUTOMATIC (-1)

// Folds scopes below |depth|; RN_FOLD_AUTOMATIC chooses the largest depth at which the drawing is
// not too large. |order| has the nodes sorted by name; |is_hidden| tells which are not drawn. All
// of |*out| is in |arena|.
RN_MUST_USE rn_status_t rn_fold_create(const rn_view_t* view, const int32_t* order,
                                       bool (*is_hidden)(const rn_view_node_t* node), int depth,
                                       rn_arena_t* arena, rn_fold_t* out);
// |name| without its first |depth| scopes; all of it if it has fewer.
rn_str_t rn_fold_rest(rn_str_t name, int depth);
// What is in the group: "5 Conv2D, 5 Relu, 12 others".
RN_MUST_USE rn_status_t rn_fold_describe(const rn_view_t* view, const rn_fold_t* fold,
                                         int32_t group, rn_arena_t* arena, rn_strbuf_t* out);

#endif  // RUNNEL_CLI_GRAPH_FOLD_H_

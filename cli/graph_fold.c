// Folding of name scopes: see graph_fold.h.
#include "cli/graph_fold.h"

#include <stdlib.h>

#define MANY 200      // things in a drawing that a person can still follow
#define MAX_DEPTH 32  // of scopes
#define SHOWN_OPS 3

// The end of scope number |depth| of |name|, counted from 0; 0 if it has no such scope.
static size_t scope_end(rn_str_t name, int depth) {
  for (size_t i = 0; i < name.size; ++i)
    if (name.data[i] == '/' && depth-- == 0) return i;
  return 0;
}

rn_str_t rn_fold_rest(rn_str_t name, int depth) {
  for (; depth > 0; --depth) {
    size_t end = scope_end(name, depth - 1);
    if (end) return rn_str_n(name.data + end + 1, name.size - end - 1);
  }
  return name;
}

typedef struct graph_fold_walk_t {
  const rn_view_t* view;
  const int32_t* order;
  bool (*is_hidden)(const rn_view_node_t* node);
} graph_fold_walk_t;

// The run of nodes from |*inout_at| of |order| on that are one thing at |depth|: how many of them
// are drawn, and the scope they share.
static int32_t next_run(const graph_fold_walk_t* walk, int depth, int32_t* inout_at,
                        rn_str_t* out_path) {
  rn_str_t name = walk->view->nodes[walk->order[*inout_at]].def->name;
  size_t end = scope_end(name, depth);
  int32_t drawn = 0;
  *out_path = rn_str_n(name.data, end);
  for (int32_t first = *inout_at; *inout_at < walk->view->count; ++*inout_at) {
    const rn_view_node_t* node = &walk->view->nodes[walk->order[*inout_at]];
    rn_str_t other = node->def->name;
    bool is_same = end && scope_end(other, depth) == end && !memcmp(other.data, name.data, end);
    if (*inout_at > first && !is_same) break;
    drawn += !walk->is_hidden(node);
  }
  return drawn;
}

static int32_t count_things(const graph_fold_walk_t* walk, int depth) {
  int32_t things = 0;
  rn_str_t path;
  for (int32_t at = 0; at < walk->view->count;) things += next_run(walk, depth, &at, &path) > 0;
  return things;
}

static int choose_depth(const graph_fold_walk_t* walk) {
  int depth = MAX_DEPTH;
  while (depth > 0 && count_things(walk, depth) > MANY) --depth;
  return depth;
}

static void add_to_group(const graph_fold_walk_t* walk, rn_fold_t* fold, int32_t begin, int32_t end,
                         int32_t drawn, rn_str_t path) {
  bool is_alone = drawn < 2;
  rn_fold_group_t* group = &fold->groups[fold->group_count];
  int32_t seen = 0;
  for (int32_t i = begin; i < end; ++i) {
    int32_t n = walk->order[i];
    const rn_view_node_t* node = &walk->view->nodes[n];
    fold->thing[n] = -1;
    if (walk->is_hidden(node)) continue;
    fold->thing[n] = is_alone ? n : walk->view->count + fold->group_count;
    if (is_alone) continue;
    if (!seen++) *group = (rn_fold_group_t){path, drawn, n, node->def->device};
    if (!rn_str_eq(group->device, node->def->device)) group->device = RN_STR("");
  }
  fold->group_count += seen > 0;
}

static int by_ends(const void* a, const void* b) {
  const rn_fold_edge_t *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return x->is_control - y->is_control;
}

// Edges between things; those of one pair with a folded scope become one.
static rn_status_t gather_edges(const graph_fold_walk_t* walk, rn_fold_t* fold, rn_arena_t* arena) {
  const rn_view_t* view = walk->view;
  size_t room = 1;
  for (int32_t n = 0; n < view->count; ++n) room += (size_t)view->nodes[n].input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &fold->edges));
  rn_fold_edge_t* edges = fold->edges;
  int32_t count = 0, kept = 0;
  for (int32_t n = 0; n < view->count; ++n) {
    for (int32_t i = 0; fold->thing[n] >= 0 && i < view->nodes[n].input_count; ++i) {
      rn_view_edge_t edge = view->nodes[n].inputs[i];
      if (edge.node < 0 || fold->thing[edge.node] < 0) continue;
      bool is_inside = fold->thing[edge.node] == fold->thing[n] && fold->thing[n] >= view->count;
      if (is_inside) continue;
      edges[count++] =
          (rn_fold_edge_t){fold->thing[edge.node], fold->thing[n], edge.output < 0, edge, 1};
    }
  }
  if (fold->group_count) qsort(edges, (size_t)count, sizeof *edges, by_ends);
  for (int32_t i = 0; i < count; ++i) {
    rn_fold_edge_t* last = kept ? &edges[kept - 1] : NULL;
    bool has_group = edges[i].from >= view->count || edges[i].to >= view->count;
    bool is_same = last && last->from == edges[i].from && last->to == edges[i].to;
    if (has_group && is_same && last->is_control == edges[i].is_control)
      ++last->count;
    else if (!(has_group && is_same && edges[i].is_control))  // data orders them already
      edges[kept++] = edges[i];
  }
  fold->edge_count = kept;
  return RN_OK;
}

rn_status_t rn_fold_create(const rn_view_t* view, const int32_t* order,
                           bool (*is_hidden)(const rn_view_node_t* node), int depth,
                           rn_arena_t* arena, rn_fold_t* out) {
  graph_fold_walk_t walk = {view, order, is_hidden};
  *out = (rn_fold_t){.depth = depth == RN_FOLD_AUTOMATIC ? choose_depth(&walk) : depth};
  if (out->depth > MAX_DEPTH) out->depth = MAX_DEPTH;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)view->count + 1, &out->thing));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)view->count + 1, &out->groups));
  for (int32_t begin = 0, end = 0; begin < view->count; begin = end) {
    rn_str_t path;
    int32_t drawn = next_run(&walk, out->depth, &end, &path);
    add_to_group(&walk, out, begin, end, drawn, path);
  }
  return gather_edges(&walk, out, arena);
}

typedef struct tally_t {
  rn_str_t op;
  int32_t count;
} tally_t;

static int by_op(const void* a, const void* b) {
  return rn_str_compare(((const tally_t*)a)->op, ((const tally_t*)b)->op);
}

static int by_count(const void* a, const void* b) {
  const tally_t *x = a, *y = b;
  return x->count != y->count ? y->count - x->count : rn_str_compare(x->op, y->op);
}

rn_status_t rn_fold_describe(const rn_view_t* view, const rn_fold_t* fold, int32_t group,
                             rn_arena_t* arena, rn_strbuf_t* out) {
  tally_t* ops = NULL;
  int32_t count = 0, kinds = 0, rest = fold->groups[group].count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)rest + 1, &ops));
  for (int32_t n = 0; n < view->count; ++n)
    if (fold->thing[n] == view->count + group) ops[count++] = (tally_t){view->nodes[n].def->op, 1};
  qsort(ops, (size_t)count, sizeof *ops, by_op);
  for (int32_t i = 0; i < count; ++i) {
    if (kinds && rn_str_eq(ops[kinds - 1].op, ops[i].op))
      ++ops[kinds - 1].count;
    else
      ops[kinds++] = ops[i];
  }
  qsort(ops, (size_t)kinds, sizeof *ops, by_count);
  for (int32_t i = 0; i < kinds && i < SHOWN_OPS; ++i) {
    rn_strbuf_printf(out, "%s%d %.*s", i ? ", " : "", ops[i].count, RN_STR_ARGS(ops[i].op));
    rest -= ops[i].count;
  }
  if (rest) rn_strbuf_printf(out, ", %d others", rest);
  return rn_strbuf_status(out);
}

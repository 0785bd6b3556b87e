// Tensor lists in mixed precision: see paint.h.
#include "step/paint.h"

// The vertex of the type of elements, if |node| works on a list of floats; else -1.
static int32_t element_of(const rn_painter_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->is_removed || node->feed >= 0 || !strstr(node->op->name, "TensorList")) return -1;
  for (int32_t v = p->graph.first[index]; v < p->graph.first[index + 1]; ++v) {
    const rn_type_vertex_t* vertex = &p->graph.vertices[v];
    if (vertex->attr >= 0 && vertex->element < 0 && vertex->type == RN_FLOAT) return v;
  }
  return -1;
}

// The vertex of the list itself; -1: none.
static int32_t list_of(const rn_painter_t* p, int32_t index) {
  for (int32_t v = p->graph.first[index]; v < p->graph.first[index + 1]; ++v)
    if (p->graph.vertices[v].attr < 0 && p->graph.vertices[v].type == RN_VARIANT) return v;
  return -1;
}

// Whether a list that gets here is seen by something that this pass does not.
static bool shows_lists(const rn_painter_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->feed >= 0) return true;
  for (int32_t i = 0; i < p->ir->fetch_count; ++i)
    if (p->ir->fetches[i].node == index) return true;
  uint8_t role = node->op->role;
  return role == RN_ROLE_ARG || role == RN_ROLE_RETVAL || role == RN_ROLE_PLACEHOLDER ||
         role >= RN_ROLE_CALL || rn_ir_is_op(node, "OptionalFromValue") ||
         rn_ir_is_op(node, "OptionalGetValue");
}

static bool may_enter_any(void* self, int32_t v) {
  (void)self;
  (void)v;
  return true;
}

static bool may_enter_open(void* self, int32_t v) {
  const rn_painter_t* p = self;
  return p->is_open[p->graph.vertices[v].node];
}

// Puts everything that the list of node |root| reaches into a group.
static rn_status_t find_group(rn_painter_t* p, int32_t root) {
  bool is_safe = true;
  memset(p->marks, 0, (size_t)p->graph.count);
  p->marks[list_of(p, root)] = true;
  RN_RETURN_IF_ERROR(rn_type_spread(&p->graph, RN_TYPE_BOTH, may_enter_any, p, p->marks));
  for (int32_t v = 0; v < p->graph.count; ++v) {
    int32_t node = p->graph.vertices[v].node, element = element_of(p, node);
    if (!p->marks[v]) continue;
    if (element >= 0) p->cluster[node] = p->cluster_count;
    is_safe &= element >= 0 ? rn_paint_can_convert(p, element) : !shows_lists(p, node);
  }
  if (!is_safe) p->deny[element_of(p, root)] = true;
  p->cluster_count++;
  return RN_OK;
}

static bool is_one_of(const rn_ir_node_t* node, const char* const* names) {
  while (*names && !rn_ir_is_op(node, *names)) ++names;
  return *names != NULL;
}

static const char* const readers[] = {"TensorListConcat",
                                      "TensorListConcatV2",
                                      "TensorListGather",
                                      "TensorListGetItem",
                                      "TensorListPopBack",
                                      "TensorListStack",
                                      NULL};
static const char* const writers[] = {
    "TensorListFromTensor", "TensorListPushBack",  "TensorListPushBackBatch",
    "TensorListScatter",    "TensorListScatterV2", "TensorListScatterIntoExistingList",
    "TensorListSetItem",    "TensorListSplit",     NULL};

typedef struct pairs_t {
  RN_VEC(int32_t) items;
} pairs_t;

// Adds an edge to |reader| from every op that may have written what it reads.
static rn_status_t find_writers(rn_painter_t* p, int32_t reader, pairs_t* pairs) {
  memset(p->marks, 0, (size_t)p->graph.count);
  p->marks[list_of(p, reader)] = true;
  RN_RETURN_IF_ERROR(rn_type_spread(&p->graph, RN_TYPE_SOURCES, may_enter_open, p, p->marks));
  for (int32_t v = 0; v < p->graph.count; ++v) {
    int32_t node = p->graph.vertices[v].node;
    if (!p->marks[v] || !is_one_of(rn_ir_node(p->ir, node), writers)) continue;
    int32_t element = element_of(p, node);
    if (element < 0) continue;
    RN_RETURN_IF_ERROR(rn_vec_push(&pairs->items, p->ir->allocator, element));
    RN_RETURN_IF_ERROR(rn_vec_push(&pairs->items, p->ir->allocator, element_of(p, reader)));
  }
  return RN_OK;
}

static rn_status_t add_edges(rn_painter_t* p, pairs_t* pairs) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n)
    if (p->cluster[n] >= 0 && is_one_of(&p->ir->nodes.items[n], readers))
      RN_RETURN_IF_ERROR(find_writers(p, (int32_t)n, pairs));
  int32_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, pairs->items.count + 1, &copy));
  if (pairs->items.count) memcpy(copy, pairs->items.items, pairs->items.count * sizeof *copy);
  return rn_type_graph_add_edges(&p->graph, copy, (int32_t)(pairs->items.count / 2));
}

rn_status_t rn_paint_find_lists(rn_painter_t* p) {
  size_t nodes = p->ir->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, nodes + 1, &p->cluster));
  for (size_t n = 0; n < nodes; ++n) p->cluster[n] = -1;
  for (size_t n = 0; n < nodes; ++n)
    if (p->is_open[n] && p->cluster[n] < 0 && element_of(p, (int32_t)n) >= 0 &&
        list_of(p, (int32_t)n) >= 0)
      RN_RETURN_IF_ERROR(find_group(p, (int32_t)n));
  if (p->cluster_count == 0) return RN_OK;
  pairs_t pairs = {0};
  rn_status_t status = add_edges(p, &pairs);
  rn_vec_free(&pairs.items, p->ir->allocator);
  return status;
}

void rn_paint_match_lists(rn_painter_t* p) {
  for (int32_t c = 0; c < p->cluster_count; ++c) {
    bool is_denied = false, is_allowed = false;
    for (size_t n = 0; n < p->ir->nodes.count; ++n) {
      if (p->cluster[n] != c) continue;
      is_denied |= p->deny[element_of(p, (int32_t)n)];
      is_allowed |= p->allow[element_of(p, (int32_t)n)];
    }
    for (size_t n = 0; (is_denied || is_allowed) && n < p->ir->nodes.count; ++n) {
      if (p->cluster[n] != c) continue;
      int32_t v = element_of(p, (int32_t)n);
      p->deny[v] |= is_denied;
      p->allow[v] = !is_denied;
    }
  }
}

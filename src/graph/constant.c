// Finds out whether a node depends on constants only.
#include <string.h>

#include "base/vec.h"
#include "graph/edit.h"

// The search gives up after this many nodes; TensorFlow has a limit, too.
#define MAX_NODES 10000

typedef struct constant_walk_t {
  RN_VEC(rn_node_t*) nodes;  // seen; the first |done| have been visited
  size_t done;
  bool* is_seen;  // by id
} constant_walk_t;

// Whether the node always computes the same values from the same inputs.
static bool is_pure(const rn_node_t* node) {
  switch (node->op->role) {
    case RN_ROLE_PLAIN:
    case RN_ROLE_IDENTITY:
    case RN_ROLE_CONSTANT:
    case RN_ROLE_NO_OP:
      break;
    default:
      return false;
  }
  if (node->op->flags & RN_OP_STATEFUL) return false;
  if (strcmp(node->op->name, "PlaceholderWithDefault") == 0) return false;  // it may be fed
  for (int i = 0; i < node->output_count; ++i) {
    rn_dtype_t dtype = node->outputs[i].dtype;
    if (rn_dtype_is_ref(dtype) || dtype == RN_RESOURCE || dtype == RN_VARIANT) return false;
  }
  return true;
}

static rn_status_t see(constant_walk_t* walk, rn_node_t* node) {
  if (walk->is_seen[node->id]) return RN_OK;
  walk->is_seen[node->id] = true;
  return rn_vec_push(&walk->nodes, node->graph->allocator, node);
}

static rn_status_t look_locked(constant_walk_t* walk, rn_node_t* node, bool* out_is_constant) {
  *out_is_constant = false;
  RN_RETURN_IF_ERROR(see(walk, node));
  while (walk->done < walk->nodes.count) {
    rn_node_t* next = walk->nodes.items[walk->done++];
    if (!is_pure(next) || walk->nodes.count > MAX_NODES) return RN_OK;
    for (int i = 0; i < next->input_count; ++i) {
      RN_RETURN_IF_ERROR(see(walk, next->inputs[i].node));
    }
    for (size_t i = 0; i < next->controls.count; ++i) {
      RN_RETURN_IF_ERROR(see(walk, next->controls.items[i]));
    }
  }
  *out_is_constant = true;
  return RN_OK;
}

rn_status_t rn_graph_is_constant(rn_graph_t* graph, rn_node_t* node, bool* out) {
  constant_walk_t walk = {0};
  rn_mutex_lock(&graph->mutex);
  size_t count = graph->nodes.count;
  rn_status_t status = RN_NEW_ARRAY(graph->allocator, count, &walk.is_seen);
  if (rn_ok(status)) status = look_locked(&walk, node, out);
  rn_mutex_unlock(&graph->mutex);
  rn_vec_free(&walk.nodes, graph->allocator);
  RN_FREE_ARRAY(graph->allocator, walk.is_seen, count);
  return status;
}

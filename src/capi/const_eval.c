// The value of an output that depends on constants alone.
#include <string.h>

#include "base/vec.h"
#include "capi/session.h"

// More nodes than this are not looked through: stock has a limit, too.
#define MAX_NODES 10000

typedef struct walk_t {
  RN_VEC(rn_node_t*) nodes;  // seen; the first |done| have been looked at
  size_t done;
  bool* is_seen;  // by id
} walk_t;

// Whether the node gives the same values at any time.
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

static rn_status_t see(walk_t* walk, rn_node_t* node) {
  if (walk->is_seen[node->id]) return RN_OK;
  walk->is_seen[node->id] = true;
  return rn_vec_push(&walk->nodes, rn_capi_allocator(), node);
}

static rn_status_t look_locked(walk_t* walk, rn_node_t* node, bool* out_is_constant) {
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

static rn_status_t is_constant(rn_graph_t* graph, rn_node_t* node, bool* out) {
  walk_t walk = {0};
  rn_mutex_lock(&graph->mutex);
  size_t count = graph->nodes.count;
  rn_status_t status = RN_NEW_ARRAY(rn_capi_allocator(), count, &walk.is_seen);
  if (rn_ok(status)) status = look_locked(&walk, node, out);
  rn_mutex_unlock(&graph->mutex);
  rn_vec_free(&walk.nodes, rn_capi_allocator());
  RN_FREE_ARRAY(rn_capi_allocator(), walk.is_seen, count);
  return status;
}

// A step of its own on one thread.
static rn_status_t evaluate(rn_graph_t* graph, rn_edge_t edge, TF_Tensor** out) {
  rn_session_options_t options;
  rn_session_t* session = NULL;
  rn_tensor_t value = {0};
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  options.allow_soft_placement = true;  // the value matters, not where it is made
  RN_RETURN_IF_ERROR(
      rn_session_create(graph, &options, rn_capi_env(), rn_capi_allocator(), &session));
  rn_signature_t signature = {.fetches = &edge, .fetch_count = 1};
  rn_status_t status = rn_session_run(session, &signature, NULL, &value, NULL);
  rn_session_destroy(session);
  return rn_ok(status) ? rn_capi_tensor_wrap(&value, out) : status;
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result,
                                     TF_Status* status) {
  if (result) *result = NULL;
  if (!graph || !result) {
    rn_capi_set(status, RN_CAPI_NULL(graph ? "result" : "graph"));
    return 0;
  }
  rn_graph_t* g = rn_capi_graph(graph);
  rn_edge_t edge = rn_capi_edge(output);
  bool constant = false;
  rn_status_t outcome = rn_capi_check_edge(g, edge);
  if (rn_ok(outcome)) outcome = is_constant(g, edge.node, &constant);
  if (rn_ok(outcome) && constant) outcome = evaluate(g, edge, result);
  rn_capi_set(status, outcome);
  return *result != NULL;
}

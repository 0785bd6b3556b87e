// Gradients behind the C API.
#include <stdio.h>
#include <string.h>

#include "capi/internal.h"
#include "grad/grad.h"

// A prefix is refused as soon as any node is in it or is called so.
static rn_status_t check_prefix(rn_graph_t* graph, const char* prefix) {
  rn_str_t text = rn_str(prefix);
  rn_status_t status = RN_OK;
  rn_mutex_lock(&graph->mutex);
  for (size_t i = 0; rn_ok(status) && i < graph->nodes.count; ++i) {
    rn_str_t name = graph->nodes.items[i]->name;
    if (!rn_str_starts_with(name, text)) continue;
    if (name.size == text.size || name.data[text.size] == '/') {
      status = rn_invalid_argument(
          "prefix [%s] conflicts with existing node in the graph named [%s]", prefix, name.data);
    }
  }
  rn_mutex_unlock(&graph->mutex);
  return status;
}

// |may_lack|: an edge may have no operation.
static rn_status_t check_edges(rn_graph_t* graph, const TF_Output* edges, int count,
                               const char* what, bool may_lack) {
  if (count < 0 || (count > 0 && !edges)) {
    return rn_invalid_argument("TF_AddGradients: bad list of %d outputs in '%s'", count, what);
  }
  for (int i = 0; i < count; ++i) {
    if (may_lack && !edges[i].oper) continue;
    RN_RETURN_IF_ERROR(rn_capi_check_edge(graph, rn_capi_edge(edges[i])));
  }
  return RN_OK;
}

// The ops that stock's C API knows to have no gradient. It refuses a y of any other such op. We
// follow where there is nothing to differentiate: a y of whole numbers, as of ArgMax.
static const char known_to_have_none[] =
    " ApproximateEqual BroadcastGradientArgs ConcatOffset Const DeleteSessionTensor "
    "EditDistance Equal Floor GetSessionHandle GetSessionHandleV2 GetSessionTensor Greater "
    "GreaterEqual InvertPermutation Less LessEqual LogicalAnd LogicalNot LogicalOr "
    "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 "
    "NonMaxSuppressionV5 NotEqual OneHot QueueClose QueueDequeue QueueDequeueMany "
    "QueueDequeueUpTo QueueEnqueue QueueEnqueueMany QueueSize Rank Shape ShapeN Size "
    "StopGradient ZerosLike ";

static bool is_known(const char* op) {
  char name[64];
  int length = snprintf(name, sizeof name, " %s ", op);
  return length > 0 && (size_t)length < sizeof name && strstr(known_to_have_none, name);
}

// Nothing flowed back to any x: as it should, or for want of a rule?
static rn_status_t check_ys(const TF_Output* y, int ny) {
  for (int i = 0; i < ny; ++i) {
    rn_edge_t edge = rn_capi_edge(y[i]);
    const rn_op_def_t* op = edge.node->op;
    bool is_whole = rn_dtype_is_integer(rn_dtype_base(edge.node->outputs[edge.index].dtype));
    if (is_whole && (op->flags & RN_OP_NO_GRAD) && !is_known(op->name)) {
      return rn_not_found(
          "No gradient defined for op: %s. Please see "
          "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for instructions on "
          "how to add C++ gradients.",
          op->name);
    }
  }
  return RN_OK;
}

static void log_line(void* arg, const char* line) {
  (void)arg;
  rn_log(rn_capi_env(), RN_LOG_WARNING, "%s", line);
}

static rn_status_t add_gradients(rn_graph_t* graph, const char* prefix, const TF_Output* y, int ny,
                                 const TF_Output* x, int nx, const TF_Output* initial,
                                 TF_Output* results) {
  if (!graph) return rn_capi_null("TF_AddGradients", "g");
  if (nx > 0 && !results) return rn_capi_null("TF_AddGradients", "dy");
  RN_RETURN_IF_ERROR(check_edges(graph, y, ny, "y", false));
  RN_RETURN_IF_ERROR(check_edges(graph, x, nx, "x", false));
  if (initial) RN_RETURN_IF_ERROR(check_edges(graph, initial, ny, "dx", true));
  if (prefix && *prefix) RN_RETURN_IF_ERROR(check_prefix(graph, prefix));
  rn_gradient_t* out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), (size_t)nx, &out));
  rn_gradient_options_t options = {
      .dys = (const rn_edge_t*)initial, .dense = true, .name = prefix, .log = log_line};
  rn_grad_request_t request = {.graph = graph,
                               .ys = (const rn_edge_t*)y,
                               .y_count = ny,
                               .xs = (const rn_edge_t*)x,
                               .x_count = nx,
                               .options = &options,
                               .wants_all = true,
                               .is_terse = true};
  rn_status_t status = rn_grad_run(&request, out);
  bool any = false;
  for (int i = 0; rn_ok(status) && i < nx; ++i) {
    results[i] = out[i].dense.node ? rn_capi_output(out[i].dense) : (TF_Output){NULL, -1};
    any |= out[i].dense.node != NULL;
  }
  if (rn_ok(status) && !any && nx > 0) status = check_ys(y, ny);
  RN_FREE_ARRAY(rn_capi_allocator(), out, nx);
  return status;
}

// |dx| holds the gradients that arrive at y, |dy| receives those of x.
void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x,
                               int nx, TF_Output* dx, TF_Status* status, TF_Output* dy) {
  rn_status_t outcome = add_gradients(rn_capi_graph(g), prefix, y, ny, x, nx, dx, dy);
  if (!rn_ok(outcome)) RN_CAPI_CLEAR(dy, nx);
  rn_capi_set(status, outcome);
}

void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                     TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, NULL, y, ny, x, nx, dx, status, dy);
}

// Gradients with the checks and messages of TensorFlow's C API.
#include <stdio.h>
#include <string.h>

#include "grad/grad.h"
#include "graph/graph.h"

// Refuses a prefix if any node has that name or a name under it.
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

// The ops that TensorFlow's C API knows to have no gradient. It refuses a y of any other op without
// one. We do the same if there is nothing to differentiate, as for an integer y such as that of
// ArgMax.
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

// No gradient reached any x: distinguishes whether that is right or a rule is missing.
static rn_status_t check_ys(const rn_edge_t* ys, int y_count) {
  for (int i = 0; i < y_count; ++i) {
    const rn_op_def_t* op = ys[i].node->op;
    bool is_whole = rn_dtype_is_integer(rn_dtype_base(ys[i].node->outputs[ys[i].index].dtype));
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

rn_status_t rn_grad_run_like_stock(rn_graph_t* graph, const rn_edge_t* ys, int y_count,
                                   const rn_edge_t* xs, int x_count,
                                   const rn_gradient_options_t* options, rn_gradient_t* out) {
  if (options->name && *options->name) RN_RETURN_IF_ERROR(check_prefix(graph, options->name));
  rn_grad_request_t request = {.graph = graph,
                               .ys = ys,
                               .y_count = y_count,
                               .xs = xs,
                               .x_count = x_count,
                               .options = options,
                               .wants_all = true,
                               .is_terse = true};
  RN_RETURN_IF_ERROR(rn_grad_run(&request, out));
  bool any = x_count == 0;
  for (int i = 0; i < x_count; ++i) any |= !rn_gradient_is_none(out[i]);
  return any ? RN_OK : check_ys(ys, y_count);
}

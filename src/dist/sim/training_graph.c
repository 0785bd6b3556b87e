// The graph of simulated clients: see training_graph.h.
#include "dist/sim/training_graph.h"

#include <stdio.h>

#include "graph/import.h"
#include "runnel/ops.h"

// The next node is |name| with |server| behind it.
static rn_scope_t* named(rn_scope_t* scope, const char* name, int server) {
  char text[64];
  snprintf(text, sizeof text, "%s_%d", name, server);
  rn_scope_name_next(scope, text);
  return scope;
}

static void put_server(rn_scope_t* s, int server, int64_t length, rn_edge_t gradient,
                       rn_edge_t stamp, rn_edge_t needed) {
  char device[64], name[64];
  snprintf(device, sizeof device, "/job:ps/task:%d", server);
  rn_scope_set_device(s, device);
  snprintf(name, sizeof name, "variable_%d", server);
  rn_edge_t variable = rn_VarHandleOp(s, RN_FLOAT, &length, 1, .shared_name = name);
  int32_t dims[] = {(int32_t)length};
  int64_t one = 1;
  rn_edge_t zeros = rn_Fill(s, rn_const(s, RN_INT32, &one, 1, dims), rn_const_float(s, 0));
  rn_AssignVariableOp(named(s, "init", server), variable, zeros);
  rn_VarIsInitializedOp(named(s, "ready", server), variable);
  rn_ReadVariableOp(named(s, "read", server), variable, RN_FLOAT);
  rn_AssignAddVariableOp(named(s, "add", server), variable, gradient);
  snprintf(name, sizeof name, "accumulator_%d", server);
  rn_edge_t accumulator = rn_ConditionalAccumulator(s, RN_FLOAT, &length, 1, .shared_name = name);
  rn_AccumulatorApplyGradient(named(s, "push", server), accumulator, stamp, gradient);
  rn_AccumulatorSetGlobalStep(named(s, "step", server), accumulator, stamp);
  rn_AccumulatorNumAccumulated(named(s, "count", server), accumulator);
  rn_edge_t one_gradient = rn_const_int32(s, 1);
  rn_AccumulatorTakeGradient(named(s, "drain", server), accumulator, one_gradient, RN_FLOAT);
  rn_edge_t taken =
      rn_AccumulatorTakeGradient(named(s, "take", server), accumulator, needed, RN_FLOAT);
  rn_AssignAddVariableOp(named(s, "apply", server), variable, taken);
}

static void put_queue(rn_scope_t* s) {
  const int type = RN_INT64;
  rn_scope_set_device(s, NULL);
  rn_scope_name_next(s, "tokens");
  rn_edge_t tokens = rn_Placeholder(s, RN_INT64);
  rn_scope_set_device(s, "/job:ps/task:0");
  rn_edge_t queue = rn_FIFOQueueV2(s, &type, 1, .shared_name = "tokens");
  rn_scope_name_next(s, "put");
  rn_QueueEnqueueManyV2(s, queue, &tokens, 1);
  rn_scope_name_next(s, "get");
  rn_QueueDequeueV2(s, queue, &type, 1);
  rn_scope_name_next(s, "size");
  rn_QueueSizeV2(s, queue);
}

rn_status_t rn_training_graph(int servers, int64_t length, int needed, rn_strbuf_t* out) {
  rn_graph_t* graph = NULL;
  RN_RETURN_IF_ERROR(rn_graph_create(out->allocator, &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_scope_name_next(s, "gradient");
  rn_edge_t gradient = rn_Placeholder(s, RN_FLOAT);
  rn_scope_name_next(s, "stamp");
  rn_edge_t stamp = rn_Placeholder(s, RN_INT64);
  for (int server = 0; server < servers; ++server) {
    char device[64];
    snprintf(device, sizeof device, "/job:ps/task:%d", server);
    rn_scope_set_device(s, device);
    rn_edge_t count = rn_const_int32(s, needed);
    put_server(s, server, length, gradient, stamp, count);
  }
  put_queue(s);
  rn_status_t status =
      rn_scope_ok(s) ? rn_graph_export(graph, out) : rn_internal("%s", rn_scope_message(s));
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return status;
}

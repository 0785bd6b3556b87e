// Reading a graph and its operations.
#include "capi/internal.h"
#include "graph/build.h"

TF_Graph* TF_NewGraph(void) {
  rn_graph_t* graph = NULL;
  rn_status_t status = rn_graph_create(rn_capi_allocator(), &graph);
  if (!rn_ok(status)) rn_status_free(status);
  return (TF_Graph*)graph;
}

void TF_DeleteGraph(TF_Graph* graph) { rn_graph_release(rn_capi_graph(graph)); }

rn_status_t rn_capi_check_edge(const rn_graph_t* graph, rn_edge_t edge) {
  if (!edge.node) return rn_invalid_argument("TF_Output has no operation");
  if (edge.node->graph != graph) {
    return rn_invalid_argument("Node %s was not found in the graph", edge.node->name.data);
  }
  if (!rn_capi_has_output(edge)) {
    return rn_invalid_argument("Node '%s' (type: '%s', num of outputs: %d) does not have output %d",
                               edge.node->name.data, edge.node->op->name, edge.node->output_count,
                               edge.index);
  }
  return RN_OK;
}

// The error of an invalid edge, or OK. The caller must not hold the graph's lock.
static rn_status_t check_output(TF_Graph* graph, TF_Output output, const char* function) {
  if (!graph) return rn_capi_null(function, "graph");
  return rn_capi_check_edge(rn_capi_graph(graph), rn_capi_edge(output));
}

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims, int num_dims,
                            TF_Status* status) {
  rn_shape_t shape;
  rn_status_t outcome = check_output(graph, output, __func__);
  if (rn_ok(outcome)) outcome = rn_capi_shape(dims, num_dims, &shape);
  if (rn_ok(outcome)) {
    outcome = rn_graph_set_shape(rn_capi_graph(graph), rn_capi_edge(output), shape);
  }
  rn_capi_set(status, outcome);
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status) {
  if (!rn_capi_ok(status, check_output(graph, output, __func__))) return -1;
  rn_graph_t* g = rn_capi_graph(graph);
  rn_mutex_lock(&g->mutex);
  int rank = rn_capi_node(output.oper)->outputs[output.index].shape.rank;
  rn_mutex_unlock(&g->mutex);
  return rank;
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims,
                            TF_Status* status) {
  if (!rn_capi_ok(status, check_output(graph, output, __func__))) return;
  rn_graph_t* g = rn_capi_graph(graph);
  rn_status_t outcome = RN_OK;
  rn_mutex_lock(&g->mutex);
  rn_shape_t shape = rn_capi_node(output.oper)->outputs[output.index].shape;
  if (rn_shape_has_rank(shape) && shape.rank != num_dims) {
    outcome =
        rn_invalid_argument("Expected rank is %d but actual rank is %d", num_dims, shape.rank);
  } else if (shape.rank > 0 && !dims) {
    outcome = RN_CAPI_NULL("dims");
  } else {
    for (int i = 0; i < shape.rank; ++i) dims[i] = shape.dims[i];
  }
  rn_mutex_unlock(&g->mutex);
  rn_capi_set(status, outcome);
}

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name) {
  if (!graph || !oper_name) return NULL;
  return rn_capi_oper(rn_graph_find(rn_capi_graph(graph), rn_str(oper_name)));
}

TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  if (!graph || !pos) return NULL;
  rn_graph_t* g = rn_capi_graph(graph);
  rn_node_t* node = NULL;
  rn_mutex_lock(&g->mutex);
  if (*pos < g->nodes.count) node = g->nodes.items[(*pos)++];
  rn_mutex_unlock(&g->mutex);
  return rn_capi_oper(node);
}

const char* TF_OperationName(TF_Operation* oper) {
  return oper ? rn_capi_node(oper)->name.data : NULL;
}

const char* TF_OperationOpType(TF_Operation* oper) {
  return oper ? rn_capi_node(oper)->op->name : NULL;
}

const char* TF_OperationDevice(TF_Operation* oper) {
  if (!oper) return NULL;
  const char* device = rn_capi_node(oper)->device.data;
  return device ? device : "";
}

int TF_OperationNumOutputs(TF_Operation* oper) {
  return oper ? rn_capi_node(oper)->output_count : 0;
}

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  rn_edge_t edge = rn_capi_edge(oper_out);
  return (TF_DataType)(rn_capi_has_output(edge) ? edge.node->outputs[edge.index].dtype
                                                : RN_INVALID);
}

int TF_OperationNumInputs(TF_Operation* oper) { return oper ? rn_capi_node(oper)->input_count : 0; }

// The type that the definition requires for input |index|.
TF_DataType TF_OperationInputType(TF_Input oper_in) {
  rn_node_t* node = rn_capi_node(oper_in.oper);
  if (!node || oper_in.index < 0) return (TF_DataType)RN_INVALID;
  int64_t index = oper_in.index;
  for (int i = 0; i < node->op->input_count; ++i) {
    int64_t length = rn_node_arg_length(node, &node->op->inputs[i]);
    if (index < length) return (TF_DataType)rn_node_arg_type(node, &node->op->inputs[i], index);
    index -= length > 0 ? length : 0;
  }
  return (TF_DataType)RN_INVALID;
}

static int list_length(TF_Operation* oper, const char* arg_name, bool is_input, TF_Status* status) {
  if (!oper || !arg_name) {
    const char* what = oper ? "arg_name" : "oper";
    rn_capi_set(status, rn_capi_null(is_input ? "TF_OperationInputListLength"
                                              : "TF_OperationOutputListLength",
                                     what));
    return -1;
  }
  rn_node_t* node = rn_capi_node(oper);
  const rn_arg_def_t* args = is_input ? node->op->inputs : node->op->outputs;
  int count = is_input ? node->op->input_count : node->op->output_count;
  for (int i = 0; i < count; ++i) {
    if (strcmp(args[i].name, arg_name) != 0) continue;
    rn_capi_set(status, RN_OK);
    return (int)rn_node_arg_length(node, &args[i]);
  }
  rn_capi_set(status, rn_invalid_argument("%s arg '%s' not found", is_input ? "Input" : "Output",
                                          arg_name));
  return -1;
}

int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return list_length(oper, arg_name, false, status);
}

int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return list_length(oper, arg_name, true, status);
}

// Takes the lock because lists of neighbors change as the graph grows.
static void lock(const rn_node_t* node) { rn_mutex_lock(&node->graph->mutex); }
static void unlock(const rn_node_t* node) { rn_mutex_unlock(&node->graph->mutex); }

TF_Output TF_OperationInput(TF_Input oper_in) {
  TF_Output none = {NULL, -1};
  rn_node_t* node = rn_capi_node(oper_in.oper);
  if (!node) return none;
  lock(node);
  bool is_there = oper_in.index >= 0 && oper_in.index < node->input_count;
  TF_Output source = is_there ? rn_capi_output(node->inputs[oper_in.index]) : none;
  unlock(node);
  return source;
}

void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs) {
  if (!oper || !inputs) return;
  rn_node_t* node = rn_capi_node(oper);
  lock(node);
  for (int i = 0; i < node->input_count && i < max_inputs; ++i) {
    inputs[i] = rn_capi_output(node->inputs[i]);
  }
  unlock(node);
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers) {
  rn_edge_t edge = rn_capi_edge(oper_out);
  if (!rn_capi_has_output(edge)) return 0;
  lock(edge.node);
  rn_output_t* output = &edge.node->outputs[edge.index];
  int count = (int)output->consumers.count;
  for (int i = 0; consumers && i < count && i < max_consumers; ++i) {
    rn_consumer_t consumer = output->consumers.items[i];
    consumers[i] = (TF_Input){rn_capi_oper(consumer.node), consumer.input};
  }
  unlock(edge.node);
  return count;
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
  return TF_OperationOutputConsumers(oper_out, NULL, 0);
}

static int copy_nodes(rn_node_t* const* nodes, size_t count, TF_Operation** out, int max) {
  for (size_t i = 0; out && i < count && (int)i < max; ++i) out[i] = rn_capi_oper(nodes[i]);
  return (int)count;
}

int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                 int max_control_inputs) {
  if (!oper) return 0;
  rn_node_t* node = rn_capi_node(oper);
  lock(node);
  int count =
      copy_nodes(node->controls.items, node->controls.count, control_inputs, max_control_inputs);
  unlock(node);
  return count;
}

int TF_OperationNumControlInputs(TF_Operation* oper) {
  return TF_OperationGetControlInputs(oper, NULL, 0);
}

int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                  int max_control_outputs) {
  if (!oper) return 0;
  rn_node_t* node = rn_capi_node(oper);
  lock(node);
  int count = copy_nodes(node->control_consumers.items, node->control_consumers.count,
                         control_outputs, max_control_outputs);
  unlock(node);
  return count;
}

int TF_OperationNumControlOutputs(TF_Operation* oper) {
  return TF_OperationGetControlOutputs(oper, NULL, 0);
}

// Datasets in sessions: see pipeline.h.
#include "data_service/pipeline.h"

#include "graph/import.h"
#include "proto/graph.pb.h"
#include "proto/node_def.pb.h"
#include "tensor/tstring.h"
#include "wire/scan.h"

#define MAX_DEPTH 1000     // of datasets that read each other
#define MAX_VISITS 100000  // of datasets, each as often as others read it
#define SHARD_HINT (-1)    // tf.data.experimental.SHARD_HINT
#define POLICY(name) rn_pb_data_ProcessingModeDef_##name

// The name of the dataset: the input of the node _Retval.
static rn_status_t find_output(rn_str_t bytes, rn_str_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  *out = RN_STR("");
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == rn_pb_GraphDef_node_field && field.wire == RN_PB_WIRE_LENGTH &&
        rn_str_is(rn_field_bytes(field.bytes, rn_pb_NodeDef_op_field), "_Retval"))
      *out = rn_field_bytes(field.bytes, rn_pb_NodeDef_input_field);
  if (scan.is_bad) return rn_invalid_argument("The graph of the dataset is damaged");
  return out->size ? RN_OK : rn_not_found("Dataset node for graph is not found.");
}

rn_status_t rn_ds_graph_load(rn_str_t bytes, rn_allocator_t allocator, rn_ds_graph_t* out) {
  *out = (rn_ds_graph_t){0};
  rn_str_t name;
  RN_RETURN_IF_ERROR(find_output(bytes, &name));
  RN_RETURN_IF_ERROR(rn_graph_create(allocator, &out->graph));
  rn_import_options_t options = {.prefix = RN_STR(""), .allows_any_names = true};
  rn_import_results_t results = {0};
  rn_status_t status = rn_graph_import(out->graph, bytes, &options, &results);
  if (rn_ok(status)) rn_import_results_clear(&results);
  if (rn_ok(status)) status = rn_edge_by_name(out->graph, name, &out->output);
  if (rn_ok(status) && out->output.index >= out->output.node->output_count)
    status = rn_invalid_argument("The graph of the dataset has no output %.*s", RN_STR_ARGS(name));
  if (!rn_ok(status)) rn_ds_graph_clear(out);
  return status;
}

void rn_ds_graph_clear(rn_ds_graph_t* graph) {
  rn_graph_release(graph->graph);
  *graph = (rn_ds_graph_t){0};
}

rn_status_t rn_ds_graph_const(rn_ds_graph_t* graph, int64_t value, rn_edge_t* out) {
  rn_tensor_t tensor = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(graph->graph->allocator, RN_INT64, RN_SHAPE_SCALAR, &tensor));
  *RN_DATA(&tensor, int64_t) = value;
  rn_attr_t attrs[] = {{RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = &tensor}},
                       {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_INT64}}};
  rn_node_spec_t spec = {
      .op = RN_STR("Const"), .name = RN_STR("task/number"), .attrs = attrs, .attr_count = 2};
  rn_node_t* node = NULL;
  rn_status_t status = rn_graph_add_unique(graph->graph, &spec, &node);
  rn_tensor_clear(&tensor);
  *out = (rn_edge_t){node, 0};
  return status;
}

// Whether input |input| of |node| is a dataset that it reads, not a captured value.
static bool is_input_dataset(const rn_node_t* node, int input) {
  int first = 0;
  for (int a = 0; a < node->op->input_count; ++a) {
    int length = rn_arg_length(&node->op->inputs[a], node->attrs);
    if (input >= first && input < first + length)
      return strstr(node->op->inputs[a].name, "dataset") != NULL;
    first += length;
  }
  return false;
}

typedef struct ds_walk_t {
  rn_ds_source_fn_t visit;
  void* arg;
  int visits;
} ds_walk_t;

// A dataset is visited once for each that reads it: their number may double with each level.
static rn_status_t walk_sources(ds_walk_t* walk, rn_node_t* node, rn_node_t* user, int input,
                                int depth) {
  if (depth > MAX_DEPTH)
    return rn_invalid_argument("Datasets are nested more than %d deep", MAX_DEPTH);
  if (++walk->visits > MAX_VISITS)
    return rn_invalid_argument("Datasets read each other in more than %d ways", MAX_VISITS);
  if (strcmp(node->op->name, "_SplitDataset") == 0) return RN_OK;  // done on another way to it
  bool is_source = true;
  for (int i = 0; i < node->input_count; ++i) {
    if (!is_input_dataset(node, i)) continue;
    is_source = false;
    RN_RETURN_IF_ERROR(walk_sources(walk, node->inputs[i].node, node, i, depth + 1));
  }
  return is_source ? walk->visit(walk->arg, node, user, input) : RN_OK;
}

rn_status_t rn_ds_graph_sources(rn_ds_graph_t* graph, rn_ds_source_fn_t visit, void* arg) {
  ds_walk_t walk = {.visit = visit, .arg = arg};
  return walk_sources(&walk, graph->output.node, NULL, 0, 0);
}

rn_status_t rn_ds_session(rn_ds_graph_t* graph, const rn_env_t* env, rn_allocator_t allocator,
                          rn_session_t** out) {
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.allow_soft_placement = true;
  options.gpu.max_count = 0;
  return rn_session_create(graph->graph, &options, env, allocator, out);
}

struct rn_ds_pipeline_t {
  rn_allocator_t allocator;
  rn_ds_graph_t graph;
  rn_session_t* session;
  rn_node_t *make, *next;  // MakeIterator, IteratorGetNext
  rn_edge_t* fetches;
  rn_tensor_t* element;
  int count;
};

// The types of the dataset's elements. Files of records, lines and pairs have no attribute for
// them.
static rn_status_t types_of(const rn_node_t* node, const rn_attr_value_t** out,
                            rn_attr_value_t* storage) {
  static const rn_dtype_t strings[] = {RN_STRING, RN_STRING};
  *out = rn_node_attr(node, RN_STR("output_types"));
  if (!*out) *out = rn_node_attr(node, RN_STR("Toutput_types"));
  if (*out) return RN_OK;
  bool is_pair = strstr(node->op->name, "LMDB") != NULL;
  if (!is_pair && !strstr(node->op->name, "Record") && !strstr(node->op->name, "TextLine") &&
      !strstr(node->op->name, "MatchingFiles"))
    return rn_unimplemented("The op %s does not tell the types of its elements", node->op->name);
  *storage = (rn_attr_value_t){
      .kind = RN_ATTR_TYPE, .is_list = true, .count = is_pair ? 2 : 1, .list_type = strings};
  *out = storage;
  return RN_OK;
}

// Attributes output_types and output_shapes; all shapes are unknown.
typedef struct ds_element_t {
  rn_attr_t attrs[5];
  rn_attr_value_t storage;
  rn_shape_t* shapes;
  int count;
} ds_element_t;

static rn_status_t element_init(ds_element_t* element, const rn_node_t* node,
                                rn_allocator_t allocator) {
  const rn_attr_value_t* types = NULL;
  RN_RETURN_IF_ERROR(types_of(node, &types, &element->storage));
  element->count = types->count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)types->count, &element->shapes));
  for (int i = 0; i < types->count; ++i) element->shapes[i] = RN_SHAPE_UNKNOWN;
  element->attrs[0] = (rn_attr_t){RN_STR("output_types"), *types};
  element->attrs[1] = (rn_attr_t){RN_STR("output_shapes"),
                                  {.kind = RN_ATTR_SHAPE,
                                   .is_list = true,
                                   .count = types->count,
                                   .list_shape = element->shapes}};
  return RN_OK;
}

static rn_status_t add_node(rn_graph_t* graph, const char* op, const char* name,
                            const rn_edge_t* inputs, int input_count, const rn_attr_t* attrs,
                            int attr_count, rn_node_t** out) {
  rn_node_spec_t spec = {.op = rn_str(op),
                         .name = rn_str(name),
                         .inputs = inputs,
                         .input_count = input_count,
                         .attrs = attrs,
                         .attr_count = attr_count};
  return rn_graph_add_unique(graph, &spec, out);
}

// Static sharding.
static rn_status_t auto_shard(rn_ds_graph_t* graph, ds_element_t* element, int64_t policy,
                              const rn_pb_data_TaskDef_t* task) {
  rn_edge_t inputs[3] = {graph->output};
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_ds_graph_const(graph, task->num_workers, &inputs[1]));
  RN_RETURN_IF_ERROR(rn_ds_graph_const(graph, task->worker_index, &inputs[2]));
  element->attrs[2] = (rn_attr_t){RN_STR("auto_shard_policy"), {.kind = RN_ATTR_INT, .i = policy}};
  RN_RETURN_IF_ERROR(add_node(graph->graph, "AutoShardDataset", "task/shard", inputs, 3,
                              element->attrs, 3, &node));
  graph->output = (rn_edge_t){node, 0};
  return RN_OK;
}

// Whether |edge| is the constant SHARD_HINT.
static bool is_hint(rn_edge_t edge) {
  const rn_attr_value_t* value = rn_node_attr(edge.node, RN_STR("value"));
  return value && value->kind == RN_ATTR_TENSOR && value->tensor->dtype == RN_INT64 &&
         value->tensor->count == 1 && *RN_DATA(value->tensor, const int64_t) == SHARD_HINT;
}

// The user has put a shard into the pipeline, with placeholders for the numbers.
static rn_status_t follow_hints(rn_ds_graph_t* graph, const rn_pb_data_TaskDef_t* task) {
  size_t count = graph->graph->nodes.count;
  for (size_t i = 0; i < count; ++i) {
    rn_node_t* node = graph->graph->nodes.items[i];
    if (strcmp(node->op->name, "ShardDataset") != 0 || node->input_count != 3 ||
        !is_hint(node->inputs[1]) || !is_hint(node->inputs[2]))
      continue;
    for (int input = 1; input < 3; ++input) {
      rn_edge_t number;
      RN_RETURN_IF_ERROR(
          rn_ds_graph_const(graph, input == 1 ? task->num_workers : task->worker_index, &number));
      RN_RETURN_IF_ERROR(rn_graph_update_edge(graph->graph, number, node, input));
    }
  }
  return RN_OK;
}

// Dynamic sharding: every source asks the dispatcher for its splits.
typedef struct ds_split_t {
  rn_ds_graph_t* graph;
  rn_allocator_t allocator;
  rn_edge_t address, iteration;
  int64_t count;
} ds_split_t;

static rn_status_t split_source(void* arg, rn_node_t* source, rn_node_t* user, int input) {
  ds_split_t* split = arg;
  ds_element_t element = {0};
  rn_node_t* node = NULL;
  rn_edge_t inputs[4] = {{source, 0}, split->address, split->iteration};
  RN_RETURN_IF_ERROR(rn_ds_graph_const(split->graph, split->count++, &inputs[3]));
  rn_status_t status = element_init(&element, source, split->allocator);
  if (rn_ok(status))
    status = add_node(split->graph->graph, "_SplitDataset", "task/splits", inputs, 4, element.attrs,
                      2, &node);
  RN_FREE_ARRAY(split->allocator, element.shapes, element.count);
  RN_RETURN_IF_ERROR(status);
  if (user) return rn_graph_update_edge(split->graph->graph, (rn_edge_t){node, 0}, user, input);
  split->graph->output = (rn_edge_t){node, 0};
  return RN_OK;
}

static rn_status_t text_const(rn_ds_graph_t* graph, rn_str_t text, rn_edge_t* out) {
  rn_tensor_t tensor = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_create(graph->graph->allocator, RN_STRING, RN_SHAPE_SCALAR, &tensor));
  rn_node_t* node = NULL;
  rn_attr_t attrs[] = {{RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = &tensor}},
                       {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_STRING}}};
  rn_status_t status = rn_tstring_assign(RN_DATA(&tensor, rn_tstring_t), text.data, text.size)
                           ? add_node(graph->graph, "Const", "task/text", NULL, 0, attrs, 2, &node)
                           : rn_out_of_memory();
  rn_tensor_clear(&tensor);
  *out = (rn_edge_t){node, 0};
  return status;
}

static rn_status_t split_sources(rn_ds_graph_t* graph, const rn_pb_data_TaskDef_t* task,
                                 rn_str_t dispatcher) {
  ds_split_t split = {.graph = graph, .allocator = graph->graph->allocator};
  RN_RETURN_IF_ERROR(text_const(graph, dispatcher, &split.address));
  RN_RETURN_IF_ERROR(rn_ds_graph_const(graph, task->iteration_id, &split.iteration));
  RN_RETURN_IF_ERROR(rn_ds_graph_sources(graph, split_source, &split));
  if (split.count == task->num_split_providers) return RN_OK;
  return rn_unimplemented(
      "The dispatcher gives splits of %lld sources, and the dataset has %lld: a dataset that reads "
      "another one twice cannot be sharded dynamically",
      (long long)task->num_split_providers, (long long)split.count);
}

static rn_status_t divide(rn_ds_graph_t* graph, ds_element_t* element,
                          const rn_pb_data_TaskDef_t* task, rn_str_t dispatcher) {
  int policy = task->processing_mode_def ? (int)task->processing_mode_def->sharding_policy : 0;
  switch (policy) {
    case POLICY(OFF):
      return RN_OK;
    case POLICY(FILE):
      return auto_shard(graph, element, 1, task);
    case POLICY(DATA):
      return auto_shard(graph, element, 2, task);
    case POLICY(FILE_OR_DATA):
      return auto_shard(graph, element, 0, task);
    case POLICY(HINT):
      return follow_hints(graph, task);
    case POLICY(DYNAMIC):
      return split_sources(graph, task, dispatcher);
    default:
      return rn_internal("Unrecognized processing mode: %d", policy);
  }
}

static rn_status_t add_iterator(rn_ds_pipeline_t* self, ds_element_t* element) {
  rn_graph_t* graph = self->graph.graph;
  rn_node_t* iterator = NULL;
  element->attrs[2] = (rn_attr_t){RN_STR("shared_name"), {.kind = RN_ATTR_STRING, .s = RN_STR("")}};
  element->attrs[3] = (rn_attr_t){RN_STR("container"), {.kind = RN_ATTR_STRING, .s = RN_STR("")}};
  RN_RETURN_IF_ERROR(
      add_node(graph, "IteratorV2", "task/iterator", NULL, 0, element->attrs, 4, &iterator));
  rn_edge_t inputs[] = {self->graph.output, {iterator, 0}};
  RN_RETURN_IF_ERROR(
      add_node(graph, "MakeIterator", "task/start", inputs, 2, NULL, 0, &self->make));
  return add_node(graph, "IteratorGetNext", "task/next", &inputs[1], 1, element->attrs, 2,
                  &self->next);
}

static rn_status_t build(rn_ds_pipeline_t* self, const rn_env_t* env,
                         const rn_pb_data_TaskDef_t* task, rn_str_t dispatcher,
                         ds_element_t* element) {
  RN_RETURN_IF_ERROR(element_init(element, self->graph.output.node, self->allocator));
  RN_RETURN_IF_ERROR(divide(&self->graph, element, task, dispatcher));
  RN_RETURN_IF_ERROR(add_iterator(self, element));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(self->allocator, (size_t)element->count, &self->fetches));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(self->allocator, (size_t)element->count, &self->element));
  self->count = element->count;
  for (int i = 0; i < self->count; ++i) self->fetches[i] = (rn_edge_t){self->next, i};
  return rn_ds_session(&self->graph, env, self->allocator, &self->session);
}

rn_status_t rn_ds_pipeline_create(const rn_env_t* env, rn_allocator_t allocator, rn_str_t graph,
                                  const rn_pb_data_TaskDef_t* task, rn_str_t dispatcher,
                                  rn_ds_pipeline_t** out) {
  *out = NULL;
  rn_ds_pipeline_t* self = NULL;
  ds_element_t element = {0};
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &self));
  self->allocator = allocator;
  rn_status_t status = rn_ds_graph_load(graph, allocator, &self->graph);
  if (rn_ok(status)) status = build(self, env, task, dispatcher, &element);
  RN_FREE_ARRAY(allocator, element.shapes, element.count);
  if (!rn_ok(status)) {
    rn_ds_pipeline_destroy(self);
    return status;
  }
  *out = self;
  return RN_OK;
}

rn_status_t rn_ds_pipeline_start(rn_ds_pipeline_t* self) {
  rn_signature_t once = {.targets = &self->make, .target_count = 1};
  return rn_session_run(self->session, &once, NULL, NULL, NULL);
}

rn_status_t rn_ds_pipeline_next(rn_ds_pipeline_t* self, rn_tensor_t** out, int* out_count,
                                bool* out_is_end) {
  rn_signature_t step = {.fetches = self->fetches, .fetch_count = self->count};
  *out = self->element;
  *out_count = self->count;
  *out_is_end = false;
  rn_status_t status = rn_session_run(self->session, &step, NULL, self->element, NULL);
  if (rn_status_code(status) == RN_CODE_OUT_OF_RANGE &&
      rn_str_starts_with(rn_str(rn_status_message(status)), RN_STR("End of sequence"))) {
    rn_status_free(status);
    *out_is_end = true;
    return RN_OK;
  }
  return status;
}

rn_status_t rn_ds_pipeline_cardinality(rn_ds_pipeline_t* self, int64_t* out) {
  rn_node_t* node = NULL;
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(add_node(self->graph.graph, "DatasetCardinality", "task/count",
                              &self->graph.output, 1, NULL, 0, &node));
  rn_edge_t fetch = {node, 0};
  rn_signature_t step = {.fetches = &fetch, .fetch_count = 1};
  RN_RETURN_IF_ERROR(rn_session_run(self->session, &step, NULL, &value, NULL));
  *out = *RN_DATA(&value, const int64_t);
  rn_tensor_clear(&value);
  return RN_OK;
}

void rn_ds_pipeline_cancel(rn_ds_pipeline_t* self) {
  if (self && self->session) rn_status_free(rn_session_close(self->session));
}

void rn_ds_pipeline_destroy(rn_ds_pipeline_t* self) {
  if (!self) return;
  rn_session_destroy(self->session);
  RN_FREE_ARRAY(self->allocator, self->fetches, self->count);
  RN_FREE_ARRAY(self->allocator, self->element, self->count);
  rn_ds_graph_clear(&self->graph);
  RN_FREE(self->allocator, self);
}

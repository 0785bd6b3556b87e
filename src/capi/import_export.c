// GraphDefs in and out, and the options of an import.
#include "graph/import.h"

#include "base/vec.h"
#include "capi/internal.h"
#include "proto/graph.pb.h"
#include "proto/versions.pb.h"
#include "tensorflow/c/c_api_experimental.h"
#include "wire/text.h"

// The option functions have no status: the import reports their first error.
struct TF_ImportGraphDefOptions {
  rn_arena_t arena;  // holds every string below
  rn_status_t error;
  rn_import_options_t options;
  RN_VEC(rn_tensor_id_t) map_from;
  RN_VEC(rn_edge_t) map_to;
  RN_VEC(rn_node_t*) controls;
  RN_VEC(rn_tensor_id_t) return_outputs;
  RN_VEC(rn_str_t) return_nodes;
};

struct TF_ImportGraphDefResults {
  rn_import_results_t results;
  const char** missing_names;  // Owned arrays, pointing into |results|, with space for all mappings
  int* missing_indexes;
  size_t missing_room;
};

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void) {
  TF_ImportGraphDefOptions* opts = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &opts);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  rn_arena_init(&opts->arena, rn_capi_allocator());
  opts->options.validate_colocation = true;
  return opts;
}

void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts) {
  if (!opts) return;
  rn_allocator_t allocator = rn_capi_allocator();
  rn_vec_free(&opts->map_from, allocator);
  rn_vec_free(&opts->map_to, allocator);
  rn_vec_free(&opts->controls, allocator);
  rn_vec_free(&opts->return_outputs, allocator);
  rn_vec_free(&opts->return_nodes, allocator);
  rn_arena_clear(&opts->arena);
  rn_status_free(opts->error);
  RN_FREE(allocator, opts);
}

static void fail(TF_ImportGraphDefOptions* opts, rn_status_t status) {
  if (!rn_ok(status)) opts->error = rn_status_join(opts->error, status);
}

static rn_status_t copy_name(TF_ImportGraphDefOptions* opts, const char* name, rn_str_t* out) {
  if (!name) return rn_invalid_argument("A name among the options of an import is NULL");
  return rn_arena_str(&opts->arena, rn_str(name), out);
}

void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix) {
  if (opts) fail(opts, rn_arena_str(&opts->arena, rn_str(prefix), &opts->options.prefix));
}

void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device) {
  if (opts) fail(opts, rn_arena_str(&opts->arena, rn_str(device), &opts->options.default_device));
}

void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* opts,
                                              unsigned char uniquify_names) {
  if (opts) opts->options.uniquify_names = uniquify_names != 0;
}

void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* opts,
                                               unsigned char uniquify_prefix) {
  if (opts) opts->options.uniquify_prefix = uniquify_prefix != 0;
}

void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions* opts,
                                                              unsigned char enable) {
  if (opts) opts->options.validate_colocation = enable != 0;
}

static rn_status_t add_mapping(TF_ImportGraphDefOptions* opts, const char* src_name, int src_index,
                               rn_edge_t to) {
  rn_tensor_id_t from = {.index = src_index};
  if (!to.node) return rn_invalid_argument("An input mapping of an import goes to no operation");
  RN_RETURN_IF_ERROR(copy_name(opts, src_name, &from.name));
  RN_RETURN_IF_ERROR(rn_vec_push(&opts->map_from, rn_capi_allocator(), from));
  rn_status_t status = rn_vec_push(&opts->map_to, rn_capi_allocator(), to);
  if (!rn_ok(status)) opts->map_from.count--;
  return status;
}

void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* opts, const char* src_name,
                                             int src_index, TF_Output dst) {
  if (opts) fail(opts, add_mapping(opts, src_name, src_index, rn_capi_edge(dst)));
}

void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* opts,
                                                    const char* src_name, TF_Operation* dst) {
  if (opts) fail(opts, add_mapping(opts, src_name, -1, (rn_edge_t){rn_capi_node(dst), -1}));
}

void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* opts,
                                                  TF_Operation* oper) {
  if (!opts) return;
  fail(opts, oper ? rn_vec_push(&opts->controls, rn_capi_allocator(), rn_capi_node(oper))
                  : RN_CAPI_NULL("oper"));
}

void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* opts, const char* oper_name,
                                             int index) {
  if (!opts) return;
  rn_tensor_id_t id = {.index = index};
  rn_status_t status = copy_name(opts, oper_name, &id.name);
  if (rn_ok(status)) status = rn_vec_push(&opts->return_outputs, rn_capi_allocator(), id);
  fail(opts, status);
}

int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts) {
  return opts ? (int)opts->return_outputs.count : 0;
}

void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* opts,
                                                const char* oper_name) {
  if (!opts) return;
  rn_str_t name;
  rn_status_t status = copy_name(opts, oper_name, &name);
  if (rn_ok(status)) status = rn_vec_push(&opts->return_nodes, rn_capi_allocator(), name);
  fail(opts, status);
}

int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts) {
  return opts ? (int)opts->return_nodes.count : 0;
}

static rn_status_t run_import(TF_Graph* graph, const TF_Buffer* graph_def,
                              const TF_ImportGraphDefOptions* opts, rn_import_results_t* results) {
  rn_import_options_t options = {.validate_colocation = true};
  if (!graph) return rn_capi_null("TF_GraphImportGraphDef", "graph");
  if (!graph_def || (!graph_def->data && graph_def->length)) {
    return rn_capi_null("TF_GraphImportGraphDef", "graph_def");
  }
  if (opts) {
    if (!rn_ok(opts->error)) return rn_status_copy(opts->error);
    options = opts->options;
    options.map_from = opts->map_from.items;
    options.map_to = opts->map_to.items;
    options.map_count = (int32_t)opts->map_from.count;
    options.controls = opts->controls.items;
    options.control_count = (int32_t)opts->controls.count;
    options.return_outputs = opts->return_outputs.items;
    options.return_output_count = (int32_t)opts->return_outputs.count;
    options.return_nodes = opts->return_nodes.items;
    options.return_node_count = (int32_t)opts->return_nodes.count;
  }
  return rn_graph_import(rn_capi_graph(graph), rn_str_n(graph_def->data, graph_def->length),
                         &options, results);
}

void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def,
                            const TF_ImportGraphDefOptions* options, TF_Status* status) {
  rn_import_results_t results = {0};
  rn_capi_set(status, run_import(graph, graph_def, options, &results));
  rn_import_results_clear(&results);
}

void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph* graph, const TF_Buffer* graph_def,
                                             const TF_ImportGraphDefOptions* options,
                                             TF_Output* return_outputs, int num_return_outputs,
                                             TF_Status* status) {
  int expected = TF_ImportGraphDefOptionsNumReturnOutputs(options);
  RN_CAPI_CLEAR(return_outputs, num_return_outputs);
  if (num_return_outputs != expected) {
    rn_capi_set(status, rn_invalid_argument("Expected 'num_return_outputs' to be %d, got %d",
                                            expected, num_return_outputs));
    return;
  }
  if (expected > 0 && !return_outputs) {
    rn_capi_set(status, rn_invalid_argument("'return_outputs' must be preallocated to length %d",
                                            num_return_outputs));
    return;
  }
  rn_import_results_t results = {0};
  rn_status_t outcome = run_import(graph, graph_def, options, &results);
  for (int i = 0; rn_ok(outcome) && i < expected; ++i) {
    return_outputs[i] = rn_capi_output(results.return_outputs[i]);
  }
  rn_import_results_clear(&results);
  rn_capi_set(status, outcome);
}

// Allocates the memory for the results first, so that nothing can fail after nodes were added.
static rn_status_t results_create(const TF_ImportGraphDefOptions* options,
                                  TF_ImportGraphDefResults** out) {
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), out));
  TF_ImportGraphDefResults* handle = *out;
  handle->missing_room = options ? options->map_from.count : 0;
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(rn_capi_allocator(), handle->missing_room, &handle->missing_names));
  return RN_NEW_ARRAY(rn_capi_allocator(), handle->missing_room, &handle->missing_indexes);
}

// Fills the two arrays of missing mappings that the API returns.
static void list_missing(TF_ImportGraphDefResults* handle) {
  for (int i = 0; i < handle->results.missing_unused_count; ++i) {
    handle->missing_names[i] = handle->results.missing_unused[i].name.data;
    handle->missing_indexes[i] = handle->results.missing_unused[i].index;
  }
}

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(TF_Graph* graph,
                                                            const TF_Buffer* graph_def,
                                                            const TF_ImportGraphDefOptions* options,
                                                            TF_Status* status) {
  TF_ImportGraphDefResults* handle = NULL;
  rn_status_t outcome = results_create(options, &handle);
  if (rn_ok(outcome)) outcome = run_import(graph, graph_def, options, &handle->results);
  if (rn_capi_ok(status, outcome)) {
    list_missing(handle);
    return handle;
  }
  TF_DeleteImportGraphDefResults(handle);
  return NULL;
}

void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results) {
  if (!results) return;
  RN_FREE_ARRAY(rn_capi_allocator(), results->missing_names, results->missing_room);
  RN_FREE_ARRAY(rn_capi_allocator(), results->missing_indexes, results->missing_room);
  rn_import_results_clear(&results->results);
  RN_FREE(rn_capi_allocator(), results);
}

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* results, int* num_outputs,
                                           TF_Output** outputs) {
  if (num_outputs) *num_outputs = results ? results->results.return_output_count : 0;
  if (outputs) *outputs = results ? (TF_Output*)results->results.return_outputs : NULL;
}

void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* results, int* num_opers,
                                              TF_Operation*** opers) {
  if (num_opers) *num_opers = results ? results->results.return_node_count : 0;
  if (opers) *opers = results ? (TF_Operation**)results->results.return_nodes : NULL;
}

void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults* results,
                                                        int* num_missing_unused_input_mappings,
                                                        const char*** src_names,
                                                        int** src_indexes) {
  if (num_missing_unused_input_mappings) {
    *num_missing_unused_input_mappings = results ? results->results.missing_unused_count : 0;
  }
  if (src_names) *src_names = results ? results->missing_names : NULL;
  if (src_indexes) *src_indexes = results ? results->missing_indexes : NULL;
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = graph ? rn_capi_buffer_check(output_graph_def) : RN_CAPI_NULL("graph");
  if (rn_ok(outcome)) outcome = rn_graph_export(rn_capi_graph(graph), &buf);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&buf, output_graph_def);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = oper ? rn_capi_buffer_check(output_node_def) : RN_CAPI_NULL("oper");
  if (rn_ok(outcome)) outcome = rn_node_export(rn_capi_node(oper), &buf);
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&buf, output_node_def);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome = graph ? rn_capi_buffer_check(output_version_def) : RN_CAPI_NULL("graph");
  if (rn_ok(outcome)) {
    rn_graph_t* g = rn_capi_graph(graph);
    rn_mutex_lock(&g->mutex);
    rn_pb_VersionDef_t versions = {.producer = g->producer, .min_consumer = g->min_consumer};
    versions.bad_consumers.items = g->bad_consumers.items;
    versions.bad_consumers.count = (uint32_t)g->bad_consumers.count;
    outcome = rn_capi_encode(&rn_pb_VersionDef_desc, &versions, &buf);
    rn_mutex_unlock(&g->mutex);
  }
  if (rn_ok(outcome)) outcome = rn_capi_buffer_take(&buf, output_version_def);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
}

static rn_status_t graph_text(rn_graph_t* graph, rn_arena_t* arena, rn_strbuf_t* bytes,
                              rn_strbuf_t* text) {
  rn_pb_GraphDef_t* def = NULL;
  RN_RETURN_IF_ERROR(rn_graph_export(graph, bytes));
  RN_RETURN_IF_ERROR(RN_PB_DECODE(GraphDef, rn_strbuf_view(bytes), NULL, arena, &def));
  return rn_pb_print(&rn_pb_GraphDef_desc, def, text);
}

const char* TF_GraphDebugString(TF_Graph* graph, size_t* len) {
  if (len) *len = 0;
  if (!graph) return NULL;
  rn_arena_t arena;
  rn_strbuf_t bytes, text;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_strbuf_init(&bytes, rn_capi_allocator());
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_status_t status = graph_text(rn_capi_graph(graph), &arena, &bytes, &text);
  char* copy = NULL;
  if (rn_ok(status)) {
    copy = malloc(text.size + 1);  // the client calls free
    if (copy) {
      memcpy(copy, rn_strbuf_view(&text).data, text.size);
      copy[text.size] = '\0';
      if (len) *len = text.size;
    }
  } else {
    rn_status_free(status);
  }
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&bytes);
  rn_arena_clear(&arena);
  return copy;
}

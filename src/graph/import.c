// Imports a GraphDef. Nodes are checked and built in the graph's arena and registered only at the
// end; a failure before that rewinds the arena, so the graph is as before.
#include "graph/import.h"

#include <inttypes.h>
#include <stdio.h>

#include "graph/import_state.h"
#include "graph/library.h"

// Limit on the bytes of all tensors of a GraphDef together: a base, plus a multiple of the
// message's size. A message of a few bytes can ask for any size, because a single value may fill a
// shape.
#define TENSOR_BYTES ((size_t)1 << 30)
#define TENSOR_BYTES_PER_BYTE 16

// GraphDef versions count days; graphs of producers up to three weeks ahead are guaranteed to load.
#define FORWARD_DAYS 21

#define VERSION_TEXT "TensorFlow 2.21.0"

void rn_import_results_clear(rn_import_results_t* results) {
  if (!results) return;
  rn_allocator_t allocator = results->allocator;
  for (int32_t i = 0; i < results->missing_unused_count; i++) {
    rn_str_t name = results->missing_unused[i].name;
    rn_free(allocator, (void*)name.data, name.size + 1);
  }
  if (allocator.fn) {
    RN_FREE_ARRAY(allocator, results->return_outputs, results->return_output_count);
    RN_FREE_ARRAY(allocator, results->return_nodes, results->return_node_count);
    RN_FREE_ARRAY(allocator, results->missing_unused, results->missing_unused_count);
  }
  *results = (rn_import_results_t){.allocator = allocator};
}

static rn_status_t check_versions(const rn_import_t* import) {
  const rn_pb_VersionDef_t* versions = import->def->versions;
  if (!versions) return RN_OK;
  if (versions->producer < 0) {
    return rn_invalid_argument(
        "GraphDef producer version %d below min producer 0 supported by " VERSION_TEXT
        ".  Please regenerate your graph.",
        (int)versions->producer);
  }
  if (versions->min_consumer > RN_GRAPH_PRODUCER) {
    return rn_invalid_argument(
        "GraphDef min consumer version %d above current version %d for " VERSION_TEXT
        ".  Please upgrade TensorFlow.",
        (int)versions->min_consumer, RN_GRAPH_PRODUCER);
  }
  for (uint32_t i = 0; i < versions->bad_consumers.count; i++) {
    if (versions->bad_consumers.items[i] != RN_GRAPH_PRODUCER) continue;
    return rn_invalid_argument(
        "GraphDef disallows consumer version %d.  Please upgrade TensorFlow: this version is "
        "likely buggy.",
        RN_GRAPH_PRODUCER);
  }
  return RN_OK;
}

static rn_status_t check_controls(const rn_import_t* import) {
  for (int32_t i = 0; i < import->options->control_count; i++) {
    const rn_node_t* control = import->options->controls[i];
    if (control && control->graph == import->graph) continue;
    return rn_invalid_argument("Control dependency %d of the import is no node of the graph",
                               (int)i);
  }
  return RN_OK;
}

// Reports all unknown ops in one message; the first as TensorFlow words it.
static rn_status_t check_ops(rn_import_t* import) {
  rn_status_t status = RN_OK;
  rn_map_t named;
  rn_map_init(&named, import->graph->allocator);
  for (int32_t i = 0; i < import->node_count; i++) {
    const rn_import_def_t* def = rn_import_def(import, i);
    if (rn_graph_find_op_locked(import->graph, def->op) || rn_map_get(&named, def->op)) continue;
    rn_status_t noted = rn_map_put(&named, def->op, (void*)def);
    if (!rn_ok(noted)) {
      status = rn_status_join(status, noted);
      break;
    }
    status = rn_ok(status)
                 ? rn_op_not_registered(RN_CODE_NOT_FOUND, def->op)
                 : rn_status_annotate(status, "%s'%.*s'",
                                      named.count == 2 ? " Nor are these registered: " : ", ",
                                      RN_STR_ARGS(def->op));
  }
  rn_map_clear(&named);
  return status;
}

static rn_status_t build_nodes(rn_import_t* import) {
  RN_RETURN_IF_ERROR(check_ops(import));
  for (int32_t i = 0; i < import->node_count; i++) {
    RN_RETURN_IF_ERROR(rn_import_build_node(import, import->order ? import->order[i] : i));
  }
  for (int32_t i = 0; i < import->node_count; i++) {
    RN_RETURN_IF_ERROR(rn_import_link_back_edges(import, i));
  }
  return RN_OK;
}

// Adds to an error that the graph may be too new, if its producer is newer.
static rn_status_t explain_version(const rn_import_t* import, rn_status_t status) {
  bool is_new = import->producer > RN_GRAPH_PRODUCER + FORWARD_DAYS;
  if (rn_ok(status) || !is_new) return status;
  rn_status_t named = rn_status_make(
      rn_status_code(status),
      "Converting GraphDef to Graph has failed with an error: '%s' The binary trying to import the "
      "GraphDef was built when GraphDef version was %d. The GraphDef was produced by a binary "
      "built when GraphDef version was %d. The difference between these versions is larger than "
      "TensorFlow's forward compatibility guarantee, and might be the root cause for failing to "
      "import the GraphDef.",
      rn_status_message(status), RN_GRAPH_PRODUCER, (int)import->producer);
  rn_status_free(status);
  return named;
}

static rn_status_t find_return_output(const rn_import_t* import, rn_tensor_id_t id,
                                      rn_edge_t* out) {
  int32_t mapping = rn_import_find_mapping(import, id);
  if (mapping >= 0) {
    *out = import->options->map_to[mapping];
    return RN_OK;
  }
  int32_t number = rn_import_find(import, id.name);
  if (number < 0) {
    return rn_invalid_argument("Requested return tensor '%.*s:%d' not found in graph def",
                               RN_STR_ARGS(id.name), (int)id.index);
  }
  rn_node_t* node = import->nodes[number];
  if (id.index >= node->output_count || id.index < -1) {
    return rn_invalid_argument("Invalid return output %d of node '%.*s', which has %d output(s)",
                               (int)id.index, RN_STR_ARGS(id.name), (int)node->output_count);
  }
  *out = (rn_edge_t){node, id.index};
  return RN_OK;
}

static rn_status_t find_returns(const rn_import_t* import, rn_import_results_t* results) {
  const rn_import_options_t* options = import->options;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(results->allocator, (size_t)options->return_output_count,
                                  &results->return_outputs));
  results->return_output_count = options->return_output_count;
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(results->allocator, (size_t)options->return_node_count, &results->return_nodes));
  results->return_node_count = options->return_node_count;
  for (int32_t i = 0; i < options->return_output_count; i++) {
    RN_RETURN_IF_ERROR(
        find_return_output(import, options->return_outputs[i], &results->return_outputs[i]));
  }
  for (int32_t i = 0; i < options->return_node_count; i++) {
    int32_t number = rn_import_find(import, options->return_nodes[i]);
    if (number < 0) {
      return rn_invalid_argument("Requested return node '%.*s' not found in graph def",
                                 RN_STR_ARGS(options->return_nodes[i]));
    }
    results->return_nodes[i] = import->nodes[number];
  }
  return RN_OK;
}

// An unused mapping that names no output of the GraphDef is probably a mistake.
static bool is_missing(const rn_import_t* import, int32_t mapping) {
  if (import->is_map_used[mapping]) return false;
  rn_tensor_id_t from = import->options->map_from[mapping];
  int32_t number = rn_import_find(import, from.name);
  return number < 0 || from.index >= import->nodes[number]->output_count;
}

static rn_status_t find_missing(const rn_import_t* import, rn_import_results_t* results) {
  int32_t count = 0;
  for (int32_t i = 0; i < import->options->map_count; i++) count += is_missing(import, i);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(results->allocator, (size_t)count, &results->missing_unused));
  results->missing_unused_count = count;
  rn_tensor_id_t* missing = results->missing_unused;
  for (int32_t i = 0; i < import->options->map_count; i++) {
    if (!is_missing(import, i)) continue;
    rn_str_t name = import->options->map_from[i].name;
    char* copy = NULL;
    RN_RETURN_IF_ERROR(rn_str_dup(results->allocator, name, &copy));
    *missing++ = (rn_tensor_id_t){{copy, name.size}, import->options->map_from[i].index};
  }
  return RN_OK;
}

// Registers all nodes; on failure removes those already registered.
static rn_status_t commit_nodes(rn_import_t* import) {
  rn_graph_t* graph = import->graph;
  size_t first = graph->nodes.count;
  rn_status_t status =
      rn_vec_reserve(&graph->nodes, graph->allocator, first + (size_t)import->node_count);
  if (rn_ok(status)) status = rn_map_reserve(&graph->by_name, first + (size_t)import->node_count);
  for (int32_t i = 0; rn_ok(status) && i < import->node_count; i++) {
    rn_node_t* node = import->nodes[import->order ? import->order[i] : i];
    status = rn_node_link_consumers(node);
    if (!rn_ok(status)) break;
    status = rn_node_register_locked(node);
    if (!rn_ok(status)) rn_node_unlink_consumers(node, node->input_count);
  }
  while (!rn_ok(status) && graph->nodes.count > first) {
    rn_node_t* node = graph->nodes.items[--graph->nodes.count];
    rn_map_remove(&graph->by_name, node->name);
    rn_node_unlink_consumers(node, node->input_count);
  }
  return status;
}

static bool has_bad_consumer(const rn_graph_t* graph, int32_t version) {
  for (size_t i = 0; i < graph->bad_consumers.count; i++) {
    if (graph->bad_consumers.items[i] == version) return true;
  }
  return false;
}

// Combines versions: a consumer of the joint graph must be able to read each part.
static rn_status_t join_versions(rn_import_t* import, int32_t old_producer) {
  rn_graph_t* graph = import->graph;
  const rn_pb_VersionDef_t* versions = import->def->versions;
  for (uint32_t i = 0; versions && i < versions->bad_consumers.count; i++) {
    int32_t bad = versions->bad_consumers.items[i];
    if (has_bad_consumer(graph, bad)) continue;
    RN_RETURN_IF_ERROR(rn_vec_push(&graph->bad_consumers, graph->allocator, bad));
  }
  graph->producer = import->producer < old_producer ? import->producer : old_producer;
  int32_t min_consumer = versions ? versions->min_consumer : 0;
  bool has_functions = rn_graph_function_count(graph) > 0;
  if (has_functions && min_consumer < RN_FUNCTIONS_VERSION) min_consumer = RN_FUNCTIONS_VERSION;
  if (min_consumer > graph->min_consumer) graph->min_consumer = min_consumer;
  return RN_OK;
}

static rn_status_t prepare(rn_import_t* import, rn_str_t bytes) {
  RN_RETURN_IF_ERROR(rn_import_read(import, bytes));
  RN_RETURN_IF_ERROR(check_versions(import));
  RN_RETURN_IF_ERROR(check_controls(import));
  RN_RETURN_IF_ERROR(rn_import_settle_names(import));
  RN_RETURN_IF_ERROR(rn_import_resolve_inputs(import));
  RN_RETURN_IF_ERROR(rn_import_find_order(import));
  return RN_ARENA_ARRAY(&import->scratch, (size_t)import->node_count, &import->nodes);
}

static rn_status_t build(rn_import_t* import, rn_import_results_t* results) {
  RN_RETURN_IF_ERROR(rn_import_functions(import));
  RN_RETURN_IF_ERROR(explain_version(import, build_nodes(import)));
  RN_RETURN_IF_ERROR(find_returns(import, results));
  return find_missing(import, results);
}

static void dispose_nodes(rn_import_t* import) {
  for (int32_t i = 0; i < import->node_count; i++) rn_node_dispose(import->nodes[i]);
}

static rn_status_t run(rn_import_t* import, rn_str_t bytes, rn_import_results_t* results) {
  rn_graph_t* graph = import->graph;
  RN_RETURN_IF_ERROR(prepare(import, bytes));
  rn_arena_mark_t mark = rn_arena_mark(&graph->arena);
  int32_t old_producer = graph->producer, old_min_consumer = graph->min_consumer;
  size_t old_bad = graph->bad_consumers.count;
  graph->producer = import->producer;  // shape functions depend on it
  rn_status_t status = build(import, results);
  if (!rn_ok(status)) {
    dispose_nodes(import);  // before the functions that they call
    rn_import_undo_functions(import);
    rn_arena_rewind(&graph->arena, mark);
    graph->producer = old_producer;
    return status;
  }
  status = join_versions(import, old_producer);
  if (rn_ok(status)) status = commit_nodes(import);
  if (!rn_ok(status)) {
    // Not rewound: lists of older nodes may have moved to memory after the mark.
    dispose_nodes(import);
    rn_import_undo_functions(import);
    graph->producer = old_producer;
    graph->min_consumer = old_min_consumer;
    graph->bad_consumers.count = old_bad;
  }
  return status;
}

rn_status_t rn_graph_import(rn_graph_t* graph, rn_str_t bytes, const rn_import_options_t* options,
                            rn_import_results_t* out_results) {
  static const rn_import_options_t defaults = {.validate_colocation = true};
  rn_import_t import = {.graph = graph, .options = options ? options : &defaults};
  rn_arena_init(&import.scratch, graph->allocator);
  rn_strbuf_init(&import.name_buffer, graph->allocator);
  size_t more;
  if (!rn_mul_ok(bytes.size, TENSOR_BYTES_PER_BYTE, &more)) more = 0;
  if (!rn_add_ok(TENSOR_BYTES, more, &import.tensor_budget)) import.tensor_budget = SIZE_MAX;
  rn_import_results_t results = {.allocator = graph->allocator};
  rn_mutex_lock(&graph->mutex);
  rn_status_t status = run(&import, bytes, &results);
  rn_mutex_unlock(&graph->mutex);
  rn_strbuf_clear(&import.name_buffer);
  rn_arena_clear(&import.scratch);
  if (!rn_ok(status) || !out_results) rn_import_results_clear(&results);
  if (out_results) *out_results = results;
  return status;
}

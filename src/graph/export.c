// Writes graphs and nodes as GraphDef and NodeDef bytes, directly from the nodes. Attributes are
// sorted by name, so equal graphs give equal bytes; control inputs are sorted by name, as in
// TensorFlow.
#include "framework/attr_proto.h"
#include "graph/build.h"
#include "graph/import.h"
#include "graph/library.h"
#include "proto/graph.pb.h"
#include "wire/encode.h"
#include "wire/writer.h"

#include <stdio.h>

// Nodes with more attributes than this sort them in heap memory.
#define FEW 32

typedef struct named_value_t {
  rn_str_t name;
  const rn_attr_value_t* value;
} named_value_t;

// State of one export: memory for values that are converted to a message first, and for sorting.
typedef struct exporter_t {
  rn_strbuf_t* out;
  rn_arena_t scratch;
  RN_VEC(named_value_t) many;
  RN_VEC(rn_node_t*) controls;
} exporter_t;

static void exporter_clear(exporter_t* exporter) {
  rn_allocator_t allocator = exporter->scratch.allocator;
  rn_vec_free(&exporter->many, allocator);
  rn_vec_free(&exporter->controls, allocator);
  rn_arena_clear(&exporter->scratch);
}

// Composite values are converted to a message first.
static rn_status_t put_message_value(exporter_t* exporter, const rn_attr_value_t* value) {
  rn_pb_AttrValue_t proto;
  rn_arena_mark_t mark = rn_arena_mark(&exporter->scratch);
  rn_status_t status = rn_attr_value_to_proto(value, &exporter->scratch, &proto);
  rn_pb_encode_options_t sorted = {.sort_maps = true};
  if (rn_ok(status)) status = RN_PB_ENCODE(AttrValue, &proto, &sorted, exporter->out);
  rn_arena_rewind(&exporter->scratch, mark);
  return status;
}

static rn_status_t put_value(exporter_t* exporter, const rn_attr_value_t* value) {
  rn_strbuf_t* out = exporter->out;
  if (value->is_list) return put_message_value(exporter, value);
  switch (value->kind) {
    case RN_ATTR_TYPE:
      rn_pb_put_uint(out, rn_pb_AttrValue_type_field, (uint64_t)(int64_t)value->type);
      return RN_OK;
    case RN_ATTR_INT:
      rn_pb_put_uint(out, rn_pb_AttrValue_i_field, (uint64_t)value->i);
      return RN_OK;
    case RN_ATTR_BOOL:
      rn_pb_put_uint(out, rn_pb_AttrValue_b_field, value->b);
      return RN_OK;
    case RN_ATTR_FLOAT:
      rn_pb_put_float(out, rn_pb_AttrValue_f_field, value->f);
      return RN_OK;
    case RN_ATTR_STRING:
      rn_pb_put_str(out, rn_pb_AttrValue_s_field, value->s);
      return RN_OK;
    default:
      return put_message_value(exporter, value);
  }
}

static rn_status_t put_attr(exporter_t* exporter, rn_str_t name, const rn_attr_value_t* value) {
  size_t entry = rn_pb_begin(exporter->out, rn_pb_NodeDef_attr_field);
  rn_pb_put_str(exporter->out, rn_pb_NodeDef_AttrEntry_key_field, name);
  size_t content = rn_pb_begin(exporter->out, rn_pb_NodeDef_AttrEntry_value_field);
  RN_RETURN_IF_ERROR(put_value(exporter, value));
  rn_pb_end(exporter->out, content);
  rn_pb_end(exporter->out, entry);
  return RN_OK;
}

static int compare_named(const void* a, const void* b) {
  return rn_str_compare(((const named_value_t*)a)->name, ((const named_value_t*)b)->name);
}

static void sort_few(named_value_t* values, int count) {
  for (int i = 1; i < count; i++) {
    named_value_t value = values[i];
    int j = i;
    for (; j > 0 && compare_named(&values[j - 1], &value) > 0; j--) values[j] = values[j - 1];
    values[j] = value;
  }
}

static rn_status_t put_attrs(exporter_t* exporter, const rn_node_t* node) {
  named_value_t few[FEW];
  named_value_t* values = few;
  int own = node->op->attr_count, count = own + node->extra_count;
  if (count > FEW) {
    RN_RETURN_IF_ERROR(rn_vec_reserve(&exporter->many, exporter->scratch.allocator, (size_t)count));
    values = exporter->many.items;
  }
  for (int i = 0; i < own; i++) {
    values[i] = (named_value_t){rn_str(node->op->attrs[i].name), &node->attrs[i]};
  }
  for (int i = own; i < count; i++) {
    values[i] = (named_value_t){node->extras[i - own].name, &node->extras[i - own].value};
  }
  if (count <= FEW) {
    sort_few(values, count);
  } else {
    qsort(values, (size_t)count, sizeof *values, compare_named);
  }
  for (int i = 0; i < count; i++) {
    RN_RETURN_IF_ERROR(put_attr(exporter, values[i].name, values[i].value));
  }
  return RN_OK;
}

static void put_input(rn_strbuf_t* out, rn_edge_t edge) {
  if (edge.index == 0) {
    rn_pb_put_str(out, rn_pb_NodeDef_input_field, edge.node->name);
    return;
  }
  char port[16];
  int size = snprintf(port, sizeof port, ":%d", edge.index);
  size_t input = rn_pb_begin(out, rn_pb_NodeDef_input_field);
  rn_strbuf_append(out, edge.node->name);
  rn_strbuf_append_n(out, port, (size_t)size);
  rn_pb_end(out, input);
}

static int compare_nodes(const void* a, const void* b) {
  return rn_str_compare((*(rn_node_t* const*)a)->name, (*(rn_node_t* const*)b)->name);
}

static rn_status_t put_controls(exporter_t* exporter, const rn_node_t* node) {
  size_t count = node->controls.count;
  if (count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&exporter->controls, exporter->scratch.allocator, count));
  rn_node_t** sorted = exporter->controls.items;
  memcpy(sorted, node->controls.items, count * sizeof *sorted);
  if (count > 1) qsort(sorted, count, sizeof *sorted, compare_nodes);
  for (size_t i = 0; i < count; i++) {
    size_t input = rn_pb_begin(exporter->out, rn_pb_NodeDef_input_field);
    rn_strbuf_append_n(exporter->out, "^", 1);
    rn_strbuf_append(exporter->out, sorted[i]->name);
    rn_pb_end(exporter->out, input);
  }
  return RN_OK;
}

static rn_status_t put_node(exporter_t* exporter, const rn_node_t* node) {
  rn_strbuf_t* out = exporter->out;
  rn_pb_put_str(out, rn_pb_NodeDef_name_field, node->name);
  rn_pb_put_str(out, rn_pb_NodeDef_op_field, rn_str(node->op->name));
  for (int i = 0; i < node->input_count; i++) put_input(out, node->inputs[i]);
  RN_RETURN_IF_ERROR(put_controls(exporter, node));
  if (node->device.size) rn_pb_put_str(out, rn_pb_NodeDef_device_field, node->device);
  RN_RETURN_IF_ERROR(put_attrs(exporter, node));
  if (node->full_type.size)
    rn_pb_put_str(out, rn_pb_NodeDef_experimental_type_field, node->full_type);
  return RN_OK;
}

static void put_functions(rn_strbuf_t* out, rn_library_t* library) {
  rn_mutex_lock(&library->mutex);
  for (size_t i = 0; i < library->entries.count; i++) {
    const rn_function_t* function = library->entries.items[i].function;
    rn_pb_put_str(out, rn_pb_FunctionDefLibrary_function_field, function->bytes);
  }
  for (size_t i = 0; i < library->entries.count; i++) {
    const rn_library_entry_t* entry = &library->entries.items[i];
    if (!entry->gradient.size) continue;
    size_t gradient = rn_pb_begin(out, rn_pb_FunctionDefLibrary_gradient_field);
    rn_pb_put_str(out, rn_pb_GradientDef_function_name_field, entry->function->name);
    rn_pb_put_str(out, rn_pb_GradientDef_gradient_func_field, entry->gradient);
    rn_pb_end(out, gradient);
  }
  rn_mutex_unlock(&library->mutex);
}

static void put_library(rn_strbuf_t* out, const rn_graph_t* graph) {
  size_t library = rn_pb_begin(out, rn_pb_GraphDef_library_field);
  put_functions(out, graph->library);
  rn_pb_end(out, library);
}

static void put_versions(rn_strbuf_t* out, const rn_graph_t* graph) {
  size_t versions = rn_pb_begin(out, rn_pb_GraphDef_versions_field);
  if (graph->producer) {
    rn_pb_put_uint(out, rn_pb_VersionDef_producer_field, (uint64_t)(int64_t)graph->producer);
  }
  if (graph->min_consumer) {
    rn_pb_put_uint(out, rn_pb_VersionDef_min_consumer_field,
                   (uint64_t)(int64_t)graph->min_consumer);
  }
  size_t count = graph->bad_consumers.count;
  size_t packed = count ? rn_pb_begin(out, rn_pb_VersionDef_bad_consumers_field) : 0;
  for (size_t i = 0; i < count; i++) {
    rn_pb_put_varint(out, (uint64_t)(int64_t)graph->bad_consumers.items[i]);
  }
  if (count) rn_pb_end(out, packed);
  rn_pb_end(out, versions);
}

static rn_status_t put_graph(exporter_t* exporter, const rn_graph_t* graph, size_t first) {
  for (size_t i = first; i < graph->nodes.count; i++) {
    size_t node = rn_pb_begin(exporter->out, rn_pb_GraphDef_node_field);
    RN_RETURN_IF_ERROR(put_node(exporter, graph->nodes.items[i]));
    rn_pb_end(exporter->out, node);
  }
  put_library(exporter->out, graph);
  put_versions(exporter->out, graph);
  return rn_strbuf_status(exporter->out);
}

rn_status_t rn_graph_export(rn_graph_t* graph, rn_strbuf_t* out) {
  return rn_graph_export_from(graph, 0, out, NULL);
}

rn_status_t rn_graph_export_from(rn_graph_t* graph, size_t first, rn_strbuf_t* out,
                                 size_t* out_count) {
  exporter_t exporter = {.out = out};
  rn_arena_init(&exporter.scratch, graph->allocator);
  size_t before = out->size;
  rn_mutex_lock(&graph->mutex);
  if (out_count) *out_count = graph->nodes.count;
  rn_status_t status = put_graph(&exporter, graph, first);
  rn_mutex_unlock(&graph->mutex);
  exporter_clear(&exporter);
  if (!rn_ok(status)) out->size = before;
  return status;
}

rn_status_t rn_node_export_renamed_locked(const rn_node_t* node, rn_str_t name,
                                          const rn_str_t* inputs, size_t input_count,
                                          rn_strbuf_t* out) {
  exporter_t exporter = {.out = out};
  rn_arena_init(&exporter.scratch, node->graph->allocator);
  rn_pb_put_str(out, rn_pb_NodeDef_name_field, name);
  rn_pb_put_str(out, rn_pb_NodeDef_op_field, rn_str(node->op->name));
  for (size_t i = 0; i < input_count; i++) {
    rn_pb_put_str(out, rn_pb_NodeDef_input_field, inputs[i]);
  }
  if (node->device.size) rn_pb_put_str(out, rn_pb_NodeDef_device_field, node->device);
  rn_status_t status = put_attrs(&exporter, node);
  exporter_clear(&exporter);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

rn_status_t rn_node_export(const rn_node_t* node, rn_strbuf_t* out) {
  exporter_t exporter = {.out = out};
  rn_arena_init(&exporter.scratch, node->graph->allocator);
  size_t before = out->size;
  rn_mutex_lock(&node->graph->mutex);
  rn_status_t status = put_node(&exporter, node);
  if (rn_ok(status)) status = rn_strbuf_status(out);
  rn_mutex_unlock(&node->graph->mutex);
  exporter_clear(&exporter);
  if (!rn_ok(status)) out->size = before;
  return status;
}

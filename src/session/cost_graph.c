// Cost models of steps: see step_parts.h.
#include "proto/cost_graph.pb.h"
#include "proto/tensor_shape.pb.h"
#include "session/step_parts.h"
#include "session/step_stats_proto.h"
#include "wire/writer.h"

// The nodes that TensorFlow begins and ends every part with.
enum { SOURCE, SINK, FIRST };

typedef struct costs_t {
  rn_ir_t* ir;
  const rn_step_stats_t* stats;
  rn_strbuf_t* out;
  rn_map_t entries;  // by name: the entry that took longest
  rn_map_t kernels;  // by name: how long a GPU took for the node, in ns, plus one
  int32_t* ids;      // by node
  bool* is_read;     // by node
  int32_t next;
} costs_t;

static void put(rn_strbuf_t* out, uint32_t number, int64_t value) {
  if (value) rn_pb_put_uint(out, number, (uint64_t)value);
}

static const rn_node_stats_t* entry_of(const costs_t* c, const rn_ir_node_t* node) {
  return rn_map_get(&c->entries, node->name);
}

// What is known of output |slot|; one without data if its shape is all.
static rn_output_stats_t output_of(const costs_t* c, const rn_ir_node_t* node, int32_t slot) {
  const rn_node_stats_t* entry = entry_of(c, node);
  for (size_t i = 0; entry && i < entry->output_count; ++i) {
    const rn_output_stats_t* output = &c->stats->outputs.items[entry->first_output + i];
    if (output->slot == slot) return *output;
  }
  rn_output_stats_t output = {
      .dtype = rn_dtype_base(node->types[slot]), .shape = node->shapes[slot], .bytes = -1};
  int64_t count, size = (int64_t)rn_dtype_size(output.dtype);
  if (rn_shape_is_full(output.shape) && size && rn_shape_count(output.shape, &count) &&
      rn_mul_i64_ok(count, size, &output.bytes))
    return output;
  output.bytes = -1;
  return output;
}

static int32_t alias_of(const costs_t* c, const rn_ir_node_t* node, const void* data) {
  for (int32_t i = 0; data && i < node->input_count; ++i) {
    const rn_ir_node_t* source = &c->ir->nodes.items[node->inputs[i].node];
    if (output_of(c, source, node->inputs[i].output).data == data) return i;
  }
  return -1;
}

static void put_outputs(const costs_t* c, const rn_ir_node_t* node, int64_t* out_bytes) {
  for (int32_t o = 0; o < node->output_count; ++o) {
    rn_output_stats_t output = output_of(c, node, o);
    size_t info = rn_pb_begin(c->out, rn_pb_CostGraphDef_Node_output_info_field);
    put(c->out, rn_pb_CostGraphDef_Node_OutputInfo_size_field, output.bytes);
    put(c->out, rn_pb_CostGraphDef_Node_OutputInfo_alias_input_port_field,
        alias_of(c, node, output.data));
    size_t shape = rn_pb_begin(c->out, rn_pb_CostGraphDef_Node_OutputInfo_shape_field);
    if (rn_shape_has_rank(output.shape))
      rn_step_stats_write_shape(c->out, output.shape);
    else
      put(c->out, rn_pb_TensorShapeProto_unknown_rank_field, 1);
    rn_pb_end(c->out, shape);
    put(c->out, rn_pb_CostGraphDef_Node_OutputInfo_dtype_field, node->types[o]);
    rn_pb_end(c->out, info);
    if (output.bytes > 0) *out_bytes += output.bytes;
  }
}

static void put_name(const costs_t* c, rn_str_t name, rn_str_t device, int32_t id) {
  rn_pb_put_str(c->out, rn_pb_CostGraphDef_Node_name_field, name);
  if (device.size) rn_pb_put_str(c->out, rn_pb_CostGraphDef_Node_device_field, device);
  put(c->out, rn_pb_CostGraphDef_Node_id_field, id);
}

static void put_control(const costs_t* c, int32_t id) {
  rn_pb_put_uint(c->out, rn_pb_CostGraphDef_Node_control_input_field, (uint64_t)id);
}

static void put_node(const costs_t* c, int32_t index, int32_t first) {
  const rn_ir_node_t* node = &c->ir->nodes.items[index];
  const rn_node_stats_t* entry = entry_of(c, node);
  int64_t bytes = 0;
  size_t mark = rn_pb_begin(c->out, rn_pb_CostGraphDef_node_field);
  put_name(c, node->name, node->device->name, c->ids[index]);
  for (int32_t i = 0; i < node->input_count; ++i) {
    size_t info = rn_pb_begin(c->out, rn_pb_CostGraphDef_Node_input_info_field);
    put(c->out, rn_pb_CostGraphDef_Node_InputInfo_preceding_node_field,
        c->ids[node->inputs[i].node]);
    put(c->out, rn_pb_CostGraphDef_Node_InputInfo_preceding_port_field, node->inputs[i].output);
    rn_pb_end(c->out, info);
  }
  put_outputs(c, node, &bytes);
  put(c->out, rn_pb_CostGraphDef_Node_is_final_field, node->op->role == RN_ROLE_SEND);
  for (int32_t i = 0; i < node->control_count; ++i) put_control(c, c->ids[node->controls[i]]);
  if (!node->input_count && !node->control_count) put_control(c, first + SOURCE);
  uintptr_t on_gpu = (uintptr_t)rn_map_get(&c->kernels, node->name);
  int64_t took_ns = on_gpu ? (int64_t)on_gpu - 1 : entry ? entry->end_ns - entry->start_ns : 0;
  put(c->out, rn_pb_CostGraphDef_Node_compute_cost_field, (took_ns + 999) / 1000);
  if (node->op->role == RN_ROLE_CONSTANT || node->op->role == RN_ROLE_VARIABLE)
    put(c->out, rn_pb_CostGraphDef_Node_persistent_memory_size_field, bytes);
  rn_pb_end(c->out, mark);
}

static void put_ends(const costs_t* c, const rn_device_t* device, const int32_t* order,
                     int32_t count, int32_t first) {
  size_t source = rn_pb_begin(c->out, rn_pb_CostGraphDef_node_field);
  put_name(c, RN_STR("_SOURCE"), RN_STR(""), first + SOURCE);
  rn_pb_end(c->out, source);
  size_t sink = rn_pb_begin(c->out, rn_pb_CostGraphDef_node_field);
  put_name(c, RN_STR("_SINK"), RN_STR(""), first + SINK);
  put_control(c, first + SOURCE);
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &c->ir->nodes.items[order[i]];
    if (!node->is_removed && node->device == device && !c->is_read[order[i]])
      put_control(c, c->ids[order[i]]);
  }
  rn_pb_end(c->out, sink);
}

// The part of |device|, if it has one.
static void put_part(costs_t* c, const rn_device_t* device, const int32_t* order, int32_t count) {
  int32_t first = c->next, next = first + FIRST;
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &c->ir->nodes.items[order[i]];
    if (!node->is_removed && node->device == device) c->ids[order[i]] = next++;
  }
  if (next == first + FIRST) return;
  c->next = next;
  put_ends(c, device, order, count, first);
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = &c->ir->nodes.items[order[i]];
    if (!node->is_removed && node->device == device) put_node(c, order[i], first);
  }
}

// Adds an entry of a GPU's kernels, whose node is called "name:op".
static rn_status_t add_kernel(costs_t* c, const rn_node_stats_t* entry) {
  rn_str_t rest = entry->node, name = rn_str_split(&rest, ':');
  uintptr_t before = (uintptr_t)rn_map_get(&c->kernels, name);
  uintptr_t took = (uintptr_t)(entry->end_ns - entry->start_ns);
  return rn_map_put(&c->kernels, name, (void*)((before ? before : 1) + took));
}

static rn_status_t prepare(costs_t* c) {
  rn_ir_t* ir = c->ir;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &c->ids));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &c->is_read));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed) continue;
    for (int32_t i = 0; i < node->input_count; ++i) c->is_read[node->inputs[i].node] = true;
    for (int32_t i = 0; i < node->control_count; ++i) c->is_read[node->controls[i]] = true;
  }
  for (size_t i = 0; i < c->stats->nodes.count; ++i) {
    const rn_node_stats_t* entry = &c->stats->nodes.items[i];
    if (rn_str_ends_with(entry->device, RN_STR("/stream:all")))
      RN_RETURN_IF_ERROR(add_kernel(c, entry));
    const rn_node_stats_t* before = rn_map_get(&c->entries, entry->node);
    if (before && before->end_ns - before->start_ns >= entry->end_ns - entry->start_ns) continue;
    RN_RETURN_IF_ERROR(rn_map_put(&c->entries, entry->node, (void*)entry));
  }
  return RN_OK;
}

rn_status_t rn_step_parts_write_costs(rn_ir_t* parts, const rn_planner_t* planner,
                                      const rn_step_stats_t* stats, rn_strbuf_t* out) {
  costs_t costs = {.ir = parts, .stats = stats, .out = out};
  int32_t *order = NULL, count = 0;
  rn_map_init(&costs.entries, parts->allocator);
  rn_map_init(&costs.kernels, parts->allocator);
  rn_status_t status = prepare(&costs);
  if (rn_ok(status)) status = rn_ir_order(parts, &order, &count);
  for (int d = 0; rn_ok(status) && d < planner->place.device_count; ++d)
    put_part(&costs, planner->place.devices[d], order, count);
  rn_map_clear(&costs.entries);
  rn_map_clear(&costs.kernels);
  return rn_ok(status) ? rn_strbuf_status(out) : status;
}

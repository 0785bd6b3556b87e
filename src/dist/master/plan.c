// Cuts steps by task: see plan.h. Fusion is left to the workers, which run the kernels.
#include "dist/master/plan.h"

#include <stdlib.h>

#include "framework/internal_ops.h"
#include "graph/import.h"
#include "step/ir_export.h"
#include "step/make.h"

void rn_master_plan_clear(rn_master_plan_t* plan) {
  for (size_t i = 0; i < plan->parts.count; ++i) rn_strbuf_clear(&plan->parts.items[i].graph_def);
  if (plan->parts.items) rn_vec_free(&plan->parts, plan->allocator);
}

// Attributes of a client's end: a Recv of a feed, a Send of a fetch.
static rn_status_t end_attrs(rn_ir_t* ir, const rn_op_def_t* op, rn_dtype_t dtype, rn_str_t name,
                             const rn_device_t* device, const rn_attr_value_t** out) {
  const rn_attr_t given[] = {
      {RN_STR("T"), {.type = dtype}},            // of a Send
      {RN_STR("tensor_type"), {.type = dtype}},  // of a Recv
      {RN_STR("tensor_name"), {.s = name}},
      {RN_STR("send_device"), {.s = device->name}},
      {RN_STR("recv_device"), {.s = device->name}},
      {RN_STR("send_device_incarnation"), {.i = (int64_t)device->incarnation}},
      {RN_STR("client_terminated"), {.b = true}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(ir, op, NULL, given, out);
}

// Calls feeds and fetches as TensorFlow does: "x:0" is received as "_recv_x_0".
static rn_status_t end_name(rn_ir_t* ir, const char* prefix, rn_str_t edge, rn_str_t* out) {
  rn_tensor_id_t id = rn_tensor_id_parse(edge);
  return rn_arena_printf(&ir->arena, out, "%s_%.*s_%d", prefix, RN_STR_ARGS(id.name), id.index);
}

static rn_status_t name_feeds(rn_ir_t* ir, const rn_master_plan_options_t* options) {
  for (int32_t i = 0; i < ir->feed_count; ++i)
    RN_RETURN_IF_ERROR(end_name(ir, "_recv", options->feed_names[i], &ir->feed_names[i]));
  return RN_OK;
}

static rn_status_t add_feeds(rn_ir_t* ir, const rn_master_plan_options_t* options) {
  const rn_device_t* client = options->place.devices[0];
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || node->feed < 0) continue;
    rn_str_t name = options->feed_names[node->feed];
    node->op = rn_op_recv(false);
    RN_RETURN_IF_ERROR(
        end_attrs(ir, node->op, rn_dtype_base(node->types[0]), name, client, &node->attrs));
    node->name = rn_ir_source_name(ir, node);
    node->types[0] = rn_dtype_base(node->types[0]);
    node->extra_count = node->input_count = 0;
    node->feed = -1;
    node->requested_device = client->name;
  }
  return RN_OK;
}

static rn_status_t add_fetches(rn_ir_t* ir, const rn_master_plan_options_t* options) {
  rn_device_t* client = options->place.devices[0];
  for (int32_t i = 0; i < ir->fetch_count; ++i) {
    rn_str_t name = options->fetch_names[i];
    rn_ir_edge_t edge = ir->fetches[i];
    rn_dtype_t dtype = rn_dtype_base(ir->nodes.items[edge.node].types[edge.output]);
    rn_ir_node_t send = {.op = rn_op_send(false),
                         .input_count = 1,
                         .feed = -1,
                         .device = client,
                         .requested_device = client->name};
    RN_RETURN_IF_ERROR(end_name(ir, "_send", name, &send.name));
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&ir->arena, &send.inputs));
    send.inputs[0] = edge;
    RN_RETURN_IF_ERROR(end_attrs(ir, send.op, dtype, name, client, &send.attrs));
    int32_t index;
    RN_RETURN_IF_ERROR(rn_ir_add(ir, &send, &index));
  }
  ir->fetch_count = 0;
  return RN_OK;
}

static int task_of(const rn_master_plan_options_t* options, const rn_device_t* device) {
  for (int d = 0; d < options->place.device_count; ++d)
    if (options->place.devices[d] == device) return options->tasks[d];
  return -1;
}

// Appends the part of |task| as a GraphDef, if it has one. The nodes of other tasks are hidden
// meanwhile.
static rn_status_t add_part(rn_ir_t* ir, const rn_master_plan_options_t* options, int task,
                            bool* hidden, rn_master_plan_t* out) {
  size_t left = 0;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    hidden[n] = !node->is_removed && task_of(options, node->device) != task;
    if (hidden[n]) node->is_removed = true;
    if (node->is_removed) continue;
    node->requested_device = node->device->name;
    left++;
  }
  rn_status_t status = RN_OK;
  if (left) {
    rn_plan_part_t part = {.task = task};
    rn_strbuf_init(&part.graph_def, out->allocator);
    status = rn_ir_export_part(ir, true, &part.graph_def);
    if (rn_ok(status)) status = rn_vec_push(&out->parts, out->allocator, part);
    if (!rn_ok(status)) rn_strbuf_clear(&part.graph_def);
  }
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (hidden[n]) ir->nodes.items[n].is_removed = false;
  return status;
}

static bool is_straight(const rn_ir_t* ir) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || !node->op) continue;
    if (rn_ir_is_control_flow(node->op->role)) return false;
  }
  return true;
}

static bool sends(const rn_ir_t* ir, const rn_master_plan_options_t* options) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (!node->is_removed && node->op && node->op->role == RN_ROLE_SEND &&
        task_of(options, node->device) == 0)
      return true;
  }
  return false;
}

static int compare_keys(const void* left, const void* right) {
  int64_t a = *(const int64_t*)left, b = *(const int64_t*)right;
  return (a > b) - (a < b);
}

// As in stock: a hash of the instance keys that are attributes. Newer ops have them as inputs.
static rn_status_t find_collective_key(rn_ir_t* ir, int64_t* out) {
  int64_t* keys = NULL;
  size_t count = 0;
  bool has_any = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count, &keys));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &ir->nodes.items[n];
    if (node->is_removed || !node->op ||
        !rn_str_starts_with(rn_str(node->op->name), RN_STR("Collective")))
      continue;
    has_any = true;
    const rn_attr_value_t* key = rn_ir_attr(node, RN_STR("instance_key"));
    if (key) keys[count++] = key->i;
  }
  uint64_t hash = has_any ? UINT64_C(0x8774aa605c729c72) : 0;
  qsort(keys, count, sizeof *keys, compare_keys);
  for (size_t i = 0; i < count; ++i) {
    uint64_t key = (uint64_t)keys[i];
    if (i && keys[i] == keys[i - 1]) continue;
    hash = key ^ (hash + UINT64_C(0x9e3779b97f4a7800) + (key << 10) + (key >> 4));
  }
  *out = (int64_t)hash;
  return RN_OK;
}

static rn_status_t fill(rn_ir_t* ir, const rn_master_plan_options_t* options,
                        rn_master_plan_t* out) {
  RN_RETURN_IF_ERROR(rn_ir_set_feed_shapes(ir, NULL));  // any shapes may be fed
  RN_RETURN_IF_ERROR(name_feeds(ir, options));
  RN_RETURN_IF_ERROR(rn_pass_inline_calls(ir, &options->calls));
  if (options->optimize) {
    RN_RETURN_IF_ERROR(rn_pass_simplify(ir));
    RN_RETURN_IF_ERROR(rn_pass_merge_equal_nodes(ir));
    RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
  }
  RN_RETURN_IF_ERROR(rn_place(ir, &options->place));
  RN_RETURN_IF_ERROR(rn_partition(ir, &options->place));
  out->is_straight = is_straight(ir);
  out->sends = sends(ir, options);
  RN_RETURN_IF_ERROR(find_collective_key(ir, &out->collective_key));
  RN_RETURN_IF_ERROR(add_feeds(ir, options));
  RN_RETURN_IF_ERROR(add_fetches(ir, options));
  bool* hidden = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count, &hidden));
  for (int t = 0; t < options->task_count; ++t)
    RN_RETURN_IF_ERROR(add_part(ir, options, t, hidden, out));
  return RN_OK;
}

rn_status_t rn_master_plan(const rn_master_plan_options_t* options, rn_graph_t* graph,
                           const rn_signature_t* signature, rn_master_plan_t* out) {
  *out = (rn_master_plan_t){.allocator = options->allocator};
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(rn_ir_create(graph, signature, &ir));
  rn_status_t status = fill(ir, options, out);
  rn_ir_destroy(ir);
  if (!rn_ok(status)) rn_master_plan_clear(out);
  return status;
}

rn_status_t rn_master_check(const rn_master_plan_options_t* options, rn_graph_t* graph) {
  rn_ir_t* ir = NULL;
  rn_mutex_lock(&graph->mutex);
  size_t count = graph->nodes.count;
  rn_mutex_unlock(&graph->mutex);
  rn_signature_t all = {.targets = graph->nodes.items, .target_count = (int32_t)count};
  RN_RETURN_IF_ERROR(rn_ir_create(graph, &all, &ir));
  // A node whose op is a function is placed as a call of it.
  const rn_calls_options_t calls = {.keeps_calls = true, .lowering = RN_LOWER_NEVER};
  rn_status_t status = rn_pass_inline_calls(ir, &calls);
  if (rn_ok(status)) status = rn_place(ir, &options->place);
  rn_ir_destroy(ir);
  return status;
}

// Partition: a Send and a Recv on every edge that crosses devices, or host and device memory of one
// device.
//
// One pair serves all readers of a value on a device. A control edge that crosses carries a
// constant that nobody reads.
#include "framework/internal_ops.h"
#include "place/place.h"

// A pair that exists already.
typedef struct pair_t {
  rn_ir_edge_t source;  // output -1: a control edge
  rn_device_t* device;  // where the Recv is
  bool to_host;
  int32_t recv;
} pair_t;

typedef struct cut_t {
  rn_ir_t* ir;
  const rn_place_options_t* options;
  int32_t* frame;  // by node: in which loop its outputs are; 0: none
  int32_t frame_count;
  RN_VEC(pair_t) pairs;
  RN_VEC(int32_t) sends;
  int32_t next_edge;
} cut_t;

static rn_ir_node_t* node_at(const cut_t* cut, int32_t index) {
  return &cut->ir->nodes.items[index];
}

// Which loop a node's outputs are in, as far as that matters here: whether edges that cross are
// inside one.
static rn_status_t find_loops(cut_t* cut) {
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(cut->ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cut->ir->arena, cut->ir->nodes.count + 1, &cut->frame));
  int32_t* parents = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cut->ir->arena, (size_t)count + 1, &parents));
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = node_at(cut, order[i]);
    int32_t frame = 0;
    for (int32_t k = 0; k < node->input_count + node->control_count; ++k) {
      int32_t source =
          k < node->input_count ? node->inputs[k].node : node->controls[k - node->input_count];
      if (cut->frame[source] > frame) frame = cut->frame[source];
    }
    if (node->op->role == RN_ROLE_ENTER) {
      parents[++cut->frame_count] = frame;
      frame = cut->frame_count;
    } else if (node->op->role == RN_ROLE_EXIT) {
      frame = parents[frame];
    }
    cut->frame[order[i]] = frame;
  }
  return RN_OK;
}

// Whether input (or output) |flat| of |node| is in host memory on its device.
static bool is_host(const rn_ir_node_t* node, bool is_input, int32_t flat) {
  if (node->device->is_host) return true;
  // What the executor runs itself it must be able to read: which way, and which one.
  switch (node->op->role) {
    case RN_ROLE_LOOP_COND:
      return true;
    case RN_ROLE_SWITCH:
      return is_input && flat == 1;
    case RN_ROLE_MERGE:
      return !is_input && flat == 1;
    default:
      break;
  }
  if (!node->kernel) return false;
  const rn_arg_def_t* args = is_input ? node->op->inputs : node->op->outputs;
  int count = is_input ? node->op->input_count : node->op->output_count;
  int32_t at = 0;
  for (int a = 0; a < count; at += rn_arg_length(&args[a], node->attrs), ++a) {
    if (flat >= at + rn_arg_length(&args[a], node->attrs)) continue;
    const char* const* host_args = node->kernel->host_args;
    for (size_t h = 0; h < sizeof node->kernel->host_args / sizeof *host_args && host_args[h]; ++h)
      if (strcmp(host_args[h], args[a].name) == 0) return true;
    return false;
  }
  return false;
}

// Attributes of a Send or a Recv, in the order of its definition.
static rn_status_t pair_attrs(cut_t* cut, const rn_op_def_t* op, rn_dtype_t dtype, rn_str_t name,
                              const rn_device_t* sender, const rn_device_t* receiver,
                              const rn_attr_value_t** out) {
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cut->ir->arena, (size_t)op->attr_count, &attrs));
  for (int a = 0; a < op->attr_count; ++a) {
    const char* attr = op->attrs[a].name;
    attrs[a].kind = op->attrs[a].kind;
    if (op->attrs[a].kind == RN_ATTR_TYPE) attrs[a].type = dtype;
    if (strcmp(attr, "tensor_name") == 0) attrs[a].s = name;
    if (strcmp(attr, "send_device") == 0) attrs[a].s = sender->name;
    if (strcmp(attr, "recv_device") == 0) attrs[a].s = receiver->name;
    if (strcmp(attr, "send_device_incarnation") == 0) attrs[a].i = (int64_t)sender->incarnation;
  }
  *out = attrs;
  return RN_OK;
}

static rn_status_t finish_node(cut_t* cut, rn_ir_node_t* node, rn_device_t* device, int32_t* out) {
  node->feed = -1;
  node->device = device;
  node->requested_device = device->name;
  node->kernel = rn_kernel_find(node->op, node->attrs, NULL, device->type);
  if (!node->kernel)
    return rn_unimplemented(
        "Device %.*s cannot exchange values with others: it has no kernel for %s",
        RN_STR_ARGS(device->name), node->op->name);
  return rn_ir_add(cut->ir, node, out);
}

static rn_status_t add_send(cut_t* cut, rn_ir_edge_t source, int32_t control, rn_dtype_t dtype,
                            bool from_host, rn_str_t name, rn_device_t* sender,
                            rn_device_t* receiver) {
  rn_ir_node_t send = {.op = rn_op_send(from_host), .input_count = 1};
  RN_RETURN_IF_ERROR(rn_arena_printf(&cut->ir->arena, &send.name, "%.*s/_send", RN_STR_ARGS(name)));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &send.inputs));
  send.inputs[0] = source;
  if (control >= 0) {
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &send.controls));
    send.controls[0] = control;
    send.control_count = 1;
  }
  RN_RETURN_IF_ERROR(pair_attrs(cut, send.op, dtype, name, sender, receiver, &send.attrs));
  int32_t index;
  RN_RETURN_IF_ERROR(finish_node(cut, &send, sender, &index));
  return rn_vec_push(&cut->sends, cut->ir->allocator, index);
}

// Nobody waits for a Send on its own device: it must run for its effect elsewhere.
static rn_status_t target_sends(cut_t* cut) {
  rn_ir_t* ir = cut->ir;
  size_t count = (size_t)ir->target_count;
  int32_t* targets = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, count + cut->sends.count, &targets));
  if (count) memcpy(targets, ir->targets, count * sizeof *targets);
  for (size_t i = 0; i < cut->sends.count; ++i) targets[count + i] = cut->sends.items[i];
  ir->targets = targets;
  ir->target_count += (int32_t)cut->sends.count;
  return RN_OK;
}

static rn_status_t add_recv(cut_t* cut, rn_dtype_t dtype, rn_shape_t shape, bool to_host,
                            rn_str_t name, rn_device_t* sender, rn_device_t* receiver,
                            int32_t* out) {
  rn_ir_node_t recv = {.op = rn_op_recv(to_host), .output_count = 1};
  RN_RETURN_IF_ERROR(rn_arena_printf(&cut->ir->arena, &recv.name, "%.*s/_recv", RN_STR_ARGS(name)));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &recv.types));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &recv.shapes));
  recv.types[0] = dtype;
  recv.shapes[0] = shape;
  RN_RETURN_IF_ERROR(pair_attrs(cut, recv.op, dtype, name, sender, receiver, &recv.attrs));
  return finish_node(cut, &recv, receiver, out);
}

// A value for a control edge to carry.
static rn_status_t add_token(cut_t* cut, rn_device_t* device, int32_t* out) {
  rn_tensor_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &value));
  RN_RETURN_IF_ERROR(rn_vec_reserve(&cut->ir->owned, cut->ir->allocator, cut->ir->owned.count + 1));
  RN_RETURN_IF_ERROR(rn_tensor_create(cut->ir->allocator, RN_FLOAT, RN_SHAPE_SCALAR, value));
  *RN_DATA(value, float) = 0;
  cut->ir->owned.items[cut->ir->owned.count++] = *value;
  rn_ir_node_t token = {.op = rn_op_constant(), .output_count = 1, .constant = value};
  RN_RETURN_IF_ERROR(rn_arena_printf(&cut->ir->arena, &token.name, "_token_%d", cut->next_edge));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &token.types));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &token.shapes));
  token.types[0] = RN_FLOAT;
  token.shapes[0] = RN_SHAPE_SCALAR;
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cut->ir->arena, (size_t)token.op->attr_count, &attrs));
  for (int a = 0; a < token.op->attr_count; ++a) {
    attrs[a].kind = token.op->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE)
      attrs[a].type = RN_FLOAT;
    else
      attrs[a].tensor = value;
  }
  token.attrs = attrs;
  return finish_node(cut, &token, device, out);
}

static rn_status_t make_pair(cut_t* cut, rn_ir_edge_t source, int32_t reader, bool from_host,
                             bool to_host, int32_t* out_recv) {
  rn_device_t* sender = node_at(cut, source.node)->device;
  rn_device_t* receiver = node_at(cut, reader)->device;
  bool is_control = source.output < 0;
  if (cut->frame[source.node] != 0)
    return rn_unimplemented(
        "Node '%.*s' on %.*s uses '%.*s' on %.*s within a loop: loops over several devices are not "
        "supported",
        RN_STR_ARGS(node_at(cut, reader)->name), RN_STR_ARGS(receiver->name),
        RN_STR_ARGS(node_at(cut, source.node)->name), RN_STR_ARGS(sender->name));
  // Of a variable its value is sent.
  rn_dtype_t dtype =
      is_control ? RN_FLOAT : rn_dtype_base(node_at(cut, source.node)->types[source.output]);
  rn_shape_t shape =
      is_control ? RN_SHAPE_SCALAR : node_at(cut, source.node)->shapes[source.output];
  if (dtype == RN_RESOURCE)
    return rn_invalid_argument(
        "A resource cannot leave its device: '%.*s' on %.*s is used by '%.*s' on %.*s",
        RN_STR_ARGS(node_at(cut, source.node)->name), RN_STR_ARGS(sender->name),
        RN_STR_ARGS(node_at(cut, reader)->name), RN_STR_ARGS(receiver->name));
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(&cut->ir->arena, &name, "edge_%d_%.*s", cut->next_edge++,
                                     RN_STR_ARGS(node_at(cut, source.node)->name)));
  rn_ir_edge_t sent = source;
  int32_t control = -1;
  if (is_control) {
    control = source.node;
    sent.output = 0;
    RN_RETURN_IF_ERROR(add_token(cut, sender, &sent.node));
  }
  RN_RETURN_IF_ERROR(add_send(cut, sent, control, dtype, from_host, name, sender, receiver));
  return add_recv(cut, dtype, shape, to_host, name, sender, receiver, out_recv);
}

// The Recv that brings |source| to |reader|'s device and memory.
static rn_status_t bring(cut_t* cut, rn_ir_edge_t source, int32_t reader, bool from_host,
                         bool to_host, int32_t* out_recv) {
  rn_device_t* device = node_at(cut, reader)->device;
  for (size_t i = 0; i < cut->pairs.count; ++i) {
    const pair_t* pair = &cut->pairs.items[i];
    if (pair->source.node == source.node && pair->source.output == source.output &&
        pair->device == device && pair->to_host == to_host) {
      *out_recv = pair->recv;
      return RN_OK;
    }
  }
  RN_RETURN_IF_ERROR(make_pair(cut, source, reader, from_host, to_host, out_recv));
  return rn_vec_push(&cut->pairs, cut->ir->allocator, (pair_t){source, device, to_host, *out_recv});
}

static rn_status_t cut_node(cut_t* cut, int32_t index) {
  for (int32_t i = 0; i < node_at(cut, index)->input_count; ++i) {
    rn_ir_edge_t source = node_at(cut, index)->inputs[i];
    const rn_ir_node_t* from = node_at(cut, source.node);
    bool from_host = is_host(from, false, source.output),
         to_host = is_host(node_at(cut, index), true, i);
    if (from->device == node_at(cut, index)->device && from_host == to_host) continue;
    int32_t recv;
    RN_RETURN_IF_ERROR(bring(cut, source, index, from_host, to_host, &recv));
    node_at(cut, index)->inputs[i] = (rn_ir_edge_t){recv, 0};
  }
  for (int32_t i = 0; i < node_at(cut, index)->control_count; ++i) {
    int32_t control = node_at(cut, index)->controls[i];
    const rn_ir_node_t* from = node_at(cut, control);
    if (from->device == node_at(cut, index)->device) continue;
    int32_t recv;
    RN_RETURN_IF_ERROR(bring(cut, (rn_ir_edge_t){control, -1}, index, from->device->is_host,
                             node_at(cut, index)->device->is_host, &recv));
    node_at(cut, index)->controls[i] = recv;
  }
  return RN_OK;
}

// What is fetched must end on the CPU: a node of nothing stands for the client.
static rn_status_t cut_fetches(cut_t* cut) {
  for (int32_t i = 0; i < cut->ir->fetch_count; ++i) {
    rn_ir_edge_t fetch = cut->ir->fetches[i];
    if (fetch.node < 0 || node_at(cut, fetch.node)->device == cut->options->devices[0]) continue;
    rn_ir_node_t client = {.name = RN_STR("the client"),
                           .feed = -1,
                           .device = cut->options->devices[0],
                           .is_removed = true,
                           .op = rn_op_constant()};
    int32_t index, recv;
    RN_RETURN_IF_ERROR(rn_ir_add(cut->ir, &client, &index));
    RN_RETURN_IF_ERROR(bring(cut, fetch, index,
                             is_host(node_at(cut, fetch.node), false, fetch.output), true, &recv));
    cut->ir->fetches[i] = (rn_ir_edge_t){recv, 0};
  }
  return RN_OK;
}

rn_status_t rn_partition(rn_ir_t* ir, const rn_place_options_t* options) {
  if (options->device_count == 1) return RN_OK;
  cut_t cut = {.ir = ir, .options = options};
  rn_status_t status = find_loops(&cut);
  int32_t count = (int32_t)ir->nodes.count;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    if (!ir->nodes.items[i].is_removed) status = cut_node(&cut, i);
  if (rn_ok(status)) status = cut_fetches(&cut);
  if (rn_ok(status)) status = target_sends(&cut);
  rn_vec_free(&cut.sends, ir->allocator);
  rn_vec_free(&cut.pairs, ir->allocator);
  return status;
}

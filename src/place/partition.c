// Partition: a Send and a Recv on every edge that crosses devices, and a move on every edge between
// host and device memory of one device.
//
// One pair or move serves all readers of a value on a device. A control edge that crosses carries
// an unread constant.
//
// doc/invariants.md: invariant 38.
#include "framework/internal_ops.h"
#include "place/cut.h"

// Whether a feed is in the memory of a device. |node| may be any.
static bool is_far_feed(const rn_place_options_t* options, const rn_ir_node_t* node) {
  return node->feed >= 0 && options->feed_memory && options->feed_memory[node->feed];
}

// Whether input (or output) |flat| of |node| is in host memory on its device.
static bool is_host(const rn_place_options_t* options, const rn_ir_node_t* node, bool is_input,
                    int32_t flat) {
  if (node->device->is_host) return true;
  if (node->feed >= 0) return !is_far_feed(options, node);
  // The executor reads predicates and indices of control flow itself, so they are in host memory.
  switch (node->op->role) {
    case RN_ROLE_LOOP_COND:
      return true;
    case RN_ROLE_SWITCH:
      if (is_input && flat == 1) return true;
      break;
    case RN_ROLE_MERGE:
      if (!is_input && flat == 1) return true;
      break;
    default:
      break;
  }
  if (node->constant && !node->kernel) return true;
  if (!node->kernel) {  // Other values of control flow are where their kernels want them.
    rn_dtype_t dtype = rn_dtype_base(node->types[0]);
    return dtype == RN_INT32 || !rn_dtype_is_plain(dtype);
  }
  const rn_arg_def_t* args = is_input ? node->op->inputs : node->op->outputs;
  int count = is_input ? node->op->input_count : node->op->output_count;
  int32_t at = 0;
  for (int a = 0; a < count; at += rn_arg_length(&args[a], node->attrs), ++a)
    if (flat < at + rn_arg_length(&args[a], node->attrs))
      return rn_kernel_arg_is_host(node->kernel, &args[a],
                                   rn_arg_type(&args[a], node->attrs, flat - at));
  return false;
}

bool rn_place_output_is_host(const rn_place_options_t* options, const rn_ir_node_t* node,
                             int32_t output) {
  return is_host(options, node, false, output);
}

static rn_status_t pair_attrs(rn_cut_t* cut, const rn_op_def_t* op, rn_dtype_t dtype, rn_str_t name,
                              const rn_device_t* sender, const rn_device_t* receiver,
                              const rn_attr_value_t** out) {
  const rn_attr_t given[] = {
      {RN_STR("T"), {.type = dtype}},            // of a Send
      {RN_STR("tensor_type"), {.type = dtype}},  // of a Recv
      {RN_STR("tensor_name"), {.s = name}},
      {RN_STR("send_device"), {.s = sender->name}},
      {RN_STR("recv_device"), {.s = receiver->name}},
      {RN_STR("send_device_incarnation"), {.i = (int64_t)sender->incarnation}},
      RN_ATTRS_END,
  };
  return rn_ir_make_attrs(cut->ir, op, NULL, given, out);
}

rn_status_t rn_cut_name(rn_cut_t* cut, rn_str_t source, rn_str_t* out) {
  const char* mark = cut->options->mark ? cut->options->mark : "/_";
  return rn_arena_printf(&cut->ir->arena, out, "%.*s%s%d", RN_STR_ARGS(source), mark,
                         cut->next_name++);
}

rn_status_t rn_cut_add(rn_cut_t* cut, rn_ir_node_t* node, rn_device_t* device, int32_t loop,
                       int32_t* out) {
  RN_RETURN_IF_ERROR(rn_vec_push(&cut->nodes, cut->ir->allocator, (rn_cut_node_t){.loop = loop}));
  node->device = device;
  node->requested_device = device->name;
  RN_RETURN_IF_ERROR(rn_ir_add(cut->ir, node, out));
  RN_ASSERT(cut->nodes.count == cut->ir->nodes.count);
  return RN_OK;
}

static rn_status_t add_with_kernel(rn_cut_t* cut, rn_ir_node_t* node, rn_device_t* device,
                                   int32_t loop, int32_t* out) {
  node->feed = -1;
  node->kernel = rn_kernel_find(node->op, node->attrs, NULL, device->type);
  if (!node->kernel)
    return rn_unimplemented(
        "Device %.*s cannot exchange values with others: it has no kernel for %s",
        RN_STR_ARGS(device->name), node->op->name);
  return rn_cut_add(cut, node, device, loop, out);
}

static rn_status_t one_control(rn_cut_t* cut, int32_t control, rn_ir_node_t* node) {
  if (control < 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &node->controls));
  node->controls[0] = control;
  node->control_count = 1;
  return RN_OK;
}

static rn_status_t add_send(rn_cut_t* cut, rn_ir_edge_t source, rn_dtype_t dtype, bool from_host,
                            rn_str_t prefix, rn_str_t name, rn_device_t* sender,
                            rn_device_t* receiver) {
  rn_ir_node_t send = {.op = rn_op_send(from_host && !sender->is_host)};
  RN_RETURN_IF_ERROR(rn_cut_name(cut, prefix, &send.name));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(cut->ir, 1, 0, dtype, RN_SHAPE_UNKNOWN, &send));
  send.inputs[0] = source;
  RN_RETURN_IF_ERROR(pair_attrs(cut, send.op, dtype, name, sender, receiver, &send.attrs));
  int32_t index, loop = cut->nodes.items[source.node].loop;
  RN_RETURN_IF_ERROR(add_with_kernel(cut, &send, sender, loop, &index));
  return rn_vec_push(&cut->sends, cut->ir->allocator, index);
}

// A Send has no reader on its own device, so it is kept as a target.
static rn_status_t target_sends(rn_cut_t* cut) {
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

static rn_status_t add_recv(rn_cut_t* cut, rn_dtype_t dtype, rn_shape_t shape, bool to_host,
                            rn_str_t prefix, rn_str_t name, int32_t loop, rn_device_t* sender,
                            rn_device_t* receiver, int32_t* out) {
  int32_t pivot = -1;
  if (loop) RN_RETURN_IF_ERROR(rn_cut_pivot(cut, loop, receiver, &pivot));
  rn_ir_node_t recv = {.op = rn_op_recv(to_host && !receiver->is_host)};
  RN_RETURN_IF_ERROR(rn_cut_name(cut, prefix, &recv.name));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(cut->ir, 0, 1, dtype, shape, &recv));
  RN_RETURN_IF_ERROR(one_control(cut, pivot, &recv));
  RN_RETURN_IF_ERROR(pair_attrs(cut, recv.op, dtype, name, sender, receiver, &recv.attrs));
  return add_with_kernel(cut, &recv, receiver, loop, out);
}

rn_status_t rn_cut_token(rn_cut_t* cut, rn_device_t* device, int32_t control, int32_t* out) {
  rn_ir_t* ir = cut->ir;
  rn_tensor_t value = {0};
  rn_ir_node_t token = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(ir->allocator, RN_FLOAT, RN_SHAPE_SCALAR, &value));
  *RN_DATA(&value, float) = 0;
  RN_RETURN_IF_ERROR(rn_ir_own_constant(ir, &value, &token));
  rn_str_t source = control < 0 ? RN_STR("_token") : rn_cut_at(cut, control)->name;
  RN_RETURN_IF_ERROR(rn_cut_name(cut, source, &token.name));
  RN_RETURN_IF_ERROR(one_control(cut, control, &token));
  int32_t loop = control < 0 ? 0 : cut->nodes.items[control].loop;
  return add_with_kernel(cut, &token, device, loop, out);
}

static rn_status_t make_pair(rn_cut_t* cut, rn_ir_edge_t source, int32_t reader, bool from_host,
                             bool to_host, int32_t* out_recv) {
  rn_device_t* sender = rn_cut_at(cut, source.node)->device;
  rn_device_t* receiver = rn_cut_at(cut, reader)->device;
  bool is_control = source.output < 0;
  int32_t loop = cut->nodes.items[source.node].loop;
  // For a variable, its value is sent.
  rn_dtype_t dtype =
      is_control ? RN_FLOAT : rn_dtype_base(rn_cut_at(cut, source.node)->types[source.output]);
  rn_shape_t shape =
      is_control ? RN_SHAPE_SCALAR : rn_cut_at(cut, source.node)->shapes[source.output];
  // Within one process, a handle serves on every device.
  if (dtype == RN_RESOURCE && !cut->options->moves_inside)
    return rn_invalid_argument(
        "A resource cannot leave its device: '%.*s' on %.*s is used by '%.*s' on %.*s",
        RN_STR_ARGS(rn_cut_at(cut, source.node)->name), RN_STR_ARGS(sender->name),
        RN_STR_ARGS(rn_cut_at(cut, reader)->name), RN_STR_ARGS(receiver->name));
  rn_str_t name, prefix = rn_ir_source_name(cut->ir, rn_cut_at(cut, source.node));
  RN_RETURN_IF_ERROR(rn_arena_printf(&cut->ir->arena, &name, "edge_%d_%.*s", cut->next_edge++,
                                     RN_STR_ARGS(prefix)));
  rn_ir_edge_t sent = source;
  if (is_control) {
    sent.output = 0;
    RN_RETURN_IF_ERROR(rn_cut_token(cut, sender, source.node, &sent.node));
  }
  RN_RETURN_IF_ERROR(add_send(cut, sent, dtype, from_host, prefix, name, sender, receiver));
  return add_recv(cut, dtype, shape, to_host, prefix, name, loop, sender, receiver, out_recv);
}

// A node that moves |source| between host and device memory of its own device.
static rn_status_t add_move(rn_cut_t* cut, rn_ir_edge_t source, bool to_host, bool waits,
                            int32_t* out) {
  rn_ir_node_t* from = rn_cut_at(cut, source.node);
  rn_device_t* device = from->device;
  rn_ir_node_t move = {.op = rn_op_move(to_host), .input_count = 1, .output_count = 1};
  RN_RETURN_IF_ERROR(rn_cut_name(cut, rn_ir_source_name(cut->ir, from), &move.name));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &move.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &move.types));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&cut->ir->arena, &move.shapes));
  move.inputs[0] = source;
  move.types[0] = rn_dtype_base(from->types[source.output]);
  move.shapes[0] = from->shapes[source.output];
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cut->ir->arena, (size_t)move.op->attr_count, &attrs));
  for (int a = 0; a < move.op->attr_count; ++a) {
    attrs[a].kind = move.op->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE) attrs[a].type = move.types[0];
    if (attrs[a].kind == RN_ATTR_BOOL) attrs[a].b = waits;
  }
  move.attrs = attrs;
  return add_with_kernel(cut, &move, device, cut->nodes.items[source.node].loop, out);
}

// A second node for a constant, in host memory: its device needs no kernel for it.
static rn_status_t add_host_constant(rn_cut_t* cut, int32_t constant, int32_t* out) {
  rn_ir_node_t copy = *rn_cut_at(cut, constant);
  copy.kernel = NULL;
  RN_RETURN_IF_ERROR(rn_cut_name(cut, copy.name, &copy.name));
  return rn_cut_add(cut, &copy, copy.device, cut->nodes.items[constant].loop, out);
}

// A second node for a feed: the part of |device| gets the client's tensor, in host memory.
static rn_status_t add_feed(rn_cut_t* cut, int32_t feed, rn_device_t* device, int32_t* out) {
  rn_ir_node_t copy = *rn_cut_at(cut, feed);
  return rn_cut_add(cut, &copy, device, 0, out);
}

static rn_status_t bring(rn_cut_t* cut, rn_ir_edge_t source, int32_t reader, bool from_host,
                         bool to_host, int32_t* out);

// Brings |source| to |reader|'s device and memory by the shortest way.
static rn_status_t make_way(rn_cut_t* cut, rn_ir_edge_t source, int32_t reader, bool from_host,
                            bool to_host, int32_t* out) {
  const rn_ir_node_t* from = rn_cut_at(cut, source.node);
  rn_device_t* device = rn_cut_at(cut, reader)->device;
  bool moves = cut->options->moves_inside && source.output >= 0;
  bool is_constant = from->constant && source.output == 0;
  if (moves && from->device == device && to_host && is_constant)
    return add_host_constant(cut, source.node, out);
  if (moves && from->device == device) return add_move(cut, source, to_host, true, out);
  if (!moves || from->feed < 0 || is_far_feed(cut->options, from))
    return make_pair(cut, source, reader, from_host, to_host, out);
  if (to_host) return add_feed(cut, source.node, device, out);
  int32_t fed;
  RN_RETURN_IF_ERROR(bring(cut, source, reader, true, true, &fed));
  return add_move(cut, (rn_ir_edge_t){fed, 0}, false, false, out);
}

// The node that brings |source| to |reader|'s device and memory, made once.
static rn_status_t bring(rn_cut_t* cut, rn_ir_edge_t source, int32_t reader, bool from_host,
                         bool to_host, int32_t* out) {
  rn_device_t* device = rn_cut_at(cut, reader)->device;
  int32_t loop = cut->nodes.items[source.node].loop, ignored;
  if (loop && rn_cut_at(cut, source.node)->device != device) {
    // First, because they may bring |source| themselves.
    RN_RETURN_IF_ERROR(rn_cut_drive(cut, loop, rn_cut_at(cut, source.node)->device));
    RN_RETURN_IF_ERROR(rn_cut_pivot(cut, loop, device, &ignored));
  }
  for (int32_t p = cut->nodes.items[source.node].first_pair; p; p = cut->pairs.items[p - 1].next) {
    const rn_cut_pair_t* pair = &cut->pairs.items[p - 1];
    *out = pair->recv;
    if (pair->output == source.output && pair->device == device && pair->to_host == to_host)
      return RN_OK;
  }
  RN_RETURN_IF_ERROR(make_way(cut, source, reader, from_host, to_host, out));
  RN_ASSERT(rn_cut_at(cut, *out)->device == device);
  int32_t next = cut->nodes.items[source.node].first_pair;
  rn_cut_pair_t pair = {source.output, device, to_host, *out, next};
  RN_RETURN_IF_ERROR(rn_vec_push(&cut->pairs, cut->ir->allocator, pair));
  cut->nodes.items[source.node].first_pair = (int32_t)cut->pairs.count;
  return RN_OK;
}

static int task_of(const rn_cut_t* cut, const rn_device_t* device) {
  int d = 0;
  while (cut->options->devices[d] != device) ++d;
  return cut->options->tasks[d];
}

// Whether the task of |source| cuts its edge to a node of |device|. It could not cut one in a loop
// whose condition is computed elsewhere.
static bool is_left_to_task(const rn_cut_t* cut, int32_t source, const rn_device_t* device) {
  const rn_device_t* from = rn_cut_at(cut, source)->device;
  if (!cut->options->tasks) return false;
  return from == device ||
         (!cut->nodes.items[source].loop && task_of(cut, from) == task_of(cut, device));
}

rn_status_t rn_cut_input(rn_cut_t* cut, int32_t reader, int32_t i) {
  rn_ir_edge_t source = rn_cut_at(cut, reader)->inputs[i];
  const rn_ir_node_t *from = rn_cut_at(cut, source.node), *to = rn_cut_at(cut, reader);
  bool from_host = is_host(cut->options, from, false, source.output);
  bool to_host = is_host(cut->options, to, true, i);
  if (from->device == to->device && from_host == to_host) return RN_OK;
  if (is_left_to_task(cut, source.node, to->device)) return RN_OK;
  int32_t recv;
  RN_RETURN_IF_ERROR(bring(cut, source, reader, from_host, to_host, &recv));
  rn_cut_at(cut, reader)->inputs[i] = (rn_ir_edge_t){recv, 0};
  return RN_OK;
}

static rn_status_t cut_node(rn_cut_t* cut, int32_t index) {
  for (int32_t i = 0; i < rn_cut_at(cut, index)->input_count; ++i)
    RN_RETURN_IF_ERROR(rn_cut_input(cut, index, i));
  for (int32_t i = 0; i < rn_cut_at(cut, index)->control_count; ++i) {
    int32_t control = rn_cut_at(cut, index)->controls[i];
    const rn_ir_node_t* from = rn_cut_at(cut, control);
    if (from->device == rn_cut_at(cut, index)->device ||
        is_left_to_task(cut, control, rn_cut_at(cut, index)->device))
      continue;
    int32_t recv;
    RN_RETURN_IF_ERROR(bring(cut, (rn_ir_edge_t){control, -1}, index, from->device->is_host,
                             rn_cut_at(cut, index)->device->is_host, &recv));
    rn_cut_at(cut, index)->controls[i] = recv;
  }
  return RN_OK;
}

// A node that stands for the client, who reads a fetch on |device|.
static rn_status_t add_client(rn_cut_t* cut, rn_device_t* device, int32_t* out) {
  rn_ir_node_t client = {
      .name = RN_STR("the client"), .feed = -1, .is_removed = true, .op = rn_op_constant()};
  return rn_cut_add(cut, &client, device, 0, out);
}

// Brings fetch |i| into the memory of |device|, or into host memory there if |to_host|.
static rn_status_t bring_fetch(rn_cut_t* cut, int32_t i, rn_device_t* device, bool to_host) {
  rn_ir_edge_t fetch = cut->ir->fetches[i];
  bool from_host = is_host(cut->options, rn_cut_at(cut, fetch.node), false, fetch.output);
  if (rn_cut_at(cut, fetch.node)->device == device && from_host == to_host) return RN_OK;
  int32_t index, recv;
  RN_RETURN_IF_ERROR(add_client(cut, device, &index));
  RN_RETURN_IF_ERROR(bring(cut, fetch, index, from_host, to_host, &recv));
  cut->ir->fetches[i] = (rn_ir_edge_t){recv, 0};
  return RN_OK;
}

// Fetches must end where the client reads them: in host memory, unless it wants them elsewhere.
static rn_status_t cut_fetches(rn_cut_t* cut) {
  const rn_place_options_t* options = cut->options;
  for (int32_t i = 0; i < cut->ir->fetch_count; ++i) {
    rn_ir_edge_t fetch = cut->ir->fetches[i];
    if (fetch.node < 0) continue;
    if (options->fetch_memory && options->fetch_memory[i]) {
      RN_RETURN_IF_ERROR(bring_fetch(cut, i, options->fetch_memory[i], false));
      continue;
    }
    if (rn_cut_at(cut, fetch.node)->device == options->devices[0] ||
        is_left_to_task(cut, fetch.node, options->devices[0]))
      continue;
    if (!options->moves_inside) {
      RN_RETURN_IF_ERROR(bring_fetch(cut, i, options->devices[0], true));
    } else if (!is_host(options, rn_cut_at(cut, fetch.node), false, fetch.output)) {
      // The step waits for its devices before the client sees the value.
      RN_RETURN_IF_ERROR(add_move(cut, fetch, true, false, &cut->ir->fetches[i].node));
      cut->ir->fetches[i].output = 0;
    }
  }
  return RN_OK;
}

static rn_status_t cut_all(rn_cut_t* cut) {
  RN_RETURN_IF_ERROR(rn_cut_find_loops(cut));
  if (cut->loops.count > 1) RN_RETURN_IF_ERROR(rn_cut_align_loops(cut));
  int32_t count = (int32_t)cut->ir->nodes.count;
  for (int32_t i = 0; i < count; ++i)
    if (!rn_cut_at(cut, i)->is_removed) RN_RETURN_IF_ERROR(cut_node(cut, i));
  RN_RETURN_IF_ERROR(cut_fetches(cut));
  return target_sends(cut);
}

rn_status_t rn_partition(rn_ir_t* ir, const rn_place_options_t* options) {
  if (options->device_count == 1) return RN_OK;
  rn_cut_t cut = {.ir = ir, .options = options};
  rn_status_t status = cut_all(&cut);
  rn_vec_free(&cut.nodes, ir->allocator);
  rn_vec_free(&cut.loops, ir->allocator);
  rn_vec_free(&cut.drivers, ir->allocator);
  rn_vec_free(&cut.pairs, ir->allocator);
  rn_vec_free(&cut.sends, ir->allocator);
  return status;
}

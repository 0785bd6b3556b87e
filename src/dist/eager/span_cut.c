// Cuts functions over several tasks. See span.h.
#include "dist/eager/span.h"
#include "dist/rpc/codec.h"
#include "graph/import.h"
#include "place/place.h"
#include "proto/eager_service.pb.h"
#include "proto/function.pb.h"
#include "proto/graph.pb.h"
#include "step/ir_export.h"
#include "wire/writer.h"

// Prefixes of the names of arguments and results in parts, before their numbers.
#define ARG "span_arg_"
#define RESULT "span_result_"

typedef struct span_cut_t {
  rn_eager_context_t* context;
  const rn_span_call_t* call;
  rn_span_t* span;
  rn_ir_t* ir;
  rn_device_t** devices;  // this task's first
  int device_count;
  rn_device_t** homes;  // by piece
  int32_t* args;        // by piece: its node
} span_cut_t;

static rn_status_t list_devices(span_cut_t* cut, rn_arena_t* arena) {
  rn_eager_context_t* context = cut->context;
  rn_session_t* session = rn_eager_session(context->eager);
  int own = rn_session_device_count(session);
  rn_mutex_lock(&context->mutex);
  rn_status_t status = RN_ARENA_ARRAY(arena, (size_t)own + context->others.count, &cut->devices);
  for (int i = 0; rn_ok(status) && i < own; ++i)
    cut->devices[cut->device_count++] = (rn_device_t*)(uintptr_t)rn_session_device(session, i);
  for (size_t i = 0; rn_ok(status) && i < context->others.count; ++i)
    cut->devices[cut->device_count++] = context->others.items[i];
  rn_mutex_unlock(&context->mutex);
  return status;
}

static rn_device_t* find_device(const span_cut_t* cut, rn_str_t name) {
  for (int d = 0; d < cut->device_count; ++d)
    if (rn_str_eq(cut->devices[d]->name, name)) return cut->devices[d];
  return NULL;
}

static bool is_own(const span_cut_t* cut, const rn_device_t* device) {
  return rn_str_is(rn_eager_task_of(device->name), cut->context->task);
}

static rn_status_t find_homes(span_cut_t* cut, rn_arena_t* arena) {
  const rn_span_call_t* call = cut->call;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, call->piece_count, &cut->homes));
  for (size_t i = 0; i < call->piece_count; ++i) {
    const rn_eager_piece_t* piece = &call->pieces[i];
    rn_str_t name = rn_span_piece_device(cut->context, piece);
    cut->homes[i] = find_device(cut, name);
    if (!cut->homes[i]) return rn_invalid_argument("%.*s unknown device.", RN_STR_ARGS(name));
  }
  return RN_OK;
}

static bool must_run(const rn_node_t* node) {
  return node->op->flags & RN_OP_STATEFUL && node->op->role != RN_ROLE_ARG &&
         node->op->role != RN_ROLE_PLACEHOLDER;
}

static rn_status_t make_ir(span_cut_t* cut, rn_arena_t* arena) {
  const rn_function_body_t* body = NULL;
  // Attributes that configure the call do not belong to the function.
  const rn_op_def_t* def = rn_eager_find_def(cut->context->eager, cut->call->name);
  rn_func_attr_t function = {.name = cut->call->name};
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, cut->call->attr_count, &attrs));
  for (size_t i = 0; def && i < cut->call->attr_count; ++i)
    if (rn_op_attr_index(def, cut->call->attrs[i].name) >= 0)
      attrs[function.attr_count++] = cut->call->attrs[i];
  function.attrs = attrs;
  RN_RETURN_IF_ERROR(rn_function_body(rn_eager_library(cut->context->eager), &function, &body));
  if ((size_t)body->arg_count != cut->call->input_count)
    return rn_invalid_argument("%.*s takes %d inputs, got %zu", RN_STR_ARGS(cut->call->name),
                               body->arg_count, cut->call->input_count);
  rn_edge_t* feeds = NULL;
  rn_node_t** targets = NULL;
  size_t nodes = body->graph->nodes.count, count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)body->arg_count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes + (size_t)body->control_count, &targets));
  for (int32_t i = 0; i < body->arg_count; ++i) feeds[i] = (rn_edge_t){body->args[i], 0};
  for (int32_t i = 0; i < body->control_count; ++i) targets[count++] = body->controls[i];
  for (size_t i = 0; i < nodes; ++i)
    if (must_run(body->graph->nodes.items[i])) targets[count++] = body->graph->nodes.items[i];
  rn_signature_t signature = {.feeds = feeds,
                              .feed_count = body->arg_count,
                              .fetches = body->results,
                              .fetch_count = body->result_count,
                              .targets = targets,
                              .target_count = (int32_t)count};
  RN_RETURN_IF_ERROR(rn_ir_create(body->graph, &signature, &cut->ir));
  cut->span->result_count = body->result_count;
  return rn_pass_inline_calls(cut->ir, &(rn_calls_options_t){.lowering = RN_LOWER_WHERE_ASKED});
}

// --- What belongs where

// The tasks that a call names: by its nodes, its resources and its packed arguments.
typedef struct span_tasks_t {
  bool has_own;              // this one
  const rn_device_t* other;  // of the first other one; NULL: none
  bool has_more;             // yet another one
} span_tasks_t;

static void note_task(const span_cut_t* cut, const rn_device_t* device, span_tasks_t* out) {
  if (is_own(cut, device))
    out->has_own = true;
  else if (!out->other)
    out->other = device;
  else if (!rn_str_eq(rn_eager_task_of(out->other->name), rn_eager_task_of(device->name)))
    out->has_more = true;
}

// A node that names no job may run anywhere.
static void note_node(const span_cut_t* cut, const rn_ir_node_t* node, span_tasks_t* out) {
  rn_device_spec_t wanted, own;
  if (node->is_removed || !node->requested_device.size) return;
  if (!rn_device_spec_parse(node->requested_device, &wanted) || !wanted.job.size) return;
  for (int d = 0; d < cut->device_count; ++d) {
    if (!rn_device_spec_parse(cut->devices[d]->name, &own)) continue;
    if (!rn_device_spec_matches(&wanted, &own)) continue;
    note_task(cut, cut->devices[d], out);
    return;
  }
  out->has_more = true;  // placement says that there is no such device
}

static void find_kind(span_cut_t* cut) {
  const rn_span_call_t* call = cut->call;
  rn_span_t* span = cut->span;
  span_tasks_t tasks = {0};
  bool has_remote = false;
  for (size_t n = 0; n < cut->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &cut->ir->nodes.items[n];
    note_node(cut, node, &tasks);
    if (node->is_removed || node->feed < 0) continue;
    size_t from = call->first[node->feed], to = call->first[node->feed + 1];
    for (size_t p = from; p < to; ++p) {
      has_remote |= !is_own(cut, cut->homes[p]);
      if (node->types[0] == RN_RESOURCE || to - from > 1) note_task(cut, cut->homes[p], &tasks);
    }
  }
  bool is_free = call->may_delegate;
  span->kind = !tasks.other && !tasks.has_more && (!has_remote || is_free)   ? RN_SPAN_HERE
               : is_free && tasks.other && !tasks.has_own && !tasks.has_more ? RN_SPAN_ELSEWHERE
                                                                             : RN_SPAN_CUT;
  if (span->kind == RN_SPAN_ELSEWHERE) span->device = tasks.other->name;
}

// --- Arguments and results as nodes

// Node |node| becomes the placeholder of piece |piece|.
static rn_status_t make_arg(const span_cut_t* cut, rn_ir_node_t* node, size_t piece) {
  rn_arena_t* arena = &cut->ir->arena;
  const rn_op_def_t* op = rn_op_find(RN_STR("Placeholder"));
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &node->name, ARG "%zu", piece));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)op->attr_count, &attrs));
  for (int a = 0; a < op->attr_count; ++a) {
    attrs[a] = op->attrs[a].default_value;
    attrs[a].kind = op->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE) attrs[a].type = rn_dtype_base(node->types[0]);
    if (attrs[a].kind == RN_ATTR_SHAPE) attrs[a].shape = RN_SHAPE_UNKNOWN;
  }
  node->requested_device = cut->homes[piece]->name;
  node->op = op;
  node->attrs = attrs;
  node->extra_count = 0;
  node->feed = -1;
  return RN_OK;
}

// One node per piece of every argument that is used.
static rn_status_t make_args(span_cut_t* cut, rn_arena_t* arena) {
  const rn_span_call_t* call = cut->call;
  size_t count = cut->ir->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, call->piece_count, &cut->args));
  for (size_t p = 0; p < call->piece_count; ++p) cut->args[p] = -1;
  for (size_t n = 0; n < count; ++n) {
    rn_ir_node_t node = cut->ir->nodes.items[n];
    if (node.is_removed || node.feed < 0) continue;
    for (size_t p = call->first[node.feed]; p < call->first[node.feed + 1]; ++p) {
      rn_ir_node_t arg = node;
      cut->args[p] = (int32_t)n;
      RN_RETURN_IF_ERROR(make_arg(cut, &arg, p));
      if (p == call->first[node.feed])
        cut->ir->nodes.items[n] = arg;
      else
        RN_RETURN_IF_ERROR(rn_ir_add(cut->ir, &arg, &cut->args[p]));
    }
  }
  return RN_OK;
}

// Of several pieces, the one on the device that |wanted| names, or else on its task, or else the
// first.
static size_t choose_piece(const span_cut_t* cut, size_t from, size_t to, rn_str_t wanted) {
  rn_device_spec_t spec, own;
  size_t found = from;
  bool has_task = false;
  if (!rn_device_spec_parse(wanted, &spec)) return from;
  for (size_t p = from; p < to; ++p) {
    if (!rn_device_spec_parse(cut->homes[p]->name, &own)) continue;
    if (rn_device_spec_matches(&spec, &own)) return p;
    bool is_task = rn_str_eq(spec.job, own.job) && spec.task == own.task;
    if (is_task && !has_task) found = p;
    has_task |= is_task;
  }
  return found;
}

// The first piece of the packed argument that node |n| stands for; SIZE_MAX: it stands for none.
static size_t packed_at(const span_cut_t* cut, int32_t n, size_t* out_end) {
  const rn_span_call_t* call = cut->call;
  for (size_t i = 0; i < call->input_count; ++i) {
    *out_end = call->first[i + 1];
    if (*out_end - call->first[i] > 1 && cut->args[call->first[i]] == n) return call->first[i];
  }
  return SIZE_MAX;
}

// A node that uses a resource runs on its device; others run on the requested device, or the
// call's. Users of a packed argument take the value on their device.
static rn_status_t ask_for_devices(span_cut_t* cut) {
  rn_ir_t* ir = cut->ir;
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* node = &ir->nodes.items[order[i]];
    for (int32_t k = 0; k < node->input_count; ++k) {
      size_t end = 0, packed = packed_at(cut, node->inputs[k].node, &end);
      if (packed != SIZE_MAX) {
        rn_str_t wanted = node->requested_device.size ? node->requested_device : cut->call->device;
        node->inputs[k].node = cut->args[choose_piece(cut, packed, end, wanted)];
      }
      const rn_ir_node_t* source = &ir->nodes.items[node->inputs[k].node];
      if (source->types[node->inputs[k].output] == RN_RESOURCE)
        node->requested_device = source->requested_device;
    }
    if (!node->requested_device.size) node->requested_device = cut->call->device;
  }
  return RN_OK;
}

// The devices of the results, as their nodes name them.
static rn_status_t list_results(span_cut_t* cut) {
  rn_span_t* span = cut->span;
  size_t count = (size_t)span->result_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&span->arena, count, &span->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&span->arena, count, &span->result_devices));
  for (int32_t f = 0; f < span->result_count; ++f) {
    rn_ir_edge_t edge = cut->ir->fetches[f];
    const rn_ir_node_t* source = &cut->ir->nodes.items[edge.node];
    span->types[f] = rn_dtype_base(source->types[edge.output]);
    span->result_devices[f] = source->requested_device;
  }
  return RN_OK;
}

// Each result as an Identity, instead of a fetch.
static rn_status_t add_result(span_cut_t* cut, int32_t f) {
  rn_ir_t* ir = cut->ir;
  const rn_op_def_t* op = rn_op_find(RN_STR("Identity"));
  rn_ir_node_t node = {.op = op,
                       .requested_device = cut->span->result_devices[f],
                       .input_count = 1,
                       .output_count = 1,
                       .feed = -1};
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(rn_arena_printf(&ir->arena, &node.name, RESULT "%d", f));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)op->attr_count, &attrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, 1, &node.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, 1, &node.types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, 1, &node.shapes));
  for (int a = 0; a < op->attr_count; ++a)
    attrs[a] = (rn_attr_value_t){.kind = op->attrs[a].kind, .type = cut->span->types[f]};
  node.attrs = attrs;
  node.inputs[0] = ir->fetches[f];
  node.types[0] = cut->span->types[f];
  node.shapes[0] = RN_SHAPE_UNKNOWN;
  return rn_ir_add(ir, &node, &ir->targets[ir->target_count++]);
}

static rn_status_t add_results(span_cut_t* cut) {
  rn_ir_t* ir = cut->ir;
  int32_t* targets = NULL;
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&ir->arena, (size_t)(ir->target_count + ir->fetch_count), &targets));
  for (int32_t t = 0; t < ir->target_count; ++t) targets[t] = ir->targets[t];
  ir->targets = targets;
  for (int32_t f = 0; f < ir->fetch_count; ++f) RN_RETURN_IF_ERROR(add_result(cut, f));
  ir->fetch_count = 0;
  return RN_OK;
}

// An ordinary value that this process holds goes with the calls of the parts that read it, so that
// their tasks need not fetch it from here.
static rn_status_t spread_arg(span_cut_t* cut, size_t piece, rn_arena_t* arena) {
  rn_ir_t* ir = cut->ir;
  rn_ir_node_t arg = ir->nodes.items[cut->args[piece]];
  size_t count = ir->nodes.count;
  int32_t* copies = NULL;  // by device: the first of a task stands for it
  if (arg.is_removed || arg.types[0] == RN_RESOURCE || arg.types[0] == RN_VARIANT) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)cut->device_count, &copies));
  for (size_t n = 0; n < count; ++n) {
    for (int32_t k = 0; k < ir->nodes.items[n].input_count; ++k) {
      const rn_ir_node_t* node = &ir->nodes.items[n];
      if (node->is_removed || node->inputs[k].node != cut->args[piece]) continue;
      rn_str_t task = rn_eager_task_of(node->device->name);
      if (is_own(cut, node->device)) continue;
      int d = 0;
      while (!rn_str_eq(rn_eager_task_of(cut->devices[d]->name), task)) ++d;
      if (!copies[d]) {
        arg.device = cut->devices[d];
        RN_RETURN_IF_ERROR(rn_ir_add(ir, &arg, &copies[d]));
      }
      ir->nodes.items[n].inputs[k].node = copies[d];
    }
  }
  return RN_OK;
}

static rn_status_t spread_args(span_cut_t* cut, rn_arena_t* arena) {
  for (size_t p = 0; p < cut->call->piece_count; ++p)
    if (cut->args[p] >= 0 && cut->call->pieces[p].handle && is_own(cut, cut->homes[p]))
      RN_RETURN_IF_ERROR(spread_arg(cut, p, arena));
  return RN_OK;
}

// --- Parts

// The nodes of |task| as a GraphDef; the others are hidden meanwhile. Empty if there are none.
static rn_status_t export_part(const span_cut_t* cut, rn_str_t task, rn_arena_t* arena,
                               rn_strbuf_t* out) {
  rn_ir_t* ir = cut->ir;
  bool* hidden = NULL;
  size_t left = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, ir->nodes.count, &hidden));
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    hidden[n] = !node->is_removed && !rn_str_eq(rn_eager_task_of(node->device->name), task);
    if (hidden[n]) node->is_removed = true;
    if (node->is_removed) continue;
    node->requested_device = node->device->name;
    left++;
  }
  rn_status_t status = RN_OK;
  if (left) status = rn_ir_export(ir, NULL, NULL, out);
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (hidden[n]) ir->nodes.items[n].is_removed = false;
  return status;
}

// The nodes named |prefix| and a number, by that number, up to |most|.
static rn_status_t find_ends(rn_graph_t* graph, const char* prefix, int32_t most, rn_arena_t* arena,
                             rn_edge_t** out, int32_t** out_numbers, int32_t* out_count) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)most, out));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)most, out_numbers));
  for (int32_t i = 0; i < most; ++i) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &name, "%s%d", prefix, i));
    rn_node_t* node = rn_graph_find(graph, name);
    if (!node) continue;
    (*out_numbers)[*out_count] = i;
    (*out)[(*out_count)++] = (rn_edge_t){node, 0};
  }
  return RN_OK;
}

// Writes a part as a function, and notes which arguments and results of the call it has.
static rn_status_t make_function(const span_cut_t* cut, rn_str_t graph_def, rn_span_part_t* part,
                                 rn_function_t** out) {
  rn_graph_t* graph = NULL;
  rn_edge_t *inputs = NULL, *outputs = NULL;
  rn_arena_t* arena = &cut->span->arena;
  RN_RETURN_IF_ERROR(rn_graph_create(cut->context->allocator, &graph));
  rn_import_results_t results = {.allocator = cut->context->allocator};
  rn_status_t status = rn_graph_import(graph, graph_def, &(rn_import_options_t){0}, &results);
  rn_import_results_clear(&results);
  if (rn_ok(status))
    status = find_ends(graph, ARG, (int32_t)cut->call->piece_count, arena, &inputs, &part->args,
                       &part->arg_count);
  if (rn_ok(status))
    status = find_ends(graph, RESULT, cut->span->result_count, arena, &outputs, &part->results,
                       &part->result_count);
  rn_function_spec_t spec = {.graph = graph,
                             .name = part->function,
                             .node_count = -1,
                             .inputs = inputs,
                             .input_count = part->arg_count,
                             .outputs = outputs,
                             .output_count = part->result_count};
  if (rn_ok(status)) status = rn_function_create(&spec, out);
  rn_graph_release(graph);
  return status;
}

static rn_status_t register_part(const span_cut_t* cut, rn_str_t task,
                                 const rn_function_t* function, rn_str_t graph_def) {
  rn_strbuf_t item;
  rn_strbuf_init(&item, cut->context->allocator);
  size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_register_function_field);
  rn_pb_put_str(&item, rn_pb_eager_RegisterFunctionOp_function_def_field, function->bytes);
  rn_pb_put_uint(&item, rn_pb_eager_RegisterFunctionOp_is_component_function_field, 1);
  rn_pb_put_str(&item, rn_pb_eager_RegisterFunctionOp_library_field,
                rn_field_bytes(graph_def, rn_pb_GraphDef_library_field));
  rn_pb_end(&item, entry);
  rn_status_t status = rn_strbuf_status(&item);
  if (rn_ok(status)) status = rn_span_tell(cut->context, task, rn_strbuf_view(&item));
  rn_strbuf_clear(&item);
  return status;
}

static rn_status_t add_own_part(const span_cut_t* cut, rn_str_t graph_def, rn_str_t name) {
  rn_eager_context_t* context = cut->context;
  rn_function_t* function = NULL;
  rn_span_part_t* part = &cut->span->own;
  part->function = name;
  rn_status_t status = make_function(cut, graph_def, part, &function);
  if (rn_ok(status)) status = rn_eager_add_function(context->eager, function);
  rn_function_release(function);
  if (!rn_ok(status)) part->function = RN_STR("");
  RN_RETURN_IF_ERROR(status);
  rn_func_attr_t call = {.name = name};
  return rn_function_prepare(rn_session_functions(rn_eager_session(context->eager)), &call,
                             cut->call->device, &cut->span->instance);
}

static rn_status_t add_part(const span_cut_t* cut, rn_str_t task, rn_str_t device,
                            rn_str_t graph_def, rn_str_t name) {
  rn_span_t* span = cut->span;
  rn_span_part_t* part = &span->parts[span->part_count];
  rn_function_t* function = NULL;
  part->function = name;
  RN_RETURN_IF_ERROR(rn_arena_str(&span->arena, task, &part->task));
  RN_RETURN_IF_ERROR(rn_arena_str(&span->arena, device, &part->device));
  RN_RETURN_IF_ERROR(make_function(cut, graph_def, part, &function));
  rn_status_t status = register_part(cut, task, function, graph_def);
  rn_function_release(function);
  if (rn_ok(status)) span->part_count++;
  return status;
}

// The tasks of the devices, each once, this one first.
static rn_status_t add_parts(span_cut_t* cut, rn_arena_t* arena) {
  rn_span_t* span = cut->span;
  rn_eager_context_t* context = cut->context;
  rn_strbuf_t graph_def;
  rn_status_t status = RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&span->arena, (size_t)cut->device_count, &span->parts));
  rn_mutex_lock(&context->mutex);
  long long number = (long long)++context->next_span;
  rn_mutex_unlock(&context->mutex);
  rn_strbuf_init(&graph_def, context->allocator);
  for (int d = 0; d < cut->device_count && rn_ok(status); ++d) {
    rn_str_t task = rn_eager_task_of(cut->devices[d]->name), name;
    bool is_new = true;
    for (int k = 0; k < d; ++k)
      if (rn_str_eq(rn_eager_task_of(cut->devices[k]->name), task)) is_new = false;
    if (!is_new) continue;
    graph_def.size = 0;
    status = export_part(cut, task, arena, &graph_def);
    if (!rn_ok(status) || !graph_def.size) continue;
    // Several tasks may cut the same function for one client, so the name contains the task.
    status = rn_arena_printf(&span->arena, &name, RN_SPAN_PREFIX "%.*s_%llx_%lld_%d",
                             RN_STR_ARGS(cut->call->name),
                             (unsigned long long)cut->devices[0]->incarnation, number, d);
    if (rn_ok(status))
      status = d == 0
                   ? add_own_part(cut, rn_strbuf_view(&graph_def), name)
                   : add_part(cut, task, cut->devices[d]->name, rn_strbuf_view(&graph_def), name);
  }
  rn_strbuf_clear(&graph_def);
  return status;
}

// Where the results are, now that all nodes have devices.
static rn_status_t place_results(span_cut_t* cut) {
  rn_span_t* span = cut->span;
  int32_t first = cut->ir->target_count - span->result_count;
  for (int32_t f = 0; f < span->result_count; ++f)
    RN_RETURN_IF_ERROR(rn_arena_str(&span->arena,
                                    rn_ir_node(cut->ir, cut->ir->targets[first + f])->device->name,
                                    &span->result_devices[f]));
  return RN_OK;
}

// By device: the first device of its task, which stands for the task.
static rn_status_t find_tasks(const span_cut_t* cut, rn_arena_t* arena, int** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)cut->device_count, out));
  for (int d = 0; d < cut->device_count; ++d)
    while (!rn_str_eq(rn_eager_task_of(cut->devices[(*out)[d]]->name),
                      rn_eager_task_of(cut->devices[d]->name)))
      ++(*out)[d];
  return RN_OK;
}

static rn_status_t cut_up(span_cut_t* cut, rn_arena_t* arena) {
  int* tasks = NULL;
  RN_RETURN_IF_ERROR(list_devices(cut, arena));
  RN_RETURN_IF_ERROR(find_homes(cut, arena));
  RN_RETURN_IF_ERROR(make_ir(cut, arena));
  find_kind(cut);
  if (cut->span->kind != RN_SPAN_CUT) return RN_OK;
  RN_RETURN_IF_ERROR(make_args(cut, arena));
  RN_RETURN_IF_ERROR(ask_for_devices(cut));
  RN_RETURN_IF_ERROR(list_results(cut));
  RN_RETURN_IF_ERROR(rn_pass_simplify(cut->ir));
  RN_RETURN_IF_ERROR(rn_ir_sweep(cut->ir));
  RN_RETURN_IF_ERROR(add_results(cut));
  RN_RETURN_IF_ERROR(find_tasks(cut, arena, &tasks));
  rn_place_options_t place = {.devices = cut->devices,
                              .device_count = cut->device_count,
                              .tasks = tasks,
                              .allow_soft_placement = true,
                              .env = cut->context->env};
  RN_RETURN_IF_ERROR(rn_place(cut->ir, &place));
  RN_RETURN_IF_ERROR(place_results(cut));
  RN_RETURN_IF_ERROR(spread_args(cut, arena));
  RN_RETURN_IF_ERROR(rn_partition(cut->ir, &place));
  return add_parts(cut, arena);
}

rn_status_t rn_span_cut(rn_eager_context_t* context, const rn_span_call_t* call, rn_span_t* span) {
  rn_arena_t arena;
  span_cut_t cut = {.context = context, .call = call, .span = span};
  rn_arena_init(&arena, context->allocator);
  rn_status_t status = cut_up(&cut, &arena);
  if (cut.ir) rn_ir_destroy(cut.ir);
  rn_arena_clear(&arena);
  return status;
}

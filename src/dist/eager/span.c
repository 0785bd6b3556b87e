// Functions over several tasks, called on this one: cut by the devices of their nodes and
// resources, and run as one part per task.
//
// Arguments on other tasks become arguments of the parts there; other values cross by Send and
// Recv, in the rendezvous of the call's own step. Results come here.
#include "dist/eager/internal.h"
#include "dist/rpc/codec.h"
#include "graph/import.h"
#include "place/place.h"
#include "proto/eager_service.pb.h"
#include "proto/function.pb.h"
#include "proto/graph.pb.h"
#include "step/ir_export.h"
#include "wire/writer.h"

#define ARG "remote_arg_"  // prefix of the names of arguments in parts
#define FEED "local_arg_"
#define RESULT "local_result_"
#define TELL_NS INT64_C(5000000000)

// A part on another task.
typedef struct span_part_t {
  rn_str_t task, device, function;
  int32_t arg_count;
  int32_t* args;  // the inputs of the call that it takes
} span_part_t;

typedef struct span_t {
  _Atomic int refs;
  rn_arena_t arena;  // all below
  rn_str_t key, name;
  bool is_here;  // all of it belongs to this task
  rn_str_t function;
  int32_t arg_count;
  int32_t* args;  // of the part here
  int32_t result_count;
  rn_instance_t* instance;  // Owned
  size_t part_count;
  span_part_t* parts;
} span_t;

// --- Cutting

typedef struct span_cut_t {
  rn_eager_context_t* context;
  const rn_eager_call_t* call;
  span_t* span;
  rn_str_t device;  // requested for the call
  rn_ir_t* ir;
  rn_device_t** devices;  // this task's first
  int device_count;
  int32_t arg_count;
  rn_device_t** homes;  // by argument; NULL: here
  rn_str_t* inputs;     // names, for the part here
  rn_str_t* outputs;
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

static rn_status_t find_homes(span_cut_t* cut, rn_arena_t* arena) {
  const rn_eager_call_t* call = cut->call;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, call->input_count, &cut->homes));
  for (size_t i = 0; i < call->input_count; ++i) {
    if (call->inputs[i]) continue;
    rn_str_t name = rn_field_bytes(call->remote[i], rn_pb_eager_RemoteTensorHandle_device_field);
    for (int d = 0; d < cut->device_count; ++d)
      if (rn_str_eq(cut->devices[d]->name, name)) cut->homes[i] = cut->devices[d];
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
  cut->arg_count = body->arg_count;
  cut->span->result_count = body->result_count;
  return rn_pass_inline_calls(cut->ir, &(rn_calls_options_t){.lowering = RN_LOWER_WHERE_ASKED});
}

// Whether a node requests another task, or an argument is on one.
static bool is_here(const span_cut_t* cut) {
  rn_device_spec_t own, wanted;
  rn_device_spec_parse(rn_str(cut->context->task), &own);
  for (int32_t i = 0; i < cut->arg_count; ++i)
    if (cut->homes[i]) return false;
  for (size_t n = 0; n < cut->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &cut->ir->nodes.items[n];
    if (node->is_removed || !node->requested_device.size) continue;
    if (!rn_device_spec_parse(node->requested_device, &wanted)) continue;
    if (wanted.job.size && !rn_str_eq(wanted.job, own.job)) return false;
    if (wanted.job.size && wanted.task >= 0 && wanted.task != own.task) return false;
  }
  return true;
}

// An argument on another task becomes a placeholder of the part there.
static rn_status_t move_arg(span_cut_t* cut, rn_ir_node_t* node) {
  rn_arena_t* arena = &cut->ir->arena;
  const rn_op_def_t* op = rn_op_find(RN_STR("Placeholder"));
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &node->name, ARG "%d", node->feed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)op->attr_count, &attrs));
  for (int a = 0; a < op->attr_count; ++a) {
    attrs[a] = op->attrs[a].default_value;
    attrs[a].kind = op->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE) attrs[a].type = rn_dtype_base(node->types[0]);
    if (attrs[a].kind == RN_ATTR_SHAPE) attrs[a].shape = RN_SHAPE_UNKNOWN;
  }
  node->requested_device = cut->homes[node->feed]->name;
  node->op = op;
  node->attrs = attrs;
  node->extra_count = 0;
  node->feed = -1;
  return RN_OK;
}

// A node that uses a resource runs on its device; others run on the requested device, or the
// call's.
static rn_status_t ask_for_devices(span_cut_t* cut) {
  rn_ir_t* ir = cut->ir;
  int32_t *order = NULL, count = 0;
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    rn_ir_node_t* node = &ir->nodes.items[n];
    if (!node->is_removed && node->feed >= 0 && cut->homes[node->feed])
      RN_RETURN_IF_ERROR(move_arg(cut, node));
  }
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* node = &ir->nodes.items[order[i]];
    for (int32_t k = 0; k < node->input_count; ++k) {
      const rn_ir_node_t* source = &ir->nodes.items[node->inputs[k].node];
      if (source->types[node->inputs[k].output] == RN_RESOURCE && source->feed < 0)
        node->requested_device = source->requested_device;
    }
    if (!node->requested_device.size && node->feed < 0) node->requested_device = cut->device;
  }
  return RN_OK;
}

static rn_status_t name_ends(span_cut_t* cut, rn_arena_t* arena) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)cut->arg_count, &cut->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)cut->ir->fetch_count, &cut->outputs));
  for (int32_t i = 0; i < cut->arg_count; ++i)
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &cut->inputs[i], FEED "%d", i));
  for (int32_t i = 0; i < cut->ir->fetch_count; ++i)
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &cut->outputs[i], RESULT "%d", i));
  return RN_OK;
}

// The nodes of |task| as a GraphDef; the others are hidden meanwhile. Empty if there are none.
static rn_status_t export_part(span_cut_t* cut, rn_str_t task, bool is_own, rn_arena_t* arena,
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
  if (left || is_own)
    status = is_own ? rn_ir_export(ir, cut->inputs, cut->outputs, out)
                    : rn_ir_export(ir, NULL, NULL, out);
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

// Writes a part as a function; |*out_args| are the call's inputs that it takes.
static rn_status_t make_function(span_cut_t* cut, rn_str_t graph_def, rn_str_t name, bool is_own,
                                 rn_arena_t* arena, rn_function_t** out, int32_t** out_args,
                                 int32_t* out_arg_count) {
  rn_graph_t* graph = NULL;
  rn_edge_t *inputs = NULL, *outputs = NULL;
  int32_t *numbers = NULL, output_count = 0;
  RN_RETURN_IF_ERROR(rn_graph_create(cut->context->allocator, &graph));
  rn_import_results_t results = {.allocator = cut->context->allocator};
  rn_status_t status = rn_graph_import(graph, graph_def, &(rn_import_options_t){0}, &results);
  rn_import_results_clear(&results);
  if (rn_ok(status))
    status = find_ends(graph, is_own ? FEED : ARG, cut->arg_count, arena, &inputs, out_args,
                       out_arg_count);
  if (rn_ok(status) && is_own)
    status =
        find_ends(graph, RESULT, cut->span->result_count, arena, &outputs, &numbers, &output_count);
  if (rn_ok(status) && is_own && output_count != cut->span->result_count)
    status = rn_internal("A result of %.*s is lost", RN_STR_ARGS(cut->call->name));
  rn_function_spec_t spec = {.graph = graph,
                             .name = name,
                             .node_count = -1,
                             .inputs = inputs,
                             .input_count = *out_arg_count,
                             .outputs = outputs,
                             .output_count = output_count};
  if (rn_ok(status)) status = rn_function_create(&spec, out);
  rn_graph_release(graph);
  return status;
}

// --- Telling other tasks

static rn_status_t tell(rn_eager_context_t* context, rn_str_t task, rn_str_t items) {
  rn_channel_t* channel = rn_eager_peers_channel(context->peers, task);
  rn_message_t request, response;
  rn_strbuf_t bytes;
  rn_eager_question_t question;
  if (!channel) return rn_eager_peers_missing(context->peers, task);
  rn_strbuf_init(&bytes, context->allocator);
  rn_message_init(&request, context->allocator);
  rn_pb_put_fixed64(&bytes, rn_pb_eager_EnqueueRequest_context_id_field, context->id);
  size_t item = rn_pb_begin(&bytes, rn_pb_eager_EnqueueRequest_queue_field);
  rn_strbuf_append(&bytes, items);
  rn_pb_end(&bytes, item);
  rn_status_t status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) status = rn_message_add(&request, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  RN_RETURN_IF_ERROR(status);
  rn_eager_question_start(&question, channel, RN_EAGER_PATH "Enqueue", &request,
                          context->env->now_ns(context->env->self) + TELL_NS, false);
  RN_RETURN_IF_ERROR(rn_eager_question_wait(&question, &response));
  rn_message_clear(&response);
  return RN_OK;
}

static rn_status_t register_part(span_cut_t* cut, rn_str_t task, const rn_function_t* function,
                                 rn_str_t graph_def) {
  rn_strbuf_t item;
  rn_strbuf_init(&item, cut->context->allocator);
  size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_register_function_field);
  rn_pb_put_str(&item, rn_pb_eager_RegisterFunctionOp_function_def_field, function->bytes);
  rn_pb_put_uint(&item, rn_pb_eager_RegisterFunctionOp_is_component_function_field, 1);
  rn_pb_put_str(&item, rn_pb_eager_RegisterFunctionOp_library_field,
                rn_field_bytes(graph_def, rn_pb_GraphDef_library_field));
  rn_pb_end(&item, entry);
  rn_status_t status = rn_strbuf_status(&item);
  if (rn_ok(status)) status = tell(cut->context, task, rn_strbuf_view(&item));
  rn_strbuf_clear(&item);
  return status;
}

static void tell_removal(rn_eager_context_t* context, const span_part_t* part) {
  rn_strbuf_t item;
  rn_strbuf_init(&item, context->allocator);
  size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_remove_function_field);
  rn_pb_put_str(&item, rn_pb_eager_RemoveFunctionOp_function_name_field, part->function);
  rn_pb_end(&item, entry);
  rn_status_t status = rn_strbuf_status(&item);
  if (rn_ok(status)) status = tell(context, part->task, rn_strbuf_view(&item));
  rn_status_free(status);  // then it is freed with the context
  rn_strbuf_clear(&item);
}

static void tell_cleanup(rn_eager_context_t* context, rn_str_t task, int64_t step) {
  rn_strbuf_t item;
  rn_strbuf_init(&item, context->allocator);
  size_t entry = rn_pb_begin(&item, rn_pb_eager_QueueItem_cleanup_function_field);
  rn_pb_put_uint(&item, rn_pb_eager_CleanupFunctionOp_step_id_field, (uint64_t)step);
  rn_pb_end(&item, entry);
  rn_status_t status = rn_strbuf_status(&item);
  if (rn_ok(status)) status = tell(context, task, rn_strbuf_view(&item));
  rn_status_free(status);
  rn_strbuf_clear(&item);
}

// --- Parts

static rn_status_t add_own_part(span_cut_t* cut, rn_str_t graph_def, rn_str_t name) {
  rn_eager_context_t* context = cut->context;
  rn_function_t* function = NULL;
  span_t* span = cut->span;
  RN_RETURN_IF_ERROR(make_function(cut, graph_def, name, true, &span->arena, &function, &span->args,
                                   &span->arg_count));
  rn_status_t status = rn_eager_add_function(context->eager, function);
  rn_function_release(function);
  RN_RETURN_IF_ERROR(status);
  span->function = name;
  rn_func_attr_t call = {.name = name};
  return rn_function_prepare(rn_session_functions(rn_eager_session(context->eager)), &call,
                             cut->device, &span->instance);
}

static rn_status_t add_part(span_cut_t* cut, rn_str_t task, rn_str_t device, rn_str_t graph_def,
                            rn_str_t name) {
  span_t* span = cut->span;
  span_part_t* part = &span->parts[span->part_count];
  rn_function_t* function = NULL;
  part->function = name;
  RN_RETURN_IF_ERROR(rn_arena_str(&span->arena, task, &part->task));
  RN_RETURN_IF_ERROR(rn_arena_str(&span->arena, device, &part->device));
  RN_RETURN_IF_ERROR(make_function(cut, graph_def, name, false, &span->arena, &function,
                                   &part->args, &part->arg_count));
  rn_status_t status = register_part(cut, task, function, graph_def);
  rn_function_release(function);
  if (rn_ok(status)) span->part_count++;
  return status;
}

// The tasks of the devices, each once, this one first.
static rn_status_t add_parts(span_cut_t* cut, rn_arena_t* arena) {
  span_t* span = cut->span;
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
    bool is_new = true, is_own = d == 0;
    for (int k = 0; k < d; ++k)
      if (rn_str_eq(rn_eager_task_of(cut->devices[k]->name), task)) is_new = false;
    if (!is_new) continue;
    graph_def.size = 0;
    status = export_part(cut, task, is_own, arena, &graph_def);
    if (!rn_ok(status) || !graph_def.size) continue;
    // Several tasks may cut the same function for one client, so the name contains the task.
    status =
        rn_arena_printf(&span->arena, &name, "%.*s_span_%llx_%lld_%d", RN_STR_ARGS(cut->call->name),
                        (unsigned long long)cut->devices[0]->incarnation, number, d);
    if (rn_ok(status))
      status = is_own
                   ? add_own_part(cut, rn_strbuf_view(&graph_def), name)
                   : add_part(cut, task, cut->devices[d]->name, rn_strbuf_view(&graph_def), name);
  }
  rn_strbuf_clear(&graph_def);
  return status;
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
  cut->span->is_here = is_here(cut);
  if (cut->span->is_here) return RN_OK;
  RN_RETURN_IF_ERROR(ask_for_devices(cut));
  RN_RETURN_IF_ERROR(rn_pass_simplify(cut->ir));
  RN_RETURN_IF_ERROR(rn_ir_sweep(cut->ir));
  RN_RETURN_IF_ERROR(find_tasks(cut, arena, &tasks));
  rn_place_options_t place = {.devices = cut->devices,
                              .device_count = cut->device_count,
                              .tasks = tasks,
                              .allow_soft_placement = true,
                              .env = cut->context->env};
  RN_RETURN_IF_ERROR(rn_place(cut->ir, &place));
  RN_RETURN_IF_ERROR(rn_partition(cut->ir, &place));
  RN_RETURN_IF_ERROR(name_ends(cut, arena));
  return add_parts(cut, arena);
}

// --- Those that were cut

static void span_release(rn_eager_context_t* context, span_t* span) {
  if (!span || --span->refs > 0) return;
  if (span->instance)
    rn_function_forget(rn_session_functions(rn_eager_session(context->eager)), span->instance);
  if (span->function.size) rn_status_free(rn_eager_remove_function(context->eager, span->function));
  rn_arena_clear(&span->arena);
  RN_FREE(context->allocator, span);
}

static span_t* take_span(rn_eager_context_t* context, rn_str_t name) {
  span_t* found = NULL;
  size_t position = 0;
  const rn_map_entry_t* entry;
  rn_mutex_lock(&context->mutex);
  while (!found && (entry = rn_map_next(&context->spans, &position)))
    if (!name.size || rn_str_eq(((span_t*)entry->value)->name, name)) found = entry->value;
  if (found) rn_map_remove(&context->spans, found->key);
  rn_mutex_unlock(&context->mutex);
  return found;
}

void rn_eager_spans_drop(rn_eager_context_t* context, rn_str_t name, bool tells) {
  span_t* span;
  while ((span = take_span(context, name))) {
    for (size_t i = 0; tells && i < span->part_count; ++i) tell_removal(context, &span->parts[i]);
    span_release(context, span);
  }
}

// The key of a cut: the function with its attributes, the device, and the devices of the arguments.
static rn_status_t make_key(const rn_eager_call_t* call, rn_str_t device, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%.*s;%.*s;%zu", RN_STR_ARGS(call->name), RN_STR_ARGS(device),
                   call->input_count);
  for (size_t i = 0; i < call->attr_count; ++i) {
    rn_strbuf_printf(out, ";%.*s=", RN_STR_ARGS(call->attrs[i].name));
    rn_attr_value_print(out, &call->attrs[i].value);
  }
  for (size_t i = 0; i < call->input_count; ++i)
    if (!call->inputs[i])
      rn_strbuf_printf(out, ";%zu:%.*s", i,
                       RN_STR_ARGS(rn_field_bytes(call->remote[i],
                                                  rn_pb_eager_RemoteTensorHandle_device_field)));
  return rn_strbuf_status(out);
}

static rn_status_t make_span(rn_eager_context_t* context, const rn_eager_call_t* call,
                             rn_str_t device, rn_str_t key, span_t** out) {
  span_t* span = NULL;
  rn_arena_t arena;
  RN_RETURN_IF_ERROR(RN_NEW(context->allocator, &span));
  span->refs = 1;
  rn_arena_init(&span->arena, context->allocator);
  rn_arena_init(&arena, context->allocator);
  span_cut_t cut = {.context = context, .call = call, .span = span, .device = device};
  rn_status_t status = rn_arena_str(&span->arena, key, &span->key);
  if (rn_ok(status)) status = rn_arena_str(&span->arena, call->name, &span->name);
  if (rn_ok(status)) status = cut_up(&cut, &arena);
  if (cut.ir) rn_ir_destroy(cut.ir);
  rn_arena_clear(&arena);
  if (!rn_ok(status)) {
    span_release(context, span);
    return status;
  }
  *out = span;
  return RN_OK;
}

static rn_status_t get_span(rn_eager_context_t* context, const rn_eager_call_t* call,
                            rn_str_t device, span_t** out) {
  rn_strbuf_t key;
  span_t *made = NULL, *known = NULL;
  rn_strbuf_init(&key, context->allocator);
  rn_status_t status = make_key(call, device, &key);
  rn_mutex_lock(&context->mutex);
  *out = rn_ok(status) ? rn_map_get(&context->spans, rn_strbuf_view(&key)) : NULL;
  if (*out) (*out)->refs++;
  rn_mutex_unlock(&context->mutex);
  if (rn_ok(status) && !*out) {
    status = make_span(context, call, device, rn_strbuf_view(&key), &made);
    rn_mutex_lock(&context->mutex);
    if (rn_ok(status)) known = rn_map_get(&context->spans, made->key);
    if (rn_ok(status) && !known) status = rn_map_put(&context->spans, made->key, made);
    *out = known ? known : made;
    if (rn_ok(status)) (*out)->refs++;
    rn_mutex_unlock(&context->mutex);
    if (known || !rn_ok(status)) span_release(context, made);
    if (!rn_ok(status)) *out = NULL;
  }
  rn_strbuf_clear(&key);
  return status;
}

// --- Running

static rn_status_t run_own(rn_eager_context_t* context, const span_t* span,
                           const rn_eager_call_t* call, rn_rendezvous_t* rendezvous,
                           rn_arena_t* arena, rn_tensor_t* results) {
  const rn_tensor_t** args = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)span->arg_count, &args));
  for (int32_t i = 0; i < span->arg_count; ++i)
    RN_RETURN_IF_ERROR(rn_eager_handle_value(call->inputs[span->args[i]], &args[i]));
  rn_function_call_t own = {
      .cancel = &context->cancel, .rendezvous = rendezvous, .args = args, .results = results};
  return rn_function_run_and_wait(rn_session_functions(rn_eager_session(context->eager)),
                                  span->instance, &own);
}

static rn_status_t start_part(rn_eager_context_t* context, const span_part_t* part,
                              const rn_eager_call_t* call, int64_t step,
                              rn_eager_question_t* question) {
  rn_channel_t* channel = rn_eager_peers_channel(context->peers, part->task);
  rn_message_t request;
  rn_strbuf_t bytes;
  if (!channel) return rn_eager_peers_missing(context->peers, part->task);
  rn_strbuf_init(&bytes, context->allocator);
  rn_message_init(&request, context->allocator);
  rn_pb_put_fixed64(&bytes, rn_pb_eager_RunComponentFunctionRequest_context_id_field, context->id);
  size_t operation = rn_pb_begin(&bytes, rn_pb_eager_RunComponentFunctionRequest_operation_field);
  rn_pb_put_uint(&bytes, rn_pb_eager_Operation_id_field, (uint64_t)call->id);
  rn_pb_put_str(&bytes, rn_pb_eager_Operation_name_field, part->function);
  for (int32_t i = 0; i < part->arg_count; ++i) {
    size_t input = rn_pb_begin(&bytes, rn_pb_eager_Operation_op_inputs_field);
    rn_pb_put_str(&bytes, rn_pb_eager_Operation_Input_remote_handle_field,
                  call->remote[part->args[i]]);
    rn_pb_end(&bytes, input);
  }
  rn_pb_put_str(&bytes, rn_pb_eager_Operation_device_field, part->device);
  rn_pb_put_uint(&bytes, rn_pb_eager_Operation_is_component_function_field, 1);
  rn_pb_put_uint(&bytes, rn_pb_eager_Operation_func_step_id_field, (uint64_t)step);
  rn_pb_put_uint(&bytes, rn_pb_eager_Operation_is_function_field, 1);
  rn_pb_end(&bytes, operation);
  rn_status_t status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) status = rn_message_add(&request, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  RN_RETURN_IF_ERROR(status);
  rn_eager_question_start(question, channel, RN_EAGER_PATH "RunComponentFunction", &request,
                          INT64_MAX, false);
  return RN_OK;
}

// Derived errors are less useful than their cause.
static rn_status_t choose(rn_status_t known, rn_status_t more) {
  if (rn_ok(more)) return known;
  if (rn_ok(known)) return more;
  bool is_better = rn_status_is_derived(known) && !rn_status_is_derived(more);
  rn_status_free(is_better ? known : more);
  return is_better ? more : known;
}

static rn_status_t run_parts(rn_eager_context_t* context, const span_t* span,
                             const rn_eager_call_t* call, int64_t step, rn_rendezvous_t* rendezvous,
                             rn_arena_t* arena, rn_tensor_t* results) {
  rn_eager_question_t* questions = NULL;
  rn_message_t response;
  size_t started = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, span->part_count, &questions));
  rn_status_t status = RN_OK;
  for (; started < span->part_count && rn_ok(status); ++started)
    status = start_part(context, &span->parts[started], call, step, &questions[started]);
  if (!rn_ok(status)) started--;
  if (rn_ok(status)) status = run_own(context, span, call, rendezvous, arena, results);
  // Fails other parts that wait for this one.
  if (!rn_ok(status)) rn_rendezvous_fail(rendezvous, rn_status_copy(status));
  for (size_t i = 0; i < started; ++i) {
    rn_status_t one = rn_eager_question_wait(&questions[i], &response);
    if (rn_ok(one)) rn_message_clear(&response);
    status = choose(status, one);
  }
  return status;
}

static rn_status_t take_results(rn_eager_context_t* context, const rn_eager_call_t* call,
                                rn_tensor_t* results, int32_t count, rn_strbuf_t* out) {
  rn_device_t* device = NULL;
  rn_status_t status = rn_eager_own_device(context, call->device, &device);
  rn_eager_handle_t** handles = NULL;
  if (rn_ok(status)) status = RN_NEW_ARRAY(context->allocator, (size_t)count, &handles);
  for (int32_t i = 0; i < count && rn_ok(status); ++i) {
    rn_eager_handle_t* handle = NULL;
    status = rn_eager_handle_create(&results[i], &handle);
    if (rn_ok(status))
      status = rn_eager_handle_copy_to(handle, context->eager, device, &handles[i]);
    rn_eager_handle_release(handle);
  }
  if (rn_ok(status)) status = rn_eager_put_results(context, call, handles, count, out);
  for (int32_t i = 0; handles && i < count; ++i) rn_eager_handle_release(handles[i]);
  if (handles) RN_FREE_ARRAY(context->allocator, handles, count);
  return status;
}

static rn_status_t run(rn_eager_context_t* context, const span_t* span, rn_eager_call_t* call,
                       rn_strbuf_t* out) {
  rn_rendezvous_t* rendezvous = NULL;
  rn_tensor_t* results = NULL;
  int64_t step = (int64_t)(context->env->random(context->env->self) >> 1 | 1);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, (size_t)span->result_count, &results));
  RN_RETURN_IF_ERROR(rn_steps_adopt(context->steps, step, context,
                                    rn_eager_peers_table(context->peers), &rendezvous));
  rn_status_t status =
      rn_is_cancelled(&context->cancel) ? rn_aborted("The context was closed") : RN_OK;
  if (rn_ok(status))
    status = run_parts(context, span, call, step, rendezvous, &call->arena, results);
  rn_steps_drop(context->steps, step, rn_aborted("Cleanup %lld", (long long)step));
  rn_rendezvous_release(rendezvous);
  for (size_t i = 0; i < span->part_count; ++i) tell_cleanup(context, span->parts[i].task, step);
  if (rn_ok(status)) status = take_results(context, call, results, span->result_count, out);
  for (int32_t i = 0; i < span->result_count; ++i) rn_tensor_clear(&results[i]);
  return status;
}

rn_status_t rn_eager_span_run(rn_eager_context_t* context, rn_eager_call_t* call, rn_strbuf_t* out,
                              bool* out_done) {
  span_t* span = NULL;
  rn_device_t* device = NULL;
  *out_done = false;
  rn_mutex_lock(&context->mutex);
  bool is_alone = context->others.count == 0;
  rn_mutex_unlock(&context->mutex);
  if (is_alone) return RN_OK;
  RN_RETURN_IF_ERROR(rn_eager_own_device(context, call->device, &device));
  RN_RETURN_IF_ERROR(get_span(context, call, device->name, &span));
  rn_status_t status = span->is_here ? RN_OK : run(context, span, call, out);
  *out_done = !span->is_here;
  span_release(context, span);
  return status;
}

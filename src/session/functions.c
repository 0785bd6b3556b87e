// Functions as programs: see functions.h.
#include "session/functions.h"

#include "session/function_calls.h"

static void drop_programs(rn_session_function_t* function) {
  rn_programs_clear(&function->programs);
  rn_kernel_cache_clear(&function->kernels);
  rn_kernel_cache_init(&function->kernels, function->table->allocator);
}

static void function_destroy(rn_session_function_t* function) {
  if (!function) return;
  drop_programs(function);
  rn_kernel_cache_clear(&function->kernels);
  rn_mutex_destroy(&function->mutex);
  rn_arena_clear(&function->arena);
  RN_FREE(function->table->allocator, function);
}

static bool must_run(const rn_node_t* node) {
  return node->op->flags & RN_OP_STATEFUL && node->op->role != RN_ROLE_ARG &&
         node->op->role != RN_ROLE_PLACEHOLDER;
}

// Arguments are fed and results fetched; control results and stateful nodes always run.
static rn_status_t make_signature(rn_session_function_t* function) {
  const rn_function_body_t* body = function->body;
  rn_arena_t* arena = &function->arena;
  rn_edge_t* feeds = NULL;
  rn_node_t** targets = NULL;
  int32_t target_count = 0;
  size_t nodes = body->graph->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)body->arg_count, &feeds));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes + (size_t)body->control_count, &targets));
  for (int32_t i = 0; i < body->arg_count; ++i) feeds[i] = (rn_edge_t){body->args[i], 0};
  for (int32_t i = 0; i < body->control_count; ++i) targets[target_count++] = body->controls[i];
  for (size_t i = 0; i < nodes; ++i)
    if (must_run(body->graph->nodes.items[i]))
      targets[target_count++] = body->graph->nodes.items[i];
  function->signature = (rn_signature_t){.feeds = feeds,
                                         .feed_count = body->arg_count,
                                         .fetches = body->results,
                                         .fetch_count = body->result_count,
                                         .targets = targets,
                                         .target_count = target_count};
  return RN_OK;
}

static rn_status_t describe(rn_session_function_t* function) {
  const rn_function_body_t* body = function->body;
  rn_dtype_t *args = NULL, *results = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&function->arena, (size_t)body->arg_count, &args));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&function->arena, (size_t)body->result_count, &results));
  for (int32_t i = 0; i < body->arg_count; ++i)
    args[i] = rn_dtype_base(body->args[i]->outputs[0].dtype);
  for (int32_t i = 0; i < body->result_count; ++i)
    results[i] = rn_dtype_base(body->results[i].node->outputs[body->results[i].index].dtype);
  function->instance = (rn_instance_t){.name = body->function->name,
                                       .arg_count = body->arg_count,
                                       .arg_types = args,
                                       .result_count = body->result_count,
                                       .result_types = results,
                                       .def = body->function->bytes};
  return RN_OK;
}

// Where the nodes of the function go.
static rn_status_t copy_devices(rn_session_function_t* function, rn_str_t device,
                                const rn_args_place_t* args) {
  rn_arena_t* arena = &function->arena;
  size_t count = (size_t)function->body->arg_count;
  rn_str_t* resources = NULL;
  rn_device_t** memory = NULL;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, device, &function->planner.place.default_device));
  if (!args) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &resources));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &memory));
  for (size_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_arena_str(arena, args->resources[i], &resources[i]));
    memory[i] = args->memory[i];
  }
  function->planner.place.feed_devices = resources;
  function->planner.place.feed_memory = memory;
  return RN_OK;
}

// Leaves results in the memory of the devices that compute them. A reference is read into host
// memory.
static rn_status_t leave_results(rn_session_function_t* function) {
  rn_planner_t* planner = &function->planner;
  size_t count = (size_t)function->body->result_count;
  rn_device_t** memory = NULL;
  rn_ir_t* ir = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&function->arena, count, &memory));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&function->arena, count, &function->results));
  for (size_t i = 0; i < count; ++i) function->results[i].device = planner->place.devices[0];
  // What is wrong with the body is an error of the call.
  rn_status_free(rn_planner_place(planner, function->body->graph, &function->signature, &ir));
  for (size_t i = 0; ir && i < count; ++i) {
    rn_ir_edge_t fetch = ir->fetches[i];
    if (fetch.node < 0) continue;
    const rn_ir_node_t* node = rn_ir_node(ir, fetch.node);
    bool is_host = rn_place_output_is_host(&planner->place, node, fetch.output);
    function->results[i].device = node->device;
    if (is_host || rn_dtype_is_ref(node->types[fetch.output])) continue;
    function->results[i].memory = memory[i] = node->device;
  }
  rn_ir_destroy(ir);
  planner->place.fetch_memory = memory;
  return RN_OK;
}

static rn_status_t function_create(rn_functions_table_t* table, const rn_function_body_t* body,
                                   rn_str_t device, const rn_args_place_t* args, rn_str_t key,
                                   rn_session_function_t** out) {
  rn_session_function_t* function = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(table->allocator, &function));
  function->table = table;
  function->body = body;
  function->refs = 1;
  rn_arena_init(&function->arena, table->allocator);
  rn_mutex_init(&function->mutex);
  rn_kernel_cache_init(&function->kernels, table->allocator);
  function->planner = table->planner;
  function->planner.kernels = &function->kernels;
  rn_status_t status = rn_arena_str(&function->arena, key, &function->key);
  if (rn_ok(status)) status = copy_devices(function, device, args);
  if (rn_ok(status)) status = make_signature(function);
  if (rn_ok(status)) status = describe(function);
  if (rn_ok(status) && args) status = leave_results(function);
  if (rn_ok(status))
    status = rn_programs_init(&function->programs, &function->planner, body->graph,
                              &function->signature, &function->arena);
  if (!rn_ok(status)) {
    function_destroy(function);
    return status;
  }
  *out = function;
  return RN_OK;
}

static rn_status_t enter_locked(rn_functions_table_t* table, rn_session_function_t* function) {
  RN_RETURN_IF_ERROR(rn_map_put(&table->by_key, function->key, function));
  function->next = table->first;
  if (table->first) table->first->previous = function;
  table->first = function;
  return RN_OK;
}

static rn_status_t get_function(rn_functions_table_t* table, const rn_function_body_t* body,
                                rn_str_t device, const rn_args_place_t* args, rn_str_t key,
                                rn_session_function_t** out) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&table->mutex);
  rn_session_function_t* function = rn_map_get(&table->by_key, key);
  if (function) {
    function->refs++;
  } else {
    status = function_create(table, body, device, args, key, &function);
    if (rn_ok(status)) {
      status = enter_locked(table, function);
      if (!rn_ok(status)) function_destroy(function);
    }
  }
  rn_mutex_unlock(&table->mutex);
  *out = rn_ok(status) ? function : NULL;
  return status;
}

rn_status_t rn_functions_check_open(rn_functions_table_t* table) {
  rn_mutex_lock(&table->mutex);
  bool is_closed = table->is_closed;
  rn_mutex_unlock(&table->mutex);
  return is_closed ? rn_cancelled("Session has been closed.") : RN_OK;
}

// The library keeps one body per function and set of attributes.
static rn_status_t prepare(rn_functions_t* functions, const rn_func_attr_t* call, rn_str_t device,
                           const rn_args_place_t* args, const void* owner, rn_instance_t** out,
                           const rn_result_place_t** out_results) {
  rn_functions_table_t* table = (rn_functions_table_t*)functions;
  *out = NULL;
  const rn_function_body_t* body = NULL;
  RN_RETURN_IF_ERROR(rn_functions_check_open(table));
  RN_RETURN_IF_ERROR(rn_function_body(table->options.graph, call, &body));
  rn_strbuf_t key;
  rn_strbuf_init(&key, table->allocator);
  rn_strbuf_printf(&key, "%p %.*s", (const void*)body, RN_STR_ARGS(device));
  if (owner) rn_strbuf_printf(&key, " of %p", owner);
  if (args) rn_strbuf_printf(&key, ";");
  for (int32_t i = 0; args && i < body->arg_count; ++i)
    rn_strbuf_printf(&key, ",%.*s %p", RN_STR_ARGS(args->resources[i]), (void*)args->memory[i]);
  rn_session_function_t* function = NULL;
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status))
    status = get_function(table, body, device, args, rn_strbuf_view(&key), &function);
  rn_strbuf_clear(&key);
  if (rn_ok(status)) *out = &function->instance;
  if (rn_ok(status) && out_results) *out_results = function->results;
  return status;
}

rn_status_t rn_functions_prepare(rn_functions_t* functions, const rn_func_attr_t* call,
                                 rn_str_t device, const rn_args_place_t* args, rn_instance_t** out,
                                 const rn_result_place_t** out_results) {
  return prepare(functions, call, device, args, NULL, out, out_results);
}

static rn_status_t instantiate(rn_functions_t* functions, const rn_func_attr_t* call,
                               rn_str_t device, const void* owner, rn_instance_t** out) {
  return prepare(functions, call, device, NULL, owner, out, NULL);
}

static void unlink_locked(rn_functions_table_t* table, rn_session_function_t* function) {
  rn_map_remove(&table->by_key, function->key);
  if (function->previous)
    function->previous->next = function->next;
  else
    table->first = function->next;
  if (function->next) function->next->previous = function->previous;
}

static void release(rn_functions_t* functions, rn_instance_t* instance) {
  rn_functions_table_t* table = (rn_functions_table_t*)functions;
  rn_session_function_t* function = (rn_session_function_t*)instance;
  rn_mutex_lock(&table->mutex);
  bool is_last = --function->refs == 0 && !table->is_closed;
  if (is_last) unlink_locked(table, function);
  rn_mutex_unlock(&table->mutex);
  if (is_last) function_destroy(function);
}

static void retain_table(rn_functions_t* functions) { ((rn_functions_table_t*)functions)->refs++; }

// Functions that call each other hold references to each other, so all release theirs first.
static void drop_all(rn_functions_table_t* table) {
  rn_mutex_lock(&table->mutex);
  bool was_closed = table->is_closed;
  table->is_closed = true;
  rn_mutex_unlock(&table->mutex);
  if (!was_closed) rn_kept_functions_clear(&table->derived);
  for (rn_session_function_t* function = table->first; !was_closed && function;
       function = function->next)
    drop_programs(function);
}

static void release_table(rn_functions_t* functions) {
  rn_functions_table_t* table = (rn_functions_table_t*)functions;
  if (--table->refs) return;
  drop_all(table);
  while (table->first) {
    rn_session_function_t* function = table->first;
    table->first = function->next;
    function_destroy(function);
  }
  rn_map_clear(&table->by_key);
  rn_mutex_destroy(&table->mutex);
  rn_cancel_destroy(&table->never);
  rn_graph_release(table->options.graph);
  rn_arena_clear(&table->arena);
  RN_FREE(table->allocator, table);
}

static rn_status_t find(rn_functions_t* functions, rn_str_t name, rn_str_t* out_def) {
  rn_graph_t* graph = ((rn_functions_table_t*)functions)->options.graph;
  rn_function_t* function = rn_graph_get_function(graph, name);
  *out_def = function ? function->bytes : RN_STR("");
  rn_function_release(function);  // the library keeps it
  return RN_OK;
}

static rn_status_t add_functions(rn_graph_t* graph, rn_graph_t* own,
                                 const rn_pb_FunctionDefLibrary_t* library,
                                 rn_allocator_t allocator) {
  rn_function_t* function = NULL;
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && own && (function = rn_graph_function_at(own, i)); ++i) {
    status = rn_graph_add_function(graph, function, NULL);
    rn_function_release(function);
  }
  for (size_t i = 0; rn_ok(status) && i < library->function.count; ++i) {
    status = rn_function_from_def(allocator, &library->function.items[i], &function);
    if (rn_ok(status)) status = rn_graph_add_function(graph, function, NULL);
    rn_function_release(function);
    function = NULL;
  }
  return status;
}

static rn_status_t derive(rn_functions_t* functions, bool with_own,
                          const rn_pb_FunctionDefLibrary_t* library, rn_functions_t** out) {
  rn_functions_table_t* table = (rn_functions_table_t*)functions;
  rn_functions_options_t options = table->options;
  rn_functions_t* made = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_functions_check_open(table));
  RN_RETURN_IF_ERROR(rn_graph_create(table->allocator, &options.graph));
  rn_status_t status = add_functions(options.graph, with_own ? table->options.graph : NULL, library,
                                     table->allocator);
  if (rn_ok(status)) status = rn_functions_create(&options, table->allocator, &made);
  rn_graph_release(options.graph);
  RN_RETURN_IF_ERROR(status);
  retain_table(made);
  rn_kept_functions_add(&table->derived, made);
  *out = made;
  return RN_OK;
}

static const rn_functions_vtable_t vtable = {.instantiate = instantiate,
                                             .release = release,
                                             .run = rn_functions_run,
                                             .find = find,
                                             .derive = derive,
                                             .retain_table = retain_table,
                                             .release_table = release_table};

rn_status_t rn_functions_create(const rn_functions_options_t* options, rn_allocator_t allocator,
                                rn_functions_t** out) {
  *out = NULL;
  rn_functions_table_t* table = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &table));
  table->functions.vtable = &vtable;
  table->refs = 1;
  table->allocator = allocator;
  table->options = *options;
  rn_graph_retain(table->options.graph);
  table->planner = *options->planner;
  table->options.planner = &table->planner;
  table->planner.functions = &table->functions;
  rn_arena_init(&table->arena, allocator);
  rn_cancel_init(&table->never);
  rn_mutex_init(&table->mutex);
  rn_map_init(&table->by_key, allocator);
  rn_kept_functions_init(&table->derived, allocator);
  rn_status_t status = rn_arena_str(&table->arena, options->config, &table->options.config);
  if (!rn_ok(status)) {
    release_table(&table->functions);
    return status;
  }
  *out = &table->functions;
  return RN_OK;
}

void rn_functions_close(rn_functions_t* functions) {
  if (!functions) return;
  drop_all((rn_functions_table_t*)functions);
  release_table(functions);
}

bool rn_functions_is_shared(const rn_functions_t* functions) {
  return ((const rn_functions_table_t*)functions)->refs > 1;
}

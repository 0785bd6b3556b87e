// Kernels of plug-ins: registration, and the bridge from the executor to their functions.
#include "capi/plugin/kernel.h"
#include "proto/kernel_def.pb.h"

#define MAX_TYPES (sizeof((rn_kernel_def_t*)NULL)->types / sizeof *((rn_kernel_def_t*)NULL)->types)
#define MAX_HOST_ARGS ((size_t)8)

// Never freed once registered, because it contains the row; clients delete their builder after
// registering it.
struct TF_KernelBuilder {
  rn_plugin_kernel_t plugin;
  const char* host_args[MAX_HOST_ARGS + 1];  // ends with NULL
  rn_status_t error;                         // of calls that have no status
  bool is_registered;
};

static void fail(TF_KernelBuilder* builder, rn_status_t status) {
  if (!rn_ok(status)) builder->error = rn_status_join(builder->error, status);
}

static rn_status_t keep(TF_KernelBuilder* builder, rn_str_t text, const char** out) {
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(&builder->plugin.arena, text, &copy));
  *out = copy.data;
  return RN_OK;
}

static rn_status_t builder_fill(TF_KernelBuilder* builder, const char* op, const char* device) {
  if (!op) return rn_capi_null("TF_NewKernelBuilder", "op_name");
  if (!device) return rn_capi_null("TF_NewKernelBuilder", "device_name");
  RN_RETURN_IF_ERROR(keep(builder, rn_str(op), &builder->plugin.def.op));
  return keep(builder, rn_str(device), &builder->plugin.def.device);
}

static TF_KernelBuilder* builder_create(const rn_plugin_kernel_t* functions, const char* op,
                                        const char* device) {
  TF_KernelBuilder* builder = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &builder);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  builder->plugin = *functions;
  builder->plugin.def.host_args = builder->host_args;
  rn_arena_init(&builder->plugin.arena, rn_capi_allocator());
  fail(builder, builder_fill(builder, op, device));
  return builder;
}

TF_KernelBuilder* TF_NewKernelBuilder(const char* op_name, const char* device_name,
                                      void* (*create_func)(TF_OpKernelConstruction*),
                                      void (*compute_func)(void*, TF_OpKernelContext*),
                                      void (*delete_func)(void*)) {
  rn_plugin_kernel_t functions = {
      .create = create_func, .compute = compute_func, .destroy = delete_func};
  return builder_create(&functions, op_name, device_name);
}

TF_KernelBuilder* TF_NewAsyncKernelBuilder(
    const char* op_name, const char* device_name, void* (*create_func)(TF_OpKernelConstruction*),
    void (*compute_async_func)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done),
    void (*delete_func)(void*)) {
  rn_plugin_kernel_t functions = {
      .create = create_func, .compute_async = compute_async_func, .destroy = delete_func};
  return builder_create(&functions, op_name, device_name);
}

void TF_DeleteKernelBuilder(TF_KernelBuilder* builder) {
  if (!builder || builder->is_registered) return;
  rn_arena_clear(&builder->plugin.arena);
  rn_status_free(builder->error);
  RN_FREE(rn_capi_allocator(), builder);
}

static rn_status_t add_types(TF_KernelBuilder* builder, rn_str_t attr, rn_dtypes_t types) {
  rn_kernel_type_t* rows = builder->plugin.def.types;
  size_t i = 0;
  while (i < MAX_TYPES && rows[i].attr && !rn_str_is(attr, rows[i].attr)) i++;
  if (i == MAX_TYPES) {
    return rn_resource_exhausted("A kernel can constrain %zu attributes, no more", MAX_TYPES);
  }
  if (!rows[i].attr) RN_RETURN_IF_ERROR(keep(builder, attr, &rows[i].attr));
  rows[i].types |= types;
  return RN_OK;
}

void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* kernel_builder, const char* attr_name,
                                     TF_DataType type, TF_Status* status) {
  rn_status_t outcome = RN_OK;
  if (!kernel_builder || !attr_name) {
    outcome = RN_CAPI_NULL(kernel_builder ? "attr_name" : "kernel_builder");
  } else if ((int)type <= 0 || (int)type >= RN_DTYPE_COUNT) {
    outcome = rn_unimplemented("Unexpected type %d", (int)type);
  } else {
    outcome = add_types(kernel_builder, rn_str(attr_name), RN_TYPES1((int)type));
  }
  rn_capi_set(status, outcome);
}

static rn_status_t add_host_arg(TF_KernelBuilder* builder, rn_str_t name) {
  const char** args = builder->host_args;
  size_t i = 0;
  while (i < MAX_HOST_ARGS && args[i]) i++;
  if (i == MAX_HOST_ARGS) {
    return rn_resource_exhausted("A kernel can have %zu host arguments, no more", MAX_HOST_ARGS);
  }
  return keep(builder, name, &args[i]);
}

void TF_KernelBuilder_HostMemory(TF_KernelBuilder* kernel_builder, const char* arg_name) {
  if (kernel_builder && arg_name)
    fail(kernel_builder, add_host_arg(kernel_builder, rn_str(arg_name)));
}

void TF_KernelBuilder_Priority(TF_KernelBuilder* kernel_builder, int32_t priority_number) {
  if (kernel_builder) kernel_builder->plugin.def.priority = priority_number;
}

void TF_KernelBuilder_Label(TF_KernelBuilder* kernel_builder, const char* label) {
  if (kernel_builder && label) {
    fail(kernel_builder, keep(kernel_builder, rn_str(label), &kernel_builder->plugin.def.label));
  }
}

// Stock's profiler uses |kernel_name|; messages here name the node instead.
void TF_RegisterKernelBuilder(const char* kernel_name, TF_KernelBuilder* builder,
                              TF_Status* status) {
  (void)kernel_name;
  if (!builder) {
    rn_capi_set(status, RN_CAPI_NULL("builder"));
    return;
  }
  rn_status_t outcome = builder->error;
  builder->error = RN_OK;
  if (rn_ok(outcome) && !builder->plugin.compute && !builder->plugin.compute_async) {
    outcome = RN_CAPI_NULL("compute_func");
  }
  if (rn_ok(outcome)) {
    rn_plugin_kernel_bind(&builder->plugin);
    outcome = rn_kernel_register(&builder->plugin.def);
    builder->is_registered = rn_ok(outcome);
  }
  TF_DeleteKernelBuilder(builder);
  rn_capi_set(status, outcome);
}

// Applies a KernelDef.
static rn_status_t apply_def(TF_KernelBuilder* builder, const rn_pb_KernelDef_t* def) {
  rn_kernel_def_t* own = &builder->plugin.def;
  memset(own->types, 0, sizeof own->types);
  memset(builder->host_args, 0, sizeof builder->host_args);
  own->priority = def->priority;
  own->label = NULL;
  if (def->op.size) RN_RETURN_IF_ERROR(keep(builder, def->op, &own->op));
  if (def->device_type.size) RN_RETURN_IF_ERROR(keep(builder, def->device_type, &own->device));
  if (def->label.size) RN_RETURN_IF_ERROR(keep(builder, def->label, &own->label));
  for (uint32_t i = 0; i < def->constraint.count; ++i) {
    const rn_pb_KernelDef_AttrConstraint_t* constraint = &def->constraint.items[i];
    const rn_pb_AttrValue_t* allowed = constraint->allowed_values;
    if (!allowed || allowed->value_case != rn_pb_AttrValue_list_field) {
      return rn_unimplemented("Constraint '%.*s' of a kernel is no list of types",
                              RN_STR_ARGS(constraint->name));
    }
    rn_dtypes_t types = 0;
    for (uint32_t t = 0; t < allowed->list->type.count; ++t) {
      rn_dtype_t dtype = allowed->list->type.items[t];
      if (dtype > 0 && dtype < RN_DTYPE_COUNT) types |= RN_TYPES1(dtype);
    }
    RN_RETURN_IF_ERROR(add_types(builder, constraint->name, types));
  }
  for (uint32_t i = 0; i < def->host_memory_arg.count; ++i) {
    RN_RETURN_IF_ERROR(add_host_arg(builder, def->host_memory_arg.items[i]));
  }
  return RN_OK;
}

void TF_RegisterKernelBuilderWithKernelDef(const char* serialized_kernel_def, const char* name,
                                           TF_KernelBuilder* builder, TF_Status* status) {
  if (builder) {
    rn_pb_KernelDef_t* def = NULL;
    rn_arena_t arena;
    rn_arena_init(&arena, rn_capi_allocator());
    rn_status_t outcome =
        serialized_kernel_def
            ? RN_PB_DECODE(KernelDef, rn_str(serialized_kernel_def), NULL, &arena, &def)
            : rn_invalid_argument("no bytes");
    if (rn_status_code(outcome) == RN_CODE_INVALID_ARGUMENT) {
      rn_status_free(outcome);
      outcome = rn_invalid_argument("Error parsing serialized KernelDef.");
    }
    if (rn_ok(outcome)) outcome = apply_def(builder, def);
    rn_arena_clear(&arena);
    fail(builder, outcome);
  }
  TF_RegisterKernelBuilder(name, builder, status);
}

// Where each input argument begins among the flat inputs.
static rn_status_t find_args(const rn_kernel_init_t* init, rn_plugin_state_t* state) {
  const rn_op_def_t* op = init->op;
  state->arg_count = op->input_count;
  RN_RETURN_IF_ERROR(
      RN_NEW_ARRAY(rn_capi_allocator(), (size_t)op->input_count + 1, &state->arg_starts));
  int32_t flat = 0;
  for (int i = 0; i < op->input_count; ++i) {
    state->arg_starts[i] = flat;
    flat += rn_arg_length(&op->inputs[i], init->attrs);
  }
  state->arg_starts[op->input_count] = flat;
  return RN_OK;
}

rn_status_t rn_plugin_source_name(const rn_kernel_source_t* source, rn_arena_t* arena,
                                  rn_str_t* out) {
  if (source->output == 0) return rn_arena_str(arena, source->node, out);
  return rn_arena_printf(arena, out, "%.*s:%d", RN_STR_ARGS(source->node), source->output);
}

static rn_status_t name_inputs(const rn_kernel_init_t* init, rn_plugin_state_t* state) {
  rn_arena_init(&state->arena, rn_capi_allocator());
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&state->arena, (size_t)init->input_count, &state->input_names));
  for (int i = 0; i < init->input_count; ++i)
    RN_RETURN_IF_ERROR(
        rn_plugin_source_name(&init->sources[i], &state->arena, &state->input_names[i]));
  return RN_OK;
}

static rn_status_t plugin_init(const rn_kernel_init_t* init, void* state) {
  rn_plugin_state_t* own = state;
  own->plugin = (const rn_plugin_kernel_t*)init->def;
  own->producer = init->producer;
  RN_RETURN_IF_ERROR(find_args(init, own));
  RN_RETURN_IF_ERROR(name_inputs(init, own));
  if (!own->plugin->create) return RN_OK;
  TF_OpKernelConstruction construction = {.init = init};
  own->client = own->plugin->create(&construction);
  return construction.failure;
}

static void plugin_destroy(void* state) {
  rn_plugin_state_t* own = state;
  if (own->plugin && own->plugin->destroy && own->client) own->plugin->destroy(own->client);
  RN_FREE_ARRAY(rn_capi_allocator(), own->arg_starts, own->arg_starts ? own->arg_count + 1 : 0);
  rn_arena_clear(&own->arena);
}

static void context_init(TF_OpKernelContext* context, rn_kernel_ctx_t* ctx, bool is_async) {
  *context = (TF_OpKernelContext){.ctx = ctx, .is_async = is_async, .pending = 1};
  rn_mutex_init(&context->mutex);
  rn_cond_init(&context->idle);
}

// The result of the run. A kernel that reports no error must have set its outputs.
static rn_status_t context_end(TF_OpKernelContext* context) {
  rn_cond_destroy(&context->idle);
  rn_mutex_destroy(&context->mutex);
  const rn_kernel_t* kernel = context->ctx->kernel;
  for (int i = 0; rn_ok(context->failure) && i < kernel->output_count; ++i) {
    if (rn_tensor_is_set(&context->ctx->out[i])) continue;
    context->failure =
        rn_internal("Missing %d-th output from {{node %.*s}}", i, RN_STR_ARGS(kernel->node));
  }
  return context->failure;
}

static rn_status_t plugin_compute(rn_kernel_ctx_t* ctx) {
  const rn_plugin_state_t* state = ctx->state;
  TF_OpKernelContext context;
  context_init(&context, ctx, false);
  state->plugin->compute(state->client, &context);
  // Deferred work counts as part of the kernel.
  rn_mutex_lock(&context.mutex);
  context.pending--;
  while (context.pending > 0) rn_cond_wait(&context.idle, &context.mutex);
  rn_mutex_unlock(&context.mutex);
  return context_end(&context);
}

static void plugin_compute_async(rn_kernel_ctx_t* ctx) {
  const rn_plugin_state_t* state = ctx->state;
  TF_OpKernelContext* context = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &context);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  context_init(context, ctx, true);
  state->plugin->compute_async(state->client, context, (TF_AsyncOpKernelDoneCallback*)context);
}

// One piece of work has ended; the last one ends an asynchronous run or wakes a waiting one.
static void give_up_one(TF_OpKernelContext* context) {
  rn_mutex_lock(&context->mutex);
  bool is_last = --context->pending == 0;
  // Signalled under the lock: the waiter destroys the condition as soon as it has the lock.
  if (is_last && !context->is_async) rn_cond_signal(&context->idle);
  rn_mutex_unlock(&context->mutex);
  if (!is_last || !context->is_async) return;
  rn_kernel_ctx_t* ctx = context->ctx;
  rn_status_t status = context_end(context);
  RN_FREE(rn_capi_allocator(), context);
  rn_done(ctx, status);
}

void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  TF_OpKernelContext* context = (TF_OpKernelContext*)done;
  if (context && context->is_async) give_up_one(context);
}

void TF_IncNumDeferredOps(TF_OpKernelContext* context) {
  if (!context) return;
  rn_mutex_lock(&context->mutex);
  context->pending++;
  rn_mutex_unlock(&context->mutex);
}

void TF_DecNumDeferredOps(TF_OpKernelContext* context) {
  if (context) give_up_one(context);
}

void rn_plugin_kernel_bind(rn_plugin_kernel_t* plugin) {
  rn_kernel_def_t* def = &plugin->def;
  // Assumes the worst of such a kernel: it may take long, keep its inputs, and share its outputs.
  def->flags = RN_KERNEL_EXPENSIVE | RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS;
  def->state_size = sizeof(rn_plugin_state_t);
  def->init = plugin_init;
  def->destroy = plugin_destroy;
  if (plugin->compute_async) {
    def->compute_async = plugin_compute_async;
  } else {
    def->compute = plugin_compute;
  }
}

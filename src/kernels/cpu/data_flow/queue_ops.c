// The queue ops, V1 and V2: create, enqueue, dequeue, close, size, is_closed.
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/queue.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"

// Lists of types and shapes for messages.
static void print_shapes(rn_strbuf_t* buf, const rn_shape_t* shapes, int32_t count) {
  rn_strbuf_append(buf, RN_STR("["));
  for (int32_t i = 0; i < count && shapes; ++i) {
    if (i) rn_strbuf_append(buf, RN_STR(", "));
    rn_shape_print(buf, shapes[i]);
  }
  rn_strbuf_append(buf, RN_STR("]"));
}

static bool same_types(const rn_queue_spec_t* a, const rn_queue_spec_t* b) {
  return a->component_count == b->component_count &&
         memcmp(a->types, b->types, (size_t)a->component_count * sizeof *a->types) == 0;
}

static bool same_shapes(const rn_queue_spec_t* a, const rn_queue_spec_t* b) {
  if (!a->shapes || !b->shapes) return !a->shapes && !b->shapes;
  for (int32_t c = 0; c < a->component_count; ++c)
    if (!rn_shape_eq(a->shapes[c], b->shapes[c])) return false;
  return true;
}

rn_status_t rn_queue_matches(const rn_queue_t* queue, const rn_queue_spec_t* spec, rn_str_t node,
                             const char* op) {
  const rn_queue_spec_t* own = &queue->spec;
  rn_strbuf_t text;
  rn_strbuf_init(&text, queue->allocator);
  rn_strbuf_printf(&text, "Shared queue '%.*s' has ", RN_STR_ARGS(queue->name));
  if (own->kind != spec->kind) {
    rn_strbuf_printf(&text, "type '%s' that does not match type of Node '%.*s': %s", own->op,
                     RN_STR_ARGS(node), op);
  } else if (own->capacity != spec->capacity) {
    rn_strbuf_printf(&text, "capacity %lld but requested capacity was %lld",
                     (long long)own->capacity, (long long)spec->capacity);
  } else if (!same_types(own, spec)) {
    rn_strbuf_append(&text, RN_STR("component types "));
    rn_print_types(&text, own->types, own->component_count);
    rn_strbuf_append(&text, RN_STR(" but requested component types were "));
    rn_print_types(&text, spec->types, spec->component_count);
  } else if (!same_shapes(own, spec)) {
    rn_strbuf_append(&text, RN_STR("component shapes "));
    print_shapes(&text, own->shapes, own->component_count);
    rn_strbuf_append(&text, RN_STR(" but requested component shapes were "));
    print_shapes(&text, spec->shapes, spec->component_count);
  } else if (own->min_after_dequeue != spec->min_after_dequeue) {
    rn_strbuf_printf(&text, "min_after_dequeue %lld but requested min_after_dequeue was %lld.",
                     (long long)own->min_after_dequeue, (long long)spec->min_after_dequeue);
  } else if ((spec->seed || spec->seed2) &&
             (own->seed != spec->seed || own->seed2 != spec->seed2)) {
    rn_strbuf_printf(&text, "random seeds (%lld, %lld) but requested seeds are (%lld, %lld).",
                     (long long)own->seed, (long long)own->seed2, (long long)spec->seed,
                     (long long)spec->seed2);
  } else {
    rn_strbuf_clear(&text);
    return RN_OK;
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Creation.
typedef struct queue_ops_make_t {
  const rn_kernel_init_t* init;
  const rn_queue_spec_t* spec;
} queue_ops_make_t;

static rn_status_t make_queue(void* arg, rn_str_t name, rn_resource_t** out) {
  const queue_ops_make_t* make = arg;
  return rn_queue_create(make->init->allocator, make->init->env, make->spec, name,
                         (rn_queue_t**)out);
}

static rn_status_t check_spec(const rn_queue_spec_t* spec, int32_t shape_count) {
  if (shape_count > 0 && shape_count != spec->component_count) {
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_default());
    rn_strbuf_append(&text, RN_STR("Different number of component types.  Types: "));
    rn_print_types(&text, spec->types, spec->component_count);
    rn_strbuf_append(&text, RN_STR(", Shapes: "));
    print_shapes(&text, spec->shapes, shape_count);
    return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
  }
  if (spec->kind == RN_QUEUE_PADDING && shape_count == 0)
    return rn_invalid_argument(
        "Shapes must be provided for all components, but received %d dtypes and 0 shapes.",
        spec->component_count);
  for (int32_t c = 0; spec->shapes && c < spec->component_count; ++c) {
    if (!rn_shape_has_rank(spec->shapes[c]) ||
        (spec->kind != RN_QUEUE_PADDING && !rn_shape_is_full(spec->shapes[c])))
      return rn_invalid_argument("The shape of component %d is not fully defined: %s", c,
                                 rn_shape_text(spec->shapes[c]).text);
  }
  if (spec->min_after_dequeue < 0)
    return rn_invalid_argument("min_after_dequeue %lld must be >= 0",
                               (long long)spec->min_after_dequeue);
  if (spec->capacity >= 0 && spec->kind == RN_QUEUE_SHUFFLE &&
      spec->min_after_dequeue >= spec->capacity)
    return rn_invalid_argument("min_after_dequeue %lld must be < capacity %lld",
                               (long long)spec->min_after_dequeue, (long long)spec->capacity);
  return RN_OK;
}

static rn_status_t find_queue(const rn_kernel_init_t* init, rn_queue_spec_t* spec,
                              int32_t shape_count, rn_handle_state_t* state) {
  RN_RETURN_IF_ERROR(check_spec(spec, shape_count));
  queue_ops_make_t make = {init, spec};
  RN_RETURN_IF_ERROR(rn_handle_state_init(state, init, RN_QUEUE_TYPE, make_queue, &make));
  return rn_queue_matches((rn_queue_t*)state->resource, spec, init->node, init->op->name);
}

static rn_status_t make_init(const rn_kernel_init_t* init, void* state, rn_queue_kind_t kind,
                             const char* op) {
  const rn_attr_value_t* types = rn_init_attr(init, "component_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "shapes");
  rn_queue_spec_t spec = {.kind = kind,
                          .op = op,
                          .capacity = rn_init_int(init, "capacity"),
                          .component_count = types->count,
                          .types = types->list_type,
                          .shapes = shapes->count ? shapes->list_shape : NULL};
  if (spec.capacity < 0) spec.capacity = -1;
  if (kind == RN_QUEUE_SHUFFLE) {
    spec.min_after_dequeue = rn_init_int(init, "min_after_dequeue");
    spec.seed = rn_init_int(init, "seed");
    spec.seed2 = rn_init_int(init, "seed2");
  }
  return find_queue(init, &spec, shapes->count, state);
}

// The elements of a priority queue start with the priority, which the attributes do not list.
static rn_status_t priority_init(const rn_kernel_init_t* init, void* state) {
  const rn_attr_value_t* types = rn_init_attr(init, "component_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "shapes");
  if (types->count >= INT16_MAX) return rn_invalid_argument("Too many components");
  rn_arena_t arena;
  rn_arena_init(&arena, init->allocator);
  size_t count = (size_t)types->count + 1;
  rn_dtype_t* all_types = NULL;
  rn_shape_t* all_shapes = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&arena, count, &all_types);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, (size_t)shapes->count + 1, &all_shapes);
  if (rn_ok(status)) {
    all_types[0] = RN_INT64;
    if (types->count) memcpy(all_types + 1, types->list_type, (count - 1) * sizeof *all_types);
    for (int32_t i = 0; i < shapes->count; ++i) all_shapes[i + 1] = shapes->list_shape[i];
    rn_queue_spec_t spec = {.kind = RN_QUEUE_PRIORITY,
                            .op = "PriorityQueue",
                            .capacity = rn_init_int(init, "capacity"),
                            .component_count = (int32_t)count,
                            .types = all_types,
                            .shapes = shapes->count || count == 1 ? all_shapes : NULL};
    if (spec.capacity < 0) spec.capacity = -1;
    status = find_queue(init, &spec, spec.shapes ? shapes->count + 1 : 0, state);
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t fifo_init(const rn_kernel_init_t* init, void* state) {
  return make_init(init, state, RN_QUEUE_FIFO, "FIFOQueue");
}
static rn_status_t shuffle_init(const rn_kernel_init_t* init, void* state) {
  return make_init(init, state, RN_QUEUE_SHUFFLE, "RandomShuffleQueue");
}
static rn_status_t padding_init(const rn_kernel_init_t* init, void* state) {
  return make_init(init, state, RN_QUEUE_PADDING, "PaddingFIFOQueue");
}

// Operations.
typedef struct queue_ops_verb_t {
  bool cancels;  // QueueClose
} queue_ops_verb_t;

static rn_status_t use_init(const rn_kernel_init_t* init, void* state) {
  (void)state;
  if (rn_op_attr_index(init->op, RN_STR("timeout_ms")) >= 0 &&
      rn_init_int(init, "timeout_ms") != -1)
    return rn_invalid_argument("Timeout not supported yet.");
  return RN_OK;
}

static rn_status_t close_init(const rn_kernel_init_t* init, void* state) {
  ((queue_ops_verb_t*)state)->cancels = rn_init_bool(init, "cancel_pending_enqueues");
  return RN_OK;
}

static rn_status_t queue_of(const rn_kernel_ctx_t* ctx, rn_queue_t** out) {
  return rn_handle_input(ctx, 0, RN_QUEUE_TYPE, (rn_resource_t**)out);
}

static rn_status_t signature_differs(const rn_kernel_ctx_t* ctx, const rn_queue_t* queue,
                                     bool is_enqueue, int skipped) {
  const rn_kernel_t* kernel = ctx->kernel;
  rn_strbuf_t text;
  rn_strbuf_init(&text, kernel->allocator);
  rn_strbuf_append(&text, RN_STR("Signature mismatch, have: "));
  rn_print_types(&text, kernel->input_types, kernel->input_count);
  rn_strbuf_append(&text, RN_STR("->"));
  rn_print_types(&text, kernel->output_types, kernel->output_count);
  rn_strbuf_append(&text, RN_STR(" expected: "));
  rn_print_types(&text, kernel->input_types, skipped);
  if (is_enqueue) {
    rn_strbuf_append(&text, RN_STR(", "));
    rn_print_types(&text, queue->spec.types, queue->spec.component_count);
    rn_strbuf_append(&text, RN_STR("->"));
  } else {
    rn_strbuf_append(&text, RN_STR("->"));
    rn_print_types(&text, queue->spec.types, queue->spec.component_count);
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Checks that the op's components match the queue's; the first |skipped| inputs are not components.
static rn_status_t check_signature(const rn_kernel_ctx_t* ctx, const rn_queue_t* queue,
                                   bool is_enqueue, int skipped) {
  const rn_kernel_t* kernel = ctx->kernel;
  const rn_dtype_t* types = is_enqueue ? kernel->input_types + skipped : kernel->output_types;
  int32_t count = is_enqueue ? kernel->input_count - skipped : kernel->output_count;
  bool fits = count == queue->spec.component_count;
  for (int32_t c = 0; fits && c < count; ++c) fits = types[c] == queue->spec.types[c];
  return fits ? RN_OK : signature_differs(ctx, queue, is_enqueue, skipped);
}

// Finds the queue and checks the signature; on failure ends the call and returns NULL.
static rn_queue_t* begin(rn_kernel_ctx_t* ctx, bool is_enqueue, int skipped) {
  rn_queue_t* queue = NULL;
  rn_status_t status = queue_of(ctx, &queue);
  if (rn_ok(status)) {
    status = check_signature(ctx, queue, is_enqueue, skipped);
    if (rn_ok(status)) return queue;
    rn_object_release(&queue->resource.object);
  }
  rn_done(ctx, status);
  return NULL;
}

static void enqueue(rn_kernel_ctx_t* ctx) {
  rn_queue_t* queue = begin(ctx, true, 1);
  if (!queue) return;
  rn_queue_enqueue(queue, ctx, 1);
  rn_object_release(&queue->resource.object);
}

static void enqueue_many(rn_kernel_ctx_t* ctx) {
  rn_queue_t* queue = begin(ctx, true, 1);
  if (!queue) return;
  rn_queue_enqueue_many(queue, ctx, 1);
  rn_object_release(&queue->resource.object);
}

static void dequeue(rn_kernel_ctx_t* ctx) {
  rn_queue_t* queue = begin(ctx, false, 1);
  if (!queue) return;
  rn_queue_dequeue(queue, ctx);
  rn_object_release(&queue->resource.object);
}

static void dequeue_several(rn_kernel_ctx_t* ctx, bool allows_fewer) {
  const rn_tensor_t* n = rn_in(ctx, 1);
  int64_t count = n->count == 1 ? *RN_DATA(n, const int32_t) : -1;
  if (count < 0) {
    rn_done(ctx, n->count == 1
                     ? rn_invalid_argument("Dequeue%sOp requested %lld < 0 elements",
                                           allows_fewer ? "UpTo" : "Many", (long long)count)
                     : rn_invalid_argument("n must be a scalar, got shape %s", rn_text_of(n).text));
    return;
  }
  rn_queue_t* queue = begin(ctx, false, 2);
  if (!queue) return;
  rn_queue_dequeue_many(queue, ctx, count, allows_fewer);
  rn_object_release(&queue->resource.object);
}

static void dequeue_many(rn_kernel_ctx_t* ctx) { dequeue_several(ctx, false); }
static void dequeue_up_to(rn_kernel_ctx_t* ctx) { dequeue_several(ctx, true); }

static void close_queue(rn_kernel_ctx_t* ctx) {
  rn_queue_t* queue = NULL;
  rn_status_t status = queue_of(ctx, &queue);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  rn_queue_close(queue, ctx, ((const queue_ops_verb_t*)ctx->state)->cancels);
  rn_object_release(&queue->resource.object);
}

static rn_status_t queue_size(rn_kernel_ctx_t* ctx) {
  rn_queue_t* queue = NULL;
  RN_RETURN_IF_ERROR(queue_of(ctx, &queue));
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status)) *RN_DATA(out, int32_t) = (int32_t)rn_queue_size(queue);
  rn_object_release(&queue->resource.object);
  return status;
}

static rn_status_t queue_is_closed(rn_kernel_ctx_t* ctx) {
  rn_queue_t* queue = NULL;
  RN_RETURN_IF_ERROR(queue_of(ctx, &queue));
  rn_tensor_t* out = NULL;
  rn_status_t status = rn_output(ctx, 0, RN_SHAPE_SCALAR, &out);
  if (rn_ok(status)) *RN_DATA(out, bool) = rn_queue_is_closed(queue);
  rn_object_release(&queue->resource.object);
  return status;
}

// FakeQueue: a queue resource presented as a reference.
typedef struct queue_ops_fake_t {
  rn_mutex_t mutex;
  rn_variable_t* ref;  // Retained; created by the first step
  bool is_made;
} queue_ops_fake_t;

static rn_status_t fake_init(const rn_kernel_init_t* init, void* state) {
  (void)init;
  queue_ops_fake_t* fake = state;
  rn_mutex_init(&fake->mutex);
  fake->is_made = true;
  return RN_OK;
}

static void fake_destroy(void* state) {
  queue_ops_fake_t* fake = state;
  if (fake->ref) rn_object_release(&fake->ref->resource.object);
  if (fake->is_made) rn_mutex_destroy(&fake->mutex);
}

static rn_status_t fake_queue(rn_kernel_ctx_t* ctx) {
  queue_ops_fake_t* fake = ctx->state;
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(rn_handle_input(ctx, 0, RN_QUEUE_TYPE, &resource));
  const rn_handle_t* handle = *RN_DATA(rn_in(ctx, 0), rn_handle_t*);
  rn_status_t status = RN_OK;
  rn_mutex_lock(&fake->mutex);
  if (!fake->ref)
    status = rn_handle_ref_create(ctx->kernel->allocator, handle->container, handle->name, resource,
                                  &fake->ref);
  rn_variable_t* ref = fake->ref;
  rn_mutex_unlock(&fake->mutex);
  rn_object_release(&resource->object);
  RN_RETURN_IF_ERROR(status);
  rn_set_output_ref(ctx, 0, ref);
  return RN_OK;
}

#define MAKE(name, init_)                                                                       \
  {                                                                                             \
    .op = name, .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS,                                \
    .state_size = sizeof(rn_handle_state_t), .init = init_, .destroy = rn_handle_state_destroy, \
    .compute = rn_handle_state_compute                                                          \
  }
#define USE(name, flags_, init_, function)                                                \
  {                                                                                       \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(queue_ops_verb_t), \
    .init = init_, .compute_async = function                                              \
  }
#define ASK(name, function) \
  { .op = name, .device = "CPU", .compute = function }
#define BOTH(row, name, ...) row(name, __VA_ARGS__), row(name "V2", __VA_ARGS__)

static const rn_kernel_def_t rows[] = {
    BOTH(MAKE, "FIFOQueue", fifo_init),
    BOTH(MAKE, "RandomShuffleQueue", shuffle_init),
    BOTH(MAKE, "PaddingFIFOQueue", padding_init),
    BOTH(MAKE, "PriorityQueue", priority_init),
    BOTH(USE, "QueueEnqueue", RN_KERNEL_KEEPS_INPUTS, use_init, enqueue),
    BOTH(USE, "QueueEnqueueMany", RN_KERNEL_KEEPS_INPUTS, use_init, enqueue_many),
    BOTH(USE, "QueueDequeue", RN_KERNEL_OWN_OUTPUTS, use_init, dequeue),
    BOTH(USE, "QueueDequeueMany", RN_KERNEL_OWN_OUTPUTS, use_init, dequeue_many),
    BOTH(USE, "QueueDequeueUpTo", RN_KERNEL_OWN_OUTPUTS, use_init, dequeue_up_to),
    BOTH(USE, "QueueClose", 0, close_init, close_queue),
    BOTH(ASK, "QueueSize", queue_size),
    BOTH(ASK, "QueueIsClosed", queue_is_closed),
    {.op = "FakeQueue",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(queue_ops_fake_t),
     .init = fake_init,
     .destroy = fake_destroy,
     .compute = fake_queue},
};
RN_KERNEL_FAMILY(cpu_queue, rows);

// OneShotIterator, which makes its dataset itself on first use.
#include "kernels/cpu/dataset/walk.h"
#include "kernels/cpu/state/handle.h"

typedef struct one_shot_waiting_t {
  rn_kernel_ctx_t* ctx;
  struct one_shot_waiting_t* next;
} one_shot_waiting_t;

typedef struct one_shot_t {
  rn_handle_state_t handle;  // first
  rn_functions_t* functions;
  rn_arena_t arena;
  rn_allocator_t allocator;
  rn_attr_value_t factory;
  rn_mutex_t mutex;  // guards what follows
  enum { NOT_BEGUN, UNDER_WAY, MADE } progress;
  one_shot_waiting_t* waiting;
} one_shot_t;

static rn_status_t make_root(void* arg, rn_str_t name, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  (void)name;
  const rn_attr_value_t* types = rn_init_attr(init, "output_types");
  const rn_attr_value_t* shapes = rn_init_attr(init, "output_shapes");
  return rn_data_root_create(init->allocator, types->count, types->list_type,
                             shapes->count == types->count ? shapes->list_shape : NULL,
                             (rn_data_root_t**)out);
}

static rn_status_t one_shot_init(const rn_kernel_init_t* init, void* state) {
  one_shot_t* own = state;
  const rn_attr_value_t* factory = rn_init_attr(init, "dataset_factory");
  if (!init->functions || factory->kind != RN_ATTR_FUNC || !factory->func)
    return rn_failed_precondition("The runtime has no function library: node '%.*s' (%s)",
                                  RN_STR_ARGS(init->node), init->op->name);
  own->functions = init->functions;
  own->allocator = init->allocator;
  rn_arena_init(&own->arena, init->allocator);
  rn_mutex_init(&own->mutex);
  RN_RETURN_IF_ERROR(rn_attr_value_copy(&own->arena, factory, &own->factory));
  return rn_handle_state_init(&own->handle, init, RN_DATA_ITERATOR_TYPE, make_root,
                              (void*)(uintptr_t)init);
}

static void one_shot_destroy(void* state) {
  one_shot_t* own = state;
  if (!own->functions) return;
  rn_handle_state_destroy(&own->handle);
  rn_attr_value_clear(&own->factory);
  rn_arena_clear(&own->arena);
  rn_mutex_destroy(&own->mutex);
}

// The call of the factory function.
typedef struct making_t {
  rn_function_call_t call;  // first
  one_shot_t* own;
  rn_kernel_ctx_t* ctx;
  rn_instance_t* instance;
  rn_tensor_t result;
} making_t;

static void give_handle(rn_kernel_ctx_t* ctx, rn_status_t status) {
  if (rn_ok(status)) status = rn_handle_state_compute(ctx);
  rn_done(ctx, status);
}

static rn_status_t use_dataset(making_t* making) {
  rn_dataset_t* dataset = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(&making->result, &dataset));
  return rn_data_root_make((rn_data_root_t*)making->own->handle.resource, dataset,
                           making->ctx->step->call_depth);
}

static void making_end(making_t* making, rn_status_t status) {
  one_shot_t* own = making->own;
  rn_kernel_ctx_t* ctx = making->ctx;
  rn_tensor_clear(&making->result);
  rn_function_forget(own->functions, making->instance);
  rn_allocator_t allocator = own->allocator;
  RN_FREE(allocator, making);
  rn_mutex_lock(&own->mutex);
  own->progress = rn_ok(status) ? MADE : NOT_BEGUN;  // after a failure the next call retries
  one_shot_waiting_t* waiting = own->waiting;
  own->waiting = NULL;
  rn_mutex_unlock(&own->mutex);
  while (waiting) {
    one_shot_waiting_t* next = waiting->next;
    rn_kernel_ctx_t* other = waiting->ctx;
    RN_FREE(allocator, waiting);
    give_handle(other, rn_status_copy(status));
    waiting = next;
  }
  give_handle(ctx, status);
}

static void making_done(rn_function_call_t* call, rn_status_t status) {
  making_t* making = (making_t*)call;
  if (rn_ok(status)) status = use_dataset(making);
  making_end(making, status);
}

static void begin_making(one_shot_t* own, rn_kernel_ctx_t* ctx) {
  making_t* making = NULL;
  rn_status_t status = RN_NEW(own->allocator, &making);
  if (!rn_ok(status)) {
    rn_mutex_lock(&own->mutex);
    own->progress = NOT_BEGUN;
    rn_mutex_unlock(&own->mutex);
    rn_done(ctx, status);
    return;
  }
  making->own = own;
  making->ctx = ctx;
  status = rn_function_prepare(own->functions, own->factory.func, RN_STR(""), &making->instance);
  if (rn_ok(status) && (making->instance->arg_count != 0 || making->instance->result_count != 1))
    status = rn_invalid_argument(
        "`dataset_factory` must be a function of no arguments that returns one dataset.");
  if (!rn_ok(status)) {
    making_end(making, status);
    return;
  }
  making->call =
      (rn_function_call_t){.step = ctx->step, .results = &making->result, .done = making_done};
  rn_function_run(own->functions, making->instance, &making->call);
}

static void one_shot_compute(rn_kernel_ctx_t* ctx) {
  one_shot_t* own = ctx->state;
  one_shot_waiting_t* waiting = NULL;
  rn_status_t status = RN_OK;
  rn_mutex_lock(&own->mutex);
  int progress = own->progress;
  if (progress == NOT_BEGUN) own->progress = UNDER_WAY;
  if (progress == UNDER_WAY) {
    status = RN_NEW(own->allocator, &waiting);
    if (rn_ok(status)) {
      *waiting = (one_shot_waiting_t){ctx, own->waiting};
      own->waiting = waiting;
    }
  }
  rn_mutex_unlock(&own->mutex);
  if (progress == NOT_BEGUN)
    begin_making(own, ctx);
  else if (progress == MADE || !rn_ok(status))
    give_handle(ctx, status);
}

static const rn_kernel_def_t rows[] = {
    {.op = "OneShotIterator",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .state_size = sizeof(one_shot_t),
     .init = one_shot_init,
     .destroy = one_shot_destroy,
     .compute_async = one_shot_compute},
};
RN_KERNEL_FAMILY(cpu_data_one_shot, rows);

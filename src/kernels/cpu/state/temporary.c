// Temporary variables, which live within a step.
#include <stdio.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

#define CONTAINER RN_STR("_temporary")
#define GRAVEYARD RN_STR("_destroyed")

typedef struct temporary_t {
  rn_arena_t arena;  // holds the name and the shape
  rn_str_t name;
  rn_dtype_t dtype;
  rn_shape_t shape;
} temporary_t;

static rn_status_t name_init(const rn_kernel_init_t* init, temporary_t* state) {
  rn_arena_init(&state->arena, init->allocator);
  rn_str_t name = rn_init_string(init, "var_name");
  return rn_arena_str(&state->arena, name.size ? name : init->node, &state->name);
}

static rn_status_t make_init(const rn_kernel_init_t* init, void* state) {
  temporary_t* temporary = state;
  RN_RETURN_IF_ERROR(name_init(init, temporary));
  temporary->dtype = rn_init_type(init, "dtype");
  return rn_shape_copy(&temporary->arena, rn_init_attr(init, "shape")->shape, &temporary->shape);
}

static rn_status_t destroy_init(const rn_kernel_init_t* init, void* state) {
  return name_init(init, state);
}

static void temporary_destroy(void* state) { rn_arena_clear(&((temporary_t*)state)->arena); }

// Each iteration of a loop has its own variables.
static rn_status_t key_of(const rn_kernel_ctx_t* ctx, rn_str_t name, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "%.*s/frame:%llu/iteration:%lld", RN_STR_ARGS(name),
                   (unsigned long long)ctx->frame, (long long)ctx->iteration);
  return rn_strbuf_status(out);
}

typedef struct temporary_make_t {
  rn_kernel_ctx_t* ctx;
  rn_str_t name;
  rn_dtype_t dtype;
  rn_shape_t shape;
  bool is_new;
} temporary_make_t;

static rn_status_t make_variable(void* arg, rn_resource_t** out) {
  temporary_make_t* make = arg;
  const rn_kernel_t* kernel = make->ctx->kernel;
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_create(kernel->allocator, make->dtype, make->name, &variable));
  rn_status_t status =
      rn_tensor_create(kernel->device_memory, make->dtype, make->shape, &variable->value);
  if (rn_ok(status) && rn_dtype_is_plain(make->dtype))
    status = rn_ctx_zero(make->ctx, &variable->value);
  if (!rn_ok(status)) {
    rn_object_release(&variable->resource.object);
    return status;
  }
  make->is_new = true;
  *out = &variable->resource;
  return RN_OK;
}

rn_status_t rn_temporary_make(rn_kernel_ctx_t* ctx, rn_str_t name, rn_dtype_t dtype,
                              rn_shape_t shape) {
  if (!rn_shape_is_full(shape))
    return rn_invalid_argument("The shape of a temporary variable must be known, got %s",
                               rn_shape_text(shape).text);
  rn_resources_t* table = NULL;
  RN_RETURN_IF_ERROR(rn_step_get_resources(ctx->step, &table));
  rn_strbuf_t key;
  rn_strbuf_init(&key, ctx->kernel->allocator);
  rn_resource_t* variable = NULL;
  temporary_make_t make = {.ctx = ctx, .name = name, .dtype = dtype, .shape = shape};
  rn_status_t status = key_of(ctx, name, &key);
  if (rn_ok(status))
    status = rn_resources_get(table, CONTAINER, rn_strbuf_view(&key), RN_VARIABLE_TYPE,
                              make_variable, &make, &variable);
  if (rn_ok(status) && !make.is_new)
    status = rn_already_exists("Resource %s already exists.", rn_strbuf_view(&key).data);
  rn_strbuf_clear(&key);
  // The step's table retains it.
  if (rn_ok(status)) rn_set_output_ref(ctx, 0, (rn_variable_t*)variable);
  if (variable) rn_object_release(&variable->object);
  return status;
}

static rn_status_t temporary_variable(rn_kernel_ctx_t* ctx) {
  const temporary_t* temporary = ctx->state;
  return rn_temporary_make(ctx, temporary->name, temporary->dtype, temporary->shape);
}

static rn_status_t retain(void* arg, rn_resource_t** out) {
  *out = arg;
  rn_object_retain(&(*out)->object);
  return RN_OK;
}

// Other nodes may still have references, which retain nothing. So until the step ends the variable
// stays, without its value, under a name that is never looked up.
static rn_status_t bury(rn_resources_t* table, rn_resource_t* variable) {
  rn_resource_t* kept = NULL;
  char name[32];
  snprintf(name, sizeof name, "%p", (void*)variable);
  RN_RETURN_IF_ERROR(
      rn_resources_get(table, GRAVEYARD, rn_str(name), RN_VARIABLE_TYPE, retain, variable, &kept));
  rn_object_release(&kept->object);
  return RN_OK;
}

rn_status_t rn_temporary_take(rn_kernel_ctx_t* ctx, int i, rn_str_t name) {
  rn_resources_t* table = NULL;
  RN_RETURN_IF_ERROR(rn_step_get_resources(ctx->step, &table));
  rn_strbuf_t key;
  rn_strbuf_init(&key, ctx->kernel->allocator);
  rn_resource_t* resource = NULL;
  rn_tensor_t value = {0};
  rn_status_t status = key_of(ctx, name, &key);
  if (rn_ok(status))
    status = rn_resources_get(table, CONTAINER, rn_strbuf_view(&key), RN_VARIABLE_TYPE, NULL, NULL,
                              &resource);
  if (rn_ok(status) && (rn_variable_t*)resource != rn_in_variable(ctx, i))
    status = rn_invalid_argument("The input is not the temporary variable named by the node");
  if (rn_ok(status)) status = bury(table, resource);
  if (rn_ok(status))
    status = rn_resources_remove(table, CONTAINER, rn_strbuf_view(&key), RN_VARIABLE_TYPE);
  if (rn_ok(status)) {
    rn_variable_t* variable = (rn_variable_t*)resource;
    rn_mutex_lock(&variable->mutex);
    value = variable->value;
    variable->value = (rn_tensor_t){0};
    rn_mutex_unlock(&variable->mutex);
    rn_set_output(ctx, 0, &value);
  }
  if (resource) rn_object_release(&resource->object);
  rn_strbuf_clear(&key);
  return status;
}

static rn_status_t destroy_temporary(rn_kernel_ctx_t* ctx) {
  return rn_temporary_take(ctx, 0, ((const temporary_t*)ctx->state)->name);
}

#define ROW(name, attr, init_, function)                                                          \
  {                                                                                               \
    .op = name, .device = "CPU", .types = {{attr, RN_TYPES_ALL}}, .flags = RN_KERNEL_OWN_OUTPUTS, \
    .state_size = sizeof(temporary_t), .init = init_, .destroy = temporary_destroy,               \
    .compute = function                                                                           \
  }

static const rn_kernel_def_t rows[] = {
    ROW("TemporaryVariable", "dtype", make_init, temporary_variable),
    ROW("DestroyTemporaryVariable", "T", destroy_init, destroy_temporary),
};
RN_KERNEL_FAMILY(cpu_temporary, rows);

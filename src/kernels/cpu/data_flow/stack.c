// Stacks of tensors, which live as long as a step; loop gradients save the values of iterations
// there.
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"

#define STACK_TYPE "Stack"

typedef struct rn_stack_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_str_t name;  // Owned
  rn_dtype_t dtype;
  int64_t limit;     // < 0 if unlimited
  rn_mutex_t mutex;  // guards what follows
  bool is_closed;
  rn_tensor_t* items;  // Owned
  int64_t count, capacity;
} rn_stack_t;

static void stack_clear_locked(rn_stack_t* stack) {
  while (stack->count > 0) rn_tensor_clear(&stack->items[--stack->count]);
  RN_FREE_ARRAY(stack->allocator, stack->items, stack->capacity);
  stack->items = NULL;
  stack->capacity = 0;
}

static void stack_destroy(rn_object_t* object) {
  rn_stack_t* stack = (rn_stack_t*)object;
  stack_clear_locked(stack);
  rn_mutex_destroy(&stack->mutex);
  if (stack->name.data) rn_free(stack->allocator, (char*)stack->name.data, stack->name.size + 1);
  RN_FREE(stack->allocator, stack);
}

// Creates a new stack per call. Its name is the node's plus a number that is unique on the device,
// because two nodes may request the same name.
typedef struct stack_maker_t {
  rn_allocator_t allocator;
  rn_dtype_t dtype;
  char* name;  // Owned
  size_t name_size;
} stack_maker_t;

static rn_status_t maker_init(const rn_kernel_init_t* init, void* state) {
  stack_maker_t* maker = state;
  rn_str_t name = rn_init_string(init, "stack_name");
  if (!name.size) name = init->node;
  maker->allocator = init->allocator;
  maker->dtype = rn_init_type(init, "elem_type");
  maker->name_size = name.size;
  return rn_str_dup(init->allocator, name, &maker->name);
}

static void maker_destroy(void* state) {
  stack_maker_t* maker = state;
  if (maker->name) rn_free(maker->allocator, maker->name, maker->name_size + 1);
}

static rn_status_t stack_create(rn_kernel_ctx_t* ctx, int64_t limit, rn_stack_t** out) {
  const stack_maker_t* maker = ctx->state;
  *out = NULL;
  rn_allocator_t allocator = maker->allocator;
  rn_stack_t* stack = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &stack));
  stack->resource = (rn_resource_t){{.refs = 1, .destroy = stack_destroy}, STACK_TYPE};
  stack->allocator = allocator;
  stack->dtype = maker->dtype;
  stack->limit = limit;
  rn_mutex_init(&stack->mutex);
  rn_strbuf_t name;
  rn_strbuf_init(&name, allocator);
  rn_strbuf_printf(&name, "%.*s_%lld", (int)maker->name_size, maker->name,
                   (long long)rn_resources_new_number(ctx->kernel->resources));
  rn_status_t status = rn_strbuf_status(&name);
  char* copy = NULL;
  if (rn_ok(status)) status = rn_str_dup(allocator, rn_strbuf_view(&name), &copy);
  if (rn_ok(status)) stack->name = rn_str_n(copy, name.size);
  rn_strbuf_clear(&name);
  if (!rn_ok(status)) {
    rn_object_release(&stack->resource.object);
    return status;
  }
  *out = stack;
  return RN_OK;
}

// The handle retains the stack, and the step retains the handle.
static rn_status_t make_stack_v2(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* limit = rn_in(ctx, 0);
  if (limit->rank != 0)
    return rn_invalid_argument("Stack size must be a scalar, but had shape: %s",
                               rn_text_of(limit).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_stack_t* stack = NULL;
  RN_RETURN_IF_ERROR(stack_create(ctx, rn_int_at(limit, 0), &stack));
  rn_handle_t* handle = NULL;
  rn_status_t status =
      rn_handle_create(stack->allocator, ctx->kernel->device->name, RN_STR("_stacks"), stack->name,
                       RN_INVALID, RN_SHAPE_UNKNOWN, &stack->resource, &handle);
  rn_object_release(&stack->resource.object);
  RN_RETURN_IF_ERROR(status);
  *RN_DATA(out, rn_handle_t*) = handle;
  return RN_OK;
}

static rn_status_t share(void* arg, rn_resource_t** out) {
  *out = arg;
  rn_object_retain(&(*out)->object);
  return RN_OK;
}

// The reference form points to a variable in the step's table.
static rn_status_t make_stack(rn_kernel_ctx_t* ctx) {
  rn_resources_t* table = NULL;
  RN_RETURN_IF_ERROR(rn_step_get_resources(ctx->step, &table));
  rn_stack_t* stack = NULL;
  RN_RETURN_IF_ERROR(stack_create(ctx, -1, &stack));
  rn_variable_t* ref = NULL;
  rn_status_t status = rn_handle_ref_create(stack->allocator, RN_STR("_stacks"), stack->name,
                                            &stack->resource, &ref);
  rn_resource_t* kept = NULL;
  if (rn_ok(status)) {
    // Two nodes in two functions may have the same name, so the key includes the address.
    char key[64];
    int size = snprintf(key, sizeof key, "stack_%p", (void*)stack);
    status = rn_resources_get(table, RN_STR("_stacks"), rn_str_n(key, (size_t)size),
                              RN_VARIABLE_TYPE, share, &ref->resource, &kept);
  }
  if (rn_ok(status)) {
    rn_set_output_ref(ctx, 0, ref);
    rn_object_release(&kept->object);
  }
  if (ref) rn_object_release(&ref->resource.object);
  rn_object_release(&stack->resource.object);
  return status;
}

static rn_status_t closed(const rn_stack_t* stack) {
  return rn_invalid_argument("Stack[%.*s] has already been closed.", RN_STR_ARGS(stack->name));
}

static rn_status_t stack_of(const rn_kernel_ctx_t* ctx, rn_stack_t** out) {
  if (rn_in(ctx, 0)->dtype == RN_RESOURCE) RN_RETURN_IF_ERROR(rn_handle_check_device(ctx, 0));
  return rn_handle_input(ctx, 0, STACK_TYPE, (rn_resource_t**)out);
}

static rn_status_t push_locked(rn_stack_t* stack, rn_tensor_t* value) {
  if (stack->is_closed) return closed(stack);
  if (stack->limit >= 0 && stack->count >= stack->limit)
    return rn_invalid_argument("Stack[%.*s] overflowed its max_size (%lld)",
                               RN_STR_ARGS(stack->name), (long long)stack->limit);
  if (stack->count == stack->capacity) {
    int64_t larger = stack->capacity ? stack->capacity * 2 : 16;
    rn_tensor_t* items = NULL;
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(stack->allocator, (size_t)larger, &items));
    if (stack->count) memcpy(items, stack->items, (size_t)stack->count * sizeof *items);
    RN_FREE_ARRAY(stack->allocator, stack->items, stack->capacity);
    stack->items = items;
    stack->capacity = larger;
  }
  stack->items[stack->count++] = *value;
  return RN_OK;
}

static rn_status_t push(rn_kernel_ctx_t* ctx) {
  rn_stack_t* stack = NULL;
  RN_RETURN_IF_ERROR(stack_of(ctx, &stack));
  const rn_tensor_t* value = rn_in(ctx, 1);
  rn_tensor_t kept = {0}, passed = {0};
  rn_status_t status = RN_OK;
  if (value->dtype != stack->dtype)
    status = rn_invalid_argument("Must have type %d but got %d", stack->dtype, value->dtype);
  if (rn_ok(status)) status = rn_ctx_keep(ctx, value, &kept);
  if (rn_ok(status)) status = rn_tensor_share(&kept, &passed);
  if (rn_ok(status)) {
    rn_mutex_lock(&stack->mutex);
    status = push_locked(stack, &kept);
    rn_mutex_unlock(&stack->mutex);
    if (!rn_ok(status))
      rn_tensor_clear(&passed);
    else
      kept = (rn_tensor_t){0};
  }
  rn_tensor_clear(&kept);
  if (rn_ok(status)) rn_set_output(ctx, 0, &passed);
  rn_object_release(&stack->resource.object);
  return status;
}

static rn_status_t pop(rn_kernel_ctx_t* ctx) {
  rn_stack_t* stack = NULL;
  RN_RETURN_IF_ERROR(stack_of(ctx, &stack));
  rn_tensor_t value = {0};
  rn_status_t status = RN_OK;
  rn_mutex_lock(&stack->mutex);
  if (stack->is_closed)
    status = closed(stack);
  else if (stack->count == 0)
    status =
        rn_invalid_argument("Stack[%.*s] is empty when calling Pop().", RN_STR_ARGS(stack->name));
  else
    value = stack->items[--stack->count];
  rn_mutex_unlock(&stack->mutex);
  if (rn_ok(status) && value.dtype != rn_dtype_base(ctx->kernel->output_types[0])) {
    status = rn_invalid_argument("The stack holds %s, not %s", rn_dtype_name(value.dtype),
                                 rn_dtype_name(ctx->kernel->output_types[0]));
    rn_tensor_clear(&value);
  }
  if (rn_ok(status)) rn_set_output(ctx, 0, &value);
  rn_object_release(&stack->resource.object);
  return status;
}

static rn_status_t close_stack(rn_kernel_ctx_t* ctx) {
  rn_stack_t* stack = NULL;
  RN_RETURN_IF_ERROR(stack_of(ctx, &stack));
  rn_mutex_lock(&stack->mutex);
  stack->is_closed = true;
  stack_clear_locked(stack);
  rn_mutex_unlock(&stack->mutex);
  rn_object_release(&stack->resource.object);
  return RN_OK;
}

#define MAKE(name, flags_, function)                                                      \
  {                                                                                       \
    .op = name, .device = "CPU", .types = {{"elem_type", RN_TYPES_ALL}}, .flags = flags_, \
    .state_size = sizeof(stack_maker_t), .init = maker_init, .destroy = maker_destroy,    \
    .compute = function                                                                   \
  }
#define USE(name, attr, flags_, function)                                          \
  {                                                                                \
    .op = name, .device = "CPU", .types = {{attr, RN_TYPES_ALL}}, .flags = flags_, \
    .compute = function                                                            \
  }

static const rn_kernel_def_t rows[] = {
    MAKE("Stack", RN_KERNEL_OWN_OUTPUTS, make_stack),
    MAKE("StackV2", 0, make_stack_v2),
    USE("StackPush", "T", RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS, push),
    USE("StackPushV2", "T", RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS, push),
    USE("StackPop", "elem_type", RN_KERNEL_OWN_OUTPUTS, pop),
    USE("StackPopV2", "elem_type", RN_KERNEL_OWN_OUTPUTS, pop),
    {.op = "StackClose", .device = "CPU", .compute = close_stack},
    {.op = "StackCloseV2", .device = "CPU", .compute = close_stack},
};
RN_KERNEL_FAMILY(cpu_stack, rows);

// Collective ops over a communicator: a member of a group that numbers its instances itself.
#include <stdatomic.h>
#include <stdio.h>

#include "device/device.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/collective/member.h"
#include "kernels/cpu/state/handle.h"
#include "kernels/kernel_rows.h"
#include "tensor/print.h"

#define COMMUNICATOR_TYPE "CollectiveGroup"
#define CONTAINER RN_STR("collective_op_group")
// Instance numbers have 21 bits.
#define MAX_INSTANCE ((1 << 21) - 1)

typedef struct communicator_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  int32_t group_key, group_size, rank;
  float timeout_seconds;
  char hint[16];  // of all its collectives; known ones are short
  _Atomic uint32_t instances;
} communicator_t;

static void communicator_destroy(rn_object_t* object) {
  communicator_t* communicator = (communicator_t*)object;
  RN_FREE(communicator->allocator, communicator);
}

static rn_status_t make_communicator(void* arg, rn_resource_t** out) {
  communicator_t* like = arg;
  communicator_t* communicator = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(like->allocator, &communicator));
  *communicator = *like;
  communicator->resource =
      (rn_resource_t){{.refs = 1, .destroy = communicator_destroy}, COMMUNICATOR_TYPE};
  like->resource.type = COMMUNICATOR_TYPE;  // this call has made it
  *out = &communicator->resource;
  return RN_OK;
}

// CollectiveInitializeCommunicator.

static rn_status_t take_number(const rn_kernel_ctx_t* ctx, int i, const char* name, int32_t* out) {
  const rn_tensor_t* input = rn_in(ctx, i);
  if (input->rank != 0)
    return rn_invalid_argument(
        "Unexpected dimensions on input %s. It shoulbe a scalar, got tensor with shape %s", name,
        rn_text_of(input).text);
  *out = *RN_DATA(input, const int32_t);
  return RN_OK;
}

static rn_status_t take_member(const rn_kernel_ctx_t* ctx, communicator_t* like) {
  RN_RETURN_IF_ERROR(take_number(ctx, 2, "group_size", &like->group_size));
  RN_RETURN_IF_ERROR(take_number(ctx, 0, "group_key", &like->group_key));
  RN_RETURN_IF_ERROR(take_number(ctx, 1, "rank", &like->rank));
  if (like->group_size <= 0)
    return rn_invalid_argument("group_size must be positive integer but got %d", like->group_size);
  if (like->rank < 0)
    return rn_invalid_argument("rank must be non-negative integer but got %d", like->rank);
  if (like->rank >= like->group_size)
    return rn_invalid_argument("rank must be less than group size but got %d >= %d", like->rank,
                               like->group_size);
  return RN_OK;
}

static rn_status_t make_handle(rn_kernel_ctx_t* ctx, communicator_t* like, rn_tensor_t* out) {
  char name[32];
  snprintf(name, sizeof name, "%d:r%04d", like->group_key, like->rank);
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(rn_resources_get(ctx->kernel->resources, CONTAINER, rn_str(name),
                                      COMMUNICATOR_TYPE, make_communicator, like, &resource));
  rn_handle_t* handle = NULL;
  rn_status_t status =
      like->resource.type
          ? rn_handle_create(ctx->kernel->allocator, ctx->kernel->device->name, CONTAINER,
                             rn_str(name), RN_INVALID, RN_SHAPE_UNKNOWN, resource, &handle)
          : rn_already_exists("Resource collective_op_group/%s/" COMMUNICATOR_TYPE, name);
  rn_object_release(&resource->object);
  if (rn_ok(status)) status = rn_handle_tensor(ctx->kernel->host_memory, handle, out);
  return status;
}

static void on_joined(rn_collective_call_t* call, rn_status_t status) {
  rn_kernel_ctx_t* ctx = call->ctx;
  const rn_collective_attrs_t* attrs = ctx->state;
  communicator_t like = {.allocator = ctx->kernel->allocator,
                         .group_key = call->part.group_key,
                         .group_size = call->part.group_size,
                         .rank = call->part.rank,
                         .timeout_seconds = attrs->timeout_seconds};
  snprintf(like.hint, sizeof like.hint, "%.*s", RN_STR_ARGS(attrs->like.hint));
  rn_tensor_t handle = {0};
  if (rn_ok(status)) status = make_handle(ctx, &like, &handle);
  if (rn_ok(status)) rn_set_output(ctx, 0, &handle);
  RN_FREE(ctx->kernel->allocator, call);
  rn_done(ctx, status);
}

static rn_status_t join_init(const rn_kernel_init_t* init, void* state) {
  return rn_collective_attrs_init(init, RN_COLLECTIVE_JOIN, state);
}

static void join_compute(rn_kernel_ctx_t* ctx) {
  communicator_t like = {0};
  rn_collective_call_t* call = NULL;
  rn_status_t status = rn_collective_call_create(ctx, ctx->state, NULL, &call);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  status = take_member(ctx, &like);
  call->on_done = on_joined;
  call->part.group_key = like.group_key;
  call->part.group_size = like.group_size;
  call->part.rank = like.rank;
  rn_collective_call_start(call, status);
}

// V3.

static rn_status_t reduce_init(const rn_kernel_init_t* init, void* state) {
  return rn_collective_attrs_init(init, RN_COLLECTIVE_REDUCE, state);
}

static rn_status_t all_to_all_init(const rn_kernel_init_t* init, void* state) {
  return rn_collective_attrs_init(init, RN_COLLECTIVE_ALL_TO_ALL, state);
}

static rn_status_t take_communicator(rn_kernel_ctx_t* ctx, rn_collective_call_t* call) {
  rn_resource_t* resource = NULL;
  if (rn_in(ctx, 2)->count) return rn_unimplemented("Group assignments are not supported yet.");
  RN_RETURN_IF_ERROR(
      rn_handle_resource(rn_in(ctx, 1), ctx->kernel->resources, COMMUNICATOR_TYPE, &resource));
  communicator_t* communicator = (communicator_t*)resource;
  call->part.group_key = communicator->group_key;
  call->part.group_size = communicator->group_size;
  call->part.rank = communicator->rank;
  call->part.hint = rn_str(communicator->hint);
  call->part.instance_key = (int32_t)(communicator->instances++ & MAX_INSTANCE);
  const rn_env_t* env = ctx->step->env;
  if (!call->part.deadline_ns && communicator->timeout_seconds > 0)
    call->part.deadline_ns =
        env->now_ns(env->self) + (int64_t)((double)communicator->timeout_seconds * 1e9);
  return RN_OK;
}

static void v3_compute(rn_kernel_ctx_t* ctx) {
  rn_collective_call_t* call = NULL;
  rn_status_t status = rn_collective_call_create(ctx, ctx->state, rn_in(ctx, 0), &call);
  if (rn_ok(status))
    rn_collective_call_start(call, take_communicator(ctx, call));
  else
    rn_done(ctx, status);
}

// CollectiveAssignGroupV2.

static rn_status_t check_scalar(const rn_kernel_ctx_t* ctx, int i, const char* name) {
  if (rn_in(ctx, i)->rank == 0) return RN_OK;
  return rn_invalid_argument("%s must be a scalar, but received tensor of shape: %s", name,
                             rn_text_of(rn_in(ctx, i)).text);
}

static rn_status_t put_int(rn_kernel_ctx_t* ctx, int i, int32_t value) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int32_t) = value;
  return RN_OK;
}

static rn_status_t not_found(const rn_tensor_t* groups, int32_t device) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text,
                   "device_index %d is not found in group_assignment Tensor<type: int32 shape: %s "
                   "values: ",
                   device, rn_text_of(groups).text);
  rn_print_values(&text, groups, 3);
  rn_strbuf_append(&text, RN_STR(">"));
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t assign_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* groups = rn_in(ctx, 0);
  if (groups->rank != 2)
    return rn_invalid_argument(
        "group_assignment must be a 2-d Tensor, but received tensor of "
        "shape: %s",
        rn_text_of(groups).text);
  RN_RETURN_IF_ERROR(check_scalar(ctx, 1, "device_index"));
  RN_RETURN_IF_ERROR(check_scalar(ctx, 2, "base_key"));
  int32_t device = *RN_DATA(rn_in(ctx, 1), const int32_t);
  uint32_t base = *RN_DATA(rn_in(ctx, 2), const uint32_t);
  int64_t columns = rn_tensor_dim(groups, 1), at = 0;
  while (at < groups->count && RN_DATA(groups, const int32_t)[at] != device) at++;
  if (at == groups->count) return not_found(groups, device);
  int64_t group = at / columns;
  int32_t key = (int32_t)(base + (uint32_t)group);  // wraps around, as stock's does
  if (key == 0)
    return rn_invalid_argument(
        "Using the reserved group_key = 0 is not allowed: group_id = %lld, base_key = %d",
        (long long)group, (int32_t)base);
  RN_RETURN_IF_ERROR(put_int(ctx, 0, (int32_t)columns));
  return put_int(ctx, 1, key);
}

#define ROW(name, reads, computes)                                                        \
  {                                                                                       \
    .op = name, .device = "CPU", .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS, \
    .state_size = sizeof(rn_collective_attrs_t), .init = reads,                           \
    .destroy = rn_collective_attrs_destroy, .compute_async = computes                     \
  }

static const rn_kernel_def_t rows[] = {
    ROW("CollectiveInitializeCommunicator", join_init, join_compute),
    ROW("CollectiveReduceV3", reduce_init, v3_compute),
    ROW("CollectiveAllToAllV3", all_to_all_init, v3_compute),
    {.op = "CollectiveAssignGroupV2", .device = "CPU", .compute = assign_compute},
};
RN_KERNEL_FAMILY(cpu_communicator, rows);

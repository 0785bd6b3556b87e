// Collective ops whose groups and instances have keys: attributes in V1, inputs in V2.
#include "kernels/cpu/array.h"
#include "kernels/cpu/collective/member.h"
#include "kernels/kernel_rows.h"

// V1.

#define V1_INIT(name, kind, source)                                           \
  static rn_status_t name##_init(const rn_kernel_init_t* init, void* state) { \
    rn_collective_attrs_t* attrs = state;                                     \
    attrs->like.is_source = source;                                           \
    RN_RETURN_IF_ERROR(rn_collective_attrs_init(init, kind, attrs));          \
    return read_keys(init, attrs);                                            \
  }

static rn_status_t read_key(const rn_kernel_init_t* init, const char* name, int32_t* out) {
  int64_t value = rn_init_int(init, name);
  if (value < INT32_MIN || value > INT32_MAX)
    return rn_invalid_argument("Attr %s has value %lld out of range for an int32", name,
                               (long long)value);
  *out = (int32_t)value;
  return RN_OK;
}

static rn_status_t read_keys(const rn_kernel_init_t* init, rn_collective_attrs_t* attrs) {
  RN_RETURN_IF_ERROR(read_key(init, "group_size", &attrs->like.group_size));
  RN_RETURN_IF_ERROR(read_key(init, "group_key", &attrs->like.group_key));
  RN_RETURN_IF_ERROR(read_key(init, "instance_key", &attrs->like.instance_key));
  if (attrs->like.group_size <= 0)
    return rn_invalid_argument("group_size must be positive integer but got %d",
                               attrs->like.group_size);
  return RN_OK;
}

V1_INIT(reduce, RN_COLLECTIVE_REDUCE, false)
V1_INIT(gather, RN_COLLECTIVE_GATHER, false)
V1_INIT(send, RN_COLLECTIVE_BROADCAST, true)
V1_INIT(recv, RN_COLLECTIVE_BROADCAST, false)

static void v1_compute(rn_kernel_ctx_t* ctx) {
  const rn_collective_attrs_t* attrs = ctx->state;
  rn_collective_call_t* call = NULL;
  const rn_tensor_t* input = ctx->kernel->input_count ? rn_in(ctx, 0) : NULL;
  rn_status_t status = rn_collective_call_create(ctx, attrs, input, &call);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  bool is_full = rn_shape_is_full(attrs->shape);
  if (input && attrs->like.is_source && is_full &&
      !rn_shape_eq(attrs->shape, rn_tensor_shape(input)))
    status = rn_internal("Declared shape of op %.*s is %s but shape of input is %s",
                         RN_STR_ARGS(ctx->kernel->node), rn_shape_text(attrs->shape).text,
                         rn_text_of(input).text);
  if (!input && !is_full)
    status = rn_invalid_argument("The shape of %.*s is not fully defined: %s",
                                 RN_STR_ARGS(ctx->kernel->node), rn_shape_text(attrs->shape).text);
  if (!input) call->part.shape = attrs->shape;
  rn_collective_call_start(call, status);
}

// V2.

#define V2_INIT(name, kind, source)                                           \
  static rn_status_t name##_init(const rn_kernel_init_t* init, void* state) { \
    rn_collective_attrs_t* attrs = state;                                     \
    attrs->like.is_source = source;                                           \
    return rn_collective_attrs_init(init, kind, attrs);                       \
  }
V2_INIT(reduce_v2, RN_COLLECTIVE_REDUCE, false)
V2_INIT(scatter_v2, RN_COLLECTIVE_REDUCE_SCATTER, false)
V2_INIT(gather_v2, RN_COLLECTIVE_GATHER, false)
V2_INIT(all_to_all_v2, RN_COLLECTIVE_ALL_TO_ALL, false)
V2_INIT(send_v2, RN_COLLECTIVE_BROADCAST, true)
V2_INIT(recv_v2, RN_COLLECTIVE_BROADCAST, false)

// The keys in three inputs from |first| on.
static rn_status_t take_keys(const rn_kernel_ctx_t* ctx, int first, rn_collective_t* part) {
  RN_RETURN_IF_ERROR(rn_collective_key(ctx, first, "group_size", &part->group_size));
  RN_RETURN_IF_ERROR(rn_collective_key(ctx, first + 1, "group_key", &part->group_key));
  return rn_collective_key(ctx, first + 2, "instance_key", &part->instance_key);
}

static void v2_compute(rn_kernel_ctx_t* ctx) {
  rn_collective_call_t* call = NULL;
  rn_status_t status = rn_collective_call_create(ctx, ctx->state, rn_in(ctx, 0), &call);
  if (rn_ok(status))
    rn_collective_call_start(call, take_keys(ctx, 1, &call->part));
  else
    rn_done(ctx, status);
}

static void recv_v2_compute(rn_kernel_ctx_t* ctx) {
  rn_collective_call_t* call = NULL;
  rn_status_t status = rn_collective_call_create(ctx, ctx->state, NULL, &call);
  if (!rn_ok(status)) {
    rn_done(ctx, status);
    return;
  }
  status = take_keys(ctx, 0, &call->part);
  if (rn_ok(status)) status = rn_read_shape(rn_in(ctx, 3), call->dims, &call->part.shape);
  rn_collective_call_start(call, status);
}

#define ROW(name, reads, computes)                                                        \
  {                                                                                       \
    .op = name, .device = "CPU", .flags = RN_KERNEL_KEEPS_INPUTS | RN_KERNEL_OWN_OUTPUTS, \
    .state_size = sizeof(rn_collective_attrs_t), .init = reads,                           \
    .destroy = rn_collective_attrs_destroy, .compute_async = computes                     \
  }

static const rn_kernel_def_t rows[] = {
    ROW("CollectiveReduce", reduce_init, v1_compute),
    ROW("CollectiveGather", gather_init, v1_compute),
    ROW("CollectiveBcastSend", send_init, v1_compute),
    ROW("CollectiveBcastRecv", recv_init, v1_compute),
    ROW("CollectiveReduceV2", reduce_v2_init, v2_compute),
    ROW("CollectiveReduceScatterV2", scatter_v2_init, v2_compute),
    ROW("CollectiveGatherV2", gather_v2_init, v2_compute),
    ROW("CollectiveAllToAllV2", all_to_all_v2_init, v2_compute),
    ROW("CollectiveBcastSendV2", send_v2_init, v2_compute),
    ROW("CollectiveBcastRecvV2", recv_v2_init, recv_v2_compute),
};
RN_KERNEL_FAMILY(cpu_collective, rows);

// One call of a collective op: see member.h.
#include "kernels/cpu/collective/member.h"

#include "device/device.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/vector.h"
#include "tensor/float16.h"

#define MERGE(name, code)                                                                          \
  static void merge_##name(rn_dtype_t dtype, const void* a, const void* b, void* out, int64_t n) { \
    rn_vector_run(code, dtype, a, 1, b, 1, out, n);                                                \
  }
MERGE(add, RN_VECTOR_ADD)
MERGE(mul, RN_VECTOR_MUL)
MERGE(max, RN_VECTOR_MAXIMUM)
MERGE(min, RN_VECTOR_MINIMUM)

static void divide(rn_dtype_t dtype, int32_t by, void* values, int64_t n) {
  union {
    float f;
    double d;
    uint16_t h;
    int32_t i;
    int64_t l;
  } divisor = {0};
  switch (dtype) {
    case RN_FLOAT:
      divisor.f = (float)by;
      break;
    case RN_DOUBLE:
      divisor.d = by;
      break;
    case RN_HALF:
      divisor.h = rn_float_to_half((float)by);
      break;
    case RN_BFLOAT16:
      divisor.h = rn_float_to_bfloat16((float)by);
      break;
    case RN_INT32:
      divisor.i = by;
      break;
    default:
      divisor.l = by;
      break;
  }
  rn_combine(RN_COMBINE_DIV, dtype)(values, &divisor, 0, values, n);
}

static bool has_attr(const rn_kernel_init_t* init, const char* name) {
  for (int32_t i = 0; i < init->op->attr_count; ++i)
    if (strcmp(init->op->attrs[i].name, name) == 0) return true;
  return false;
}

static void read_merge(const rn_kernel_init_t* init, const char* name, rn_collective_t* like) {
  rn_str_t op = rn_init_string(init, name);
  if (rn_str_is(op, "Mul")) {
    like->merge_op = RN_MERGE_MUL;
    like->merge = merge_mul;
  } else if (rn_str_is(op, "Max")) {
    like->merge_op = RN_MERGE_MAX;
    like->merge = merge_max;
  } else if (rn_str_is(op, "Min")) {
    like->merge_op = RN_MERGE_MIN;
    like->merge = merge_min;
  } else {
    like->merge_op = RN_MERGE_ADD;
    like->merge = merge_add;
  }
}

static rn_status_t read_subdivs(const rn_kernel_init_t* init, rn_collective_attrs_t* attrs) {
  const rn_attr_value_t* offsets = rn_init_attr(init, "subdiv_offsets");
  RN_RETURN_IF_ERROR(rn_alloc_array(init->allocator, (size_t)offsets->count, sizeof *attrs->subdivs,
                                    (void**)&attrs->subdivs));
  attrs->subdiv_count = (size_t)offsets->count;
  for (size_t i = 0; i < attrs->subdiv_count; ++i) {
    if (offsets->list_i[i] < INT32_MIN || offsets->list_i[i] > INT32_MAX)
      return rn_invalid_argument("subdiv_offsets[%zu] is out of range", i);
    attrs->subdivs[i] = (int32_t)offsets->list_i[i];
  }
  attrs->like.subdivs = attrs->subdivs;
  attrs->like.subdiv_count = (int32_t)attrs->subdiv_count;
  return RN_OK;
}

static rn_status_t read_shape(const rn_kernel_init_t* init, rn_collective_attrs_t* attrs) {
  const rn_shape_t* shape = &rn_init_attr(init, "shape")->shape;
  attrs->shape = *shape;
  if (!rn_shape_has_rank(*shape) || !shape->rank) return RN_OK;
  memcpy(attrs->dims, shape->dims, (size_t)shape->rank * sizeof *attrs->dims);
  attrs->shape.dims = attrs->dims;
  return RN_OK;
}

rn_status_t rn_collective_attrs_init(const rn_kernel_init_t* init, rn_collective_kind_t kind,
                                     rn_collective_attrs_t* attrs) {
  rn_collective_t* like = &attrs->like;
  attrs->allocator = init->allocator;
  attrs->shape = RN_SHAPE_UNKNOWN;
  like->kind = kind;
  like->rank = -1;
  like->max_subdivs = -1;
  if (has_attr(init, "T")) like->dtype = rn_init_type(init, "T");
  if (has_attr(init, "timeout_seconds"))
    attrs->timeout_seconds = rn_init_float(init, "timeout_seconds");
  if (has_attr(init, "merge_op")) read_merge(init, "merge_op", like);
  if (has_attr(init, "reduction")) read_merge(init, "reduction", like);
  if (has_attr(init, "final_op") && rn_str_is(rn_init_string(init, "final_op"), "Div"))
    like->divide = divide;
  if (has_attr(init, "max_subdivs_per_device")) {
    int64_t most = rn_init_int(init, "max_subdivs_per_device");
    like->max_subdivs = most > INT32_MAX ? INT32_MAX : most < -1 ? -1 : (int32_t)most;
  }
  if (has_attr(init, "communication_hint")) {
    rn_str_t hint = rn_init_string(init, "communication_hint");
    RN_RETURN_IF_ERROR(rn_str_dup(init->allocator, hint, &attrs->hint));
    attrs->hint_size = hint.size;
    like->hint = rn_str_n(attrs->hint, hint.size);
  }
  if (has_attr(init, "shape")) RN_RETURN_IF_ERROR(read_shape(init, attrs));
  return has_attr(init, "subdiv_offsets") ? read_subdivs(init, attrs) : RN_OK;
}

void rn_collective_attrs_destroy(void* state) {
  rn_collective_attrs_t* attrs = state;
  if (attrs->hint) rn_free(attrs->allocator, attrs->hint, attrs->hint_size + 1);
  if (attrs->subdivs) RN_FREE_ARRAY(attrs->allocator, attrs->subdivs, attrs->subdiv_count);
}

static void end_call(rn_collective_call_t* call, rn_status_t status) {
  rn_kernel_ctx_t* ctx = call->ctx;
  if (call->on_done) {
    call->on_done(call, status);
    return;
  }
  if (rn_ok(status)) rn_set_output(ctx, 0, &call->part.output);
  rn_tensor_clear(&call->part.output);
  RN_FREE(ctx->kernel->allocator, call);
  rn_done(ctx, status);
}

static void on_done(rn_collective_t* part, rn_status_t status) {
  end_call((rn_collective_call_t*)part, status);
}

rn_status_t rn_collective_call_create(rn_kernel_ctx_t* ctx, const rn_collective_attrs_t* attrs,
                                      const rn_tensor_t* input, rn_collective_call_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(ctx->kernel->allocator, out));
  rn_collective_call_t* call = *out;
  call->part = attrs->like;
  call->ctx = ctx;
  rn_collective_t* part = &call->part;
  part->device = ctx->kernel->device;
  part->step = ctx->step->id;
  part->frame = ctx->frame;
  part->iteration = ctx->iteration;
  part->node = ctx->kernel->node;
  part->input = input;
  part->memory = ctx->kernel->device_memory;
  part->pool = ctx->step->pool;
  part->cancel = ctx->step->cancel;
  part->done = on_done;
  const rn_env_t* env = ctx->step->env;
  if (attrs->timeout_seconds > 0) {
    double ns = (double)attrs->timeout_seconds * 1e9;
    int64_t now_ns = env->now_ns(env->self);
    part->deadline_ns = ns < 1e18 ? now_ns + (int64_t)ns : INT64_MAX;
  }
  if (input) {
    part->shape = rn_tensor_shape(input);
    if (input->rank)
      memcpy(call->dims, rn_tensor_dims(input), (size_t)input->rank * sizeof *call->dims);
    part->shape.dims = call->dims;
  }
  return RN_OK;
}

// The shape of the output follows from that of the input and the size of the group.
static rn_status_t set_shape(rn_collective_call_t* call) {
  rn_collective_t* part = &call->part;
  int32_t size = part->group_size;
  if (size <= 0) return rn_invalid_argument("group_size must be positive integer but got %d", size);
  bool has_rows = part->kind == RN_COLLECTIVE_GATHER || part->kind == RN_COLLECTIVE_ALL_TO_ALL ||
                  part->kind == RN_COLLECTIVE_REDUCE_SCATTER;
  if (!has_rows) return RN_OK;
  if (part->shape.rank < 1)
    return rn_invalid_argument("input should have rank > 0, received %d", part->shape.rank);
  int64_t* rows = &call->dims[0];
  if (part->kind == RN_COLLECTIVE_GATHER && !rn_mul_i64_ok(*rows, size, rows))
    return rn_invalid_argument("The result of the gathering would be too large");
  if (part->kind == RN_COLLECTIVE_ALL_TO_ALL && *rows != size)
    return rn_invalid_argument(
        "input to all-to-all first dimension size (%lld) must be the same as the group size (%d)",
        (long long)*rows, size);
  if (part->kind == RN_COLLECTIVE_REDUCE_SCATTER) {
    if (*rows % size)
      return rn_invalid_argument(
          "The first dimension size (%lld) must be divisible by the group size (%d)",
          (long long)*rows, size);
    *rows /= size;
  }
  return RN_OK;
}

void rn_collective_call_start(rn_collective_call_t* call, rn_status_t status) {
  rn_collectives_t* collectives = call->ctx->step->collectives;
  if (rn_ok(status)) status = set_shape(call);
  if (rn_ok(status) && !collectives)
    status = rn_internal("Failed to get CollectiveExecutor from OpKernelContext for Op %.*s",
                         RN_STR_ARGS(call->part.node));
  if (rn_ok(status))
    rn_collectives_run(collectives, &call->part);
  else
    end_call(call, status);
}

rn_status_t rn_collective_key(const rn_kernel_ctx_t* ctx, int i, const char* name, int32_t* out) {
  const rn_tensor_t* input = rn_in(ctx, i);
  if (input->rank != 0)
    return rn_internal("Unexpected dimensions on input %s, got %s", name, rn_text_of(input).text);
  *out = *RN_DATA(input, const int32_t);
  return RN_OK;
}

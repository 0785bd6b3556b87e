// The op created by step/fuse_conv.c: a convolution followed by elementwise steps.
#include "kernels/cpu/planner/conv_then.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements per piece of work, for steps that run separately.
#define PIECE_ELEMENTS 65536

typedef struct then_state_t {
  rn_conv_then_t then;
  rn_conv_cache_t cache;
  bool has_cache;
} then_state_t;

rn_status_t rn_conv_then_init(const rn_kernel_init_t* init, rn_conv_then_t* out) {
  out->keeps_filter = rn_init_bool(init, "keeps_filter");
  out->is_depthwise = rn_init_bool(init, "is_depthwise");
  const rn_attr_value_t* steps = rn_init_attr(init, "steps");
  out->step_count = steps->count / 2;
  if (out->step_count > RN_CONV_MOST_STEPS)
    return rn_internal("A fused convolution has too many steps");
  for (int32_t i = 0; i < out->step_count; ++i) {
    int64_t code = steps->list_i[2 * i], operand = steps->list_i[2 * i + 1];
    if (code < RN_CONV_ADD || code > RN_CONV_RELU6 || operand + 2 >= init->input_count)
      return rn_internal("Step %d of a fused convolution is invalid", i);
    out->steps[i].code = (rn_conv_code_t)code;
    out->steps[i].operand = (int32_t)operand;
  }
  return rn_window_init(init, "strides", &out->attrs);
}

static rn_status_t then_init(const rn_kernel_init_t* init, void* arg) {
  then_state_t* state = arg;
  rn_conv_cache_init(&state->cache);
  state->has_cache = true;
  return rn_conv_then_init(init, &state->then);
}

static void then_destroy(void* arg) {
  then_state_t* state = arg;
  if (state->has_cache) rn_conv_cache_clear(&state->cache);
}

// A depthwise convolution is one with as many groups as channels.
static rn_status_t depthwise_sizes(const rn_window_attrs_t* attrs, const rn_tensor_t* x,
                                   const rn_tensor_t* w, rn_conv_t* conv) {
  if (x->rank != 4 || w->rank != 4 || rn_tensor_dim(x, 3) != rn_tensor_dim(w, 2))
    return rn_invalid_argument("A filter of %s does not fit images of %s", rn_text_of(w).text,
                               rn_text_of(x).text);
  conv->kind = RN_CONV_FORWARD;
  conv->batch = rn_tensor_dim(x, 0);
  conv->groups = conv->in_depth = rn_tensor_dim(x, 3);
  conv->out_depth = conv->in_depth * rn_tensor_dim(w, 3);
  RN_RETURN_IF_ERROR(
      rn_window_axis(attrs, 1, rn_tensor_dim(x, 1), rn_tensor_dim(w, 0), &conv->rows));
  return rn_window_axis(attrs, 2, rn_tensor_dim(x, 2), rn_tensor_dim(w, 1), &conv->columns);
}

static rn_status_t check_operands(rn_kernel_ctx_t* ctx, const rn_conv_then_t* then,
                                  const rn_conv_t* conv) {
  for (int32_t i = 0; i < then->step_count; ++i) {
    if (then->steps[i].operand < 0) continue;
    const rn_tensor_t* value = rn_in(ctx, then->steps[i].operand + 2);
    const bool is_whole =
        value->count == conv->batch * rn_conv_y_size(conv) && value->dtype == rn_in(ctx, 0)->dtype;
    if (value->count != 1 && value->count != conv->out_depth && !is_whole)
      return rn_invalid_argument("%s does not fit the result of a convolution of %lld channels",
                                 rn_text_of(value).text, (long long)conv->out_depth);
  }
  return RN_OK;
}

rn_status_t rn_conv_then_begin(rn_kernel_ctx_t* ctx, const rn_conv_then_t* then, rn_conv_t* conv,
                               rn_tensor_t** out_y) {
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(then->is_depthwise ? depthwise_sizes(&then->attrs, x, w, conv)
                                        : rn_conv_forward_sizes(&then->attrs, x, w, conv));
  int64_t dims[4] = {conv->batch, conv->rows.out, conv->columns.out, conv->out_depth};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, out_y));
  if ((*out_y)->count == 0) return RN_OK;
  if (x->count == 0 || w->count == 0 || conv->out_depth % conv->groups)
    return rn_invalid_argument("A filter of %s cannot be used on images of %s", rn_text_of(w).text,
                               rn_text_of(x).text);
  return check_operands(ctx, then, conv);
}

// |wide| is NULL, or has room for the operands of bfloat16 that have up to |most| elements, as
// floats.
static void find_operands(rn_kernel_ctx_t* ctx, const rn_conv_then_t* then, int64_t most,
                          float* wide, rn_conv_extra_t* out) {
  out->step_count = then->step_count;
  for (int32_t i = 0; i < then->step_count; ++i) {
    int32_t operand = then->steps[i].operand;
    out->steps[i] = (rn_conv_step_t){.code = then->steps[i].code};
    if (operand < 0) continue;
    const rn_tensor_t* value = rn_in(ctx, operand + 2);
    out->steps[i].operand = value->data;
    out->steps[i].count = value->count;
    if (!wide || value->count > most || value->dtype == RN_FLOAT) continue;
    rn_vector_table()->widen_bfloat16(value->data, wide, value->count);
    out->steps[i].operand = wide;
    wide += value->count;
  }
}

typedef struct follow_t {
  const rn_conv_extra_t* extra;
  float* y;
  int64_t channels;
} follow_t;

static void follow_piece(void* arg, int64_t begin, int64_t end) {
  const follow_t* follow = arg;
  rn_conv_follow(follow->extra, 0, follow->y, follow->channels, begin, end);
}

static rn_status_t run(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_conv_data_t data,
                       rn_conv_extra_t* extra) {
  then_state_t* state = ctx->state;
  bool done = false;
  RN_RETURN_IF_ERROR(rn_conv_float(ctx, &state->cache, conv, data, extra, &done));
  if (done) return RN_OK;
  rn_conv_extra_t plain = {.filter = extra->filter};
  RN_RETURN_IF_ERROR(rn_conv_float(ctx, &state->cache, conv, data, &plain, &done));
  if (!done) RN_RETURN_IF_ERROR(rn_conv_plain(ctx, RN_FLOAT, conv, data));
  follow_t follow = {.extra = extra, .y = data.y, .channels = conv->out_depth};
  int64_t pixels = conv->batch * conv->rows.out * conv->columns.out;
  rn_pool_for(rn_ctx_pool(ctx), pixels, PIECE_ELEMENTS / conv->out_depth + 1, follow_piece,
              &follow);
  return RN_OK;
}

// bfloat16 through float: all operands are widened, and y is rounded once, as rn_conv_bf16 does.
static rn_status_t run_wide(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_tensor_t* y) {
  then_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  const rn_vector_table_t* table = rn_vector_table();
  int64_t total = x->count + w->count + y->count;
  for (int32_t i = 0; i < state->then.step_count; ++i)
    if (state->then.steps[i].operand >= 0)
      total += rn_in(ctx, state->then.steps[i].operand + 2)->count;
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  rn_conv_data_t data = {.x = temp.data};
  data.w = (float*)data.x + x->count;
  data.y = (float*)data.w + w->count;
  table->widen_bfloat16(x->data, data.x, x->count);
  table->widen_bfloat16(w->data, data.w, w->count);
  rn_conv_extra_t extra = {0};
  find_operands(ctx, &state->then, INT64_MAX, (float*)data.y + y->count, &extra);
  rn_status_t status = run(ctx, conv, data, &extra);
  if (rn_ok(status)) table->narrow_bfloat16(data.y, y->data, y->count);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t run_bf16(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_conv_data_t data,
                            rn_conv_extra_t* extra) {
  then_state_t* state = ctx->state;
  int64_t count = conv->out_depth * (state->then.step_count + 1);
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &temp));
  find_operands(ctx, &state->then, conv->out_depth, temp.data, extra);
  rn_status_t status = rn_conv_bf16(ctx, &state->cache, conv, data, extra);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t then_compute(rn_kernel_ctx_t* ctx) {
  then_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  rn_conv_t conv = {0};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_conv_then_begin(ctx, &state->then, &conv, &y));
  if (y->count == 0) return RN_OK;
  rn_conv_extra_t extra = {.filter = state->then.keeps_filter ? w : NULL};
  rn_conv_data_t data = {x->data, w->data, y->data};
  if (y->dtype == RN_BFLOAT16)
    return rn_conv_bf16_fits(&conv) ? run_bf16(ctx, &conv, data, &extra) : run_wide(ctx, &conv, y);
  find_operands(ctx, &state->then, 0, NULL, &extra);
  return run(ctx, &conv, data, &extra);
}

static const rn_kernel_def_t rows[] = {
    {.op = "_ConvThen",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT) | RN_T(BFLOAT16)}},
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(then_state_t),
     .init = then_init,
     .destroy = then_destroy,
     .compute = then_compute},
};
RN_KERNEL_FAMILY(cpu_conv_then, rows);

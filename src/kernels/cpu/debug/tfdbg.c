// The ops that TensorFlow's debugger puts into a graph: copies, identities that publish what they
// see, and summaries of tensors.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/debug/publish.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

static rn_status_t publish_init(const rn_kernel_init_t* init, void* state) {
  return rn_publish_init(init, state);
}
static void publish_destroy(void* state) { rn_publish_destroy(state); }

// An element of debug_ops_spec is "op;url;0" or "op;url;1".
static rn_status_t copy_init(const rn_kernel_init_t* init, void* state) {
  const rn_attr_value_t* specs = rn_init_attr(init, "debug_ops_spec");
  (void)state;
  for (int32_t i = 0; i < specs->count; ++i) {
    rn_str_t spec = specs->list_s[i];
    int semicolons = 0;
    for (size_t k = 0; k < spec.size; ++k) semicolons += spec.data[k] == ';';
    if (semicolons != 2)
      return rn_internal("Unexpected number of semicolons in debug_ops_spec element: %.*s",
                         RN_STR_ARGS(spec));
  }
  return RN_OK;
}

static rn_status_t copy(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  if (!rn_tensor_is_set(in) || !rn_dtype_is_plain(in->dtype)) return rn_forward(ctx, 0, 0);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  return rn_ctx_copy(ctx, in, out);
}

// What a gated op gives.
static rn_status_t give_nothing(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  int64_t none = 0;
  return rn_output(ctx, 0, (rn_shape_t){1, &none}, &out);
}

static rn_status_t identity(rn_kernel_ctx_t* ctx) {
  if (((const rn_publish_t*)ctx->state)->is_gated) return give_nothing(ctx);
  if (rn_tensor_is_set(rn_in(ctx, 0)))
    RN_RETURN_IF_ERROR(rn_publish(ctx->state, ctx, rn_in(ctx, 0)));
  return rn_forward(ctx, 0, 0);
}

// The events of TensorFlow 2's debugger are not written.
static rn_status_t identity_v2_init(const rn_kernel_init_t* init, void* state) {
  (void)state;
  if (rn_init_attr(init, "debug_urls")->count == 0) return RN_OK;
  return rn_unimplemented("DebugIdentityV2 does not write to debug_urls: node '%.*s'",
                          RN_STR_ARGS(init->node));
}

static rn_status_t identity_v2(rn_kernel_ctx_t* ctx) { return rn_forward(ctx, 0, 0); }

// What the elements of a tensor are.
typedef struct debug_tally_t {
  int64_t nan, minus_inf, plus_inf, negative, zero, positive;
  double least, most, sum;
} debug_tally_t;

static double number_at(const rn_tensor_t* tensor, int64_t i) {
  if (tensor->dtype == RN_UINT64) return (double)RN_DATA(tensor, const uint64_t)[i];
  return tensor->dtype == RN_BOOL ? (double)RN_DATA(tensor, const bool)[i]
                                  : rn_number_at(tensor, i);
}

// Numbers up to |low| count as -inf, those from |high| on as +inf, unless the bounds are infinite.
static debug_tally_t count(const rn_tensor_t* tensor, double low, double high) {
  debug_tally_t t = {.least = INFINITY, .most = -INFINITY};
  for (int64_t i = 0; i < tensor->count; ++i) {
    double x = number_at(tensor, i);
    if (isnan(x)) {
      ++t.nan;
      continue;
    }
    if (isinf(x) ? x < 0 : isfinite(low) && x <= low)
      ++t.minus_inf;
    else if (isinf(x) || (isfinite(high) && x >= high))
      ++t.plus_inf;
    else if (x < 0)
      ++t.negative;
    else if (x > 0)
      ++t.positive;
    else
      ++t.zero;
    if (isinf(x)) continue;
    if (x < t.least) t.least = x;
    if (x > t.most) t.most = x;
    t.sum += x;
  }
  return t;
}

static rn_status_t nan_count(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  int64_t one = 1;
  if (((const rn_publish_t*)ctx->state)->is_gated) return give_nothing(ctx);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &one}, &out));
  *RN_DATA(out, int64_t) = rn_tensor_is_set(in) ? count(in, -INFINITY, INFINITY).nan : 0;
  return rn_publish(ctx->state, ctx, out);
}

// DebugNumericSummary.

typedef struct numeric_summary_t {
  rn_publish_t publish;  // first
  double low, high;
  bool is_quiet;  // publish nothing if there are neither NaNs nor infinities
} numeric_summary_t;

static rn_status_t summary_init(const rn_kernel_init_t* init, void* state) {
  numeric_summary_t* summary = state;
  summary->low = (double)rn_init_float(init, "lower_bound");
  summary->high = (double)rn_init_float(init, "upper_bound");
  summary->is_quiet = rn_init_bool(init, "mute_if_healthy");
  return rn_publish_init(init, &summary->publish);
}

// The variance of the finite numbers.
static double variance(const rn_tensor_t* tensor, double mean, int64_t finite) {
  double sum = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    double x = number_at(tensor, i);
    if (isfinite(x)) sum += (x - mean) * (x - mean);
  }
  return sum / (double)finite;
}

static int64_t count_finite(const rn_tensor_t* tensor) {
  int64_t finite = 0;
  for (int64_t i = 0; i < tensor->count; ++i) finite += isfinite(number_at(tensor, i)) != 0;
  return finite;
}

static rn_status_t numeric_summary(rn_kernel_ctx_t* ctx) {
  const numeric_summary_t* summary = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  bool is_set = rn_tensor_is_set(in);
  if (summary->publish.is_gated) return give_nothing(ctx);
  int64_t size = 14 + (is_set ? in->rank : 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  double* to = out->data;
  debug_tally_t t = {.least = INFINITY, .most = -INFINITY};
  if (is_set) t = count(in, summary->low, summary->high);
  int64_t finite = is_set ? count_finite(in) : 0;
  double mean = finite ? t.sum / (double)finite : NAN;
  const double values[] = {is_set,
                           is_set ? (double)in->count : 0,
                           (double)t.nan,
                           (double)t.minus_inf,
                           (double)t.negative,
                           (double)t.zero,
                           (double)t.positive,
                           (double)t.plus_inf,
                           t.least,
                           t.most,
                           mean,
                           finite ? variance(in, mean, finite) : NAN,
                           (double)rn_dtype_base(ctx->kernel->input_types[0]),
                           is_set ? in->rank : 0};
  memcpy(to, values, sizeof values);
  for (int d = 0; is_set && d < in->rank; ++d) to[14 + d] = (double)rn_tensor_dim(in, d);
  bool is_healthy = t.nan == 0 && t.minus_inf == 0 && t.plus_inf == 0;
  return summary->is_quiet && is_healthy ? RN_OK : rn_publish(&summary->publish, ctx, out);
}

// DebugNumericSummaryV2.

enum { CURT = 2, CONCISE = 3, FULL = 4, SHAPE = 5, THREE_SLOTS = 8 };  // modes
#define SHAPE_DIMS 6

typedef struct summary_v2_t {
  int64_t mode, tensor;
} summary_v2_t;

static rn_status_t summary_v2_init(const rn_kernel_init_t* init, void* state) {
  *(summary_v2_t*)state =
      (summary_v2_t){rn_init_int(init, "tensor_debug_mode"), rn_init_int(init, "tensor_id")};
  return RN_OK;
}

// Writes |values| as output 0, of either type.
static rn_status_t give(rn_kernel_ctx_t* ctx, const double* values, int64_t size) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  for (int64_t i = 0; i < size; ++i) {
    if (out->dtype == RN_FLOAT)
      RN_DATA(out, float)[i] = (float)values[i];
    else
      RN_DATA(out, double)[i] = values[i];
  }
  return RN_OK;
}

static rn_status_t give_shape(rn_kernel_ctx_t* ctx, double id) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  double values[4 + SHAPE_DIMS] = {id, (double)in->dtype, in->rank, (double)in->count};
  int skipped = in->rank > SHAPE_DIMS ? in->rank - SHAPE_DIMS : 0;
  for (int d = skipped; d < in->rank; ++d) values[4 + d - skipped] = (double)rn_tensor_dim(in, d);
  return give(ctx, values, 4 + SHAPE_DIMS);
}

static rn_status_t summary_v2(rn_kernel_ctx_t* ctx) {
  const summary_v2_t* summary = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  int bits = ctx->kernel->output_types[0] == RN_FLOAT ? 24 : 53;
  double id = (double)summary->tensor;
  if (summary->mode >= CURT && summary->mode <= SHAPE && summary->tensor > INT64_C(1) << bits)
    return rn_invalid_argument(
        "DebugNumericSummaryV2Op requires tensor_id to be less than or "
        "equal to (2^%d). Given tensor_id:%" PRId64,
        bits, summary->tensor);
  if (summary->mode == SHAPE) return give_shape(ctx, id);
  debug_tally_t t = count(in, -INFINITY, INFINITY);
  double minus = (double)t.minus_inf, plus = (double)t.plus_inf, nan = (double)t.nan;
  double size = (double)in->count;
  switch (summary->mode) {
    case CURT:
      return give(ctx, (const double[]){id, minus + plus + nan > 0}, 2);
    case CONCISE:
      return give(ctx, (const double[]){id, size, minus, plus, nan}, 5);
    case FULL:
      return give(ctx,
                  (const double[]){id, -1, (double)in->dtype, in->rank, size, minus, plus, nan,
                                   (double)t.negative, (double)t.zero, (double)t.positive},
                  11);
    case THREE_SLOTS:
      return give(
          ctx,
          (const double[]){minus > 0 ? -INFINITY : 0, plus > 0 ? INFINITY : 0, nan > 0 ? NAN : 0},
          3);
    default:
      return rn_unimplemented("Unimplemented tensor debug mode: %" PRId64, summary->mode);
  }
}

#define PUBLISHES(name, types_, function)                                                      \
  {                                                                                            \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(rn_publish_t), \
    .init = publish_init, .destroy = publish_destroy, .compute = function                      \
  }

static const rn_kernel_def_t rows[] = {
    {.op = "Copy", .device = "CPU", .init = copy_init, .compute = copy},
    {.op = "CopyHost", .device = "CPU", .init = copy_init, .compute = copy},
    PUBLISHES("DebugIdentity", RN_TYPES_ALL, identity),
    PUBLISHES("DebugIdentityV3", RN_TYPES_ALL, identity),
    {.op = "DebugIdentityV2", .device = "CPU", .init = identity_v2_init, .compute = identity_v2},
    PUBLISHES("DebugNanCount", RN_TYPES_REAL, nan_count),
    {.op = "DebugNumericSummary",
     .device = "CPU",
     .types = {{"T", RN_TYPES_INTS | RN_TYPES_UINTS | RN_T(FLOAT) | RN_T(DOUBLE) | RN_T(BOOL)}},
     .state_size = sizeof(numeric_summary_t),
     .init = summary_init,
     .destroy = publish_destroy,
     .compute = numeric_summary},
    {.op = "DebugNumericSummaryV2",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL | RN_T(BOOL)}},
     .state_size = sizeof(summary_v2_t),
     .init = summary_v2_init,
     .compute = summary_v2},
};
RN_KERNEL_FAMILY(cpu_tfdbg, rows);

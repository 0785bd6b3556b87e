// Gradients against central differences: see check_gradient.h.
#include "train/check_gradient.h"

#include <math.h>

#include "graph/build.h"
#include "runnel/ops.h"
#include "session/session.h"

// One check: the weighted sum of all y, its gradients, and a session that computes both.
typedef struct check_t {
  rn_allocator_t allocator;
  rn_scope_t* scope;
  const rn_check_options_t* options;
  const rn_edge_t* xs;
  int x_count;
  rn_tensor_t* values;  // copies, whose elements are perturbed
  const rn_tensor_t** feeds;
  rn_edge_t sum;
  rn_gradient_t* dxs;
  rn_session_t* session;
  double error;
} check_t;

// cos(0), cos(1) … in the shape of |y|: weights without symmetry, which could hide an error.
static rn_edge_t weights_like(rn_scope_t* s, rn_edge_t y) {
  rn_edge_t zero = rn_const_int32(s, 0), one = rn_const_int32(s, 1);
  rn_edge_t numbers = rn_Cast(s, rn_Range(s, zero, rn_Size(s, y), one), rn_edge_dtype(y));
  return rn_Reshape(s, rn_Cos(s, numbers), rn_Shape(s, y));
}

static rn_edge_t sum_all(rn_scope_t* s, rn_edge_t value) {
  rn_edge_t zero = rn_const_int32(s, 0), one = rn_const_int32(s, 1);
  rn_edge_t axes = rn_Range(s, zero, rn_Rank(s, value), one);
  return rn_Sum(s, rn_Cast(s, value, RN_DOUBLE), axes);
}

static rn_status_t build(check_t* c, const rn_edge_t* ys, int y_count) {
  rn_scope_t* s = c->scope;
  rn_edge_t* weights = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(c->allocator, (size_t)y_count, &weights));
  for (int i = 0; i < y_count; ++i) {
    weights[i] = weights_like(s, ys[i]);
    rn_edge_t part = sum_all(s, rn_Mul(s, ys[i], weights[i]));
    c->sum = i == 0 ? part : rn_AddV2(s, c->sum, part);
  }
  rn_gradient_options_t options = {
      .dys = weights, .dense = true, .unconnected = RN_UNCONNECTED_ZERO};
  if (rn_scope_ok(s)) rn_gradients_of(s, ys, y_count, c->xs, c->x_count, &options, c->dxs);
  RN_FREE_ARRAY(c->allocator, weights, (size_t)y_count);
  return RN_OK;
}

static rn_status_t run(check_t* c, rn_edge_t fetch, rn_tensor_t* out) {
  rn_signature_t signature = {
      .feeds = c->xs, .feed_count = c->x_count, .fetches = &fetch, .fetch_count = 1};
  return rn_session_run(c->session, &signature, c->feeds, out, NULL);
}

static double get(const rn_tensor_t* tensor, int64_t i) {
  return tensor->dtype == RN_FLOAT ? RN_DATA(tensor, float)[i] : RN_DATA(tensor, double)[i];
}

static void set(rn_tensor_t* tensor, int64_t i, double value) {
  if (tensor->dtype == RN_FLOAT)
    RN_DATA(tensor, float)[i] = (float)value;
  else
    RN_DATA(tensor, double)[i] = value;
}

static rn_status_t sum_at(check_t* c, rn_tensor_t* x, int64_t i, double value, double* out_value,
                          double* out_sum) {
  set(x, i, value);
  *out_value = get(x, i);
  rn_tensor_t sum = {0};
  RN_RETURN_IF_ERROR(run(c, c->sum, &sum));
  *out_sum = get(&sum, 0);
  rn_tensor_clear(&sum);
  return RN_OK;
}

// (f(x + h) - f(x - h)) / 2h, where h is the step after rounding.
static rn_status_t difference(check_t* c, rn_tensor_t* x, int64_t i, double* out) {
  double step = c->options->step, old = get(x, i), above, below, high = 0, low = 0;
  // The cube root of the rounding error balances rounding against the error of the formula.
  if (step == 0) step = x->dtype == RN_DOUBLE ? 6e-6 : 5e-3;
  rn_status_t status = sum_at(c, x, i, old + step, &above, &high);
  if (rn_ok(status)) status = sum_at(c, x, i, old - step, &below, &low);
  set(x, i, old);
  RN_RETURN_IF_ERROR(status);
  *out = (high - low) / (above - below);
  return RN_OK;
}

static rn_status_t compare(check_t* c, int number, const rn_tensor_t* dx) {
  rn_tensor_t* x = &c->values[number];
  int64_t count = x->count, most = c->options->max_elements;
  if (most <= 0) most = 64;
  if (dx->count != count)
    return rn_internal("the gradient of x number %d has %lld elements, but x has %lld", number,
                       (long long)dx->count, (long long)count);
  double scale = 1;
  for (int64_t i = 0; i < count; ++i) scale = fmax(scale, fabs(get(dx, i)));
  int64_t stride = count > most ? count / most : 1;
  for (int64_t i = 0; i < count; i += stride) {
    double wanted = 0, found = get(dx, i);
    RN_RETURN_IF_ERROR(difference(c, x, i, &wanted));
    double error = fabs(found - wanted) / scale;
    if (!(error <= c->error)) c->error = error;
    if (c->options->tolerance > 0 && !(error <= c->options->tolerance))
      return rn_failed_precondition(
          "The gradient of '%s:%d' at element %lld is %.9g; finite differences give %.9g",
          c->xs[number].node->name.data, c->xs[number].index, (long long)i, found, wanted);
  }
  return RN_OK;
}

static rn_status_t prepare(check_t* c, const rn_tensor_t* const* values) {
  size_t count = (size_t)c->x_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(c->allocator, count, &c->feeds));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(c->allocator, count, &c->values));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(c->allocator, count, &c->dxs));
  for (int i = 0; i < c->x_count; ++i) {
    if (!c->xs[i].node || !values[i])
      return rn_invalid_argument("rn_check_gradient: x number %d is missing", i);
    if (values[i]->dtype != RN_FLOAT && values[i]->dtype != RN_DOUBLE)
      return rn_invalid_argument("rn_check_gradient: '%s' is neither float nor double",
                                 c->xs[i].node->name.data);
    RN_RETURN_IF_ERROR(rn_tensor_copy(values[i], c->allocator, &c->values[i]));
    c->feeds[i] = &c->values[i];
  }
  return RN_OK;
}

static rn_status_t measure(check_t* c, const rn_env_t* env) {
  rn_session_options_t options;
  rn_session_options_init(&options);
  rn_status_t status =
      rn_session_create(rn_scope_graph(c->scope), &options, env, c->allocator, &c->session);
  for (int i = 0; rn_ok(status) && i < c->x_count; ++i) {
    rn_tensor_t dx = {0};
    status = run(c, c->dxs[i].dense, &dx);
    if (rn_ok(status)) status = compare(c, i, &dx);
    rn_tensor_clear(&dx);
  }
  return status;
}

static void clear(check_t* c) {
  rn_session_destroy(c->session);
  for (int i = 0; c->values && i < c->x_count; ++i) rn_tensor_clear(&c->values[i]);
  RN_FREE_ARRAY(c->allocator, c->feeds, (size_t)c->x_count);
  RN_FREE_ARRAY(c->allocator, c->values, (size_t)c->x_count);
  RN_FREE_ARRAY(c->allocator, c->dxs, (size_t)c->x_count);
}

bool rn_gradient_check(rn_scope_t* scope, const rn_edge_t* ys, int y_count, const rn_edge_t* xs,
                       const rn_tensor_t* const* values, int x_count,
                       const rn_check_options_t* options, const rn_env_t* env, double* out_error) {
  if (out_error) *out_error = 0;
  if (!rn_scope_ok(scope)) return false;
  rn_check_options_t defaults = {0};
  check_t c = {.allocator = rn_scope_graph(scope)->allocator,
               .scope = scope,
               .options = options ? options : &defaults,
               .xs = xs,
               .x_count = x_count > 0 ? x_count : 0};
  rn_status_t status = RN_OK;
  if (y_count < 1 || x_count < 1 || !ys || !xs || !values)
    status = rn_invalid_argument("rn_check_gradient: an argument is missing");
  if (rn_ok(status)) status = prepare(&c, values);
  if (rn_ok(status)) status = build(&c, ys, y_count);
  if (rn_ok(status) && rn_scope_ok(scope)) status = measure(&c, env);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  if (out_error) *out_error = c.error;
  clear(&c);
  return rn_scope_ok(scope);
}

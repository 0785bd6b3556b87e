// Gradients against central differences, as a call of the library.
#include <math.h>

#include "capi/internal.h"
#include "graph/build.h"
#include "runnel/runnel.h"

// One check: the weighted sum of all y, its gradients, and a session that computes both.
typedef struct check_t {
  rn_scope_t* scope;
  const rn_check_options_t* options;
  const rn_edge_t* xs;
  int x_count;
  TF_Output* feeds;
  TF_Tensor** values;  // copies, which are moved
  rn_edge_t sum;
  rn_gradient_t* dxs;
  TF_Session* session;
  TF_Status* status;
  double error;
} check_t;

static rn_status_t take(TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return RN_OK;
  return rn_status_make((rn_code_t)TF_GetCode(status), "%s", TF_Message(status));
}

// cos(0), cos(1) … in the shape of |y|: weights that no symmetry hides an error from.
static rn_edge_t weights_like(rn_scope_t* s, rn_edge_t y) {
  rn_edge_t zero = rn_const_int32(s, 0), one = rn_const_int32(s, 1);
  rn_edge_t numbers = rn_Cast(s, rn_Range(s, zero, rn_Size(s, y), one), rn_edge_dtype(y));
  return rn_Reshape(s, rn_Cos(s, numbers), rn_Shape(s, y));
}

static rn_edge_t sum_all(rn_scope_t* s, rn_edge_t value) {
  rn_edge_t zero = rn_const_int32(s, 0), one = rn_const_int32(s, 1);
  rn_edge_t axes = rn_Range(s, zero, rn_Rank(s, value), one);
  return rn_Sum(s, rn_Cast(s, value, TF_DOUBLE), axes);
}

static rn_status_t build(check_t* c, const rn_edge_t* ys, int y_count) {
  rn_scope_t* s = c->scope;
  rn_edge_t* weights = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), (size_t)y_count, &weights));
  for (int i = 0; i < y_count; ++i) {
    weights[i] = weights_like(s, ys[i]);
    rn_edge_t part = sum_all(s, rn_Mul(s, ys[i], weights[i]));
    c->sum = i == 0 ? part : rn_AddV2(s, c->sum, part);
  }
  rn_gradient_options_t options = {
      .dys = weights, .dense = true, .unconnected = RN_UNCONNECTED_ZERO};
  if (rn_scope_ok(s)) rn_gradients_of(s, ys, y_count, c->xs, c->x_count, &options, c->dxs);
  RN_FREE_ARRAY(rn_capi_allocator(), weights, (size_t)y_count);
  return RN_OK;
}

static rn_status_t run(check_t* c, rn_edge_t fetch, TF_Tensor** out) {
  TF_Output output = rn_output_of(fetch);
  TF_SessionRun(c->session, NULL, c->feeds, c->values, c->x_count, &output, out, 1, NULL, 0, NULL,
                c->status);
  return take(c->status);
}

static double get(const TF_Tensor* tensor, int64_t i) {
  return TF_TensorType(tensor) == TF_FLOAT ? ((const float*)TF_TensorData(tensor))[i]
                                           : ((const double*)TF_TensorData(tensor))[i];
}

static void set(TF_Tensor* tensor, int64_t i, double value) {
  if (TF_TensorType(tensor) == TF_FLOAT)
    ((float*)TF_TensorData(tensor))[i] = (float)value;
  else
    ((double*)TF_TensorData(tensor))[i] = value;
}

static rn_status_t sum_at(check_t* c, TF_Tensor* x, int64_t i, double value, double* out_value,
                          double* out_sum) {
  set(x, i, value);
  *out_value = get(x, i);
  TF_Tensor* sum = NULL;
  RN_RETURN_IF_ERROR(run(c, c->sum, &sum));
  *out_sum = get(sum, 0);
  TF_DeleteTensor(sum);
  return RN_OK;
}

// (f(x + h) - f(x - h)) / 2h, with the step that was really taken.
static rn_status_t difference(check_t* c, TF_Tensor* x, int64_t i, double* out) {
  double step = c->options->step, old = get(x, i), above, below, high = 0, low = 0;
  // The cube root of the rounding error balances it against the formula's own.
  if (step == 0) step = TF_TensorType(x) == TF_DOUBLE ? 6e-6 : 5e-3;
  rn_status_t status = sum_at(c, x, i, old + step, &above, &high);
  if (rn_ok(status)) status = sum_at(c, x, i, old - step, &below, &low);
  set(x, i, old);
  RN_RETURN_IF_ERROR(status);
  *out = (high - low) / (above - below);
  return RN_OK;
}

static rn_status_t compare(check_t* c, int number, const TF_Tensor* dx) {
  TF_Tensor* x = c->values[number];
  int64_t count = TF_TensorElementCount(x), most = c->options->max_elements;
  if (most <= 0) most = 64;
  if (TF_TensorElementCount(dx) != count)
    return rn_internal("the gradient of x number %d has %lld elements, x has %lld", number,
                       (long long)TF_TensorElementCount(dx), (long long)count);
  double scale = 1;
  for (int64_t i = 0; i < count; ++i) scale = fmax(scale, fabs(get(dx, i)));
  for (int64_t i = 0; i<count; i += count> most ? count / most : 1) {
    double wanted = 0, found = get(dx, i);
    RN_RETURN_IF_ERROR(difference(c, x, i, &wanted));
    double error = fabs(found - wanted) / scale;
    if (!(error <= c->error)) c->error = error;
    if (c->options->tolerance > 0 && !(error <= c->options->tolerance))
      return rn_failed_precondition(
          "The gradient by '%s:%d' at element %lld is %.9g; differences give %.9g",
          c->xs[number].node->name.data, c->xs[number].index, (long long)i, found, wanted);
  }
  return RN_OK;
}

static rn_status_t prepare(check_t* c, TF_Tensor* const* values) {
  size_t count = (size_t)c->x_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), count, &c->feeds));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), count, &c->values));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(rn_capi_allocator(), count, &c->dxs));
  for (int i = 0; i < c->x_count; ++i) {
    if (!c->xs[i].node || !values[i])
      return rn_invalid_argument("rn_check_gradient: x number %d is missing", i);
    TF_DataType type = TF_TensorType(values[i]);
    if (type != TF_FLOAT && type != TF_DOUBLE)
      return rn_invalid_argument("rn_check_gradient: '%s' is neither float nor double",
                                 c->xs[i].node->name.data);
    int64_t dims[RN_MAX_RANK];
    int rank = TF_NumDims(values[i]);
    for (int d = 0; d < rank; ++d) dims[d] = TF_Dim(values[i], d);
    c->values[i] = TF_AllocateTensor(type, dims, rank, TF_TensorByteSize(values[i]));
    if (!c->values[i]) return rn_out_of_memory();
    memcpy(TF_TensorData(c->values[i]), TF_TensorData(values[i]), TF_TensorByteSize(values[i]));
    c->feeds[i] = rn_output_of(c->xs[i]);
  }
  return RN_OK;
}

static rn_status_t measure(check_t* c) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  c->session = TF_NewSession((TF_Graph*)rn_scope_graph(c->scope), options, c->status);
  TF_DeleteSessionOptions(options);
  rn_status_t status = take(c->status);
  for (int i = 0; rn_ok(status) && i < c->x_count; ++i) {
    TF_Tensor* dx = NULL;
    status = run(c, c->dxs[i].dense, &dx);
    if (rn_ok(status)) status = compare(c, i, dx);
    TF_DeleteTensor(dx);
  }
  return status;
}

static void clear(check_t* c) {
  if (c->session) {
    TF_Status* ignored = TF_NewStatus();
    TF_DeleteSession(c->session, ignored);
    TF_DeleteStatus(ignored);
  }
  for (int i = 0; c->values && i < c->x_count; ++i) TF_DeleteTensor(c->values[i]);
  RN_FREE_ARRAY(rn_capi_allocator(), c->feeds, (size_t)c->x_count);
  RN_FREE_ARRAY(rn_capi_allocator(), c->values, (size_t)c->x_count);
  RN_FREE_ARRAY(rn_capi_allocator(), c->dxs, (size_t)c->x_count);
  TF_DeleteStatus(c->status);
}

bool rn_check_gradient(rn_scope_t* scope, const rn_edge_t* ys, int y_count, const rn_edge_t* xs,
                       TF_Tensor* const* values, int x_count, const rn_check_options_t* options,
                       double* out_error) {
  if (out_error) *out_error = 0;
  if (!rn_scope_ok(scope)) return false;
  rn_check_options_t defaults = {0};
  check_t c = {.scope = scope,
               .options = options ? options : &defaults,
               .xs = xs,
               .x_count = x_count > 0 ? x_count : 0,
               .status = TF_NewStatus()};
  rn_status_t status = RN_OK;
  if (y_count < 1 || x_count < 1 || !ys || !xs || !values)
    status = rn_invalid_argument("rn_check_gradient: an argument is missing");
  if (rn_ok(status)) status = prepare(&c, values);
  if (rn_ok(status)) status = build(&c, ys, y_count);
  if (rn_ok(status) && rn_scope_ok(scope)) status = measure(&c);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  if (out_error) *out_error = c.error;
  clear(&c);
  return rn_scope_ok(scope);
}

// Gradient rules of reductions and cumulative sums.
#include <float.h>

#include "ops/rules.h"

// The axes of a reduction, if they and the rank are known.
typedef struct reduced_t {
  bool is_known;
  int rank;
  int count;             // number of distinct reduced axes
  bool at[RN_MAX_RANK];  // by axis: whether it is reduced
} reduced_t;

static reduced_t reduced_axes(const rn_grad_t* g) {
  reduced_t out = {.rank = rn_rule_rank(g, rn_grad_in(g, 0))};
  int count = 0;
  const int64_t* axes = rn_rule_values(rn_grad_in(g, 1), &count);
  if (out.rank < 0 || !axes) return out;
  for (int i = 0; i < count; ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + out.rank : axes[i];
    if (axis < 0 || axis >= out.rank) return out;
    out.count += !out.at[axis];
    out.at[axis] = true;
  }
  out.is_known = true;
  return out;
}

// axes mod rank, as a vector of int32.
static rn_edge_t positive_axes(rn_grad_t* g, rn_edge_t rank) {
  rn_edge_t axes = rn_rule_cast(g, rn_grad_in(g, 1), RN_INT32);
  axes = rn_FloorMod(g->scope, axes, rank);
  int64_t whole = -1;
  return rn_Reshape(g->scope, axes, rn_rule_ints(g, RN_INT32, &whole, 1));
}

// The input's shape with 1 for each reduced axis, computed at run time.
static rn_edge_t kept_shape(rn_grad_t* g) {
  rn_edge_t shape = rn_rule_shape(g, rn_grad_in(g, 0), RN_INT32);
  rn_edge_t rank = rn_Size(g->scope, shape);
  rn_edge_t axes = positive_axes(g, rank);
  rn_edge_t all =
      rn_Range(g->scope, rn_const_int32(g->scope, 0), rank, rn_const_int32(g->scope, 1));
  rn_edge_t indices[2] = {all, axes}, data[2] = {shape, rn_OnesLike(g->scope, axes)};
  return rn_DynamicStitch(g->scope, indices, 2, data, 2);
}

// The same when rank and axes are known but sizes are not: shape * keep + (1 - keep).
static rn_edge_t kept_sizes(rn_grad_t* g, const reduced_t* reduced) {
  rn_shape_t shape = rn_grad_shape(g, rn_grad_in(g, 0));
  int64_t keep[RN_MAX_RANK], drop[RN_MAX_RANK], kept[RN_MAX_RANK];
  bool is_full = true;
  for (int i = 0; i < reduced->rank; ++i) {
    keep[i] = !reduced->at[i];
    drop[i] = reduced->at[i];
    kept[i] = reduced->at[i] ? 1 : shape.dims[i];
    is_full &= kept[i] >= 0;
  }
  if (is_full) return rn_rule_ints(g, RN_INT32, kept, reduced->rank);
  rn_edge_t sizes = rn_Mul(g->scope, rn_rule_shape(g, rn_grad_in(g, 0), RN_INT32),
                           rn_rule_ints(g, RN_INT32, keep, reduced->rank));
  return rn_AddV2(g->scope, sizes, rn_rule_ints(g, RN_INT32, drop, reduced->rank));
}

// Reshapes |value|, which has the output's shape, to broadcast against the input.
static rn_edge_t unreduce(rn_grad_t* g, rn_edge_t value) {
  if (rn_grad_attr_bool(g, "keep_dims")) return value;
  reduced_t reduced = reduced_axes(g);
  if (!reduced.is_known) return rn_Reshape(g->scope, value, kept_shape(g));
  // Leading reduced axes are restored by broadcasting.
  int front = 0;
  while (front < reduced.rank && reduced.at[front]) ++front;
  if (front == reduced.count) return value;
  if (reduced.count == 1) {
    int axis = 0;
    while (!reduced.at[axis]) ++axis;
    return rn_rule_expand(g, value, axis);
  }
  return rn_Reshape(g->scope, value, kept_sizes(g, &reduced));
}

static rn_edge_t spread(rn_grad_t* g, rn_edge_t dy) {
  rn_edge_t x = rn_grad_in(g, 0);
  reduced_t reduced = reduced_axes(g);
  if (reduced.is_known && reduced.count == 0) return dy;
  return rn_BroadcastTo(g->scope, unreduce(g, dy), rn_rule_shape(g, x, RN_INT32));
}

RN_RULE(sum) {
  rn_grad_to(g, 0, spread(g, rn_grad_dy(g, 0)));
  return RN_OK;
}

// The number of elements per mean: a constant of the value's type, or computed at run time.
static rn_edge_t mean_count(rn_grad_t* g) {
  rn_edge_t x = rn_grad_in(g, 0), y = rn_grad_out(g, 0);
  rn_shape_t shape = rn_grad_shape(g, x);
  reduced_t reduced = reduced_axes(g);
  double count = 1;
  bool is_known = reduced.is_known;
  for (int i = 0; is_known && i < reduced.rank; ++i) {
    if (!reduced.at[i]) continue;
    is_known = shape.dims[i] >= 0;
    count *= (double)shape.dims[i];
  }
  if (is_known) return rn_rule_scalar(g, x, count);
  rn_edge_t size = rn_Size(g->scope, x);
  if (rn_rule_rank(g, y) != 0) {
    rn_edge_t kept = rn_Maximum(g->scope, rn_Size(g->scope, y), rn_const_int32(g->scope, 1));
    size = rn_Div(g->scope, size, kept);
  }
  return rn_rule_cast(g, size, rn_edge_dtype(x));
}

RN_RULE(mean) {
  rn_edge_t dy = rn_grad_dy(g, 0), count = mean_count(g);
  bool is_integer = rn_dtype_is_integer(rn_edge_dtype(dy));
  dy = is_integer ? rn_Div(g->scope, dy, count) : rn_RealDiv(g->scope, dy, count);
  rn_grad_to(g, 0, spread(g, dy));
  return RN_OK;
}

// All elements equal to the maximum or minimum share the gradient.
RN_RULE(min_or_max) {
  rn_edge_t x = rn_grad_in(g, 0), dy = unreduce(g, rn_grad_dy(g, 0));
  rn_edge_t y = unreduce(g, rn_grad_out(g, 0));
  rn_edge_t mark = rn_Cast(g->scope, rn_Equal(g->scope, x, y), rn_edge_dtype(x));
  rn_edge_t count = rn_Sum(g->scope, mark, rn_grad_in(g, 1), .keep_dims = true);
  bool is_integer = rn_dtype_is_integer(rn_edge_dtype(x));
  rn_edge_t share = is_integer ? rn_Div(g->scope, mark, count) : rn_RealDiv(g->scope, mark, count);
  rn_grad_to(g, 0, rn_Mul(g->scope, share, dy));
  return RN_OK;
}

RN_RULE(euclidean_norm) {
  rn_edge_t ratio = rn_RealDiv(g->scope, rn_grad_dy(g, 0), rn_grad_out(g, 0));
  rn_grad_to(g, 0, rn_Mul(g->scope, rn_grad_in(g, 0), unreduce(g, ratio)));
  return RN_OK;
}

// For each element, the product of all others along |axis| of |x|: the product of those before it
// times that of those after it. No division, so zeros are no problem.
static rn_edge_t others(rn_grad_t* g, rn_edge_t x, int axis) {
  rn_edge_t at = rn_const_int32(g->scope, axis);
  rn_edge_t before = rn_Cumprod(g->scope, x, at, .exclusive = true);
  rn_edge_t after = rn_Cumprod(g->scope, x, at, .exclusive = true, .reverse = true);
  return rn_rule_conj(g, rn_Mul(g->scope, before, after));
}

// The same for several axes: transposes and reshapes |x| to a matrix whose first axis is all
// reduced axes, and reverts that afterwards.
static rn_edge_t others_folded(rn_grad_t* g, rn_edge_t x) {
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t shape = rn_rule_shape(g, x, RN_INT32), rank = rn_Size(g->scope, shape);
  rn_edge_t axes = positive_axes(g, rank);
  rn_ListDiff_out_t kept = rn_ListDiff(g->scope, rn_Range(g->scope, zero, rank, one), axes);
  rn_edge_t order[2] = {axes, kept.out_};
  rn_edge_t perm = rn_ConcatV2(g->scope, order, 2, zero);
  rn_edge_t turned = rn_Transpose(g->scope, x, perm);
  rn_edge_t count = rn_Prod(g->scope, rn_GatherV2(g->scope, shape, axes, zero), zero);
  rn_edge_t rest = rn_Prod(g->scope, rn_GatherV2(g->scope, shape, kept.out_, zero), zero);
  rn_edge_t fold[2] = {count, rest};
  rn_edge_t table = rn_Reshape(g->scope, turned, rn_Pack(g->scope, fold, 2));
  rn_edge_t back = rn_Reshape(g->scope, others(g, table, 0), rn_Shape(g->scope, turned));
  return rn_Transpose(g->scope, back, rn_InvertPermutation(g->scope, perm));
}

RN_RULE(prod) {
  rn_edge_t x = rn_grad_in(g, 0), dy = unreduce(g, rn_grad_dy(g, 0)), product;
  reduced_t reduced = reduced_axes(g);
  if (reduced.is_known && reduced.count == 0) {
    rn_grad_to(g, 0, dy);
    return RN_OK;
  }
  if (reduced.is_known && reduced.count == 1) {
    int axis = 0;
    while (!reduced.at[axis]) ++axis;
    product = others(g, x, axis);
  } else if (reduced.is_known && reduced.count == reduced.rank) {
    int64_t whole = -1;
    rn_edge_t flat = rn_Reshape(g->scope, x, rn_rule_ints(g, RN_INT32, &whole, 1));
    product = rn_Reshape(g->scope, others(g, flat, 0), rn_rule_shape(g, x, RN_INT32));
  } else {
    product = others_folded(g, x);
  }
  rn_grad_to(g, 0, rn_Mul(g->scope, dy, product));
  return RN_OK;
}

// An element is part of all sums after it, so the gradient sums in the opposite direction.
RN_RULE(cumsum) {
  bool is_exclusive = rn_grad_attr_bool(g, "exclusive"),
       is_reverse = rn_grad_attr_bool(g, "reverse");
  rn_grad_to(g, 0,
             rn_Cumsum(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1), .exclusive = is_exclusive,
                       .reverse = !is_reverse));
  return RN_OK;
}

// exp(x_i) times the sum of dy_j / exp(y_j) over all y_j that x_i is part of, computed in
// logarithms. So positive and negative dy are summed separately; |sign| selects which.
static rn_edge_t logsumexp_part(rn_grad_t* g, double sign) {
  rn_scope_t* scope = g->scope;
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_rule_scale(g, sign, rn_grad_dy(g, 0));
  int dtype = rn_edge_dtype(x);
  double least = dtype == RN_DOUBLE ? -DBL_MAX : dtype == RN_HALF ? -65504 : -FLT_MAX;
  if (dtype == RN_BFLOAT16) least = -3.3895313892515355e38;
  rn_edge_t is_part = rn_Greater(scope, dy, rn_rule_zero(g, x));
  rn_edge_t logs = rn_SelectV2(scope, is_part, rn_Log(scope, dy), rn_rule_scalar(g, x, least));
  rn_edge_t sums = rn_CumulativeLogsumexp(
      scope, rn_Sub(scope, logs, rn_grad_out(g, 0)), rn_grad_in(g, 1),
      .exclusive = rn_grad_attr_bool(g, "exclusive"), .reverse = !rn_grad_attr_bool(g, "reverse"));
  return rn_Exp(scope, rn_AddV2(scope, sums, x));
}

RN_RULE(cumulative_logsumexp) {
  rn_grad_to(g, 0, rn_Sub(g->scope, logsumexp_part(g, 1), logsumexp_part(g, -1)));
  return RN_OK;
}

RN_RULE(cumprod) {
  bool is_exclusive = rn_grad_attr_bool(g, "exclusive"),
       is_reverse = rn_grad_attr_bool(g, "reverse");
  rn_edge_t x = rn_grad_in(g, 0), axis = rn_grad_in(g, 1);
  rn_edge_t weighted = rn_Mul(g->scope, rn_rule_conj(g, rn_grad_out(g, 0)), rn_grad_dy(g, 0));
  rn_edge_t sums =
      rn_Cumsum(g->scope, weighted, axis, .exclusive = is_exclusive, .reverse = !is_reverse);
  rn_edge_t at = rn_rule_conj(g, x);
  bool is_integer = rn_dtype_is_integer(rn_edge_dtype(x));
  rn_grad_to(g, 0, is_integer ? rn_Div(g->scope, sums, at) : rn_DivNoNan(g->scope, sums, at));
  return RN_OK;
}

// Gradients of the SparseSegment*Grad ops, which are linear: they divide row r of their input by
// the size of segment r raised to |power|, and add it to every row that belongs to the segment.
static rn_status_t sparse_segment_gradient(rn_grad_t* g, double power) {
  rn_edge_t grad = rn_grad_in(g, 0), indices = rn_grad_in(g, 1), runs = rn_grad_in(g, 2);
  if (!rn_grad_wants(g, 0)) return RN_OK;
  rn_shape_t shape = rn_grad_shape(g, grad);
  rn_edge_t zero = rn_const_int32(g->scope, 0), count;
  if (shape.rank > 0 && shape.dims[0] >= 0 && shape.dims[0] <= INT32_MAX)
    count = rn_const_int32(g->scope, (int32_t)shape.dims[0]);
  else
    count = rn_GatherV2(g->scope, rn_rule_shape(g, grad, RN_INT32), zero, zero);
  rn_edge_t rows = rn_GatherV2(g->scope, rn_grad_dy(g, 0), indices, zero);
  rn_edge_t sums = rn_UnsortedSegmentSum(g->scope, rows, runs, count);
  if (power != 0) {
    int dtype = rn_edge_dtype(grad);
    rn_edge_t ones = rn_Cast(g->scope, rn_OnesLike(g->scope, runs), dtype);
    rn_edge_t sizes = rn_UnsortedSegmentSum(g->scope, ones, runs, count);
    sizes = rn_Maximum(g->scope, sizes, rn_const_scalar(g->scope, dtype, 1));
    if (power < 1) sizes = rn_Sqrt(g->scope, sizes);
    // Reshapes the sizes to [count, 1, 1 …] with the rank of the gradient.
    rn_edge_t tail = rn_ZerosLike(g->scope, rn_Shape(g->scope, grad));
    rn_edge_t dims = rn_AddV2(g->scope, tail, rn_const_int32(g->scope, 1));
    rn_edge_t at = rn_const_int32_list(g->scope, (const int32_t[]){0}, 1);
    at = rn_rule_expand(g, at, 1);
    dims = rn_TensorScatterUpdate(g->scope, dims, at, rn_rule_expand(g, count, 0));
    sums = rn_RealDiv(g->scope, sums, rn_Reshape(g->scope, sizes, dims));
  }
  rn_grad_to(g, 0, sums);
  return RN_OK;
}

RN_RULE(sparse_segment_sum_grad) { return sparse_segment_gradient(g, 0); }
RN_RULE(sparse_segment_mean_grad) { return sparse_segment_gradient(g, 1); }
RN_RULE(sparse_segment_sqrt_n_grad) { return sparse_segment_gradient(g, 0.5); }

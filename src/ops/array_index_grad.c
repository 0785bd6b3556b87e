// Gradient rules of gathers and scatters.
#include "ops/rules.h"

// Gather. The gradient of a row is the sum over all positions that it was copied to; unused rows
// get zeros. A segment sum takes ids of any rank whose shape is a prefix of the data's, so a gather
// along the first axis needs nothing else.

static rn_edge_t size_at(rn_grad_t* g, rn_edge_t shape, rn_shape_t known, int64_t axis) {
  if (axis < known.rank && known.dims[axis] >= 0 && known.dims[axis] <= INT32_MAX)
    return rn_const_int32(g->scope, (int32_t)known.dims[axis]);
  rn_edge_t zero = rn_const_int32(g->scope, 0), at = rn_const_int32(g->scope, (int32_t)axis);
  return rn_GatherV2(g->scope, shape, at, zero);
}

// Concatenates a, b and c.
static rn_edge_t chain(rn_grad_t* g, rn_edge_t a, rn_edge_t b, rn_edge_t c) {
  rn_edge_t parts[3] = {a, b, c};
  return rn_ConcatV2(g->scope, parts, 3, rn_const_int32(g->scope, 0));
}

// For flattened batches: shifts the ids of batch b by b * |size|. |lead| is the vector of batch
// sizes.
static rn_edge_t shift_ids(rn_grad_t* g, rn_edge_t ids, rn_edge_t lead, rn_edge_t size,
                           int64_t batch) {
  int dtype = rn_edge_dtype(ids);
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t count = rn_Prod(g->scope, lead, zero);
  rn_edge_t offsets = rn_Mul(g->scope, rn_Range(g->scope, zero, count, one), size);
  rn_edge_t inner =
      rn_Sub(g->scope, rn_Rank(g->scope, ids), rn_const_int32(g->scope, (int32_t)batch));
  rn_edge_t ones = rn_Fill(g->scope, rn_rule_expand(g, inner, 0), one);
  rn_edge_t parts[2] = {lead, ones};
  offsets = rn_Reshape(g->scope, offsets, rn_ConcatV2(g->scope, parts, 2, zero));
  return rn_AddV2(g->scope, ids, rn_rule_cast(g, offsets, dtype));
}

// Swaps the blocks of axes [a, b) and [b, c). If |c| is RN_UNKNOWN, |end| holds it.
static rn_edge_t swap_blocks(rn_grad_t* g, rn_edge_t x, int64_t a, int64_t b, int64_t c,
                             rn_edge_t end) {
  int rank = rn_rule_rank(g, x);
  if (rank >= 0 && c >= 0) {
    int64_t perm[RN_MAX_RANK];
    for (int i = 0; i < rank; ++i)
      perm[i] = i < a || i >= c ? i : i < a + c - b ? b + i - a : i - c + b;
    return rn_Transpose(g->scope, x, rn_rule_ints(g, RN_INT32, perm, rank));
  }
  rn_edge_t zero = rn_const_int32(g->scope, 0), one = rn_const_int32(g->scope, 1);
  rn_edge_t first = rn_const_int32(g->scope, (int32_t)a),
            second = rn_const_int32(g->scope, (int32_t)b);
  if (c >= 0) end = rn_const_int32(g->scope, (int32_t)c);
  rn_edge_t parts[4] = {rn_Range(g->scope, zero, first, one), rn_Range(g->scope, second, end, one),
                        rn_Range(g->scope, first, second, one),
                        rn_Range(g->scope, end, rn_Rank(g->scope, x), one)};
  return rn_Transpose(g->scope, x, rn_ConcatV2(g->scope, parts, 4, zero));
}

// Moves the axes that the gather made from |axis| to the front, after the batch axes.
static rn_edge_t bring_forward(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, int64_t batch,
                               int64_t axis) {
  int rank = rn_rule_rank(g, indices);
  if (rank >= batch) return swap_blocks(g, dy, batch, axis, axis + rank - batch, RN_NO_EDGE);
  rn_edge_t shift = rn_const_int32(g->scope, (int32_t)(axis - batch));
  rn_edge_t end = rn_AddV2(g->scope, rn_Rank(g->scope, indices), shift);
  return swap_blocks(g, dy, batch, axis, RN_UNKNOWN, end);
}

rn_edge_t rn_rule_gather(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, int64_t axis, int64_t batch,
                         rn_edge_t shape, rn_shape_t known) {
  rn_edge_t size = size_at(g, shape, known, axis), total = size;
  rn_edge_t ids = indices, data = dy;
  rn_edge_t lead = RN_NO_EDGE;
  if (axis > batch) data = bring_forward(g, dy, indices, batch, axis);
  if (batch > 0) {
    int64_t none = 0;
    lead = rn_Slice(g->scope, shape, rn_rule_ints(g, RN_INT32, &none, 1),
                    rn_rule_ints(g, RN_INT32, &batch, 1));
    ids = shift_ids(g, indices, lead, size, batch);
    total = rn_Mul(g->scope, rn_Prod(g->scope, lead, rn_const_int32(g->scope, 0)), size);
  }
  rn_edge_t sum = rn_UnsortedSegmentSum(g->scope, data, ids, total);
  if (batch > 0) {
    // [batches * size, …] as [batches …, size, …]
    int64_t one = 1, rest = -1;
    rn_edge_t inner =
        rn_Slice(g->scope, rn_Shape(g->scope, sum), rn_rule_ints(g, RN_INT32, &one, 1),
                 rn_rule_ints(g, RN_INT32, &rest, 1));
    sum = rn_Reshape(g->scope, sum, chain(g, lead, rn_rule_expand(g, size, 0), inner));
  }
  if (axis == batch) return sum;
  return swap_blocks(g, sum, batch, batch + 1, axis + 1, RN_NO_EDGE);
}

rn_gradient_t rn_rule_rows(rn_grad_t* g, rn_edge_t dy, rn_edge_t indices, rn_edge_t shape,
                           rn_shape_t known) {
  rn_gradient_t rows = {.values = dy, .indices = indices, .dense_shape = shape};
  if (rn_rule_rank(g, indices) == 1) return rows;
  int64_t flat = -1, dims[RN_MAX_RANK], one = 1;
  rows.indices = rn_Reshape(g->scope, indices, rn_rule_ints(g, RN_INT32, &flat, 1));
  bool is_known = known.rank > 0;
  for (int i = 1; i < known.rank; ++i) is_known &= (dims[i] = known.dims[i]) >= 0;
  if (is_known) {
    dims[0] = -1;
    rows.values = rn_Reshape(g->scope, dy, rn_rule_ints(g, RN_INT64, dims, known.rank));
    return rows;
  }
  int dtype = rn_edge_dtype(shape);
  rn_edge_t inner = rn_Slice(g->scope, shape, rn_rule_ints(g, RN_INT32, &one, 1),
                             rn_rule_ints(g, RN_INT32, &flat, 1));
  rn_edge_t parts[2] = {rn_rule_ints(g, dtype, &flat, 1), inner};
  rows.values =
      rn_Reshape(g->scope, dy, rn_ConcatV2(g->scope, parts, 2, rn_const_int32(g->scope, 0)));
  return rows;
}

static rn_status_t rows_of(rn_grad_t* g) {
  rn_edge_t params = rn_grad_in(g, 0);
  rn_grad_slices_to(g, 0,
                    rn_rule_rows(g, rn_grad_dy(g, 0), rn_grad_in(g, 1),
                                 rn_rule_shape(g, params, RN_INT32), rn_grad_shape(g, params)));
  return RN_OK;
}

RN_RULE(gather) { return rows_of(g); }

RN_RULE(gather_v2) {
  rn_edge_t params = rn_grad_in(g, 0), indices = rn_grad_in(g, 1);
  rn_shape_t known = rn_grad_shape(g, params);
  int64_t axis, batch = rn_grad_attr_int(g, "batch_dims");
  if (!rn_grad_wants(g, 0)) return RN_OK;
  if (batch < 0) {
    int rank = rn_rule_rank(g, indices);
    if (rank < 0) return rn_unimplemented("batch_dims < 0 and indices of unknown rank");
    batch += rank;
  }
  if (!rn_rule_scalar_value(rn_grad_in(g, 2), &axis))
    return rn_unimplemented("the axis is not a constant");
  if (axis < 0) {
    if (known.rank < 0) return rn_unimplemented("axis < 0 and params of unknown rank");
    axis += known.rank;
  }
  if (axis == 0 && batch == 0) return rows_of(g);
  rn_edge_t shape = rn_rule_shape(g, params, RN_INT32);
  rn_grad_to(g, 0, rn_rule_gather(g, rn_grad_dy(g, 0), indices, axis, batch, shape, known));
  return RN_OK;
}

RN_RULE(gather_nd) {
  rn_edge_t params = rn_grad_in(g, 0), indices = rn_grad_in(g, 1), shape;
  int dtype = rn_edge_dtype(indices);
  shape = rn_rule_shape(g, params, dtype == RN_INT64 ? RN_INT64 : RN_INT32);
  rn_shape_t known = rn_grad_shape(g, indices);
  if (known.rank == 2 && known.dims[1] == 1) {  // indices select whole rows
    int64_t last = -1;
    rn_gradient_t rows = {
        .values = rn_grad_dy(g, 0),
        .indices = rn_Squeeze(g->scope, indices, .squeeze_dims = RN_LIST(&last, 1)),
        .dense_shape = shape};
    rn_grad_slices_to(g, 0, rows);
    return RN_OK;
  }
  rn_grad_to(g, 0,
             rn_ScatterNd(g->scope, indices, rn_grad_dy(g, 0), rn_rule_cast(g, shape, dtype)));
  return RN_OK;
}

RN_RULE(scatter_nd) {
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1, rn_GatherNd(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 0)));
  return RN_OK;
}

RN_RULE(tensor_scatter_add) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, dy);
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, rn_GatherNd(g->scope, dy, rn_grad_in(g, 1)));
  return RN_OK;
}

RN_RULE(tensor_scatter_sub) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, dy);
  if (rn_grad_wants(g, 2))
    rn_grad_to(g, 2, rn_Neg(g->scope, rn_GatherNd(g->scope, dy, rn_grad_in(g, 1))));
  return RN_OK;
}

// Replaced elements do not affect the result.
RN_RULE(tensor_scatter_update) {
  rn_edge_t dy = rn_grad_dy(g, 0), indices = rn_grad_in(g, 1);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t zeros = rn_ZerosLike(g->scope, rn_grad_in(g, 2));
    rn_grad_to(g, 0, rn_TensorScatterUpdate(g->scope, dy, indices, zeros));
  }
  // GatherNd does not support uint16.
  int dtype = rn_edge_dtype(indices);
  rn_edge_t at = dtype == RN_UINT16 ? rn_Cast(g->scope, indices, RN_INT32) : indices;
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, rn_GatherNd(g->scope, dy, at));
  return RN_OK;
}

// The larger (smaller) element gets the gradient; equal ones share it.
RN_RULE(tensor_scatter_extreme) {
  rn_scope_t* scope = g->scope;
  rn_edge_t x = rn_grad_in(g, 0), at = rn_grad_in(g, 1), updates = rn_grad_in(g, 2);
  rn_edge_t y = rn_grad_out(g, 0);
  int dtype = rn_edge_dtype(x);
  rn_edge_t from_x = rn_Cast(scope, rn_Equal(scope, x, y), dtype);
  rn_edge_t from_updates =
      rn_Cast(scope, rn_Equal(scope, updates, rn_GatherNd(scope, y, at)), dtype);
  rn_edge_t shape = rn_rule_shape(g, x, rn_edge_dtype(at));
  rn_edge_t shares = rn_AddV2(scope, from_x, rn_ScatterNd(scope, at, from_updates, shape));
  rn_edge_t share = rn_RealDiv(scope, rn_grad_dy(g, 0), shares);
  if (rn_grad_wants(g, 0)) rn_grad_to(g, 0, rn_Mul(scope, share, from_x));
  if (rn_grad_wants(g, 2))
    rn_grad_to(g, 2, rn_Mul(scope, rn_GatherNd(scope, share, at), from_updates));
  return RN_OK;
}

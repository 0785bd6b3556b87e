// Gradient rules of sparse tensors.
#include "ops/rules.h"

// The indices as a matrix with one row per index; a scalar or a vector holds indices into a vector.
static rn_edge_t places(rn_grad_t* g, rn_edge_t indices, rn_edge_t dense) {
  if (rn_rule_rank(g, indices) == 2) return indices;
  rn_edge_t shape;
  int64_t sizes[2] = {-1, rn_rule_rank(g, dense)};
  if (sizes[1] >= 0) {
    shape = rn_rule_ints(g, RN_INT32, sizes, 2);
  } else {
    rn_edge_t parts[2] = {rn_const_int32(g->scope, -1), rn_Rank(g->scope, dense)};
    shape = rn_Pack(g->scope, parts, 2);
  }
  return rn_Reshape(g->scope, indices, shape);
}

// Values get the gradient at their indices (one value may go to many), the default value that of
// all other elements.
RN_RULE(sparse_to_dense) {
  rn_edge_t values = rn_grad_in(g, 2), dy = rn_grad_dy(g, 0);
  rn_edge_t taken = rn_GatherNd(g->scope, dy, places(g, rn_grad_in(g, 0), dy));
  if (rn_grad_wants(g, 2)) rn_grad_to(g, 2, rn_rule_unbroadcast(g, taken, values, taken, 0));
  if (rn_grad_wants(g, 3))
    rn_grad_to(g, 3, rn_Sub(g->scope, rn_rule_sum_all(g, dy), rn_rule_sum_all(g, taken)));
  return RN_OK;
}

// Undoes the sorting.
RN_RULE(sparse_reorder) {
  rn_scope_t* s = g->scope;
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t numbers =
      rn_Range(s, rn_const_int32(s, 0), rn_Size(s, rn_grad_in(g, 1)), rn_const_int32(s, 1));
  rn_edge_t order = rn_SparseReorder(s, rn_grad_in(g, 0), numbers, rn_grad_in(g, 2)).output_values;
  rn_grad_to(g, 1, rn_Gather(s, rn_grad_dy(g, 1), rn_InvertPermutation(s, order)));
  return RN_OK;
}

RN_RULE(sparse_slice) {
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_grad_to(g, 1,
             rn_SparseSliceGrad(g->scope, rn_grad_dy(g, 1), rn_grad_in(g, 0), rn_grad_in(g, 3),
                                rn_grad_out(g, 0)));
  return RN_OK;
}

// The default value gets the gradients of the filled-in rows.
RN_RULE(sparse_fill_empty_rows) {
  rn_edge_t dy = rn_grad_dy(g, 1), taken = rn_Gather(g->scope, dy, rn_grad_out(g, 3));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, taken);
  if (rn_grad_wants(g, 3))
    rn_grad_to(g, 3, rn_Sub(g->scope, rn_rule_sum_all(g, dy), rn_rule_sum_all(g, taken)));
  return RN_OK;
}

RN_RULE(sparse_tensor_dense_add) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_GatherNd(g->scope, dy, rn_grad_in(g, 0)));
  if (rn_grad_wants(g, 3)) rn_grad_to(g, 3, dy);
  return RN_OK;
}

// Sums |values|, which are at the sparse input's indices, into a tensor of the dense input's shape.
// The dense input may have been broadcast; dimensions that it lacks count as 1.
static rn_edge_t to_dense(rn_grad_t* g, rn_edge_t values) {
  rn_scope_t* s = g->scope;
  rn_edge_t sizes = rn_grad_in(g, 2), dense = rn_grad_in(g, 3), axis = rn_const_int32(s, 0);
  rn_edge_t own = rn_Shape(s, dense, .out_type = RN_INT64);
  rn_edge_t lacking = rn_Sub(s, rn_Size(s, sizes), rn_Rank(s, dense));
  rn_edge_t parts[2] = {
      rn_Fill(s, rn_ExpandDims(s, lacking, axis), rn_const_scalar(s, RN_INT64, 1)), own};
  rn_edge_t shape = rn_ConcatV2(s, parts, 2, axis);
  rn_edge_t places = rn_FloorDiv(s, rn_grad_in(g, 0), rn_FloorDiv(s, sizes, shape));
  return rn_Reshape(s, rn_ScatterNd(s, places, values, shape), own);
}

RN_RULE(sparse_dense_cwise_mul) {
  rn_scope_t* s = g->scope;
  rn_edge_t dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 1))
    rn_grad_to(g, 1,
               rn_SparseDenseCwiseMul(s, rn_grad_in(g, 0), dy, rn_grad_in(g, 2), rn_grad_in(g, 3)));
  if (rn_grad_wants(g, 3)) rn_grad_to(g, 3, to_dense(g, rn_Mul(s, dy, rn_grad_in(g, 1))));
  return RN_OK;
}

RN_RULE(sparse_dense_cwise_div) {
  rn_scope_t* s = g->scope;
  rn_edge_t indices = rn_grad_in(g, 0), sizes = rn_grad_in(g, 2), dense = rn_grad_in(g, 3);
  rn_edge_t dx = rn_SparseDenseCwiseDiv(s, indices, rn_grad_dy(g, 0), sizes, dense);
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, dx);
  if (!rn_grad_wants(g, 3)) return RN_OK;
  rn_edge_t product = rn_Neg(s, rn_Mul(s, dx, rn_grad_in(g, 1)));
  rn_grad_to(g, 3, to_dense(g, rn_SparseDenseCwiseDiv(s, indices, product, sizes, dense)));
  return RN_OK;
}

// Column |i| of the matrix of indices.
static rn_edge_t column(rn_grad_t* g, rn_edge_t indices, int i) {
  rn_scope_t* s = g->scope;
  return rn_GatherV2(s, indices, rn_const_int32(s, i), rn_const_int32(s, 1));
}

// The permutation that transposes a matrix.
static rn_edge_t turn(rn_grad_t* g) { return rn_rule_ints(g, RN_INT32, (int64_t[]){1, 0}, 2); }

// The gradient of a value is the dot product of a row of dy and a row of b.
RN_RULE(sparse_tensor_dense_mat_mul) {
  rn_scope_t* s = g->scope;
  bool adjoint_a = rn_grad_attr_bool(g, "adjoint_a"), adjoint_b = rn_grad_attr_bool(g, "adjoint_b");
  rn_edge_t indices = rn_grad_in(g, 0), values = rn_grad_in(g, 1), shape = rn_grad_in(g, 2);
  rn_edge_t b = rn_grad_in(g, 3), dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 3)) {
    rn_edge_t db =
        rn_SparseTensorDenseMatMul(s, indices, values, shape, dy, .adjoint_a = !adjoint_a);
    if (adjoint_b) db = rn_rule_conj(g, rn_Transpose(s, db, turn(g)));
    rn_grad_to(g, 3, db);
  }
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t rows = column(g, indices, adjoint_a ? 1 : 0);
  rn_edge_t inner = column(g, indices, adjoint_a ? 0 : 1);
  rn_edge_t of_dy = rn_Gather(s, dy, rows);
  rn_edge_t of_b = rn_GatherV2(s, b, inner, rn_const_int32(s, adjoint_b ? 1 : 0));
  if (adjoint_b) of_b = rn_Transpose(s, of_b, turn(g));
  // The gradient of a takes b for y = a conj(b'), and conj(b) for y = a b.
  if (!adjoint_b) of_b = rn_rule_conj(g, of_b);
  rn_edge_t da = rn_Sum(s, rn_Mul(s, of_dy, of_b), rn_const_int32(s, 1));
  rn_grad_to(g, 1, adjoint_a ? rn_rule_conj(g, da) : da);
  return RN_OK;
}

// Each value gets the gradient of the sum that it is part of.
RN_RULE(sparse_reduce_sum) {
  rn_scope_t* s = g->scope;
  rn_edge_t shape = rn_grad_in(g, 2), axes = rn_grad_in(g, 3);
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t rank = rn_Size(s, shape), one = rn_const_int32(s, 1);
  rn_edge_t all = rn_Range(s, rn_const_int32(s, 0), rank, one);
  rn_edge_t flat = rn_Reshape(s, rn_FloorMod(s, rn_Add(s, axes, rank), rank),
                              rn_rule_ints(g, RN_INT32, (int64_t[]){-1}, 1));
  rn_edge_t sizes = rn_Cast(s, shape, RN_INT32);
  rn_edge_t places[2] = {all, flat};
  rn_edge_t values[2] = {sizes, rn_Fill(s, rn_Shape(s, flat), one)};
  rn_edge_t kept_dims = rn_DynamicStitch(s, places, 2, values, 2);
  rn_edge_t dy = rn_Reshape(s, rn_grad_dy(g, 0), kept_dims);
  rn_edge_t scale = rn_FloorDiv(s, shape, rn_Cast(s, kept_dims, RN_INT64));
  rn_grad_to(g, 1, rn_GatherNd(s, dy, rn_FloorDiv(s, rn_grad_in(g, 0), scale)));
  return RN_OK;
}

RN_RULE(sparse_add) {
  rn_SparseAddGrad_out_t grad = rn_SparseAddGrad(g->scope, rn_grad_dy(g, 1), rn_grad_in(g, 0),
                                                 rn_grad_in(g, 3), rn_grad_out(g, 0));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, grad.a_val_grad);
  if (rn_grad_wants(g, 4)) rn_grad_to(g, 4, grad.b_val_grad);
  return RN_OK;
}

// y * (dy - the sum of y * dy over the row). Multiplies ones by a dense tensor to read it at the
// indices of the values.
RN_RULE(sparse_softmax) {
  rn_scope_t* s = g->scope;
  rn_edge_t indices = rn_grad_in(g, 0), sizes = rn_grad_in(g, 2);
  rn_edge_t y = rn_grad_out(g, 0), dy = rn_grad_dy(g, 0);
  if (!rn_grad_wants(g, 1)) return RN_OK;
  rn_edge_t sums = rn_SparseReduceSum(s, indices, rn_Mul(s, y, dy), sizes, rn_const_int32(s, -1),
                                      .keep_dims = true);
  rn_edge_t at_places = rn_SparseDenseCwiseMul(s, indices, rn_OnesLike(s, y), sizes, sums);
  rn_grad_to(g, 1, rn_Mul(s, y, rn_Sub(s, dy, at_places)));
  return RN_OK;
}

// Gradient rules of ops that move elements: reshapes, concatenations, slices, pads.
#include "ops/rules.h"

static rn_status_t to_x(rn_grad_t* g, rn_edge_t dx) {
  rn_grad_to(g, 0, dx);
  return RN_OK;
}

// Identity-like ops.
RN_RULE(identity) { return rn_rule_pass(g, 0, 0); }
RN_RULE(deep_copy) { return to_x(g, rn_grad_dy(g, 0)); }
RN_RULE(ensure_shape) { return to_x(g, rn_grad_dy(g, 0)); }
RN_RULE(placeholder_with_default) { return to_x(g, rn_grad_dy(g, 0)); }

// Rounding is treated as the identity.
RN_RULE(quantize_and_dequantize) { return to_x(g, rn_grad_dy(g, 0)); }

RN_RULE(identity_n) {
  for (int i = 0; i < g->input_count; ++i) rn_grad_slices_to(g, i, g->dy[i]);
  return RN_OK;
}

// Reshapes.
static rn_status_t back_to_shape(rn_grad_t* g) {
  return to_x(g, rn_rule_reshape_like(g, rn_grad_dy(g, 0), rn_grad_in(g, 0)));
}

// The number of elements in a row; 0 if not known.
static int64_t row_size(rn_shape_t shape) {
  int64_t size = 1;
  if (shape.rank < 1) return 0;
  for (int i = 1; i < shape.rank; ++i)
    if (shape.dims[i] <= 0 || !rn_mul_i64_ok(size, shape.dims[i], &size)) return 0;
  return size;
}

// Slices stay slices if a row of the new shape consists of whole rows of the old.
RN_RULE(reshape) {
  rn_gradient_t rows;
  rn_edge_t x = rn_grad_in(g, 0);
  rn_shape_t from = rn_grad_shape(g, x), to = rn_grad_shape(g, rn_grad_out(g, 0));
  int64_t from_size = row_size(from), to_size = row_size(to);
  if (!rn_grad_slices(g, 0, &rows) || !from_size || !to_size || to_size % from_size != 0)
    return back_to_shape(g);
  int64_t dims[RN_MAX_RANK], many = to_size / from_size;
  memcpy(dims, from.dims, (size_t)from.rank * sizeof *dims);
  rows.dense_shape = rn_shape_is_full(from) ? rn_rule_ints(g, RN_INT64, dims, from.rank)
                                            : rn_rule_shape(g, x, RN_INT64);
  dims[0] = -1;
  rows.values = rn_Reshape(g->scope, rows.values, rn_rule_ints(g, RN_INT64, dims, from.rank));
  if (many > 1 && many <= INT32_MAX) {
    rn_edge_t wide = rows.indices, within = rn_rule_range(g, 0, (int)many, 1);
    if (rn_edge_dtype(wide) != RN_INT64) wide = rn_Cast(g->scope, wide, RN_INT64);
    wide = rn_Reshape(g->scope, wide, rn_rule_ints(g, RN_INT32, (const int64_t[]){-1, 1}, 2));
    wide = rn_Mul(g->scope, wide, rn_const_scalar(g->scope, RN_INT64, (double)many));
    wide = rn_AddV2(g->scope, wide, rn_Cast(g->scope, within, RN_INT64));
    rows.indices = rn_Reshape(g->scope, wide, rn_rule_ints(g, RN_INT32, (const int64_t[]){-1}, 1));
  }
  rn_grad_slices_to(g, 0, rows);
  return RN_OK;
}
RN_RULE(expand_dims) { return back_to_shape(g); }
RN_RULE(squeeze) { return back_to_shape(g); }

// The inverse of |perm|.
static rn_edge_t undo_permutation(rn_grad_t* g, rn_edge_t perm) {
  int dtype = rn_edge_dtype(perm), count = 0;
  const int64_t* values = rn_rule_values(perm, &count);
  int64_t inverse[RN_MAX_RANK] = {0};
  for (int i = 0; values && i < count; ++i) {
    bool fits = values[i] >= 0 && values[i] < count;
    if (fits) inverse[values[i]] = i;
    if (!fits) values = NULL;
  }
  return values ? rn_rule_ints(g, dtype, inverse, count) : rn_InvertPermutation(g->scope, perm);
}

RN_RULE(transpose) {
  return to_x(g, rn_Transpose(g->scope, rn_grad_dy(g, 0), undo_permutation(g, rn_grad_in(g, 1))));
}
RN_RULE(conjugate_transpose) {
  rn_edge_t back = undo_permutation(g, rn_grad_in(g, 1));
  return to_x(g, rn_ConjugateTranspose(g->scope, rn_grad_dy(g, 0), back));
}

RN_RULE(roll) {
  rn_edge_t back = rn_Neg(g->scope, rn_grad_in(g, 1));
  return to_x(g, rn_Roll(g->scope, rn_grad_dy(g, 0), back, rn_grad_in(g, 2)));
}

RN_RULE(fill) {
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_rule_sum_all(g, rn_grad_dy(g, 0)));
  return RN_OK;
}

RN_RULE(broadcast_to) {
  return to_x(g, rn_rule_unbroadcast(g, rn_grad_dy(g, 0), rn_grad_in(g, 0), rn_grad_out(g, 0), 0));
}

// Splits each axis of the result into (repetition, element) and sums over the repetitions.
static bool tile_shape(const rn_grad_t* g, int64_t* out, int* out_rank) {
  rn_shape_t shape = rn_grad_shape(g, rn_grad_in(g, 0));
  int count = 0;
  const int64_t* multiples = rn_rule_values(rn_grad_in(g, 1), &count);
  if (!multiples || !rn_shape_is_full(shape) || shape.rank != count) return false;
  for (int i = 0; i < count; ++i) {
    out[2 * i] = multiples[i];
    out[2 * i + 1] = shape.dims[i];
  }
  *out_rank = count;
  return true;
}

RN_RULE(tile) {
  rn_edge_t dy = rn_grad_dy(g, 0), x = rn_grad_in(g, 0), parts, axes;
  int64_t sizes[2 * RN_MAX_RANK];
  int rank = rn_rule_rank(g, x);
  if (rank == 0) return to_x(g, dy);
  if (tile_shape(g, sizes, &rank)) {
    parts = rn_rule_ints(g, RN_INT64, sizes, 2 * rank);
  } else {
    rn_edge_t pair[2] = {rn_grad_in(g, 1), RN_NO_EDGE};
    pair[1] = rn_rule_shape(g, x, rn_edge_dtype(pair[0]));
    int64_t whole = -1;
    parts = rn_Reshape(g->scope, rn_Pack(g->scope, pair, 2, .axis = 1),
                       rn_rule_ints(g, RN_INT32, &whole, 1));
  }
  if (rank >= 0) {
    axes = rn_rule_range(g, 0, 2 * rank, 2);
  } else {
    rn_edge_t size = rn_Size(g->scope, parts);
    axes = rn_Range(g->scope, rn_const_int32(g->scope, 0), size, rn_const_int32(g->scope, 2));
  }
  return to_x(g, rn_Sum(g->scope, rn_Reshape(g->scope, dy, parts), axes));
}

// The gradient of a concatenation is a split, and vice versa.

// The sizes of the parts along |axis|; false if one is not known.
static bool part_sizes(const rn_grad_t* g, int first, int count, int64_t axis, int64_t* sizes) {
  for (int i = 0; i < count; ++i) {
    rn_shape_t shape = rn_grad_shape(g, rn_grad_in(g, first + i));
    if (shape.rank <= 0) return false;
    int64_t at = axis < 0 ? axis + shape.rank : axis;
    if (at < 0 || at >= shape.rank || shape.dims[at] < 0) return false;
    sizes[i] = shape.dims[at];
  }
  return true;
}

// Slices the gradient at each part's offset, if the sizes are known only at run time.
static rn_status_t cut_by_offsets(rn_grad_t* g, int first, int count, rn_edge_t axis) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  rn_edge_t* shapes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)count, &shapes));
  rn_edges_t all = rn_ShapeN(g->scope, &g->inputs[first], count);
  for (int i = 0; i < count; ++i) shapes[i] = rn_edge_at(all, i);
  axis = rn_FloorMod(g->scope, rn_rule_cast(g, axis, RN_INT32),
                     rn_Rank(g->scope, rn_grad_in(g, first)));
  rn_edges_t begins = rn_ConcatOffset(g->scope, axis, shapes, count);
  for (int i = 0; i < count; ++i) {
    if (!rn_grad_wants(g, first + i)) continue;
    rn_grad_to(g, first + i, rn_Slice(g->scope, dy, rn_edge_at(begins, i), shapes[i]));
  }
  return RN_OK;
}

// If only one part needs a gradient, computes just its columns of the matrix, where that is
// possible.
static bool cut_columns(rn_grad_t* g, int first, int count, int64_t axis, const int64_t* sizes) {
  int part = -1, wanted = 0;
  int64_t begin = 0;
  for (int i = 0; i < count; ++i) {
    wanted += rn_grad_wants(g, first + i);
    if (rn_grad_wants(g, first + i)) part = i;
  }
  if (wanted != 1 || rn_rule_rank(g, rn_grad_in(g, first)) != 2 || (axis != 1 && axis != -1))
    return false;
  for (int i = 0; i < part; ++i) begin += sizes[i];
  rn_edge_t columns = g->columns_of(g->shape_arg, rn_grad_dy(g, 0), begin, sizes[part]);
  if (columns.node) rn_grad_to(g, first + part, columns);
  return columns.node != NULL;
}

static rn_status_t cut(rn_grad_t* g, int first, int count, rn_edge_t axis) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  int64_t at, *sizes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)count, &sizes));
  if (!rn_rule_scalar_value(axis, &at) || !part_sizes(g, first, count, at, sizes))
    return cut_by_offsets(g, first, count, axis);
  if (g->columns_of && cut_columns(g, first, count, at, sizes)) return RN_OK;
  bool is_even = true;
  for (int i = 1; i < count; ++i) is_even &= sizes[i] == sizes[0];
  axis = rn_rule_cast(g, axis, RN_INT32);
  rn_edges_t parts =
      is_even ? rn_Split(g->scope, axis, dy, count)
              : rn_SplitV(g->scope, dy, rn_rule_ints(g, RN_INT64, sizes, count), axis, count);
  for (int i = 0; parts.node && i < count; ++i) rn_grad_to(g, first + i, rn_edge_at(parts, i));
  return RN_OK;
}

// Splits gradients that are slices of a concatenation. Along the first axis, each part gets the
// slices whose rows are in it, renumbered; along another axis, each part gets its columns of all
// slices.
static rn_status_t cut_slices(rn_grad_t* g, int first, int count, int64_t axis,
                              rn_gradient_t rows) {
  int64_t begin = 0, *sizes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)count, &sizes));
  if (!part_sizes(g, first, count, axis, sizes)) return rn_internal("part sizes are unknown");
  int dtype = rn_edge_dtype(rows.indices), rank = rn_rule_rank(g, rn_grad_in(g, first));
  if (axis < 0) axis += rank;
  for (int i = 0; i < count; begin += sizes[i++]) {
    if (!rn_grad_wants(g, first + i)) continue;
    rn_gradient_t part = rows;
    part.dense_shape = rn_rule_shape(g, rn_grad_in(g, first + i), RN_INT64);
    if (axis > 0) {
      int64_t from[RN_MAX_RANK] = {0}, size[RN_MAX_RANK];
      for (int d = 0; d < rank; ++d) size[d] = -1;
      from[axis] = begin;
      size[axis] = sizes[i];
      part.values = rn_Slice(g->scope, rows.values, rn_rule_ints(g, RN_INT64, from, rank),
                             rn_rule_ints(g, RN_INT64, size, rank));
    } else {
      rn_edge_t low = rn_const_scalar(g->scope, dtype, (double)begin);
      rn_edge_t high = rn_const_scalar(g->scope, dtype, (double)(begin + sizes[i]));
      rn_edge_t inside = rn_LogicalAnd(g->scope, rn_GreaterEqual(g->scope, rows.indices, low),
                                       rn_Less(g->scope, rows.indices, high));
      int64_t column = 1;
      rn_edge_t which =
          rn_Squeeze(g->scope, rn_Where(g->scope, inside), .squeeze_dims = RN_LIST(&column, 1));
      rn_edge_t zero = rn_const_int32(g->scope, 0);
      part.values = rn_GatherV2(g->scope, rows.values, which, zero);
      part.indices = rn_Sub(g->scope, rn_GatherV2(g->scope, rows.indices, which, zero), low);
    }
    rn_grad_slices_to(g, first + i, part);
  }
  return RN_OK;
}

static rn_status_t cut_any(rn_grad_t* g, int first, int count, rn_edge_t axis) {
  rn_gradient_t rows;
  int64_t at, *sizes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)count, &sizes));
  if (rn_grad_slices(g, 0, &rows) && rn_rule_scalar_value(axis, &at) &&
      part_sizes(g, first, count, at, sizes))
    return cut_slices(g, first, count, at, rows);
  return cut(g, first, count, axis);
}

RN_RULE(concat) { return cut_any(g, 1, g->input_count - 1, rn_grad_in(g, 0)); }
RN_RULE(concat_v2) { return cut_any(g, 0, g->input_count - 1, rn_grad_in(g, g->input_count - 1)); }

static rn_status_t join(rn_grad_t* g, int to, rn_edge_t axis) {
  rn_edge_t* dys;
  RN_RETURN_IF_ERROR(rn_rule_all_dy(g, &dys));
  rn_grad_to(g, to,
             g->output_count == 1 ? dys[0] : rn_ConcatV2(g->scope, dys, g->output_count, axis));
  return RN_OK;
}

RN_RULE(split) { return join(g, 1, rn_grad_in(g, 0)); }
RN_RULE(split_v) { return join(g, 0, rn_grad_in(g, 2)); }

RN_RULE(pack) {
  rn_edges_t parts =
      rn_Unpack(g->scope, rn_grad_dy(g, 0), g->input_count, .axis = rn_grad_attr_int(g, "axis"));
  for (int i = 0; parts.node && i < g->input_count; ++i) rn_grad_to(g, i, rn_edge_at(parts, i));
  return RN_OK;
}

RN_RULE(unpack) {
  rn_edge_t* dys;
  RN_RETURN_IF_ERROR(rn_rule_all_dy(g, &dys));
  if (g->output_count == 0) return RN_OK;
  return to_x(g, rn_Pack(g->scope, dys, g->output_count, .axis = rn_grad_attr_int(g, "axis")));
}

// The gradient of a slice is a pad, and vice versa.

RN_RULE(slice) {
  rn_edge_t x = rn_grad_in(g, 0), begin = rn_grad_in(g, 1), dy = rn_grad_dy(g, 0);
  rn_shape_t from = rn_grad_shape(g, x), to = rn_grad_shape(g, rn_grad_out(g, 0));
  int dtype = rn_edge_dtype(begin), count = 0;
  const int64_t* at = rn_rule_values(begin, &count);
  if (rn_shape_is_full(from) && rn_shape_is_full(to) && at && count == from.rank &&
      from.rank == to.rank && dtype == RN_INT32) {
    int32_t pads[2 * RN_MAX_RANK];
    for (int i = 0; i < count; ++i) {
      pads[2 * i] = (int32_t)at[i];
      pads[2 * i + 1] = (int32_t)(from.dims[i] - to.dims[i] - at[i]);
    }
    int64_t dims[2] = {count, 2};
    return to_x(g, rn_Pad(g->scope, dy, rn_const(g->scope, RN_INT32, dims, 2, pads)));
  }
  rn_edge_t rest = rn_Sub(g->scope, rn_rule_shape(g, x, dtype), rn_rule_shape(g, dy, dtype));
  rn_edge_t pads[2] = {begin, rn_Sub(g->scope, rest, begin)};
  return to_x(g, rn_Pad(g->scope, dy, rn_Pack(g->scope, pads, 2, .axis = 1)));
}

static rn_status_t unpad(rn_grad_t* g) {
  rn_edge_t x = rn_grad_in(g, 0), pads = rn_grad_in(g, 1);
  rn_edge_t begin = rn_edge_at(rn_Unpack(g->scope, pads, 2, .axis = 1), 0);
  rn_edge_t size = rn_rule_shape(g, x, rn_edge_dtype(pads));
  return to_x(g, rn_Slice(g->scope, rn_grad_dy(g, 0), begin, size));
}

RN_RULE(pad) { return unpad(g); }
RN_RULE(pad_v2) { return unpad(g); }

RN_RULE(mirror_pad) {
  return to_x(g, RN_RULE_ALIKE(g, "MirrorPadGrad", rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

RN_RULE(mirror_pad_grad) {
  return to_x(g, RN_RULE_ALIKE(g, "MirrorPad", rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

RN_RULE(strided_slice) {
  rn_edge_t at[3];
  // The op accepts int16, but its gradient op does not.
  int dtype = rn_edge_dtype(rn_grad_in(g, 1)) == RN_INT64 ? RN_INT64 : RN_INT32;
  for (int i = 0; i < 3; ++i) at[i] = rn_rule_cast(g, rn_grad_in(g, 1 + i), dtype);
  rn_edge_t shape = rn_rule_shape(g, rn_grad_in(g, 0), dtype);
  return to_x(g,
              RN_RULE_ALIKE(g, "StridedSliceGrad", shape, at[0], at[1], at[2], rn_grad_dy(g, 0)));
}

RN_RULE(strided_slice_grad) {
  if (!rn_grad_wants(g, 4)) return RN_OK;
  rn_grad_to(g, 4,
             RN_RULE_ALIKE(g, "StridedSlice", rn_grad_dy(g, 0), rn_grad_in(g, 1), rn_grad_in(g, 2),
                           rn_grad_in(g, 3)));
  return RN_OK;
}

RN_RULE(tensor_strided_slice_update) {
  rn_edge_t dy = rn_grad_dy(g, 0), at[3], value = rn_grad_in(g, 4);
  for (int i = 0; i < 3; ++i) at[i] = rn_grad_in(g, 1 + i);
  rn_edge_t slice = RN_RULE_ALIKE(g, "StridedSlice", dy, at[0], at[1], at[2]);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0,
               RN_RULE_ALIKE(g, "TensorStridedSliceUpdate", dy, at[0], at[1], at[2],
                             rn_ZerosLike(g->scope, slice)));
  if (rn_grad_wants(g, 4)) rn_grad_to(g, 4, rn_rule_unbroadcast(g, slice, value, slice, 0));
  return RN_OK;
}

// A reversal is its own inverse.
RN_RULE(reverse) { return to_x(g, rn_Reverse(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1))); }
RN_RULE(reverse_v2) { return to_x(g, rn_ReverseV2(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1))); }

RN_RULE(reverse_sequence) {
  return to_x(g, RN_RULE_ALIKE(g, "ReverseSequence", rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

// Ops between space, batch and depth: the gradient moves the blocks back.
RN_RULE(batch_to_space) {
  return to_x(g, RN_RULE_ALIKE(g, "SpaceToBatch", rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

RN_RULE(space_to_batch) {
  return to_x(g, RN_RULE_ALIKE(g, "BatchToSpace", rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

RN_RULE(batch_to_space_nd) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  return to_x(g, rn_SpaceToBatchND(g->scope, dy, rn_grad_in(g, 1), rn_grad_in(g, 2)));
}

RN_RULE(space_to_batch_nd) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  return to_x(g, rn_BatchToSpaceND(g->scope, dy, rn_grad_in(g, 1), rn_grad_in(g, 2)));
}

RN_RULE(depth_to_space) { return to_x(g, RN_RULE_ALIKE(g, "SpaceToDepth", rn_grad_dy(g, 0))); }
RN_RULE(space_to_depth) { return to_x(g, RN_RULE_ALIKE(g, "DepthToSpace", rn_grad_dy(g, 0))); }

// Diagonals.
RN_RULE(diag) { return to_x(g, rn_DiagPart(g->scope, rn_grad_dy(g, 0))); }
RN_RULE(diag_part) { return to_x(g, rn_Diag(g->scope, rn_grad_dy(g, 0))); }
RN_RULE(matrix_diag) { return to_x(g, rn_MatrixDiagPart(g->scope, rn_grad_dy(g, 0))); }

RN_RULE(matrix_diag_part) {
  rn_edge_t x = rn_grad_in(g, 0), dy = rn_grad_dy(g, 0);
  rn_shape_t shape = rn_grad_shape(g, x);
  bool is_square = shape.rank >= 2 && shape.dims[shape.rank - 1] >= 0 &&
                   shape.dims[shape.rank - 1] == shape.dims[shape.rank - 2];
  return to_x(g, is_square ? rn_MatrixDiag(g->scope, dy)
                           : rn_MatrixSetDiag(g->scope, rn_ZerosLike(g->scope, x), dy));
}

RN_RULE(matrix_set_diag) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  if (rn_grad_wants(g, 0))
    rn_grad_to(g, 0, rn_MatrixSetDiag(g->scope, dy, rn_ZerosLike(g->scope, rn_grad_in(g, 1))));
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, rn_MatrixDiagPart(g->scope, dy));
  return RN_OK;
}

// Diagonals by index. The V2 ops have no "align" attribute.
static const char* align_of(const rn_grad_t* g) {
  return strstr(rn_grad_op(g), "V3") ? RN_RULE_TEXT(g, "align") : NULL;
}

static rn_edge_t diagonals_of(rn_grad_t* g, rn_edge_t matrices, rn_edge_t k) {
  const char* align = align_of(g);
  rn_edge_t zero = rn_rule_zero(g, matrices);
  return align ? rn_MatrixDiagPartV3(g->scope, matrices, k, zero, .align = align)
               : rn_MatrixDiagPartV2(g->scope, matrices, k, zero);
}

static rn_edge_t with_diagonals(rn_grad_t* g, rn_edge_t matrices, rn_edge_t lines, rn_edge_t k) {
  const char* align = align_of(g);
  return align ? rn_MatrixSetDiagV3(g->scope, matrices, lines, k, .align = align)
               : rn_MatrixSetDiagV2(g->scope, matrices, lines, k);
}

RN_RULE(matrix_diag_v2) { return to_x(g, diagonals_of(g, rn_grad_dy(g, 0), rn_grad_in(g, 1))); }

RN_RULE(matrix_diag_part_v2) {
  rn_edge_t zeros = rn_ZerosLike(g->scope, rn_grad_in(g, 0));
  return to_x(g, with_diagonals(g, zeros, rn_grad_dy(g, 0), rn_grad_in(g, 1)));
}

RN_RULE(matrix_set_diag_v2) {
  rn_edge_t dy = rn_grad_dy(g, 0), k = rn_grad_in(g, 2);
  if (rn_grad_wants(g, 0)) {
    rn_edge_t zeros = rn_ZerosLike(g->scope, rn_grad_in(g, 1));
    rn_grad_to(g, 0, with_diagonals(g, dy, zeros, k));
  }
  if (rn_grad_wants(g, 1)) rn_grad_to(g, 1, diagonals_of(g, dy, k));
  return RN_OK;
}

RN_RULE(matrix_band_part) {
  return to_x(g, rn_MatrixBandPart(g->scope, rn_grad_dy(g, 0), rn_grad_in(g, 1), rn_grad_in(g, 2)));
}

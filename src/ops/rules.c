// Shapes, constants and broadcasting for gradient rules.
#include "ops/rules.h"

#include "graph/build.h"

const int64_t* rn_rule_values(rn_edge_t edge, int* out_count) {
  if (!edge.node || edge.index != 0) return NULL;
  const rn_partial_t* partial = &edge.node->partial;
  if (!partial->is_known) return NULL;
  for (int i = 0; i < partial->count; ++i)
    if (partial->values[i] == RN_UNKNOWN_VALUE) return NULL;
  static const int64_t none;
  *out_count = partial->count;
  return partial->count ? partial->values : &none;
}

bool rn_rule_scalar_value(rn_edge_t edge, int64_t* out_value) {
  int count;
  const int64_t* values = rn_rule_values(edge, &count);
  if (!values || count != 1) return false;
  *out_value = values[0];
  return true;
}

int rn_rule_rank(const rn_grad_t* g, rn_edge_t edge) { return rn_grad_shape(g, edge).rank; }

rn_edge_t rn_rule_ints(rn_grad_t* g, int dtype, const int64_t* values, int count) {
  int64_t dim = count;
  if (dtype == RN_INT64) return rn_const(g->scope, RN_INT64, &dim, 1, values);
  int32_t few[16], *narrow = few;
  if (count > 16) {
    rn_status_t status = RN_ARENA_ARRAY(g->arena, (size_t)count, &narrow);
    if (!rn_ok(status)) {
      rn_scope_fail(g->scope, status);
      return RN_NO_EDGE;
    }
  }
  for (int i = 0; i < count; ++i) narrow[i] = (int32_t)values[i];
  return rn_const(g->scope, RN_INT32, &dim, 1, narrow);
}

rn_edge_t rn_rule_range(rn_grad_t* g, int first, int limit, int step) {
  int64_t values[2 * RN_MAX_RANK];
  int count = 0;
  for (int i = first; i < limit && count < 2 * RN_MAX_RANK; i += step) values[count++] = i;
  return rn_rule_ints(g, RN_INT32, values, count);
}

static void copy_attr(rn_scope_t* scope, const char* name, const rn_attr_value_t* value) {
  if (value->is_list) {
    if (value->kind == RN_ATTR_INT) rn_op_attr_int_list(scope, name, value->list_i, value->count);
    if (value->kind == RN_ATTR_TYPE)
      rn_op_attr_type_list(scope, name, (const int*)value->list_type, value->count);
    return;
  }
  switch (value->kind) {
    case RN_ATTR_STRING:
      rn_op_attr_bytes(scope, name, value->s);
      break;
    case RN_ATTR_INT:
      rn_op_attr_int(scope, name, value->i);
      break;
    case RN_ATTR_FLOAT:
      rn_op_attr_float(scope, name, value->f);
      break;
    case RN_ATTR_BOOL:
      rn_op_attr_bool(scope, name, value->b);
      break;
    default:
      break;
  }
}

rn_edge_t rn_rule_alike_(rn_grad_t* g, const char* op, int input_count, const rn_edge_t* inputs) {
  const rn_op_def_t* def = rn_op_find(rn_str(op));
  rn_op_begin(g->scope, op);
  if (def && def->input_count == 1 && def->inputs[0].type_list_attr >= 0)
    rn_op_input_list(g->scope, inputs, input_count);
  else
    for (int i = 0; i < input_count; ++i) rn_op_input(g->scope, inputs[i]);
  for (int i = 0; def && i < def->attr_count; ++i) {
    const rn_attr_def_t* attr = &def->attrs[i];
    const rn_attr_value_t* value = rn_node_attr(g->node, rn_str(attr->name));
    if (value && value->kind == attr->kind && value->is_list == attr->is_list)
      copy_attr(g->scope, attr->name, value);
  }
  return (rn_edge_t){rn_op_finish(g->scope), 0};
}

rn_status_t rn_rule_all_dy(rn_grad_t* g, rn_edge_t** out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(g->arena, (size_t)g->output_count, out));
  for (int i = 0; i < g->output_count; ++i) (*out)[i] = rn_grad_dy(g, i);
  return RN_OK;
}

static bool fits_int32(rn_shape_t shape) {
  for (int i = 0; i < shape.rank; ++i)
    if (shape.dims[i] > INT32_MAX) return false;
  return true;
}

rn_edge_t rn_rule_shape(rn_grad_t* g, rn_edge_t like, int dtype) {
  rn_shape_t shape = rn_grad_shape(g, like);
  if (rn_shape_is_full(shape) && (dtype == RN_INT64 || fits_int32(shape)))
    return rn_rule_ints(g, dtype, shape.dims, shape.rank);
  if (g->shape_of) return g->shape_of(g->shape_arg, like, dtype);
  return rn_Shape(g->scope, like, .out_type = dtype);
}

rn_edge_t rn_rule_scalar(rn_grad_t* g, rn_edge_t like, double value) {
  if (!like.node) return RN_NO_EDGE;
  return rn_const_scalar(g->scope, rn_edge_dtype(like), value);
}

rn_edge_t rn_rule_scale(rn_grad_t* g, double factor, rn_edge_t edge) {
  return rn_Mul(g->scope, rn_rule_scalar(g, edge, factor), edge);
}

rn_edge_t rn_rule_conj(rn_grad_t* g, rn_edge_t edge) {
  if (!edge.node || !rn_dtype_is_complex(rn_edge_dtype(edge))) return edge;
  return rn_Conj(g->scope, edge);
}

rn_edge_t rn_rule_cast(rn_grad_t* g, rn_edge_t edge, int dtype) {
  if (!edge.node || rn_edge_dtype(edge) == dtype) return edge;
  return rn_Cast(g->scope, edge, dtype);
}

rn_edge_t rn_rule_reshape_like(rn_grad_t* g, rn_edge_t edge, rn_edge_t like) {
  rn_shape_t from = rn_grad_shape(g, edge), to = rn_grad_shape(g, like);
  if (rn_shape_is_full(from) && rn_shape_eq(from, to)) return edge;
  return rn_Reshape(g->scope, edge, rn_rule_shape(g, like, RN_INT32));
}

rn_edge_t rn_rule_sum_all(rn_grad_t* g, rn_edge_t edge) {
  int rank = rn_rule_rank(g, edge);
  if (rank == 0) return edge;
  rn_edge_t axes = rank > 0 ? rn_rule_range(g, 0, rank, 1)
                            : rn_Range(g->scope, rn_const_int32(g->scope, 0),
                                       rn_Rank(g->scope, edge), rn_const_int32(g->scope, 1));
  return rn_Sum(g->scope, edge, axes);
}

rn_edge_t rn_rule_expand(rn_grad_t* g, rn_edge_t edge, int axis) {
  return rn_ExpandDims(g->scope, edge, rn_const_int32(g->scope, axis));
}

// The axes of a broadcast result to sum over, for one operand.
typedef struct rules_axes_t {
  int missing;  // leading axes that the operand does not have
  int count;    // further axes, of size 1 in the operand
  int64_t at[RN_MAX_RANK];
} rules_axes_t;

// Returns false if the static shapes do not determine them.
static bool find_axes(rn_shape_t own, rn_shape_t other, int fixed, rules_axes_t* out) {
  out->count = 0;
  if (own.rank < fixed || other.rank < fixed) return false;
  out->missing = other.rank > own.rank ? other.rank - own.rank : 0;
  for (int i = 0; i < own.rank - fixed; ++i) {
    int j = i + other.rank - own.rank;
    int64_t mine = own.dims[i], theirs = j < 0 ? 1 : other.dims[j];
    if (theirs == 1 || (mine != 1 && mine != RN_UNKNOWN)) continue;
    if (mine == RN_UNKNOWN) return false;
    out->at[out->count++] = out->missing + i;
  }
  return true;
}

static rn_edge_t sum_axes(rn_grad_t* g, rn_edge_t value, rn_edge_t own, const rules_axes_t* axes) {
  if (axes->missing + axes->count == 0) return value;
  int64_t at[2 * RN_MAX_RANK];
  int count = 0;
  for (int i = 0; i < axes->missing; ++i) at[count++] = i;
  for (int i = 0; i < axes->count; ++i) at[count++] = axes->at[i];
  rn_edge_t which = rn_rule_ints(g, RN_INT32, at, count);
  if (axes->missing == 0) return rn_Sum(g->scope, value, which, .keep_dims = true);
  rn_edge_t sum = rn_Sum(g->scope, value, which);
  if (axes->count == 0) return sum;
  return rn_Reshape(g->scope, sum, rn_rule_shape(g, own, RN_INT32));
}

rn_edge_t rn_rule_unbroadcast(rn_grad_t* g, rn_edge_t value, rn_edge_t own, rn_edge_t other,
                              int fixed) {
  rules_axes_t axes;
  if (find_axes(rn_grad_shape(g, own), rn_grad_shape(g, other), fixed, &axes))
    return sum_axes(g, value, own, &axes);
  rn_edge_t shape = rn_rule_shape(g, own, RN_INT32);
  rn_BroadcastGradientArgs_out_t args =
      rn_BroadcastGradientArgs(g->scope, shape, rn_rule_shape(g, value, RN_INT32));
  return rn_Reshape(g->scope, rn_Sum(g->scope, value, args.r0), shape);
}

rn_status_t rn_rule_broadcast(rn_grad_t* g, int x, rn_edge_t dx, int y, rn_edge_t dy) {
  rn_edge_t inputs[2] = {rn_grad_in(g, x), rn_grad_in(g, y)}, values[2] = {dx, dy};
  int numbers[2] = {x, y};
  rn_edge_t shapes[2] = {RN_NO_EDGE, RN_NO_EDGE};
  rn_BroadcastGradientArgs_out_t args = {RN_NO_EDGE, RN_NO_EDGE};
  for (int i = 0; i < 2; ++i) {
    if (!values[i].node || !rn_grad_wants(g, numbers[i])) continue;
    rules_axes_t axes;
    rn_edge_t sum;
    if (find_axes(rn_grad_shape(g, inputs[i]), rn_grad_shape(g, inputs[1 - i]), 0, &axes)) {
      sum = sum_axes(g, values[i], inputs[i], &axes);
    } else {
      if (!shapes[0].node) {  // once for both sides
        for (int k = 0; k < 2; ++k) shapes[k] = rn_rule_shape(g, inputs[k], RN_INT32);
        args = rn_BroadcastGradientArgs(g->scope, shapes[0], shapes[1]);
      }
      sum = rn_Sum(g->scope, values[i], i ? args.r1 : args.r0);
      sum = rn_Reshape(g->scope, sum, shapes[i]);
    }
    rn_grad_to(g, numbers[i], sum);
  }
  return RN_OK;
}

// The nodes of fused attention: see attention.h.
//
// They read q, k, v and dy, and write y and the gradients, in any layout whose rows are contiguous.
// So the transpositions that split the heads and join them again are left out.
#include "framework/internal_ops.h"
#include "step/attention.h"
#include "step/views.h"

enum { SIDE_Q, SIDE_K, SIDE_V, SIDE_Y, SIDE_DY, SIDE_DQ, SIDE_DK, SIDE_DV, SIDES };
#define SIDE_NUMBERS \
  4  // of a side in the attribute "layouts": offset, steps of batch, head and row

typedef struct attention_nodes_t {
  rn_ir_t* ir;
  const rn_attention_t* a;
  rn_ir_edge_t tensors[SIDES];
  int64_t layouts[SIDES * SIDE_NUMBERS];
  int64_t sizes[5];       // batch, heads, queries, keys, depth
  int64_t mask_steps[4];  // heads per matrix; steps of matrices, queries and keys
} attention_nodes_t;

static rn_shape_t shape_of(const rn_ir_t* ir, rn_ir_edge_t edge) {
  return rn_ir_node(ir, edge.node)->shapes[edge.output];
}

static void set_sizes(attention_nodes_t* n) {
  rn_shape_t q = shape_of(n->ir, n->a->q), k = shape_of(n->ir, n->a->k);
  const int rank = q.rank;
  int64_t heads = 1;
  for (int d = 0; d < rank - 2; ++d) heads *= q.dims[d];
  n->sizes[0] = rank == 4 ? q.dims[0] : 1;
  n->sizes[1] = heads / n->sizes[0];
  n->sizes[2] = q.dims[rank - 2];
  n->sizes[3] = k.dims[rank - 2];
  n->sizes[4] = q.dims[rank - 1];
}

// The layout of a value as it is, row by row.
static void set_plain(attention_nodes_t* n, int side, rn_ir_edge_t edge) {
  rn_shape_t shape = shape_of(n->ir, edge);
  const int64_t depth = shape.dims[shape.rank - 1], head = depth * shape.dims[shape.rank - 2];
  const int64_t layout[SIDE_NUMBERS] = {0, n->sizes[1] * head, head, depth};
  memcpy(&n->layouts[side * SIDE_NUMBERS], layout, sizeof layout);
  n->tensors[side] = edge;
}

// Takes the layout of |view|, if the kernels can use it.
static bool set_view(attention_nodes_t* n, int side, const rn_ir_view_t* view) {
  if (view->rank < 3 || view->rank > 4 || view->steps[view->rank - 1] != 1) return false;
  const int64_t layout[SIDE_NUMBERS] = {view->offset, view->rank == 4 ? view->steps[0] : 0,
                                        view->steps[view->rank - 3], view->steps[view->rank - 2]};
  memcpy(&n->layouts[side * SIDE_NUMBERS], layout, sizeof layout);
  n->tensors[side] = view->tensor;
  return true;
}

static void set_read(attention_nodes_t* n, int side, rn_ir_edge_t edge) {
  rn_ir_view_t view;
  if (!rn_ir_view_of(n->ir, edge, &view) || !set_view(n, side, &view)) set_plain(n, side, edge);
}

static void set_written(attention_nodes_t* n, const rn_ir_uses_t* uses, int side, int32_t node) {
  rn_ir_view_t view;
  if (!rn_ir_view_into(n->ir, uses, node, false, &view) || !set_view(n, side, &view))
    set_plain(n, side, (rn_ir_edge_t){node, 0});
}

// Whether the three gradients are written into one tensor, and nothing else is.
static bool set_packed(attention_nodes_t* n, const rn_ir_uses_t* uses) {
  const int32_t nodes[] = {n->a->dq, n->a->dk, n->a->dv};
  int64_t count = 0, all = 0;
  for (int i = 0; i < 3; ++i) {
    rn_ir_view_t view;
    int64_t own;
    if (!rn_ir_view_into(n->ir, uses, nodes[i], true, &view) || !set_view(n, SIDE_DQ + i, &view) ||
        n->tensors[SIDE_DQ + i].node != n->tensors[SIDE_DQ].node ||
        !rn_shape_count(rn_ir_node(n->ir, nodes[i])->shapes[0], &own))
      return false;
    count += own;
  }
  return rn_shape_count(shape_of(n->ir, n->tensors[SIDE_DQ]), &all) && all == count;
}

// The steps of a mask that repeats along its dimensions of size 1.
static void set_mask(attention_nodes_t* n) {
  rn_shape_t mask = shape_of(n->ir, n->a->mask), q = shape_of(n->ir, n->a->q);
  const int64_t rows = mask.rank > 1 ? mask.dims[mask.rank - 2] : 1;
  const int64_t columns = mask.rank > 0 ? mask.dims[mask.rank - 1] : 1;
  int64_t heads = 1, matrices = 1;
  for (int d = 0; d < q.rank - 2; ++d) {
    const int at = d - (q.rank - mask.rank);
    const int64_t size = at < 0 ? 1 : mask.dims[at];
    if (size == 1) heads *= q.dims[d];
    matrices *= size;
  }
  const int64_t steps[4] = {heads, matrices == 1 ? 0 : rows * columns, rows == 1 ? 0 : columns,
                            columns == 1 ? 0 : 1};
  memcpy(n->mask_steps, steps, sizeof steps);
}

static rn_status_t copy_numbers(rn_ir_t* ir, const int64_t* numbers, int count,
                                rn_attr_value_t* out) {
  int64_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)count, &copy));
  memcpy(copy, numbers, (size_t)count * sizeof *copy);
  *out = (rn_attr_value_t){.count = count, .list_i = copy};
  return RN_OK;
}

// Makes |node| one of |op| with |fixed| inputs, and the mask behind them. Its |count| first outputs
// are in the places of |results|.
static rn_status_t make_node(const attention_nodes_t* n, const rn_op_def_t* op, int sides,
                             const rn_ir_edge_t* fixed, int32_t fixed_count,
                             const rn_ir_edge_t* results, int32_t count, bool has_sums,
                             rn_ir_node_t* node) {
  rn_ir_t* ir = n->ir;
  const rn_attention_t* a = n->a;
  const bool has_mask = a->mask.node >= 0 && !a->is_causal;
  const rn_dtype_t mask_type =
      has_mask ? rn_ir_node(ir, a->mask.node)->types[a->mask.output] : RN_BOOL;
  rn_attr_value_t sizes, layouts, steps, dims;
  RN_RETURN_IF_ERROR(copy_numbers(ir, n->sizes, 5, &sizes));
  RN_RETURN_IF_ERROR(copy_numbers(ir, n->layouts, sides * SIDE_NUMBERS, &layouts));
  RN_RETURN_IF_ERROR(copy_numbers(ir, n->mask_steps, 4, &steps));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(ir, fixed_count + has_mask, count + has_sums, a->type,
                                      RN_SHAPE_SCALAR, node));
  int64_t all[3 * RN_VIEW_RANK];
  const int rank = shape_of(ir, results[0]).rank;
  for (int32_t i = 0; i < count; ++i) {
    node->shapes[i] = shape_of(ir, results[i]);
    memcpy(all + i * rank, node->shapes[i].dims, (size_t)rank * sizeof *all);
  }
  RN_RETURN_IF_ERROR(copy_numbers(ir, all, rank * count, &dims));
  const rn_attr_t given[] = {{RN_STR("T"), {.type = a->type}},
                             {RN_STR("Tmask"), {.type = mask_type}},
                             {RN_STR("N"), {.i = has_mask}},
                             {RN_STR("M"), {.i = count}},
                             {RN_STR("scale"), {.f = (float)a->scale}},
                             {RN_STR("is_causal"), {.b = a->is_causal}},
                             {RN_STR("sizes"), sizes},
                             {RN_STR("layouts"), layouts},
                             {RN_STR("mask_steps"), steps},
                             {RN_STR("dims"), dims},
                             RN_ATTRS_END};
  node->op = op;
  node->extra_count = 0;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(ir, op, NULL, given, &node->attrs));
  node->kernel = rn_kernel_find(op, node->attrs, NULL, rn_ir_node(ir, a->p)->kernel->device);
  memcpy(node->inputs, fixed, (size_t)fixed_count * sizeof *fixed);
  if (has_mask) node->inputs[fixed_count] = a->mask;
  return RN_OK;
}

static rn_status_t make_forward(const attention_nodes_t* n, rn_ir_node_t* made) {
  const rn_ir_edge_t fixed[] = {n->tensors[SIDE_Q], n->tensors[SIDE_K], n->tensors[SIDE_V]};
  *made = *rn_ir_node(n->ir, n->tensors[SIDE_Y].node);
  RN_RETURN_IF_ERROR(
      make_node(n, rn_op_attention(), SIDE_Y + 1, fixed, 3, &n->tensors[SIDE_Y], 1, true, made));
  const int64_t dims[2] = {n->sizes[0] * n->sizes[1], n->sizes[2]};
  made->types[1] = RN_FLOAT;
  return rn_shape_copy(&n->ir->arena, (rn_shape_t){2, dims}, &made->shapes[1]);
}

static rn_status_t make_gradients(const attention_nodes_t* n, int32_t count, rn_ir_node_t* made) {
  const rn_ir_node_t* dq = rn_ir_node(n->ir, n->a->dq);
  const rn_ir_edge_t y = n->tensors[SIDE_Y];
  const rn_ir_edge_t fixed[] = {n->tensors[SIDE_Q], n->tensors[SIDE_K], n->tensors[SIDE_V], y,
                                {y.node, 1},        n->tensors[SIDE_DY]};
  *made =
      (rn_ir_node_t){.requested_device = dq->requested_device, .device = dq->device, .feed = -1};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&n->ir->arena, &made->name, "%.*s/_AttentionGrad", RN_STR_ARGS(dq->name)));
  return make_node(n, rn_op_attention_grad(), SIDES, fixed, 6, &n->tensors[SIDE_DQ], count, false,
                   made);
}

rn_status_t rn_attention_build(rn_ir_t* ir, const rn_ir_uses_t* uses, const rn_attention_t* a) {
  attention_nodes_t n = {.ir = ir, .a = a};
  rn_ir_node_t forward, gradients;
  int32_t count = 0, index = -1;
  set_sizes(&n);
  set_read(&n, SIDE_Q, a->q);
  set_read(&n, SIDE_K, a->k);
  set_read(&n, SIDE_V, a->v);
  set_written(&n, uses, SIDE_Y, a->y);
  if (a->mask.node >= 0 && !a->is_causal) set_mask(&n);
  if (a->dv >= 0) {
    set_read(&n, SIDE_DY, a->dy);
    count = set_packed(&n, uses) ? 1 : 3;
    if (count == 3) {
      set_written(&n, uses, SIDE_DQ, a->dq);
      set_written(&n, uses, SIDE_DK, a->dk);
      set_written(&n, uses, SIDE_DV, a->dv);
    }
    RN_RETURN_IF_ERROR(make_gradients(&n, count, &gradients));
    if (!gradients.kernel) return RN_OK;
  }
  RN_RETURN_IF_ERROR(make_forward(&n, &forward));
  if (!forward.kernel) return RN_OK;
  if (a->dv >= 0) RN_RETURN_IF_ERROR(rn_ir_add(ir, &gradients, &index));
  for (int32_t i = 0; i < count; ++i)
    rn_ir_replace_edge(ir, n.tensors[SIDE_DQ + i], (rn_ir_edge_t){index, i});
  *rn_ir_node(ir, n.tensors[SIDE_Y].node) = forward;
  return RN_OK;
}

// Computes the input part of a dynamic RNN's matmuls for all time steps at once, before the loop.
//
// A loop over time reads row t of a tensor of inputs, from a TensorArray or a list, and multiplies
// it by weights that do not change: x V, or [x, h] W, where V are the rows of W that multiply x and
// U those that multiply h. The pass multiplies all rows of the tensor by V in one matmul before the
// loop, which reads V once. In the loop a _RowsAt takes the rows of the time step; for [x, h] W, a
// _ContinuedMatMul then adds h U to them, and the bias that may follow. Each element of [x, h] W is
// one sum in order of depth, x's terms first, so the bits do not change.
//
// The loop still reads x, for the sake of errors and of elements that a read frees: _RowsAt waits
// for it.
#include "framework/gemm_way.h"
#include "framework/internal_ops.h"
#include "step/matmul_groups.h"

// Columns of x, and of h, at least; and bytes of the weights.
#define LEAST_DEPTH 16
#define LEAST_BYTES (1 << 16)

typedef struct loop_inputs_t {
  rn_ir_t* ir;
  const rn_op_def_t *product, *concat, *bias_add, *as_rows, *rows_at, *pack, *continued;
  rn_ir_uses_t* uses;  // by node that existed before this pass
} loop_inputs_t;

// A matmul whose left operand is, or begins with, row |index| of |tensor|.
typedef struct looped_product_t {
  int32_t node;
  rn_ir_edge_t x, h;                 // in the loop; h.node is -1 if there is no state
  rn_ir_edge_t index;                // in the loop
  rn_ir_edge_t tensor;               // outside: [time, rows, depth]
  int32_t enter;                     // of the weights
  int64_t rows, depth, state_depth;  // state_depth: 0 if there is no state
  int64_t columns;
} looped_product_t;

// The node that Enter |index| lets into the loop of Enter |enter|; -1 if it is no such Enter.
static int32_t let_in_by(const loop_inputs_t* p, int32_t index, int32_t enter) {
  if (index < 0 || !rn_ir_is_constant_enter(rn_ir_node(p->ir, index))) return -1;
  const rn_ir_node_t *a = rn_ir_node(p->ir, index), *b = rn_ir_node(p->ir, enter);
  const rn_attr_value_t* name = rn_ir_attr(a, RN_STR("frame_name"));
  const rn_attr_value_t* other = rn_ir_attr(b, RN_STR("frame_name"));
  bool is_same = name && other && rn_str_eq(name->s, other->s) && a->device == b->device;
  return is_same ? a->inputs[0].node : -1;
}

static bool is_int(const loop_inputs_t* p, rn_ir_edge_t edge, int64_t wanted) {
  const rn_tensor_t* value = rn_ir_node(p->ir, edge.node)->constant;
  return value && value->count == 1 && rn_tensor_has_ints(value) &&
         rn_tensor_int(value, 0) == wanted;
}

// Whether |edge| is 0, 1, 2, ...
static bool counts_up(const loop_inputs_t* p, rn_ir_edge_t edge) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  const rn_tensor_t* value = node->constant;
  if (!value)
    return rn_ir_is_op(node, "Range") && is_int(p, node->inputs[0], 0) &&
           is_int(p, node->inputs[2], 1);
  if (!rn_tensor_has_ints(value)) return false;
  for (int64_t i = 0; i < value->count; ++i)
    if (rn_tensor_int(value, i) != i) return false;
  return true;
}

static bool only_looks(const rn_ir_node_t* node) {
  return rn_ir_is_op(node, "TensorArrayReadV3") || rn_ir_is_op(node, "TensorArraySizeV3") ||
         rn_ir_is_op(node, "TensorArrayCloseV3") || rn_ir_is_op(node, "TensorArrayGradV3");
}

// Whether |scatter| alone writes the TensorArray of node |array|.
static bool writes_alone(const loop_inputs_t* p, int32_t array, int32_t scatter) {
  for (size_t n = 0; n < p->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, (int32_t)n);
    for (int32_t i = 0; !node->is_removed && i < node->input_count; ++i) {
      if (node->inputs[i].node < 0 || node->inputs[i].output != 0) continue;
      int32_t source = node->inputs[i].node;
      const rn_ir_node_t* from = rn_ir_node(p->ir, source);
      if (rn_ir_is_constant_enter(from)) source = from->inputs[0].node;
      if (source == array && (int32_t)n != scatter && !only_looks(node) &&
          !rn_ir_is_constant_enter(node))
        return false;
    }
  }
  return true;
}

// The tensor whose rows |read|, in the loop of |enter|, reads by number.
static bool find_tensor(const loop_inputs_t* p, const rn_ir_node_t* read, int32_t enter,
                        rn_ir_edge_t* out) {
  if (rn_ir_is_op(read, "TensorListGetItem")) {
    int32_t list = let_in_by(p, read->inputs[0].node, enter);
    if (list < 0 || !rn_ir_is_op(rn_ir_node(p->ir, list), "TensorListFromTensor")) return false;
    *out = rn_ir_node(p->ir, list)->inputs[0];
    return true;
  }
  if (!rn_ir_is_op(read, "TensorArrayReadV3")) return false;
  int32_t array = let_in_by(p, read->inputs[0].node, enter);
  int32_t scatter = let_in_by(p, read->inputs[2].node, enter);
  if (array < 0 || scatter < 0 || !rn_ir_is_op(rn_ir_node(p->ir, array), "TensorArrayV3") ||
      !rn_ir_is_op(rn_ir_node(p->ir, scatter), "TensorArrayScatterV3"))
    return false;
  const rn_ir_edge_t* inputs = rn_ir_node(p->ir, scatter)->inputs;
  *out = inputs[2];
  return inputs[0].node == array && counts_up(p, inputs[1]) && writes_alone(p, array, scatter);
}

// The sizes of a matrix of the type of |like|; NULL if |edge| is not one or they are not known.
static const int64_t* dims_of(const loop_inputs_t* p, rn_ir_edge_t edge, const rn_ir_node_t* like) {
  if (edge.node < 0) return NULL;
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  rn_shape_t shape = node->shapes[edge.output];
  return node->types[edge.output] == like->types[0] && shape.rank == 2 && rn_shape_is_full(shape)
             ? shape.dims
             : NULL;
}

// Finds the operands x and h of the matmul.
static bool find_operands(const loop_inputs_t* p, const rn_ir_node_t* node, looped_product_t* out) {
  const rn_ir_node_t* left = rn_ir_node(p->ir, node->inputs[0].node);
  out->x = node->inputs[0];
  out->h = (rn_ir_edge_t){-1, 0};
  if (left->op == p->concat && left->feed < 0) {
    if (left->input_count != 3 || rn_ir_matrix_axis(p->ir, left->inputs[2]) != 1) return false;
    out->x = left->inputs[0];
    out->h = left->inputs[1];
  }
  return true;
}

// Finds the sizes. Those of x are those of the tensor's rows: what a TensorArray returns often has
// no shape of its own in the graph.
static bool find_sizes(const loop_inputs_t* p, const rn_ir_node_t* node, looped_product_t* out) {
  const rn_ir_node_t* tensor = rn_ir_node(p->ir, out->tensor.node);
  rn_shape_t all = tensor->shapes[out->tensor.output];
  if (tensor->types[out->tensor.output] != node->types[0] || all.rank != 3) return false;
  const int64_t* h = out->h.node >= 0 ? dims_of(p, out->h, node) : NULL;
  const int64_t* matrix = dims_of(p, node->inputs[1], node);
  out->rows = all.dims[1];
  out->depth = all.dims[2];
  if (!matrix || out->rows < 1 || out->depth < LEAST_DEPTH ||
      (out->h.node >= 0 && (!h || h[0] != out->rows || h[1] < LEAST_DEPTH)))
    return false;
  out->state_depth = h ? h[1] : 0;
  out->columns = matrix[1];
  int64_t elements = 0;
  return matrix[0] == out->depth + out->state_depth && out->columns > 1 &&
         rn_mul_i64_ok(matrix[0], matrix[1], &elements) &&
         elements >= LEAST_BYTES / (int64_t)rn_dtype_size(node->types[0]);
}

static bool find_product(const loop_inputs_t* p, int32_t index, looped_product_t* out) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->is_removed || node->op != p->product || node->feed >= 0 || !node->kernel ||
      node->control_count > 0 || rn_ir_flag(node, "transpose_a") ||
      rn_ir_flag(node, "transpose_b") ||
      (node->types[0] != RN_FLOAT && node->types[0] != RN_DOUBLE) || node->inputs[0].node < 0 ||
      node->inputs[0].output != 0 || node->inputs[1].node < 0)
    return false;
  *out = (looped_product_t){.node = index, .enter = node->inputs[1].node};
  const rn_ir_node_t* enter = rn_ir_node(p->ir, out->enter);
  if (!rn_ir_is_constant_enter(enter) || enter->device != node->device ||
      !find_operands(p, node, out) || out->x.node < 0)
    return false;
  int32_t source = out->x.node;
  const rn_ir_node_t* read = rn_ir_node(p->ir, source);
  while (read->feed < 0 && (read->op->role == RN_ROLE_IDENTITY || rn_ir_is_op(read, "EnsureShape")))
    read = rn_ir_node(p->ir, source = read->inputs[0].node);
  if (read->device != node->device || !find_tensor(p, read, out->enter, &out->tensor)) return false;
  out->index = read->inputs[1];
  return rn_ir_node(p->ir, out->tensor.node)->device == node->device && find_sizes(p, node, out);
}

// Adds a node of one input, outside of the loop.
static rn_status_t add_before(const loop_inputs_t* p, const rn_op_def_t* op,
                              const rn_ir_node_t* like, rn_ir_edge_t input, rn_shape_t shape,
                              rn_ir_edge_t* out) {
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(rn_ir_make_node(p->ir, op, like, NULL, 1, shape, &made));
  made.inputs[0] = input;
  *out = (rn_ir_edge_t){0, 0};
  return rn_ir_add(p->ir, &made, &out->node);
}

// Lets |value| into the loop, as Enter |enter| does with a value of the same type.
static rn_status_t let_in(const loop_inputs_t* p, int32_t enter, rn_ir_edge_t value,
                          rn_ir_edge_t* out) {
  rn_ir_node_t made = *rn_ir_node(p->ir, enter);
  const rn_ir_node_t* inner = rn_ir_node(p->ir, value.node);
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&p->ir->arena, &made.name, "%.*s/_entered", RN_STR_ARGS(inner->name)));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(p->ir, 1, 1, made.types[0], inner->shapes[0], &made));
  made.inputs[0] = value;
  *out = (rn_ir_edge_t){0, 0};
  return rn_ir_add(p->ir, &made, &out->node);
}

static rn_status_t add_weight_rows(const loop_inputs_t* p, const rn_ir_node_t* like,
                                   rn_ir_edge_t weights, int64_t first, int64_t count,
                                   int64_t columns, rn_ir_edge_t* out) {
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(rn_matmul_make_rows(p->ir, like, first, count, columns, &made));
  made.inputs[0] = weights;
  *out = (rn_ir_edge_t){0, 0};
  return rn_ir_add(p->ir, &made, &out->node);
}

// Adds the matmul of all inputs before the loop, and in the loop the node that takes the rows of a
// time step.
static rn_status_t add_inputs_part(const loop_inputs_t* p, const looped_product_t* q,
                                   const rn_ir_node_t* like, rn_ir_edge_t weights,
                                   rn_ir_node_t* out_taken) {
  rn_ir_edge_t left, right = weights, all = {0, 0}, entered;
  const int64_t time = rn_ir_node(p->ir, q->tensor.node)->shapes[q->tensor.output].dims[0];
  int64_t rows = RN_UNKNOWN;
  if (time != RN_UNKNOWN && !rn_mul_i64_ok(time, q->rows, &rows)) rows = RN_UNKNOWN;
  const int64_t left_dims[] = {rows, q->depth}, dims[] = {rows, q->columns};
  RN_RETURN_IF_ERROR(add_before(p, p->as_rows, like, q->tensor, (rn_shape_t){2, left_dims}, &left));
  if (q->state_depth)
    RN_RETURN_IF_ERROR(add_weight_rows(p, like, weights, 0, q->depth, q->columns, &right));
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(rn_ir_make_node(p->ir, like->op, like, NULL, 2, (rn_shape_t){2, dims}, &made));
  made.inputs[0] = left;
  made.inputs[1] = right;
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &made, &all.node));
  RN_RETURN_IF_ERROR(let_in(p, q->enter, all, &entered));
  const rn_attr_t given[] = {{RN_STR("count"), {.i = q->rows}}, RN_ATTRS_END};
  const int64_t taken_dims[] = {q->rows, q->columns};
  RN_RETURN_IF_ERROR(
      rn_ir_make_node(p->ir, p->rows_at, like, given, 3, (rn_shape_t){2, taken_dims}, out_taken));
  out_taken->inputs[0] = entered;
  out_taken->inputs[1] = q->index;
  out_taken->inputs[2] = q->x;
  return RN_OK;
}

// Makes the matmul go on from the rows that |taken| takes, and takes in the BiasAdd that follows.
static rn_status_t add_state_part(const loop_inputs_t* p, const looped_product_t* q,
                                  const rn_ir_node_t* like, rn_ir_edge_t weights,
                                  const rn_ir_node_t* taken) {
  rn_ir_edge_t late, panels, begun = {0, 0};
  RN_RETURN_IF_ERROR(
      add_weight_rows(p, like, weights, q->depth, q->state_depth, q->columns, &late));
  RN_RETURN_IF_ERROR(add_before(p, p->pack, like, late, RN_SHAPE_UNKNOWN, &panels));
  RN_RETURN_IF_ERROR(let_in(p, q->enter, late, &late));
  RN_RETURN_IF_ERROR(let_in(p, q->enter, panels, &panels));
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, taken, &begun.node));
  int32_t bias_add = rn_matmul_bias_add(p->ir, p->uses, q->node), biases = bias_add < 0 ? 0 : 1;
  int32_t place = bias_add < 0 ? q->node : bias_add;
  const rn_attr_t given[] = {{RN_STR("N"), {.i = biases}}, RN_ATTRS_END};
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(
      rn_ir_make_node(p->ir, p->continued, like, given, 4 + biases, like->shapes[0], &made));
  made.name = rn_ir_node(p->ir, place)->name;
  made.inputs[0] = begun;
  made.inputs[1] = q->h;
  made.inputs[2] = late;
  made.inputs[3] = panels;
  if (bias_add >= 0) {
    made.inputs[4] = rn_ir_node(p->ir, bias_add)->inputs[1];
    rn_ir_node(p->ir, q->node)->is_removed = true;
  }
  *rn_ir_node(p->ir, place) = made;
  return RN_OK;
}

static rn_status_t hoist(const loop_inputs_t* p, const looped_product_t* q) {
  const rn_ir_node_t like = *rn_ir_node(p->ir, q->node);  // a copy: adding nodes moves them
  const rn_ir_edge_t weights = rn_ir_node(p->ir, q->enter)->inputs[0];
  rn_ir_node_t taken;
  RN_RETURN_IF_ERROR(add_inputs_part(p, q, &like, weights, &taken));
  if (q->state_depth) return add_state_part(p, q, &like, weights, &taken);
  taken.name = like.name;
  *rn_ir_node(p->ir, q->node) = taken;
  return RN_OK;
}

// Whether the device of |like| has the kernels that the pass needs.
static rn_status_t has_kernels(const loop_inputs_t* p, const rn_ir_node_t* like, bool* out) {
  const rn_op_def_t* needed[] = {p->as_rows, p->rows_at, p->pack, p->continued, rn_op_rows_of()};
  *out = true;
  for (size_t i = 0; i < sizeof needed / sizeof *needed; ++i) {
    const rn_attr_value_t* attrs = NULL;
    if (!needed[i]) return *out = false, RN_OK;
    RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, needed[i], like, NULL, &attrs));
    *out &= rn_kernel_find(needed[i], attrs, NULL, like->kernel->device) != NULL;
  }
  return RN_OK;
}

rn_status_t rn_pass_hoist_loop_inputs(rn_ir_t* ir) {
  loop_inputs_t p = {.ir = ir,
                     .product = rn_op_find(RN_STR("MatMul")),
                     .concat = rn_op_find(RN_STR("ConcatV2")),
                     .as_rows = rn_op_as_rows(),
                     .rows_at = rn_op_rows_at(),
                     .pack = rn_op_pack_matrix(),
                     .continued = rn_op_continued_product()};
  if (!p.product || !p.concat || !rn_ir_has_role(ir, RN_ROLE_ENTER)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  size_t count = ir->nodes.count;
  bool has_any = false;
  for (size_t n = 0; n < count; ++n) {
    looped_product_t product;
    bool is_possible = false;
    if (!find_product(&p, (int32_t)n, &product)) continue;
    RN_RETURN_IF_ERROR(has_kernels(&p, rn_ir_node(ir, (int32_t)n), &is_possible));
    if (!is_possible) continue;
    RN_RETURN_IF_ERROR(hoist(&p, &product));
    has_any = true;
  }
  return has_any ? rn_ir_sweep(ir) : RN_OK;
}

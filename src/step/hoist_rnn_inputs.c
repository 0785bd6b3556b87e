// Computes the input part of an unrolled RNN's matmuls for all time steps at once.
//
// A time step computes [x, h] W, the concatenation of input and state times the weights, and reads
// all of W. The inputs of all time steps usually are known in advance. Let V be the rows of W that
// multiply x and U those that multiply h. One matmul computes x V for all time steps and reads V
// once; the matmul of each time step then adds h U to its rows of that result, in place, and takes
// in a BiasAdd that follows. Each element of [x, h] W is one sum in order of depth, x's terms
// first, so the bits do not change.
#include "framework/gemm_way.h"
#include "framework/internal_ops.h"
#include "step/matmul_groups.h"

// Columns of x and of h at least.
#define LEAST_DEPTH 16

typedef struct inputs_t {
  rn_ir_t* ir;
  const rn_op_def_t *product, *concat, *pack, *continued;
  rn_ir_uses_t* uses;  // by node that existed before this pass
} inputs_t;

// The sizes of a matrix of |dtype|; NULL if |edge| is not one or its shape is not known.
static const int64_t* dims_of(const inputs_t* p, rn_ir_edge_t edge, rn_dtype_t dtype) {
  if (edge.node < 0) return NULL;
  const rn_ir_node_t* node = rn_ir_node(p->ir, edge.node);
  rn_shape_t shape = node->shapes[edge.output];
  return node->types[edge.output] == dtype && shape.rank == 2 && rn_shape_is_full(shape)
             ? shape.dims
             : NULL;
}

// The operands of the concatenation [x, h] that matmul |index| reads.
static const rn_ir_edge_t* sides_of(const inputs_t* p, int32_t index) {
  return rn_ir_node(p->ir, rn_ir_node(p->ir, index)->inputs[0].node)->inputs;
}

// Whether |index| is a large enough matmul whose left operand concatenates two matrices. Sets the
// range to the columns and rows of x.
static bool find_part(const inputs_t* p, int32_t index, rn_matmul_part_t* out) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->is_removed || node->op != p->product || node->feed >= 0 || !node->kernel ||
      node->control_count > 0 || rn_ir_flag(node, "transpose_a") ||
      rn_ir_flag(node, "transpose_b") || node->inputs[0].node < 0 || node->inputs[0].output != 0)
    return false;
  rn_dtype_t dtype = node->types[0];
  const rn_ir_node_t* sides = rn_ir_node(p->ir, node->inputs[0].node);
  if ((dtype != RN_FLOAT && dtype != RN_DOUBLE) || sides->op != p->concat || sides->feed >= 0 ||
      sides->input_count != 3 || sides->control_count > 0 ||
      rn_ir_matrix_axis(p->ir, sides->inputs[2]) != 1)
    return false;
  const int64_t* early = dims_of(p, sides->inputs[0], dtype);
  const int64_t* late = dims_of(p, sides->inputs[1], dtype);
  const int64_t* matrix = dims_of(p, node->inputs[1], dtype);
  if (!early || !late || !matrix || early[0] != late[0] || matrix[0] != early[1] + late[1])
    return false;
  *out = (rn_matmul_part_t){.matrix = node->inputs[1],
                            .range = {early[1], early[0]},
                            .node = index,
                            .source = sides->inputs[0].node};
  int64_t elements = 0;
  return early[0] <= RN_MATMUL_MOST_ROWS && early[1] >= LEAST_DEPTH && late[1] >= LEAST_DEPTH &&
         rn_gemm_way_of_matmul(early[0], matrix[1], late[1], false, false) == RN_GEMM_BLOCKS &&
         rn_mul_i64_ok(matrix[0], matrix[1], &elements) &&
         elements >= RN_MATMUL_LEAST_BYTES / (int64_t)rn_dtype_size(dtype);
}

// Adds rows [first, first + count) of |matrix|.
static rn_status_t add_rows(const inputs_t* p, const rn_ir_node_t* like, rn_ir_edge_t matrix,
                            int64_t first, int64_t count, int64_t columns, int32_t* out) {
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(rn_matmul_make_rows(p->ir, like, first, count, columns, &made));
  made.inputs[0] = matrix;
  return rn_ir_add(p->ir, &made, out);
}

// Adds the matmul of all inputs, stacked, by the first rows of the matrix.
static rn_status_t add_early_product(const inputs_t* p, const rn_ir_node_t* like,
                                     const rn_matmul_part_t* parts, int32_t count, int64_t columns,
                                     int32_t* out) {
  const int64_t depth = parts[0].range[0], rows = parts[0].range[1];
  rn_ir_edge_t* lefts = NULL;
  int32_t right;
  RN_RETURN_IF_ERROR(add_rows(p, like, parts[0].matrix, 0, depth, columns, &right));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)count, &lefts));
  for (int32_t i = 0; i < count; ++i) lefts[i] = sides_of(p, parts[i].node)[0];
  return rn_matmul_add_common(p->ir, like, lefts, count, count * rows, depth, right, columns, out);
}

// Makes the matmuls of |parts| continue from rows of one common matmul.
static rn_status_t make_at_once(const inputs_t* p, const rn_matmul_part_t* parts, int32_t count) {
  const rn_ir_node_t like = *rn_ir_node(p->ir, parts[0].node);  // a copy: adding nodes moves them
  const int64_t* dims = dims_of(p, parts[0].matrix, like.types[0]);
  int64_t depth = parts[0].range[0], rows = parts[0].range[1], columns = dims[1];
  const rn_shape_t shape = {2, (const int64_t[]){rows, columns}};
  int32_t early, late, panels;
  RN_RETURN_IF_ERROR(add_early_product(p, &like, parts, count, columns, &early));
  if (early < 0) return RN_OK;
  RN_RETURN_IF_ERROR(add_rows(p, &like, parts[0].matrix, depth, dims[0] - depth, columns, &late));
  rn_ir_node_t pack;
  RN_RETURN_IF_ERROR(rn_ir_make_node(p->ir, p->pack, &like, NULL, 1, RN_SHAPE_UNKNOWN, &pack));
  pack.inputs[0] = (rn_ir_edge_t){late, 0};
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &pack, &panels));
  for (int32_t i = 0; i < count; ++i) {
    int32_t index = parts[i].node, bias_add = rn_matmul_bias_add(p->ir, p->uses, index),
            biases = bias_add < 0 ? 0 : 1;
    int32_t begun, place = bias_add < 0 ? index : bias_add;
    RN_RETURN_IF_ERROR(
        add_rows(p, &like, (rn_ir_edge_t){early, 0}, i * rows, rows, columns, &begun));
    // Every second matmul reads the panels backwards, because the last ones read are still cached.
    const rn_attr_t given[] = {
        {RN_STR("N"), {.i = biases}}, {RN_STR("backwards"), {.b = i % 2 == 1}}, RN_ATTRS_END};
    rn_ir_node_t made;
    RN_RETURN_IF_ERROR(
        rn_ir_make_node(p->ir, p->continued, &like, given, 4 + biases, shape, &made));
    made.name = rn_ir_node(p->ir, place)->name;
    made.inputs[0] = (rn_ir_edge_t){begun, 0};
    made.inputs[1] = sides_of(p, index)[1];
    made.inputs[2] = (rn_ir_edge_t){late, 0};
    made.inputs[3] = (rn_ir_edge_t){panels, 0};
    if (bias_add >= 0) {
      made.inputs[4] = rn_ir_node(p->ir, bias_add)->inputs[1];
      rn_ir_node(p->ir, index)->is_removed = true;
    }
    *rn_ir_node(p->ir, place) = made;
  }
  return RN_OK;
}

static rn_status_t try_at_once(void* pass, const rn_matmul_part_t* parts, size_t count) {
  const inputs_t* p = pass;
  if (count < RN_MATMUL_LEAST_NODES ||
      (int64_t)count * parts[0].range[1] > RN_MATMUL_MOST_ROWS_IN_ALL)
    return RN_OK;
  const rn_ir_node_t* like = rn_ir_node(p->ir, parts[0].node);
  const rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, p->continued, like, NULL, &attrs));
  if (!rn_kernel_find(p->continued, attrs, NULL, like->kernel->device)) return RN_OK;
  bool is_chain = true;
  RN_RETURN_IF_ERROR(rn_matmul_group_is_chain(p->ir, parts, count, &is_chain));
  return is_chain ? RN_OK : make_at_once(p, parts, (int32_t)count);
}

static rn_status_t find_groups(inputs_t* p) {
  rn_matmul_parts_t parts = {0};
  rn_status_t status = RN_OK;
  for (size_t n = 0; rn_ok(status) && n < p->ir->nodes.count; ++n) {
    rn_matmul_part_t part;
    if (find_part(p, (int32_t)n, &part)) status = rn_vec_push(&parts, p->ir->allocator, part);
  }
  if (rn_ok(status)) status = rn_matmul_each_group(p->ir, &parts, try_at_once, p);
  rn_vec_free(&parts, p->ir->allocator);
  return status;
}

rn_status_t rn_pass_hoist_rnn_inputs(rn_ir_t* ir) {
  inputs_t p = {.ir = ir,
                .product = rn_op_find(RN_STR("MatMul")),
                .concat = rn_op_find(RN_STR("ConcatV2")),
                .pack = rn_op_pack_matrix(),
                .continued = rn_op_continued_product()};
  if (!p.product || !p.concat || !p.pack || !p.continued) return RN_OK;
  if (rn_ir_has_flow(ir)) return RN_OK;  // not all inputs exist in advance
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  RN_RETURN_IF_ERROR(find_groups(&p));
  return rn_ir_sweep(ir);
}

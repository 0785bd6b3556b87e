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
#include "step/ir.h"

// At least this many steps, at most this many rows per step and in all steps together.
#define MANY_STEPS 4
#define FEW_ROWS 256
#define MOST_ROWS (1 << 14)
// Columns of x and of h at least.
#define LEAST_DEPTH 16
// A smaller W stays in the cache between time steps, so nothing is gained.
#define LARGE_BYTES (1 << 20)

// The matmul [early, late] matrix.
typedef struct hoist_rnn_inputs_pair_t {
  int32_t product;
  rn_ir_edge_t matrix, early, late;
  int64_t rows;   // of the product
  int64_t depth;  // columns of |early|
} hoist_rnn_inputs_pair_t;

typedef struct inputs_t {
  rn_ir_t* ir;
  const rn_op_def_t *product, *concat, *rows_of, *stack, *pack, *continued, *bias_add;
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

static bool is_last_axis(const inputs_t* p, rn_ir_edge_t edge) {
  const rn_tensor_t* axis = edge.node < 0 ? NULL : rn_ir_node(p->ir, edge.node)->constant;
  if (!axis || axis->count != 1 || (axis->dtype != RN_INT32 && axis->dtype != RN_INT64))
    return false;
  int64_t value =
      axis->dtype == RN_INT32 ? *(const int32_t*)axis->data : *(const int64_t*)axis->data;
  return value == 1 || value == -1;
}

// Whether |index| is a large enough matmul whose left operand concatenates two matrices.
static bool find_pair(const inputs_t* p, int32_t index, hoist_rnn_inputs_pair_t* out) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->is_removed || node->op != p->product || node->feed >= 0 || !node->kernel ||
      node->control_count > 0 || rn_ir_flag(node, "transpose_a") ||
      rn_ir_flag(node, "transpose_b") || node->inputs[0].node < 0 || node->inputs[0].output != 0)
    return false;
  rn_dtype_t dtype = node->types[0];
  const rn_ir_node_t* sides = rn_ir_node(p->ir, node->inputs[0].node);
  if ((dtype != RN_FLOAT && dtype != RN_DOUBLE) || sides->op != p->concat || sides->feed >= 0 ||
      sides->input_count != 3 || sides->control_count > 0 || !is_last_axis(p, sides->inputs[2]))
    return false;
  *out = (hoist_rnn_inputs_pair_t){.product = index,
                                   .matrix = node->inputs[1],
                                   .early = sides->inputs[0],
                                   .late = sides->inputs[1]};
  const int64_t* early = dims_of(p, out->early, dtype);
  const int64_t* late = dims_of(p, out->late, dtype);
  const int64_t* matrix = dims_of(p, out->matrix, dtype);
  if (!early || !late || !matrix || early[0] != late[0] || matrix[0] != early[1] + late[1])
    return false;
  out->rows = early[0];
  out->depth = early[1];
  int64_t elements = 0;
  return out->rows <= FEW_ROWS && early[1] >= LEAST_DEPTH && late[1] >= LEAST_DEPTH &&
         rn_gemm_way_of_matmul(out->rows, matrix[1], late[1], false, false) == RN_GEMM_BLOCKS &&
         rn_mul_i64_ok(matrix[0], matrix[1], &elements) &&
         elements >= LARGE_BYTES / (int64_t)rn_dtype_size(dtype);
}

// The BiasAdd that is the only reader of |product|; -1 if there is none.
static int32_t bias_add_of(const inputs_t* p, int32_t product) {
  const rn_ir_node_t* like = rn_ir_node(p->ir, product);
  int32_t reader = rn_ir_only_reader(&p->uses[product]);
  if (reader < 0) return -1;
  const rn_ir_node_t* node = rn_ir_node(p->ir, reader);
  if (node->op != p->bias_add || node->feed >= 0 || node->control_count > 0 ||
      node->device != like->device || node->inputs[0].node != product || node->inputs[1].node < 0)
    return -1;
  const rn_attr_value_t* format = rn_ir_attr(node, RN_STR("data_format"));
  const rn_ir_node_t* bias = rn_ir_node(p->ir, node->inputs[1].node);
  rn_shape_t shape = bias->shapes[node->inputs[1].output];
  bool fits = format && rn_str_is(format->s, "NHWC") && shape.rank == 1 &&
              shape.dims[0] == like->shapes[0].dims[1] &&
              bias->types[node->inputs[1].output] == like->types[0];
  return fits ? reader : -1;
}

static int compare_pairs(const void* a, const void* b) {
  const hoist_rnn_inputs_pair_t *x = a, *y = b;
#define BY(field) \
  if (x->field != y->field) return x->field < y->field ? -1 : 1
  BY(matrix.node);
  BY(matrix.output);
  BY(depth);
  BY(rows);
  BY(product);
#undef BY
  return 0;
}

static bool are_alike(const inputs_t* p, const hoist_rnn_inputs_pair_t* a,
                      const hoist_rnn_inputs_pair_t* b) {
  return a->matrix.node == b->matrix.node && a->matrix.output == b->matrix.output &&
         a->depth == b->depth && a->rows == b->rows &&
         rn_ir_node(p->ir, a->product)->device == rn_ir_node(p->ir, b->product)->device;
}

// Whether an input of |pairs| depends on one of the products.
static rn_status_t inputs_wait(const inputs_t* p, const hoist_rnn_inputs_pair_t* pairs,
                               size_t count, bool* out) {
  rn_arena_mark_t mark = rn_arena_mark(&p->ir->arena);
  bool* is_after = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, p->ir->nodes.count + 1, &is_after));
  for (size_t i = 0; i < count; ++i) is_after[pairs[i].product] = true;
  RN_RETURN_IF_ERROR(rn_ir_spread(p->ir, is_after));
  *out = false;
  for (size_t i = 0; i < count; ++i) *out |= is_after[pairs[i].early.node];
  rn_arena_rewind(&p->ir->arena, mark);
  return RN_OK;
}

// Values for the attributes of a new node; its op has some of them.
typedef struct hoist_rnn_inputs_numbers_t {
  int64_t first, count;
  bool backwards;
} hoist_rnn_inputs_numbers_t;

static rn_status_t fill_attrs(const inputs_t* p, const rn_op_def_t* op, rn_dtype_t dtype,
                              hoist_rnn_inputs_numbers_t numbers, const rn_attr_value_t** out) {
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)op->attr_count, &attrs));
  for (int a = 0; a < op->attr_count; ++a) {
    const char* name = op->attrs[a].name;
    attrs[a].kind = op->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE)
      attrs[a].type = dtype;
    else if (attrs[a].kind == RN_ATTR_INT)
      attrs[a].i = strcmp(name, "first") == 0 ? numbers.first : numbers.count;
    else
      attrs[a].b = numbers.backwards && strcmp(name, "backwards") == 0;
  }
  *out = attrs;
  return RN_OK;
}

// Makes a node of |op| on the device of the matmul |like|, with |inputs| unset inputs and a result
// of |rows| by |columns| (-1 if unknown).
static rn_status_t make_node(const inputs_t* p, const rn_op_def_t* op, const rn_ir_node_t* like,
                             int32_t inputs, int64_t rows, int64_t columns,
                             hoist_rnn_inputs_numbers_t numbers, rn_ir_node_t* out) {
  rn_arena_t* arena = &p->ir->arena;
  int64_t* dims = NULL;
  *out = (rn_ir_node_t){.op = op,
                        .requested_device = like->requested_device,
                        .device = like->device,
                        .input_count = inputs,
                        .output_count = 1,
                        .feed = -1};
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &out->name, "%.*s/%s_%lld", RN_STR_ARGS(like->name),
                                     op->name, (long long)numbers.first));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)inputs, &out->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &out->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &out->shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 2, &dims));
  dims[0] = rows;
  dims[1] = columns;
  out->types[0] = like->types[0];
  out->shapes[0] = rows < 0 ? RN_SHAPE_UNKNOWN : (rn_shape_t){2, dims};
  RN_RETURN_IF_ERROR(fill_attrs(p, op, like->types[0], numbers, &out->attrs));
  out->kernel = rn_kernel_find(op, out->attrs, NULL, like->kernel->device);
  return RN_OK;
}

// Rows [first, first + count) of |matrix|, which has |columns|.
static rn_status_t add_rows(const inputs_t* p, const rn_ir_node_t* like, rn_ir_edge_t matrix,
                            int64_t first, int64_t count, int64_t columns, int32_t* out) {
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(make_node(p, p->rows_of, like, 1, count, columns,
                               (hoist_rnn_inputs_numbers_t){.first = first, .count = count},
                               &made));
  made.inputs[0] = matrix;
  return rn_ir_add(p->ir, &made, out);
}

// Adds the matmul of all inputs, stacked, by the first rows of the matrix.
static rn_status_t add_early_product(const inputs_t* p, const rn_ir_node_t* like,
                                     const hoist_rnn_inputs_pair_t* pairs, int32_t count,
                                     int64_t columns, int32_t* out) {
  rn_ir_node_t stack, product;
  int32_t rows, stacked;
  RN_RETURN_IF_ERROR(add_rows(p, like, pairs[0].matrix, 0, pairs[0].depth, columns, &rows));
  RN_RETURN_IF_ERROR(make_node(p, p->stack, like, count, count * pairs[0].rows, pairs[0].depth,
                               (hoist_rnn_inputs_numbers_t){.count = count}, &stack));
  for (int32_t i = 0; i < count; ++i) stack.inputs[i] = pairs[i].early;
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &stack, &stacked));
  RN_RETURN_IF_ERROR(make_node(p, p->product, like, 2, count * pairs[0].rows, columns,
                               (hoist_rnn_inputs_numbers_t){0}, &product));
  product.inputs[0] = (rn_ir_edge_t){stacked, 0};
  product.inputs[1] = (rn_ir_edge_t){rows, 0};
  return rn_ir_add(p->ir, &product, out);
}

// Makes the matmuls of |pairs| continue from rows of one common matmul.
static rn_status_t make_at_once(const inputs_t* p, const hoist_rnn_inputs_pair_t* pairs,
                                int32_t count) {
  const rn_ir_node_t like =
      *rn_ir_node(p->ir, pairs[0].product);  // nodes move when others are added
  const int64_t* dims = dims_of(p, pairs[0].matrix, like.types[0]);
  int64_t rows = pairs[0].rows, depth = pairs[0].depth, rest = dims[0] - depth, columns = dims[1];
  int32_t early, late, panels;
  RN_RETURN_IF_ERROR(add_early_product(p, &like, pairs, count, columns, &early));
  RN_RETURN_IF_ERROR(add_rows(p, &like, pairs[0].matrix, depth, rest, columns, &late));
  rn_ir_node_t pack;
  RN_RETURN_IF_ERROR(
      make_node(p, p->pack, &like, 1, -1, -1, (hoist_rnn_inputs_numbers_t){0}, &pack));
  pack.inputs[0] = (rn_ir_edge_t){late, 0};
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &pack, &panels));
  for (int32_t i = 0; i < count; ++i) {
    int32_t begun, bias_add = bias_add_of(p, pairs[i].product), biases = bias_add < 0 ? 0 : 1;
    int32_t place = bias_add < 0 ? pairs[i].product : bias_add;
    rn_ir_node_t made;
    RN_RETURN_IF_ERROR(
        add_rows(p, &like, (rn_ir_edge_t){early, 0}, i * rows, rows, columns, &begun));
    // Every second matmul reads the panels backwards, because the last ones read are still cached.
    RN_RETURN_IF_ERROR(
        make_node(p, p->continued, &like, 4 + biases, rows, columns,
                  (hoist_rnn_inputs_numbers_t){.count = biases, .backwards = i % 2 == 1}, &made));
    made.name = rn_ir_node(p->ir, place)->name;
    made.inputs[0] = (rn_ir_edge_t){begun, 0};
    made.inputs[1] = pairs[i].late;
    made.inputs[2] = (rn_ir_edge_t){late, 0};
    made.inputs[3] = (rn_ir_edge_t){panels, 0};
    if (bias_add >= 0) {
      made.inputs[4] = rn_ir_node(p->ir, bias_add)->inputs[1];
      rn_ir_node(p->ir, pairs[i].product)->is_removed = true;
    }
    *rn_ir_node(p->ir, place) = made;
  }
  return RN_OK;
}

static rn_status_t try_at_once(const inputs_t* p, const hoist_rnn_inputs_pair_t* pairs,
                               size_t count) {
  if (count < MANY_STEPS || (int64_t)count * pairs[0].rows > MOST_ROWS) return RN_OK;
  const char* device = rn_ir_node(p->ir, pairs[0].product)->kernel->device;
  const rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(fill_attrs(p, p->continued, rn_ir_node(p->ir, pairs[0].product)->types[0],
                                (hoist_rnn_inputs_numbers_t){0}, &attrs));
  if (!rn_kernel_find(p->continued, attrs, NULL, device)) return RN_OK;
  bool wait = true;
  RN_RETURN_IF_ERROR(inputs_wait(p, pairs, count, &wait));
  return wait ? RN_OK : make_at_once(p, pairs, (int32_t)count);
}

static rn_status_t find_groups(const inputs_t* p) {
  RN_VEC(hoist_rnn_inputs_pair_t) pairs = {0};
  rn_status_t status = RN_OK;
  for (size_t n = 0; rn_ok(status) && n < p->ir->nodes.count; ++n) {
    hoist_rnn_inputs_pair_t pair;
    if (find_pair(p, (int32_t)n, &pair)) status = rn_vec_push(&pairs, p->ir->allocator, pair);
  }
  if (rn_ok(status) && pairs.count)
    qsort(pairs.items, pairs.count, sizeof *pairs.items, compare_pairs);
  for (size_t i = 0, end; rn_ok(status) && i < pairs.count; i = end) {
    for (end = i + 1; end < pairs.count && are_alike(p, &pairs.items[i], &pairs.items[end]);) ++end;
    status = try_at_once(p, pairs.items + i, end - i);
  }
  rn_vec_free(&pairs, p->ir->allocator);
  return status;
}

rn_status_t rn_pass_hoist_rnn_inputs(rn_ir_t* ir) {
  inputs_t p = {.ir = ir,
                .product = rn_op_find(RN_STR("MatMul")),
                .concat = rn_op_find(RN_STR("ConcatV2")),
                .rows_of = rn_op_rows_of(),
                .stack = rn_op_stack_rows(),
                .pack = rn_op_pack_matrix(),
                .continued = rn_op_continued_product(),
                .bias_add = rn_op_find(RN_STR("BiasAdd"))};
  if (!p.product || !p.concat || !p.rows_of || !p.stack || !p.pack || !p.continued || !p.bias_add)
    return RN_OK;
  if (rn_ir_has_flow(ir)) return RN_OK;  // not all inputs exist in advance
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  RN_RETURN_IF_ERROR(find_groups(&p));
  return rn_ir_sweep(ir);
}

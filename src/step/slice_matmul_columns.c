// Computes only the columns of a matmul that are read.
//
// The gradient of a concatenation in [x, h] W is a matmul by the transposed W followed by slices:
// Slice(g W', columns). If only slices read such a matmul, and they do not read all of it (because
// x needs no gradient), each slice becomes a matmul of its own by the rows of W that it needs. The
// slices of x in an unrolled RNN become one matmul for all time steps, because nothing in the
// backward pass depends on them. In a loop, the rows of W are taken outside if W is constant in the
// loop. Every element of a matmul is a sum of its own, so the bits do not change.
#include "framework/gemm_way.h"
#include "framework/internal_ops.h"
#include "step/ir.h"

// A part has at least this many columns; narrow matmuls are computed in other ways.
#define LEAST_COLUMNS 16
// A matmul stays whole if less than one in this many columns is unread.
#define MOST_OF 4
// When slices of several matmuls are computed together: at least MANY_PARTS of them, of matmuls
// with at most FEW_ROWS rows, at most MOST_ROWS rows in all, by rows of a matrix that are too large
// to stay in the cache between matmuls.
#define MANY_PARTS 4
#define FEW_ROWS 256
#define MOST_ROWS (1 << 14)
#define LARGE_BYTES (1 << 20)
// Nested loops out of which rows are hoisted, at most.
#define MAX_LOOPS 8

// Rows [first, first + count) of |matrix|, available where |matrix| is.
typedef struct slice_matmul_columns_rows_t {
  rn_ir_edge_t matrix;
  int64_t first, count;
  int32_t node;
} slice_matmul_columns_rows_t;

typedef struct slice_matmul_columns_parts_t {
  rn_ir_t* ir;
  const rn_op_def_t *product, *slice, *rows_of, *stack;
  size_t count;        // of nodes before this pass added any
  rn_ir_uses_t* uses;  // by node
  int32_t* slices;     // by matmul: number of readers that are slices of columns
  int64_t* columns;    // by matmul: number of columns that those read in all
  RN_VEC(slice_matmul_columns_rows_t) made;
  bool* is_split;  // by matmul: compute it by parts even if all of it is read
  bool* is_made;   // by slice: it was computed together with others
  bool has_flow;   // the graph has conditionals or loops
} slice_matmul_columns_parts_t;

// A slice of a matmul.
typedef struct slice_matmul_columns_part_t {
  int32_t slice, product;
  rn_ir_edge_t matrix;
  int64_t first, count;
} slice_matmul_columns_part_t;

// Whether node |index| is a matmul by a transposed matrix with known shapes.
static bool is_product(const slice_matmul_columns_parts_t* p, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(p->ir, index);
  if (node->is_removed || node->op != p->product || node->feed >= 0 || node->control_count > 0 ||
      !node->kernel || !rn_ir_flag(node, "transpose_b") || node->inputs[1].node < 0)
    return false;
  const rn_ir_node_t* b = rn_ir_node(p->ir, node->inputs[1].node);
  int32_t output = node->inputs[1].output;
  return (node->types[0] == RN_FLOAT || node->types[0] == RN_DOUBLE) &&
         b->types[output] == node->types[0] && b->shapes[output].rank == 2 &&
         rn_shape_is_full(b->shapes[output]) && node->shapes[0].rank == 2 &&
         rn_shape_is_full(node->shapes[0]) && node->shapes[0].dims[1] == b->shapes[output].dims[0];
}

static bool numbers_of(const slice_matmul_columns_parts_t* p, rn_ir_edge_t edge, int64_t out[2]) {
  const rn_tensor_t* value = edge.node < 0 ? NULL : rn_ir_node(p->ir, edge.node)->constant;
  if (!value || edge.output != 0 || value->count != 2) return false;
  for (int i = 0; i < 2; ++i)
    out[i] = value->dtype == RN_INT32 ? ((const int32_t*)value->data)[i]
                                      : ((const int64_t*)value->data)[i];
  return value->dtype == RN_INT32 || value->dtype == RN_INT64;
}

// Whether |node| slices columns [first, first + count), all rows, of such a matmul.
static bool takes_columns(const slice_matmul_columns_parts_t* p, const rn_ir_node_t* node,
                          int64_t* out_first, int64_t* out_count) {
  int64_t begin[2], size[2];
  if (node->is_removed || node->op != p->slice || node->feed >= 0 || node->inputs[0].node < 0 ||
      !is_product(p, node->inputs[0].node) || !numbers_of(p, node->inputs[1], begin) ||
      !numbers_of(p, node->inputs[2], size))
    return false;
  const rn_ir_node_t* product = rn_ir_node(p->ir, node->inputs[0].node);
  const int64_t* dims = product->shapes[0].dims;
  if (begin[0] != 0 || (size[0] != -1 && size[0] != dims[0]) || begin[1] < 0 ||
      begin[1] > dims[1] || node->device != product->device)
    return false;
  *out_first = begin[1];
  *out_count = size[1] == -1 ? dims[1] - begin[1] : size[1];
  return *out_count >= LEAST_COLUMNS && *out_count <= dims[1] - begin[1];
}

static void count_slices(slice_matmul_columns_parts_t* p) {
  for (size_t n = 0; n < p->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, (int32_t)n);
    if (node->is_removed) continue;
    int64_t first, count;
    if (!takes_columns(p, node, &first, &count)) continue;
    p->slices[node->inputs[0].node]++;
    p->columns[node->inputs[0].node] += count;
  }
}

static rn_status_t fill_attrs(const slice_matmul_columns_parts_t* p, rn_dtype_t dtype,
                              const slice_matmul_columns_rows_t* rows,
                              const rn_attr_value_t** out) {
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)p->rows_of->attr_count, &attrs));
  for (int a = 0; a < p->rows_of->attr_count; ++a) {
    attrs[a].kind = p->rows_of->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE)
      attrs[a].type = dtype;
    else
      attrs[a].i = strcmp(p->rows_of->attrs[a].name, "first") == 0 ? rows->first : rows->count;
  }
  *out = attrs;
  return RN_OK;
}

// Adds |node| with the shape of |rows| and the input |input|.
static rn_status_t add_rows(slice_matmul_columns_parts_t* p, rn_ir_node_t* node, rn_ir_edge_t input,
                            slice_matmul_columns_rows_t* rows) {
  rn_arena_t* arena = &p->ir->arena;
  const rn_ir_node_t* matrix = rn_ir_node(p->ir, rows->matrix.node);
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &node->name, "%.*s/rows_%lld_%lld",
                                     RN_STR_ARGS(matrix->name), (long long)rows->first,
                                     (long long)rows->count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &node->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &node->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &node->shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 2, &dims));
  dims[0] = rows->count;
  dims[1] = matrix->shapes[rows->matrix.output].dims[1];
  node->inputs[0] = input;
  node->types[0] = matrix->types[rows->matrix.output];
  node->shapes[0] = (rn_shape_t){2, dims};
  node->input_count = node->output_count = 1;
  node->feed = -1;
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, node, &rows->node));
  return rn_vec_push(&p->made, p->ir->allocator, *rows);
}

// Finds or adds the node that yields |rows|: it takes them outside of the loops in which their
// matrix is constant, and Enters bring them in. -1 if there is no kernel. |product| determines
// device and type.
static rn_status_t find_rows(slice_matmul_columns_parts_t* p, const rn_ir_node_t* product,
                             slice_matmul_columns_rows_t* rows, int depth) {
  for (size_t i = 0; i < p->made.count; ++i) {
    const slice_matmul_columns_rows_t* made = &p->made.items[i];
    if (made->matrix.node != rows->matrix.node || made->matrix.output != rows->matrix.output ||
        made->first != rows->first || made->count != rows->count)
      continue;
    rows->node = made->node;
    return RN_OK;
  }
  rn_ir_node_t made = *rn_ir_node(p->ir, rows->matrix.node);
  if (depth < MAX_LOOPS && rn_ir_is_constant_enter(&made) && made.device == product->device) {
    slice_matmul_columns_rows_t outer = {made.inputs[0], rows->first, rows->count, -1};
    RN_RETURN_IF_ERROR(find_rows(p, product, &outer, depth + 1));
    return outer.node < 0 ? RN_OK : add_rows(p, &made, (rn_ir_edge_t){outer.node, 0}, rows);
  }
  if (made.constant)
    return RN_OK;  // a constant belongs to no particular loop, so the pass cannot tell where to
                   // take rows
  made = (rn_ir_node_t){
      .op = p->rows_of, .requested_device = product->requested_device, .device = product->device};
  RN_RETURN_IF_ERROR(fill_attrs(p, product->types[0], rows, &made.attrs));
  made.kernel = rn_kernel_find(made.op, made.attrs, NULL, product->kernel->device);
  return made.kernel ? add_rows(p, &made, rows->matrix, rows) : RN_OK;
}

static rn_status_t make_part(slice_matmul_columns_parts_t* p, int32_t index) {
  int64_t first, count;
  if (p->is_made[index]) return RN_OK;
  const rn_ir_node_t slice = *rn_ir_node(p->ir, index);  // a copy, because adding nodes moves them
  if (!takes_columns(p, &slice, &first, &count)) return RN_OK;
  const int32_t whole = slice.inputs[0].node;
  const rn_ir_node_t product = *rn_ir_node(p->ir, whole);
  // Several matmuls cost more than one unless they compute less in all.
  bool is_worth_it = p->columns[whole] <= product.shapes[0].dims[1] / MOST_OF * (MOST_OF - 1);
  if (p->slices[whole] != rn_ir_use_count(&p->uses[whole]) || !(is_worth_it || p->is_split[whole]))
    return RN_OK;
  slice_matmul_columns_rows_t rows = {product.inputs[1], first, count, -1};
  RN_RETURN_IF_ERROR(find_rows(p, &product, &rows, 0));
  if (rows.node < 0) return RN_OK;
  rn_ir_node_t made = product;
  made.name = slice.name;
  made.control_count = slice.control_count;
  made.controls = slice.controls;
  made.shapes = slice.shapes;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 2, &made.inputs));
  made.inputs[0] = product.inputs[0];
  made.inputs[1] = (rn_ir_edge_t){rows.node, 0};
  *rn_ir_node(p->ir, index) = made;
  return RN_OK;
}

static int compare_parts(const void* a, const void* b) {
  const slice_matmul_columns_part_t *x = a, *y = b;
#define BY(field) \
  if (x->field != y->field) return x->field < y->field ? -1 : 1
  BY(matrix.node);
  BY(matrix.output);
  BY(first);
  BY(count);
  BY(slice);
#undef BY
  return 0;
}

static bool are_of_one_range(const slice_matmul_columns_part_t* a,
                             const slice_matmul_columns_part_t* b) {
  return a->matrix.node == b->matrix.node && a->matrix.output == b->matrix.output &&
         a->first == b->first && a->count == b->count;
}

// Whether a matmul of |parts| depends on one of the slices.
static rn_status_t depend_on_each_other(const slice_matmul_columns_parts_t* p,
                                        const slice_matmul_columns_part_t* parts, size_t count,
                                        bool* out) {
  rn_arena_mark_t mark = rn_arena_mark(&p->ir->arena);
  bool* is_after = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, p->ir->nodes.count + 1, &is_after));
  for (size_t i = 0; i < count; ++i) is_after[parts[i].slice] = true;
  RN_RETURN_IF_ERROR(rn_ir_spread(p->ir, is_after));
  *out = false;
  for (size_t i = 0; i < count; ++i) *out |= is_after[parts[i].product];
  rn_arena_rewind(&p->ir->arena, mark);
  return RN_OK;
}

// Makes a node of |op| on the device of |product|, with one output of |rows| by |columns|.
static rn_status_t make_node(slice_matmul_columns_parts_t* p, const rn_op_def_t* op,
                             const rn_ir_node_t* product, int32_t inputs, int64_t rows,
                             int64_t columns, rn_ir_node_t* out) {
  rn_arena_t* arena = &p->ir->arena;
  int64_t* dims = NULL;
  *out = (rn_ir_node_t){.op = op,
                        .requested_device = product->requested_device,
                        .device = product->device,
                        .input_count = inputs,
                        .output_count = 1,
                        .feed = -1};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &out->name, "%.*s/%s", RN_STR_ARGS(product->name), op->name));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)inputs, &out->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &out->types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &out->shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 2, &dims));
  dims[0] = rows;
  dims[1] = columns;
  out->types[0] = product->types[0];
  out->shapes[0] = (rn_shape_t){2, dims};
  return RN_OK;
}

static rn_status_t stack_lefts(slice_matmul_columns_parts_t* p,
                               const slice_matmul_columns_part_t* parts, int32_t count,
                               int64_t rows, int32_t* out) {
  const rn_ir_node_t product = *rn_ir_node(p->ir, parts[0].product);
  rn_attr_value_t* attrs = NULL;
  rn_ir_node_t stack;
  *out = -1;
  int64_t depth = rn_ir_node(p->ir, parts[0].matrix.node)->shapes[parts[0].matrix.output].dims[1];
  RN_RETURN_IF_ERROR(make_node(p, p->stack, &product, count, rows, depth, &stack));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)p->stack->attr_count, &attrs));
  for (int a = 0; a < p->stack->attr_count; ++a) {
    attrs[a].kind = p->stack->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE)
      attrs[a].type = product.types[0];
    else
      attrs[a].i = count;
  }
  stack.attrs = attrs;
  stack.kernel = rn_kernel_find(p->stack, attrs, NULL, product.kernel->device);
  for (int32_t i = 0; i < count; ++i)
    stack.inputs[i] = rn_ir_node(p->ir, parts[i].product)->inputs[0];
  return stack.kernel ? rn_ir_add(p->ir, &stack, out) : RN_OK;
}

// Adds one matmul for all of |parts|, which become rows of it.
static rn_status_t make_at_once(slice_matmul_columns_parts_t* p,
                                const slice_matmul_columns_part_t* parts, int32_t count,
                                int64_t rows) {
  const rn_ir_node_t product = *rn_ir_node(p->ir, parts[0].product);
  slice_matmul_columns_rows_t right = {parts[0].matrix, parts[0].first, parts[0].count, -1};
  int32_t stack, all;
  RN_RETURN_IF_ERROR(find_rows(p, &product, &right, 0));
  if (right.node < 0) return RN_OK;
  RN_RETURN_IF_ERROR(stack_lefts(p, parts, count, rows, &stack));
  if (stack < 0) return RN_OK;
  rn_ir_node_t made;
  RN_RETURN_IF_ERROR(make_node(p, p->product, &product, 2, rows, parts[0].count, &made));
  made.attrs = product.attrs;
  made.kernel = product.kernel;
  made.inputs[0] = (rn_ir_edge_t){stack, 0};
  made.inputs[1] = (rn_ir_edge_t){right.node, 0};
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, &made, &all));
  int64_t first = 0;
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* slice = rn_ir_node(p->ir, parts[i].slice);
    int64_t own = rn_ir_node(p->ir, parts[i].product)->shapes[0].dims[0];
    rn_ir_node_t part = *slice;
    part.op = p->rows_of;
    part.input_count = 1;
    part.extra_count = 0;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 1, &part.inputs));
    part.inputs[0] = (rn_ir_edge_t){all, 0};
    RN_RETURN_IF_ERROR(fill_attrs(p, product.types[0],
                                  &(slice_matmul_columns_rows_t){.first = first, .count = own},
                                  &part.attrs));
    part.kernel = rn_ir_node(p->ir, right.node)->kernel;
    *slice = part;
    p->is_made[parts[i].slice] = p->is_split[parts[i].product] = true;
    first += own;
  }
  return RN_OK;
}

// Computes slices of one column range, of matmuls by one matrix, together, if none depends on
// another, as is the case for the gradients of an unrolled RNN's inputs.
static rn_status_t try_at_once(slice_matmul_columns_parts_t* p,
                               const slice_matmul_columns_part_t* parts, size_t count) {
  const rn_ir_node_t* matrix = rn_ir_node(p->ir, parts[0].matrix.node);
  int64_t depth = matrix->shapes[parts[0].matrix.output].dims[1];
  int64_t bytes =
      depth * parts[0].count * (int64_t)rn_dtype_size(matrix->types[parts[0].matrix.output]);
  int64_t rows = 0;
  for (size_t i = 0; i < count; ++i) {
    const rn_ir_node_t* product = rn_ir_node(p->ir, parts[i].product);
    if (product->shapes[0].dims[0] > FEW_ROWS || rn_ir_flag(product, "transpose_a") ||
        // Stacking would compute dot products in another way, with other bits.
        rn_gemm_way_of_matmul(product->shapes[0].dims[0], parts[i].count, depth, false, true) ==
            RN_GEMM_DOTS ||
        product->shapes[0].dims[0] != rn_ir_node(p->ir, parts[0].product)->shapes[0].dims[0] ||
        product->device != rn_ir_node(p->ir, parts[0].product)->device ||
        p->slices[parts[i].product] != rn_ir_use_count(&p->uses[parts[i].product]) ||
        p->columns[parts[i].product] > product->shapes[0].dims[1])
      return RN_OK;
    rows += product->shapes[0].dims[0];
  }
  if (count < MANY_PARTS || rows > MOST_ROWS || bytes < LARGE_BYTES) return RN_OK;
  bool is_chain = true;
  RN_RETURN_IF_ERROR(depend_on_each_other(p, parts, count, &is_chain));
  return is_chain ? RN_OK : make_at_once(p, parts, (int32_t)count, rows);
}

static rn_status_t find_groups(slice_matmul_columns_parts_t* p) {
  RN_VEC(slice_matmul_columns_part_t) parts = {0};
  rn_status_t status = RN_OK;
  for (size_t n = 0; rn_ok(status) && n < p->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, (int32_t)n);
    slice_matmul_columns_part_t part = {.slice = (int32_t)n};
    if (!takes_columns(p, node, &part.first, &part.count)) continue;
    part.product = node->inputs[0].node;
    part.matrix = rn_ir_node(p->ir, part.product)->inputs[1];
    status = rn_vec_push(&parts, p->ir->allocator, part);
  }
  if (rn_ok(status) && parts.count)
    qsort(parts.items, parts.count, sizeof *parts.items, compare_parts);
  for (size_t i = 0, end; rn_ok(status) && i < parts.count; i = end) {
    for (end = i + 1; end < parts.count && are_of_one_range(&parts.items[i], &parts.items[end]);)
      ++end;
    status = try_at_once(p, parts.items + i, end - i);
  }
  rn_vec_free(&parts, p->ir->allocator);
  return status;
}

static rn_status_t make_parts(slice_matmul_columns_parts_t* p) {
  if (!p->has_flow) RN_RETURN_IF_ERROR(find_groups(p));
  for (size_t n = 0; n < p->count; ++n) RN_RETURN_IF_ERROR(make_part(p, (int32_t)n));
  return RN_OK;
}

rn_status_t rn_pass_slice_matmul_columns(rn_ir_t* ir) {
  slice_matmul_columns_parts_t p = {.ir = ir,
                                    .product = rn_op_find(RN_STR("MatMul")),
                                    .slice = rn_op_find(RN_STR("Slice")),
                                    .rows_of = rn_op_rows_of(),
                                    .stack = rn_op_stack_rows(),
                                    .count = ir->nodes.count};
  if (!p.product || !p.slice || !p.rows_of || !p.stack) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &p.uses));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.slices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.columns));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.is_split));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.is_made));
  p.has_flow = rn_ir_has_flow(ir);
  count_slices(&p);
  rn_status_t status = make_parts(&p);
  rn_vec_free(&p.made, ir->allocator);
  if (!rn_ok(status)) return status;
  return rn_ir_sweep(ir);  // removes matmuls that became dead
}

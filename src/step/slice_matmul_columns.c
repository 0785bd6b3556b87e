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
#include "step/matmul_groups.h"

// A part has at least this many columns; narrow matmuls are computed in other ways.
#define LEAST_COLUMNS 16
// A matmul stays whole if less than one in this many columns is unread.
#define MOST_OF 4
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
  const rn_op_def_t *product, *slice;
  size_t count;        // of nodes before this pass added any
  rn_ir_uses_t* uses;  // by node
  int32_t* slices;     // by matmul: number of readers that are slices of columns
  int64_t* columns;    // by matmul: number of columns that those read in all
  RN_VEC(slice_matmul_columns_rows_t) made;
  bool* is_split;  // by matmul: compute it by parts even if all of it is read
  bool* is_made;   // by slice: it was computed together with others
  bool has_flow;   // the graph has conditionals or loops
} slice_matmul_columns_parts_t;

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
  if (!value || edge.output != 0 || value->count != 2 || !rn_tensor_has_ints(value)) return false;
  for (int i = 0; i < 2; ++i) out[i] = rn_tensor_int(value, i);
  return true;
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

// Adds |node|, which yields |rows|, with the input |input|.
static rn_status_t add_rows(slice_matmul_columns_parts_t* p, rn_ir_node_t* node, rn_ir_edge_t input,
                            slice_matmul_columns_rows_t* rows) {
  RN_RETURN_IF_ERROR(rn_arena_printf(&p->ir->arena, &node->name, "%.*s/rows_%lld_%lld",
                                     RN_STR_ARGS(rn_ir_node(p->ir, rows->matrix.node)->name),
                                     (long long)rows->first, (long long)rows->count));
  node->inputs[0] = input;
  RN_RETURN_IF_ERROR(rn_ir_add(p->ir, node, &rows->node));
  return rn_vec_push(&p->made, p->ir->allocator, *rows);
}

// The columns of the matrix that |product| multiplies by.
static int64_t depth_of(const slice_matmul_columns_parts_t* p, const rn_ir_node_t* product) {
  rn_ir_edge_t matrix = product->inputs[1];
  return rn_ir_node(p->ir, matrix.node)->shapes[matrix.output].dims[1];
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
    const rn_shape_t shape = {2, (const int64_t[]){rows->count, depth_of(p, product)}};
    RN_RETURN_IF_ERROR(find_rows(p, product, &outer, depth + 1));
    if (outer.node < 0) return RN_OK;
    RN_RETURN_IF_ERROR(rn_ir_make_edges(p->ir, 1, 1, product->types[0], shape, &made));
    return add_rows(p, &made, (rn_ir_edge_t){outer.node, 0}, rows);
  }
  // A constant belongs to no particular loop, so the pass cannot tell where to take rows.
  if (made.constant) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_matmul_make_rows(p->ir, product, rows->first, rows->count, depth_of(p, product), &made));
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

// Adds one matmul for all of |parts|, which become rows of it.
static rn_status_t make_at_once(slice_matmul_columns_parts_t* p, const rn_matmul_part_t* parts,
                                int32_t count, int64_t rows) {
  const rn_ir_node_t product = *rn_ir_node(p->ir, parts[0].source);
  const int64_t columns = parts[0].range[1], own = product.shapes[0].dims[0];
  slice_matmul_columns_rows_t right = {parts[0].matrix, parts[0].range[0], columns, -1};
  rn_ir_edge_t* lefts = NULL;
  int32_t all;
  RN_RETURN_IF_ERROR(find_rows(p, &product, &right, 0));
  if (right.node < 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, (size_t)count, &lefts));
  for (int32_t i = 0; i < count; ++i) lefts[i] = rn_ir_node(p->ir, parts[i].source)->inputs[0];
  RN_RETURN_IF_ERROR(rn_matmul_add_common(p->ir, &product, lefts, count, rows,
                                          depth_of(p, &product), right.node, columns, &all));
  if (all < 0) return RN_OK;
  for (int32_t i = 0; i < count; ++i) {
    rn_ir_node_t* slice = rn_ir_node(p->ir, parts[i].node);
    rn_ir_node_t part;
    RN_RETURN_IF_ERROR(rn_matmul_make_rows(p->ir, &product, i * own, own, columns, &part));
    part.name = slice->name;
    part.control_count = slice->control_count;
    part.controls = slice->controls;
    part.inputs[0] = (rn_ir_edge_t){all, 0};
    *slice = part;
    p->is_made[parts[i].node] = p->is_split[parts[i].source] = true;
  }
  return RN_OK;
}

// Computes slices of one column range, of matmuls by one matrix, together, if none depends on
// another, as is the case for the gradients of an unrolled RNN's inputs.
static rn_status_t try_at_once(void* pass, const rn_matmul_part_t* parts, size_t count) {
  slice_matmul_columns_parts_t* p = pass;
  const rn_ir_node_t* first = rn_ir_node(p->ir, parts[0].source);
  int64_t depth = depth_of(p, first), own = first->shapes[0].dims[0], rows = (int64_t)count * own;
  int64_t bytes = depth * parts[0].range[1] * (int64_t)rn_dtype_size(first->types[0]);
  if (count < RN_MATMUL_LEAST_NODES || own > RN_MATMUL_MOST_ROWS ||
      rows > RN_MATMUL_MOST_ROWS_IN_ALL || bytes < RN_MATMUL_LEAST_BYTES ||
      // Stacking would compute dot products in another way, with other bits.
      rn_gemm_way_of_matmul(own, parts[0].range[1], depth, false, true) == RN_GEMM_DOTS)
    return RN_OK;
  for (size_t i = 0; i < count; ++i) {
    const int32_t index = parts[i].source;
    const rn_ir_node_t* product = rn_ir_node(p->ir, index);
    if (product->shapes[0].dims[0] != own || rn_ir_flag(product, "transpose_a") ||
        p->slices[index] != rn_ir_use_count(&p->uses[index]) ||
        p->columns[index] > product->shapes[0].dims[1])
      return RN_OK;
  }
  bool is_chain = true;
  RN_RETURN_IF_ERROR(rn_matmul_group_is_chain(p->ir, parts, count, &is_chain));
  return is_chain ? RN_OK : make_at_once(p, parts, (int32_t)count, rows);
}

static rn_status_t find_groups(slice_matmul_columns_parts_t* p) {
  rn_matmul_parts_t parts = {0};
  rn_status_t status = RN_OK;
  for (size_t n = 0; rn_ok(status) && n < p->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, (int32_t)n);
    rn_matmul_part_t part = {.node = (int32_t)n};
    if (!takes_columns(p, node, &part.range[0], &part.range[1])) continue;
    part.source = node->inputs[0].node;
    part.matrix = rn_ir_node(p->ir, part.source)->inputs[1];
    status = rn_vec_push(&parts, p->ir->allocator, part);
  }
  if (rn_ok(status)) status = rn_matmul_each_group(p->ir, &parts, try_at_once, p);
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
                                    .count = ir->nodes.count};
  if (!p.product || !p.slice || !rn_op_rows_of() || !rn_op_stack_rows()) return RN_OK;
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

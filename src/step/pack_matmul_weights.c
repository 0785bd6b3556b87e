// Packs a matrix once if it is the right operand of several matmuls, or of one in a loop.
//
// A matmul with more than a few rows copies its right operand into panels, in the order in which
// the CPU reads it. The weights of an unrolled RNN are the right operand of one matmul per time
// step, and, transposed, of another one in the backward pass. In a loop they come through an Enter
// and are the same in every iteration. The pass adds one node that packs such a matrix outside of
// the loop, and the matmuls read the panels. The bits do not change.
//
// In a loop this pays for few rows, too, which otherwise read the matrix where it lies: a thread's
// part of the columns is one piece of memory then, which its cache keeps from turn to turn, and not
// a short stretch of every row, each in a page of its own.
#include "framework/gemm_way.h"
#include "framework/internal_ops.h"
#include "step/make.h"

// With more rows of the left operand than this, packing costs little beside multiplying.
#define MANY_ROWS 256
// A matrix of fewer elements is not worth a node of its own; with few rows it must be larger than
// what the first-level cache holds.
#define LEAST_ELEMENTS 4096
#define LEAST_ELEMENTS_OF_FEW_ROWS (1 << 14)
// Nested loops out of which a matrix is hoisted, at most.
#define MAX_LOOPS 8

typedef struct pack_t {
  rn_ir_t* ir;
  const rn_op_def_t *product, *pack, *packed_product;
  size_t count;      // of nodes before this pass added any
  int32_t* uses[2];  // by node whose output 0 is the matrix: number of uses, plain and transposed;
                     // one in a loop counts twice
  int32_t* panels[2];  // by the same node: the node whose output 0 is the packed matrix; -1 if not
                       // made yet
  bool* is_odd[2];     // an odd number of matmuls by it have been rewritten so far
  const rn_device_t** at;  // the device of the first use; uses on other devices do not count
  bool has_loops;
} pack_t;

// The node that produces the right operand of |product|, followed out of the loops in which it is
// constant as long as they are on the same device.
static int32_t origin_of(const pack_t* p, const rn_ir_node_t* product) {
  int32_t index = product->inputs[1].node;
  for (int loops = 0; loops < MAX_LOOPS; ++loops) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, index);
    if (!rn_ir_is_constant_enter(node) || node->inputs[0].output != 0 ||
        node->device != product->device)
      break;
    index = node->inputs[0].node;
  }
  return index;
}

static int64_t dim_of(const pack_t* p, rn_ir_edge_t edge, int dim) {
  if (edge.node < 0) return -1;
  rn_shape_t shape = rn_ir_node(p->ir, edge.node)->shapes[edge.output];
  return shape.rank == 2 ? shape.dims[dim] : -1;
}

// Whether |node| is a matmul whose kernel would pack its right operand, or of few rows in a loop.
static bool would_pack(const pack_t* p, const rn_ir_node_t* node) {
  if (node->is_removed || node->op != p->product || node->feed >= 0 || !node->kernel) return false;
  rn_ir_edge_t a = node->inputs[0], b = node->inputs[1];
  if (b.node < 0 || b.output != 0) return false;
  rn_dtype_t dtype = rn_ir_node(p->ir, b.node)->types[0];
  if ((dtype != RN_FLOAT && dtype != RN_DOUBLE) || dtype != node->types[0]) return false;
  bool transpose_a = rn_ir_flag(node, "transpose_a"), transpose_b = rn_ir_flag(node, "transpose_b");
  int64_t k = dim_of(p, b, transpose_b ? 1 : 0), n = dim_of(p, b, transpose_b ? 0 : 1);
  int64_t m = dim_of(p, a, transpose_a ? 1 : 0), elements = 0;
  if (m < 1 || n < 1 || k < 1 || m > MANY_ROWS || !rn_mul_i64_ok(n, k, &elements) ||
      elements < LEAST_ELEMENTS)
    return false;
  rn_gemm_way_t way = rn_gemm_way_of_matmul(m, n, k, transpose_a, transpose_b);
  if (way == RN_GEMM_BLOCKS) return true;
  return (way == RN_GEMM_ROW || way == RN_GEMM_IN_PLACE) && n > 1 &&
         elements >= LEAST_ELEMENTS_OF_FEW_ROWS && origin_of(p, node) != b.node;
}

// Whether the matrix of |origin| can be packed for |node|. A reference's value may change. A
// constant belongs to no particular loop, so only an Enter tells that it is outside of one; one
// that waits for a node may be inside of another loop.
static bool can_pack(const pack_t* p, const rn_ir_node_t* node, int32_t origin) {
  const rn_ir_node_t* matrix = rn_ir_node(p->ir, origin);
  bool is_entered = origin != node->inputs[1].node && !matrix->control_count;
  return matrix->types[0] == node->types[0] && (!p->has_loops || !matrix->constant || is_entered);
}

static void count_uses(pack_t* p) {
  for (size_t n = 0; n < p->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(p->ir, (int32_t)n);
    if (!would_pack(p, node)) continue;
    int32_t origin = origin_of(p, node);
    if (!can_pack(p, node, origin)) continue;
    if (!p->at[origin]) p->at[origin] = node->device;
    if (p->at[origin] == node->device)
      p->uses[rn_ir_flag(node, "transpose_b")][origin] += origin == node->inputs[1].node ? 1 : 2;
  }
}

// Names |node| after |like|, gives it one input and one output of unknown shape, and adds it.
static rn_status_t add_node(pack_t* p, rn_ir_node_t* node, const rn_ir_node_t* like,
                            rn_ir_edge_t input, int32_t* out) {
  RN_RETURN_IF_ERROR(
      rn_arena_printf(&p->ir->arena, &node->name, "%.*s/panels", RN_STR_ARGS(like->name)));
  RN_RETURN_IF_ERROR(rn_ir_make_edges(p->ir, 1, 1, like->types[0], RN_SHAPE_UNKNOWN, node));
  node->inputs[0] = input;
  return rn_ir_add(p->ir, node, out);
}

// Adds the node that packs the matrix of node |index|. |product| determines the type and whether it
// is transposed.
static rn_status_t pack_origin(pack_t* p, int32_t index, const rn_ir_node_t* product,
                               int32_t* out) {
  rn_ir_node_t made = {.op = p->pack,
                       .requested_device = product->requested_device,
                       .device = product->device,
                       .feed = -1};
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, p->pack, product, NULL, &made.attrs));
  made.kernel = rn_kernel_find(p->pack, made.attrs, NULL, product->kernel->device);
  *out = -1;
  if (!made.kernel) return RN_OK;
  return add_node(p, &made, rn_ir_node(p->ir, index), (rn_ir_edge_t){index, 0}, out);
}

// Adds an Enter of |inner|, the panels of the matrix that Enter |index| brings in.
static rn_status_t enter_panels(pack_t* p, int32_t index, int32_t inner, int32_t* out) {
  rn_ir_node_t made = *rn_ir_node(p->ir, index);
  return add_node(p, &made, rn_ir_node(p->ir, index), (rn_ir_edge_t){inner, 0}, out);
}

// The panels of the right operand of |product|, packed outside of its loops and brought in by
// Enters.
static rn_status_t panels_of(pack_t* p, const rn_ir_node_t* product, int32_t* out) {
  int32_t* memo = p->panels[rn_ir_flag(product, "transpose_b")];
  int32_t index = product->inputs[1].node, origin = origin_of(p, product);
  if (memo[origin] < 0) RN_RETURN_IF_ERROR(pack_origin(p, origin, product, &memo[origin]));
  *out = memo[origin];
  // Adds one Enter per nested loop, the outermost first.
  while (*out >= 0 && memo[index] < 0) {
    int32_t outer = index;
    while (memo[rn_ir_node(p->ir, outer)->inputs[0].node] < 0)
      outer = rn_ir_node(p->ir, outer)->inputs[0].node;
    RN_RETURN_IF_ERROR(
        enter_panels(p, outer, memo[rn_ir_node(p->ir, outer)->inputs[0].node], &memo[outer]));
  }
  *out = *out < 0 ? -1 : memo[index];
  return RN_OK;
}

static rn_status_t use_panels(pack_t* p, int32_t index) {
  // A copy, because adding nodes moves them.
  const rn_ir_node_t product = *rn_ir_node(p->ir, index);
  int32_t origin = origin_of(p, &product), panels = -1;
  if (p->uses[rn_ir_flag(&product, "transpose_b")][origin] < 2 || p->at[origin] != product.device ||
      !can_pack(p, &product, origin))
    return RN_OK;
  rn_ir_node_t made = product;
  made.op = p->packed_product;
  made.extra_count = 0;
  // Every second matmul reads the panels backwards, because the last ones read are still cached.
  bool* is_odd = &p->is_odd[rn_ir_flag(&product, "transpose_b")][origin];
  const rn_attr_t given[] = {{RN_STR("backwards"), {.b = *is_odd}}, RN_ATTRS_END};
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(p->ir, made.op, &product, given, &made.attrs));
  *is_odd = !*is_odd;
  made.kernel = rn_kernel_find(made.op, made.attrs, NULL, product.kernel->device);
  if (!made.kernel) return RN_OK;
  RN_RETURN_IF_ERROR(panels_of(p, &product, &panels));
  if (panels < 0) return RN_OK;
  made.input_count = 3;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&p->ir->arena, 3, &made.inputs));
  made.inputs[0] = product.inputs[0];
  made.inputs[1] = product.inputs[1];
  made.inputs[2] = (rn_ir_edge_t){panels, 0};
  *rn_ir_node(p->ir, index) = made;
  return RN_OK;
}

rn_status_t rn_pass_pack_matmul_weights(rn_ir_t* ir) {
  pack_t p = {.ir = ir,
              .product = rn_op_find(RN_STR("MatMul")),
              .pack = rn_op_pack_matrix(),
              .packed_product = rn_op_packed_product(),
              .count = ir->nodes.count};
  if (!p.product || !p.pack || !p.packed_product) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.at));
  for (int t = 0; t < 2; ++t) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.uses[t]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.panels[t]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, p.count + 1, &p.is_odd[t]));
    memset(p.panels[t], 0xff, p.count * sizeof *p.panels[t]);
  }
  p.has_loops = rn_ir_has_role(ir, RN_ROLE_ENTER);
  count_uses(&p);
  for (size_t n = 0; n < p.count; ++n)
    if (would_pack(&p, rn_ir_node(ir, (int32_t)n))) RN_RETURN_IF_ERROR(use_panels(&p, (int32_t)n));
  return RN_OK;
}

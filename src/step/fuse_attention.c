// Finds attention, softmax(q k^T) v, and makes one node of it, which does not store the scores. If
// the step has its gradients, they become one node, too, which computes the scores again; on the
// CPU they stay as they are, and so does what they need.
//
// The scores may be multiplied by numbers and then masked: by SelectV2 with -infinity, or by an
// addition. Everything between must have no other readers, so dropout of the scores, or fetching
// them, leaves the nodes as they are. The gradients are found as automatic differentiation writes
// them: with p the softmax,
//   dv = p^T dy, dp = dy v^T, ds = (dp - sum(dp p)) p, masked and multiplied again,
//   dq = ds k, dk = ds^T q.
// In mixed precision, some of this is computed in float; conversions in between are looked through.
#include <math.h>
#include <stdlib.h>

#include "device/device.h"
#include "framework/internal_ops.h"
#include "step/attention.h"
#include "step/views.h"

#define MOST_DEPTH 128  // of the device's kernel
// With fewer keys, products by cuBLASLt and one loop for the softmax are faster on a GPU; with so
// many, the scores would be most of a step's memory. RUNNEL_ATTENTION_KEYS overrides it.
#define LEAST_KEYS 1024
#define LEAST_KEYS_CPU 16
// From here on down, a score counts as -infinity if its row has others.
#define FEW (-1e9)

typedef struct fuse_attention_t {
  rn_ir_t* ir;
  const rn_op_def_t *matmul, *softmax, *select, *mul, *div, *sub, *sum, *add, *add_v2, *cast;
  rn_ir_uses_t* uses;        // by node
  int32_t *first, *readers;  // by node: where its readers begin in |readers|; Casts are left out
  size_t count;              // of nodes at the beginning
  int64_t least_keys;        // 0: as the device wants it
  bool is_changed;
} fuse_attention_t;

static rn_shape_t shape_of(const fuse_attention_t* f, rn_ir_edge_t edge) {
  return rn_ir_node(f->ir, edge.node)->shapes[edge.output];
}

static bool is_float(rn_dtype_t type) {
  return type == RN_FLOAT || type == RN_HALF || type == RN_BFLOAT16;
}

// Whether the node only converts a value for others.
static bool is_conversion(const fuse_attention_t* f, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  return (size_t)index < f->count && node->op == f->cast && !node->is_removed && node->feed < 0 &&
         !node->control_count && f->uses[index].fetches + f->uses[index].waits == 0 &&
         is_float(node->types[0]) &&
         is_float(rn_ir_node(f->ir, node->inputs[0].node)->types[node->inputs[0].output]);
}

// Where the value of |edge| comes from.
static rn_ir_edge_t origin(const fuse_attention_t* f, rn_ir_edge_t edge) {
  while (edge.node >= 0 && is_conversion(f, edge.node))
    edge = rn_ir_node(f->ir, edge.node)->inputs[0];
  return edge;
}

static bool is_same_edge(rn_ir_edge_t a, rn_ir_edge_t b) {
  return a.node == b.node && a.output == b.output;
}

// Whether |index| is a node of |op| on the device of the softmax, with nothing unusual about it.
static bool is_node(const fuse_attention_t* f, const rn_attention_t* a, int32_t index,
                    const rn_op_def_t* op) {
  if (index < 0) return false;
  const rn_ir_node_t *node = rn_ir_node(f->ir, index), *p = rn_ir_node(f->ir, a->p);
  return node->op == op && !node->is_removed && node->feed < 0 && !node->control_count &&
         node->device == p->device && is_float(node->types[0]);
}

static bool is_matmul(const fuse_attention_t* f, const rn_attention_t* a, int32_t index, bool adj_x,
                      bool adj_y) {
  return is_node(f, a, index, f->matmul) && rn_ir_node(f->ir, index)->types[0] == a->type &&
         rn_ir_flag(rn_ir_node(f->ir, index), "adj_x") == adj_x &&
         rn_ir_flag(rn_ir_node(f->ir, index), "adj_y") == adj_y;
}

static bool take(rn_attention_t* a, int32_t index) {
  if (a->inner_count == RN_ATTENTION_INNER) return false;
  a->inner[a->inner_count++] = index;
  return true;
}

// If |index| multiplies or divides |*inner| by a number, the factor.
static bool is_scaling(const fuse_attention_t* f, const rn_attention_t* a, int32_t index,
                       rn_ir_edge_t* inner, double* factor) {
  const bool is_division = is_node(f, a, index, f->div);
  if (!is_division && !is_node(f, a, index, f->mul)) return false;
  const rn_ir_edge_t* inputs = rn_ir_node(f->ir, index)->inputs;
  const int at = !is_division && rn_ir_number(f->ir, inputs[0], factor) ? 0 : 1;
  if (!rn_ir_number(f->ir, inputs[at], factor)) return false;
  if (is_division) *factor = 1 / *factor;
  *inner = origin(f, inputs[1 - at]);
  return true;
}

// Walks from |edge| over scalings to the product of q and k.
static bool find_product(const fuse_attention_t* f, rn_attention_t* a, rn_ir_edge_t edge) {
  rn_ir_edge_t inner;
  double factor;
  a->scale = 1;
  edge = origin(f, edge);
  while (is_scaling(f, a, edge.node, &inner, &factor)) {
    if (!take(a, edge.node)) return false;
    a->scale *= factor;
    edge = inner;
  }
  a->type = rn_ir_node(f->ir, edge.node)->types[0];
  if (!is_matmul(f, a, edge.node, false, true)) return false;
  a->q = rn_ir_node(f->ir, edge.node)->inputs[0];
  a->k = rn_ir_node(f->ir, edge.node)->inputs[1];
  return take(a, edge.node);
}

// Whether a mask of |shape| is one that the kernel reads: its last dimensions are those of the
// scores or 1; of those before, the first ones are q's and the others 1.
static bool mask_fits(rn_shape_t shape, rn_shape_t q, int64_t keys) {
  if (!rn_shape_is_full(shape) || shape.rank > q.rank) return false;
  bool repeats = false;
  for (int d = 0; d < q.rank; ++d) {
    const int at = d - (q.rank - shape.rank);
    const int64_t size = at < 0 ? 1 : shape.dims[at], full = d == q.rank - 1 ? keys : q.dims[d];
    if (size != 1 && size != full) return false;
    if (d >= q.rank - 2) continue;
    if (size != 1 && repeats) return false;
    repeats |= size == 1 && full != 1;
  }
  return true;
}

// Whether the mask leaves out exactly the keys after each query.
static bool is_causal(const fuse_attention_t* f, const rn_attention_t* a) {
  const rn_tensor_t* mask = rn_ir_node(f->ir, a->mask.node)->constant;
  rn_shape_t q = shape_of(f, a->q), k = shape_of(f, a->k);
  const int64_t time = q.dims[q.rank - 2];
  if (!mask || a->mask.output || k.dims[k.rank - 2] != time || mask->rank < 2 ||
      mask->count != time * time || rn_tensor_dim(mask, mask->rank - 1) != time)
    return false;
  if (mask->dtype != RN_BOOL && mask->dtype != RN_FLOAT) return false;
  for (int64_t i = 0; i < mask->count; ++i) {
    const bool is_seen = i % time <= i / time;
    if (mask->dtype == RN_BOOL ? RN_DATA(mask, const bool)[i] != is_seen
        : is_seen              ? RN_DATA(mask, const float)[i] != 0
                               : !((double)RN_DATA(mask, const float)[i] <= FEW))
      return false;
  }
  return true;
}

// The scores: from the softmax back to q and k.
static bool find_scores(const fuse_attention_t* f, rn_attention_t* a) {
  const rn_ir_edge_t scores = origin(f, rn_ir_node(f->ir, a->p)->inputs[0]);
  const rn_ir_node_t* node = rn_ir_node(f->ir, scores.node);
  const int32_t before = a->inner_count;
  double fill = -INFINITY;
  a->mask.node = -1;
  if (find_product(f, a, scores)) return true;
  a->inner_count = before;
  if (is_node(f, a, scores.node, f->select)) {
    a->is_select = true;
    a->mask = node->inputs[0];
    if (!rn_ir_number(f->ir, node->inputs[2], &fill) || fill > FEW || !take(a, scores.node) ||
        !find_product(f, a, node->inputs[1]))
      return false;
  } else if (is_node(f, a, scores.node, f->add) || is_node(f, a, scores.node, f->add_v2)) {
    bool is_found = false;
    for (int i = 0; i < 2 && !is_found; ++i) {
      a->inner_count = before;
      a->mask = node->inputs[1 - i];
      is_found = take(a, scores.node) && find_product(f, a, node->inputs[i]);
    }
    if (!is_found) return false;
  } else {
    return false;
  }
  a->is_causal = is_causal(f, a);
  // In a row without a key, a finite number is not -infinity.
  return a->is_causal || isinf(fill);
}

static bool sizes_fit(const fuse_attention_t* f, const rn_attention_t* a) {
  rn_shape_t q = shape_of(f, a->q), k = shape_of(f, a->k), v = shape_of(f, a->v);
  if (!rn_shape_is_full(q) || !rn_shape_is_full(k) || !rn_shape_eq(k, v) || q.rank != k.rank ||
      q.rank < 3 || q.rank > RN_VIEW_RANK)
    return false;
  for (int d = 0; d < q.rank; ++d)
    if (q.dims[d] < 1 || k.dims[d] < 1 || (d != q.rank - 2 && q.dims[d] != k.dims[d])) return false;
  if (q.dims[q.rank - 1] > MOST_DEPTH) return false;
  if (a->mask.node < 0 || a->is_causal) return true;
  const rn_dtype_t type = rn_ir_node(f->ir, a->mask.node)->types[a->mask.output];
  return (type == RN_BOOL || type == a->type) &&
         mask_fits(shape_of(f, a->mask), q, k.dims[k.rank - 2]);
}

static int32_t reader_count(const fuse_attention_t* f, int32_t index) {
  return f->first[index + 1] - f->first[index];
}
static int32_t reader(const fuse_attention_t* f, int32_t index, int32_t i) {
  return f->readers[f->first[index] + i];
}
// The one node that reads |index|; -1 if there are several or none.
static int32_t only_reader(const fuse_attention_t* f, int32_t index) {
  return reader_count(f, index) == 1 ? reader(f, index, 0) : -1;
}

// The input of a node with two that is not |index|.
static rn_ir_edge_t other_input(const fuse_attention_t* f, int32_t node, int32_t index) {
  const rn_ir_edge_t* inputs = rn_ir_node(f->ir, node)->inputs;
  const rn_ir_edge_t first = origin(f, inputs[0]);
  return first.node == index ? origin(f, inputs[1]) : first;
}

static bool sums_last_axis(const fuse_attention_t* f, const rn_attention_t* a, int32_t index) {
  if (!is_node(f, a, index, f->sum) || !rn_ir_flag(rn_ir_node(f->ir, index), "keep_dims"))
    return false;
  const rn_ir_edge_t edge = rn_ir_node(f->ir, index)->inputs[1];
  const rn_tensor_t* axis = rn_ir_node(f->ir, edge.node)->constant;
  const int rank = rn_ir_node(f->ir, a->p)->shapes[0].rank;
  return axis && axis->count == 1 && axis->dtype == RN_INT32 &&
         (*RN_DATA(axis, const int32_t) == -1 || *RN_DATA(axis, const int32_t) == rank - 1);
}

// Of the softmax's readers: the product with v, and if there are gradients, that with dy and two
// multiplications.
static bool sort_readers(const fuse_attention_t* f, rn_attention_t* a, int32_t muls[2]) {
  int32_t mul_count = 0;
  a->y = a->dv = -1;
  for (int32_t i = 0; i < reader_count(f, a->p); ++i) {
    const int32_t node = reader(f, a->p, i);
    const bool is_left = origin(f, rn_ir_node(f->ir, node)->inputs[0]).node == a->p;
    if (is_left && a->y < 0 && is_matmul(f, a, node, false, false))
      a->y = node;
    else if (is_left && a->dv < 0 && is_matmul(f, a, node, true, false))
      a->dv = node;
    else if (mul_count < 2 && is_node(f, a, node, f->mul))
      muls[mul_count++] = node;
    else
      return false;
  }
  if (a->y < 0 || (a->dv < 0) != (mul_count == 0) || mul_count == 1) return false;
  a->v = rn_ir_node(f->ir, a->y)->inputs[1];
  if (a->dv >= 0) a->dy = rn_ir_node(f->ir, a->dv)->inputs[1];
  return origin(f, a->v).node != a->p && (a->dv < 0 || origin(f, a->dy).node != a->p);
}

// From dy to the gradient of the softmax's input.
static bool find_softmax_gradient(const fuse_attention_t* f, rn_attention_t* a,
                                  const int32_t muls[2], int32_t* out_ds) {
  const int at = is_node(f, a, other_input(f, muls[0], a->p).node, f->sub) ? 0 : 1;
  const int32_t ds = muls[at], weighted = muls[1 - at];
  const int32_t sub = other_input(f, ds, a->p).node, dp = other_input(f, weighted, a->p).node;
  const int32_t sum = only_reader(f, weighted);
  if (!is_node(f, a, sub, f->sub) || !is_matmul(f, a, dp, false, true) ||
      !sums_last_axis(f, a, sum))
    return false;
  const rn_ir_edge_t *from_sub = rn_ir_node(f->ir, sub)->inputs,
                     *from_dp = rn_ir_node(f->ir, dp)->inputs;
  if (origin(f, from_sub[0]).node != dp || origin(f, from_sub[1]).node != sum ||
      !is_same_edge(from_dp[0], a->dy) || !is_same_edge(from_dp[1], a->v))
    return false;
  *out_ds = ds;
  return take(a, dp) && take(a, weighted) && take(a, sum) && take(a, sub) && take(a, ds);
}

// From there to the gradients of q and k, by the mask and the scalings in reverse.
static bool find_operand_gradients(const fuse_attention_t* f, rn_attention_t* a, int32_t ds) {
  double scale = 1, number;
  rn_ir_edge_t inner;
  if (a->is_select) {
    ds = only_reader(f, ds);
    if (!is_node(f, a, ds, f->select)) return false;
    const rn_ir_edge_t* inputs = rn_ir_node(f->ir, ds)->inputs;
    if (!is_same_edge(inputs[0], a->mask) || !rn_ir_number(f->ir, inputs[2], &number) ||
        number != 0 || !take(a, ds))
      return false;
  }
  for (int32_t next = only_reader(f, ds); is_scaling(f, a, next, &inner, &number);
       next = only_reader(f, ds)) {
    if (!take(a, next)) return false;
    scale *= number;
    ds = next;
  }
  // Of 16-bit numbers, one may be rounded and the other not.
  const double close = (a->type == RN_FLOAT ? 1e-6 : 4e-3) * fabs(a->scale);
  if (reader_count(f, ds) != 2 || !(fabs(scale - a->scale) <= close)) return false;
  const int at = is_matmul(f, a, reader(f, ds, 0), false, false) ? 0 : 1;
  a->dq = reader(f, ds, at);
  a->dk = reader(f, ds, 1 - at);
  if (!is_matmul(f, a, a->dq, false, false) || !is_matmul(f, a, a->dk, true, false)) return false;
  const rn_ir_edge_t *dq = rn_ir_node(f->ir, a->dq)->inputs, *dk = rn_ir_node(f->ir, a->dk)->inputs;
  return origin(f, dq[0]).node == ds && is_same_edge(dq[1], a->k) && origin(f, dk[0]).node == ds &&
         is_same_edge(dk[1], a->q);
}

static bool is_result(const rn_attention_t* a, int32_t index) {
  return index == a->y || (a->dv >= 0 && (index == a->dq || index == a->dk || index == a->dv));
}

// Whether what is to be removed has no other readers.
static bool is_closed(const fuse_attention_t* f, const rn_attention_t* a) {
  for (int32_t i = 0; i < a->inner_count; ++i) {
    const int32_t index = a->inner[i];
    if (f->uses[index].fetches + f->uses[index].waits > 0) return false;
    for (int32_t r = 0; r < reader_count(f, index); ++r) {
      const int32_t by = reader(f, index, r);
      bool is_inside = is_result(a, by);
      for (int32_t k = 0; k < a->inner_count && !is_inside; ++k) is_inside = a->inner[k] == by;
      if (!is_inside) return false;
    }
  }
  return a->dv < 0 || f->uses[a->dq].waits + f->uses[a->dk].waits + f->uses[a->dv].waits == 0;
}

// Whether the gradients, as one node, would wait for one of themselves.
static rn_status_t check_order(const fuse_attention_t* f, const rn_attention_t* a, bool* out_ok) {
  bool* after = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, f->ir->nodes.count, &after));
  after[a->dq] = after[a->dk] = after[a->dv] = true;
  RN_RETURN_IF_ERROR(rn_ir_spread(f->ir, after));
  *out_ok = !after[a->y] && !after[a->dy.node] && !after[a->q.node] && !after[a->k.node] &&
            !after[a->v.node];
  return RN_OK;
}

static bool has_many_keys(const fuse_attention_t* f, const rn_ir_node_t* softmax) {
  const rn_shape_t scores = softmax->shapes[0];
  const int64_t least = f->least_keys              ? f->least_keys
                        : softmax->device->is_host ? LEAST_KEYS_CPU
                                                   : LEAST_KEYS;
  return scores.rank > 0 && scores.dims[scores.rank - 1] >= least;
}

static rn_status_t fuse_from(fuse_attention_t* f, int32_t index) {
  const rn_ir_node_t* node = rn_ir_node(f->ir, index);
  if (node->is_removed || node->op != f->softmax || node->feed >= 0 || !node->device ||
      !has_many_keys(f, node))
    return RN_OK;
  rn_attention_t a = {.p = index, .dq = -1, .dk = -1};
  int32_t muls[2] = {-1, -1}, ds = -1;
  bool is_ordered = true;
  if (node->control_count || !take(&a, index) || !find_scores(f, &a) ||
      !sort_readers(f, &a, muls) || !sizes_fit(f, &a))
    return RN_OK;
  if (a.dv >= 0 && node->device->is_host) return RN_OK;
  if (a.dv >= 0 && (!find_softmax_gradient(f, &a, muls, &ds) || !find_operand_gradients(f, &a, ds)))
    return RN_OK;
  if (!is_closed(f, &a)) return RN_OK;
  if (a.dv >= 0) RN_RETURN_IF_ERROR(check_order(f, &a, &is_ordered));
  if (!is_ordered) return RN_OK;
  f->is_changed = true;
  return rn_attention_build(f->ir, f->uses, &a);
}

static rn_status_t list_readers(fuse_attention_t* f) {
  const rn_ir_t* ir = f->ir;
  const size_t count = ir->nodes.count;
  size_t edges = 0;
  for (size_t n = 0; n < count; ++n) edges += (size_t)ir->nodes.items[n].input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, count + 2, &f->first));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&f->ir->arena, edges, &f->readers));
  for (int pass = 0; pass < 2; ++pass) {  // counts, then places
    for (size_t n = 0; n < count; ++n) {
      const rn_ir_node_t* node = &ir->nodes.items[n];
      const bool reads = !node->is_removed && !is_conversion(f, (int32_t)n);
      for (int32_t i = 0; reads && i < node->input_count; ++i) {
        const int32_t source = origin(f, node->inputs[i]).node;
        if (source < 0) continue;
        int32_t* at = &f->first[source + (pass ? 1 : 2)];
        if (pass) f->readers[*at] = (int32_t)n;
        ++*at;
      }
    }
    for (size_t n = 2; pass == 0 && n < count + 2; ++n) f->first[n] += f->first[n - 1];
  }
  return RN_OK;
}

rn_status_t rn_pass_fuse_attention(rn_ir_t* ir) {
  fuse_attention_t f = {.ir = ir,
                        .matmul = rn_op_find(RN_STR("BatchMatMulV2")),
                        .softmax = rn_op_find(RN_STR("Softmax")),
                        .select = rn_op_find(RN_STR("SelectV2")),
                        .mul = rn_op_find(RN_STR("Mul")),
                        .div = rn_op_find(RN_STR("RealDiv")),
                        .sub = rn_op_find(RN_STR("Sub")),
                        .sum = rn_op_find(RN_STR("Sum")),
                        .add = rn_op_find(RN_STR("Add")),
                        .add_v2 = rn_op_find(RN_STR("AddV2")),
                        .cast = rn_op_find(RN_STR("Cast")),
                        .count = ir->nodes.count};
  const char* keys = getenv("RUNNEL_ATTENTION_KEYS");
  if (keys && *keys) f.least_keys = strtoll(keys, NULL, 10);
  bool has_softmax = false;
  for (size_t n = 0; n < ir->nodes.count && !has_softmax; ++n)
    has_softmax = !ir->nodes.items[n].is_removed && ir->nodes.items[n].op == f.softmax;
  if (!has_softmax || !rn_op_attention() || !rn_op_attention_grad()) return RN_OK;
  RN_RETURN_IF_ERROR(rn_ir_count_uses(ir, &f.uses));
  RN_RETURN_IF_ERROR(list_readers(&f));
  const int32_t count = (int32_t)ir->nodes.count;
  for (int32_t n = 0; n < count; ++n) RN_RETURN_IF_ERROR(fuse_from(&f, n));
  return f.is_changed ? rn_ir_sweep(ir) : RN_OK;
}

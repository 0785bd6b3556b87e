// Orders the nodes of a device so that their values take less memory.
//
// The IR's order computes a value where the first node that needs it comes. In a training step that
// leaves the gradients of many weights to the end, with what they are computed from. So a node that
// frees more memory than it takes runs as soon as it can, if it only computes. All others, such as
// those that change variables, stay in their order.
#include "exec/compile.h"
#include "framework/internal_ops.h"

typedef struct order_value_t {
  int64_t bytes;    // 0: not known, or part of another value
  int32_t root;     // the value whose bytes it shares: itself, unless a node forwards it
  int32_t readers;  // of a root: nodes that are still to run; fetches count as one that never does
  int64_t reader;   // of a root: the sum of these nodes' numbers, each plus 1
} order_value_t;

typedef struct order_memory_t {
  const rn_compile_t* c;
  int32_t* first_value;  // by node: its values; those of other nodes follow
  order_value_t* values;
  int32_t* waits;       // by node: predecessors that are still to run
  int32_t* first_next;  // by node: its successors in |next|
  int32_t* next;
  bool* has_run;                // by node
  int32_t *ready, ready_count;  // nodes to look at: they may run, or free memory, since just now
  int32_t *order, count;
  int64_t live, peak;
} order_memory_t;

static bool is_here(const rn_compile_t* c, const rn_ir_node_t* node) {
  return !node->is_removed && node->device == c->options->device;
}

// Whether |node| waits for nothing, so that it runs right before the first node that reads it.
static bool is_constant(const rn_ir_node_t* node) {
  return node->feed < 0 && node->constant && rn_ir_edge_count(node) == 0;
}

// Whether a node waits for its predecessor |source|; -1: it has none.
static bool is_awaited(const rn_compile_t* c, int32_t source) {
  return source >= 0 && !is_constant(rn_compile_node(c, source));
}

static uint32_t flags_of(const rn_ir_node_t* node) {
  return node->feed < 0 && node->kernel ? node->kernel->flags : 0;
}

static bool forwards(const rn_compile_t* c, const rn_ir_node_t* node) {
  return is_here(c, node) && node->feed < 0 && node->input_count > 0 &&
         (node->op->role == RN_ROLE_IDENTITY || flags_of(node) & RN_KERNEL_FORWARDS);
}

// Whether running |node| earlier changes nothing but when its memory is needed.
static bool only_computes(const rn_compile_t* c, const rn_ir_node_t* node) {
  if (!is_here(c, node) || node->feed >= 0 || node->op->flags & RN_OP_STATEFUL ||
      node->op == rn_op_move(true) || node->op == rn_op_move(false))
    return false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_edge_t edge = node->inputs[i];
    if (edge.node < 0) return false;
    rn_dtype_t type = rn_compile_node(c, edge.node)->types[edge.output];
    if (rn_dtype_is_ref(type) || type == RN_RESOURCE) return false;
  }
  for (int32_t o = 0; o < node->output_count; ++o)
    if (rn_dtype_is_ref(node->types[o])) return false;
  return forwards(c, node) ||
         (node->kernel && node->kernel->compute && flags_of(node) & RN_KERNEL_ISSUES);
}

static int64_t bytes_of(const rn_compile_t* c, const rn_ir_node_t* node, int32_t o) {
  int64_t count, bytes;
  const rn_dtype_t type = node->types[o];
  if (!is_here(c, node) || !(flags_of(node) & RN_KERNEL_ISSUES) ||
      flags_of(node) & RN_KERNEL_OWN_OUTPUTS || rn_dtype_is_ref(type) || !rn_dtype_is_plain(type) ||
      !rn_shape_is_full(node->shapes[o]) || !rn_shape_count(node->shapes[o], &count) ||
      count <= 0 || !rn_mul_i64_ok(count, (int64_t)rn_dtype_size(type), &bytes) ||
      bytes > INT64_C(1) << 40)
    return 0;
  return bytes;
}

static order_value_t* value_at(const order_memory_t* m, rn_ir_edge_t edge) {
  return &m->values[m->values[m->first_value[edge.node] + edge.output].root];
}

// Whether input |i| of |node| reads a value that an input before it reads, too.
static bool is_repeated(const order_memory_t* m, const rn_ir_node_t* node, int32_t i) {
  for (int32_t k = 0; k < i; ++k)
    if (value_at(m, node->inputs[k]) == value_at(m, node->inputs[i])) return true;
  return false;
}

static rn_status_t find_values(order_memory_t* m) {
  const rn_compile_t* c = m->c;
  rn_arena_t* arena = c->scratch;
  size_t nodes = c->ir->nodes.count + 1, count = 0, edges = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &m->first_value));
  for (int32_t k = 0; k < c->order_count; ++k) {
    m->first_value[c->order[k]] = (int32_t)count;
    count += (size_t)rn_compile_node(c, c->order[k])->output_count;
    edges += (size_t)rn_ir_edge_count(rn_compile_node(c, c->order[k]));
  }
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count + 1, &m->values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, edges + 1, &m->next));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes + 1, &m->first_next));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &m->waits));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &m->has_run));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, nodes, &m->order));
  return RN_ARENA_ARRAY(arena, 2 * edges + 1, &m->ready);
}

// Sets everything to what it is before the first node runs.
static void begin(order_memory_t* m) {
  const rn_compile_t* c = m->c;
  m->live = m->peak = 0;
  m->count = m->ready_count = 0;
  for (int32_t k = 0; k < c->order_count; ++k) {
    const int32_t index = c->order[k];
    const rn_ir_node_t* node = rn_compile_node(c, index);
    m->has_run[index] = false;
    for (int32_t o = 0; o < node->output_count; ++o) {
      const int32_t number = m->first_value[index] + o;
      order_value_t* value = &m->values[number];
      *value = (order_value_t){.bytes = bytes_of(c, node, o), .root = number};
      if (o < node->input_count && forwards(c, node) && node->inputs[o].node >= 0)
        value->root = (int32_t)(value_at(m, node->inputs[o]) - m->values), value->bytes = 0;
    }
    m->waits[index] = 0;
    for (int32_t e = 0; e < rn_ir_edge_count(node); ++e)
      m->waits[index] += is_awaited(c, rn_ir_source(node, e));
    for (int32_t i = 0; i < node->input_count; ++i) {
      if (node->inputs[i].node < 0 || is_repeated(m, node, i)) continue;
      order_value_t* read = value_at(m, node->inputs[i]);
      read->readers++;
      read->reader += index + 1;
    }
  }
  for (int32_t i = 0; i < c->ir->fetch_count; ++i)
    if (c->ir->fetches[i].node >= 0) value_at(m, c->ir->fetches[i])->readers++;
}

static void find_successors(order_memory_t* m) {
  const rn_compile_t* c = m->c;
  const size_t nodes = c->ir->nodes.count;
  for (int32_t k = 0; k < c->order_count; ++k) {
    const rn_ir_node_t* node = rn_compile_node(c, c->order[k]);
    for (int32_t e = 0; e < rn_ir_edge_count(node); ++e)
      if (is_awaited(c, rn_ir_source(node, e))) m->first_next[rn_ir_source(node, e) + 1]++;
  }
  for (size_t n = 0; n < nodes; ++n) m->first_next[n + 1] += m->first_next[n];
  // Entry n + 1 becomes the place of node n's next successor, and so, at last, where node n + 1's
  // begin.
  for (size_t n = nodes; n > 0; --n) m->first_next[n] = m->first_next[n - 1];
  for (int32_t k = 0; k < c->order_count; ++k) {
    const rn_ir_node_t* node = rn_compile_node(c, c->order[k]);
    for (int32_t e = 0; e < rn_ir_edge_count(node); ++e)
      if (is_awaited(c, rn_ir_source(node, e)))
        m->next[m->first_next[rn_ir_source(node, e) + 1]++] = c->order[k];
  }
}

// Bytes that |node| takes less those that it frees.
static int64_t growth(const order_memory_t* m, const rn_ir_node_t* node, int32_t index) {
  int64_t bytes = 0;
  for (int32_t o = 0; o < node->output_count; ++o)
    bytes += m->values[m->first_value[index] + o].bytes;
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i].node < 0 || is_repeated(m, node, i)) continue;
    const order_value_t* read = value_at(m, node->inputs[i]);
    if (read->readers == 1) bytes -= read->bytes;
  }
  return bytes;
}

static void run(order_memory_t* m, int32_t index) {
  const rn_ir_node_t* node = rn_compile_node(m->c, index);
  for (int32_t e = 0; e < rn_ir_edge_count(node); ++e) {
    const int32_t source = rn_ir_source(node, e);
    if (source < 0 || m->has_run[source] || !is_constant(rn_compile_node(m->c, source))) continue;
    m->has_run[source] = true;
    m->order[m->count++] = source;
  }
  m->has_run[index] = true;
  m->order[m->count++] = index;
  for (int32_t o = 0; o < node->output_count; ++o)
    m->live += m->values[m->first_value[index] + o].bytes;
  if (m->live > m->peak) m->peak = m->live;
  for (int32_t o = 0; o < node->output_count; ++o)
    if (!m->values[m->first_value[index] + o].readers)
      m->live -= m->values[m->first_value[index] + o].bytes;
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (node->inputs[i].node < 0 || is_repeated(m, node, i)) continue;
    order_value_t* read = value_at(m, node->inputs[i]);
    read->reader -= index + 1;
    if (--read->readers == 0) m->live -= read->bytes;
    // A fetch has no number.
    if (read->readers == 1 && read->reader) m->ready[m->ready_count++] = (int32_t)read->reader - 1;
  }
  for (int32_t k = m->first_next[index]; k < m->first_next[index + 1]; ++k)
    if (--m->waits[m->next[k]] == 0) m->ready[m->ready_count++] = m->next[k];
}

// Runs what has become ready and only forwards, or frees more memory than it takes.
static void run_early(order_memory_t* m) {
  while (m->ready_count > 0) {
    const int32_t index = m->ready[--m->ready_count];
    const rn_ir_node_t* node = rn_compile_node(m->c, index);
    if (m->has_run[index] || m->waits[index] > 0 || !only_computes(m->c, node)) continue;
    if (forwards(m->c, node) || growth(m, node, index) < 0) run(m, index);
  }
}

rn_status_t rn_compile_order(rn_compile_t* c) {
  order_memory_t m = {.c = c};
  RN_RETURN_IF_ERROR(find_values(&m));
  find_successors(&m);
  begin(&m);
  for (int32_t k = 0; k < c->order_count; ++k) {
    m.ready_count = 0;
    if (!m.has_run[c->order[k]]) run(&m, c->order[k]);
  }
  const int64_t before = m.peak;
  begin(&m);
  for (int32_t k = 0; k < c->order_count; ++k) {
    if (m.has_run[c->order[k]]) continue;
    run(&m, c->order[k]);
    // Feeds and their moves stay together at the beginning: see gather_moves in compile.c.
    const rn_ir_node_t* node = rn_compile_node(c, c->order[k]);
    if (node->feed < 0 && node->op != rn_op_move(false)) run_early(&m);
  }
  if (m.peak < before) c->order = m.order;
  return RN_OK;
}

// Tasks: which instructions run in sequence without synchronization.
//
// Two instructions may share a task only if they wait for the same asynchronous instructions;
// otherwise one would delay the other, and deadlock if the way leads through another device or the
// other end of a queue. Instructions that wait for the same ones are a class. Classes are cut into
// several tasks only where threads can gain from it.
//
// doc/invariants.md: invariant 23.
#include "exec/compile.h"

// Handing work to another thread costs about 20 us: less work than this is not worth it.
#define WORTH_A_THREAD_NS 150000

typedef struct cost_t {
  int64_t own;
  int64_t path;  // the longest chain that ends here
} cost_t;

// More than any step takes; its sum over the nodes of a graph fits in 64 bits.
#define MOST_NS (INT64_C(1) << 40)

static int64_t bytes_of(const rn_ir_node_t* node, int32_t output) {
  int64_t count, bytes;
  if (!rn_shape_count(node->shapes[output], &count) || count < 0) return 0;
  size_t size = rn_dtype_size(rn_dtype_base(node->types[output]));
  return rn_mul_i64_ok(count, (int64_t)size, &bytes) && bytes < MOST_NS ? bytes : MOST_NS;
}

// A rough estimate, for cutting only: bytes at memory speed, and a factor for kernels that do more
// than one pass.
static int64_t guess_cost(const rn_compile_t* c, const rn_ir_node_t* node) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < node->input_count && bytes < MOST_NS; ++i)
    bytes += bytes_of(rn_compile_node(c, node->inputs[i].node), node->inputs[i].output);
  for (int32_t i = 0; i < node->output_count && bytes < MOST_NS; ++i) bytes += bytes_of(node, i);
  bool is_expensive = node->kernel && node->kernel->flags & RN_KERNEL_EXPENSIVE;
  int64_t cost = 10 + bytes / 10 * (is_expensive ? 16 : 1);
  return cost < MOST_NS ? cost : MOST_NS;
}

static bool is_async(const rn_ir_node_t* node) {
  return node->kernel && node->kernel->compute_async;
}

// The class of each node: 0 waits for nothing. A node whose predecessors are of one class is of
// that class; a node behind an asynchronous one, or where classes meet, starts a new class.
static int32_t find_classes(const rn_compile_t* c, int32_t* class_of, int32_t* opened) {
  int32_t count = 1;
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] == RN_FATE_ELSEWHERE) continue;
    const rn_ir_node_t* node = rn_compile_node(c, index);
    int32_t found = 0;
    bool is_mixed = false;
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k);
      if (source < 0 || c->fate[source] == RN_FATE_ELSEWHERE) continue;
      // The outputs of an asynchronous instruction belong to the class that it opens.
      int32_t from = is_async(rn_compile_node(c, source)) ? opened[source] : class_of[source];
      if (from == 0 || from == found) continue;
      is_mixed |= found != 0;
      found = from;
    }
    class_of[index] = is_mixed ? count++ : found;
    if (is_async(node)) opened[index] = count++;
  }
  return count;
}

static void find_costs(const rn_compile_t* c, cost_t* costs, int64_t* out_total,
                       int64_t* out_longest) {
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] == RN_FATE_ELSEWHERE) continue;
    const rn_ir_node_t* node = rn_compile_node(c, index);
    int64_t path = 0;
    for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k);
      if (source >= 0 && costs[source].path > path) path = costs[source].path;
    }
    if (c->fate[index] == RN_FATE_INSTR) costs[index].own = guess_cost(c, node);
    costs[index].path = path + costs[index].own;
    *out_total += costs[index].own;
    if (costs[index].path > *out_longest) *out_longest = costs[index].path;
  }
}

typedef struct tasks_open_t {
  int32_t task;  // the class's open task, -1: none
  int64_t cost;
} tasks_open_t;

static rn_status_t assign(rn_compile_t* c, const int32_t* class_of, int32_t class_count,
                          const cost_t* costs, int64_t limit) {
  tasks_open_t* open = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, (size_t)class_count, &open));
  for (int32_t i = 0; i < class_count; ++i) open[i].task = -1;
  int32_t count = 0;
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] != RN_FATE_INSTR) continue;
    const rn_ir_node_t* node = rn_compile_node(c, index);
    if (is_async(node)) {
      c->task[index] = count++;
      continue;
    }
    tasks_open_t* mine = &open[class_of[index]];
    if (mine->task < 0 || mine->cost > limit) *mine = (tasks_open_t){count++, 0};
    c->task[index] = mine->task;
    mine->cost += costs[index].own;
  }
  c->plan->task_count = count;
  return RN_ARENA_ARRAY(&c->plan->arena, (size_t)count + 1, &c->plan->tasks);
}

// Successors of tasks, each once. Predecessors are found through values and aliases.
typedef struct link_t {
  int32_t from, to;
} link_t;

static int compare_links(const void* a, const void* b) {
  const link_t* x = a;
  const link_t* y = b;
  return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

static rn_status_t link_tasks(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  RN_VEC(link_t) links = {0};
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] != RN_FATE_INSTR) continue;
    const rn_ir_node_t* node = rn_compile_node(c, index);
    for (int32_t k = 0; rn_ok(status) && k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k);
      while (source >= 0 && c->fate[source] == RN_FATE_ALIAS)
        source = rn_compile_node(c, source)->inputs[0].node;
      if (source < 0 || c->fate[source] != RN_FATE_INSTR || c->task[source] == c->task[index])
        continue;
      status = rn_vec_push(&links, plan->allocator, (link_t){c->task[source], c->task[index]});
    }
  }
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&plan->arena, links.count + 1, &plan->successors);
  if (rn_ok(status) && links.count) {
    qsort(links.items, links.count, sizeof *links.items, compare_links);
    int32_t count = 0;
    for (size_t i = 0; i < links.count; ++i) {
      if (i > 0 && compare_links(&links.items[i - 1], &links.items[i]) == 0) continue;
      rn_task_t* from = &plan->tasks[links.items[i].from];
      if (from->successor_count++ == 0) from->first_successor = count;
      plan->successors[count++] = links.items[i].to;
      plan->tasks[links.items[i].to].pending++;
    }
  }
  rn_vec_free(&links, plan->allocator);
  return status;
}

rn_status_t rn_compile_tasks(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  if (plan->has_frames) {  // runs instruction by instruction; one task keeps them in order
    plan->task_count = 1;
    return RN_ARENA_ARRAY(&plan->arena, 2, &plan->tasks);
  }
  size_t n = c->ir->nodes.count + 1;
  int32_t *class_of = NULL, *opened = NULL;
  cost_t* costs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &class_of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &opened));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &costs));
  int32_t class_count = find_classes(c, class_of, opened);
  int64_t total = 0, longest = 1;
  find_costs(c, costs, &total, &longest);
  bool gains =
      c->options->threads > 1 && total > WORTH_A_THREAD_NS && total > longest + longest / 4;
  int64_t limit = INT64_MAX;
  if (gains) {
    limit = total / (c->options->threads * 8);
    if (limit < WORTH_A_THREAD_NS / 4) limit = WORTH_A_THREAD_NS / 4;
  }
  RN_RETURN_IF_ERROR(assign(c, class_of, class_count, costs, limit));
  return link_tasks(c);
}

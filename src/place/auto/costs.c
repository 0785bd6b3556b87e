// Tables of costs: see costs.h.
#include "place/auto/costs.h"

#include <math.h>

// A rough processor core, for ops of which nothing was measured: a kernel takes at least this, and
// then this many operations and bytes per nanosecond.
#define LEAST_NS 500.0
#define FLOPS_PER_NS 20.0
#define BYTES_PER_NS 8.0
// More than any node takes.
#define MOST_NS 1e15
// More than any value has.
#define MOST_BYTES 4e12
// Entries of an op that are needed to fit a line instead of a factor.
enum { LINE_ENTRIES = 3 };

// What is known of an op on a type of device: least squares of time over the rough estimate, each
// entry weighted by 1 / time^2, so that relative errors count.
typedef struct fit_t {
  double weight, x, y, xx, xy;  // weighted sums; x: the estimate, y: the time
  double log_ratio;             // sum of log(time / estimate)
  double least, most;           // of x
  int64_t count;
} fit_t;

struct rn_costs_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  RN_VEC(rn_cost_entry_t*) entries;
  RN_VEC(rn_cost_link_t) links;
  rn_map_t by_node;  // "device\nnode" -> rn_cost_entry_t*
  rn_map_t by_op;    // "device\nop\nsignature" -> rn_cost_entry_t*
  rn_map_t fits;     // "device\nop", and "device" for all ops -> fit_t*
  bool has_fits;     // |fits| are of all entries
  rn_strbuf_t text;  // scratch
  int64_t step_ns;
};

rn_status_t rn_costs_create(rn_allocator_t allocator, rn_costs_t** out) {
  *out = NULL;
  rn_costs_t* costs = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &costs));
  costs->allocator = allocator;
  rn_arena_init(&costs->arena, allocator);
  rn_map_init(&costs->by_node, allocator);
  rn_map_init(&costs->by_op, allocator);
  rn_map_init(&costs->fits, allocator);
  rn_strbuf_init(&costs->text, allocator);
  *out = costs;
  return RN_OK;
}

void rn_costs_destroy(rn_costs_t* costs) {
  if (!costs) return;
  rn_vec_free(&costs->entries, costs->allocator);
  rn_vec_free(&costs->links, costs->allocator);
  rn_map_clear(&costs->by_node);
  rn_map_clear(&costs->by_op);
  rn_map_clear(&costs->fits);
  rn_strbuf_clear(&costs->text);
  rn_arena_clear(&costs->arena);
  RN_FREE(costs->allocator, costs);
}

static void sign_value(const rn_ir_node_t* node, int32_t output, rn_strbuf_t* out) {
  rn_shape_t shape = node->shapes[output];
  rn_strbuf_printf(out, "%s", rn_dtype_name(rn_dtype_base(node->types[output])));
  if (shape.rank < 0) rn_strbuf_append(out, RN_STR("?"));
  if (shape.rank >= 0) rn_strbuf_append(out, RN_STR("["));
  for (int32_t d = 0; d < shape.rank; ++d) {
    if (d) rn_strbuf_append(out, RN_STR(","));
    if (shape.dims[d] < 0)
      rn_strbuf_append(out, RN_STR("?"));
    else
      rn_strbuf_printf(out, "%lld", (long long)shape.dims[d]);
  }
  if (shape.rank >= 0) rn_strbuf_append(out, RN_STR("]"));
}

void rn_costs_sign(const rn_ir_t* ir, const rn_ir_node_t* node, rn_strbuf_t* out) {
  for (int32_t i = 0; i < node->input_count; ++i) {
    if (i) rn_strbuf_append(out, RN_STR(";"));
    sign_value(rn_ir_node(ir, node->inputs[i].node), node->inputs[i].output, out);
  }
  rn_strbuf_append(out, RN_STR("->"));
  for (int32_t o = 0; o < node->output_count; ++o) {
    if (o) rn_strbuf_append(out, RN_STR(";"));
    sign_value(node, o, out);
  }
}

// The key of up to three parts, in |text|; valid until the next call.
static rn_str_t join(rn_costs_t* costs, rn_str_t a, rn_str_t b, rn_str_t c) {
  costs->text.size = 0;
  rn_strbuf_append(&costs->text, a);
  rn_strbuf_append(&costs->text, RN_STR("\n"));
  rn_strbuf_append(&costs->text, b);
  if (c.size) rn_strbuf_append(&costs->text, RN_STR("\n"));
  rn_strbuf_append(&costs->text, c);
  return rn_strbuf_view(&costs->text);
}

static rn_status_t keep(rn_costs_t* costs, const rn_cost_entry_t* entry, rn_map_t* map,
                        rn_str_t key) {
  rn_arena_t* arena = &costs->arena;
  rn_cost_entry_t* copy = NULL;
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_strbuf_status(&costs->text));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, key, &name));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &copy));
  *copy = *entry;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, entry->node, &copy->node));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, entry->device, &copy->device));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, entry->op, &copy->op));
  RN_RETURN_IF_ERROR(rn_arena_str(arena, entry->signature, &copy->signature));
  RN_RETURN_IF_ERROR(rn_vec_push(&costs->entries, costs->allocator, copy));
  return rn_map_put(map, name, copy);
}

rn_status_t rn_costs_add_entry(rn_costs_t* costs, const rn_cost_entry_t* entry) {
  bool is_node = entry->node.size > 0;
  if (!(entry->ns >= 0) || entry->ns > MOST_NS || entry->count < 1 || !(entry->work.flops >= 0) ||
      !(entry->work.bytes >= 0))
    return rn_invalid_argument("The cost of %.*s is out of range", RN_STR_ARGS(entry->op));
  costs->has_fits = false;
  rn_map_t* map = is_node ? &costs->by_node : &costs->by_op;
  rn_str_t key = is_node ? join(costs, entry->device, entry->node, RN_STR(""))
                         : join(costs, entry->device, entry->op, entry->signature);
  rn_cost_entry_t* before = rn_map_get(map, key);
  if (!before) return keep(costs, entry, map, key);
  if (is_node) {
    before->ns = entry->ns;
    before->work = entry->work;
    return RN_OK;
  }
  int64_t count;
  if (!rn_add_i64_ok(before->count, entry->count, &count)) return RN_OK;
  before->ns += (entry->ns - before->ns) * ((double)entry->count / (double)count);
  before->count = count;
  return RN_OK;
}

static rn_cost_entry_t entry_of(const rn_cost_key_t* key, int64_t ns) {
  return (rn_cost_entry_t){.device = rn_str(key->device),
                           .op = key->op,
                           .work = key->work,
                           .ns = (double)ns,
                           .count = 1};
}

rn_status_t rn_costs_add_node(rn_costs_t* costs, const rn_cost_key_t* key, int64_t ns,
                              int64_t bytes) {
  rn_cost_entry_t entry = entry_of(key, ns);
  entry.node = key->node;
  entry.work = (rn_work_t){.bytes = (double)bytes};
  return rn_costs_add_entry(costs, &entry);
}

rn_status_t rn_costs_add_op(rn_costs_t* costs, const rn_cost_key_t* key, int64_t ns) {
  rn_cost_entry_t entry = entry_of(key, ns);
  entry.signature = key->signature;
  return rn_costs_add_entry(costs, &entry);
}

static double estimate(rn_work_t work) {
  return LEAST_NS + work.flops / FLOPS_PER_NS + work.bytes / BYTES_PER_NS;
}

static rn_status_t fit_entry(rn_costs_t* costs, rn_str_t key, const rn_cost_entry_t* entry) {
  fit_t* fit = rn_map_get(&costs->fits, key);
  if (!fit) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_arena_str(&costs->arena, key, &name));
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&costs->arena, &fit));
    RN_RETURN_IF_ERROR(rn_map_put(&costs->fits, name, fit));
  }
  double x = estimate(entry->work), y = fmax(entry->ns, 1), weight = 1 / (y * y);
  fit->weight += weight;
  fit->x += weight * x;
  fit->y += weight * y;
  fit->xx += weight * x * x;
  fit->xy += weight * x * y;
  fit->log_ratio += log(y / x);
  fit->least = fit->count ? fmin(fit->least, x) : x;
  fit->most = fmax(fit->most, x);
  fit->count++;
  return RN_OK;
}

static rn_status_t make_fits(rn_costs_t* costs) {
  if (costs->has_fits) return RN_OK;
  rn_map_clear(&costs->fits);
  rn_map_init(&costs->fits, costs->allocator);
  for (size_t i = 0; i < costs->entries.count; ++i) {
    const rn_cost_entry_t* entry = costs->entries.items[i];
    if (entry->node.size) continue;  // other nodes may run within it
    rn_str_t key = join(costs, entry->device, entry->op, RN_STR(""));
    RN_RETURN_IF_ERROR(rn_strbuf_status(&costs->text));
    RN_RETURN_IF_ERROR(fit_entry(costs, key, entry));
    RN_RETURN_IF_ERROR(fit_entry(costs, entry->device, entry));
  }
  costs->has_fits = true;
  return RN_OK;
}

// A line with a slope and a beginning that are not negative; otherwise a factor.
static double apply(const fit_t* fit, double x) {
  double spread = fit->weight * fit->xx - fit->x * fit->x;
  if (fit->count >= LINE_ENTRIES && fit->most > 1.5 * fit->least && spread > 0) {
    double slope = (fit->weight * fit->xy - fit->x * fit->y) / spread;
    double start = (fit->y - slope * fit->x) / fit->weight;
    if (slope >= 0 && start + slope * fit->least >= 0 && start + slope * x > 0)
      return start + slope * x;
  }
  return x * exp(fit->log_ratio / (double)fit->count);
}

int64_t rn_costs_find(rn_costs_t* costs, const rn_cost_key_t* key, rn_cost_source_t* out_source) {
  rn_str_t device = rn_str(key->device);
  const rn_cost_entry_t* entry = NULL;
  if (key->node.size)
    entry = rn_map_get(&costs->by_node, join(costs, device, key->node, RN_STR("")));
  *out_source = RN_COST_OF_NODE;
  if (entry && rn_str_eq(entry->op, key->op)) return (int64_t)entry->ns;
  entry = rn_map_get(&costs->by_op, join(costs, device, key->op, key->signature));
  *out_source = RN_COST_OF_OP;
  if (entry) return (int64_t)entry->ns;
  double x = estimate(key->work), ns = x;
  const fit_t* fit = NULL;
  rn_status_t status = make_fits(costs);
  if (rn_ok(status)) fit = rn_map_get(&costs->fits, join(costs, device, key->op, RN_STR("")));
  *out_source = fit ? RN_COST_FITTED : RN_COST_GUESSED;
  if (rn_ok(status) && !fit) fit = rn_map_get(&costs->fits, device);
  rn_status_free(status);  // without memory, the estimate stands
  if (fit) ns = apply(fit, x);
  return ns < MOST_NS ? (int64_t)ns : (int64_t)MOST_NS;
}

int64_t rn_costs_bytes(rn_costs_t* costs, const char* device, rn_str_t node) {
  const rn_cost_entry_t* entry =
      rn_map_get(&costs->by_node, join(costs, rn_str(device), node, RN_STR("")));
  return entry && entry->work.bytes < MOST_BYTES ? (int64_t)entry->work.bytes : 0;
}

void rn_costs_set_step(rn_costs_t* costs, int64_t ns) {
  costs->step_ns = ns < 0 ? 0 : ns > (int64_t)MOST_NS ? (int64_t)MOST_NS : ns;
}

int64_t rn_costs_step(const rn_costs_t* costs) { return costs->step_ns; }

static rn_cost_link_t* find_link(const rn_costs_t* costs, rn_str_t from, rn_str_t to) {
  for (size_t i = 0; i < costs->links.count; ++i)
    if (rn_str_eq(costs->links.items[i].from, from) && rn_str_eq(costs->links.items[i].to, to))
      return &costs->links.items[i];
  return NULL;
}

rn_status_t rn_costs_set_link(rn_costs_t* costs, rn_str_t from, rn_str_t to, int64_t latency_ns,
                              double ns_per_byte) {
  if (latency_ns < 0 || (double)latency_ns > MOST_NS || !(ns_per_byte >= 0) ||
      ns_per_byte > MOST_NS)
    return rn_invalid_argument("The cost of a link is out of range");
  rn_cost_link_t link = {{0}, {0}, latency_ns, ns_per_byte}, *before = find_link(costs, from, to);
  if (before) {
    before->latency_ns = latency_ns;
    before->ns_per_byte = ns_per_byte;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_arena_str(&costs->arena, from, &link.from));
  RN_RETURN_IF_ERROR(rn_arena_str(&costs->arena, to, &link.to));
  return rn_vec_push(&costs->links, costs->allocator, link);
}

bool rn_costs_link(const rn_costs_t* costs, rn_str_t from, rn_str_t to, int64_t* out_latency_ns,
                   double* out_ns_per_byte) {
  const rn_cost_link_t* link = find_link(costs, from, to);
  if (!link) return false;
  *out_latency_ns = link->latency_ns;
  *out_ns_per_byte = link->ns_per_byte;
  return true;
}

size_t rn_costs_count(const rn_costs_t* costs) { return costs->entries.count; }
const rn_cost_entry_t* rn_costs_entry(const rn_costs_t* costs, size_t i) {
  return costs->entries.items[i];
}
size_t rn_costs_link_count(const rn_costs_t* costs) { return costs->links.count; }
const rn_cost_link_t* rn_costs_link_at(const rn_costs_t* costs, size_t i) {
  return &costs->links.items[i];
}

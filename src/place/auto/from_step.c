// Workloads of steps: see from_step.h.
#include "place/auto/from_step.h"

#include "place/cut.h"

typedef struct workload_maker_t {
  rn_ir_t* ir;
  const rn_place_options_t* place;
  const rn_fleet_t* fleet;
  rn_costs_t* costs;
  rn_arena_t* arena;
  bool crosses;
  rn_place_groups_t groups;  // changed: loops are joined
  int32_t *order, count;
  bool* has_waiter;       // by node of the IR: a control edge leaves it
  int32_t* group_number;  // by node that stands for a group: number + 1
  rn_strbuf_t text;
  rn_step_work_t* out;
} workload_maker_t;

static int32_t root_of(workload_maker_t* m, int32_t node) {
  int32_t* group = m->groups.group;
  while (group[node] != node) node = group[node] = group[group[node]];
  return node;
}

// Joins the groups of two nodes unless no device may have both.
static void join(workload_maker_t* m, int32_t a, int32_t b) {
  int32_t x = root_of(m, a), y = root_of(m, b);
  uint64_t both = m->groups.allowed[x] & m->groups.allowed[y];
  if (x == y || !both) return;
  m->groups.group[x] = y;
  m->groups.allowed[y] = both;
}

// Joins the nodes of each loop with its Enters and Exits.
static rn_status_t join_loops(workload_maker_t* m, rn_cut_t* cut) {
  RN_RETURN_IF_ERROR(rn_cut_find_loops(cut));
  int32_t* first = NULL;  // by loop: one of its nodes + 1
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(m->arena, cut->loops.count, &first));
  for (int32_t i = 0; i < m->count; ++i) {
    int32_t index = m->order[i], loop = cut->nodes.items[index].loop;
    const rn_ir_node_t* node = rn_ir_node(m->ir, index);
    if (rn_ir_is_role(node, RN_ROLE_EXIT)) join(m, index, node->inputs[0].node);
    while (loop && cut->loops.items[loop].parent) loop = cut->loops.items[loop].parent;
    if (!loop) continue;
    if (first[loop]) join(m, index, first[loop] - 1);
    first[loop] = index + 1;
  }
  return RN_OK;
}

static rn_status_t find_groups(workload_maker_t* m) {
  RN_RETURN_IF_ERROR(rn_place_find_groups(m->ir, m->place, &m->groups));
  if (!rn_ir_has_role(m->ir, RN_ROLE_ENTER)) return RN_OK;
  rn_cut_t cut = {.ir = m->ir, .options = m->place};
  rn_status_t status = join_loops(m, &cut);
  rn_vec_free(&cut.nodes, m->ir->allocator);
  rn_vec_free(&cut.loops, m->ir->allocator);
  return status;
}

// Whether a node without an entry of its own costs nothing.
static bool runs_nothing(const rn_ir_node_t* node) {
  if (node->feed >= 0 || node->constant) return true;
  switch (node->op->role) {
    case RN_ROLE_CONSTANT:
    case RN_ROLE_PLACEHOLDER:
    case RN_ROLE_VARIABLE:
    case RN_ROLE_IDENTITY:
    case RN_ROLE_NO_OP:
      return true;
    default:
      return rn_ir_is_control_flow(node->op->role) ||
             (node->output_count == 1 && node->types[0] == RN_RESOURCE);
  }
}

static rn_status_t find_costs(workload_maker_t* m, int32_t number, const rn_ir_node_t* node) {
  rn_step_work_t* out = m->out;
  int32_t devices = m->fleet->device_count;
  bool is_known = false;
  if (node->feed >= 0) return RN_OK;
  m->text.size = 0;
  rn_costs_sign(m->ir, node, &m->text);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&m->text));
  rn_cost_key_t key = {.node = node->name,
                       .op = rn_str(node->op->name),
                       .signature = rn_strbuf_view(&m->text),
                       .work = rn_ir_work(m->ir, node)};
  rn_cost_source_t source = RN_COST_GUESSED;
  int64_t ns = 0;
  for (int32_t d = 0; d < devices; ++d) {
    const char* type = m->place->devices[d]->type;
    if (!key.device || strcmp(type, key.device) != 0) {
      key.device = type;
      ns = rn_costs_find(m->costs, &key, &source);
      if (source != RN_COST_OF_NODE && runs_nothing(node)) ns = 0;
    }
    double slowed = (double)ns / m->fleet->devices[d].speed;
    out->work.cost_ns[(size_t)number * (size_t)devices + (size_t)d] =
        slowed < 1e15 ? (int64_t)slowed : (int64_t)1e15;
    if (d == 0) is_known = ns > 0 || !runs_nothing(node);
    if (d == 0 && is_known) {
      out->sources[source]++;
      out->source_ns[source] += (double)ns;
    }
  }
  return RN_OK;
}

// The bytes of a variable behind a handle.
static int64_t handle_bytes(const rn_ir_node_t* node) {
  const rn_attr_value_t* dtype = rn_ir_attr(node, RN_STR("dtype"));
  const rn_attr_value_t* shape = rn_ir_attr(node, RN_STR("shape"));
  if (!dtype || !shape || shape->kind != RN_ATTR_SHAPE || shape->is_list) return 0;
  rn_dtype_t type = dtype->type;
  rn_ir_node_t value = {.types = &type, .shapes = (rn_shape_t*)&shape->shape};
  return rn_ir_output_bytes(&value, 0);
}

static void find_memory(const workload_maker_t* m, int32_t number, const rn_ir_node_t* node) {
  rn_workload_t* w = &m->out->work;
  bool is_kept = node->feed < 0 && (node->constant || node->op->role == RN_ROLE_VARIABLE);
  w->is_alias[number] = is_kept || node->feed >= 0 || node->op->role == RN_ROLE_IDENTITY ||
                        rn_ir_is_control_flow(node->op->role) ||
                        (node->output_count && rn_dtype_is_ref(node->types[0]));
  for (int32_t o = 0; o < node->output_count; ++o) {
    int64_t bytes = rn_ir_output_bytes(node, o), measured = 0;
    if (o == 0 && !rn_shape_is_full(node->shapes[0]) && node->device)
      measured = rn_costs_bytes(m->costs, node->device->type, node->name);
    if (measured) bytes = measured;
    w->bytes[w->first_output[number] + o] = node->types[o] == RN_RESOURCE ? 0 : bytes;
    if (is_kept) w->kept[number] += bytes;
  }
  if (node->feed < 0 && node->output_count == 1 && node->types[0] == RN_RESOURCE)
    w->kept[number] = handle_bytes(node);
}

static int32_t device_number(const workload_maker_t* m, const rn_device_t* device) {
  for (int d = 0; d < m->place->device_count; ++d)
    if (m->place->devices[d] == device) return d;
  return 0;
}

static void find_group(workload_maker_t* m, int32_t number, int32_t index) {
  rn_workload_t* w = &m->out->work;
  const rn_ir_node_t* node = rn_ir_node(m->ir, index);
  int32_t root = root_of(m, index), *group = &m->group_number[root];
  uint64_t allowed = m->groups.allowed[root];
  if (node->feed >= 0) allowed = 1;
  if (!*group) {
    *group = ++w->group_count;
    int32_t device = device_number(m, node->device);
    w->allowed[*group - 1] = allowed;
    m->out->start[*group - 1] = allowed >> device & 1 ? device : (int32_t)__builtin_ctzll(allowed);
  }
  w->group[number] = *group - 1;
}

// Adds an edge from an output of a node of the IR; |output| -1: a control edge.
static void add_input(workload_maker_t* m, int32_t reader, int32_t source, int32_t output,
                      int32_t* last_reader, int32_t* inout_count) {
  rn_workload_t* w = &m->out->work;
  int32_t from = source < 0 ? -1 : m->out->numbers[source];
  if (from < 0 || from >= reader) return;  // the back edge of a loop
  const rn_ir_node_t* node = rn_ir_node(m->ir, source);
  if (node->feed >= 0 && !m->crosses) return;
  int32_t id = w->first_output[from] + (output < 0 ? node->output_count : output);
  if (last_reader[id] == reader + 1) return;
  last_reader[id] = reader + 1;
  w->inputs[(*inout_count)++] = id;
}

static rn_status_t add_edges(workload_maker_t* m) {
  rn_workload_t* w = &m->out->work;
  int32_t count = 0, *last_reader = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(m->arena, (size_t)w->output_count + 1, &last_reader));
  for (int32_t n = 0; n < m->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(m->ir, m->order[n]);
    for (int32_t i = 0; i < node->input_count; ++i)
      add_input(m, n, node->inputs[i].node, node->inputs[i].output, last_reader, &count);
    for (int32_t i = 0; i < node->control_count; ++i)
      add_input(m, n, node->controls[i], -1, last_reader, &count);
    w->first_input[n + 1] = count;
  }
  for (int32_t f = 0; m->crosses && f < m->ir->fetch_count; ++f)
    add_input(m, m->count, m->ir->fetches[f].node, m->ir->fetches[f].output, last_reader, &count);
  w->first_input[w->node_count] = count;
  return RN_OK;
}

static rn_status_t allocate(workload_maker_t* m) {
  rn_workload_t* w = &m->out->work;
  rn_arena_t* arena = m->arena;
  size_t total = m->ir->nodes.count + 2, n = (size_t)m->count + 2, edges = 1, outputs = 1;
  size_t costs, devices = (size_t)m->fleet->device_count;
  for (int32_t i = 0; i < m->count; ++i) {
    const rn_ir_node_t* node = rn_ir_node(m->ir, m->order[i]);
    edges += (size_t)rn_ir_edge_count(node);
    outputs += (size_t)node->output_count + 1;
  }
  edges += (size_t)m->ir->fetch_count;
  if (!rn_mul_ok(n, devices, &costs) || edges > INT32_MAX || outputs > INT32_MAX)
    return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, total, &m->has_waiter));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, total, &m->group_number));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, total, &m->out->numbers));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &m->out->nodes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &m->out->start));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &w->group));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &w->first_input));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, edges, &w->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &w->first_output));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, outputs, &w->bytes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &w->is_alias));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, n, &w->kept));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, costs, &w->cost_ns));
  return RN_ARENA_ARRAY(arena, n, &w->allowed);
}

// The client, who reads the fetches on the first device.
static void add_client(workload_maker_t* m) {
  rn_workload_t* w = &m->out->work;
  int32_t n = w->node_count++, group = w->group_count++;
  m->out->nodes[n] = -1;
  w->group[n] = group;
  w->allowed[group] = 1;
  w->first_output[n + 1] = w->output_count;
}

static rn_status_t make(workload_maker_t* m) {
  rn_workload_t* w = &m->out->work;
  RN_RETURN_IF_ERROR(rn_ir_order(m->ir, &m->order, &m->count));
  RN_RETURN_IF_ERROR(find_groups(m));
  RN_RETURN_IF_ERROR(allocate(m));
  w->device_count = m->fleet->device_count;
  for (size_t n = 0; n < m->ir->nodes.count; ++n) m->out->numbers[n] = -1;
  for (int32_t n = 0; n < m->count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(m->ir, m->order[n]);
    for (int32_t i = 0; i < node->control_count; ++i) m->has_waiter[node->controls[i]] = true;
  }
  for (int32_t n = 0; n < m->count; ++n) {
    int32_t index = m->order[n];
    const rn_ir_node_t* node = rn_ir_node(m->ir, index);
    m->out->nodes[n] = index;
    m->out->numbers[index] = n;
    w->node_count = n + 1;
    w->output_count += node->output_count + m->has_waiter[index];
    w->first_output[n + 1] = w->output_count;
    find_group(m, n, index);
    find_memory(m, n, node);
    RN_RETURN_IF_ERROR(find_costs(m, n, node));
  }
  if (m->crosses) add_client(m);
  RN_RETURN_IF_ERROR(add_edges(m));
  return rn_workload_finish(w, m->arena);
}

rn_status_t rn_step_work_create(rn_ir_t* ir, const rn_place_options_t* place,
                                const rn_fleet_t* fleet, rn_costs_t* costs, bool crosses,
                                rn_arena_t* arena, rn_step_work_t* out) {
  *out = (rn_step_work_t){0};
  RN_RETURN_IF_ERROR(rn_fleet_check(fleet));
  if (place->device_count != fleet->device_count)
    return rn_invalid_argument("The fleet has %d devices, the step %d", fleet->device_count,
                               place->device_count);
  workload_maker_t m = {.ir = ir,
                        .place = place,
                        .fleet = fleet,
                        .costs = costs,
                        .arena = arena,
                        .crosses = crosses,
                        .out = out};
  rn_strbuf_init(&m.text, ir->allocator);
  rn_status_t status = make(&m);
  rn_strbuf_clear(&m.text);
  return status;
}

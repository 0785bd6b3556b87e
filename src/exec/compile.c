// Compiles the placed graph of a step to a plan: fates, slots, instructions, kernels. See plan.h.
#include "exec/compile.h"

#include "exec/kernel_init.h"
#include "exec/record.h"
#include "exec/state.h"
#include "framework/function.h"
#include "framework/internal_ops.h"

void rn_kernel_cache_init(rn_kernel_cache_t* cache, rn_allocator_t allocator) {
  *cache = (rn_kernel_cache_t){.allocator = allocator};
  rn_mutex_init(&cache->mutex);
  rn_map_init(&cache->kernels, allocator);
}

void rn_kernel_cache_clear(rn_kernel_cache_t* cache) {
  size_t position = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&cache->kernels, &position))) rn_kernel_destroy(entry->value);
  rn_map_clear(&cache->kernels);
  for (size_t i = 0; i < cache->functions.count; ++i)
    rn_functions_release(cache->functions.items[i]);
  rn_vec_free(&cache->functions, cache->allocator);
  rn_mutex_destroy(&cache->mutex);
}

// Makes the kernel of a stateful node and caches it, with the table of functions that it calls.
static rn_status_t add_cached_locked(rn_kernel_cache_t* cache, const rn_ir_node_t* node,
                                     const rn_kernel_init_t* init, rn_kernel_t** out) {
  bool holds = cache->holds_functions && init->functions;
  if (holds)
    RN_RETURN_IF_ERROR(
        rn_vec_reserve(&cache->functions, cache->allocator, cache->functions.count + 1));
  RN_RETURN_IF_ERROR(rn_kernel_create(node->kernel, init, out));
  rn_status_t status = rn_map_put(&cache->kernels, (*out)->node, *out);
  if (!rn_ok(status)) {
    rn_kernel_destroy(*out);
    *out = NULL;
    return status;
  }
  if (holds) {
    rn_functions_retain(init->functions);
    cache->functions.items[cache->functions.count++] = init->functions;
  }
  return RN_OK;
}

// A constant in host memory needs no kernel: its value is put into its slot once.
static bool is_lasting(const rn_compile_t* c, const rn_ir_node_t* node) {
  if (!node->constant || node->output_count != 1) return false;
  return c->options->device->is_host || !node->kernel || node->kernel->flags & RN_KERNEL_ON_HOST;
}

// Dead values travel between the parts of a step, so one Switch in any part makes all of them use
// frames.
static bool needs_frames(const rn_compile_t* c) {
  for (int32_t i = 0; i < c->order_count; ++i) {
    const rn_ir_node_t* node = rn_compile_node(c, c->order[i]);
    uint8_t role = node->op->role;
    if (node->feed < 0 && rn_ir_is_control_flow(role) && role != RN_ROLE_CONTROL_TRIGGER &&
        role != RN_ROLE_LOOP_COND)
      return true;
  }
  return false;
}

static void find_awaited(rn_compile_t* c) {
  for (int32_t i = 0; i < c->order_count; ++i) {
    const rn_ir_node_t* node = rn_compile_node(c, c->order[i]);
    for (int32_t k = 0; k < node->control_count; ++k) c->is_awaited[node->controls[k]] = true;
  }
  for (int32_t i = 0; i < c->ir->target_count; ++i) c->is_awaited[c->ir->targets[i]] = true;
}

// In a plan with frames, a constant under a control edge is dead or alive with it, and an identity
// may connect frames, so every node except the feeds runs.
static rn_fate_t fate_of(const rn_compile_t* c, int32_t index) {
  const rn_ir_node_t* node = rn_compile_node(c, index);
  if (node->is_removed || node->device != c->options->device) return RN_FATE_ELSEWHERE;
  if (node->feed >= 0) return RN_FATE_VALUE;
  bool is_ordered = node->control_count > 0 || c->is_awaited[index];
  if (is_lasting(c, node) && node->control_count == 0) return RN_FATE_VALUE;
  if (node->op->role == RN_ROLE_IDENTITY && !is_ordered && !c->plan->has_frames &&
      node->inputs[0].node >= 0 && !rn_dtype_is_ref(node->types[0])) {
    const rn_ir_node_t* source = rn_compile_node(c, node->inputs[0].node);
    if (source->device == node->device && !rn_dtype_is_ref(source->types[node->inputs[0].output]))
      return RN_FATE_ALIAS;
  }
  return RN_FATE_INSTR;
}

static rn_status_t find_fates(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    c->fate[index] = (uint8_t)fate_of(c, index);
    if (c->fate[index] != RN_FATE_ALIAS && c->fate[index] != RN_FATE_ELSEWHERE) {
      c->first_slot[index] = plan->slot_count;
      plan->slot_count += rn_compile_node(c, index)->output_count;
    }
    if (c->fate[index] == RN_FATE_INSTR) plan->instr_count++;
  }
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] == RN_FATE_ALIAS)
      c->first_slot[index] = rn_compile_slot(c, rn_compile_node(c, index)->inputs[0]);
  }
  return RN_OK;
}

// Whether flat input |i| of |node| needs the variable's value although its source is a reference.
static bool is_deref(const rn_compile_t* c, const rn_ir_node_t* node, int32_t i) {
  rn_ir_edge_t source = node->inputs[i];
  rn_dtype_t type = rn_compile_node(c, source.node)->types[source.output];
  return rn_dtype_is_ref(type) && !rn_ir_wants_ref(node, i);
}

// A fed variable is just a value and cannot be assigned.
static rn_status_t check_reference(const rn_compile_t* c, const rn_ir_node_t* node, int32_t i) {
  const rn_ir_node_t* source = rn_compile_node(c, node->inputs[i].node);
  rn_dtype_t type = source->types[node->inputs[i].output];
  if (source->feed < 0 || rn_dtype_is_ref(type) || !rn_ir_wants_ref(node, i)) return RN_OK;
  return rn_invalid_argument(
      "Input %d of node %.*s was passed %s from %.*s:0 incompatible with expected %s_ref.", i,
      RN_STR_ARGS(node->name), rn_dtype_name(type), RN_STR_ARGS(rn_ir_source_name(c->ir, source)),
      rn_dtype_name(type));
}

// The session's kernel of a stateful node, made on first use. NULL if the name belongs to a kernel
// of another type: then the plan has its own.
static rn_status_t cached_kernel(rn_kernel_cache_t* cache, const rn_ir_node_t* node,
                                 rn_kernel_init_t init, rn_kernel_t** out) {
  rn_mutex_lock(&cache->mutex);
  rn_status_t status = RN_OK;
  rn_kernel_t* kernel = rn_map_get(&cache->kernels, node->name);
  if (!kernel) {
    init.allocator = cache->allocator;
    status = add_cached_locked(cache, node, &init, &kernel);
  } else if (kernel->def != node->kernel || kernel->device != node->device) {
    kernel = NULL;
  }
  rn_mutex_unlock(&cache->mutex);
  *out = kernel;
  return status;
}

// The kernel of a node: its own, or the session's if the node has state.
static rn_status_t make_kernel(rn_compile_t* c, const rn_ir_node_t* node, const rn_kernel_t** out) {
  rn_plan_t* plan = c->plan;
  rn_kernel_init_t init;
  RN_RETURN_IF_ERROR(rn_exec_kernel_init(c->ir, node, node->device, c->options->host,
                                         c->options->env, plan->allocator, &init));
  if (rn_op_names_function(node->op)) init.functions = c->options->functions;
  rn_kernel_t* kernel = NULL;
  rn_kernel_cache_t* cache = c->options->kernels;
  bool is_transfer =
      node->op->role == RN_ROLE_SEND || node->op->role == RN_ROLE_RECV;  // made for each program
  if (cache && node->op->flags & RN_OP_STATEFUL && !is_transfer) {
    RN_RETURN_IF_ERROR(cached_kernel(cache, node, init, &kernel));
    *out = kernel;
    if (kernel) return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_vec_reserve(&plan->kernels, plan->allocator, plan->kernels.count + 1));
  RN_RETURN_IF_ERROR(rn_kernel_create(node->kernel, &init, &kernel));
  plan->kernels.items[plan->kernels.count++] = kernel;
  *out = kernel;
  return RN_OK;
}

static rn_status_t fill_kernel(rn_compile_t* c, const rn_ir_node_t* node, rn_instr_t* instr) {
  uint8_t role = node->op->role;
  if (role == RN_ROLE_NO_OP || rn_ir_is_control_flow(role)) {
    if (role != RN_ROLE_LOOP_COND || c->plan->has_frames) return RN_OK;
  }
  if (is_lasting(c, node)) return RN_OK;
  if (!node->kernel)
    return rn_internal("Node '%.*s' (%s) was placed without a kernel", RN_STR_ARGS(node->name),
                       node->op->name);
  RN_RETURN_IF_ERROR(make_kernel(c, node, &instr->kernel));
  instr->compute = node->kernel->compute;
  instr->is_expensive = (node->kernel->flags & RN_KERNEL_EXPENSIVE) != 0;
  if (node->kernel->compute_async) instr->async = c->plan->async_count++;
  return RN_OK;
}

// An instruction's name is the beginning of its label.
static rn_status_t fill_label(rn_compile_t* c, const rn_ir_node_t* node, int32_t number) {
  rn_strbuf_t* text = &c->label;
  text->size = 0;
  rn_ir_label(c->ir, node, text);
  RN_RETURN_IF_ERROR(rn_strbuf_status(text));
  rn_str_t* label = &c->plan->labels[number];
  RN_RETURN_IF_ERROR(rn_arena_str(&c->plan->arena, rn_strbuf_view(text), label));
  c->plan->names[number] = rn_str_n(label->data, node->name.size);
  return RN_OK;
}

static rn_status_t fill_instr(rn_compile_t* c, int32_t index, int32_t number) {
  rn_plan_t* plan = c->plan;
  const rn_ir_node_t* node = rn_compile_node(c, index);
  rn_instr_t* instr = &plan->instrs[number];
  *instr = (rn_instr_t){.first_input = plan->input_total,
                        .input_count = node->input_count,
                        .first_output = c->first_slot[index],
                        .output_count = node->output_count,
                        .async = -1,
                        .node = number,
                        .role = node->op->role,
                        .first_deref = plan->deref_total};
  RN_RETURN_IF_ERROR(fill_label(c, node, number));
  for (int32_t o = 0; o < node->output_count; ++o)
    plan->slots[instr->first_output + o].producer = number;
  for (int32_t i = 0; i < node->input_count; ++i) {
    RN_RETURN_IF_ERROR(check_reference(c, node, i));
    if (is_deref(c, node, i)) {
      plan->derefs[plan->deref_total++] =
          (rn_deref_t){plan->input_total, (node->op->flags & RN_OP_ALLOWS_UNINITIALIZED) != 0};
      instr->deref_count++;
    }
    plan->inputs[plan->input_total++] = rn_compile_slot(c, node->inputs[i]);
  }
  rn_status_t status = rn_device_explain(plan->device, fill_kernel(c, node, instr));
  return rn_ok(status)
             ? status
             : rn_status_annotate(status, "\n\t [[{{node %.*s}}]]", RN_STR_ARGS(node->name));
}

static rn_status_t emit(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  size_t inputs = 0;
  for (int32_t i = 0; i < c->order_count; ++i)
    if (c->fate[c->order[i]] == RN_FATE_INSTR)
      inputs += (size_t)rn_compile_node(c, c->order[i])->input_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->instr_count + 1, &plan->instrs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->instr_count + 1, &plan->names));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->instr_count + 1, &plan->labels));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, inputs + 1, &plan->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, inputs + 1, &plan->derefs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, (size_t)plan->instr_count + 1, &c->node_of));
  // Count, then place: instructions of a task are adjacent, in order.
  int32_t* next = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, (size_t)plan->task_count + 1, &next));
  for (int32_t i = 0; i < c->order_count; ++i)
    if (c->fate[c->order[i]] == RN_FATE_INSTR) next[c->task[c->order[i]] + 1]++;
  for (int32_t t = 0; t < plan->task_count; ++t) {
    plan->tasks[t].first_instr = next[t];
    plan->tasks[t].instr_count = next[t + 1];
    next[t + 1] += next[t];
  }
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] != RN_FATE_INSTR) continue;
    int32_t number = next[c->task[index]]++;
    c->instr[index] = number;
    c->node_of[number] = index;
  }
  for (int32_t n = 0; n < plan->instr_count; ++n)
    RN_RETURN_IF_ERROR(fill_instr(c, c->node_of[n], n));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&plan->arena, (size_t)plan->async_count + 1, &plan->async_tasks));
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    if (plan->instrs[n].async < 0) continue;
    int32_t task = c->task[c->node_of[n]];
    // Invariant 23: nothing else waits in the task of an asynchronous instruction.
    RN_ASSERT(plan->has_frames || plan->tasks[task].instr_count == 1);
    plan->async_tasks[plan->instrs[n].async] = task;
  }
  return RN_OK;
}

static rn_status_t make_slots(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  size_t count = (size_t)plan->slot_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, count + 1, &plan->slots));
  RN_RETURN_IF_ERROR(rn_alloc_array(plan->allocator, count + 1, sizeof *plan->templates,
                                    (void**)&plan->templates));
  for (int32_t i = 0; i < c->order_count; ++i) {
    const rn_ir_node_t* node = rn_compile_node(c, c->order[i]);
    if (c->fate[c->order[i]] < RN_FATE_VALUE || c->fate[c->order[i]] == RN_FATE_ALIAS) continue;
    for (int32_t o = 0; o < node->output_count; ++o) {
      rn_slot_t* slot = &plan->slots[c->first_slot[c->order[i]] + o];
      *slot = (rn_slot_t){.kind = RN_SLOT_DYNAMIC,
                          .dtype = node->types[o],
                          .feed = -1,
                          .producer = -1,
                          .counter = -1};
    }
    if (node->feed < 0 && !is_lasting(c, node)) continue;
    rn_slot_t* slot = &plan->slots[c->first_slot[c->order[i]]];
    if (node->feed >= 0) {
      slot->kind = RN_SLOT_FEED;
      slot->feed = node->feed;
      plan->feed_slots[node->feed] = c->first_slot[c->order[i]];
    } else {
      slot->kind = RN_SLOT_CONSTANT;
      RN_RETURN_IF_ERROR(rn_tensor_keep(node->constant, c->options->host->allocator,
                                        &plan->templates[c->first_slot[c->order[i]]]));
    }
  }
  for (int32_t i = 0; i < plan->fetch_count; ++i) {
    rn_ir_edge_t fetch = c->ir->fetches[i];
    bool here = fetch.node >= 0 && c->fate[fetch.node] != RN_FATE_ELSEWHERE;
    plan->fetch_slots[i] = here ? rn_compile_slot(c, fetch) : RN_NO_SLOT;
  }
  return RN_OK;
}

static rn_status_t make_arrays(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  size_t n = c->ir->nodes.count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &c->fate));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &c->task));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &c->instr));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &c->first_slot));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, n, &c->is_awaited));
  memset(c->instr, 0xff, n * sizeof *c->instr);
  plan->feed_count = c->ir->feed_count;
  plan->fetch_count = c->ir->fetch_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->feed_count + 1, &plan->feed_slots));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(&plan->arena, (size_t)plan->fetch_count + 1, &plan->fetch_slots));
  memset(plan->feed_slots, 0xff, (size_t)plan->feed_count * sizeof *plan->feed_slots);
  return RN_OK;
}

// Puts moves of feeds to a device first and moves of fetches last: what lies between them can be
// recorded in one piece.
static rn_status_t gather_moves(rn_compile_t* c) {
  int32_t *order = NULL, count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, (size_t)c->order_count + 1, &order));
  for (int pass = 0; pass < 3; ++pass) {
    for (int32_t i = 0; i < c->order_count; ++i) {
      const rn_ir_node_t* node = rn_compile_node(c, c->order[i]);
      bool is_first = node->feed >= 0 || (node->op == rn_op_move(false) && node->input_count == 1 &&
                                          rn_compile_node(c, node->inputs[0].node)->feed >= 0);
      bool is_last = node->op == rn_op_move(true) && !rn_ir_flag(node, "waits");
      if (pass == (is_first ? 0 : is_last ? 2 : 1)) order[count++] = c->order[i];
    }
  }
  c->order = order;
  return RN_OK;
}

static rn_status_t compile(rn_compile_t* c) {
  RN_RETURN_IF_ERROR(make_arrays(c));
  RN_RETURN_IF_ERROR(rn_ir_order(c->ir, &c->order, &c->order_count));
  c->plan->has_frames = needs_frames(c);
  if (!c->options->device->is_host) RN_RETURN_IF_ERROR(gather_moves(c));
  if (!c->options->device->is_host && !c->plan->has_frames) RN_RETURN_IF_ERROR(rn_compile_order(c));
  find_awaited(c);
  RN_RETURN_IF_ERROR(find_fates(c));
  RN_RETURN_IF_ERROR(make_slots(c));
  RN_RETURN_IF_ERROR(rn_compile_tasks(c));
  RN_RETURN_IF_ERROR(emit(c));
  if (c->plan->has_frames) {
    RN_RETURN_IF_ERROR(rn_compile_frames(c));
    return c->options->device->is_host ? RN_OK : rn_compile_segments(c);
  }
  RN_RETURN_IF_ERROR(rn_compile_lifetimes(c));
  RN_RETURN_IF_ERROR(rn_compile_memory(c));
  RN_RETURN_IF_ERROR(rn_compile_releases(c));
  return c->options->device->is_host ? RN_OK : rn_compile_segments(c);
}

static void drop_idle(rn_idle_memory_t* idle, bool is_urgent) {
  rn_plan_t* plan = (rn_plan_t*)((char*)idle - offsetof(rn_plan_t, idle));
  if (is_urgent)
    rn_states_drop(plan);
  else
    rn_states_shrink(plan);
}

rn_status_t rn_plan_create(rn_ir_t* ir, const rn_plan_options_t* options, rn_allocator_t allocator,
                           rn_plan_t** out_plan) {
  *out_plan = NULL;
  rn_plan_t* plan = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &plan));
  plan->allocator = allocator;
  plan->device = options->device;
  plan->host = options->host;
  plan->env = options->env;
  rn_arena_init(&plan->arena, allocator);
  rn_mutex_init(&plan->mutex);
  rn_compile_t c = {.ir = ir, .options = options, .plan = plan, .scratch = &ir->arena};
  rn_strbuf_init(&c.label, plan->allocator);
  rn_status_t status = compile(&c);
  rn_strbuf_clear(&c.label);
  if (!rn_ok(status)) {
    rn_plan_destroy(plan);
    return status;
  }
  if (!plan->device->is_host) {
    plan->idle.drop = drop_idle;
    rn_device_add_idle(plan->device, &plan->idle);
  }
  *out_plan = plan;
  return RN_OK;
}

void rn_plan_destroy(rn_plan_t* plan) {
  if (!plan) return;
  if (plan->idle.drop) rn_device_remove_idle(plan->device, &plan->idle);
  rn_states_drop(plan);
  for (size_t i = 0; i < plan->kernels.count; ++i) rn_kernel_destroy(plan->kernels.items[i]);
  rn_vec_free(&plan->kernels, plan->allocator);
  if (plan->templates) {
    for (int32_t i = 0; i < plan->slot_count; ++i) rn_tensor_clear(&plan->templates[i]);
    RN_FREE_ARRAY(plan->allocator, plan->templates, plan->slot_count + 1);
  }
  rn_arena_clear(&plan->arena);
  rn_mutex_destroy(&plan->mutex);
  RN_FREE(plan->allocator, plan);
}

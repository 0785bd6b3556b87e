// The memory plan: lifetimes of values, and an offset in one block for those whose size is known
// before the step.
//
// Within a task instructions run in a known order, so a value lives from its instruction to the
// last one that reads its bytes, and two values that do not live at the same time may share a
// place. Values that another task reads, that leave the step or that a kernel may keep get a
// reference-counted buffer when they are made.
//
// The inputs of a concatenation of matrices get adjacent places, so that the concatenation has
// nothing to copy.
//
// doc/invariants.md: invariant 22.
#include "exec/compile.h"
#include "exec/pack_memory.h"
#include "framework/internal_ops.h"

static rn_status_t make_tables(rn_compile_t* c) {
  size_t slots = (size_t)c->plan->slot_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &c->producer));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &c->root));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &c->last_reader));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &c->is_fetched));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &c->crosses_tasks));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &c->escapes));
  for (int32_t s = 0; s < c->plan->slot_count; ++s) {
    c->producer[s] = c->last_reader[s] = -1;
    c->root[s] = s;
  }
  return RN_OK;
}

static int32_t task_of(const rn_compile_t* c, int32_t instr) { return c->task[c->node_of[instr]]; }

rn_status_t rn_compile_lifetimes(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  RN_RETURN_IF_ERROR(make_tables(c));
  // A task may come before another whose values it reads, so all producers come first.
  for (int32_t n = 0; n < plan->instr_count; ++n)
    for (int32_t o = 0; o < plan->instrs[n].output_count; ++o)
      c->producer[plan->instrs[n].first_output + o] = n;
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    uint32_t flags = rn_instr_flags(instr);
    for (int32_t i = 0; i < instr->input_count; ++i) {
      int32_t slot = plan->inputs[instr->first_input + i];
      int32_t before = c->last_reader[slot] >= 0 ? c->last_reader[slot] : c->producer[slot];
      if (before >= 0 && task_of(c, before) != task_of(c, n)) c->crosses_tasks[slot] = true;
      if (c->last_reader[slot] != n) plan->slots[slot].readers++;
      c->last_reader[slot] = n;
      if (flags & RN_KERNEL_KEEPS_INPUTS || instr->async >= 0) c->escapes[c->root[slot]] = true;
    }
    for (int32_t o = 0; o < instr->output_count; ++o) {
      int32_t slot = instr->first_output + o;
      if (flags & RN_KERNEL_FORWARDS && o < instr->input_count)
        c->root[slot] = c->root[plan->inputs[instr->first_input + o]];
    }
  }
  for (int32_t i = 0; i < plan->fetch_count; ++i)
    if (plan->fetch_slots[i] != RN_NO_SLOT) c->is_fetched[plan->fetch_slots[i]] = true;
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (c->is_fetched[s] || c->crosses_tasks[s]) c->escapes[c->root[s]] = true;
  return RN_OK;
}

// Bytes of a slot, if it may be planned; else 0.
static size_t planned_size(const rn_compile_t* c, int32_t slot) {
  const rn_plan_t* plan = c->plan;
  if (plan->slots[slot].kind != RN_SLOT_DYNAMIC || c->root[slot] != slot || c->escapes[slot] ||
      c->producer[slot] < 0)
    return 0;
  const rn_instr_t* instr = &plan->instrs[c->producer[slot]];
  // A device's block holds what its own work computes.
  if (!plan->device->is_host &&
      (plan->device->has_handles || !(rn_instr_flags(instr) & RN_KERNEL_ISSUES) ||
       instr->kernel->output_is_host[slot - instr->first_output]))
    return 0;
  if (!instr->compute || instr->async >= 0 || rn_instr_flags(instr) & RN_KERNEL_OWN_OUTPUTS)
    return 0;
  if (slot - instr->first_output >= 64) return 0;
  rn_dtype_t dtype = plan->slots[slot].dtype;
  if (rn_dtype_is_ref(dtype) || !rn_dtype_is_plain(dtype)) return 0;
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[c->producer[slot]]);
  rn_shape_t shape = node->shapes[slot - instr->first_output];
  int64_t count;
  size_t bytes;
  if (!rn_shape_is_full(shape) || !rn_shape_count(shape, &count) || count <= 0 ||
      !rn_mul_ok((size_t)count, rn_dtype_size(dtype), &bytes) || bytes > (size_t)1 << 40)
    return 0;
  return (bytes + RN_ALIGN - 1) & ~(size_t)(RN_ALIGN - 1);
}

// Elements of a slot that is planned.
static int64_t element_count(const rn_compile_t* c, int32_t slot) {
  int32_t producer = c->producer[slot];
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[producer]);
  int64_t count = -1;
  bool ok = rn_shape_count(node->shapes[slot - c->plan->instrs[producer].first_output], &count);
  return ok ? count : -1;
}

typedef struct layout_t {
  size_t* size;  // by slot; 0: not planned
  int32_t*
      dies;  // by root: the instruction after which its bytes are free; -1: as soon as it is made
  int32_t* whole;  // by slot: the value that it is a part of, or itself if it has parts; -1
  size_t* at;      // by part: where in the whole
  int32_t* place;  // by slot: its number in |places|; -1: it has none yet
  int32_t* heir;   // by root: the output that took its place over; -1
  rn_packed_t* places;
  int32_t place_count;
} layout_t;

// Whether |slot| shares place and lifetime with another.
static bool is_part(const layout_t* layout, int32_t slot) {
  return layout->whole[slot] >= 0 && layout->whole[slot] != slot;
}

// Whether |slot| may be a part: a planned value with its own place and no padding behind it.
static bool may_be_part(const rn_compile_t* c, const layout_t* layout, int32_t slot, size_t item) {
  return c->root[slot] == slot && layout->size[slot] && layout->whole[slot] < 0 &&
         (size_t)element_count(c, slot) * item == layout->size[slot];
}

// Places the inputs of |n| inside its output, if all of them allow it.
static void join_parts(const rn_compile_t* c, layout_t* layout, int32_t n) {
  const rn_instr_t* instr = &c->plan->instrs[n];
  const int32_t whole = instr->first_output, count = instr->input_count;
  if (!instr->kernel || instr->kernel->op != rn_op_stack_rows() || !layout->size[whole]) return;
  const int32_t* parts = &c->plan->inputs[instr->first_input];
  const size_t item = rn_dtype_size(c->plan->slots[whole].dtype);
  size_t end = 0;
  int32_t i = 0;
  for (; i < count && may_be_part(c, layout, parts[i], item); ++i) {
    layout->whole[parts[i]] = whole;  // a repeated slot is a part only once
    layout->at[parts[i]] = end;
    end += layout->size[parts[i]];
  }
  bool fits = i == count && end == layout->size[whole];
  for (int32_t k = 0; k < i; ++k) {
    if (!fits) layout->whole[parts[k]] = -1;
    if (fits && layout->dies[parts[k]] > layout->dies[whole])
      layout->dies[whole] = layout->dies[parts[k]];
  }
  if (fits) layout->whole[whole] = whole;
}

// The inputs of |n| that output |o| may overwrite, as bits.
static uint64_t overwritable(const rn_compile_t* c, int32_t n, int32_t o) {
  const rn_instr_t* instr = &c->plan->instrs[n];
  if (!(rn_instr_flags(instr) & RN_KERNEL_IN_PLACE)) return 0;
  if (!instr->kernel->def->overwrites) return o == 0 ? UINT64_MAX : 0;
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
  rn_shape_t shapes[64];
  int32_t count = node->input_count < 64 ? node->input_count : 64;
  for (int32_t i = 0; i < count; ++i)
    shapes[i] = rn_compile_node(c, node->inputs[i].node)->shapes[node->inputs[i].output];
  return instr->kernel->def->overwrites(instr->kernel, o, shapes, count);
}

// An input whose place output |o| of |n| can take over: it dies here and has as many elements of
// the same size, so no element is read after it was overwritten. -1: none.
static int32_t donor(const rn_compile_t* c, const layout_t* layout, int32_t n, int32_t o) {
  const rn_instr_t* instr = &c->plan->instrs[n];
  const int32_t slot = instr->first_output + o;
  const uint64_t allowed = overwritable(c, n, o);
  if (!allowed) return -1;
  size_t item = rn_dtype_size(c->plan->slots[slot].dtype);
  int64_t count = element_count(c, slot);
  for (int32_t i = 0; i < instr->input_count && i < 64; ++i) {
    int32_t root = c->root[c->plan->inputs[instr->first_input + i]];
    if (allowed >> i & 1 && layout->size[root] && layout->dies[root] == n &&
        layout->heir[root] < 0 && !is_part(layout, root) && element_count(c, root) == count &&
        rn_dtype_size(c->plan->slots[root].dtype) == item)
      return root;
  }
  return -1;
}

// A value with a buffer of its own takes the buffer over of one that an elementwise kernel reads
// for the last time, so that one needs a buffer, too. In the block it would exist beside its
// successor: the initial value of a variable would need its memory twice.
static void unplan_donors(rn_compile_t* c, layout_t* layout) {
  for (int32_t n = c->plan->instr_count; n-- > 0;) {
    const rn_instr_t* instr = &c->plan->instrs[n];
    const int32_t slot = instr->first_output;
    if (!instr->output_count || c->root[slot] != slot || !c->escapes[slot]) continue;
    const int32_t from = donor(c, layout, n, 0);
    if (from < 0 || c->plan->slots[from].dtype != c->plan->slots[slot].dtype ||
        (!c->plan->device->is_host && instr->kernel->output_is_host[0]))
      continue;
    c->escapes[from] = true;
    layout->size[from] = 0;
  }
}

static void find_deaths(rn_compile_t* c, layout_t* layout) {
  rn_plan_t* plan = c->plan;
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    layout->size[s] = planned_size(c, s);
    layout->dies[s] = layout->whole[s] = layout->place[s] = layout->heir[s] = -1;
  }
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    int32_t root = c->root[s];
    int32_t last = c->last_reader[s] > c->producer[s] ? c->last_reader[s] : c->producer[s];
    if (last > layout->dies[root]) layout->dies[root] = last;
  }
  unplan_donors(c, layout);
  for (int32_t n = 0; n < plan->instr_count; ++n) join_parts(c, layout, n);
}

// The place of output |o| of |n|: that of its whole, of an input, or a new one.
static int32_t place_of(const rn_compile_t* c, layout_t* layout, int32_t n, int32_t o) {
  const int32_t slot = c->plan->instrs[n].first_output + o, whole = layout->whole[slot];
  const int32_t value = whole >= 0 ? whole : slot;
  if (layout->place[value] >= 0) return layout->place[value];
  const int32_t from = whole >= 0 ? -1 : donor(c, layout, n, o);
  if (from >= 0) {
    layout->heir[from] = slot;
    layout->places[layout->place[from]].last = layout->dies[slot];
    return layout->place[from];
  }
  layout->places[layout->place_count] =
      (rn_packed_t){.size = layout->size[value], .first = n, .last = layout->dies[value]};
  return layout->place[value] = layout->place_count++;
}

static rn_status_t place_outputs(rn_compile_t* c, layout_t* layout, int32_t n) {
  rn_plan_t* plan = c->plan;
  rn_instr_t* instr = &plan->instrs[n];
  for (int32_t o = 0; o < instr->output_count; ++o) {
    int32_t slot = instr->first_output + o;
    if (!layout->size[slot]) continue;
    layout->place[slot] = place_of(c, layout, n, o);
    plan->slots[slot].kind = RN_SLOT_PLANNED;
    instr->planned |= UINT64_C(1) << o;
    const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
    RN_RETURN_IF_ERROR(
        rn_tensor_init(&plan->templates[slot], plan->slots[slot].dtype, node->shapes[o]));
  }
  return RN_OK;
}

// Places what the task makes, behind |*inout_end|. The memory of a device is scarcer than that of
// the host, where a value is best put where another one was just read.
static rn_status_t place_task(rn_compile_t* c, layout_t* layout, const rn_task_t* task,
                              size_t* inout_end) {
  rn_plan_t* plan = c->plan;
  const int32_t end = task->first_instr + task->instr_count;
  size_t size = 0;
  layout->place_count = 0;
  for (int32_t n = task->first_instr; n < end; ++n) RN_RETURN_IF_ERROR(place_outputs(c, layout, n));
  RN_RETURN_IF_ERROR((plan->device->is_host ? rn_pack_in_order : rn_pack_tightly)(
      layout->places, layout->place_count, plan->allocator, &size));
  for (int32_t n = task->first_instr; n < end; ++n) {
    for (int32_t o = 0; o < plan->instrs[n].output_count; ++o) {
      const int32_t slot = plan->instrs[n].first_output + o;
      if (layout->place[slot] < 0) continue;
      plan->slots[slot].offset = *inout_end + layout->places[layout->place[slot]].offset +
                                 (is_part(layout, slot) ? layout->at[slot] : 0);
    }
  }
  return rn_add_ok(*inout_end, size, inout_end)
             ? RN_OK
             : rn_resource_exhausted("The step needs more memory than can be addressed");
}

rn_status_t rn_compile_memory(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  layout_t layout = {0};
  size_t slots = (size_t)plan->slot_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.size));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.dies));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.whole));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.at));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.place));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.heir));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.places));
  find_deaths(c, &layout);
  // Tasks run in parallel, so each has its own section of the block.
  for (int32_t t = 0; t < plan->task_count; ++t)
    RN_RETURN_IF_ERROR(place_task(c, &layout, &plan->tasks[t], &plan->block_size));
  return RN_OK;
}

// A dynamic slot is cleared by its last reader, or by its producer if it has none. Readers in
// several tasks use a counter instead.
rn_status_t rn_compile_releases(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  size_t total = (size_t)plan->input_total + (size_t)plan->slot_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, total, &plan->releases));
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    rn_slot_t* slot = &plan->slots[s];
    if (slot->kind == RN_SLOT_DYNAMIC && c->crosses_tasks[s] && slot->readers > 1 &&
        !c->is_fetched[s])
      slot->counter = plan->counter_count++;
  }
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    rn_instr_t* instr = &plan->instrs[n];
    instr->first_release = plan->release_total;
    for (int32_t i = 0; i < instr->input_count; ++i) {
      int32_t s = plan->inputs[instr->first_input + i];
      const rn_slot_t* slot = &plan->slots[s];
      bool is_counted = slot->counter >= 0;
      bool is_last = c->last_reader[s] == n;
      if (slot->kind != RN_SLOT_DYNAMIC || c->is_fetched[s] || (!is_counted && !is_last)) continue;
      if (!is_counted && i < 64) instr->dying |= UINT64_C(1) << i;
      bool is_repeated = false;
      for (int32_t k = 0; k < i; ++k) is_repeated |= plan->inputs[instr->first_input + k] == s;
      if (!is_repeated) plan->releases[plan->release_total++] = s;
    }
    for (int32_t o = 0; o < instr->output_count; ++o) {
      int32_t s = instr->first_output + o;
      if (plan->slots[s].kind == RN_SLOT_DYNAMIC && c->last_reader[s] < 0 && !c->is_fetched[s])
        plan->releases[plan->release_total++] = s;
    }
    instr->release_count = plan->release_total - instr->first_release;
  }
  return RN_OK;
}

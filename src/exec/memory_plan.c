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

// Free pieces of the block, ordered by offset, never adjacent.
typedef struct memory_plan_piece_t {
  size_t offset, size;
} memory_plan_piece_t;
typedef struct memory_plan_block_t {
  RN_VEC(memory_plan_piece_t) pieces;
  size_t end;
} memory_plan_block_t;

static rn_status_t take(memory_plan_block_t* block, rn_allocator_t allocator, size_t size,
                        size_t* out_offset) {
  RN_ASSERT(size > 0 && size % RN_ALIGN == 0);
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < block->pieces.count; ++i) {
    const memory_plan_piece_t* piece = &block->pieces.items[i];
    if (piece->size >= size && (best == SIZE_MAX || piece->size < block->pieces.items[best].size))
      best = i;
  }
  if (best != SIZE_MAX) {
    memory_plan_piece_t* piece = &block->pieces.items[best];
    *out_offset = piece->offset;
    piece->offset += size;
    piece->size -= size;
    if (piece->size == 0) {
      memmove(piece, piece + 1, (block->pieces.count - best - 1) * sizeof *piece);
      block->pieces.count--;
    }
    return RN_OK;
  }
  *out_offset = block->end;
  if (!rn_add_ok(block->end, size, &block->end))
    return rn_resource_exhausted("The step needs more memory than can be addressed");
  return rn_vec_reserve(&block->pieces, allocator, block->pieces.count + 1);
}

static rn_status_t give(memory_plan_block_t* block, rn_allocator_t allocator, size_t offset,
                        size_t size) {
  size_t at = 0, high = block->pieces.count;
  while (at < high) {
    size_t middle = (at + high) / 2;
    if (block->pieces.items[middle].offset < offset)
      at = middle + 1;
    else
      high = middle;
  }
  memory_plan_piece_t* pieces = block->pieces.items;
  // Invariant 22: a place is given back once, and is not free already.
  RN_ASSERT(size <= block->end && offset <= block->end - size);
  RN_ASSERT(at == 0 || pieces[at - 1].offset + pieces[at - 1].size <= offset);
  RN_ASSERT(at == block->pieces.count || offset + size <= pieces[at].offset);
  bool joins_left = at > 0 && pieces[at - 1].offset + pieces[at - 1].size == offset;
  bool joins_right = at < block->pieces.count && offset + size == pieces[at].offset;
  if (joins_left) {
    pieces[at - 1].size += size;
    if (joins_right) {
      pieces[at - 1].size += pieces[at].size;
      memmove(&pieces[at], &pieces[at + 1], (block->pieces.count - at - 1) * sizeof *pieces);
      block->pieces.count--;
    }
    return RN_OK;
  }
  if (joins_right) {
    pieces[at].offset = offset;
    pieces[at].size += size;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_vec_reserve(&block->pieces, allocator, block->pieces.count + 1));
  pieces = block->pieces.items;
  memmove(&pieces[at + 1], &pieces[at], (block->pieces.count - at) * sizeof *pieces);
  pieces[at] = (memory_plan_piece_t){offset, size};
  block->pieces.count++;
  return RN_OK;
}

typedef struct layout_t {
  size_t* size;  // by slot; 0: not planned
  int32_t*
      dies;  // by root: the instruction after which its bytes are free; -1: as soon as it is made
  int32_t* first_dying;  // by instruction: list of roots that die there
  int32_t* next_dying;   // by root
  int32_t* whole;        // by slot: the value that it is a part of, or itself if it has parts; -1
  size_t* at;            // by part: where in the whole; by whole: its offset, SIZE_MAX: none yet
  memory_plan_block_t block;
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
  if (!fits) return;
  layout->whole[whole] = whole;
  layout->at[whole] = SIZE_MAX;
}

// An input whose place output |slot| of an elementwise kernel can reuse: it dies here and has as
// many elements of the same size, so no element is read after it was overwritten. -1: none.
static int32_t donor(const rn_compile_t* c, const layout_t* layout, int32_t n, int32_t slot) {
  const rn_instr_t* instr = &c->plan->instrs[n];
  if (!(rn_instr_flags(instr) & RN_KERNEL_IN_PLACE) || slot != instr->first_output) return -1;
  size_t item = rn_dtype_size(c->plan->slots[slot].dtype);
  int64_t count = element_count(c, slot);
  for (int32_t i = 0; i < instr->input_count; ++i) {
    int32_t root = c->root[c->plan->inputs[instr->first_input + i]];
    if (layout->size[root] && layout->dies[root] == n && !is_part(layout, root) &&
        element_count(c, root) == count && rn_dtype_size(c->plan->slots[root].dtype) == item)
      return root;
  }
  return -1;
}

// A value with a buffer of its own takes the buffer over of one that an elementwise kernel reads
// for the last time, so that one needs a buffer, too. In the block it would exist beside its
// successor: the initial value of a variable would need its memory twice.
static void unplan_donors(rn_compile_t* c, layout_t* layout) {
  if (!c->plan->device->is_host) return;
  for (int32_t n = c->plan->instr_count; n-- > 0;) {
    const int32_t slot = c->plan->instrs[n].first_output;
    if (!c->plan->instrs[n].output_count || c->root[slot] != slot || !c->escapes[slot]) continue;
    const int32_t from = donor(c, layout, n, slot);
    if (from < 0 || c->plan->slots[from].dtype != c->plan->slots[slot].dtype) continue;
    c->escapes[from] = true;
    layout->size[from] = 0;
  }
}

static rn_status_t find_deaths(rn_compile_t* c, layout_t* layout) {
  rn_plan_t* plan = c->plan;
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    layout->size[s] = planned_size(c, s);
    layout->dies[s] = layout->whole[s] = -1;
  }
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    int32_t root = c->root[s];
    int32_t last = c->last_reader[s] > c->producer[s] ? c->last_reader[s] : c->producer[s];
    if (last > layout->dies[root]) layout->dies[root] = last;
  }
  unplan_donors(c, layout);
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    layout->first_dying[n] = -1;
    join_parts(c, layout, n);
  }
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    if (!layout->size[s] || is_part(layout, s)) continue;
    layout->next_dying[s] = layout->first_dying[layout->dies[s]];
    layout->first_dying[layout->dies[s]] = s;
  }
  return RN_OK;
}

// The place of |slot|, which is a part or has parts; the first of them takes it for all.
static rn_status_t place_in_whole(const rn_compile_t* c, layout_t* layout, int32_t slot) {
  const int32_t whole = layout->whole[slot];
  rn_plan_t* plan = c->plan;
  if (layout->at[whole] == SIZE_MAX)
    RN_RETURN_IF_ERROR(
        take(&layout->block, plan->allocator, layout->size[whole], &layout->at[whole]));
  plan->slots[slot].offset = layout->at[whole] + (slot == whole ? 0 : layout->at[slot]);
  return RN_OK;
}

static rn_status_t place_outputs(rn_compile_t* c, layout_t* layout, int32_t n,
                                 int32_t* out_donated) {
  rn_plan_t* plan = c->plan;
  rn_instr_t* instr = &plan->instrs[n];
  *out_donated = -1;
  for (int32_t o = 0; o < instr->output_count; ++o) {
    int32_t slot = instr->first_output + o;
    if (!layout->size[slot]) continue;
    int32_t from = layout->whole[slot] >= 0 ? -1 : donor(c, layout, n, slot);
    if (layout->whole[slot] >= 0) {
      RN_RETURN_IF_ERROR(place_in_whole(c, layout, slot));
    } else if (from >= 0) {
      plan->slots[slot].offset = plan->slots[from].offset;
      *out_donated = from;
    } else {
      RN_RETURN_IF_ERROR(
          take(&layout->block, plan->allocator, layout->size[slot], &plan->slots[slot].offset));
    }
    plan->slots[slot].kind = RN_SLOT_PLANNED;
    instr->planned |= UINT64_C(1) << o;
    const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
    RN_RETURN_IF_ERROR(
        rn_tensor_init(&plan->templates[slot], plan->slots[slot].dtype, node->shapes[o]));
  }
  return RN_OK;
}

static rn_status_t place_task(rn_compile_t* c, layout_t* layout, const rn_task_t* task) {
  rn_plan_t* plan = c->plan;
  for (int32_t n = task->first_instr; n < task->first_instr + task->instr_count; ++n) {
    int32_t donated;
    RN_RETURN_IF_ERROR(place_outputs(c, layout, n, &donated));
    for (int32_t s = layout->first_dying[n]; s >= 0; s = layout->next_dying[s])
      if (s != donated && plan->slots[s].kind == RN_SLOT_PLANNED)
        RN_RETURN_IF_ERROR(
            give(&layout->block, plan->allocator, plan->slots[s].offset, layout->size[s]));
  }
  return RN_OK;
}

rn_status_t rn_compile_memory(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  layout_t layout = {0};
  size_t slots = (size_t)plan->slot_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.size));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.dies));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.next_dying));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.whole));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, slots, &layout.at));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(c->scratch, (size_t)plan->instr_count + 1, &layout.first_dying));
  RN_RETURN_IF_ERROR(find_deaths(c, &layout));
  // Tasks run in parallel, so each has its own section of the block.
  rn_status_t status = RN_OK;
  for (int32_t t = 0; rn_ok(status) && t < plan->task_count; ++t) {
    layout.block.pieces.count = 0;
    status = place_task(c, &layout, &plan->tasks[t]);
  }
  rn_vec_free(&layout.block.pieces, plan->allocator);
  plan->block_size = layout.block.end;
  return status;
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

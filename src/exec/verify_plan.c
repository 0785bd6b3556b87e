// The verifier of plans: see verify_plan.h.
//
// Runs through the instructions in order and keeps, for each unit of the block, the value that was
// last put there. Putting another one there is an error as long as the first is still to be read.
#include "exec/verify_plan.h"

#include "framework/internal_ops.h"

// Blocks beyond this size are not followed unit by unit.
#define MAX_UNITS ((size_t)1 << 24)

typedef struct verify_plan_verify_t {
  const rn_plan_t* plan;
  rn_arena_t scratch;
  int32_t* root;   // by slot: the slot whose bytes it shows
  int32_t* end;    // by root: the last instruction that needs its bytes
  int32_t* task;   // by instruction
  int32_t* owner;  // by unit of RN_ALIGN bytes: the slot that lies there; -1: none yet
} verify_plan_verify_t;

static rn_str_t name_of(const verify_plan_verify_t* v, int32_t instr) {
  return v->plan->names[v->plan->instrs[instr].node];
}

static bool stacks_rows(const rn_instr_t* instr) {
  return instr->kernel && instr->kernel->op == rn_op_stack_rows();
}

static size_t bytes_of(const verify_plan_verify_t* v, int32_t slot) {
  const rn_tensor_t* like = &v->plan->templates[slot];
  return (size_t)like->count * rn_dtype_size(like->dtype);
}

static bool lies_in(const verify_plan_verify_t* v, int32_t part, int32_t whole) {
  const rn_slot_t *inner = &v->plan->slots[part], *outer = &v->plan->slots[whole];
  return inner->kind == RN_SLOT_PLANNED && outer->kind == RN_SLOT_PLANNED &&
         inner->offset >= outer->offset &&
         inner->offset + bytes_of(v, part) <= outer->offset + bytes_of(v, whole);
}

static rn_status_t find_lifetimes(verify_plan_verify_t* v) {
  const rn_plan_t* plan = v->plan;
  size_t slots = (size_t)plan->slot_count + 1, instrs = (size_t)plan->instr_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->scratch, slots, &v->root));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->scratch, slots, &v->end));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->scratch, instrs, &v->task));
  for (int32_t s = 0; s < plan->slot_count; ++s) v->root[s] = s;
  for (int32_t t = 0; t < plan->task_count; ++t)
    for (int32_t k = 0; k < plan->tasks[t].instr_count; ++k)
      v->task[plan->tasks[t].first_instr + k] = t;
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    for (int32_t o = 0; o < instr->output_count; ++o) {
      bool forwards = rn_instr_flags(instr) & RN_KERNEL_FORWARDS && o < instr->input_count;
      if (forwards)
        v->root[instr->first_output + o] = v->root[plan->inputs[instr->first_input + o]];
      v->end[v->root[instr->first_output + o]] = n;
    }
    for (int32_t i = 0; i < instr->input_count; ++i)
      v->end[v->root[plan->inputs[instr->first_input + i]]] = n;
  }
  // Rows that were stacked where they lay are read, through the parts, as long as any part is.
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    for (int32_t i = 0; stacks_rows(instr) && i < instr->input_count; ++i) {
      int32_t part = v->root[plan->inputs[instr->first_input + i]], whole = instr->first_output;
      if (lies_in(v, part, whole) && v->end[part] > v->end[whole]) v->end[whole] = v->end[part];
    }
  }
  return RN_OK;
}

// Whether output |slot| of instruction |n| may lie where |other| lies, whose bytes |n| still reads.
static bool may_take_over(const verify_plan_verify_t* v, int32_t n, int32_t slot, int32_t other) {
  const rn_plan_t* plan = v->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  for (int32_t i = 0; i < instr->input_count; ++i) {
    if (v->root[plan->inputs[instr->first_input + i]] != other) continue;
    if (stacks_rows(instr)) return lies_in(v, other, slot);
    return rn_instr_flags(instr) & RN_KERNEL_IN_PLACE && v->end[other] == n &&
           plan->slots[slot].offset == plan->slots[other].offset &&
           bytes_of(v, slot) == bytes_of(v, other);
  }
  return false;
}

static rn_status_t check_slot(verify_plan_verify_t* v, int32_t n, int32_t slot) {
  const rn_plan_t* plan = v->plan;
  size_t offset = plan->slots[slot].offset, bytes = bytes_of(v, slot), end;
  if (offset % RN_ALIGN != 0 || !rn_add_ok(offset, bytes, &end) || end > plan->block_size)
    return rn_internal("The plan puts an output of '%.*s' at %zu to %zu of a block of %zu bytes",
                       RN_STR_ARGS(name_of(v, n)), offset, offset + bytes, plan->block_size);
  for (size_t unit = offset / RN_ALIGN; unit * RN_ALIGN < end && v->owner; ++unit) {
    int32_t other = v->owner[unit];
    v->owner[unit] = slot;
    if (other < 0 || other == slot) continue;
    int32_t maker = plan->slots[other].producer;
    bool is_over = v->end[other] < n && v->task[maker] == v->task[n];
    if (!is_over && !may_take_over(v, n, slot, other))
      return rn_internal("The plan puts an output of '%.*s' where one of '%.*s' still lives",
                         RN_STR_ARGS(name_of(v, n)), RN_STR_ARGS(name_of(v, maker)));
  }
  return RN_OK;
}

// What is in the block is read by its own task alone, after it was made.
static rn_status_t check_reads(const verify_plan_verify_t* v, int32_t n) {
  const rn_plan_t* plan = v->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  for (int32_t i = 0; i < instr->input_count; ++i) {
    int32_t root = v->root[plan->inputs[instr->first_input + i]];
    int32_t maker = plan->slots[root].producer;
    if (plan->slots[root].kind != RN_SLOT_PLANNED) continue;
    if (maker >= n || v->task[maker] != v->task[n])
      return rn_internal("The plan lets '%.*s' of another task read what '%.*s' put into the block",
                         RN_STR_ARGS(name_of(v, n)), RN_STR_ARGS(name_of(v, maker)));
  }
  return RN_OK;
}

static rn_status_t verify(verify_plan_verify_t* v) {
  const rn_plan_t* plan = v->plan;
  RN_RETURN_IF_ERROR(find_lifetimes(v));
  size_t units = plan->block_size / RN_ALIGN + 1;
  if (units <= MAX_UNITS) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&v->scratch, units, &v->owner));
    memset(v->owner, 0xff, units * sizeof *v->owner);
  }
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    RN_RETURN_IF_ERROR(check_reads(v, n));
    for (int32_t o = 0; o < instr->output_count; ++o)
      if (plan->slots[instr->first_output + o].kind == RN_SLOT_PLANNED)
        RN_RETURN_IF_ERROR(check_slot(v, n, instr->first_output + o));
  }
  return RN_OK;
}

rn_status_t rn_plan_verify(const rn_plan_t* plan) {
  if (plan->has_frames) return RN_OK;  // every value of an iteration has a place of its own
  verify_plan_verify_t v = {.plan = plan};
  rn_arena_init(&v.scratch, plan->allocator);
  rn_status_t status = verify(&v);
  rn_arena_clear(&v.scratch);
  return status;
}

// States: see state.h.
#include "exec/state.h"

#include "base/assert.h"
#include "exec/frames.h"
#include "exec/record.h"

// The most idle states that a plan keeps; further concurrent steps make and free their own.
#define MAX_FREE_STATES 16
// Many plans, such as those that initialize variables or save them, run once. So a plan's first
// step keeps no block of this size on the host. On a device, where memory that comes and goes falls
// to pieces, it does, until another plan takes such a block for its first step.
#define LARGE_BLOCK ((size_t)16 << 20)

static size_t take(size_t* total, size_t count, size_t size) {
  size_t offset = (*total + RN_ALIGN - 1) & ~(size_t)(RN_ALIGN - 1);
  *total = offset + count * size;
  return offset;
}

static void set_templates(rn_state_t* state) {
  const rn_plan_t* plan = state->plan;
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].kind == RN_SLOT_PLANNED || plan->slots[s].kind == RN_SLOT_CONSTANT)
      state->slots[s] = plan->templates[s];  // borrowed from the plan, which outlives the state
  for (int32_t i = 0; i < plan->input_total; ++i) state->inputs[i] = &state->slots[plan->inputs[i]];
  for (int32_t i = 0; i < plan->deref_total; ++i)
    state->inputs[plan->derefs[i].input] = &state->dereffed[i];
  for (int32_t t = 0; t < plan->task_count; ++t) state->pending[t] = plan->tasks[t].pending;
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].counter >= 0)
      state->counters[plan->slots[s].counter] = plan->slots[s].readers;
}

// Gives the state a block, if its plan has one, and puts the planned values there.
static rn_status_t take_block(rn_state_t* state) {
  const rn_plan_t* plan = state->plan;
  if (!plan->block_size || state->block) return RN_OK;
  if (plan->block_size >= LARGE_BLOCK && !plan->device->is_host)
    rn_device_drop_idle(plan->device, false);
  rn_status_t status = rn_alloc(plan->device->allocator, plan->block_size, (void**)&state->block);
  if (!rn_ok(status)) {  // other plans may keep what this one needs
    rn_status_free(status);
    rn_device_drop_idle(plan->device, true);
    status = rn_alloc(plan->device->allocator, plan->block_size, (void**)&state->block);
  }
  if (!rn_ok(status)) {
    status = rn_status_annotate(status, " (memory of a step: %zu bytes)", plan->block_size);
    return rn_device_explain(plan->device, status);
  }
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].kind == RN_SLOT_PLANNED)
      state->slots[s].data = state->block + plan->slots[s].offset;
  return RN_OK;
}

static void drop_block(rn_state_t* state) {
  if (state->block) rn_free(state->plan->device->allocator, state->block, state->plan->block_size);
  state->block = NULL;
}

static rn_status_t state_create(rn_plan_t* plan, rn_state_t** out) {
  size_t size = sizeof(rn_state_t);
  size_t slots = take(&size, (size_t)plan->slot_count, sizeof(rn_tensor_t));
  size_t dereffed = take(&size, (size_t)plan->deref_total, sizeof(rn_tensor_t));
  size_t asyncs = take(&size, (size_t)plan->async_count, sizeof(rn_async_t));
  size_t inputs = take(&size, (size_t)plan->input_total, sizeof(rn_tensor_t*));
  size_t pending = take(&size, (size_t)plan->task_count, sizeof(int32_t));
  size_t counters = take(&size, (size_t)plan->counter_count, sizeof(int32_t));
  size_t ready = take(&size, (size_t)plan->task_count, sizeof(int32_t));
  size_t recorded = take(&size, (size_t)plan->segment_count, sizeof(rn_recorded_t));
  char* memory = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(plan->allocator, size, (void**)&memory));
  rn_state_t* state = (rn_state_t*)memory;
  *state = (rn_state_t){.plan = plan,
                        .slots = (rn_tensor_t*)(memory + slots),
                        .dereffed = (rn_tensor_t*)(memory + dereffed),
                        .asyncs = (rn_async_t*)(memory + asyncs),
                        .inputs = (rn_tensor_t**)(memory + inputs),
                        .pending = (_Atomic int32_t*)(memory + pending),
                        .counters = (_Atomic int32_t*)(memory + counters),
                        .ready = (int32_t*)(memory + ready),
                        .recorded = (rn_recorded_t*)(memory + recorded),
                        .size = size};
  set_templates(state);
  *out = state;
  return RN_OK;
}

void rn_state_destroy(rn_state_t* state) {
  if (!state) return;
  rn_frames_destroy(state->frames);
  for (int32_t i = 0; i < state->plan->segment_count; ++i)
    rn_recorded_clear(&state->recorded[i], state->plan);
  drop_block(state);
  rn_free(state->plan->allocator, state, state->size);
}

void rn_states_drop(rn_plan_t* plan) {
  rn_mutex_lock(&plan->mutex);
  rn_state_t* state = plan->free_states;
  plan->free_states = NULL;
  plan->free_count = 0;
  rn_mutex_unlock(&plan->mutex);
  while (state) {
    rn_state_t* next = state->next;
    rn_state_destroy(state);
    state = next;
  }
}

void rn_states_shrink(rn_plan_t* plan) {
  rn_mutex_lock(&plan->mutex);
  for (rn_state_t* state = plan->free_states; state && plan->steps < 2; state = state->next)
    if (plan->block_size >= LARGE_BLOCK) drop_block(state);
  rn_mutex_unlock(&plan->mutex);
}

// Invariant 31: nothing of a step is left in its state.
static __attribute__((unused)) bool is_as_new(const rn_state_t* state) {
  const rn_plan_t* plan = state->plan;
  if (plan->has_frames) return true;
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].kind == RN_SLOT_DYNAMIC && rn_tensor_is_set(&state->slots[s])) return false;
  for (int32_t t = 0; t < plan->task_count; ++t)
    if (state->pending[t] != plan->tasks[t].pending) return false;
  return true;
}

rn_status_t rn_state_acquire(rn_plan_t* plan, rn_state_t** out) {
  rn_mutex_lock(&plan->mutex);
  rn_state_t* state = plan->free_states;
  if (state) {
    plan->free_states = state->next;
    plan->free_count--;
  }
  rn_mutex_unlock(&plan->mutex);
  *out = NULL;
  if (!state) RN_RETURN_IF_ERROR(state_create(plan, &state));
  RN_ASSERT(is_as_new(state));
  rn_status_t status = take_block(state);
  if (rn_ok(status))
    *out = state;
  else
    rn_state_destroy(state);
  return status;
}

void rn_state_release(rn_state_t* state) {
  if (!state) return;
  rn_plan_t* plan = state->plan;
  RN_ASSERT(is_as_new(state));
  rn_mutex_lock(&plan->mutex);
  plan->steps += plan->steps < 2;
  bool is_spent = plan->device->is_host && plan->block_size >= LARGE_BLOCK && plan->steps < 2;
  bool kept = plan->free_count < MAX_FREE_STATES;
  if (is_spent) drop_block(state);
  if (kept) {
    state->next = plan->free_states;
    plan->free_states = state;
    plan->free_count++;
  }
  rn_mutex_unlock(&plan->mutex);
  if (!kept) rn_state_destroy(state);
}

bool rn_plan_is_far(const rn_plan_t* plan, const rn_instr_t* instr, int32_t o, rn_dtype_t dtype) {
  if (plan->device->is_host || !instr) return false;
  if (instr->kernel) return !instr->kernel->output_is_host[o];
  return instr->role != RN_ROLE_LOOP_COND && dtype != RN_INT32 && rn_dtype_is_plain(dtype);
}

rn_status_t rn_plan_keep(const rn_plan_t* plan, const rn_instr_t* instr, int32_t o,
                         const rn_tensor_t* value, rn_tensor_t* out) {
  bool is_borrowed = !value->buffer && value->data && !value->is_ref;
  if (!is_borrowed) return rn_tensor_share(value, out);
  return rn_plan_is_far(plan, instr, o, value->dtype)
             ? rn_device_duplicate(plan->device, value, out)
             : rn_tensor_copy(value, plan->host->allocator, out);
}

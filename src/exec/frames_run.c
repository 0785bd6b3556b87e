// Runs instructions in frames: control flow, kernels and asynchronous kernels. See frames.h.
#include <stdatomic.h>

#include "exec/frames_internal.h"
#include "exec/record.h"
#include "exec/trace_device.h"

// Shares input |i|, or the value of the variable that it refers to if a value is needed.
static rn_status_t share_input(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr,
                               int32_t i, rn_tensor_t* out) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_tensor_t* input = rn_frames_input(frames, it, instr, i);
  for (int32_t d = 0; d < instr->deref_count; ++d) {
    const rn_deref_t* deref = &plan->derefs[instr->first_deref + d];
    if (deref->input == instr->first_input + i)
      return rn_variable_read(input, deref->allows_uninitialized, out);
  }
  return rn_tensor_share(input, out);
}

rn_status_t rn_frames_wrong_predicate(const rn_tensor_t* predicate) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_shape_print(&buf, rn_tensor_shape(predicate));
  rn_status_t status =
      rn_invalid_argument("The second input must be a scalar, but it has shape %.*s",
                          RN_STR_ARGS(rn_strbuf_view(&buf)));
  rn_strbuf_clear(&buf);
  return status;
}

// The first live input, and its number if that output is used.
static rn_status_t merge_values(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr,
                                rn_tensor_t* outputs) {
  const rn_plan_t* plan = frames->state->plan;
  int32_t live = 0;
  while (live < instr->input_count && !rn_tensor_is_set(rn_frames_input(frames, it, instr, live)))
    ++live;
  if (live == instr->input_count) return rn_internal("Merge has no live input");
  RN_RETURN_IF_ERROR(share_input(frames, it, instr, live, &outputs[0]));
  if (instr->output_count < 2 || it->readers[instr->local_output + 1] == 0) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(plan->host->allocator, RN_INT32, RN_SHAPE_SCALAR, &outputs[1]));
  *RN_DATA(&outputs[1], int32_t) = live;
  return RN_OK;
}

// A small constant is borrowed, because the plan outlives the step; a reference count would cost
// more than the copy that a later owner makes.
rn_status_t rn_frames_share_constant(const rn_tensor_t* constant, rn_tensor_t* out) {
  if (constant->rank > RN_INLINE_DIMS || rn_tensor_bytes(constant) > 256 ||
      !rn_dtype_is_plain(constant->dtype))
    return rn_tensor_share(constant, out);
  *out = *constant;
  out->buffer = NULL;
  return RN_OK;
}

// Control-flow instructions within an iteration have no kernel: they move values.
static rn_status_t move_values(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr) {
  const rn_plan_t* plan = frames->state->plan;
  rn_tensor_t* outputs = instr->output_count > 0 ? &it->slots[instr->local_output] : NULL;
  switch (instr->role) {
    case RN_ROLE_SWITCH: {
      rn_tensor_t predicate = {0};
      RN_RETURN_IF_ERROR(share_input(frames, it, instr, 1, &predicate));
      bool is_scalar = predicate.dtype == RN_BOOL && predicate.rank == 0;
      bool is_true = is_scalar && *RN_DATA(&predicate, bool);
      rn_status_t status = is_scalar ? RN_OK : rn_frames_wrong_predicate(&predicate);
      rn_tensor_clear(&predicate);
      return rn_ok(status) ? share_input(frames, it, instr, 0, &outputs[is_true]) : status;
    }
    case RN_ROLE_MERGE:
      return merge_values(frames, it, instr, outputs);
    case RN_ROLE_LOOP_COND:
      return share_input(frames, it, instr, 0, &outputs[0]);
    default:  // a constant under a control edge, or a no-op
      if (!outputs || plan->slots[instr->first_output].kind != RN_SLOT_CONSTANT) return RN_OK;
      return rn_frames_share_constant(&plan->templates[instr->first_output], &outputs[0]);
  }
}

// Finds the inputs, and which of them this instruction reads last.
static uint64_t gather_inputs(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr,
                              rn_tensor_t** in) {
  const int32_t* locals = &frames->state->plan->input_locals[instr->first_input];
  uint64_t dying = 0;
  for (int32_t i = 0; i < instr->input_count; ++i) {
    in[i] = &it->slots[locals[i]];
    if (i < 64) dying |= (uint64_t)(it->readers[locals[i]] == 1) << i;
  }
  return dying & instr->dying;
}

static rn_status_t deref_inputs(rn_frames_t* frames, const rn_instr_t* instr, rn_tensor_t** in,
                                rn_tensor_t* dereffed, uint64_t* inout_dying) {
  const rn_plan_t* plan = frames->state->plan;
  for (int32_t d = 0; d < instr->deref_count; ++d) {
    const rn_deref_t* deref = &plan->derefs[instr->first_deref + d];
    int32_t i = deref->input - instr->first_input;
    RN_RETURN_IF_ERROR(rn_variable_read(in[i], deref->allows_uninitialized, &dereffed[d]));
    in[i] = &dereffed[d];
    if (i < 64) *inout_dying &= ~(UINT64_C(1) << i);
  }
  return RN_OK;
}

static void init_context(rn_frames_t* frames, rn_iteration_t* it, int32_t number, bool is_dead,
                         rn_kernel_ctx_t* ctx) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_instr_t* instr = &plan->instrs[number];
  *ctx = (rn_kernel_ctx_t){.kernel = instr->kernel,
                           .state = instr->kernel->state,
                           .out = &it->slots[instr->local_output],
                           .step = frames->state->execution->run->step,
                           .planned = instr->planned,
                           .is_dead = is_dead,
                           .frame = it->frame->id,
                           .iteration = it->index};
  // Outputs with their own memory get their type back, which marks them as set.
  uint64_t planned = instr->planned;
  while (planned) {
    int o = __builtin_ctzll(planned);
    planned &= planned - 1;
    ctx->out[o].dtype = it->frame->def->templates[instr->local_output + o].dtype;
  }
}

// An instruction with many inputs, or with some that are variables to read.
static rn_status_t compute_carefully(rn_frames_t* frames, rn_iteration_t* it,
                                     const rn_instr_t* instr, rn_kernel_ctx_t* ctx) {
  rn_arena_t scratch;
  rn_arena_init(&scratch, frames->allocator);
  rn_tensor_t** in = NULL;
  rn_tensor_t* dereffed = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&scratch, (size_t)instr->input_count, &in);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&scratch, (size_t)instr->deref_count, &dereffed);
  if (rn_ok(status)) {
    ctx->in = in;
    ctx->dying = gather_inputs(frames, it, instr, in);
    status = deref_inputs(frames, instr, in, dereffed, &ctx->dying);
    if (rn_ok(status)) status = instr->compute(ctx);
    for (int32_t d = 0; d < instr->deref_count; ++d) rn_tensor_clear(&dereffed[d]);
  }
  rn_arena_clear(&scratch);
  return status;
}

#define FEW_INPUTS 8

// Notes the variables that an instruction of a recorded step uses.
static __attribute__((noinline)) rn_status_t note_inputs(rn_frames_t* frames, rn_iteration_t* it,
                                                         const rn_instr_t* instr) {
  for (int32_t i = 0; i < instr->input_count; ++i)
    RN_RETURN_IF_ERROR(rn_recorded_note_input(frames->recorded, frames->state->plan, instr,
                                              rn_frames_input(frames, it, instr, i)));
  return RN_OK;
}

static rn_status_t compute(rn_frames_t* frames, rn_iteration_t* it, int32_t number, bool is_dead) {
  rn_execution_t* execution = frames->state->execution;
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  rn_kernel_ctx_t ctx;
  init_context(frames, it, number, is_dead, &ctx);
  frames->work += (rn_instr_flags(instr) & RN_KERNEL_ISSUES) != 0;
  if (__builtin_expect(frames->recorded != NULL, 0))
    RN_RETURN_IF_ERROR(note_inputs(frames, it, instr));
  bool is_traced = execution->run->stats != NULL;
  int64_t start = is_traced ? rn_execution_start_ns(execution) : 0;
  rn_status_t status;
  rn_state_trace_instr(frames->state, number);
  if (__builtin_expect(instr->deref_count == 0 && instr->input_count <= FEW_INPUTS, 1)) {
    rn_tensor_t* in[FEW_INPUTS];
    ctx.in = in;
    ctx.dying = gather_inputs(frames, it, instr, in);
    status = instr->compute(&ctx);
  } else {
    status = compute_carefully(frames, it, instr, &ctx);
  }
  rn_state_trace_done(frames->state, number);
  if (is_traced) rn_execution_record(execution, frames->state->plan, number, ctx.out, start);
  return status;
}

static size_t flight_size(const rn_instr_t* instr) {
  return sizeof(rn_flight_t) + (size_t)instr->input_count * sizeof(rn_tensor_t*) +
         (size_t)instr->deref_count * sizeof(rn_tensor_t) + 16;
}

static void flight_done(rn_kernel_ctx_t* ctx, rn_status_t status) {
  rn_flight_t* flight = (rn_flight_t*)ctx;
  rn_state_t* state = flight->state;
  flight->status = status;
  rn_mutex_lock(&state->execution->mutex);
  flight->next = state->frames->landed;
  state->frames->landed = flight;
  rn_execution_leave_locked(state->execution);
}

static rn_status_t take_off(rn_frames_t* frames, rn_iteration_t* it, int32_t number, bool is_dead) {
  rn_execution_t* execution = frames->state->execution;
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  rn_flight_t* flight = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(frames->allocator, flight_size(instr), (void**)&flight));
  flight->state = frames->state;
  flight->iteration = it;
  flight->instr = number;
  flight->start_ns = rn_execution_start_ns(execution);
  flight->dereffed =
      (rn_tensor_t*)(((uintptr_t)(flight->in + instr->input_count) + 15) & ~(uintptr_t)15);
  init_context(frames, it, number, is_dead, &flight->ctx);
  flight->ctx.done = flight_done;
  flight->ctx.in = flight->in;
  flight->ctx.dying = gather_inputs(frames, it, instr, flight->in);
  rn_status_t status =
      deref_inputs(frames, instr, flight->in, flight->dereffed, &flight->ctx.dying);
  rn_mutex_lock(&execution->mutex);
  execution->active++;
  rn_mutex_unlock(&execution->mutex);
  if (rn_ok(status))
    instr->kernel->def->compute_async(&flight->ctx);
  else
    flight_done(&flight->ctx, status);
  return RN_OK;
}

// Enter, Exit and NextIteration, alive: their value goes to another iteration.
static rn_status_t carry(rn_frames_t* frames, const rn_ready_t* item) {
  const rn_plan_t* plan = frames->state->plan;
  rn_tensor_t value = {0};
  rn_status_t status = share_input(frames, item->iteration, &plan->instrs[item->instr], 0, &value);
  if (rn_ok(status))
    status = rn_frames_finish(frames, item->iteration, item->instr, false, &value);
  else
    status = rn_execution_node_error(plan, item->instr, status);
  rn_tensor_clear(&value);
  return status;
}

static rn_status_t run_one(rn_frames_t* frames, const rn_ready_t* item) {
  const rn_plan_t* plan = frames->state->plan;
  if (item->instr == RN_WHOLE_LOOP) return rn_frames_run_loop(frames, item->iteration);
  const rn_instr_t* instr = &plan->instrs[item->instr];
  rn_status_t status = RN_OK;
  if (!item->is_dead || instr->role == RN_ROLE_SEND) {
    if (instr->async >= 0) {
      status = take_off(frames, item->iteration, item->instr, item->is_dead);
      return rn_ok(status) ? status : rn_execution_node_error(plan, item->instr, status);
    }
    bool is_carried = instr->role == RN_ROLE_ENTER || instr->role == RN_ROLE_EXIT ||
                      instr->role == RN_ROLE_NEXT_ITERATION;
    if (is_carried) return carry(frames, item);
    status = instr->compute ? compute(frames, item->iteration, item->instr, item->is_dead)
                            : move_values(frames, item->iteration, instr);
  }
  if (!rn_ok(status)) return rn_execution_node_error(plan, item->instr, status);
  return rn_frames_finish(frames, item->iteration, item->instr, item->is_dead, NULL);
}

static rn_status_t land(rn_frames_t* frames, rn_flight_t* flight) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_instr_t* instr = &plan->instrs[flight->instr];
  for (int32_t d = 0; d < instr->deref_count; ++d) rn_tensor_clear(&flight->dereffed[d]);
  rn_status_t status = flight->status;
  int32_t number = flight->instr;
  rn_iteration_t* it = flight->iteration;
  rn_execution_record(frames->state->execution, plan, number, flight->ctx.out, flight->start_ns);
  // A value from a dead Send is dead, also for consumers by control edge.
  bool is_dead = flight->ctx.is_dead ||
                 (instr->role == RN_ROLE_RECV && !rn_tensor_is_set(&flight->ctx.out[0]));
  rn_free(frames->allocator, flight, flight_size(instr));
  if (!rn_ok(status)) return rn_execution_node_error(plan, number, status);
  return rn_frames_finish(frames, it, number, is_dead, NULL);
}

static void land_all(rn_frames_t* frames) {
  rn_execution_t* execution = frames->state->execution;
  rn_mutex_lock(&execution->mutex);
  rn_flight_t* landed = frames->landed;
  frames->landed = NULL;
  rn_mutex_unlock(&execution->mutex);
  while (landed) {
    rn_flight_t* next = landed->next;
    rn_execution_fail(execution, land(frames, landed));
    landed = next;
  }
}

// When nothing else is ready: an instruction that waited for the end of its loop. |ready| has room
// for it.
static __attribute__((noinline)) bool take_behind(rn_frames_t* frames) {
  if (frames->behind.count == 0) return false;
  frames->ready.items[frames->ready.count++] = frames->behind.items[--frames->behind.count];
  return true;
}

// Finishes completed kernels and runs ready instructions.
static void run_ready(rn_state_t* state) {
  rn_frames_t* frames = state->frames;
  rn_execution_t* execution = state->execution;
  land_all(frames);
  bool is_watched = execution->run->deadline_ns != 0;
  const rn_cancel_t* cancel = execution->run->step->cancel;
  while (frames->ready.count > 0 || take_behind(frames)) {
    if (__builtin_expect(execution->is_failed || is_watched || rn_is_cancelled(cancel), 0) &&
        rn_execution_should_stop(execution)) {
      frames->ready.count = frames->behind.count = 0;
      return;
    }
    if (__builtin_expect(atomic_load_explicit(&frames->landed, memory_order_relaxed) != NULL, 0))
      land_all(frames);
    rn_ready_t item = frames->ready.items[--frames->ready.count];
    rn_status_t status = run_one(frames, &item);
    if (!rn_ok(status)) rn_execution_fail(execution, status);
  }
}

// The driver. A step that may be recorded has nothing that waits, so it runs in one go.
static void drive(rn_frames_t* frames) {
  rn_state_t* state = frames->state;
  bool may_record = state->plan->segment_count > 0 && !frames->is_begun;
  frames->is_begun = true;
  if (may_record)
    rn_execution_fail(state->execution, rn_whole_step_run(state, run_ready));
  else
    run_ready(state);
}

bool rn_frames_has_work_locked(const rn_state_t* state) {
  return state->frames->ready.count > 0 || state->frames->behind.count > 0 || state->frames->landed;
}

bool rn_frames_drain_locked(rn_state_t* state) {
  rn_frames_t* frames = state->frames;
  rn_execution_t* execution = state->execution;
  if (frames->is_driven || !rn_frames_has_work_locked(state)) return false;
  frames->is_driven = true;
  execution->active++;
  rn_mutex_unlock(&execution->mutex);
  drive(frames);
  rn_mutex_lock(&execution->mutex);
  RN_ASSERT(frames->is_driven && execution->active > 0);  // invariant 33: no other driver
  execution->active--;
  frames->is_driven = false;
  return true;
}

void rn_frames_drop_landed(rn_frames_t* frames) {
  while (frames->landed) {
    rn_flight_t* flight = frames->landed;
    frames->landed = flight->next;
    rn_status_free(land(frames, flight));
  }
}

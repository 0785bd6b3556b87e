// Runs straight loops (rn_straight_loop_t in plan.h): one iteration serves for all, without
// counting what is ready. A loop variable moves from the slot that holds its next value to its own.
//
// The value of a small variable is in the memory of its Enter's output or in that of its
// NextIteration's, by turns: the one of this iteration may still be read while the other is
// written.
#include <stdatomic.h>

#include "exec/frames_internal.h"

// The arrays of an iteration that only straight loops need.
static rn_status_t make_arrays(rn_frames_t* frames, const rn_straight_loop_t* loop,
                               rn_iteration_t* it) {
  if (it->inputs) return RN_OK;
  if (!it->staged)  // else it is left from a step that got no memory for |inputs|
    RN_RETURN_IF_ERROR(rn_alloc_array(frames->allocator, (size_t)loop->var_count + 1,
                                      sizeof *it->staged, (void**)&it->staged));
  rn_status_t status = rn_alloc_array(frames->allocator, (size_t)loop->input_total + 1,
                                      sizeof *it->inputs, (void**)&it->inputs);
  for (int32_t i = 0; rn_ok(status) && i < loop->input_total; ++i)
    it->inputs[i] = &it->slots[loop->inputs[i]];
  return status;
}

void rn_frames_free_loop(rn_frames_t* frames, const rn_frame_def_t* def, rn_iteration_t* it) {
  if (it->inputs) RN_FREE_ARRAY(frames->allocator, it->inputs, def->loop->input_total + 1);
  if (it->staged) RN_FREE_ARRAY(frames->allocator, it->staged, def->loop->var_count + 1);
}

// Before the first iteration: what stays the same in all of them, and the variables.
static rn_status_t begin(rn_frames_t* frames, const rn_straight_loop_t* loop, rn_iteration_t* it) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_frame_t* frame = it->frame;
  RN_RETURN_IF_ERROR(make_arrays(frames, loop, it));
  for (size_t i = 0; i < frame->invariants.count; ++i) {
    const rn_frame_held_t* held = &frame->invariants.items[i];
    int32_t local = plan->instrs[held->instr].local_output;
    rn_frames_clear_slot(it, local);
    RN_RETURN_IF_ERROR(rn_tensor_share(&held->value, &it->slots[local]));
  }
  for (int32_t i = 0; i < loop->constant_count; ++i) {
    const rn_instr_t* instr = &plan->instrs[loop->constants[i]];
    RN_RETURN_IF_ERROR(rn_frames_share_constant(&plan->templates[instr->first_output],
                                                &it->slots[instr->local_output]));
  }
  for (int32_t v = 0; v < loop->var_count; ++v) {
    int32_t local = plan->instrs[loop->vars[v].enter].local_output;
    it->slots[loop->vars[v].slot] = it->slots[local];
    it->slots[local] = (rn_tensor_t){0};
    rn_frames_reset_slot(it, local);
  }
  return RN_OK;
}

static inline rn_status_t run_step(rn_frames_t* frames, rn_iteration_t* it,
                                   const rn_straight_loop_t* loop, const rn_loop_step_t* step,
                                   rn_kernel_ctx_t* ctx) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_instr_t* instr = &plan->instrs[step->instr];
  ctx->kernel = instr->kernel;
  ctx->state = instr->kernel->state;
  ctx->in = it->inputs + step->first_input;
  ctx->out = &it->slots[instr->local_output];
  ctx->dying = step->dying;
  ctx->planned = instr->planned;
  // Outputs with their own memory get their type back, which marks them as set.
  for (uint64_t planned = instr->planned; planned; planned &= planned - 1) {
    int o = __builtin_ctzll(planned);
    ctx->out[o].dtype = it->frame->def->templates[instr->local_output + o].dtype;
  }
  rn_status_t status = instr->compute(ctx);
  if (__builtin_expect(!rn_ok(status), 0))
    return rn_execution_node_error(plan, step->instr, status);
  const int32_t* release = loop->releases + step->first_release;
  for (const int32_t* end = release + step->release_count; release < end; ++release)
    rn_frames_clear_slot(it, *release);
  return RN_OK;
}

// Takes the next value of variable |v| out of its slot, or shares it. Bytes in the iteration's own
// memory, or borrowed, are copied.
static rn_status_t stage(rn_frames_t* frames, rn_iteration_t* it, const rn_loop_var_t* var,
                         rn_tensor_t* out) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_frame_def_t* def = it->frame->def;
  rn_tensor_t* value = &it->slots[var->source];
  if (value->buffer || value->is_ref) {
    if (!var->is_last) return rn_tensor_share(value, out);
    *out = *value;
    *value = (rn_tensor_t){0};
    rn_frames_clear_slot(it, var->source);  // points it at its own memory again
    return RN_OK;
  }
  int32_t place = plan->instrs[var->next].local_output;
  const rn_tensor_t* like = &def->templates[place];
  if (def->offsets[place] == SIZE_MAX || like->dtype != value->dtype ||
      like->count != value->count || !rn_tensor_same_shape(like, value))
    return rn_plan_keep(plan, &plan->instrs[var->next], 0, value, out);
  int32_t other = plan->instrs[var->enter].local_output;
  char* memory = it->memory + def->offsets[place];
  if (it->slots[var->slot].data == memory && def->offsets[other] != SIZE_MAX &&
      rn_tensor_same_shape(like, &def->templates[other]))
    memory = it->memory + def->offsets[other];
  else if (it->slots[var->slot].data == memory)
    return rn_plan_keep(plan, &plan->instrs[var->next], 0, value, out);
  *out = *like;
  out->data = memory;
  memcpy(memory, value->data, rn_tensor_bytes(value));
  return RN_OK;
}

// The end of an iteration that is not the last one.
static rn_status_t advance(rn_frames_t* frames, rn_iteration_t* it,
                           const rn_straight_loop_t* loop) {
  rn_status_t status = RN_OK;
  int32_t count = 0;
  for (; rn_ok(status) && count < loop->var_count; ++count) {
    it->staged[count] = (rn_tensor_t){0};
    status = stage(frames, it, &loop->vars[count], &it->staged[count]);
  }
  for (int32_t v = 0; v < count; ++v) {
    rn_frames_clear_slot(it, loop->vars[v].slot);
    it->slots[loop->vars[v].slot] = it->staged[v];
  }
  for (int32_t i = 0; i < loop->late_count; ++i) rn_frames_clear_slot(it, loop->late[i]);
  it->index++;
  return status;
}

// The values leave the loop, which ends.
static rn_status_t leave(rn_frames_t* frames, rn_iteration_t* it, const rn_straight_loop_t* loop) {
  for (int32_t e = 0; e < loop->exit_count; ++e) {
    rn_tensor_t value = {0};
    rn_status_t status = rn_tensor_share(&it->slots[loop->exit_sources[e]], &value);
    if (rn_ok(status)) status = rn_frames_propagate(frames, it, loop->exits[e], false, &value);
    rn_tensor_clear(&value);
    RN_RETURN_IF_ERROR(status);
  }
  return rn_frames_count_off(frames, it);
}

static rn_status_t find_condition(const rn_frames_t* frames, const rn_iteration_t* it,
                                  const rn_straight_loop_t* loop, bool* out) {
  const rn_tensor_t* condition = &it->slots[loop->condition];
  if (condition->dtype != RN_BOOL || condition->rank != 0)
    return rn_execution_node_error(frames->state->plan, loop->fork,
                                   rn_frames_wrong_predicate(condition));
  *out = *RN_DATA(condition, bool);
  return RN_OK;
}

// Whether the step should stop; as drive() of frames_run.c.
static inline bool should_stop(rn_execution_t* execution) {
  bool may = execution->is_failed || execution->run->deadline_ns != 0 ||
             rn_is_cancelled(execution->run->step->cancel);
  return __builtin_expect(may, 0) && rn_execution_should_stop(execution);
}

rn_status_t rn_frames_run_loop(rn_frames_t* frames, rn_iteration_t* it) {
  rn_execution_t* execution = frames->state->execution;
  const rn_straight_loop_t* loop = it->frame->def->loop;
  rn_kernel_ctx_t ctx = {.step = execution->run->step, .frame = it->frame->id};
  if (!it->is_begun) {
    it->is_begun = true;
    RN_RETURN_IF_ERROR(begin(frames, loop, it));
  }
  for (;;) {
    ctx.iteration = it->index;
    bool goes_on = false;
    for (int32_t k = 0; k < loop->step_count; ++k) {
      if (k == loop->condition_count) break;
      if (should_stop(execution)) return RN_OK;
      RN_RETURN_IF_ERROR(run_step(frames, it, loop, &loop->steps[k], &ctx));
    }
    RN_RETURN_IF_ERROR(find_condition(frames, it, loop, &goes_on));
    if (!goes_on) return leave(frames, it, loop);
    for (int32_t k = loop->condition_count; k < loop->step_count; ++k) {
      if (should_stop(execution)) return RN_OK;
      RN_RETURN_IF_ERROR(run_step(frames, it, loop, &loop->steps[k], &ctx));
    }
    RN_RETURN_IF_ERROR(advance(frames, it, loop));
    if (should_stop(execution)) return RN_OK;
    // Asynchronous kernels elsewhere have completed: what waits for them comes first.
    if (__builtin_expect(atomic_load_explicit(&frames->landed, memory_order_relaxed) != NULL, 0))
      return rn_vec_push(&frames->ready, frames->allocator,
                         ((rn_ready_t){it, RN_WHOLE_LOOP, false}));
  }
}

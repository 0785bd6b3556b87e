// Recorded steps of plans with loops and conditionals: see record.h.
#include "exec/frames_internal.h"
#include "exec/record.h"

// A step that issues more is not recorded: every piece of work takes memory as long as the
// recording lives.
#define MOST_WORK 32768
// Larger feeds and fetches are faster without the copy that a recording makes of them.
#define MOST_COPIED ((size_t)4 << 20)
// Recordings that a state keeps, for as many numbers of turns or decisions that take turns.
#define MOST_RECORDINGS 4
// Larger arguments and results on the device are not copied.
#define MOST_STAGED ((size_t)64 << 20)
// Comparing larger feeds would take as long as the step.
#define MOST_COMPARED ((size_t)64 << 10)

// Whether a move brings a feed to the device, or something that the host computes, or gives the
// client a value.
static bool may_move(const rn_compile_t* c, int32_t n) {
  const rn_plan_t* plan = c->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
  if (rn_instr_is_move(instr, false))
    return rn_ir_flag(node, "waits") ||
           (instr->frame == 0 &&
            plan->slots[plan->inputs[instr->first_input]].kind == RN_SLOT_FEED);
  return !rn_ir_flag(node, "waits") && instr->frame == 0 && c->is_fetched[instr->first_output];
}

// Whether the client gets an output that is in the device's memory and that cannot be copied.
static bool is_fetched_there(const rn_compile_t* c, const rn_instr_t* instr) {
  for (int32_t o = 0; o < instr->output_count; ++o) {
    rn_dtype_t dtype = c->plan->slots[instr->first_output + o].dtype;
    if (c->is_fetched[instr->first_output + o] && rn_plan_is_far(c->plan, instr, o, dtype) &&
        (!rn_dtype_is_plain(dtype) || rn_dtype_is_ref(dtype)))
      return true;
  }
  return false;
}

static bool takes_references(const rn_compile_t* c, const rn_instr_t* instr) {
  const rn_plan_t* plan = c->plan;
  for (int32_t i = 0; i < instr->input_count; ++i)
    if (rn_dtype_is_ref(plan->slots[plan->inputs[instr->first_input + i]].dtype)) return true;
  return false;
}

static bool may_record(const rn_compile_t* c, int32_t n) {
  const rn_instr_t* instr = &c->plan->instrs[n];
  if (instr->async >= 0 || instr->has_loop_fetch || is_fetched_there(c, instr)) return false;
  if (!instr->kernel) return true;  // control flow, a constant or a no-op
  if (rn_instr_is_move(instr, false) || rn_instr_is_move(instr, true)) return may_move(c, n);
  uint32_t flags = rn_instr_flags(instr);
  if ((flags & RN_KERNEL_REPLAYS) == RN_KERNEL_REPLAYS) return true;
  return flags & RN_KERNEL_REPEATS && !takes_references(c, instr);
}

// Whether input |i| of |instr| is in the memory of the device. Control flow has no kernels; the
// executor itself reads predicates and int32 values.
static bool takes_far(const rn_plan_t* plan, const rn_instr_t* instr, int32_t i) {
  rn_dtype_t dtype = plan->slots[plan->inputs[instr->first_input + i]].dtype;
  if (instr->kernel) return !instr->kernel->input_is_host[i] && dtype != RN_RESOURCE;
  bool is_predicate = instr->role == RN_ROLE_LOOP_COND || (instr->role == RN_ROLE_SWITCH && i == 1);
  return !is_predicate && dtype != RN_INT32 && rn_dtype_is_plain(dtype);
}

// How a feed is used.
enum {
  FEED_MOVES,   // only moves read it
  FEED_GUARDS,  // the host reads it: its value decides what the step does
  FEED_IS_FAR,  // it is an argument in the memory of the device
};

// Finds how a feed is used. False if it is used in several ways, or is nothing that can be compared
// or copied.
static bool may_feed(const rn_plan_t* plan, int32_t slot, uint8_t* out_use) {
  bool is_guard = false, is_far = false;
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    for (int32_t i = 0; i < instr->input_count; ++i) {
      if (plan->inputs[instr->first_input + i] != slot) continue;
      is_far |= takes_far(plan, instr, i);
      is_guard |= !takes_far(plan, instr, i) && !rn_instr_is_move(instr, false);
    }
  }
  rn_dtype_t dtype = plan->slots[slot].dtype;
  *out_use = is_far ? FEED_IS_FAR : is_guard ? FEED_GUARDS : FEED_MOVES;
  if (dtype == RN_RESOURCE) return !is_far;
  return rn_dtype_is_plain(dtype) && !rn_dtype_is_ref(dtype) && !(is_far && is_guard);
}

// Whether something may keep an argument as the value of a variable.
static bool assigns(const rn_plan_t* plan) {
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    uint32_t flags = rn_instr_flags(&plan->instrs[n]);
    if (flags & RN_KERNEL_KEEPS_INPUTS && !(flags & RN_KERNEL_REPEATS)) return true;
  }
  return false;
}

rn_status_t rn_compile_whole_step(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  for (int32_t n = 0; n < plan->instr_count; ++n)
    if (!may_record(c, n)) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, MOST_RECORDINGS, &plan->segments));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->feed_count + 1, &plan->feed_uses));
  for (int32_t i = 0; i < plan->feed_count; ++i) {
    if (plan->feed_slots[i] == RN_NO_SLOT) continue;
    if (!may_feed(plan, plan->feed_slots[i], &plan->feed_uses[i])) return RN_OK;
    if (plan->feed_uses[i] == FEED_IS_FAR && assigns(plan)) return RN_OK;
  }
  plan->segment_count = MOST_RECORDINGS;
  for (int32_t s = 0; s < MOST_RECORDINGS; ++s)
    plan->segments[s] = (rn_segment_t){0, plan->instr_count};
  return RN_OK;
}

// Whether the feed's resource, if it is one, is a variable: what other containers hold does not
// follow from the step.
static bool is_plain_or_variable(const rn_plan_t* plan, const rn_tensor_t* value) {
  rn_resource_t* resource = NULL;
  if (value->dtype != RN_RESOURCE) return true;
  rn_status_t status =
      rn_handle_resource(value, plan->device->resources, RN_VARIABLE_TYPE, &resource);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok;
}

static rn_status_t note_feed(rn_plan_t* plan, rn_recorded_t* recorded, int32_t slot, uint8_t use,
                             const rn_tensor_t* value) {
  static const size_t most[] = {
      [FEED_MOVES] = MOST_COPIED, [FEED_GUARDS] = MOST_COMPARED, [FEED_IS_FAR] = MOST_STAGED};
  rn_recorded_slot_t noted = {.slot = slot,
                              .kind = use == FEED_GUARDS   ? RN_RECORDED_GUARD
                                      : use == FEED_IS_FAR ? RN_RECORDED_ARGUMENT
                                                           : RN_RECORDED_FEED};
  recorded->may_record &= rn_tensor_bytes(value) <= most[use] && is_plain_or_variable(plan, value);
  if (!recorded->may_record) return RN_OK;
  RN_RETURN_IF_ERROR(use == FEED_GUARDS
                         ? rn_tensor_copy(value, plan->host->allocator, &noted.kept)
                         : rn_tensor_init(&noted.kept, value->dtype, rn_tensor_shape(value)));
  return rn_recorded_add(recorded, plan, noted);
}

// Notes the feeds of this step, and whether they are small enough for a recording.
static rn_status_t note_feeds(rn_state_t* state, rn_recorded_t* recorded) {
  rn_plan_t* plan = state->plan;
  recorded->may_record = true;
  for (int32_t i = 0; recorded->may_record && i < plan->feed_count; ++i) {
    int32_t slot = plan->feed_slots[i];
    if (slot == RN_NO_SLOT) continue;
    RN_RETURN_IF_ERROR(
        note_feed(plan, recorded, slot, plan->feed_uses[i], rn_frames_value(state, slot)));
  }
  return RN_OK;
}

// Gives the arguments places, copies them there, and lets the step read them there.
static rn_status_t stage_arguments(rn_state_t* state, rn_recorded_t* recorded) {
  rn_plan_t* plan = state->plan;
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    rn_recorded_slot_t* noted = &recorded->slots.items[i];
    if (noted->kind != RN_RECORDED_ARGUMENT) continue;
    const rn_tensor_t* value = rn_frames_value(state, noted->slot);
    rn_tensor_clear(&noted->kept);
    RN_RETURN_IF_ERROR(rn_tensor_create(plan->device->allocator, value->dtype,
                                        rn_tensor_shape(value), &noted->kept));
  }
  RN_RETURN_IF_ERROR(rn_recorded_stage(state, recorded));
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    rn_recorded_slot_t* noted = &recorded->slots.items[i];
    if (noted->kind != RN_RECORDED_ARGUMENT) continue;
    rn_tensor_t* value = rn_frames_value(state, noted->slot);
    rn_tensor_clear(value);
    RN_RETURN_IF_ERROR(rn_tensor_share(&noted->kept, value));
  }
  return RN_OK;
}

// Whether a step whose fetches have arrived is small enough for a recording.
static bool is_small(rn_state_t* state) {
  const rn_plan_t* plan = state->plan;
  for (int32_t i = 0; i < plan->fetch_count; ++i) {
    int32_t slot = plan->fetch_slots[i];
    if (slot == RN_NO_SLOT) continue;
    const rn_tensor_t* value = rn_frames_value(state, slot);
    int32_t producer = plan->slots[slot].producer;
    const rn_instr_t* instr = producer < 0 ? NULL : &plan->instrs[producer];
    bool is_far = instr && rn_plan_is_far(plan, instr, slot - instr->first_output, value->dtype);
    if (!value->is_ref && rn_dtype_is_plain(value->dtype) &&
        rn_tensor_bytes(value) > (is_far ? MOST_STAGED : MOST_COPIED))
      return false;
  }
  return state->frames->work <= MOST_WORK;
}

// Whether fetch |i| is made by an instruction of the plan, and is not one of an earlier number;
// |*out_far|: in the memory of the device.
static bool is_kept(const rn_plan_t* plan, int32_t i, bool* out_far) {
  int32_t slot = plan->fetch_slots[i];
  bool is_repeated = false;
  for (int32_t k = 0; k < i; ++k) is_repeated |= plan->fetch_slots[k] == slot;
  if (slot == RN_NO_SLOT || is_repeated || plan->slots[slot].producer < 0) return false;
  const rn_instr_t* instr = &plan->instrs[plan->slots[slot].producer];
  *out_far = rn_plan_is_far(plan, instr, slot - instr->first_output, plan->slots[slot].dtype);
  return true;
}

// Adds copies of the results on the device to the recording: the memory that they are in is that of
// all recordings.
static rn_status_t record_results(rn_state_t* state, rn_recorded_t* recorded) {
  rn_plan_t* plan = state->plan;
  bool is_far;
  for (int32_t i = 0; i < plan->fetch_count; ++i) {
    if (!is_kept(plan, i, &is_far) || !is_far) continue;
    rn_tensor_t* value = rn_frames_value(state, plan->fetch_slots[i]);
    if (!rn_tensor_is_set(value)) return rn_invalid_argument("Retval[%d] does not have value", i);
    rn_recorded_slot_t kept = {.slot = plan->fetch_slots[i], .kind = RN_RECORDED_RESULT};
    RN_RETURN_IF_ERROR(rn_tensor_create(plan->device->allocator, value->dtype,
                                        rn_tensor_shape(value), &kept.kept));
    rn_status_t status = rn_device_copy(plan->device, value, &kept.kept);
    rn_tensor_clear(value);
    RN_RETURN_IF_ERROR(rn_status_join(status, rn_recorded_add(recorded, plan, kept)));
  }
  return RN_OK;
}

static rn_status_t keep_outputs(rn_state_t* state, rn_recorded_t* recorded) {
  const rn_plan_t* plan = state->plan;
  bool is_far;
  for (int32_t i = 0; i < plan->fetch_count; ++i) {
    if (!is_kept(plan, i, &is_far) || is_far) continue;
    if (!rn_tensor_is_set(rn_frames_value(state, plan->fetch_slots[i])))
      return rn_invalid_argument("Retval[%d] does not have value", i);
    RN_RETURN_IF_ERROR(rn_recorded_keep_output(recorded, state, plan->fetch_slots[i]));
  }
  return RN_OK;
}

// An error of the step as a whole names its first node.
static rn_status_t name_error(const rn_state_t* state, rn_status_t status) {
  return rn_ok(status) ? status : rn_execution_node_error(state->plan, 0, status);
}

// Runs the step once more, with its work recorded. What its containers hold goes with the step, and
// must be given back to the recording before that ends.
static rn_status_t record(rn_state_t* state, rn_recorded_t* recorded, rn_run_ready_t run) {
  rn_device_t* device = state->plan->device;
  rn_execution_t* execution = state->execution;
  RN_RETURN_IF_ERROR(name_error(state, stage_arguments(state, recorded)));
  RN_RETURN_IF_ERROR(name_error(state, device->vtable->record_begin(device)));
  state->frames->recorded = recorded;
  run(state);
  state->frames->recorded = NULL;
  rn_status_t status = execution->is_failed ? RN_OK : record_results(state, recorded);
  rn_resources_t* held = execution->run->step->step_resources;
  if (held) rn_resources_clear(held, RN_STR(""));
  rn_status_t ended = device->vtable->record_end(device, &recorded->recording);
  status = rn_status_join(status, name_error(state, ended));
  if (execution->is_failed) {  // stopped on the way, so that some work is missing
    rn_recorded_forget(recorded, state->plan);
    return status;
  }
  if (rn_ok(status)) status = keep_outputs(state, recorded);
  if (rn_ok(status) && recorded->recording)
    status = name_error(state, rn_recorded_issue(state, recorded));
  if (rn_ok(status) && recorded->recording) status = rn_recorded_give_results(state, recorded);
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) recorded->runs = RN_MOST_RUNS;
  if (!rn_ok(status)) rn_recorded_forget(recorded, state->plan);
  recorded->is_spent = rn_recorded_has_moved_variables(recorded);
  return status;
}

// Runs the step as it is and notes whether the next one may be recorded.
static rn_status_t run_and_note(rn_state_t* state, rn_recorded_t* recorded, rn_run_ready_t run) {
  rn_recorded_forget(recorded, state->plan);
  rn_status_t status = recorded->runs < RN_MOST_RUNS ? note_feeds(state, recorded) : RN_OK;
  if (rn_ok(status)) run(state);
  bool is_failed = !rn_ok(status) || state->execution->is_failed;
  if (is_failed || !is_small(state)) rn_recorded_forget(recorded, state->plan);
  return status;
}

// Whether steps like this one can be recorded at all: it may have to stop on the way, or its
// containers may be those of other plans, too.
static bool is_whole(const rn_run_t* run) {
  return run->plan_count == 1 && !run->deadline_ns && !run->stats;
}

// The recording, or the notes for one, that the feeds fit; else what was not used for the longest
// time.
static rn_recorded_t* choose(rn_state_t* state, bool* out_known) {
  rn_recorded_t *all = state->recorded, *chosen = &all[0];
  *out_known = false;
  for (int32_t i = 0; i < state->plan->segment_count; ++i) {
    ++all[i].age;
    if (!*out_known && all[i].age > chosen->age) chosen = &all[i];
    if (*out_known || !all[i].may_record || !rn_recorded_takes(&all[i], state)) continue;
    chosen = &all[i];
    *out_known = true;
  }
  chosen->age = 0;
  return chosen;
}

rn_status_t rn_whole_step_run(rn_state_t* state, rn_run_ready_t run) {
  if (!is_whole(state->execution->run)) {
    run(state);
    return RN_OK;
  }
  bool is_known = false;
  rn_recorded_t* recorded = choose(state, &is_known);
  if (is_known && recorded->recording && rn_recorded_fits(recorded, state)) {
    rn_status_t status = rn_recorded_replay(state, recorded);
    if (rn_status_code(status) != RN_CODE_ABORTED) {
      state->frames->ready.count = 0;
      return status;
    }
    rn_status_free(status);
  }
  recorded->runs += recorded->runs < RN_MOST_RUNS;
  if (!is_known || recorded->runs == RN_MOST_RUNS) return run_and_note(state, recorded, run);
  rn_recorded_forget(recorded, state->plan);
  RN_RETURN_IF_ERROR(note_feeds(state, recorded));
  return record(state, recorded, run);
}

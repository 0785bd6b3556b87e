// Recorded segments: see record.h.
#include "exec/record.h"

#include "exec/recorded.h"

// Launching the work of fewer instructions one by one costs no more than replaying it. A step of
// one instruction is recorded all the same: waiting for a replay is quicker than for an event.
#define LEAST_INSTRS 2
// Feeds and fetches up to this size are recorded, and copied once more on the host for that.
#define MOST_COPIED ((size_t)64 << 10)
// Arguments on the device up to this size are copied to where recorded work reads them: they are
// elsewhere in every call of a function.
#define MOST_STAGED ((size_t)16 << 20)

// Whether instruction |n| moves a small value between the client and the device, or a constant to
// the device.
static bool may_copy(const rn_compile_t* c, int32_t n) {
  const rn_plan_t* plan = c->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  const bool to_host = rn_instr_is_move(instr, true);
  if (!to_host && !rn_instr_is_move(instr, false)) return false;
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
  const rn_slot_t *in = &plan->slots[plan->inputs[instr->first_input]],
                  *out = &plan->slots[instr->first_output];
  const bool is_port = to_host ? !rn_ir_flag(node, "waits") && c->is_fetched[instr->first_output] &&
                                     out->kind == RN_SLOT_DYNAMIC
                               : (in->kind == RN_SLOT_FEED || in->kind == RN_SLOT_CONSTANT) &&
                                     out->kind == RN_SLOT_PLANNED;
  int64_t count;
  return is_port && rn_shape_is_full(node->shapes[0]) && rn_shape_count(node->shapes[0], &count) &&
         count > 0 && (size_t)count <= MOST_COPIED / rn_dtype_size(out->dtype);
}

// Whether a host argument has the same value in every step: a constant, or the handle of a
// variable.
static bool is_fixed(const rn_plan_t* plan, int32_t slot) {
  if (plan->slots[slot].kind == RN_SLOT_CONSTANT) return true;
  int32_t producer = plan->slots[slot].producer;
  return plan->slots[slot].dtype == RN_RESOURCE && producer >= 0 &&
         rn_instr_flags(&plan->instrs[producer]) & RN_KERNEL_OWN_OUTPUTS;
}

// Whether all readers of the outputs of |instr|, and of what shares their bytes, lie before |end|
// in its task.
static bool is_read_before(const rn_compile_t* c, const rn_instr_t* instr, int32_t end) {
  const rn_plan_t* plan = c->plan;
  for (int32_t o = 0; o < instr->output_count; ++o)
    if (c->last_reader[instr->first_output + o] >= end) return false;
  // Sharers are outputs of later instructions.
  int32_t last = instr->first_output + instr->output_count;
  for (int32_t slot = instr->first_output; slot < plan->slot_count; ++slot) {
    int32_t root = c->root[slot];
    if (root < instr->first_output || root >= last) continue;
    if (c->last_reader[slot] >= end || c->crosses_tasks[slot] || c->is_fetched[slot]) return false;
  }
  return true;
}

// Whether the shape of an output is known, and whether it needs a place in memory then.
static bool is_known(const rn_compile_t* c, int32_t n, int32_t output, bool* out_needs_place) {
  rn_shape_t shape = rn_compile_node(c, c->node_of[n])->shapes[output];
  int64_t count = 0;
  bool is_full = rn_shape_is_full(shape) && rn_shape_count(shape, &count);
  *out_needs_place = is_full && count > 0;
  return is_full;
}

// Whether an output gets memory in every step: somebody may keep it. Such a value may not leave the
// segment, which has other memory for it.
static bool is_loose(const rn_compile_t* c, int32_t n, int32_t output) {
  const rn_plan_t* plan = c->plan;
  const rn_slot_t* slot = &plan->slots[plan->instrs[n].first_output + output];
  bool needs_place = false;
  return slot->kind != RN_SLOT_PLANNED && !rn_dtype_is_ref(slot->dtype) &&
         is_known(c, n, output, &needs_place) && needs_place;
}

// Whether |n| hands out what it holds, or has an output that is loose.
static bool must_end_inside(const rn_compile_t* c, int32_t n) {
  const rn_instr_t* instr = &c->plan->instrs[n];
  uint32_t flags = rn_instr_flags(instr);
  bool is_loose_one = false;
  for (int32_t o = 0; !(flags & RN_KERNEL_FORWARDS) && o < instr->output_count; ++o)
    is_loose_one |= is_loose(c, n, o);
  return flags & RN_KERNEL_OWN_OUTPUTS || (is_loose_one && instr->kernel && !may_copy(c, n));
}

static bool may_record(const rn_compile_t* c, int32_t n) {
  const rn_plan_t* plan = c->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  if (!instr->kernel) return !instr->compute;  // a no-op
  if (!instr->compute || instr->async >= 0) return false;
  if (plan->device->vtable->feed && plan->device->vtable->fetch && may_copy(c, n)) return true;
  uint32_t flags = rn_instr_flags(instr);
  if ((flags & RN_KERNEL_REPLAYS) != RN_KERNEL_REPLAYS) return false;
  for (int32_t i = 0; i < instr->input_count; ++i)
    if (instr->kernel->input_is_host[i] && !is_fixed(plan, plan->inputs[instr->first_input + i]))
      return false;
  if (flags & (RN_KERNEL_FORWARDS | RN_KERNEL_OWN_OUTPUTS)) return true;
  bool needs_place;
  for (int32_t o = 0; o < instr->output_count; ++o)
    if (plan->slots[instr->first_output + o].kind != RN_SLOT_PLANNED &&
        !rn_dtype_is_ref(plan->slots[instr->first_output + o].dtype) &&
        (instr->kernel->output_is_host[o] || !is_known(c, n, o, &needs_place)))
      return false;
  return true;
}

// The end of the longest segment that starts at |first|. An instruction that hands out what it
// holds (a variable's value), or whose result may be kept, is part of it only if the value does not
// leave.
static int32_t segment_end(const rn_compile_t* c, int32_t first, int32_t limit) {
  const rn_plan_t* plan = c->plan;
  int32_t end = first;
  while (end < limit && may_record(c, end)) ++end;
  for (int32_t n = end - 1; n >= first; --n) {
    const rn_instr_t* instr = &plan->instrs[n];
    if (must_end_inside(c, n) && !is_read_before(c, instr, end)) {
      end = n;
      n = end;
    }
  }
  return end;
}

static bool issues_work(const rn_instr_t* instr) {
  return instr->compute && !(rn_instr_flags(instr) & (RN_KERNEL_FORWARDS | RN_KERNEL_OWN_OUTPUTS));
}

static int32_t count_work(const rn_plan_t* plan, int32_t first, int32_t end) {
  int32_t work = 0;
  for (int32_t n = first; n < end; ++n) work += issues_work(&plan->instrs[n]);
  return work;
}

static void add_segment(rn_compile_t* c, int32_t first, int32_t end) {
  rn_plan_t* plan = c->plan;
  int32_t all = count_work(plan, 0, plan->instr_count);
  if (count_work(plan, first, end) >= (all < LEAST_INSTRS ? 1 : LEAST_INSTRS))
    plan->segments[plan->segment_count++] = (rn_segment_t){first, end - first};
}

rn_status_t rn_compile_segments(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  if (!plan->device->vtable->record_begin) return RN_OK;
  if (plan->has_frames) return rn_compile_whole_step(c);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->instr_count + 1, &plan->segments));
  for (int32_t t = 0; t < plan->task_count; ++t) {
    const rn_task_t* task = &plan->tasks[t];
    int32_t limit = task->first_instr + task->instr_count;
    for (int32_t n = task->first_instr; n < limit;) {
      int32_t end = segment_end(c, n, limit);
      if (end > n) add_segment(c, n, end);
      n = end > n ? end : n + 1;
    }
  }
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].kind == RN_SLOT_FEED) plan->slots[s].is_kept = c->escapes[s];
  int32_t moves = 0, inside = 0;
  for (int32_t n = 0; n < plan->instr_count; ++n) moves += rn_instr_is_move(&plan->instrs[n], true);
  for (int32_t s = 0; s < plan->segment_count; ++s)
    for (int32_t k = 0; k < plan->segments[s].instr_count; ++k)
      inside += rn_instr_is_move(&plan->instrs[plan->segments[s].first_instr + k], true);
  plan->has_loose_fetches = moves > inside;
  return RN_OK;
}

static bool is_inside(const rn_segment_t* segment, int32_t instr) {
  return instr >= segment->first_instr && instr < segment->first_instr + segment->instr_count;
}

// Notes the values from outside whose last reader, or one of several last readers, is |instr|.
static rn_status_t note_dying(rn_recorded_t* recorded, rn_plan_t* plan, const rn_segment_t* segment,
                              const rn_instr_t* instr) {
  for (int32_t r = instr->first_release; r < instr->first_release + instr->release_count; ++r) {
    rn_recorded_slot_t noted = {.slot = plan->releases[r], .kind = RN_RECORDED_DYING};
    if (!is_inside(segment, plan->slots[noted.slot].producer))
      RN_RETURN_IF_ERROR(rn_vec_push(&recorded->slots, plan->allocator, noted));
  }
  return RN_OK;
}

static bool is_noted(const rn_recorded_t* recorded, int32_t slot) {
  for (size_t i = 0; i < recorded->slots.count; ++i)
    if (recorded->slots.items[i].slot == slot &&
        recorded->slots.items[i].kind == RN_RECORDED_ARGUMENT)
      return true;
  return false;
}

// Notes a value from outside that |instr| reads.
static rn_status_t note_value(rn_recorded_t* recorded, rn_state_t* state, const rn_instr_t* instr,
                              int32_t slot) {
  rn_plan_t* plan = state->plan;
  const rn_tensor_t* value = &state->slots[slot];
  rn_recorded_slot_t noted = {.slot = slot, .kind = RN_RECORDED_INPUT, .data = value->data};
  if (plan->slots[slot].kind == RN_SLOT_FEED) {
    // What no move reads is an argument in the memory of the device.
    if (rn_instr_is_move(instr, false))
      noted.kind = RN_RECORDED_FEED;
    else if (!plan->slots[slot].is_kept && rn_tensor_bytes(value) <= MOST_STAGED)
      noted.kind = RN_RECORDED_ARGUMENT;
  }
  if (noted.kind != RN_RECORDED_ARGUMENT) {
    RN_RETURN_IF_ERROR(rn_tensor_init(&noted.kept, value->dtype, rn_tensor_shape(value)));
  } else {
    if (is_noted(recorded, slot)) return RN_OK;
    RN_RETURN_IF_ERROR(rn_tensor_create(plan->device->allocator, value->dtype,
                                        rn_tensor_shape(value), &noted.kept));
  }
  return rn_recorded_add(recorded, plan, noted);
}

// Notes where values are that the segment reads and did not make.
static rn_status_t note_outside(rn_recorded_t* recorded, rn_state_t* state,
                                const rn_segment_t* segment) {
  rn_plan_t* plan = state->plan;
  for (int32_t n = segment->first_instr; n < segment->first_instr + segment->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    RN_RETURN_IF_ERROR(note_dying(recorded, plan, segment, instr));
    for (int32_t i = 0; i < instr->input_count; ++i) {
      int32_t slot = plan->inputs[instr->first_input + i];
      if (!is_inside(segment, plan->slots[slot].producer) && !state->slots[slot].is_ref &&
          plan->slots[slot].kind != RN_SLOT_CONSTANT)
        RN_RETURN_IF_ERROR(note_value(recorded, state, instr, slot));
    }
  }
  return RN_OK;
}

// Copies the arguments, and lets the step read them where its replays will.
static rn_status_t stage_arguments(rn_recorded_t* recorded, rn_state_t* state) {
  RN_RETURN_IF_ERROR(rn_recorded_stage(state, recorded));
  for (size_t i = 0; i < recorded->slots.count; ++i)
    if (recorded->slots.items[i].kind == RN_RECORDED_ARGUMENT)
      state->slots[recorded->slots.items[i].slot] = recorded->slots.items[i].kept;
  return RN_OK;
}

// Notes the variables that instructions use; their handles are set only while the segment runs.
static rn_status_t run_and_note(rn_execution_t* execution, rn_state_t* state,
                                const rn_segment_t* segment, rn_recorded_t* recorded,
                                rn_run_range_t run) {
  rn_plan_t* plan = state->plan;
  for (int32_t n = segment->first_instr; n < segment->first_instr + segment->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    for (int32_t i = 0; i < instr->input_count; ++i)
      RN_RETURN_IF_ERROR(rn_recorded_note_input(
          recorded, plan, instr, &state->slots[plan->inputs[instr->first_input + i]]));
    RN_RETURN_IF_ERROR(run(execution, state, n, 1));
  }
  return RN_OK;
}

static rn_status_t keep_outputs(rn_recorded_t* recorded, rn_state_t* state,
                                const rn_segment_t* segment) {
  rn_plan_t* plan = state->plan;
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].kind == RN_SLOT_DYNAMIC && is_inside(segment, plan->slots[s].producer) &&
        rn_tensor_is_set(&state->slots[s]))
      RN_RETURN_IF_ERROR(rn_recorded_keep_output(recorded, state, s));
  return RN_OK;
}

// An error of the segment as a whole names its first node.
static rn_status_t name_error(const rn_state_t* state, const rn_segment_t* segment,
                              rn_status_t status) {
  return rn_ok(status) ? status
                       : rn_execution_node_error(state->plan, segment->first_instr, status);
}

static rn_status_t record(rn_execution_t* execution, rn_state_t* state, const rn_segment_t* segment,
                          rn_recorded_t* recorded, rn_run_range_t run) {
  rn_device_t* device = state->plan->device;
  rn_recorded_forget(recorded, state->plan);
  RN_RETURN_IF_ERROR(note_outside(recorded, state, segment));
  RN_RETURN_IF_ERROR(name_error(state, segment, stage_arguments(recorded, state)));
  RN_RETURN_IF_ERROR(name_error(state, segment, device->vtable->record_begin(device)));
  rn_status_t status = run_and_note(execution, state, segment, recorded, run);
  rn_status_t ended = device->vtable->record_end(device, &recorded->recording);
  status = rn_status_join(status, name_error(state, segment, ended));
  if (execution->is_failed) {  // stopped on the way, so that some work is missing
    rn_recorded_forget(recorded, state->plan);
    return status;
  }
  if (rn_ok(status)) status = keep_outputs(recorded, state, segment);
  if (rn_ok(status) && recorded->recording)
    status = name_error(state, segment, rn_recorded_issue(state, recorded));
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) recorded->runs = RN_MOST_RUNS;
  if (!rn_ok(status)) rn_recorded_forget(recorded, state->plan);
  recorded->is_spent = rn_recorded_has_moved_variables(recorded);
  return status;
}

// Clears the values from outside whose last reader is in the segment, as running it would.
static void release_inputs(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    if (recorded->slots.items[i].kind != RN_RECORDED_DYING) continue;
    int32_t slot = recorded->slots.items[i].slot, counter = state->plan->slots[slot].counter;
    if (counter < 0 || --state->counters[counter] == 0) rn_tensor_clear(&state->slots[slot]);
  }
}

rn_status_t rn_segment_run(rn_execution_t* execution, rn_state_t* state, int32_t number,
                           rn_run_range_t run) {
  const rn_segment_t* segment = &state->plan->segments[number];
  rn_recorded_t* recorded = &state->recorded[number];
  if (recorded->recording && rn_recorded_fits(recorded, state)) {
    rn_status_t status = rn_recorded_replay(state, recorded);
    if (rn_ok(status)) release_inputs(state, recorded);
    if (rn_status_code(status) != RN_CODE_ABORTED) return name_error(state, segment, status);
    rn_status_free(status);
    return record(execution, state, segment, recorded, run);
  }
  bool records = recorded->runs > 0 && recorded->runs < RN_MOST_RUNS;
  recorded->runs += recorded->runs < RN_MOST_RUNS;
  return records ? record(execution, state, segment, recorded, run)
                 : run(execution, state, segment->first_instr, segment->instr_count);
}

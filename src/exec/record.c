// Recorded segments: see record.h.
#include "exec/record.h"

#include "exec/execution.h"
#include "framework/internal_ops.h"
#include "framework/resource.h"

// Launching the work of fewer instructions one by one costs no more than replaying it. A step of
// one instruction is recorded all the same: waiting for a replay is quicker than for an event.
#define LEAST_INSTRS 2
// A segment whose recording does not fit this often is not recorded any more.
#define MOST_RUNS 32
// Feeds and fetches up to this size are recorded, and copied once more on the host for that.
#define MOST_COPIED ((size_t)64 << 10)

// A value that enters or leaves the segment.
typedef struct rn_recorded_slot_t {
  int32_t slot;
  enum {
    RECORDED_INPUT,   // must be where it was, with the shape of |kept|
    RECORDED_FEED,    // in host memory; must have the shape of |other|
    RECORDED_DYING,   // not read after the segment
    RECORDED_OUTPUT,  // shares |kept|
    RECORDED_FETCH,   // made anew in host memory, like |kept|
  } kind;
  int32_t other;  // of a feed: the slot on the device; of a fetch: the instruction
  void* data;     // of an input
  rn_tensor_t kept;
} rn_recorded_slot_t;

typedef struct rn_recorded_variable_t {
  rn_variable_t* variable;  // Retained
  void* data;               // of its value, before and after the segment
  bool is_written;
} rn_recorded_variable_t;

static bool is_move(const rn_instr_t* instr, bool to_host) {
  return instr->kernel && instr->kernel->op == rn_op_move(to_host);
}

// Whether instruction |n| moves a small value between the client and the device.
static bool may_copy(const rn_compile_t* c, int32_t n) {
  const rn_plan_t* plan = c->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  const bool to_host = is_move(instr, true);
  if (!to_host && !is_move(instr, false)) return false;
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
  const int32_t in = plan->inputs[instr->first_input], out = instr->first_output;
  const bool is_port =
      to_host ? !rn_ir_flag(node, "waits") && c->is_fetched[out] &&
                    plan->slots[out].kind == RN_SLOT_DYNAMIC
              : plan->slots[in].kind == RN_SLOT_FEED && plan->slots[out].kind == RN_SLOT_PLANNED;
  int64_t count;
  return is_port && rn_shape_is_full(node->shapes[0]) && rn_shape_count(node->shapes[0], &count) &&
         count > 0 && (size_t)count <= MOST_COPIED / rn_dtype_size(plan->slots[out].dtype);
}

// Whether a host argument has the same value in every step: a constant, or the handle of a
// variable.
static bool is_fixed(const rn_plan_t* plan, int32_t slot) {
  if (plan->slots[slot].kind == RN_SLOT_CONSTANT) return true;
  int32_t producer = plan->slots[slot].producer;
  return plan->slots[slot].dtype == RN_RESOURCE && producer >= 0 &&
         rn_instr_flags(&plan->instrs[producer]) & RN_KERNEL_OWN_OUTPUTS;
}

// Whether all readers of the outputs of |instr| lie before |end| in its task.
static bool is_read_before(const rn_compile_t* c, const rn_instr_t* instr, int32_t end) {
  for (int32_t o = 0; o < instr->output_count; ++o) {
    int32_t slot = instr->first_output + o;
    if (c->last_reader[slot] >= end || c->crosses_tasks[slot] || c->is_fetched[slot]) return false;
  }
  return true;
}

// Whether an output needs no place in memory.
static bool is_empty(const rn_compile_t* c, int32_t n, int32_t output) {
  rn_shape_t shape = rn_compile_node(c, c->node_of[n])->shapes[output];
  int64_t count;
  return rn_shape_is_full(shape) && rn_shape_count(shape, &count) && count == 0;
}

static bool may_record(const rn_compile_t* c, int32_t n) {
  const rn_plan_t* plan = c->plan;
  const rn_instr_t* instr = &plan->instrs[n];
  if (!instr->kernel) return !instr->compute;  // a no-op
  if (!instr->compute || instr->async >= 0) return false;
  if (plan->device->vtable->feed && plan->device->vtable->fetch && may_copy(c, n)) return true;
  uint32_t flags = rn_instr_flags(instr);
  if ((flags & RN_KERNEL_REPLAYS) != RN_KERNEL_REPLAYS || flags & RN_KERNEL_KEEPS_INPUTS)
    return false;
  for (int32_t i = 0; i < instr->input_count; ++i)
    if (instr->kernel->input_is_host[i] && !is_fixed(plan, plan->inputs[instr->first_input + i]))
      return false;
  if (flags & (RN_KERNEL_FORWARDS | RN_KERNEL_OWN_OUTPUTS)) return true;
  for (int32_t o = 0; o < instr->output_count; ++o)
    if (plan->slots[instr->first_output + o].kind != RN_SLOT_PLANNED &&
        !rn_dtype_is_ref(plan->slots[instr->first_output + o].dtype) && !is_empty(c, n, o))
      return false;
  return true;
}

// The end of the longest segment that starts at |first|. An instruction that hands out what it
// holds (a variable's value) is part of it only if the value does not leave.
static int32_t segment_end(const rn_compile_t* c, int32_t first, int32_t limit) {
  const rn_plan_t* plan = c->plan;
  int32_t end = first;
  while (end < limit && may_record(c, end)) ++end;
  for (int32_t n = end - 1; n >= first; --n) {
    const rn_instr_t* instr = &plan->instrs[n];
    if (rn_instr_flags(instr) & RN_KERNEL_OWN_OUTPUTS && !is_read_before(c, instr, end)) {
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
  if (!plan->device->vtable->record_begin || plan->has_frames) return RN_OK;
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
  int32_t moves = 0, inside = 0;
  for (int32_t n = 0; n < plan->instr_count; ++n) moves += is_move(&plan->instrs[n], true);
  for (int32_t s = 0; s < plan->segment_count; ++s)
    for (int32_t k = 0; k < plan->segments[s].instr_count; ++k)
      inside += is_move(&plan->instrs[plan->segments[s].first_instr + k], true);
  plan->has_loose_fetches = moves > inside;
  return RN_OK;
}

static void forget(rn_recorded_t* recorded, rn_plan_t* plan) {
  for (size_t i = 0; i < recorded->slots.count; ++i)
    rn_tensor_clear(&recorded->slots.items[i].kept);
  for (size_t i = 0; i < recorded->variables.count; ++i)
    rn_object_release(&recorded->variables.items[i].variable->resource.object);
  recorded->slots.count = recorded->variables.count = 0;
  if (recorded->recording)
    plan->device->vtable->recording_destroy(plan->device, recorded->recording);
  recorded->recording = NULL;
}

void rn_recorded_clear(rn_recorded_t* recorded, rn_plan_t* plan) {
  forget(recorded, plan);
  rn_vec_free(&recorded->slots, plan->allocator);
  rn_vec_free(&recorded->variables, plan->allocator);
}

static void* data_of(rn_variable_t* variable) {
  rn_mutex_lock(&variable->mutex);
  void* data = variable->value.data;
  rn_mutex_unlock(&variable->mutex);
  return data;
}

static rn_status_t note_variable(rn_recorded_t* recorded, rn_plan_t* plan, rn_variable_t* variable,
                                 bool is_written) {
  for (size_t i = 0; i < recorded->variables.count; ++i) {
    rn_recorded_variable_t* known = &recorded->variables.items[i];
    if (known->variable != variable) continue;
    known->is_written |= is_written;
    return RN_OK;
  }
  rn_recorded_variable_t noted = {variable, data_of(variable), is_written};
  RN_RETURN_IF_ERROR(rn_vec_push(&recorded->variables, plan->allocator, noted));
  rn_object_retain(&variable->resource.object);
  return RN_OK;
}

// Notes the variables that an input leads to. A kernel that hands out what it holds only reads
// them.
static rn_status_t note_input(rn_recorded_t* recorded, rn_plan_t* plan, const rn_instr_t* instr,
                              const rn_tensor_t* input) {
  bool is_written = !(rn_instr_flags(instr) & RN_KERNEL_OWN_OUTPUTS);
  if (input->is_ref) return note_variable(recorded, plan, input->data, is_written);
  if (input->dtype != RN_RESOURCE) return RN_OK;
  rn_resource_t* resource = NULL;
  RN_RETURN_IF_ERROR(
      rn_handle_resource(input, plan->device->resources, RN_VARIABLE_TYPE, &resource));
  return note_variable(recorded, plan, (rn_variable_t*)resource, is_written);
}

static bool is_inside(const rn_segment_t* segment, int32_t instr) {
  return instr >= segment->first_instr && instr < segment->first_instr + segment->instr_count;
}

// Notes the values from outside whose last reader, or one of several last readers, is |instr|.
static rn_status_t note_dying(rn_recorded_t* recorded, rn_plan_t* plan, const rn_segment_t* segment,
                              const rn_instr_t* instr) {
  for (int32_t r = instr->first_release; r < instr->first_release + instr->release_count; ++r) {
    rn_recorded_slot_t noted = {.slot = plan->releases[r], .kind = RECORDED_DYING};
    if (!is_inside(segment, plan->slots[noted.slot].producer))
      RN_RETURN_IF_ERROR(rn_vec_push(&recorded->slots, plan->allocator, noted));
  }
  return RN_OK;
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
      if (is_inside(segment, plan->slots[slot].producer) || state->slots[slot].is_ref ||
          plan->slots[slot].kind == RN_SLOT_CONSTANT)
        continue;
      bool is_feed = plan->slots[slot].kind == RN_SLOT_FEED;
      rn_recorded_slot_t noted = {.slot = slot,
                                  .kind = is_feed ? RECORDED_FEED : RECORDED_INPUT,
                                  .other = instr->first_output,
                                  .data = state->slots[slot].data};
      const rn_tensor_t* value = &state->slots[slot];
      if (!is_feed)
        RN_RETURN_IF_ERROR(rn_tensor_init(&noted.kept, value->dtype, rn_tensor_shape(value)));
      rn_status_t status = rn_vec_push(&recorded->slots, plan->allocator, noted);
      if (!rn_ok(status)) rn_tensor_clear(&noted.kept);
      RN_RETURN_IF_ERROR(status);
    }
  }
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
      RN_RETURN_IF_ERROR(
          note_input(recorded, plan, instr, &state->slots[plan->inputs[instr->first_input + i]]));
    RN_RETURN_IF_ERROR(run(execution, state, n, 1));
  }
  return RN_OK;
}

// Notes a value that leaves the segment without a place of its own: a fetch, which is in host
// memory and only has the same shape next time, or a view of something that has a place.
static rn_status_t keep_output(rn_recorded_t* recorded, rn_state_t* state, int32_t slot) {
  rn_plan_t* plan = state->plan;
  const rn_tensor_t* value = &state->slots[slot];
  int32_t producer = plan->slots[slot].producer;
  bool is_fetch = is_move(&plan->instrs[producer], true);
  rn_recorded_slot_t kept = {
      .slot = slot, .kind = is_fetch ? RECORDED_FETCH : RECORDED_OUTPUT, .other = producer};
  RN_RETURN_IF_ERROR(is_fetch ? rn_tensor_init(&kept.kept, value->dtype, rn_tensor_shape(value))
                              : rn_tensor_share(value, &kept.kept));
  rn_status_t status = rn_vec_push(&recorded->slots, plan->allocator, kept);
  if (!rn_ok(status)) rn_tensor_clear(&kept.kept);
  return status;
}

static rn_status_t keep_outputs(rn_recorded_t* recorded, rn_state_t* state,
                                const rn_segment_t* segment) {
  rn_plan_t* plan = state->plan;
  for (int32_t s = 0; s < plan->slot_count; ++s)
    if (plan->slots[s].kind == RN_SLOT_DYNAMIC && is_inside(segment, plan->slots[s].producer) &&
        rn_tensor_is_set(&state->slots[s]))
      RN_RETURN_IF_ERROR(keep_output(recorded, state, s));
  return RN_OK;
}

// Whether the segment has given a variable another buffer, because something still reads the old
// one. The next step would have to read and write elsewhere.
static bool has_moved_variables(const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->variables.count; ++i)
    if (data_of(recorded->variables.items[i].variable) != recorded->variables.items[i].data)
      return true;
  return false;
}

// An error of the segment as a whole names its first node.
static rn_status_t name_error(const rn_state_t* state, const rn_segment_t* segment,
                              rn_status_t status) {
  return rn_ok(status) ? status
                       : rn_execution_node_error(state->plan, segment->first_instr, status);
}

static rn_status_t issue(rn_state_t* state, rn_recorded_t* recorded) {
  rn_device_t* device = state->plan->device;
  RN_RETURN_IF_ERROR(device->vtable->replay(device, recorded->recording));
  recorded->is_awaited = true;
  return RN_OK;
}

rn_status_t rn_segments_await(rn_state_t* state) {
  rn_device_t* device = state->plan->device;
  rn_status_t status = RN_OK;
  for (int32_t s = 0; s < state->plan->segment_count; ++s) {
    rn_recorded_t* recorded = &state->recorded[s];
    if (recorded->is_awaited)
      status = rn_status_join(status, device->vtable->await(device, recorded->recording));
    if (recorded->is_spent) forget(recorded, state->plan);
    recorded->is_awaited = recorded->is_spent = false;
  }
  return status;
}

static rn_status_t record(rn_execution_t* execution, rn_state_t* state, const rn_segment_t* segment,
                          rn_recorded_t* recorded, rn_run_range_t run) {
  rn_device_t* device = state->plan->device;
  forget(recorded, state->plan);
  RN_RETURN_IF_ERROR(note_outside(recorded, state, segment));
  RN_RETURN_IF_ERROR(name_error(state, segment, device->vtable->record_begin(device)));
  rn_status_t status = run_and_note(execution, state, segment, recorded, run);
  rn_status_t ended = device->vtable->record_end(device, &recorded->recording);
  status = rn_status_join(status, name_error(state, segment, ended));
  if (execution->is_failed) {  // stopped on the way, so that some work is missing
    forget(recorded, state->plan);
    return status;
  }
  if (rn_ok(status)) status = keep_outputs(recorded, state, segment);
  if (rn_ok(status) && recorded->recording)
    status = name_error(state, segment, issue(state, recorded));
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) recorded->runs = MOST_RUNS;
  if (!rn_ok(status)) forget(recorded, state->plan);
  recorded->is_spent = has_moved_variables(recorded);
  return status;
}

// Whether everything is where it was. A variable whose buffer something else holds, too, must not
// be written in place.
static bool fits(const rn_recorded_t* recorded, const rn_state_t* state) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    const rn_recorded_slot_t* noted = &recorded->slots.items[i];
    const rn_tensor_t* value = &state->slots[noted->slot];
    if (noted->kind == RECORDED_INPUT &&
        (value->data != noted->data || !rn_tensor_same_shape(value, &noted->kept)))
      return false;
    if (noted->kind == RECORDED_FEED && !rn_tensor_same_shape(value, &state->slots[noted->other]))
      return false;
  }
  bool all = true;
  for (size_t i = 0; all && i < recorded->variables.count; ++i) {
    rn_variable_t* variable = recorded->variables.items[i].variable;
    rn_mutex_lock(&variable->mutex);
    all = rn_tensor_is_set(&variable->value) &&
          variable->value.data == recorded->variables.items[i].data &&
          (!recorded->variables.items[i].is_written || rn_tensor_is_exclusive(&variable->value));
    rn_mutex_unlock(&variable->mutex);
  }
  return all;
}

// Clears the values from outside whose last reader is in the segment, as running it would.
static void release_inputs(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    if (recorded->slots.items[i].kind != RECORDED_DYING) continue;
    int32_t slot = recorded->slots.items[i].slot, counter = state->plan->slots[slot].counter;
    if (counter < 0 || --state->counters[counter] == 0) rn_tensor_clear(&state->slots[slot]);
  }
}

// Sets the values that leave the segment, before its work is issued: that keeps the places of the
// fetches.
static rn_status_t set_outputs(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    const rn_recorded_slot_t* noted = &recorded->slots.items[i];
    rn_tensor_t* value = &state->slots[noted->slot];
    if (noted->kind == RECORDED_OUTPUT) RN_RETURN_IF_ERROR(rn_tensor_share(&noted->kept, value));
    if (noted->kind == RECORDED_FETCH)
      RN_RETURN_IF_ERROR(rn_tensor_create(state->plan->instrs[noted->other].kernel->host_memory,
                                          noted->kept.dtype, rn_tensor_shape(&noted->kept), value));
  }
  return RN_OK;
}

static void clear_outputs(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i)
    if (recorded->slots.items[i].kind >= RECORDED_OUTPUT)
      rn_tensor_clear(&state->slots[recorded->slots.items[i].slot]);
}

// ABORTED if the device cannot replay it any more; it can be recorded again then.
static rn_status_t replay(rn_state_t* state, rn_recorded_t* recorded) {
  rn_status_t status = set_outputs(state, recorded);
  if (rn_ok(status)) status = issue(state, recorded);
  if (rn_ok(status))
    release_inputs(state, recorded);
  else
    clear_outputs(state, recorded);
  return status;
}

rn_status_t rn_segment_run(rn_execution_t* execution, rn_state_t* state, int32_t number,
                           rn_run_range_t run) {
  const rn_segment_t* segment = &state->plan->segments[number];
  rn_recorded_t* recorded = &state->recorded[number];
  if (recorded->recording && fits(recorded, state)) {
    rn_status_t status = replay(state, recorded);
    if (rn_status_code(status) != RN_CODE_ABORTED) return name_error(state, segment, status);
    rn_status_free(status);
    return record(execution, state, segment, recorded, run);
  }
  bool records = recorded->runs > 0 && recorded->runs < MOST_RUNS;
  recorded->runs += recorded->runs < MOST_RUNS;
  return records ? record(execution, state, segment, recorded, run)
                 : run(execution, state, segment->first_instr, segment->instr_count);
}

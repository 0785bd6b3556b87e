// What was recorded: see recorded.h.
#include "exec/recorded.h"

#include "exec/record.h"

void rn_recorded_forget(rn_recorded_t* recorded, rn_plan_t* plan) {
  for (size_t i = 0; i < recorded->slots.count; ++i)
    rn_tensor_clear(&recorded->slots.items[i].kept);
  for (size_t i = 0; i < recorded->variables.count; ++i) {
    rn_tensor_clear(&recorded->variables.items[i].like);
    rn_object_release(&recorded->variables.items[i].variable->resource.object);
  }
  recorded->slots.count = recorded->variables.count = 0;
  if (recorded->recording)
    plan->device->vtable->recording_destroy(plan->device, recorded->recording);
  recorded->recording = NULL;
  recorded->may_record = false;
}

void rn_recorded_clear(rn_recorded_t* recorded, rn_plan_t* plan) {
  rn_recorded_forget(recorded, plan);
  rn_vec_free(&recorded->slots, plan->allocator);
  rn_vec_free(&recorded->variables, plan->allocator);
}

rn_status_t rn_recorded_add(rn_recorded_t* recorded, rn_plan_t* plan, rn_recorded_slot_t noted) {
  rn_status_t status = rn_vec_push(&recorded->slots, plan->allocator, noted);
  if (!rn_ok(status)) rn_tensor_clear(&noted.kept);
  return status;
}

// Sets |*out| to the address and the shape of the variable's value.
static rn_status_t look_at(rn_variable_t* variable, rn_tensor_t* out) {
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_tensor_init(out, variable->dtype, rn_tensor_shape(&variable->value));
  out->data = variable->value.data;
  rn_mutex_unlock(&variable->mutex);
  return status;
}

static rn_status_t note_variable(rn_recorded_t* recorded, rn_plan_t* plan, rn_variable_t* variable,
                                 bool is_written) {
  for (size_t i = 0; i < recorded->variables.count; ++i) {
    rn_recorded_variable_t* known = &recorded->variables.items[i];
    if (known->variable != variable) continue;
    known->is_written |= is_written;
    return RN_OK;
  }
  rn_recorded_variable_t noted = {.variable = variable, .is_written = is_written};
  RN_RETURN_IF_ERROR(look_at(variable, &noted.like));
  rn_status_t status = rn_vec_push(&recorded->variables, plan->allocator, noted);
  if (rn_ok(status))
    rn_object_retain(&variable->resource.object);
  else
    rn_tensor_clear(&noted.like);
  return status;
}

rn_status_t rn_recorded_note_input(rn_recorded_t* recorded, rn_plan_t* plan,
                                   const rn_instr_t* instr, const rn_tensor_t* input) {
  uint32_t flags = rn_instr_flags(instr);
  bool replays = (flags & RN_KERNEL_REPLAYS) == RN_KERNEL_REPLAYS;
  bool is_written = replays && !(flags & RN_KERNEL_OWN_OUTPUTS);
  if (input->is_ref) return note_variable(recorded, plan, input->data, is_written);
  if (input->dtype != RN_RESOURCE) return RN_OK;
  rn_resource_t* resource = NULL;
  rn_status_t status =
      rn_handle_resource(input, plan->device->resources, RN_VARIABLE_TYPE, &resource);
  if (rn_ok(status)) return note_variable(recorded, plan, (rn_variable_t*)resource, is_written);
  if (replays) return status;
  rn_status_free(status);  // a container of the step
  return RN_OK;
}

// Where the value of |slot| is.
static rn_tensor_t* value_at(rn_state_t* state, int32_t slot) {
  return state->frames ? rn_frames_value(state, slot) : &state->slots[slot];
}

rn_status_t rn_recorded_keep_output(rn_recorded_t* recorded, rn_state_t* state, int32_t slot) {
  rn_plan_t* plan = state->plan;
  const rn_tensor_t* value = value_at(state, slot);
  int32_t producer = plan->slots[slot].producer;
  const rn_instr_t* instr = &plan->instrs[producer];
  bool is_fetch = rn_instr_is_move(instr, true);
  bool is_value = state->frames && !value->is_ref;
  rn_recorded_slot_t kept = {.slot = slot,
                             .kind = is_fetch   ? RN_RECORDED_FETCH
                                     : is_value ? RN_RECORDED_VALUE
                                                : RN_RECORDED_OUTPUT,
                             .instr = producer};
  if (is_fetch)
    RN_RETURN_IF_ERROR(rn_tensor_init(&kept.kept, value->dtype, rn_tensor_shape(value)));
  else if (is_value)
    RN_RETURN_IF_ERROR(rn_tensor_copy(value, plan->host->allocator, &kept.kept));
  else
    RN_RETURN_IF_ERROR(rn_tensor_share(value, &kept.kept));
  return rn_recorded_add(recorded, plan, kept);
}

bool rn_recorded_has_moved_variables(const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->variables.count; ++i) {
    rn_variable_t* variable = recorded->variables.items[i].variable;
    rn_mutex_lock(&variable->mutex);
    bool has_moved = variable->value.data != recorded->variables.items[i].like.data;
    rn_mutex_unlock(&variable->mutex);
    if (has_moved) return true;
  }
  return false;
}

rn_status_t rn_recorded_stage(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    rn_recorded_slot_t* noted = &recorded->slots.items[i];
    if (noted->kind == RN_RECORDED_ARGUMENT)
      RN_RETURN_IF_ERROR(
          rn_device_copy(state->plan->device, value_at(state, noted->slot), &noted->kept));
  }
  return RN_OK;
}

rn_status_t rn_recorded_issue(rn_state_t* state, rn_recorded_t* recorded) {
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
    if (recorded->is_spent) rn_recorded_forget(recorded, state->plan);
    recorded->is_awaited = recorded->is_spent = false;
  }
  return status;
}

static bool slot_fits(const rn_recorded_slot_t* noted, rn_state_t* state) {
  if (noted->kind > RN_RECORDED_ARGUMENT) return true;
  const rn_tensor_t* value = value_at(state, noted->slot);
  if (!rn_tensor_same_shape(value, &noted->kept)) return false;
  if (noted->kind == RN_RECORDED_INPUT) return value->data == noted->data;
  return noted->kind != RN_RECORDED_GUARD ||
         memcmp(value->data, noted->kept.data, rn_tensor_bytes(value)) == 0;
}

bool rn_recorded_takes(const rn_recorded_t* recorded, rn_state_t* state) {
  for (size_t i = 0; i < recorded->slots.count; ++i)
    if (!slot_fits(&recorded->slots.items[i], state)) return false;
  return true;
}

bool rn_recorded_fits(const rn_recorded_t* recorded, rn_state_t* state) {
  bool all = rn_recorded_takes(recorded, state);
  for (size_t i = 0; all && i < recorded->variables.count; ++i) {
    const rn_recorded_variable_t* noted = &recorded->variables.items[i];
    rn_variable_t* variable = noted->variable;
    rn_mutex_lock(&variable->mutex);
    all = rn_tensor_is_set(&variable->value) && variable->value.data == noted->like.data &&
          rn_tensor_same_shape(&variable->value, &noted->like) &&
          (!noted->is_written || rn_tensor_is_exclusive(&variable->value));
    rn_mutex_unlock(&variable->mutex);
  }
  return all;
}

// Before the work is issued: that keeps the places of the fetches.
static rn_status_t set_outputs(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    const rn_recorded_slot_t* noted = &recorded->slots.items[i];
    rn_tensor_t* value = value_at(state, noted->slot);
    if (noted->kind == RN_RECORDED_OUTPUT) RN_RETURN_IF_ERROR(rn_tensor_share(&noted->kept, value));
    if (noted->kind == RN_RECORDED_VALUE)
      RN_RETURN_IF_ERROR(rn_tensor_copy(&noted->kept, state->plan->host->allocator, value));
    if (noted->kind == RN_RECORDED_FETCH)
      RN_RETURN_IF_ERROR(rn_tensor_create(state->plan->instrs[noted->instr].kernel->host_memory,
                                          noted->kept.dtype, rn_tensor_shape(&noted->kept), value));
  }
  return RN_OK;
}

static void clear_outputs(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i)
    if (recorded->slots.items[i].kind >= RN_RECORDED_OUTPUT)
      rn_tensor_clear(value_at(state, recorded->slots.items[i].slot));
}

rn_status_t rn_recorded_give_results(rn_state_t* state, const rn_recorded_t* recorded) {
  for (size_t i = 0; i < recorded->slots.count; ++i) {
    const rn_recorded_slot_t* noted = &recorded->slots.items[i];
    if (noted->kind == RN_RECORDED_RESULT)
      RN_RETURN_IF_ERROR(
          rn_device_duplicate(state->plan->device, &noted->kept, value_at(state, noted->slot)));
  }
  return RN_OK;
}

rn_status_t rn_recorded_replay(rn_state_t* state, rn_recorded_t* recorded) {
  rn_status_t status = set_outputs(state, recorded);
  if (rn_ok(status)) status = rn_recorded_stage(state, recorded);
  if (rn_ok(status)) status = rn_recorded_issue(state, recorded);
  if (rn_ok(status)) status = rn_recorded_give_results(state, recorded);
  if (!rn_ok(status)) clear_outputs(state, recorded);
  return status;
}

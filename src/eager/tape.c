// Tapes: recording. See tape.h.
#include "eager/tape_internal.h"

#include "framework/grad_def.h"
#include "tensor/handle.h"

void rn_tape_map_clear(rn_tape_map_t* map) {
  RN_FREE_ARRAY(map->allocator, map->keys, map->capacity);
  RN_FREE_ARRAY(map->allocator, map->values, map->capacity);
  *map = (rn_tape_map_t){.allocator = map->allocator};
}

static size_t slot_of(const rn_tape_map_t* map, rn_tape_key_t key) {
  uint64_t hash = (uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
  size_t slot = (size_t)(hash >> 20) & (map->capacity - 1);
  while (map->keys[slot] && map->keys[slot] != key) slot = (slot + 1) & (map->capacity - 1);
  return slot;
}

int32_t rn_tape_map_get(const rn_tape_map_t* map, rn_tape_key_t key) {
  if (map->capacity == 0) return -1;
  size_t slot = slot_of(map, key);
  return map->keys[slot] ? map->values[slot] : -1;
}

static rn_status_t grow(rn_tape_map_t* map) {
  rn_tape_map_t grown = {.allocator = map->allocator,
                         .capacity = map->capacity ? map->capacity * 2 : 64,
                         .count = map->count};
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(map->allocator, grown.capacity, &grown.keys));
  rn_status_t status = RN_NEW_ARRAY(map->allocator, grown.capacity, &grown.values);
  if (!rn_ok(status)) {
    RN_FREE_ARRAY(map->allocator, grown.keys, grown.capacity);
    return status;
  }
  for (size_t i = 0; i < map->capacity; ++i) {
    if (!map->keys[i]) continue;
    size_t slot = slot_of(&grown, map->keys[i]);
    grown.keys[slot] = map->keys[i];
    grown.values[slot] = map->values[i];
  }
  rn_tape_map_clear(map);
  *map = grown;
  return RN_OK;
}

rn_status_t rn_tape_map_put(rn_tape_map_t* map, rn_tape_key_t key, int32_t value) {
  if (map->count * 2 >= map->capacity) RN_RETURN_IF_ERROR(grow(map));
  size_t slot = slot_of(map, key);
  map->count += !map->keys[slot];
  map->keys[slot] = key;
  map->values[slot] = value;
  return RN_OK;
}

// The resource of a handle that is ready; NULL if it holds none.
static rn_resource_t* resource_of(rn_eager_handle_t* handle) {
  if (handle->dtype != RN_RESOURCE || handle->tensor.count != 1) return NULL;
  rn_handle_t* address = *RN_DATA(&handle->tensor, rn_handle_t*);
  return address ? (rn_resource_t*)address->resource : NULL;
}

rn_status_t rn_tape_key(rn_eager_handle_t* handle, rn_tape_key_t* out) {
  *out = handle;
  if (handle->dtype != RN_RESOURCE) return RN_OK;
  const rn_tensor_t* value = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_value(handle, &value));
  const rn_resource_t* resource = resource_of(handle);
  if (resource) *out = resource;
  return RN_OK;
}

bool rn_tape_is_variable(rn_eager_handle_t* handle) {
  const rn_resource_t* resource = resource_of(handle);
  return resource && strcmp(resource->type, RN_VARIABLE_TYPE) == 0;
}

// Whether values of this type have gradients.
static bool carries_gradients(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_FLOAT:
    case RN_DOUBLE:
    case RN_HALF:
    case RN_BFLOAT16:
    case RN_COMPLEX64:
    case RN_COMPLEX128:
    case RN_RESOURCE:
    case RN_VARIANT:
      return true;
    default:
      return false;
  }
}

static void link_locked(rn_eager_tape_t* tape) {
  tape->next = tape->eager->tapes;
  tape->eager->tapes = tape;
  atomic_fetch_add(&tape->eager->tape_count, 1);
}

static void unlink_locked(rn_eager_tape_t* tape) {
  rn_eager_tape_t** link = &tape->eager->tapes;
  while (*link != tape) link = &(*link)->next;
  *link = tape->next;
  atomic_fetch_sub(&tape->eager->tape_count, 1);
}

rn_status_t rn_eager_tape_create(rn_eager_t* eager, bool is_persistent, bool watches_variables,
                                 rn_eager_tape_t** out) {
  *out = NULL;
  rn_eager_tape_t* tape = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(eager->allocator, &tape));
  tape->eager = eager;
  rn_eager_retain(eager);
  tape->thread = rn_eager_thread_id();
  tape->is_persistent = is_persistent;
  tape->watches_variables = watches_variables;
  tape->tracked.allocator = eager->allocator;
  rn_eager_tape_set_recording(tape, true);
  *out = tape;
  return RN_OK;
}

void rn_eager_tape_set_recording(rn_eager_tape_t* tape, bool is_recording) {
  rn_mutex_lock(&tape->eager->mutex);
  if (is_recording && !tape->is_recording) link_locked(tape);
  if (!is_recording && tape->is_recording) unlink_locked(tape);
  tape->is_recording = is_recording;
  rn_mutex_unlock(&tape->eager->mutex);
}

static void custom_release(rn_tape_custom_t* custom) {
  if (!custom || atomic_fetch_sub(&custom->refs, 1) != 1) return;
  if (custom->custom.free_arg) custom->custom.free_arg(custom->custom.arg);
  RN_FREE(custom->allocator, custom);
}

static void record_clear(rn_allocator_t allocator, rn_tape_record_t* record) {
  int32_t count = record->input_count + record->output_count;
  for (int32_t i = 0; i < count; ++i) rn_eager_handle_release(record->handles[i]);
  RN_FREE_ARRAY(allocator, record->handles, count);
  rn_eager_kernel_release(record->kernel);
  custom_release(record->custom);
}

void rn_tape_clear_records(rn_eager_tape_t* tape) {
  rn_allocator_t allocator = tape->eager->allocator;
  for (size_t i = 0; i < tape->records.count; ++i) record_clear(allocator, &tape->records.items[i]);
  rn_vec_free(&tape->records, allocator);
  for (size_t i = 0; i < tape->watched.count; ++i) rn_eager_handle_release(tape->watched.items[i]);
  rn_vec_free(&tape->watched, allocator);
  rn_tape_map_clear(&tape->tracked);
}

rn_status_t rn_tape_join_records(rn_eager_tape_t* tape, rn_tape_records_t* before) {
  rn_allocator_t allocator = tape->eager->allocator;
  rn_status_t status = rn_vec_reserve(before, allocator, before->count + tape->records.count);
  for (size_t i = 0; i < tape->records.count; ++i) {
    if (rn_ok(status)) {
      before->items[before->count++] = tape->records.items[i];
    } else {
      record_clear(allocator, &tape->records.items[i]);
    }
  }
  rn_vec_free(&tape->records, allocator);
  tape->records = *before;
  return status;
}

void rn_eager_tape_destroy(rn_eager_tape_t* tape) {
  if (!tape) return;
  rn_eager_t* eager = tape->eager;
  rn_eager_tape_set_recording(tape, false);
  rn_tape_clear_records(tape);
  RN_FREE(eager->allocator, tape);
  rn_eager_release(eager);
}

rn_status_t rn_eager_tape_watch(rn_eager_tape_t* tape, rn_eager_handle_t* handle) {
  rn_tape_key_t key;
  RN_RETURN_IF_ERROR(rn_tape_key(handle, &key));
  if (rn_tape_map_get(&tape->tracked, key) >= 0) return RN_OK;
  rn_allocator_t allocator = tape->eager->allocator;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&tape->watched, allocator, tape->watched.count + 1));
  RN_RETURN_IF_ERROR(rn_tape_map_put(&tape->tracked, key, 0));
  rn_eager_handle_retain(handle);
  tape->watched.items[tape->watched.count++] = handle;
  return RN_OK;
}

bool rn_eager_tape_tracks(const rn_eager_tape_t* tape, rn_eager_handle_t* handle) {
  rn_tape_key_t key;
  rn_status_t status = rn_tape_key(handle, &key);
  if (!rn_ok(status)) {  // a handle without a value
    rn_status_free(status);
    return false;
  }
  return rn_tape_map_get(&tape->tracked, key) >= 0;
}

// Whether a tape must record a step that reads |inputs|. Starts to watch the variables among them.
static rn_status_t should_record(rn_eager_tape_t* tape, rn_eager_handle_t* const* inputs,
                                 int32_t count, bool* out) {
  *out = false;
  for (int32_t i = 0; i < count; ++i) {
    if (!carries_gradients(inputs[i]->dtype)) continue;
    rn_tape_key_t key;
    RN_RETURN_IF_ERROR(rn_tape_key(inputs[i], &key));
    if (tape->watches_variables && rn_tape_is_variable(inputs[i]))
      RN_RETURN_IF_ERROR(rn_eager_tape_watch(tape, inputs[i]));
    *out |= rn_tape_map_get(&tape->tracked, key) >= 0;
  }
  return RN_OK;
}

typedef struct tape_step_t {
  rn_eager_kernel_t* kernel;
  rn_tape_custom_t* custom;
  rn_eager_handle_t* const* inputs;
  int32_t input_count;
  rn_eager_handle_t* const* outputs;
  int32_t output_count;
} tape_step_t;

static rn_status_t add_record(rn_eager_tape_t* tape, const tape_step_t* step) {
  rn_allocator_t allocator = tape->eager->allocator;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&tape->records, allocator, tape->records.count + 1));
  for (int32_t i = 0; i < step->output_count; ++i)
    if (carries_gradients(step->outputs[i]->dtype))
      RN_RETURN_IF_ERROR(rn_tape_map_put(&tape->tracked, step->outputs[i], 0));
  rn_tape_record_t record = {.kernel = step->kernel, .custom = step->custom};
  size_t count = (size_t)step->input_count + (size_t)step->output_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &record.handles));
  for (int32_t i = 0; i < step->input_count; ++i)
    record.handles[record.input_count++] = step->inputs[i];
  for (int32_t i = 0; i < step->output_count; ++i)
    record.handles[record.input_count + record.output_count++] = step->outputs[i];
  for (size_t i = 0; i < count; ++i) rn_eager_handle_retain(record.handles[i]);
  if (record.kernel) rn_eager_kernel_retain(record.kernel);
  if (record.custom) atomic_fetch_add(&record.custom->refs, 1);
  tape->records.items[tape->records.count++] = record;
  return RN_OK;
}

// The lock keeps other threads from removing their tapes. Waiting for a value while holding it is
// safe, because threads that make values do not take it.
static rn_status_t record_step(rn_eager_t* eager, const tape_step_t* step) {
  if (step->output_count == 0) return RN_OK;
  uint64_t self = rn_eager_thread_id();
  rn_status_t status = RN_OK;
  rn_mutex_lock(&eager->mutex);
  for (rn_eager_tape_t* tape = eager->tapes; rn_ok(status) && tape; tape = tape->next) {
    if (tape->thread != self) continue;
    bool is_needed = false;
    status = should_record(tape, step->inputs, step->input_count, &is_needed);
    if (rn_ok(status) && is_needed) status = add_record(tape, step);
  }
  rn_mutex_unlock(&eager->mutex);
  return status;
}

// Whether no gradient flows back through |kernel|; its results are then not tracked.
static bool ends_here(const rn_eager_kernel_t* kernel) {
  return (kernel->def->flags & RN_OP_NO_GRAD) && kernel->extra_count == 0 &&
         !rn_grad_rule_find(rn_str(kernel->def->name)).fn;
}

rn_status_t rn_eager_record(rn_eager_t* eager, rn_eager_kernel_t* kernel,
                            rn_eager_handle_t* const* inputs, rn_eager_handle_t* const* outputs) {
  if (ends_here(kernel)) return RN_OK;
  tape_step_t step = {.kernel = kernel,
                      .inputs = inputs,
                      .input_count = kernel->input_count,
                      .outputs = outputs,
                      .output_count = kernel->output_count};
  return record_step(eager, &step);
}

rn_status_t rn_eager_tape_record_custom(rn_eager_t* eager, rn_eager_handle_t* const* inputs,
                                        int32_t input_count, rn_eager_handle_t* const* outputs,
                                        int32_t output_count, rn_eager_custom_t custom) {
  rn_tape_custom_t* shared = NULL;
  rn_status_t status = RN_NEW(eager->allocator, &shared);
  if (!rn_ok(status)) {
    if (custom.free_arg) custom.free_arg(custom.arg);
    return status;
  }
  shared->refs = 1;
  shared->allocator = eager->allocator;
  shared->custom = custom;
  tape_step_t step = {.custom = shared,
                      .inputs = inputs,
                      .input_count = input_count,
                      .outputs = outputs,
                      .output_count = output_count};
  status = record_step(eager, &step);
  custom_release(shared);
  return status;
}

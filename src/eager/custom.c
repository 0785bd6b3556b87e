// Values of custom devices and packed handles, which are not tensors on devices of the session.
#include "eager/internal.h"

static void free_text(rn_allocator_t allocator, char* text) {
  if (text) rn_free(allocator, text, strlen(text) + 1);
}

static void destroy_entry(rn_eager_t* eager, rn_eager_custom_entry_t* entry) {
  free_text(eager->allocator, entry->name);
  free_text(eager->allocator, entry->type);
  RN_FREE(eager->allocator, entry);
}

void rn_eager_custom_devices_clear(rn_eager_t* eager) {
  for (size_t i = 0; i < eager->custom_devices.count; ++i) {
    rn_eager_custom_entry_t* entry = eager->custom_devices.items[i];
    if (entry->device.destroy) entry->device.destroy(entry->device.self);
    destroy_entry(eager, entry);
  }
  rn_vec_free(&eager->custom_devices, eager->allocator);
}

static bool same_device(rn_str_t a, rn_str_t b) {
  rn_device_spec_t wanted, own;
  return rn_device_spec_parse(a, &wanted) && rn_device_spec_parse(b, &own) && wanted.type.size &&
         wanted.index >= 0 && rn_device_spec_matches(&wanted, &own);
}

// A partial name such as "/job:worker/task:1" means the first device of that task.
static bool same_task(rn_str_t a, rn_str_t b) {
  rn_device_spec_t wanted, own;
  return rn_device_spec_parse(a, &wanted) && rn_device_spec_parse(b, &own) && wanted.job.size &&
         rn_device_spec_matches(&wanted, &own);
}

static rn_eager_custom_entry_t* find_locked(rn_eager_t* eager, rn_str_t name) {
  for (size_t i = 0; i < eager->custom_devices.count; ++i) {
    rn_eager_custom_entry_t* entry = eager->custom_devices.items[i];
    if (same_device(name, rn_str(entry->name)) ||
        (entry->device.is_remote && same_task(name, rn_str(entry->name))))
      return entry;
  }
  return NULL;
}

static rn_eager_custom_entry_t* find(rn_eager_t* eager, rn_str_t name) {
  if (!atomic_load_explicit(&eager->has_custom, memory_order_acquire)) return NULL;
  rn_mutex_lock(&eager->mutex);
  rn_eager_custom_entry_t* entry = find_locked(eager, name);
  rn_mutex_unlock(&eager->mutex);
  return entry;
}

bool rn_eager_has_custom_device(rn_eager_t* eager, rn_str_t name) {
  return find(eager, name) != NULL;
}

bool rn_eager_is_remote_device(rn_eager_t* eager, rn_str_t name) {
  const rn_eager_custom_entry_t* entry = find(eager, name);
  return entry && entry->device.is_remote;
}

static rn_status_t make_entry(rn_eager_t* eager, rn_str_t name,
                              const rn_eager_custom_device_t* device,
                              rn_eager_custom_entry_t** out) {
  rn_device_spec_t spec;
  bool is_full = rn_device_spec_parse(name, &spec) && spec.job.size && spec.replica >= 0 &&
                 spec.task >= 0 && spec.type.size && spec.index >= 0;
  if (!is_full)
    return rn_invalid_argument(
        "Custom device name '%.*s' is not a fully specified name "
        "(\"/job:localhost/replica:0/task:0/device:CUSTOM:0\")",
        RN_STR_ARGS(name));
  rn_eager_custom_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(eager->allocator, &entry));
  rn_status_t status = rn_str_dup(eager->allocator, name, &entry->name);
  if (rn_ok(status)) status = rn_str_dup(eager->allocator, spec.type, &entry->type);
  if (!rn_ok(status)) {
    destroy_entry(eager, entry);
    return status;
  }
  entry->device = *device;
  *out = entry;
  return RN_OK;
}

static bool is_of_session(rn_eager_t* eager, rn_str_t name) {
  for (int i = 0; i < rn_session_device_count(eager->session); ++i)
    if (same_device(name, rn_session_device(eager->session, i)->name)) return true;
  return false;
}

rn_status_t rn_eager_add_custom_device(rn_eager_t* eager, rn_str_t name,
                                       const rn_eager_custom_device_t* device) {
  rn_eager_custom_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(make_entry(eager, name, device, &entry));
  rn_mutex_lock(&eager->mutex);
  rn_status_t status = RN_OK;
  if (find_locked(eager, name) || is_of_session(eager, name))
    status = rn_already_exists("%.*s already registered as a device.", RN_STR_ARGS(name));
  if (rn_ok(status)) status = rn_vec_push(&eager->custom_devices, eager->allocator, entry);
  rn_mutex_unlock(&eager->mutex);
  if (!rn_ok(status)) {
    destroy_entry(eager, entry);
    return status;
  }
  atomic_store_explicit(&eager->has_custom, true, memory_order_release);
  return RN_OK;
}

// --- Handles

void rn_eager_special_destroy(rn_eager_special_t* special) {
  if (!special) return;
  rn_eager_t* eager = special->eager;
  if (special->custom.destroy) special->custom.destroy(special->custom.self);
  for (int32_t i = 0; i < special->part_count; ++i) rn_eager_handle_release(special->parts[i]);
  if (special->parts) RN_FREE_ARRAY(eager->allocator, special->parts, special->part_count);
  RN_FREE(eager->allocator, special);
  rn_eager_release(eager);
}

static rn_status_t make_special(rn_eager_t* eager, rn_dtype_t dtype, rn_eager_sync_t* sync,
                                rn_eager_handle_t** out) {
  rn_eager_special_t* special = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(eager->allocator, &special));
  rn_status_t status = rn_eager_handle_new(NULL, NULL, dtype, sync, out);
  if (!rn_ok(status)) {
    RN_FREE(eager->allocator, special);
    return status;
  }
  special->eager = eager;
  rn_eager_retain(eager);
  (*out)->special = special;
  return RN_OK;
}

static rn_status_t make_custom(rn_eager_t* eager, rn_str_t name, rn_dtype_t dtype,
                               const rn_eager_foreign_t* value, rn_eager_sync_t* sync,
                               rn_eager_handle_t** out) {
  *out = NULL;
  const rn_eager_custom_entry_t* entry = find(eager, name);
  if (!entry) return rn_invalid_argument("Unknown custom device: %.*s", RN_STR_ARGS(name));
  RN_RETURN_IF_ERROR(make_special(eager, dtype, sync, out));
  (*out)->special->device = entry;
  (*out)->special->custom = *value;
  return RN_OK;
}

rn_status_t rn_eager_custom_handle(rn_eager_t* eager, rn_str_t name, rn_dtype_t dtype,
                                   const rn_eager_foreign_t* value, rn_eager_handle_t** out) {
  return make_custom(eager, name, dtype, value, NULL, out);
}

// --- Values that jobs make

bool rn_eager_is_async(rn_eager_t* eager) { return rn_eager_async_executor(eager) != NULL; }

rn_status_t rn_eager_queue(rn_eager_t* eager, rn_eager_job_t* job) {
  rn_eager_executor_t* executor = rn_eager_async_executor(eager);
  return executor ? rn_eager_executor_add_job(executor, job)
                  : rn_failed_precondition("The executor is not asynchronous");
}

rn_status_t rn_eager_pending_handle(rn_eager_t* eager, rn_str_t name, rn_device_t* device,
                                    rn_dtype_t dtype, const rn_eager_foreign_t* value,
                                    rn_eager_handle_t** out) {
  rn_eager_executor_t* executor = rn_eager_async_executor(eager);
  *out = NULL;
  if (!executor) return rn_failed_precondition("The executor is not asynchronous");
  rn_eager_sync_t* sync = rn_eager_executor_sync(executor);
  return value ? make_custom(eager, name, dtype, value, sync, out)
               : rn_eager_handle_new(eager, device, dtype, sync, out);
}

void rn_eager_settle_custom(rn_eager_handle_t* handle, rn_str_t name, rn_status_t status) {
  rn_tensor_t none = {0};
  const rn_eager_custom_entry_t* entry = find(handle->special->eager, name);
  if (entry) handle->special->device = entry;  // readers wait first
  rn_eager_handle_settle(handle, &none, status);
}

void rn_eager_settle(rn_eager_handle_t* handle, rn_tensor_t* tensor, rn_status_t status) {
  rn_eager_handle_settle(handle, tensor, status);
}

const rn_eager_foreign_t* rn_eager_handle_custom(const rn_eager_handle_t* handle) {
  return handle->special && handle->special->device ? &handle->special->custom : NULL;
}

int32_t rn_eager_handle_parts(const rn_eager_handle_t* handle, rn_eager_handle_t* const** out) {
  *out = handle->special ? handle->special->parts : NULL;
  return handle->special ? handle->special->part_count : 0;
}

// The value of a packed handle on |device|, borrowed; NULL if there is none.
static rn_eager_handle_t* find_part(const rn_eager_special_t* special, const rn_eager_t* eager,
                                    const rn_device_t* device) {
  for (int32_t i = 0; i < special->part_count; ++i) {
    const rn_device_t* own = special->parts[i]->device;
    if (!special->parts[i]->special && (own ? own : eager->cpu) == device) return special->parts[i];
  }
  return NULL;
}

static rn_status_t part_on(const rn_eager_special_t* special, rn_eager_t* eager,
                           const rn_device_t* device, rn_eager_handle_t** out) {
  *out = find_part(special, eager, device);
  if (*out) {
    rn_eager_handle_retain(*out);
    return RN_OK;
  }
  return rn_invalid_argument("A packed handle has no value on device %.*s",
                             RN_STR_ARGS(device->name));
}

rn_status_t rn_eager_handle_copy_to_name(rn_eager_handle_t* handle, rn_eager_t* eager,
                                         rn_str_t name, rn_eager_handle_t** out) {
  *out = NULL;
  rn_eager_custom_entry_t* to = find(eager, name);
  if (handle->special) RN_RETURN_IF_ERROR(rn_eager_handle_wait(handle));
  const rn_eager_custom_entry_t* from = handle->special ? handle->special->device : NULL;
  if (to && to == from) {
    rn_eager_handle_retain(handle);
    *out = handle;
    return RN_OK;
  }
  if (to) return to->device.copy_to(to->device.self, eager, handle, out);
  rn_device_t* device = NULL;
  RN_RETURN_IF_ERROR(rn_eager_device(eager, name, &device));
  if (from) return from->device.copy_from(from->device.self, eager, handle, device->name.data, out);
  if (handle->special) {
    rn_eager_handle_t* part = find_part(handle->special, eager, device);
    part = part ? part : handle->special->parts[0];
    return rn_eager_handle_copy_to_name(part, eager, name, out);
  }
  return rn_eager_handle_copy_to(handle, eager, device, out);
}

rn_status_t rn_eager_handle_to_host(rn_eager_handle_t* handle, rn_eager_handle_t** out) {
  rn_eager_t* eager = handle->special->eager;
  return rn_eager_handle_copy_to_name(handle, eager, eager->cpu->name, out);
}

// The shape of a value that may be packed: an ordinary one, or one of another task.
static rn_status_t shape_of(rn_eager_handle_t* handle, int* out_rank, int64_t* out_dims) {
  const rn_eager_foreign_t* foreign = rn_eager_handle_custom(handle);
  const rn_tensor_t* value = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_wait(handle));
  if (!foreign) RN_RETURN_IF_ERROR(rn_eager_handle_tensor(handle, &value));
  if (foreign) RN_RETURN_IF_ERROR(foreign->rank(foreign->self, out_rank));
  if (value) *out_rank = value->rank;
  for (int i = 0; i < *out_rank; ++i) {
    if (foreign) RN_RETURN_IF_ERROR(foreign->dim(foreign->self, i, &out_dims[i]));
    if (value) out_dims[i] = rn_tensor_dim(value, i);
  }
  return RN_OK;
}

static bool is_remote(const rn_eager_handle_t* handle) {
  return handle->special && handle->special->device && handle->special->device->device.is_remote;
}

static rn_status_t check_parts(rn_eager_handle_t** handles, int32_t count) {
  int64_t first[RN_MAX_RANK], dims[RN_MAX_RANK];
  int first_rank = 0, rank = 0;
  for (int32_t i = 0; i < count; ++i) {
    if (handles[i]->special && !is_remote(handles[i]))
      return rn_invalid_argument("Handle %d to pack lies on %s", i,
                                 rn_eager_handle_device(handles[i]));
    if (handles[i]->dtype != handles[0]->dtype)
      return rn_invalid_argument("Handles to pack have types %s and %s",
                                 rn_dtype_name(handles[0]->dtype),
                                 rn_dtype_name(handles[i]->dtype));
    RN_RETURN_IF_ERROR(shape_of(handles[i], i ? &rank : &first_rank, i ? dims : first));
    if (i && (rank != first_rank || memcmp(dims, first, (size_t)rank * sizeof *dims) != 0))
      return rn_invalid_argument("Handles to pack have different shapes");
  }
  return RN_OK;
}

rn_status_t rn_eager_pack(rn_eager_t* eager, rn_eager_handle_t** handles, int32_t count,
                          rn_eager_handle_t** out) {
  *out = NULL;
  if (count < 1) return rn_invalid_argument("Handles should not be empty.");
  const rn_eager_custom_entry_t* custom = NULL;
  for (int32_t i = 0; i < count && !custom; ++i)
    if (!is_remote(handles[i])) custom = handles[i]->special ? handles[i]->special->device : NULL;
  if (custom && custom->device.pack)
    return custom->device.pack(custom->device.self, eager, handles, count, out);
  if (custom) return rn_unimplemented("The device %s cannot pack handles", custom->name);
  RN_RETURN_IF_ERROR(check_parts(handles, count));
  RN_RETURN_IF_ERROR(make_special(eager, handles[0]->dtype, NULL, out));
  rn_eager_special_t* special = (*out)->special;
  rn_status_t status = RN_NEW_ARRAY(eager->allocator, (size_t)count, &special->parts);
  if (!rn_ok(status)) {
    rn_eager_handle_release(*out);
    *out = NULL;
    return status;
  }
  for (int32_t i = 0; i < count; ++i) {
    rn_eager_handle_retain(handles[i]);
    special->parts[special->part_count++] = handles[i];
  }
  return RN_OK;
}

// --- Execution

// Where inputs are is known when the calls that make them have ended.
static rn_status_t wait_for_inputs(const rn_eager_op_t* op) {
  for (int32_t i = 0; op->has_special && i < op->input_count; ++i)
    if (op->inputs[i]->special && op->inputs[i]->dtype == RN_RESOURCE)
      RN_RETURN_IF_ERROR(rn_eager_handle_wait(op->inputs[i]));
  return RN_OK;
}

// The only custom device that holds inputs of |op|; NULL if none does.
static rn_status_t device_of_inputs(const rn_eager_op_t* op, const rn_eager_custom_entry_t** out) {
  *out = NULL;
  for (int32_t i = 0; op->has_special && i < op->input_count; ++i) {
    const rn_eager_special_t* special = op->inputs[i]->special;
    if (!special || !special->device || special->device == *out) continue;
    if (special->device->device.is_remote) continue;
    if (*out)
      return rn_invalid_argument(
          "If an operation has one of its inputs in a custom device, then all inputs should be on "
          "that same custom device or another physical device. Operation %s has one input in "
          "custom device %s and at least one input in a different custom device %s",
          op->def->name, (*out)->name, special->device->name);
    *out = special->device;
  }
  return RN_OK;
}

// An op runs on the task that holds its resource. A function that names another task stays there.
static void remote_of_resources(const rn_eager_op_t* op, const rn_eager_custom_entry_t** out) {
  for (int32_t i = 0; op->has_special && i < op->input_count; ++i) {
    const rn_eager_special_t* special = op->inputs[i]->special;
    if (op->inputs[i]->dtype != RN_RESOURCE || !special || !special->device) continue;
    if (!special->device->device.is_remote) continue;
    *out = special->device;
    return;
  }
}

// The custom device that runs |op|: that of its resources, otherwise the one it names, otherwise,
// if it names none, that of its inputs.
static rn_status_t custom_of(const rn_eager_op_t* op, const rn_eager_custom_entry_t** out) {
  const rn_eager_custom_entry_t* of_inputs = NULL;
  *out = op->device_name.size ? find(op->eager, rn_strbuf_view(&op->device_name)) : NULL;
  bool is_call = op->function || op->def->role == RN_ROLE_CALL;
  // The cluster decides where functions run that name no other task.
  if (!(is_call && ((*out && (*out)->device.is_remote) || op->eager->has_cluster)))
    remote_of_resources(op, out);
  RN_RETURN_IF_ERROR(device_of_inputs(op, &of_inputs));
  if (!of_inputs) return RN_OK;
  for (int32_t i = 0; i < op->input_count; ++i) {
    if (op->inputs[i]->dtype != RN_RESOURCE) continue;
    if (rn_eager_handle_custom(op->inputs[i])) *out = of_inputs;
    return RN_OK;
  }
  if (op->device_name.size == 0) *out = of_inputs;
  return RN_OK;
}

static rn_status_t make_ordinary(rn_eager_op_t* op) {
  rn_device_t* device = NULL;
  RN_RETURN_IF_ERROR(rn_eager_device(op->eager, rn_strbuf_view(&op->device_name), &device));
  for (int32_t i = 0; i < op->input_count; ++i) {
    const rn_eager_special_t* special = op->inputs[i]->special;
    if (!special) continue;
    RN_RETURN_IF_ERROR(rn_eager_handle_wait(op->inputs[i]));
    rn_eager_handle_t* ordinary = NULL;
    const rn_eager_custom_entry_t* from = special->device;
    RN_RETURN_IF_ERROR(from ? from->device.copy_from(from->device.self, op->eager, op->inputs[i],
                                                     device->name.data, &ordinary)
                            : part_on(special, op->eager, device, &ordinary));
    rn_eager_handle_release(op->inputs[i]);
    op->inputs[i] = ordinary;
  }
  op->has_special = false;
  return RN_OK;
}

rn_status_t rn_eager_execute_special(rn_eager_op_t* op, rn_eager_handle_t** outputs,
                                     int32_t* inout_count, bool* out_done) {
  const rn_eager_custom_entry_t* entry = NULL;
  *out_done = false;
  RN_RETURN_IF_ERROR(wait_for_inputs(op));
  RN_RETURN_IF_ERROR(custom_of(op, &entry));
  if (entry) {
    *out_done = true;
    return entry->device.execute(entry->device.self, op, outputs, inout_count);
  }
  if (op->eager->has_cluster && (op->function || op->def->role == RN_ROLE_CALL)) {
    RN_RETURN_IF_ERROR(
        op->eager->cluster.call(op->eager->cluster.self, op, outputs, inout_count, out_done));
    if (*out_done) return RN_OK;
  }
  return op->has_special ? make_ordinary(op) : RN_OK;
}

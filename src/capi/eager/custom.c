// Custom devices: calls the client's callbacks, and makes handles of their values.
#include "capi/eager/eager.h"

// A device as it was registered.
typedef struct custom_device_t {
  TFE_CustomDevice callbacks;
  void* info;
} custom_device_t;

// Takes the status that the client's callback has set.
static rn_status_t taken(TF_Status* status) {
  rn_status_t outcome = status->rep;
  status->rep = RN_OK;
  return outcome;
}

// The client's copy, or its error.
static rn_status_t made(TF_Status* status, TFE_TensorHandle* handle, rn_eager_handle_t** out) {
  rn_status_t outcome = taken(status);
  if (rn_ok(outcome) && !handle) outcome = rn_internal("The custom device returned no handle");
  if (!rn_ok(outcome) && handle) TFE_DeleteTensorHandle(handle);
  *out = rn_ok(outcome) ? rn_capi_handle(handle) : NULL;
  return outcome;
}

static rn_status_t copy_to(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                           rn_eager_handle_t** out) {
  custom_device_t* device = self;
  TF_Status status = {0};
  TFE_TensorHandle* copy = device->callbacks.copy_tensor_to_device(
      (TFE_Context*)eager, (TFE_TensorHandle*)handle, &status, device->info);
  return made(&status, copy, out);
}

static rn_status_t copy_from(void* self, rn_eager_t* eager, rn_eager_handle_t* handle,
                             const char* name, rn_eager_handle_t** out) {
  custom_device_t* device = self;
  TF_Status status = {0};
  TFE_TensorHandle* copy = device->callbacks.copy_tensor_from_device(
      (TFE_Context*)eager, (TFE_TensorHandle*)handle, name, &status, device->info);
  return made(&status, copy, out);
}

static rn_status_t execute(void* self, rn_eager_op_t* op, rn_eager_handle_t** outputs,
                           int32_t* inout_count) {
  custom_device_t* device = self;
  TF_Status status = {0};
  int count = *inout_count;
  device->callbacks.execute((const TFE_Op*)op, &count, (TFE_TensorHandle**)outputs, &status,
                            device->info);
  rn_status_t outcome = taken(&status);
  if (rn_ok(outcome)) *inout_count = count;
  return outcome;
}

static rn_status_t pack(void* self, rn_eager_t* eager, rn_eager_handle_t** handles, int32_t count,
                        rn_eager_handle_t** out) {
  custom_device_t* device = self;
  TF_Status status = {0};
  TFE_TensorHandle* packed = device->callbacks.pack(
      (TFE_Context*)eager, (TFE_TensorHandle**)handles, count, &status, device->info);
  return made(&status, packed, out);
}

static void destroy(void* self) {
  custom_device_t* device = self;
  if (device->callbacks.delete_device) device->callbacks.delete_device(device->info);
  RN_FREE(rn_capi_allocator(), device);
}

static rn_status_t add_device(TFE_Context* ctx, const TFE_CustomDevice* callbacks, const char* name,
                              void* info) {
  if (!ctx) return rn_capi_null("TFE_RegisterCustomDevice", "ctx");
  if (!name) return rn_capi_null("TFE_RegisterCustomDevice", "device_name");
  if (!callbacks->copy_tensor_to_device || !callbacks->copy_tensor_from_device ||
      !callbacks->execute)
    return rn_invalid_argument("A custom device needs functions to copy and to execute");
  custom_device_t* device = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &device));
  *device = (custom_device_t){*callbacks, info};
  rn_eager_custom_device_t own = {.self = device,
                                  .copy_to = copy_to,
                                  .copy_from = copy_from,
                                  .execute = execute,
                                  .pack = callbacks->pack ? pack : NULL,
                                  .destroy = destroy};
  rn_status_t status = rn_eager_add_custom_device(rn_capi_eager(ctx), rn_str(name), &own);
  if (!rn_ok(status)) RN_FREE(rn_capi_allocator(), device);
  return status;
}

void TFE_RegisterCustomDevice(TFE_Context* ctx, TFE_CustomDevice device, const char* device_name,
                              void* device_info, TF_Status* status) {
  rn_capi_set(status, add_device(ctx, &device, device_name, device_info));
}

bool TFE_IsCustomDevice(TFE_Context* ctx, const char* device_name) {
  return ctx && device_name &&
         rn_eager_has_custom_device(rn_capi_eager(ctx), rn_str(device_name)) &&
         !rn_eager_is_remote_device(rn_capi_eager(ctx), rn_str(device_name));
}

// --- Handles

typedef struct custom_value_t {
  TFE_CustomDeviceTensorHandle methods;
  void* data;
} custom_value_t;

void* rn_capi_custom_data(const rn_eager_foreign_t* value) {
  return ((const custom_value_t*)value->self)->data;
}

static rn_status_t value_rank(void* self, int* out) {
  const custom_value_t* value = self;
  TF_Status status = {0};
  *out = value->methods.num_dims(value->data, &status);
  return taken(&status);
}

static rn_status_t value_dim(void* self, int axis, int64_t* out) {
  const custom_value_t* value = self;
  TF_Status status = {0};
  *out = value->methods.dim(value->data, axis, &status);
  return taken(&status);
}

static void value_destroy(void* self) {
  custom_value_t* value = self;
  if (value->methods.deallocator) value->methods.deallocator(value->data);
  RN_FREE(rn_capi_allocator(), value);
}

static rn_status_t make_handle(TFE_Context* ctx, const char* name, TF_DataType dtype, void* data,
                               const TFE_CustomDeviceTensorHandle* methods,
                               rn_eager_handle_t** out) {
  if (!ctx) return rn_capi_null("TFE_NewCustomDeviceTensorHandle", "ctx");
  if (!name) return rn_capi_null("TFE_NewCustomDeviceTensorHandle", "device_name");
  if (!methods->num_dims || !methods->dim)
    return rn_invalid_argument("A handle of a custom device needs functions for its shape");
  if (!rn_dtype_is_valid((rn_dtype_t)dtype)) return rn_invalid_argument("%d is no type", dtype);
  custom_value_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(rn_capi_allocator(), &value));
  *value = (custom_value_t){*methods, data};
  rn_eager_foreign_t custom = {value, value_rank, value_dim, value_destroy};
  rn_status_t status =
      rn_eager_custom_handle(rn_capi_eager(ctx), rn_str(name), (rn_dtype_t)dtype, &custom, out);
  if (!rn_ok(status)) RN_FREE(rn_capi_allocator(), value);
  return status;
}

// A failed call frees |data| too.
TFE_TensorHandle* TFE_NewCustomDeviceTensorHandle(TFE_Context* ctx, const char* device_name,
                                                  TF_DataType dtype, void* data,
                                                  TFE_CustomDeviceTensorHandle methods,
                                                  TF_Status* status) {
  rn_eager_handle_t* handle = NULL;
  rn_capi_set(status, make_handle(ctx, device_name, dtype, data, &methods, &handle));
  if (!handle && methods.deallocator) methods.deallocator(data);
  return (TFE_TensorHandle*)handle;
}

static rn_status_t pack_handles(TFE_Context* ctx, TFE_TensorHandle** handles,
                                const int* num_handles, rn_eager_handle_t** out) {
  if (!ctx) return rn_capi_null("TFE_CreatePackedTensorHandle", "ctx");
  if (!handles || !num_handles) return rn_capi_null("TFE_CreatePackedTensorHandle", "handles");
  for (int i = 0; i < *num_handles; ++i)
    if (!handles[i]) return rn_capi_null("TFE_CreatePackedTensorHandle", "handles[i]");
  return rn_eager_pack(rn_capi_eager(ctx), (rn_eager_handle_t**)handles, *num_handles, out);
}

TFE_TensorHandle* TFE_CreatePackedTensorHandle(TFE_Context* ctx, TFE_TensorHandle** handles,
                                               int* num_handles, TF_Status* status) {
  rn_eager_handle_t* packed = NULL;
  rn_capi_set(status, pack_handles(ctx, handles, num_handles, &packed));
  return (TFE_TensorHandle*)packed;
}

// Tensor handles of eager execution.
#include "capi/eager/eager.h"
#include "device/device.h"
#include "tensor/variant.h"
#include "tensorflow/c/c_api_experimental.h"

static rn_status_t new_handle(const TF_Tensor* t, rn_eager_handle_t** out) {
  if (!t) return rn_capi_null("TFE_NewTensorHandle", "t");
  if (!rn_tensor_is_set(&t->tensor)) return rn_invalid_argument("The tensor has no value");
  return rn_eager_handle_create(&t->tensor, out);
}

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  rn_eager_handle_t* handle = NULL;
  rn_capi_set(status, new_handle(t, &handle));
  return (TFE_TensorHandle*)handle;
}

TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx, TF_Tensor* t, TF_Status* status) {
  (void)ctx;
  return TFE_NewTensorHandle(t, status);
}

static rn_status_t scalar_handle(TF_DataType dtype, const void* data, size_t length,
                                 rn_eager_handle_t** out) {
  if (!data) return rn_capi_null("TFE_NewTensorHandleFromScalar", "data");
  if (!rn_dtype_is_valid((rn_dtype_t)dtype) || !rn_dtype_is_plain((rn_dtype_t)dtype) ||
      rn_dtype_size((rn_dtype_t)dtype) != length)
    return rn_invalid_argument("%zu bytes are no scalar of type %d", length, (int)dtype);
  rn_tensor_t tensor = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_create(rn_capi_allocator(), (rn_dtype_t)dtype, (rn_shape_t){0, NULL}, &tensor));
  memcpy(tensor.data, data, length);
  rn_status_t status = rn_eager_handle_create(&tensor, out);
  rn_tensor_clear(&tensor);
  return status;
}

TFE_TensorHandle* TFE_NewTensorHandleFromScalar(TF_DataType data_type, void* data, size_t len,
                                                TF_Status* status) {
  rn_eager_handle_t* handle = NULL;
  rn_capi_set(status, scalar_handle(data_type, data, len, &handle));
  return (TFE_TensorHandle*)handle;
}

void TFE_DeleteTensorHandle(TFE_TensorHandle* h) { rn_eager_handle_release(rn_capi_handle(h)); }

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) {
  return h ? (TF_DataType)rn_eager_handle_dtype(rn_capi_handle(h)) : (TF_DataType)0;
}

static rn_status_t no_handle(void) { return rn_invalid_argument("Invalid handle"); }

// The value of |h| in the memory of its device, or NULL with the error in |status|.
static const rn_tensor_t* value_of(TFE_TensorHandle* h, TF_Status* status) {
  const rn_tensor_t* value = NULL;
  bool ok = rn_capi_ok(status, h ? rn_eager_handle_tensor(rn_capi_handle(h), &value) : no_handle());
  return ok ? value : NULL;
}

// The custom-device value of |h|, whose shape only the client knows; NULL for other handles.
static const rn_eager_foreign_t* custom_of(TFE_TensorHandle* h) {
  rn_eager_handle_t* const* parts = NULL;
  if (!h) return NULL;
  int32_t count = rn_eager_handle_parts(rn_capi_handle(h), &parts);
  return rn_eager_handle_custom(count ? parts[0] : rn_capi_handle(h));
}

// Waits until its shape is known; false, with |status|, if it never will be.
static bool is_ready(TFE_TensorHandle* h, TF_Status* status) {
  return rn_capi_ok(status, rn_eager_handle_wait(rn_capi_handle(h)));
}

static int64_t custom_elements(const rn_eager_foreign_t* custom, TF_Status* status) {
  int rank = 0;
  int64_t count = 1, dim = 0;
  rn_status_t outcome = custom->rank(custom->self, &rank);
  for (int i = 0; i < rank && rn_ok(outcome); ++i) {
    outcome = custom->dim(custom->self, i, &dim);
    if (rn_ok(outcome) && !rn_mul_i64_ok(count, dim, &count))
      outcome = rn_invalid_argument("The value of a custom device has too many elements");
  }
  return rn_capi_ok(status, outcome) ? count : -1;
}

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  const rn_eager_foreign_t* custom = custom_of(h);
  int rank = -1;
  if (custom && !is_ready(h, status)) return -1;
  if (custom) return rn_capi_ok(status, custom->rank(custom->self, &rank)) ? rank : -1;
  const rn_tensor_t* value = value_of(h, status);
  return value ? value->rank : -1;
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  if (custom_of(h) && !is_ready(h, status)) return -1;
  if (custom_of(h)) return custom_elements(custom_of(h), status);
  const rn_tensor_t* value = value_of(h, status);
  return value ? value->count : -1;
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  const rn_eager_foreign_t* custom = custom_of(h);
  int64_t dim = -1;
  if (custom && !is_ready(h, status)) return -1;
  if (custom) return rn_capi_ok(status, custom->dim(custom->self, dim_index, &dim)) ? dim : -1;
  const rn_tensor_t* value = value_of(h, status);
  if (!value) return -1;
  if (dim_index >= 0 && dim_index < value->rank) return rn_tensor_dim(value, dim_index);
  rn_capi_set(status, rn_invalid_argument("Dimension %d of a tensor of %d dimensions", dim_index,
                                          value->rank));
  return -1;
}

const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  rn_capi_set(status, h ? RN_OK : no_handle());
  return h ? rn_eager_handle_device(rn_capi_handle(h)) : NULL;
}

const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  rn_capi_set(status, h ? RN_OK : no_handle());
  return h ? rn_eager_handle_backing_device(rn_capi_handle(h)) : NULL;
}

const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status) {
  rn_capi_set(status, h ? RN_OK : no_handle());
  return h ? rn_eager_handle_device_type(rn_capi_handle(h)) : NULL;
}

int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status) {
  rn_capi_set(status, h ? RN_OK : no_handle());
  rn_device_spec_t spec;
  if (!h || !rn_device_spec_parse(rn_str(rn_eager_handle_device(rn_capi_handle(h))), &spec))
    return -1;
  return spec.index;
}

void TFE_TensorHandleGetStatus(TFE_TensorHandle* h, TF_Status* status) {
  rn_capi_set(status, h ? rn_eager_handle_status(rn_capi_handle(h)) : no_handle());
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  rn_capi_set(status, h ? RN_OK : no_handle());
  if (h) rn_eager_handle_retain(rn_capi_handle(h));
  return h;
}

// For a handle on a custom device, the copy that the device makes on the first CPU.
TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  TF_Tensor* tensor = NULL;
  rn_eager_handle_t* copy = NULL;
  if (custom_of(h)) {
    if (!rn_capi_ok(status, rn_eager_handle_to_host(rn_capi_handle(h), &copy))) return NULL;
    h = (TFE_TensorHandle*)copy;
  }
  const rn_tensor_t* value = NULL;
  rn_status_t outcome = h ? rn_eager_handle_value(rn_capi_handle(h), &value) : no_handle();
  if (rn_ok(outcome)) outcome = rn_capi_tensor_keep(value, &tensor);
  if (tensor && tensor->tensor.dtype == RN_VARIANT) {
    outcome = rn_variants_to_host(&tensor->tensor, 0);  // the tensor may outlive the context
    if (!rn_ok(outcome)) {
      TF_DeleteTensor(tensor);
      tensor = NULL;
    }
  }
  rn_capi_set(status, outcome);
  rn_eager_handle_release(copy);
  return tensor;
}

static rn_status_t copy_to_device(TFE_TensorHandle* h, TFE_Context* ctx, const char* name,
                                  rn_eager_handle_t** out) {
  if (!h) return no_handle();
  if (!ctx) return rn_capi_null("TFE_TensorHandleCopyToDevice", "ctx");
  rn_eager_t* eager = rn_capi_eager(ctx);
  rn_device_t* device = NULL;
  if (!rn_eager_has_custom_device(eager, rn_str(name))) {
    rn_status_t status = rn_eager_device(eager, rn_str(name), &device);
    if (!rn_ok(status)) {
      rn_status_free(status);
      return rn_invalid_argument("%s unknown device.", name ? name : "");
    }
  }
  return rn_eager_handle_copy_to_name(rn_capi_handle(h), eager, rn_str(name), out);
}

TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* ctx,
                                               const char* device_name, TF_Status* status) {
  rn_eager_handle_t* copy = NULL;
  rn_capi_set(status, copy_to_device(h, ctx, device_name, &copy));
  return (TFE_TensorHandle*)copy;
}

void* TFE_TensorHandleDevicePointer(TFE_TensorHandle* h, TF_Status* status) {
  if (custom_of(h)) {
    rn_capi_set(status, RN_OK);
    return rn_capi_custom_data(custom_of(h));
  }
  const rn_tensor_t* value = value_of(h, status);
  return value ? value->data : NULL;
}

size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle* h, TF_Status* status) {
  const rn_tensor_t* value = value_of(h, status);
  return value ? rn_tensor_bytes(value) : 0;
}

TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context* ctx, const char* device_name, TF_DataType dtype, const int64_t* dims, int num_dims,
    void* data, size_t len, void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg, TF_Status* status) {
  rn_device_t* device = NULL;
  rn_eager_handle_t *handle = NULL, *placed = NULL;
  rn_status_t outcome =
      ctx ? rn_eager_device(rn_capi_eager(ctx), rn_str(device_name), &device) : RN_CAPI_NULL("ctx");
  // The host must not copy the bytes of another device, as it does with those at an odd address.
  bool is_far = rn_ok(outcome) && !device->is_host;
  if (is_far && ((uintptr_t)data % RN_ALIGN || !rn_dtype_is_plain((rn_dtype_t)dtype)))
    outcome = rn_invalid_argument("Memory of %s at %p cannot be that of a tensor of type %d",
                                  device->name.data, data, (int)dtype);
  if (!rn_ok(outcome)) {
    rn_capi_set(status, outcome);
    if (deallocator) deallocator(data, len, deallocator_arg);
    return NULL;
  }
  TF_Tensor* tensor = TF_NewTensor(dtype, dims, num_dims, data, len, deallocator, deallocator_arg);
  outcome =
      tensor ? RN_OK : rn_invalid_argument("The memory is not that of a tensor of this shape");
  if (rn_ok(outcome) && is_far)
    outcome = rn_eager_handle_over(&tensor->tensor, rn_capi_eager(ctx), device, &placed);
  else if (rn_ok(outcome))
    outcome = new_handle(tensor, &handle);
  if (rn_ok(outcome) && handle)
    outcome = rn_eager_handle_copy_to(handle, rn_capi_eager(ctx), device, &placed);
  rn_eager_handle_release(handle);
  TF_DeleteTensor(tensor);
  rn_capi_set(status, outcome);
  return (TFE_TensorHandle*)placed;
}

TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype, const int64_t* dims,
                                  int num_dims, TF_Status* status) {
  rn_tensor_t tensor = {0};
  TF_Tensor* handle = NULL;
  rn_shape_t shape;
  rn_status_t outcome = ctx ? rn_capi_shape(dims, num_dims, &shape) : RN_CAPI_NULL("ctx");
  if (rn_ok(outcome) && (!rn_shape_is_full(shape) || !rn_dtype_is_valid((rn_dtype_t)dtype)))
    outcome = rn_invalid_argument("A tensor needs a type and a shape that is fully known");
  if (rn_ok(outcome))
    outcome = rn_tensor_create(rn_capi_allocator(), (rn_dtype_t)dtype, shape, &tensor);
  if (rn_ok(outcome)) outcome = rn_capi_tensor_wrap(&tensor, &handle);
  rn_capi_set(status, outcome);
  return handle;
}

// --- Tensor layout on a device: always the host's.

struct TFE_TensorDebugInfo {
  int rank;
  int64_t dims[RN_MAX_RANK];
};

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  const rn_tensor_t* value = value_of(h, status);
  TFE_TensorDebugInfo* info = NULL;
  if (!value || !rn_capi_ok(status, RN_NEW(rn_capi_allocator(), &info))) return NULL;
  info->rank = value->rank;
  for (int i = 0; i < info->rank; ++i) info->dims[i] = rn_tensor_dim(value, i);
  return info;
}

void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) {
  RN_FREE(rn_capi_allocator(), debug_info);
}

int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) {
  return debug_info ? debug_info->rank : 0;
}

int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info, int dim_index) {
  bool has = debug_info && dim_index >= 0 && dim_index < debug_info->rank;
  return has ? debug_info->dims[dim_index] : 0;
}

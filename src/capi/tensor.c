// TF_Tensor: dtypes, and tensors over bytes of the client or of the library.
#include "tensor/tensor.h"

#include <stdatomic.h>

#include "capi/internal.h"
#include "device/part.h"
#include "proto/tensor.pb.h"
#include "runnel/session.h"
#include "tensor/tensor_proto.h"

// From here on, where bytes are in host memory decides how fast a GPU copies them.
#define LARGE ((size_t)64 << 10)

size_t TF_DataTypeSize(TF_DataType dt) {
  return (int)dt < RN_REF_OFFSET && rn_dtype_is_plain((rn_dtype_t)dt)
             ? rn_dtype_size((rn_dtype_t)dt)
             : 0;
}

size_t TF_TensorDefaultAlignment(void) { return RN_ALIGN; }

rn_status_t rn_capi_shape(const int64_t* dims, int num_dims, rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  if (num_dims == RN_UNKNOWN) return RN_OK;
  if (num_dims < 0 || num_dims > RN_MAX_RANK) {
    return rn_invalid_argument("Shape has %d dimensions; at most %d are allowed", num_dims,
                               RN_MAX_RANK);
  }
  if (num_dims > 0 && !dims) return rn_invalid_argument("The dimensions of a shape are missing");
  for (int i = 0; i < num_dims; ++i) {
    if (dims[i] < RN_UNKNOWN) {
      return rn_invalid_argument("Dimension %d of a shape is %lld; it must be >= -1", i,
                                 (long long)dims[i]);
    }
  }
  *out = (rn_shape_t){num_dims, dims};
  return RN_OK;
}

// A buffer over the client's bytes.
typedef struct client_buffer_t {
  rn_buffer_t buffer;
  void (*deallocator)(void* data, size_t len, void* arg);
  void* arg;
  rn_allocator_t allocator;
} client_buffer_t;

static void client_buffer_destroy(rn_buffer_t* buffer) {
  client_buffer_t* client = (client_buffer_t*)buffer;
  if (client->deallocator) client->deallocator(buffer->data, buffer->size, client->arg);
  RN_FREE(client->allocator, client);
}

static bool holds_objects(TF_DataType dtype) { return dtype == TF_RESOURCE || dtype == TF_VARIANT; }

// Sets type and shape of a new handle; NULL if |len| bytes are too few. Only strings and objects in
// the library's own memory may have fewer.
static TF_Tensor* new_handle(TF_DataType dtype, const int64_t* dims, int num_dims, size_t len,
                             bool is_own) {
  if (num_dims < 0 || num_dims > RN_MAX_RANK || (num_dims > 0 && !dims)) return NULL;
  if ((holds_objects(dtype) && !is_own) || (int)dtype > UINT8_MAX) return NULL;
  TF_Tensor* handle = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &handle);
  if (rn_ok(status)) {
    status = rn_tensor_init(&handle->tensor, (rn_dtype_t)dtype, (rn_shape_t){num_dims, dims});
    handle->length = len;
  }
  bool may_be_short = is_own && (dtype == TF_STRING || holds_objects(dtype));
  if (rn_ok(status) && (may_be_short || rn_tensor_bytes(&handle->tensor) <= len)) return handle;
  rn_status_free(status);
  TF_DeleteTensor(handle);
  return NULL;
}

// The readable bytes: the larger of what the client asked for and what the elements take. Clients
// that lay out short strings themselves ask for less; the rest is empty strings.
static size_t room(const TF_Tensor* handle) {
  size_t bytes = rn_tensor_bytes(&handle->tensor);
  return bytes > handle->length ? bytes : handle->length;
}

// Large tensors of a process that uses a GPU are probably fed to it. False: other memory will do.
static bool transfer_bytes(TF_Tensor* handle, size_t bytes) {
  rn_tensor_t* tensor = &handle->tensor;
  rn_allocator_t memory = bytes < LARGE ? (rn_allocator_t){0} : rn_cuda_part_transfer_memory();
  if (!memory.fn) return false;
  rn_status_t status = rn_buffer_create(memory, tensor->dtype, bytes, &tensor->buffer);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok;
}

static bool own_bytes(TF_Tensor* handle) {
  rn_tensor_t* tensor = &handle->tensor;
  bool is_apart = holds_objects((TF_DataType)tensor->dtype);
  size_t bytes;  // at least one, so that the address is not NULL
  rn_status_t status = RN_OK;
  if (!rn_add_ok(handle->length, 1, &bytes)) return false;
  if (is_apart) status = rn_alloc_zeroed(rn_capi_allocator(), bytes, &handle->scratch);
  if (rn_ok(status) && (is_apart || !transfer_bytes(handle, room(handle))))
    status = rn_buffer_create(rn_capi_allocator(), tensor->dtype,
                              is_apart ? rn_tensor_bytes(tensor) : room(handle), &tensor->buffer);
  if (rn_ok(status)) {
    tensor->data = tensor->buffer->data;
    return true;
  }
  rn_status_free(status);
  return false;
}

// Takes bytes that kernels can use in place without a copy. Strings are never copied, because a
// client may fill them later.
static bool client_bytes(TF_Tensor* handle, void* data,
                         void (*deallocator)(void* data, size_t len, void* arg), void* arg) {
  client_buffer_t* client = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &client);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return false;
  }
  atomic_init(&client->buffer.refs, 1);
  client->buffer.dtype = handle->tensor.dtype;
  client->buffer.size = handle->length;
  client->buffer.data = data;
  client->buffer.is_lent = true;
  client->buffer.destroy = client_buffer_destroy;
  client->deallocator = deallocator;
  client->arg = arg;
  client->allocator = rn_capi_allocator();
  handle->tensor.buffer = &client->buffer;
  handle->tensor.data = data;
  return true;
}

// A tensor over |data|, which is copied unless it is aligned to |alignment|.
static TF_Tensor* new_over(TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
                           size_t len, void (*deallocator)(void* data, size_t len, void* arg),
                           void* deallocator_arg, size_t alignment) {
  TF_Tensor* handle = data || len == 0 ? new_handle(dtype, dims, num_dims, len, false) : NULL;
  bool is_kept = false;
  if (handle) {
    bool ok;
    if (dtype != TF_STRING && (uintptr_t)data % alignment != 0) {
      ok = own_bytes(handle);
      if (ok && len) memcpy(handle->tensor.data, data, len);
    } else {
      ok = is_kept = client_bytes(handle, data, deallocator, deallocator_arg);
    }
    if (!ok) {
      TF_DeleteTensor(handle);
      handle = NULL;
    }
  }
  if (!is_kept && deallocator) deallocator(data, len, deallocator_arg);
  return handle;
}

TF_Tensor* TF_NewTensor(TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
                        size_t len, void (*deallocator)(void* data, size_t len, void* arg),
                        void* deallocator_arg) {
  return new_over(dtype, dims, num_dims, data, len, deallocator, deallocator_arg, RN_ALIGN);
}

// Kernels accept any address aligned for an element, because they also work on parts of tensors.
RN_API TF_Tensor* rn_tensor_over(TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
                                 size_t len, void (*deallocator)(void* data, size_t len, void* arg),
                                 void* deallocator_arg) {
  return new_over(dtype, dims, num_dims, data, len, deallocator, deallocator_arg, 16);
}

TF_Tensor* TF_AllocateTensor(TF_DataType dtype, const int64_t* dims, int num_dims, size_t len) {
  TF_Tensor* handle = new_handle(dtype, dims, num_dims, len, true);
  if (handle && !own_bytes(handle)) {
    TF_DeleteTensor(handle);
    return NULL;
  }
  return handle;
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  return tensor && rn_tensor_is_exclusive(&tensor->tensor) ? tensor : NULL;
}

static void drop_scratch(TF_Tensor* tensor) {
  if (tensor->scratch) rn_free(rn_capi_allocator(), tensor->scratch, tensor->length + 1);
  tensor->scratch = NULL;
}

void TF_DeleteTensor(TF_Tensor* tensor) {
  if (!tensor) return;
  drop_scratch(tensor);
  rn_tensor_clear(&tensor->tensor);
  RN_FREE(rn_capi_allocator(), tensor);
}

rn_status_t rn_capi_tensor_wrap(rn_tensor_t* tensor, TF_Tensor** out) {
  rn_status_t status = rn_alloc(rn_capi_allocator(), sizeof **out, (void**)out);
  if (!rn_ok(status)) {
    rn_tensor_clear(tensor);
    *out = NULL;
    return status;
  }
  (*out)->tensor = *tensor;
  (*out)->length = rn_tensor_bytes(tensor);
  (*out)->scratch = NULL;
  return RN_OK;
}

rn_status_t rn_capi_tensor_keep(const rn_tensor_t* tensor, TF_Tensor** out) {
  rn_tensor_t kept = {0};
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_keep(tensor, rn_capi_allocator(), &kept));
  return rn_capi_tensor_wrap(&kept, out);
}

TF_DataType TF_TensorType(const TF_Tensor* tensor) {
  return (TF_DataType)(tensor ? tensor->tensor.dtype : RN_INVALID);
}

void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) {
  rn_tensor_t shaped = {0};
  if (!tensor || num_dims < 0 || num_dims > RN_MAX_RANK || (num_dims > 0 && !dims)) return;
  rn_status_t status = rn_tensor_init(&shaped, tensor->tensor.dtype, (rn_shape_t){num_dims, dims});
  // Refuses a shape that the buffer is too small for.
  if (rn_ok(status) && rn_tensor_bytes(&shaped) <= room(tensor)) {
    shaped.buffer = tensor->tensor.buffer;
    shaped.data = tensor->tensor.data;
    tensor->tensor.buffer = NULL;
    rn_tensor_clear(&tensor->tensor);
    tensor->tensor = shaped;
    return;
  }
  if (!rn_ok(status)) rn_status_free(status);
  rn_tensor_clear(&shaped);
}

// A NULL tensor, the result of a failed call, has no dims, so loops over them end at once.
int TF_NumDims(const TF_Tensor* tensor) { return tensor ? tensor->tensor.rank : 0; }

int64_t TF_Dim(const TF_Tensor* tensor, int dim_index) {
  if (!tensor || dim_index < 0 || dim_index >= tensor->tensor.rank) return 0;
  return rn_tensor_dim(&tensor->tensor, dim_index);
}

size_t TF_TensorByteSize(const TF_Tensor* tensor) { return tensor ? tensor->length : 0; }

void* TF_TensorData(const TF_Tensor* tensor) {
  if (!tensor) return NULL;
  return __builtin_expect(tensor->scratch != NULL, 0) ? tensor->scratch : tensor->tensor.data;
}

int64_t TF_TensorElementCount(const TF_Tensor* tensor) { return tensor ? tensor->tensor.count : 0; }

bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  return tensor && (uintptr_t)tensor->tensor.data % RN_ALIGN == 0;
}

// Moves |tensor| into |to|.
static void replace(TF_Tensor* to, rn_tensor_t* tensor) {
  drop_scratch(to);
  rn_tensor_clear(&to->tensor);
  to->tensor = *tensor;
  to->length = rn_tensor_bytes(tensor);
}

static rn_status_t bitcast(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                           const int64_t* dims, int num_dims) {
  if (!from) return rn_capi_null("TF_TensorBitcastFrom", "from");
  if (!to) return rn_capi_null("TF_TensorBitcastFrom", "to");
  bool same_type = (TF_DataType)from->tensor.dtype == type;
  if (!same_type && TF_DataTypeSize(type) == 0) {
    return rn_invalid_argument("specified output type is zero-sized");
  }
  if (!same_type && !rn_dtype_is_plain(from->tensor.dtype)) {
    return rn_invalid_argument("specified input type is zero-sized");
  }
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_capi_shape(dims, num_dims, &shape));
  rn_tensor_t cast = {0};
  rn_status_t status = rn_tensor_init(&cast, (rn_dtype_t)type, shape);
  bool fits = rn_ok(status) && rn_tensor_bytes(&cast) == rn_tensor_bytes(&from->tensor);
  rn_tensor_clear(&cast);
  RN_RETURN_IF_ERROR(status);
  if (!fits) {
    return rn_invalid_argument("input and output shapes/data type sizes are not compatible");
  }
  RN_RETURN_IF_ERROR(rn_tensor_reshape(&from->tensor, (rn_dtype_t)type, shape, &cast));
  replace(to, &cast);
  return RN_OK;
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                          const int64_t* new_dims, int num_new_dims, TF_Status* status) {
  rn_capi_set(status, bitcast(from, type, to, new_dims, num_new_dims));
}

static rn_status_t from_proto(const TF_Buffer* from, TF_Tensor* to, rn_arena_t* arena) {
  if (!from || (!from->data && from->length)) return rn_capi_null("TF_TensorFromProto", "from");
  if (!to) return rn_capi_null("TF_TensorFromProto", "to");
  rn_pb_TensorProto_t* proto = NULL;
  rn_status_t status =
      RN_PB_DECODE(TensorProto, rn_str_n(from->data, from->length), NULL, arena, &proto);
  if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    return rn_invalid_argument("Unparseable tensorflow.TensorProto proto");
  }
  RN_RETURN_IF_ERROR(status);
  rn_tensor_t tensor = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_from_proto(proto, RN_CAPI_MAX_TENSOR_BYTES, rn_capi_allocator(), &tensor));
  replace(to, &tensor);
  return RN_OK;
}

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_capi_allocator());
  rn_capi_set(status, from_proto(from, to, &arena));
  rn_arena_clear(&arena);
}

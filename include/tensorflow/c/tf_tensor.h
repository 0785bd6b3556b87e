// TF_Tensor: a typed, shaped, reference-counted buffer.
//
// Elements lie in row-major order. A TF_STRING tensor is an array of TF_TString (24 bytes each,
// see tf_tstring.h). A tensor may be read by many threads; nothing here guards writes.

#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_AllocatorAttributes {
  size_t struct_size;
  TF_Bool on_host;  // 1: memory that the host can address
} TF_AllocatorAttributes;

#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)

typedef struct TF_Tensor TF_Tensor;

// A tensor over the caller's bytes. |deallocator| is called exactly once, with |data|, |len| and
// |deallocator_arg|, when the bytes are no longer needed. It may run on any thread, and before this
// call returns if the bytes had to be copied (because of their alignment). String buffers are never
// copied, read or changed here. NULL if |len| is too small for the shape, a dimension is negative,
// or there is no memory; the deallocator has then been called as well.
TF_CAPI_EXPORT TF_Tensor* TF_NewTensor(TF_DataType dtype, const int64_t* dims, int num_dims,
                                       void* data, size_t len,
                                       void (*deallocator)(void* data, size_t len, void* arg),
                                       void* deallocator_arg);

// The alignment that spares TF_NewTensor the copy, in bytes.
TF_CAPI_EXPORT size_t TF_TensorDefaultAlignment(void);

// A tensor with memory of its own, |len| bytes: strings are empty, other types uninitialized. NULL
// under the conditions of TF_NewTensor.
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTensor(TF_DataType dtype, const int64_t* dims, int num_dims,
                                            size_t len);

// If the buffer is not shared and the library allocated it, returns a tensor that has taken it
// over, and |tensor| is consumed. Otherwise returns NULL, and |tensor| is unchanged.
TF_CAPI_EXPORT TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);

// Drops the caller's reference. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteTensor(TF_Tensor* tensor);

// Element type. 0, which is no type, for NULL.
TF_CAPI_EXPORT TF_DataType TF_TensorType(const TF_Tensor* tensor);

// Gives the tensor a new shape. The caller must make sure that the buffer is large enough.
TF_CAPI_EXPORT void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims);

// The rank; -1 when it is not known or for NULL.
TF_CAPI_EXPORT int TF_NumDims(const TF_Tensor* tensor);

// Size of dimension |dim_index|; -1 when that is out of range.
TF_CAPI_EXPORT int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);

// Bytes of the buffer. For strings, the 24 bytes of each element, not what they point to.
TF_CAPI_EXPORT size_t TF_TensorByteSize(const TF_Tensor* tensor);

// The buffer, which the tensor owns. NULL for a NULL tensor; may be NULL if it has no elements.
TF_CAPI_EXPORT void* TF_TensorData(const TF_Tensor* tensor);

// Number of elements; 1 for a scalar.
TF_CAPI_EXPORT int64_t TF_TensorElementCount(const TF_Tensor* tensor);

// Makes |to| share the buffer of |from| under another type and shape of the same byte size.
// TF_INVALID_ARGUMENT when the sizes differ; |to| is unchanged then.
TF_CAPI_EXPORT void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                                         const int64_t* new_dims, int num_new_dims,
                                         TF_Status* status);

// Whether the buffer has the alignment that kernels want.
TF_CAPI_EXPORT bool TF_TensorIsAligned(const TF_Tensor* tensor);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_TENSOR_H_

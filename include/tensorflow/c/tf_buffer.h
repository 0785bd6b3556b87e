// TF_Buffer: a run of bytes and the way to free it. Serialised protos travel in these.

#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include <stddef.h>

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// Callers may read and write the fields. |data_deallocator|, where set, gets |data| and |length|
// when the buffer is deleted; NULL means the bytes are owned elsewhere.
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;

// A buffer with its own copy of |proto_len| bytes. The caller deletes it. NULL when out of memory.
TF_CAPI_EXPORT TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len);

// An empty buffer: no bytes, no deallocator. The caller deletes it. NULL when out of memory.
TF_CAPI_EXPORT TF_Buffer* TF_NewBuffer(void);

// Runs the deallocator, if any, and frees the buffer. NULL is allowed.
TF_CAPI_EXPORT void TF_DeleteBuffer(TF_Buffer* buffer);

// The three fields by value; ownership of the bytes stays with |buffer|. All zero for NULL.
TF_CAPI_EXPORT TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_TF_BUFFER_H_

// Tensors: dense arrays of one type, and the reference-counted buffers behind them.
//
// A tensor is a struct of one cache line. Assigning the struct *moves* it: only one of the two may
// be cleared afterwards. Use rn_tensor_share to share. Any number of tensors may share a buffer,
// which is freed with the last one. The count is atomic; the bytes are not synchronized, and only
// the holder of the only reference may write them.
//
// A tensor whose |buffer| is NULL borrows its bytes: from a step's memory block, or from a constant
// in read-only data. Borrowed bytes are valid only as long as their owner, so code that keeps a
// tensor beyond the call must use rn_tensor_keep, which copies if necessary.
//
// doc/invariants.md: invariant 7.
#ifndef RUNNEL_TENSOR_TENSOR_H_
#define RUNNEL_TENSOR_TENSOR_H_

#include "base/alloc.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#define RN_INLINE_DIMS 4

typedef struct rn_buffer_t rn_buffer_t;
struct rn_buffer_t {
  _Atomic int32_t refs;
  rn_dtype_t dtype;  // determines how elements are destroyed with the buffer
  bool is_lent;      // the bytes belong to a client: they may be shared but not written
  size_t size;       // bytes
  void* data;
  // Frees |data| and the buffer itself; called once, when the last reference is released.
  void (*destroy)(rn_buffer_t* buffer);
};

typedef struct rn_tensor_t {
  rn_buffer_t* buffer;  // Retained; NULL if the bytes are borrowed or the tensor is empty
  void* data;           // may point inside the buffer
  int64_t count;        // elements
  uint8_t dtype;        // base type; RN_INVALID if unset
  uint8_t rank;
  uint8_t is_ref;  // the data points to a variable instead of a value
  uint8_t reserved[5];
  union {
    int64_t inline_dims[RN_INLINE_DIMS];  // rank <= RN_INLINE_DIMS
    int64_t* heap_dims;                   // Owned, from malloc, otherwise
  };
} rn_tensor_t;
_Static_assert(sizeof(rn_tensor_t) == 64, "a tensor is one cache line");

static inline const int64_t* rn_tensor_dims(const rn_tensor_t* tensor) {
  return tensor->rank <= RN_INLINE_DIMS ? tensor->inline_dims : tensor->heap_dims;
}
static inline int64_t rn_tensor_dim(const rn_tensor_t* tensor, int axis) {
  return rn_tensor_dims(tensor)[axis];
}
static inline rn_shape_t rn_tensor_shape(const rn_tensor_t* tensor) {
  return (rn_shape_t){tensor->rank, rn_tensor_dims(tensor)};
}
static inline size_t rn_tensor_bytes(const rn_tensor_t* tensor) {
  return (size_t)tensor->count * rn_dtype_size(tensor->dtype);
}
static inline bool rn_tensor_is_set(const rn_tensor_t* tensor) {
  return tensor->dtype != RN_INVALID;
}
bool rn_tensor_same_shape(const rn_tensor_t* a, const rn_tensor_t* b);

// Sets type and shape and leaves data and buffer empty. |shape| must be full. INVALID_ARGUMENT if
// the rank or the number of elements is too large, RESOURCE_EXHAUSTED if only the number of bytes
// is.
RN_MUST_USE rn_status_t rn_tensor_init(rn_tensor_t* tensor, rn_dtype_t dtype, rn_shape_t shape);

// Makes a tensor with a buffer from |allocator|: plain bytes uninitialized, strings empty,
// resources and variants NULL. Overwrites |*out|.
RN_MUST_USE rn_status_t rn_tensor_create(rn_allocator_t allocator, rn_dtype_t dtype,
                                         rn_shape_t shape, rn_tensor_t* out);

// Makes |*out| another reference to |tensor|. Borrowed bytes stay borrowed.
RN_MUST_USE rn_status_t rn_tensor_share(const rn_tensor_t* tensor, rn_tensor_t* out);
// Like share, but copies borrowed bytes into a buffer from |allocator|, so that |*out| may outlive
// their owner.
RN_MUST_USE rn_status_t rn_tensor_keep(const rn_tensor_t* tensor, rn_allocator_t allocator,
                                       rn_tensor_t* out);
// Makes a deep copy with its own buffer and strings; retains resources and variants.
RN_MUST_USE rn_status_t rn_tensor_copy(const rn_tensor_t* tensor, rn_allocator_t allocator,
                                       rn_tensor_t* out);
// Shares the bytes under another shape with the same number of elements or, for plain types, under
// another type and a shape with the same number of bytes. INVALID_ARGUMENT if the sizes differ or
// the bytes are not aligned for the type.
RN_MUST_USE rn_status_t rn_tensor_reshape(const rn_tensor_t* tensor, rn_dtype_t dtype,
                                          rn_shape_t shape, rn_tensor_t* out);

// Releases what the tensor holds and zeroes it; a zeroed tensor is fine.
void rn_tensor_clear(rn_tensor_t* tensor);

// Whether this tensor holds the only reference to bytes that may be overwritten.
static inline bool rn_tensor_is_exclusive(const rn_tensor_t* tensor) {
  return tensor->buffer && !tensor->buffer->is_lent &&
         __atomic_load_n((const int32_t*)&tensor->buffer->refs, __ATOMIC_ACQUIRE) == 1;
}

// Buffers. Create gives |size| bytes aligned to RN_ALIGN from |allocator|, in one block with the
// buffer's own record unless the memory is a device's.
RN_MUST_USE rn_status_t rn_buffer_create(rn_allocator_t allocator, rn_dtype_t dtype, size_t size,
                                         rn_buffer_t** out);
void rn_buffer_retain(rn_buffer_t* buffer);
void rn_buffer_release(rn_buffer_t* buffer);  // NULL is fine

#define RN_DATA(tensor, type) ((type*)(tensor)->data)

#endif  // RUNNEL_TENSOR_TENSOR_H_

// Tensors and their buffers.
#include "tensor/tensor.h"

#include <stdatomic.h>

#include "base/assert.h"
#include "tensor/object.h"
#include "tensor/tstring.h"

// A buffer in one block: the record, then the bytes at the next RN_ALIGN boundary.
typedef struct tensor_block_t {
  rn_buffer_t buffer;
  rn_allocator_t allocator;
} tensor_block_t;

// The largest distance from the start of a 16-byte aligned block to its bytes. The record fills a
// cache line, so a block that starts 16 bytes into a line wastes the most.
#define BLOCK_OVERHEAD (2 * RN_ALIGN - 16)
_Static_assert(sizeof(tensor_block_t) <= RN_ALIGN && BLOCK_OVERHEAD >= RN_ALIGN,
               "the record fits a line, the bytes follow");

static void destroy_elements(rn_dtype_t dtype, void* data, size_t size) {
  if (dtype == RN_STRING) {
    rn_tstring_t* strings = data;
    for (size_t i = 0; i < size / sizeof *strings; i++) rn_tstring_clear(&strings[i]);
  } else if (dtype == RN_RESOURCE || dtype == RN_VARIANT) {
    rn_object_t** objects = data;
    for (size_t i = 0; i < size / sizeof *objects; i++) rn_object_release(objects[i]);
  }
}

static void block_destroy(rn_buffer_t* buffer) {
  tensor_block_t* block = (tensor_block_t*)buffer;
  if (!rn_dtype_is_plain(buffer->dtype))
    destroy_elements(buffer->dtype, buffer->data, buffer->size);
  rn_free(block->allocator, block, buffer->size + BLOCK_OVERHEAD);
}

static void far_destroy(rn_buffer_t* buffer) {
  tensor_block_t* block = (tensor_block_t*)buffer;
  rn_free(block->allocator, buffer->data, buffer->size);
  RN_FREE(rn_allocator_default(), block);
}

// A buffer of a device's memory: the host cannot write there, so the record is elsewhere.
static rn_status_t far_create(rn_allocator_t allocator, rn_dtype_t dtype, size_t size,
                              rn_buffer_t** out) {
  tensor_block_t* block = NULL;
  if (!rn_dtype_is_plain(dtype))
    return rn_internal("A device's memory cannot hold %s", rn_dtype_name(dtype));
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_default(), &block));
  rn_status_t status = rn_alloc(allocator, size, &block->buffer.data);
  if (!rn_ok(status)) {
    RN_FREE(rn_allocator_default(), block);
    return status;
  }
  atomic_init(&block->buffer.refs, 1);
  block->buffer.dtype = dtype;
  block->buffer.size = size;
  block->buffer.destroy = far_destroy;
  block->allocator = allocator;
  *out = &block->buffer;
  return RN_OK;
}

rn_status_t rn_buffer_create(rn_allocator_t allocator, rn_dtype_t dtype, size_t size,
                             rn_buffer_t** out) {
  *out = NULL;
  if (__builtin_expect(allocator.is_far, 0)) return far_create(allocator, dtype, size, out);
  size_t block_size;
  tensor_block_t* block = NULL;
  if (!rn_add_ok(size, BLOCK_OVERHEAD, &block_size)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_alloc(allocator, block_size, (void**)&block));
  uintptr_t data = ((uintptr_t)block + sizeof *block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1);
  atomic_init(&block->buffer.refs, 1);
  block->buffer.dtype = dtype;
  block->buffer.is_lent = false;
  block->buffer.size = size;
  block->buffer.data = (void*)data;
  block->buffer.destroy = block_destroy;
  block->allocator = allocator;
  // Zero bytes are an empty string or a NULL object.
  if (!rn_dtype_is_plain(dtype)) memset(block->buffer.data, 0, size);
  *out = &block->buffer;
  return RN_OK;
}

void rn_buffer_retain(rn_buffer_t* buffer) {
  // Relaxed: the caller already holds a reference, so this publishes nothing.
  if (buffer) atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
}

void rn_buffer_release(rn_buffer_t* buffer) {
  if (!buffer) return;
  RN_ASSERT(atomic_load_explicit(&buffer->refs, memory_order_relaxed) > 0);
  // With a count of one no other thread can retain, so no read-modify-write is needed.
  if (atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) == 1) {
    buffer->destroy(buffer);
  }
}

bool rn_tensor_same_shape(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->rank != b->rank) return false;
  return a->rank == 0 ||
         memcmp(rn_tensor_dims(a), rn_tensor_dims(b), a->rank * sizeof(int64_t)) == 0;
}

static rn_status_t shape_error(const char* what, rn_dtype_t dtype, rn_shape_t shape) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  // Print only part of a shape with thousands of dims; the message is about the rank.
  rn_shape_t shown = shape;
  if (shown.rank > RN_MAX_RANK) shown.rank = RN_MAX_RANK;
  rn_shape_print(&text, shown);
  rn_status_t status =
      rn_invalid_argument("%s: %s tensor of shape %.*s and rank %d", what, rn_dtype_name(dtype),
                          RN_STR_ARGS(rn_strbuf_view(&text)), (int)shape.rank);
  rn_strbuf_clear(&text);
  return status;
}

// Copies |rank| dims from |dims|; the other fields of |tensor| are set.
static rn_status_t set_dims(rn_tensor_t* tensor, const int64_t* dims, size_t rank) {
  int64_t* to = tensor->inline_dims;
  if (rank > RN_INLINE_DIMS) {
    to = malloc(rank * sizeof *to);
    if (!to) {
      *tensor = (rn_tensor_t){0};
      return rn_out_of_memory();
    }
    tensor->heap_dims = to;
  }
  for (size_t i = 0; i < rank; i++) to[i] = dims[i];
  return RN_OK;
}

rn_status_t rn_tensor_init(rn_tensor_t* tensor, rn_dtype_t dtype, rn_shape_t shape) {
  *tensor = (rn_tensor_t){0};
  if (rn_dtype_size(dtype) == 0) return shape_error("No such type", dtype, shape);
  if (shape.rank > RN_MAX_RANK) return shape_error("Too many dimensions", dtype, shape);
  if (!rn_shape_has_rank(shape)) return shape_error("Shape is not fully known", dtype, shape);
  int64_t count = 1, bytes;
  for (int32_t i = 0; i < shape.rank; i++) {
    if (shape.dims[i] < 0) return shape_error("Shape is not fully known", dtype, shape);
    int64_t before = count;
    if (!rn_mul_i64_ok(before, shape.dims[i], &count)) {
      return rn_invalid_argument("Encountered overflow when multiplying %lld with %lld, result: -1",
                                 (long long)before, (long long)shape.dims[i]);
    }
  }
  // Leave room for a buffer's record, so that no later sum overflows.
  if (!rn_mul_i64_ok(count, (int64_t)rn_dtype_size(dtype), &bytes) || bytes > INT64_MAX - 4096) {
    return rn_status_annotate(rn_out_of_memory(), " for a tensor of %lld elements of type %s",
                              (long long)count, rn_dtype_name(dtype));
  }
  tensor->dtype = (uint8_t)dtype;
  tensor->rank = (uint8_t)shape.rank;
  tensor->count = count;
  return set_dims(tensor, shape.dims, (size_t)shape.rank);
}

static rn_status_t add_buffer(rn_tensor_t* tensor, rn_allocator_t allocator) {
  rn_status_t status =
      rn_buffer_create(allocator, tensor->dtype, rn_tensor_bytes(tensor), &tensor->buffer);
  if (!rn_ok(status)) {
    rn_tensor_clear(tensor);
    return status;
  }
  tensor->data = tensor->buffer->data;
  return RN_OK;
}

rn_status_t rn_tensor_create(rn_allocator_t allocator, rn_dtype_t dtype, rn_shape_t shape,
                             rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_init(out, dtype, shape));
  return add_buffer(out, allocator);
}

rn_status_t rn_tensor_share(const rn_tensor_t* tensor, rn_tensor_t* out) {
  *out = *tensor;
  if (tensor->rank > RN_INLINE_DIMS) {
    RN_RETURN_IF_ERROR(set_dims(out, tensor->heap_dims, tensor->rank));
  }
  rn_buffer_retain(out->buffer);
  return RN_OK;
}

rn_status_t rn_tensor_keep(const rn_tensor_t* tensor, rn_allocator_t allocator, rn_tensor_t* out) {
  bool borrows = !tensor->buffer && tensor->data && !tensor->is_ref;
  return borrows ? rn_tensor_copy(tensor, allocator, out) : rn_tensor_share(tensor, out);
}

static rn_status_t copy_strings(const rn_tensor_t* from, rn_tensor_t* to) {
  for (int64_t i = 0; i < from->count; i++) {
    rn_str_t text = rn_tstring_view(&RN_DATA(from, rn_tstring_t)[i]);
    if (!rn_tstring_assign(&RN_DATA(to, rn_tstring_t)[i], text.data, text.size)) {
      return rn_out_of_memory();
    }
  }
  return RN_OK;
}

rn_status_t rn_tensor_copy(const rn_tensor_t* tensor, rn_allocator_t allocator, rn_tensor_t* out) {
  if (tensor->is_ref) {
    *out = (rn_tensor_t){0};
    return rn_internal("A reference to a variable has no bytes to copy");
  }
  if (allocator.is_far) {
    *out = (rn_tensor_t){0};
    return rn_internal("Only a device can copy its memory");
  }
  RN_RETURN_IF_ERROR(rn_tensor_share(tensor, out));
  rn_buffer_release(out->buffer);
  out->buffer = NULL;
  out->data = NULL;
  // A tensor that is unset, or has a shape but no bytes yet, is copied as such.
  if (!tensor->data) return RN_OK;
  RN_RETURN_IF_ERROR(add_buffer(out, allocator));
  rn_status_t status = RN_OK;
  if (rn_dtype_is_plain(tensor->dtype)) {
    memcpy(out->data, tensor->data, rn_tensor_bytes(tensor));
  } else if (tensor->dtype == RN_STRING) {
    status = copy_strings(tensor, out);
  } else {
    for (int64_t i = 0; i < tensor->count; i++) {
      RN_DATA(out, rn_object_t*)[i] = rn_object_retain(RN_DATA(tensor, rn_object_t*)[i]);
    }
  }
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

rn_status_t rn_tensor_reshape(const rn_tensor_t* tensor, rn_dtype_t dtype, rn_shape_t shape,
                              rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_init(out, dtype, shape));
  bool same = dtype == tensor->dtype && out->count == tensor->count;
  bool fits = rn_dtype_is_plain(dtype) && rn_dtype_is_plain(tensor->dtype) &&
              rn_tensor_bytes(out) == rn_tensor_bytes(tensor);
  // A view into a buffer of a narrow type may not be aligned for a wider one.
  bool aligned = rn_dtype_size(dtype) <= rn_dtype_size(tensor->dtype) ||
                 (uintptr_t)tensor->data % rn_dtype_size(dtype) == 0;
  if (tensor->is_ref || !(same || (fits && aligned))) {
    rn_tensor_clear(out);
    return shape_error("Cannot be given the bytes of another tensor", dtype, shape);
  }
  out->buffer = tensor->buffer;
  out->data = tensor->data;
  rn_buffer_retain(out->buffer);
  return RN_OK;
}

void rn_tensor_clear(rn_tensor_t* tensor) {
  if (tensor->rank > RN_INLINE_DIMS) free(tensor->heap_dims);
  rn_buffer_release(tensor->buffer);
  *tensor = (rn_tensor_t){0};
}

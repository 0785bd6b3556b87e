// See tensor_array.h.
#include "kernels/cpu/data_flow/tensor_array.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/kernel_rows.h"

typedef struct tensor_array_element_t {
  rn_tensor_t value;  // once cleared: its type and shape, without data
  bool is_written, is_read, is_cleared;
  bool is_sum;  // the array owns the buffer
} tensor_array_element_t;

struct rn_tensor_array_t {
  rn_resource_t resource;
  rn_allocator_t allocator;
  rn_arena_t arena;  // holds the name and shapes
  rn_str_t name;
  rn_mutex_t mutex;  // guards what follows
  rn_tensor_array_spec_t spec;
  bool is_closed;
  tensor_array_element_t* elements;  // Owned
  int64_t size, capacity;
  int64_t split_size;  // elements after the last split; -1 before any
  // The gradient arrays, newest first.
  struct gradient_t {
    struct gradient_t* next;
    rn_str_t source;
    rn_tensor_array_t* array;  // Retained
  } * gradients;
};

static void clear_elements(rn_tensor_array_t* array) {
  for (int64_t i = 0; i < array->size; ++i) rn_tensor_clear(&array->elements[i].value);
  RN_FREE_ARRAY(array->allocator, array->elements, array->capacity);
  array->elements = NULL;
  array->size = array->capacity = 0;
}

static void array_destroy(rn_object_t* object) {
  rn_tensor_array_t* array = (rn_tensor_array_t*)object;
  clear_elements(array);
  for (struct gradient_t* at = array->gradients; at; at = at->next)
    rn_object_release(&at->array->resource.object);
  rn_mutex_destroy(&array->mutex);
  rn_arena_clear(&array->arena);
  RN_FREE(array->allocator, array);
}

static rn_status_t grow(rn_tensor_array_t* array, int64_t size) {
  if (size > array->capacity) {
    int64_t larger = array->capacity * 2 > size ? array->capacity * 2 : size;
    tensor_array_element_t* elements = NULL;
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(array->allocator, (size_t)larger, &elements));
    if (array->size) memcpy(elements, array->elements, (size_t)array->size * sizeof *elements);
    RN_FREE_ARRAY(array->allocator, array->elements, array->capacity);
    array->elements = elements;
    array->capacity = larger;
  }
  if (size > array->size) array->size = size;
  return RN_OK;
}

rn_status_t rn_tensor_array_create(rn_allocator_t allocator, rn_str_t name,
                                   const rn_tensor_array_spec_t* spec, int64_t size,
                                   rn_tensor_array_t** out) {
  *out = NULL;
  rn_tensor_array_t* array = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &array));
  array->resource = (rn_resource_t){{.refs = 1, .destroy = array_destroy}, RN_TENSOR_ARRAY_TYPE};
  array->allocator = allocator;
  array->spec = *spec;
  array->split_size = -1;
  rn_mutex_init(&array->mutex);
  rn_arena_init(&array->arena, allocator);
  rn_status_t status = rn_arena_str(&array->arena, name, &array->name);
  if (rn_ok(status))
    status = rn_shape_copy(&array->arena, spec->element_shape, &array->spec.element_shape);
  if (rn_ok(status)) status = grow(array, size);
  if (!rn_ok(status)) {
    rn_object_release(&array->resource.object);
    return status;
  }
  *out = array;
  return RN_OK;
}

rn_resource_t* rn_tensor_array_resource(rn_tensor_array_t* array) { return &array->resource; }
rn_str_t rn_tensor_array_name(const rn_tensor_array_t* array) { return array->name; }
const rn_tensor_array_spec_t* rn_tensor_array_spec(const rn_tensor_array_t* array) {
  return &array->spec;
}

static rn_status_t check_open_locked(const rn_tensor_array_t* array) {
  return array->is_closed ? rn_invalid_argument("TensorArray %.*s has already been closed.",
                                                RN_STR_ARGS(array->name))
                          : RN_OK;
}

// |shape| with |prefix| before it; the dims go to |dims|, RN_MAX_RANK of them.
static rn_status_t prepend(rn_shape_t prefix, rn_shape_t shape, int64_t* dims, rn_shape_t* out) {
  *out = shape;
  if (prefix.rank == 0 || !rn_shape_has_rank(shape)) return RN_OK;
  if (prefix.rank + shape.rank > RN_MAX_RANK)
    return rn_invalid_argument("The elements' rank is too large");
  memcpy(dims, prefix.dims, (size_t)prefix.rank * sizeof *dims);
  if (shape.rank) memcpy(dims + prefix.rank, shape.dims, (size_t)shape.rank * sizeof *dims);
  *out = (rn_shape_t){prefix.rank + shape.rank, dims};
  return RN_OK;
}

// A gradient array knows the shapes of what the forward pass wrote, even if that was cleared.
static rn_status_t copy_shapes(rn_tensor_array_t* to, const rn_tensor_array_t* from,
                               rn_shape_t prefix) {
  int64_t dims[RN_MAX_RANK];
  for (int64_t i = 0; i < from->size; ++i) {
    rn_shape_t shape;
    if (!rn_tensor_is_set(&from->elements[i].value)) continue;
    RN_RETURN_IF_ERROR(prepend(prefix, rn_tensor_shape(&from->elements[i].value), dims, &shape));
    RN_RETURN_IF_ERROR(rn_tensor_init(&to->elements[i].value, from->spec.dtype, shape));
  }
  return RN_OK;
}

static rn_status_t gradient_locked(rn_tensor_array_t* array, rn_str_t source, rn_shape_t prefix,
                                   rn_tensor_array_t** out) {
  RN_RETURN_IF_ERROR(check_open_locked(array));
  for (struct gradient_t* at = array->gradients; at; at = at->next) {
    if (!rn_str_eq(at->source, source)) continue;
    *out = at->array;
    return RN_OK;
  }
  struct gradient_t* made = NULL;
  rn_str_t name;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&array->arena, &made));
  RN_RETURN_IF_ERROR(rn_arena_str(&array->arena, source, &made->source));
  RN_RETURN_IF_ERROR(rn_arena_printf(&array->arena, &name, "%.*s@%.*s", RN_STR_ARGS(array->name),
                                     RN_STR_ARGS(source)));
  rn_tensor_array_spec_t spec = array->spec;
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(prepend(prefix, array->spec.element_shape, dims, &spec.element_shape));
  spec.is_dynamic = false;
  spec.clears = true;
  spec.adds = true;
  RN_RETURN_IF_ERROR(
      rn_tensor_array_create(array->allocator, name, &spec, array->size, &made->array));
  made->array->split_size = array->split_size;
  rn_status_t status = copy_shapes(made->array, array, prefix);
  if (!rn_ok(status)) {
    rn_object_release(&made->array->resource.object);
    return status;
  }
  made->next = array->gradients;
  array->gradients = made;
  *out = made->array;
  return RN_OK;
}

rn_status_t rn_tensor_array_gradient(rn_tensor_array_t* array, rn_str_t source, rn_shape_t prefix,
                                     rn_tensor_array_t** out) {
  *out = NULL;
  rn_mutex_lock(&array->mutex);
  rn_status_t status = gradient_locked(array, source, prefix, out);
  if (rn_ok(status)) rn_object_retain(&(*out)->resource.object);
  rn_mutex_unlock(&array->mutex);
  return status;
}

static rn_status_t cannot_write(const rn_tensor_array_t* array, int64_t index, const char* why) {
  return rn_invalid_argument(
      "TensorArray %.*s: Could not write to TensorArray index %lld because %s",
      RN_STR_ARGS(array->name), (long long)index, why);
}

static rn_status_t check_value_locked(rn_tensor_array_t* array, int64_t index,
                                      const rn_tensor_t* value) {
  if (value->dtype != array->spec.dtype)
    return rn_invalid_argument(
        "TensorArray %.*s: Could not write to TensorArray index %lld because the value dtype is %s "
        "but TensorArray dtype is %s.",
        RN_STR_ARGS(array->name), (long long)index, rn_dtype_name(value->dtype),
        rn_dtype_name(array->spec.dtype));
  if (!rn_shape_compatible(array->spec.element_shape, rn_tensor_shape(value)))
    return rn_invalid_argument(
        "TensorArray %.*s: Could not write to TensorArray index %lld because the value shape is %s "
        "which is incompatible with the TensorArray's inferred element shape: %s (consider setting "
        "infer_shape=False).",
        RN_STR_ARGS(array->name), (long long)index, rn_text_of(value).text,
        rn_shape_text(array->spec.element_shape).text);
  if (array->spec.is_uniform && !rn_shape_is_full(array->spec.element_shape))
    return rn_shape_copy(&array->arena, rn_tensor_shape(value), &array->spec.element_shape);
  return RN_OK;
}

static rn_status_t add_locked(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array,
                              tensor_array_element_t* element, int64_t index,
                              const rn_tensor_t* value) {
  if (!rn_tensor_same_shape(&element->value, value))
    return rn_invalid_argument(
        "TensorArray %.*s: Could not aggregate to TensorArray index %lld because the existing "
        "shape is %s but the new input shape is %s.",
        RN_STR_ARGS(array->name), (long long)index, rn_text_of(&element->value).text,
        rn_text_of(value).text);
  if (!rn_dtypes_has(RN_TYPES_NUMBERS, value->dtype))
    return rn_unimplemented("TensorArray %.*s: elements of type %s cannot be added",
                            RN_STR_ARGS(array->name), rn_dtype_name(value->dtype));
  if (!element->is_sum) {
    rn_tensor_t copy = {0};
    RN_RETURN_IF_ERROR(rn_ctx_duplicate(ctx, &element->value, &copy));
    rn_tensor_clear(&element->value);
    element->value = copy;
    element->is_sum = true;
  }
  return rn_ctx_add(ctx, value, &element->value);
}

static rn_status_t write_locked(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array, int64_t index,
                                rn_tensor_t* value) {
  RN_RETURN_IF_ERROR(check_open_locked(array));
  if (index < 0 || (!array->spec.is_dynamic && index >= array->size))
    return rn_invalid_argument(
        "TensorArray %.*s: Tried to write to index %lld but array is not resizeable and size is: "
        "%lld",
        RN_STR_ARGS(array->name), (long long)index, (long long)array->size);
  RN_RETURN_IF_ERROR(grow(array, index + 1));
  RN_RETURN_IF_ERROR(check_value_locked(array, index, value));
  tensor_array_element_t* element = &array->elements[index];
  if (element->is_read) return cannot_write(array, index, "it has already been read.");
  if (element->is_written && !array->spec.adds)
    return cannot_write(array, index, "it has already been written to.");
  if (element->is_written) {
    RN_RETURN_IF_ERROR(add_locked(ctx, array, element, index, value));
    rn_tensor_clear(value);
    return RN_OK;
  }
  rn_tensor_clear(&element->value);
  element->value = *value;
  *value = (rn_tensor_t){0};
  element->is_written = true;
  return RN_OK;
}

rn_status_t rn_tensor_array_write(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array, int64_t index,
                                  rn_tensor_t* value) {
  rn_mutex_lock(&array->mutex);
  rn_status_t status = write_locked(ctx, array, index, value);
  rn_mutex_unlock(&array->mutex);
  return status;
}

// An unwritten element is zero, if its shape is known.
static rn_status_t make_zeros_locked(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array,
                                     tensor_array_element_t* element, int64_t index) {
  rn_shape_t shape = rn_tensor_is_set(&element->value) ? rn_tensor_shape(&element->value)
                                                       : array->spec.element_shape;
  if (!rn_shape_is_full(shape))
    return rn_invalid_argument(
        "TensorArray %.*s: Could not read from TensorArray index %lld.  Furthermore, the element "
        "shape is not fully defined: %s.  It is possible you are working with a resizeable "
        "TensorArray and stop_gradients is not allowing the gradients to be written.  If you set "
        "the full element_shape property on the forward TensorArray, the proper all-zeros tensor "
        "will be returned instead of incurring this error.",
        RN_STR_ARGS(array->name), (long long)index, rn_shape_text(shape).text);
  rn_tensor_t zeros = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ctx->kernel->device_memory, array->spec.dtype, shape, &zeros));
  rn_status_t status = rn_dtype_is_plain(zeros.dtype) ? rn_ctx_zero(ctx, &zeros) : RN_OK;
  if (!rn_ok(status)) {
    rn_tensor_clear(&zeros);
    return status;
  }
  rn_tensor_clear(&element->value);
  element->value = zeros;
  element->is_written = true;
  return RN_OK;
}

static rn_status_t read_locked(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array, int64_t index,
                               rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(check_open_locked(array));
  if (index < 0 || index >= array->size)
    return rn_invalid_argument(
        "TensorArray %.*s: Tried to read from index %lld but array size is: %lld",
        RN_STR_ARGS(array->name), (long long)index, (long long)array->size);
  tensor_array_element_t* element = &array->elements[index];
  if (element->is_cleared)
    return rn_invalid_argument(
        "TensorArray %.*s: Could not read index %lld twice because it was cleared after a previous "
        "read (perhaps try setting clear_after_read = false?).",
        RN_STR_ARGS(array->name), (long long)index);
  if (!element->is_written) RN_RETURN_IF_ERROR(make_zeros_locked(ctx, array, element, index));
  RN_RETURN_IF_ERROR(rn_tensor_share(&element->value, out));
  element->is_read = true;
  if (array->spec.clears) {
    element->is_cleared = true;
    rn_buffer_release(element->value.buffer);
    element->value.buffer = NULL;
    element->value.data = NULL;
  }
  return RN_OK;
}

rn_status_t rn_tensor_array_read(rn_kernel_ctx_t* ctx, rn_tensor_array_t* array, int64_t index,
                                 rn_tensor_t* out) {
  rn_mutex_lock(&array->mutex);
  rn_status_t status = read_locked(ctx, array, index, out);
  rn_mutex_unlock(&array->mutex);
  return status;
}

rn_status_t rn_tensor_array_size(rn_tensor_array_t* array, int64_t* out) {
  rn_mutex_lock(&array->mutex);
  rn_status_t status = check_open_locked(array);
  *out = array->size;
  rn_mutex_unlock(&array->mutex);
  return status;
}

void rn_tensor_array_was_split(rn_tensor_array_t* array) {
  rn_mutex_lock(&array->mutex);
  if (!array->spec.adds) array->split_size = array->size;
  rn_mutex_unlock(&array->mutex);
}

rn_status_t rn_tensor_array_concat_size(rn_tensor_array_t* array, int64_t* out) {
  rn_mutex_lock(&array->mutex);
  rn_status_t status = check_open_locked(array);
  *out = array->spec.adds && array->split_size >= 0 ? array->split_size : array->size;
  rn_mutex_unlock(&array->mutex);
  return status;
}

rn_shape_t rn_tensor_array_element_shape(rn_tensor_array_t* array) {
  rn_mutex_lock(&array->mutex);
  rn_shape_t shape = array->spec.element_shape;
  rn_mutex_unlock(&array->mutex);
  return shape;
}

void rn_tensor_array_close(rn_tensor_array_t* array) {
  rn_mutex_lock(&array->mutex);
  array->is_closed = true;
  clear_elements(array);
  rn_mutex_unlock(&array->mutex);
}

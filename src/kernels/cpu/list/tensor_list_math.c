// Arithmetic on variants, for gradients: sums of lists, maps, ragged tensors, optionals, numbers
// and CSR matrices, and zeros like them.
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/optional.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/number_variant.h"
#include "kernels/cpu/list/tensor_list.h"
#include "kernels/cpu/list/tensor_map.h"
#include "kernels/cpu/list/tensors_variant.h"
#include "kernels/cpu/sparse/csr.h"
#include "kernels/kernel_rows.h"

#define MOST_DEPTH 32  // nesting of variants in variants

// A kernel of a device computes with values that are in its memory or in the host's, and leaves
// them there: what these functions call |device|, NULL for the host.
static rn_allocator_t memory_of(const rn_kernel_ctx_t* ctx, const rn_device_t* device) {
  return device ? ctx->kernel->device_memory : ctx->kernel->host_memory;
}

// The list where the kernel can use it.
static rn_status_t usable(const rn_kernel_ctx_t* ctx, rn_tensor_list_t* list,
                          rn_tensor_list_t** out) {
  return rn_tensor_list_on(list, list->device == ctx->kernel->device ? list->device : NULL, out);
}

static rn_status_t zeros_of(rn_kernel_ctx_t* ctx, const rn_tensor_t* like, rn_device_t* device,
                            int depth, rn_tensor_t* out);

static rn_status_t zero_list(rn_kernel_ctx_t* ctx, rn_tensor_list_t* like, int depth,
                             rn_tensor_list_t** out) {
  RN_RETURN_IF_ERROR(usable(ctx, like, &like));
  RN_RETURN_IF_ERROR(rn_tensor_list_create(like->allocator, like->dtype, like->element_shape,
                                           like->limit, like->count, out));
  (*out)->device = like->device;
  rn_status_t status = RN_OK;
  for (int64_t i = like->set_begin; rn_ok(status) && i < like->set_end; ++i) {
    if (!rn_tensor_list_has(like, i)) continue;
    rn_tensor_t zeros = {0};
    status = zeros_of(ctx, &like->items[i], like->device, depth, &zeros);
    if (rn_ok(status)) rn_tensor_list_set(*out, i, &zeros);
  }
  if (!rn_ok(status)) {
    rn_tensor_list_release(*out);
    *out = NULL;
  }
  return status;
}

static rn_status_t zero_optional(rn_kernel_ctx_t* ctx, const rn_optional_t* like, int depth,
                                 rn_optional_t** out) {
  RN_RETURN_IF_ERROR(rn_optional_create(like->count, out));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < like->count; ++i)
    status = zeros_of(ctx, &like->values[i], NULL, depth, &(*out)->values[i]);
  if (!rn_ok(status)) {
    rn_object_release(&(*out)->object);
    *out = NULL;
  }
  return status;
}

// The same row splits, and zeros.
static rn_status_t zero_ragged(rn_kernel_ctx_t* ctx, const rn_tensors_variant_t* like, int depth,
                               rn_object_t** out) {
  rn_tensors_variant_t* zeros = NULL;
  int32_t last = like->count - 1;
  RN_RETURN_IF_ERROR(rn_tensors_variant_create(like->allocator, RN_TENSORS_RAGGED, RN_STR(""),
                                               like->count, &zeros));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < last; ++i)
    status = rn_tensor_share(&like->values[i], &zeros->values[i]);
  if (rn_ok(status)) status = zeros_of(ctx, &like->values[last], NULL, depth, &zeros->values[last]);
  if (rn_ok(status))
    *out = &zeros->object;
  else
    rn_tensors_variant_release(zeros);
  return status;
}

static rn_status_t zero_object(rn_kernel_ctx_t* ctx, rn_object_t* like, int depth,
                               rn_object_t** out) {
  rn_tensor_t a = {.data = &like, .count = 1};
  rn_tensor_list_t* list = rn_tensor_list_at(&a, 0);
  const rn_optional_t* optional = rn_optional_from(like);
  if (list) {
    rn_tensor_list_t* zeros = NULL;
    RN_RETURN_IF_ERROR(zero_list(ctx, list, depth, &zeros));
    *out = &zeros->object;
    return RN_OK;
  }
  const rn_number_variant_t* number = rn_number_variant_from(like);
  if (number) return rn_number_variant_zero(number, out);
  if (rn_csr_from(like)) {
    rn_csr_t* zeros = NULL;
    RN_RETURN_IF_ERROR(rn_csr_zeros(ctx, rn_csr_from(like), &zeros));
    *out = &zeros->object;
    return RN_OK;
  }
  if (rn_tensor_map_from(like)) {  // a map without a key is zero for all of them
    rn_tensor_map_t* zeros = NULL;
    RN_RETURN_IF_ERROR(rn_tensor_map_create(ctx->kernel->allocator, &zeros));
    *out = &zeros->object;
    return RN_OK;
  }
  const rn_tensors_variant_t* ragged = rn_tensors_variant_from(like, RN_TENSORS_RAGGED);
  if (ragged) return zero_ragged(ctx, ragged, depth, out);
  if (!optional) return rn_internal("No unary variant unary_op function found for op ZEROS_LIKE");
  rn_optional_t* zeros = NULL;
  RN_RETURN_IF_ERROR(zero_optional(ctx, optional, depth, &zeros));
  *out = &zeros->object;
  return RN_OK;
}

static rn_status_t fill_zeros(rn_kernel_ctx_t* ctx, const rn_tensor_t* like, rn_device_t* device,
                              int depth, rn_tensor_t* out) {
  if (device && rn_dtype_is_plain(like->dtype)) return rn_ctx_zero(ctx, out);
  if (like->dtype != RN_VARIANT) {
    rn_move_zero(NULL, like->dtype, out->data, out->count);
    return RN_OK;
  }
  if (depth == MOST_DEPTH) return rn_invalid_argument("Variants are nested too deeply");
  for (int64_t i = 0; i < like->count; ++i) {
    rn_object_t* object = RN_DATA(like, rn_object_t*)[i];
    if (object)
      RN_RETURN_IF_ERROR(zero_object(ctx, object, depth + 1, &RN_DATA(out, rn_object_t*)[i]));
  }
  return RN_OK;
}

static rn_status_t zeros_of(rn_kernel_ctx_t* ctx, const rn_tensor_t* like, rn_device_t* device,
                            int depth, rn_tensor_t* out) {
  rn_allocator_t memory = memory_of(ctx, rn_dtype_is_plain(like->dtype) ? device : NULL);
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, like->dtype, rn_tensor_shape(like), out));
  rn_status_t status = fill_zeros(ctx, like, device, depth, out);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

static rn_status_t zeros_like(rn_kernel_ctx_t* ctx) {
  rn_tensor_t zeros = {0};
  RN_RETURN_IF_ERROR(zeros_of(ctx, rn_in(ctx, 0), NULL, 0, &zeros));
  rn_set_output(ctx, 0, &zeros);
  return RN_OK;
}

// Sums.
static rn_status_t add_objects(rn_kernel_ctx_t* ctx, rn_object_t** inout, rn_object_t* other,
                               int depth);

// These add |value| to |*inout|: in place if nothing else refers to its buffer.
static rn_status_t add_variants(rn_kernel_ctx_t* ctx, rn_tensor_t* inout, const rn_tensor_t* value,
                                int depth) {
  if (!rn_tensor_is_exclusive(inout)) {
    rn_tensor_t own = {0};
    RN_RETURN_IF_ERROR(rn_tensor_copy(inout, ctx->kernel->host_memory, &own));
    rn_tensor_clear(inout);
    *inout = own;
  }
  for (int64_t i = 0; i < value->count; ++i)
    RN_RETURN_IF_ERROR(
        add_objects(ctx, &RN_DATA(inout, rn_object_t*)[i], RN_DATA(value, rn_object_t*)[i], depth));
  return RN_OK;
}

static rn_status_t add_numbers(rn_kernel_ctx_t* ctx, rn_tensor_t* inout, const rn_tensor_t* value) {
  rn_tensor_t* sum = inout;
  rn_tensor_t own = {0};
  if (!rn_tensor_is_exclusive(inout)) {
    sum = &own;
    RN_RETURN_IF_ERROR(
        rn_tensor_create(ctx->kernel->host_memory, inout->dtype, rn_tensor_shape(inout), &own));
  }
  rn_host_add(inout, value, sum);
  if (sum == inout) return RN_OK;
  rn_tensor_clear(inout);
  *inout = own;
  return RN_OK;
}

static rn_status_t add_on_device(rn_kernel_ctx_t* ctx, rn_tensor_t* inout,
                                 const rn_tensor_t* value) {
  if (!rn_tensor_is_exclusive(inout)) {
    rn_tensor_t own = {0};
    RN_RETURN_IF_ERROR(rn_device_duplicate(ctx->kernel->device, inout, &own));
    rn_tensor_clear(inout);
    *inout = own;
  }
  return rn_ctx_add(ctx, value, inout);
}

static rn_status_t add_tensor(rn_kernel_ctx_t* ctx, rn_tensor_t* inout, const rn_tensor_t* value,
                              rn_device_t* device, int depth) {
  if (inout->dtype != value->dtype)
    return rn_invalid_argument(
        "Trying to add two tensors of different dtypes. One is %s and the "
        "other is %s",
        rn_dtype_name(inout->dtype), rn_dtype_name(value->dtype));
  if (!rn_tensor_same_shape(inout, value))
    return rn_invalid_argument(
        "Trying to add two tensors with incompatible element shapes. One is %s and the other is %s",
        rn_text_of(inout).text, rn_text_of(value).text);
  if (value->dtype != RN_VARIANT && !rn_dtypes_has(RN_TYPES_NUMBERS, value->dtype))
    return rn_invalid_argument("Trying to add unsupported dtype %s", rn_dtype_name(value->dtype));
  if (value->dtype == RN_VARIANT) return add_variants(ctx, inout, value, depth);
  return device ? add_on_device(ctx, inout, value) : add_numbers(ctx, inout, value);
}

static rn_status_t add_list(rn_kernel_ctx_t* ctx, rn_tensor_list_t* sum,
                            const rn_tensor_list_t* other, int depth) {
  if (sum->dtype != other->dtype)
    return rn_invalid_argument(
        "Trying to add two lists of tensors of different dtypes. One is %s and the other is %s",
        rn_dtype_name(sum->dtype), rn_dtype_name(other->dtype));
  if (sum->count != other->count)
    return rn_invalid_argument(
        "Trying to add two lists of tensors with different lengths. One is %lld and the other is "
        "%lld",
        (long long)sum->count, (long long)other->count);
  if (!rn_shape_compatible(sum->element_shape, other->element_shape))
    return rn_invalid_argument(
        "Trying to add two lists of tensors with incompatible element shapes. One is %s and the "
        "other is %s",
        rn_partial_text(sum->element_shape).text, rn_partial_text(other->element_shape).text);
  RN_RETURN_IF_ERROR(rn_tensor_list_refine(sum, other->element_shape));
  for (int64_t i = other->set_begin; i < other->set_end; ++i) {
    if (!rn_tensor_list_has(other, i)) continue;
    if (rn_tensor_list_has(sum, i)) {
      RN_RETURN_IF_ERROR(add_tensor(ctx, &sum->items[i], &other->items[i], sum->device, depth));
      continue;
    }
    rn_tensor_t item = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&other->items[i], &item));
    rn_tensor_list_set(sum, i, &item);
  }
  return RN_OK;
}

// |*inout| becomes an optional of sums. Shares its components first, and copies those that
// something else refers to.
static rn_status_t add_optional(rn_kernel_ctx_t* ctx, rn_object_t** inout,
                                const rn_optional_t* other, int depth) {
  const rn_optional_t* old = rn_optional_from(*inout);
  if ((old->count < 0) != (other->count < 0))
    return rn_invalid_argument(
        "Cannot add optionals because one has a value and the other doesn't.");
  if (old->count != other->count)
    return rn_invalid_argument(
        "Cannot add optionals because they have different numbers of components (%d vs. %d).",
        old->count, other->count);
  rn_optional_t* sum = NULL;
  RN_RETURN_IF_ERROR(rn_optional_create(old->count, &sum));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < sum->count; ++i) {
    status = rn_tensor_share(&old->values[i], &sum->values[i]);
    if (rn_ok(status)) status = add_tensor(ctx, &sum->values[i], &other->values[i], NULL, depth);
  }
  rn_object_release(rn_ok(status) ? *inout : &sum->object);
  if (rn_ok(status)) *inout = &sum->object;
  return status;
}

// Keys of both maps get the sum of their values.
static rn_status_t add_map(rn_kernel_ctx_t* ctx, rn_tensor_map_t* sum, const rn_tensor_map_t* other,
                           int depth) {
  size_t at = 0;
  for (rn_tensor_map_entry_t *from, *to; (from = rn_tensor_map_next(other, &at));) {
    RN_RETURN_IF_ERROR(rn_tensor_map_find(sum, &from->key, &to));
    if (to) {
      RN_RETURN_IF_ERROR(add_tensor(ctx, &to->value, &from->value, NULL, depth));
      continue;
    }
    rn_tensor_t value = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&from->value, &value));
    RN_RETURN_IF_ERROR(rn_tensor_map_put(sum, &from->key, &value));
  }
  return RN_OK;
}

// |*inout|, a reference, becomes a new map.
static rn_status_t add_maps(rn_kernel_ctx_t* ctx, rn_object_t** inout, const rn_tensor_map_t* other,
                            int depth) {
  rn_tensor_map_t* sum = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_map_copy(rn_tensor_map_from(*inout), &sum));
  rn_status_t status = add_map(ctx, sum, other, depth);
  rn_object_release(rn_ok(status) ? *inout : &sum->object);
  if (rn_ok(status)) *inout = &sum->object;
  return status;
}

static rn_status_t check_ragged(const rn_tensors_variant_t* a, const rn_tensors_variant_t* b) {
  rn_dtype_t x = a->values[a->count - 1].dtype, y = b->values[b->count - 1].dtype;
  if (x != y)
    return rn_invalid_argument(
        "Can't add RaggedTensorVariants of different dtypes. One is %s and the other is %s",
        rn_dtype_name(x), rn_dtype_name(y));
  if (a->count != b->count)
    return rn_invalid_argument(
        "Can't add RaggedTensorVariants of different ragged rank. One is %d and the other is %d",
        a->count - 1, b->count - 1);
  for (int32_t i = 0; i < a->count - 1; ++i) {
    const rn_tensor_t *s = &a->values[i], *t = &b->values[i];
    if (s->dtype != t->dtype || !rn_tensor_same_shape(s, t) ||
        (s->count && memcmp(s->data, t->data, rn_tensor_bytes(s)) != 0))
      return rn_invalid_argument("Can't add RaggedTensorVariants with different row_splits.");
  }
  return RN_OK;
}

// |*inout|, a reference, becomes a new ragged tensor.
static rn_status_t add_ragged(rn_kernel_ctx_t* ctx, rn_object_t** inout,
                              const rn_tensors_variant_t* other, int depth) {
  const rn_tensors_variant_t* old = rn_tensors_variant_from(*inout, RN_TENSORS_RAGGED);
  rn_tensors_variant_t* sum = NULL;
  RN_RETURN_IF_ERROR(check_ragged(old, other));
  RN_RETURN_IF_ERROR(
      rn_tensors_variant_create(old->allocator, RN_TENSORS_RAGGED, RN_STR(""), old->count, &sum));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < sum->count; ++i)
    status = rn_tensor_share(&old->values[i], &sum->values[i]);
  int32_t last = sum->count - 1;
  if (rn_ok(status))
    status = add_tensor(ctx, &sum->values[last], &other->values[last], NULL, depth);
  rn_object_release(rn_ok(status) ? *inout : &sum->object);
  if (rn_ok(status)) *inout = &sum->object;
  return status;
}

// |*inout|, a reference, becomes the sum: the same list if nothing else refers to it.
static rn_status_t add_objects(rn_kernel_ctx_t* ctx, rn_object_t** inout, rn_object_t* other,
                               int depth) {
  if (depth == MOST_DEPTH) return rn_invalid_argument("Variants are nested too deeply");
  rn_tensor_t a = {.data = inout, .count = 1}, b = {.data = &other, .count = 1};
  rn_tensor_list_t *sum = rn_tensor_list_at(&a, 0), *value = rn_tensor_list_at(&b, 0);
  if (!other) return RN_OK;
  if (!*inout) {
    *inout = rn_object_retain(other);
    return RN_OK;
  }
  if (rn_optional_from(*inout) && rn_optional_from(other))
    return add_optional(ctx, inout, rn_optional_from(other), depth + 1);
  if (rn_tensor_map_from(*inout) && rn_tensor_map_from(other))
    return add_maps(ctx, inout, rn_tensor_map_from(other), depth + 1);
  const rn_tensors_variant_t* ragged = rn_tensors_variant_from(other, RN_TENSORS_RAGGED);
  if (ragged && rn_tensors_variant_from(*inout, RN_TENSORS_RAGGED))
    return add_ragged(ctx, inout, ragged, depth + 1);
  const rn_number_variant_t *x = rn_number_variant_from(*inout), *y = rn_number_variant_from(other);
  if (x && y) {
    rn_object_t* total = NULL;
    RN_RETURN_IF_ERROR(rn_number_variant_add(x, y, &total));
    rn_object_release(*inout);
    *inout = total;
    return RN_OK;
  }
  rn_csr_t *left = rn_csr_from(*inout), *right = rn_csr_from(other);
  if (left && right) {
    rn_csr_t* total = NULL;
    RN_RETURN_IF_ERROR(rn_csr_add(ctx, left, right, &total));
    rn_object_release(*inout);
    *inout = &total->object;
    return RN_OK;
  }
  if (!sum || !value) return rn_internal("No binary variant binary_op function found for op ADD");
  rn_tensor_list_t* came = sum;
  RN_RETURN_IF_ERROR(usable(ctx, sum, &sum));
  RN_RETURN_IF_ERROR(rn_tensor_list_on(value, sum->device, &value));
  if (sum == value || sum != came || sum->object.refs != 1) {
    rn_tensor_list_t* copy = NULL;
    RN_RETURN_IF_ERROR(rn_tensor_list_copy(sum, &copy));
    rn_object_release(*inout);
    *inout = &copy->object;
    sum = copy;
  }
  rn_tensor_list_forget_copies(sum);
  return add_list(ctx, sum, value, depth + 1);
}

// Whether the sum may replace the first input: only if that is not another input as well.
static bool may_overwrite(const rn_kernel_ctx_t* ctx) {
  for (int i = 1; i < ctx->kernel->input_count; ++i)
    if (rn_in(ctx, i)->data == rn_in(ctx, 0)->data) return false;
  return true;
}

static rn_status_t add_n(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* first = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, may_overwrite(ctx), rn_tensor_shape(first), &out));
  if (out->data != first->data)
    RN_RETURN_IF_ERROR(rn_move_row(RN_VARIANT, first->data, out->data, first->count));
  for (int i = 1; i < ctx->kernel->input_count; ++i) {
    const rn_tensor_t* other = rn_in(ctx, i);
    if (!rn_tensor_same_shape(first, other))
      return rn_invalid_argument(
          "Inputs to operation %.*s of type AddN must have the same size "
          "and shape.  Input 0: %s != input %d: %s",
          RN_STR_ARGS(ctx->kernel->node), rn_text_of(first).text, i, rn_text_of(other).text);
    for (int64_t k = 0; k < other->count; ++k)
      RN_RETURN_IF_ERROR(
          add_objects(ctx, &RN_DATA(out, rn_object_t*)[k], RN_DATA(other, rn_object_t*)[k], 0));
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "ZerosLike",
     .device = "CPU",
     .types = {{"T", RN_T(VARIANT)}},
     .flags = RN_KERNEL_OWN_OUTPUTS,
     .compute = zeros_like},
    {.op = "AddN", .device = "CPU", .types = {{"T", RN_T(VARIANT)}}, .compute = add_n},
};
RN_KERNEL_FAMILY(cpu_tensor_list_math, rows);

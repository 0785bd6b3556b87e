// Kernels that read or change shapes without touching the elements.
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/kernel_rows.h"

static rn_status_t write_shape(rn_kernel_ctx_t* ctx, int i) {
  const rn_tensor_t* input = rn_in(ctx, i);
  const int64_t rank = input->rank;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &rank}, &out));
  const int64_t* dims = rn_tensor_dims(input);
  if (out->dtype == RN_INT64) {
    for (int64_t d = 0; d < rank; ++d) RN_DATA(out, int64_t)[d] = dims[d];
    return RN_OK;
  }
  for (int64_t d = 0; d < rank; ++d) {
    if (dims[d] > INT32_MAX)
      return rn_invalid_argument("Shape output type is 32-bit  but dim %lld is %lld", (long long)d,
                                 (long long)dims[d]);
    RN_DATA(out, int32_t)[d] = (int32_t)dims[d];
  }
  return RN_OK;
}

static rn_status_t shape(rn_kernel_ctx_t* ctx) {
  for (int i = 0; i < ctx->kernel->output_count; ++i) RN_RETURN_IF_ERROR(write_shape(ctx, i));
  return RN_OK;
}

static rn_status_t size(rn_kernel_ctx_t* ctx) {
  int64_t count = rn_in(ctx, 0)->count;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  if (out->dtype == RN_INT32 && count > INT32_MAX)
    return rn_invalid_argument(
        "Number of elements was larger than representable by 32-bit output type");
  rn_int_set(out, 0, count);
  return RN_OK;
}

static rn_status_t rank(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_int_set(out, 0, rn_in(ctx, 0)->rank);
  return RN_OK;
}

// The requested sizes, with at most one -1; its position goes to |*out_unknown| and the product of
// the others to |*out_product|.
static rn_status_t read_sizes(const rn_tensor_t* sizes, int64_t* dims, int64_t* out_product,
                              int* out_unknown) {
  int64_t product = 1;
  int unknown = -1;
  bool overflows = false, has_zero = false;
  for (int i = 0; i < (int)sizes->count; ++i) {
    dims[i] = rn_int_at(sizes, i);
    if (dims[i] == -1) {
      if (unknown >= 0)
        return rn_invalid_argument("Only one input size may be -1, not both %d and %d", unknown, i);
      unknown = i;
      continue;
    }
    if (dims[i] < 0)
      return rn_invalid_argument("Size %d must be non-negative, not %lld", i, (long long)dims[i]);
    has_zero = has_zero || dims[i] == 0;
    if (!rn_mul_i64_ok(product, dims[i], &product)) overflows = true, product = 1;
  }
  if (has_zero) product = 0;
  if (overflows && !has_zero)
    return rn_invalid_argument("Shape %s has too many elements",
                               rn_shape_text((rn_shape_t){(int32_t)sizes->count, dims}).text);
  *out_product = product;
  *out_unknown = unknown;
  return RN_OK;
}

// The inferred size if another size is zero: computed as if all zero sizes were left out.
static int64_t missing_of_empty(const rn_tensor_t* input, const rn_tensor_t* sizes) {
  uint64_t wanted = 1, given = 1;
  for (int d = 0; d < input->rank; ++d)
    if (rn_tensor_dim(input, d) != 0) wanted *= (uint64_t)rn_tensor_dim(input, d);
  for (int64_t i = 0; i < sizes->count; ++i)
    if (rn_int_at(sizes, i) > 0) given *= (uint64_t)rn_int_at(sizes, i);
  int64_t missing = given ? (int64_t)(wanted / given) : 0;
  return missing < 0 ? 0 : missing;
}

static rn_status_t reshape(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const rn_tensor_t* sizes = rn_in(ctx, 1);
  // Old graphs may pass a scalar in place of a vector of one element.
  if (sizes->rank > 1)
    return rn_invalid_argument("sizes input must be 1-D, not %s", rn_text_of(sizes).text);
  if (sizes->count >= RN_MAX_RANK)
    return rn_invalid_argument("too many dimensions: must be < %d, but received %lld", RN_MAX_RANK,
                               (long long)sizes->count);
  int64_t dims[RN_MAX_RANK], product;
  int unknown;
  RN_RETURN_IF_ERROR(read_sizes(sizes, dims, &product, &unknown));
  if (unknown >= 0) {
    int64_t missing = product > 0 ? input->count / product : missing_of_empty(input, sizes);
    if (product > 0 && product * missing != input->count)
      return rn_invalid_argument(
          "Input to reshape is a tensor with %lld values, but the requested shape requires a "
          "multiple of %lld",
          (long long)input->count, (long long)product);
    dims[unknown] = missing;
    product *= missing;
  }
  if (product != input->count)
    return rn_invalid_argument(
        "Input to reshape is a tensor with %lld values, but the requested shape has %lld",
        (long long)input->count, (long long)product);
  return rn_forward_reshaped(ctx, 0, 0, (rn_shape_t){(int32_t)sizes->count, dims});
}

static rn_status_t quantized_reshape(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"input_min", "input_max"};
  RN_RETURN_IF_ERROR(reshape(ctx));
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 2 + i)->rank > 1 || rn_in(ctx, 2 + i)->count != 1)
      return rn_invalid_argument("%s must be a scalar or a vector of 1 element", names[i]);
  return rn_quant_set_limits(ctx, 1, rn_quant_limits_at(ctx, 2));
}

static rn_status_t expand_dims(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const rn_tensor_t* axis = rn_in(ctx, 1);
  if (axis->count != 1) return rn_invalid_argument("'dim' must be a tensor with a single value");
  int64_t at = rn_int_at(axis, 0), rank = input->rank;
  if (at < -1 - rank || at > rank)
    return rn_invalid_argument("Tried to expand dim index %lld for tensor with %lld dimensions.",
                               (long long)at, (long long)rank);
  if (at < 0) at += rank + 1;
  if (rank + 1 > RN_MAX_RANK)
    return rn_invalid_argument("Tensors have at most %d dimensions", RN_MAX_RANK);
  int64_t dims[RN_MAX_RANK];
  const int64_t* old = rn_tensor_dims(input);
  for (int64_t d = 0; d < at; ++d) dims[d] = old[d];
  dims[at] = 1;
  for (int64_t d = at; d < rank; ++d) dims[d + 1] = old[d];
  return rn_forward_reshaped(ctx, 0, 0, (rn_shape_t){(int32_t)rank + 1, dims});
}

typedef struct squeeze_t {
  int32_t count;
  int64_t axes[RN_MAX_RANK];
} squeeze_t;

static rn_status_t squeeze_init(const rn_kernel_init_t* init, void* state) {
  squeeze_t* squeeze = state;
  const rn_attr_value_t* axes = rn_init_attr(init, "squeeze_dims");
  if (axes->count > RN_MAX_RANK)
    return rn_invalid_argument("squeeze_dims has more than %d values", RN_MAX_RANK);
  squeeze->count = (int32_t)axes->count;
  for (int32_t i = 0; i < squeeze->count; ++i) squeeze->axes[i] = axes->list_i[i];
  return RN_OK;
}

static rn_status_t squeeze(rn_kernel_ctx_t* ctx) {
  const squeeze_t* squeeze = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int64_t* old = rn_tensor_dims(input);
  bool goes[RN_MAX_RANK] = {false};
  for (int32_t i = 0; i < squeeze->count; ++i) {
    int64_t axis = squeeze->axes[i];
    if (axis < -input->rank || axis >= input->rank)
      return rn_invalid_argument("Tried to squeeze dim index %lld for tensor with %d dimensions.",
                                 (long long)axis, input->rank);
    if (axis < 0) axis += input->rank;
    goes[axis] = true;
  }
  int64_t dims[RN_MAX_RANK];
  int32_t rank = 0;
  for (int d = 0; d < input->rank; ++d) {
    if (goes[d] && old[d] != 1)
      return rn_invalid_argument("Can not squeeze dim[%d], expected a dimension of 1, got %lld", d,
                                 (long long)old[d]);
    if (!goes[d] && (old[d] != 1 || squeeze->count > 0)) dims[rank++] = old[d];
  }
  return rn_forward_reshaped(ctx, 0, 0, (rn_shape_t){rank, dims});
}

typedef struct ensure_t {
  rn_allocator_t allocator;
  char* input;  // source of the tensor, for the message
  int32_t rank;
  int64_t dims[RN_MAX_RANK];
} ensure_t;

static rn_status_t ensure_init(const rn_kernel_init_t* init, void* state) {
  ensure_t* ensure = state;
  rn_shape_t wanted = rn_init_attr(init, "shape")->shape;
  ensure->rank = wanted.rank;
  for (int32_t d = 0; d < wanted.rank; ++d) ensure->dims[d] = wanted.dims[d];
  ensure->allocator = init->allocator;
  return rn_str_dup(init->allocator, init->sources ? init->sources[0].node : RN_STR(""),
                    &ensure->input);
}

static void ensure_destroy(void* state) {
  ensure_t* ensure = state;
  if (ensure->input) RN_FREE_ARRAY(ensure->allocator, ensure->input, strlen(ensure->input) + 1);
}

static rn_status_t ensure_shape(rn_kernel_ctx_t* ctx) {
  const ensure_t* ensure = ctx->state;
  rn_shape_t wanted = {ensure->rank, ensure->dims};
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (!rn_shape_compatible(rn_tensor_shape(input), wanted))
    return rn_invalid_argument("Shape of tensor %s %s is not compatible with expected shape %s.",
                               ensure->input, rn_text_of(input).text, rn_shape_text(wanted).text);
  return rn_forward(ctx, 0, 0);
}

static rn_status_t bitcast(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_dtype_t type = rn_dtype_base(ctx->kernel->output_types[0]);
  int64_t in_size = (int64_t)rn_dtype_size(input->dtype), out_size = (int64_t)rn_dtype_size(type);
  int64_t dims[RN_MAX_RANK];
  int32_t rank = input->rank;
  const int64_t* old = rn_tensor_dims(input);
  for (int32_t d = 0; d < rank; ++d) dims[d] = old[d];
  if (out_size < in_size) {
    if (rank == RN_MAX_RANK)
      return rn_invalid_argument("Tensors have at most %d dimensions", RN_MAX_RANK);
    dims[rank++] = in_size / out_size;
  } else if (out_size > in_size) {
    if (rank == 0 || dims[rank - 1] * in_size != out_size)
      return rn_invalid_argument("Cannot bitcast from %d to %d", input->dtype, type);
    --rank;
  }
  rn_tensor_t out = {0};
  rn_shape_t shape = {rank, dims};
  rn_status_t status = rn_tensor_reshape(input, type, shape, &out);
  if (!rn_ok(status)) {
    // A view into the middle of a buffer may be misaligned for the wider type.
    rn_status_free(status);
    rn_tensor_t* copy = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &copy));
    return rn_ctx_copy(ctx, input, copy);
  }
  rn_set_output(ctx, 0, &out);
  return RN_OK;
}

static rn_status_t pass_on(rn_kernel_ctx_t* ctx) { return rn_forward(ctx, 0, 0); }

static rn_status_t guarantee_const(rn_kernel_ctx_t* ctx) {
  if (rn_in(ctx, 0)->dtype == RN_RESOURCE)
    return rn_invalid_argument("Input tensor cannot be a resource variable handle.");
  return rn_forward(ctx, 0, 0);
}

static rn_status_t deep_copy(rn_kernel_ctx_t* ctx) {
  rn_tensor_t copy = {0};
  RN_RETURN_IF_ERROR(rn_ctx_duplicate(ctx, rn_in(ctx, 0), &copy));
  rn_set_output(ctx, 0, &copy);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Shape", .device = "CPU", .compute = shape},
    {.op = "ShapeN", .device = "CPU", .compute = shape},
    {.op = "Size", .device = "CPU", .compute = size},
    {.op = "Rank", .device = "CPU", .compute = rank},
    {.op = "Reshape", .device = "CPU", .flags = RN_KERNEL_FORWARDS, .compute = reshape},
    {.op = "QuantizedReshape",
     .device = "CPU",
     .types = {{"T", RN_T(QUINT8) | RN_T(QINT32)}},
     .host_args = RN_HOST_ARGS("shape"),
     .compute = quantized_reshape},
    {.op = "ExpandDims", .device = "CPU", .flags = RN_KERNEL_FORWARDS, .compute = expand_dims},
    {.op = "Squeeze",
     .device = "CPU",
     .flags = RN_KERNEL_FORWARDS,
     .state_size = sizeof(squeeze_t),
     .init = squeeze_init,
     .compute = squeeze},
    {.op = "EnsureShape",
     .device = "CPU",
     .flags = RN_KERNEL_FORWARDS,
     .state_size = sizeof(ensure_t),
     .init = ensure_init,
     .destroy = ensure_destroy,
     .compute = ensure_shape},
    {.op = "Bitcast", .device = "CPU", .flags = RN_KERNEL_FORWARDS, .compute = bitcast},
    {.op = "Snapshot",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .flags = RN_KERNEL_FORWARDS,
     .compute = pass_on},
    {.op = "GuaranteeConst",
     .device = "CPU",
     .flags = RN_KERNEL_FORWARDS,
     .compute = guarantee_const},
    {.op = "DeepCopy", .device = "CPU", .flags = RN_KERNEL_OWN_OUTPUTS, .compute = deep_copy},
};
RN_KERNEL_FAMILY(cpu_shape_ops, rows);

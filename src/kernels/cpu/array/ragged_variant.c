// Ragged tensors in variants: their row splits, outermost first, and their values.
#include <inttypes.h>

#include "kernels/cpu/array/ragged.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/tensors_variant.h"
#include "kernels/cpu/list/variant_text.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel_rows.h"

static rn_status_t ragged_create(const rn_kernel_ctx_t* ctx, int partitions,
                                 rn_tensors_variant_t** out) {
  return rn_tensors_variant_create(ctx->kernel->allocator, RN_TENSORS_RAGGED, RN_STR(""),
                                   partitions + 1, out);
}

static const rn_tensor_t* values_of(const rn_tensors_variant_t* ragged) {
  return &ragged->values[ragged->count - 1];
}

// RaggedTensorToVariant.

typedef struct ragged_encoder_t {
  bool is_batched;
} ragged_encoder_t;

static rn_status_t encoder_init(const rn_kernel_init_t* init, void* state) {
  ((ragged_encoder_t*)state)->is_batched = rn_init_bool(init, "batched_input");
  return RN_OK;
}

static rn_status_t encode_whole(rn_kernel_ctx_t* ctx) {
  rn_tensors_variant_t* ragged = NULL;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  RN_RETURN_IF_ERROR(ragged_create(ctx, ctx->kernel->input_count - 1, &ragged));
  *RN_DATA(out, rn_object_t*) = &ragged->object;
  for (int i = 0; i < ctx->kernel->input_count; ++i)
    RN_RETURN_IF_ERROR(rn_ctx_keep(ctx, rn_in(ctx, i), &ragged->values[i]));
  return RN_OK;
}

// The splits [begin, end] of |splits|, less the first of them.
static rn_status_t cut_splits(const rn_kernel_ctx_t* ctx, const rn_tensor_t* splits, int64_t begin,
                              int64_t end, rn_tensor_t* out) {
  int64_t count = end - begin + 1, first = rn_int_at(splits, begin);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ctx->kernel->host_memory, splits->dtype, (rn_shape_t){1, &count}, out));
  for (int64_t i = 0; i < count; ++i) rn_int_set(out, i, rn_int_at(splits, begin + i) - first);
  return RN_OK;
}

// Row |row| of the outermost partition as a ragged tensor; of values without partitions, as a dense
// one.
static rn_status_t encode_row(rn_kernel_ctx_t* ctx, int64_t row, rn_object_t** out) {
  int partitions = ctx->kernel->input_count - 1;
  rn_tensors_variant_t* ragged = NULL;
  RN_RETURN_IF_ERROR(ragged_create(ctx, partitions ? partitions - 1 : 0, &ragged));
  *out = &ragged->object;
  if (partitions == 0)
    return rn_rows_slice(rn_in(ctx, 0), row, 1, true, true, ctx->kernel->host_memory,
                         &ragged->values[0]);
  int64_t begin = rn_int_at(rn_in(ctx, 0), row), end = rn_int_at(rn_in(ctx, 0), row + 1);
  for (int i = 1; i < partitions; ++i) {
    const rn_tensor_t* splits = rn_in(ctx, i);
    RN_RETURN_IF_ERROR(cut_splits(ctx, splits, begin, end, &ragged->values[i - 1]));
    begin = rn_int_at(splits, begin);
    end = rn_int_at(splits, end);
  }
  return rn_rows_slice(rn_in(ctx, partitions), begin, end - begin, false, true,
                       ctx->kernel->host_memory, &ragged->values[partitions - 1]);
}

static rn_status_t encode(rn_kernel_ctx_t* ctx) {
  int partitions = ctx->kernel->input_count - 1;
  const rn_tensor_t* values = rn_in(ctx, partitions);
  bool is_batched = ((const ragged_encoder_t*)ctx->state)->is_batched;
  if (values->rank < 1 && (partitions || is_batched))
    return rn_invalid_argument("The values must not be a scalar");
  for (int i = partitions - 1; i >= 0; --i) {
    int64_t below = i + 1 < partitions ? rn_in(ctx, i + 1)->count - 1 : rn_tensor_dim(values, 0);
    RN_RETURN_IF_ERROR(rn_ragged_check_splits(rn_in(ctx, i), below));
  }
  if (!is_batched) return encode_whole(ctx);
  rn_tensor_t* out = NULL;
  int64_t rows = partitions ? rn_in(ctx, 0)->count - 1 : rn_tensor_dim(values, 0);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &rows}, &out));
  for (int64_t i = 0; i < rows; ++i)
    RN_RETURN_IF_ERROR(encode_row(ctx, i, &RN_DATA(out, rn_object_t*)[i]));
  return RN_OK;
}

// RaggedTensorFromVariant.

typedef struct decoder_t {
  int64_t in_rank, out_rank;  // ragged ranks
} decoder_t;

static rn_status_t decoder_init(const rn_kernel_init_t* init, void* state) {
  *(decoder_t*)state =
      (decoder_t){rn_init_int(init, "input_ragged_rank"), rn_init_int(init, "output_ragged_rank")};
  return RN_OK;
}

static rn_tensors_variant_t* element(const rn_kernel_ctx_t* ctx, int64_t i) {
  return rn_tensors_variant_from(RN_DATA(rn_in(ctx, 0), rn_object_t*)[i], RN_TENSORS_RAGGED);
}

static rn_status_t not_ragged(const rn_kernel_ctx_t* ctx, int64_t i) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  rn_strbuf_printf(
      &text, "Input Variant element at index %" PRId64 " doesn't hold a RaggedTensorVariant: ", i);
  rn_variant_print(&text, RN_DATA(rn_in(ctx, 0), rn_object_t*)[i]);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

static rn_status_t check_element(const rn_kernel_ctx_t* ctx, int64_t i, int64_t rank,
                                 rn_dtype_t splits_type) {
  const rn_tensors_variant_t* ragged = element(ctx, i);
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[ctx->kernel->output_count - 1]);
  if (!ragged) return not_ragged(ctx, i);
  if (ragged->count - 1 != rank)
    return rn_invalid_argument(
        "Encoded input RaggedTensorVariant has ragged_rank=%d.  Expected "
        "ragged_rank=%" PRId64 ".",
        ragged->count - 1, rank);
  if (values_of(ragged)->dtype != dtype)
    return rn_invalid_argument("Expected values Tensor dtype: %s, found: %s", rn_dtype_name(dtype),
                               rn_dtype_name(values_of(ragged)->dtype));
  if (values_of(ragged)->rank < 1 && rn_in(ctx, 0)->rank > 0 && ctx->kernel->output_count > 1)
    return rn_invalid_argument(
        "Ragged values must have rank >= 1; encoded scalar element at index %" PRId64
        " has values Tensor: a scalar",
        i);
  for (int k = 0; k < ragged->count - 1; ++k) {
    const rn_tensor_t* splits = &ragged->values[k];
    if (splits->dtype != splits_type)
      return rn_invalid_argument("Expected row_splits Tensor dtype: %s, found: %s",
                                 rn_dtype_name(splits_type), rn_dtype_name(splits->dtype));
    if (splits->rank != 1)
      return rn_invalid_argument(
          "Ragged splits must have rank 1; encoded scalar element at index %" PRId64
          " has splits of shape %s",
          i, rn_text_of(splits).text);
    if (splits->count == 0)
      return rn_invalid_argument(
          "Invalid ragged splits: ragged splits must have at least one "
          "splits, but is empty");
  }
  return RN_OK;
}

// The splits for the dimensions of the variants but the last: rows of equal length.
static rn_status_t stack_regular(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  for (int d = 0; d < in->rank - 1; ++d) {
    rn_tensor_t* out = NULL;
    int64_t count = rn_tensor_dim(in, d) + 1, step = rn_tensor_dim(in, d + 1);
    RN_RETURN_IF_ERROR(rn_output(ctx, d, (rn_shape_t){1, &count}, &out));
    for (int64_t i = 0; i < count; ++i) rn_int_set(out, i, (int64_t)((uint64_t)i * (uint64_t)step));
  }
  return RN_OK;
}

// The number of rows of |ragged|.
static int64_t rows_of(const rn_tensors_variant_t* ragged) {
  return ragged->count > 1 ? ragged->values[0].count - 1 : rn_tensor_dim(values_of(ragged), 0);
}

static rn_status_t stack_rows(rn_kernel_ctx_t* ctx, int output) {
  rn_tensor_t* out = NULL;
  int64_t count = rn_in(ctx, 0)->count + 1, total = 0;
  RN_RETURN_IF_ERROR(rn_output(ctx, output, (rn_shape_t){1, &count}, &out));
  rn_int_set(out, 0, 0);
  for (int64_t i = 0; i < count - 1; ++i) {
    if (!rn_add_i64_ok(total, rows_of(element(ctx, i)), &total))
      return rn_invalid_argument("The ragged tensors have too many rows");
    rn_int_set(out, i + 1, total);
  }
  return RN_OK;
}

// Joins the splits of partition |p|, each shifted by the end of those before it.
static rn_status_t stack_splits(rn_kernel_ctx_t* ctx, int p, int output) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t count = 1, at = 0;
  for (int64_t i = 0; i < in->count; ++i)
    if (!rn_add_i64_ok(count, element(ctx, i)->values[p].count - 1, &count))
      return rn_invalid_argument("The ragged tensors have too many rows");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, output, (rn_shape_t){1, &count}, &out));
  rn_int_set(out, at++, 0);
  for (int64_t i = 0; i < in->count; ++i) {
    const rn_tensor_t* splits = &element(ctx, i)->values[p];
    uint64_t shift = (uint64_t)rn_int_at(out, at - 1);
    for (int64_t k = 1; k < splits->count; ++k)
      rn_int_set(out, at++, (int64_t)((uint64_t)rn_int_at(splits, k) + shift));
  }
  return RN_OK;
}

// Copies the values of all elements into |out|, one behind the other.
static rn_status_t join_values(rn_kernel_ctx_t* ctx, rn_tensor_t* out) {
  char* to = out->data;
  for (int64_t i = 0; i < rn_in(ctx, 0)->count; ++i) {
    const rn_tensor_t* values = values_of(element(ctx, i));
    RN_RETURN_IF_ERROR(rn_move_row(values->dtype, values->data, to, values->count));
    to += rn_tensor_bytes(values);
  }
  return RN_OK;
}

static rn_status_t stack_values(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK] = {0};
  rn_shape_t shape = {1, dims};
  for (int64_t i = 0; i < in->count; ++i) {
    const rn_tensor_t *values = values_of(element(ctx, i)), *first = values_of(element(ctx, 0));
    if (values->rank != first->rank)
      return rn_invalid_argument(
          "Rank of values must match for all components; values shape at index 0: %s, values shape "
          "at index %" PRId64 ": %s",
          rn_text_of(first).text, i, rn_text_of(values).text);
    const rn_shape_t row = {first->rank - 1, rn_tensor_dims(first) + 1};
    const rn_shape_t own = {values->rank - 1, rn_tensor_dims(values) + 1};
    if (!rn_shape_eq(row, own))
      return rn_invalid_argument(
          "All flat_values must have compatible shapes.  Shape at index 0: %s.  Shape at index "
          "%" PRId64
          ": %s.  If you are using tf.map_fn, then you may need to specify an explicit "
          "fn_output_signature with appropriate ragged_rank, and/or convert output tensors to "
          "RaggedTensors.",
          rn_shape_text(row).text, i, rn_shape_text(own).text);
    shape.rank = first->rank;
    for (int d = 1; d < first->rank; ++d) dims[d] = rn_tensor_dim(first, d);
    if (!rn_add_i64_ok(dims[0], rn_tensor_dim(values, 0), &dims[0]))
      return rn_invalid_argument("The ragged tensors have too many values");
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, ctx->kernel->output_count - 1, shape, &out));
  return join_values(ctx, out);
}

// Stacks elements that are tensors, all of one shape, along one new dimension.
static rn_status_t stack_tensors(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK] = {0};
  rn_shape_t shape = {1, dims};
  dims[0] = in->count;
  for (int64_t i = 0; i < in->count; ++i) {
    const rn_tensor_t *values = values_of(element(ctx, i)), *first = values_of(element(ctx, 0));
    if (!rn_shape_eq(rn_tensor_shape(first), rn_tensor_shape(values)))
      return rn_invalid_argument(
          "All flat_values must have compatible shapes.  Shape at index 0: %s.  Shape at index "
          "%" PRId64 ": %s.",
          rn_text_of(first).text, i, rn_text_of(values).text);
    if (first->rank == RN_MAX_RANK)
      return rn_invalid_argument("The stacked tensors have too many dimensions");
    shape.rank = first->rank + 1;
    memcpy(dims + 1, rn_tensor_dims(first), (size_t)first->rank * sizeof *dims);
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  return join_values(ctx, out);
}

static rn_status_t give_whole(rn_kernel_ctx_t* ctx, const rn_tensors_variant_t* ragged) {
  for (int i = 0; i < ragged->count; ++i) {
    rn_tensor_t part = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&ragged->values[i], &part));
    rn_set_output(ctx, i, &part);
  }
  return RN_OK;
}

static rn_status_t decode(rn_kernel_ctx_t* ctx) {
  const decoder_t* decoder = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t rank = decoder->in_rank, out_rank = decoder->out_rank;
  const bool is_dense = out_rank == 0 && rank <= 0 && in->rank > 0;
  if (is_dense) rank = 0;
  if (rank == -1) {
    rank = out_rank - in->rank;
    if (rank < 0)
      return rn_invalid_argument(
          "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, "
          "found output_ragged_rank: %" PRId64
          ", encoded_variant.dims(): %d, inferred input_ragged_rank: %" PRId64,
          out_rank, in->rank, rank);
  }
  if (!is_dense && out_rank - in->rank != rank)
    return rn_invalid_argument(
        "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
        "output_ragged_rank: %" PRId64 ", input_ragged_rank: %" PRId64
        ", encoded_variant.dims(): %d.",
        out_rank, rank, in->rank);
  rn_dtype_t splits = out_rank ? rn_dtype_base(ctx->kernel->output_types[0]) : RN_INVALID;
  for (int64_t i = 0; i < in->count; ++i) RN_RETURN_IF_ERROR(check_element(ctx, i, rank, splits));
  if (is_dense) return stack_tensors(ctx);
  if (in->rank == 0) return give_whole(ctx, element(ctx, 0));
  RN_RETURN_IF_ERROR(stack_regular(ctx));
  RN_RETURN_IF_ERROR(stack_rows(ctx, in->rank - 1));
  for (int p = 0; p < rank; ++p) RN_RETURN_IF_ERROR(stack_splits(ctx, p, in->rank + p));
  return stack_values(ctx);
}

// RaggedTensorToVariantGradient.

// The values of element |i|; zeros if it is empty, which happens if only some rows were used.
static rn_status_t gradient_at(rn_kernel_ctx_t* ctx, int64_t i, rn_shape_t shape,
                               rn_tensor_t* out) {
  const rn_tensor_t* splits = rn_in(ctx, 1);
  const rn_tensors_variant_t* ragged = element(ctx, i);
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[0]);
  if (ragged && values_of(ragged)->dtype != dtype)
    return rn_invalid_argument("Expected values Tensor dtype: %s, found: %s", rn_dtype_name(dtype),
                               rn_dtype_name(values_of(ragged)->dtype));
  if (ragged) return rn_tensor_share(values_of(ragged), out);
  if (i + 1 >= splits->count || shape.rank < 1)
    return rn_invalid_argument("There are no row_splits for the gradient at index %" PRId64, i);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
  dims[0] = rn_int_at(splits, i + 1) - rn_int_at(splits, i);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(ctx->kernel->host_memory, dtype, (rn_shape_t){shape.rank, dims}, out));
  rn_move_zero(NULL, dtype, out->data, out->count);
  return RN_OK;
}

static rn_status_t join_gradients(rn_kernel_ctx_t* ctx, rn_shape_t shape) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  int64_t at = 0;
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < rn_in(ctx, 0)->count; ++i) {
    rn_tensor_t piece = {0};
    status = gradient_at(ctx, i, shape, &piece);
    if (rn_ok(status) && piece.count > out->count - at)
      status = rn_invalid_argument("The gradients have more values than dense_values_shape %s",
                                   rn_shape_text(shape).text);
    if (rn_ok(status))
      status =
          rn_move_row(out->dtype, piece.data,
                      RN_DATA(out, char) + (size_t)at * rn_dtype_size(out->dtype), piece.count);
    at += piece.count;
    rn_tensor_clear(&piece);
  }
  RN_RETURN_IF_ERROR(status);
  if (at < out->count)
    return rn_invalid_argument("The gradients have fewer values than dense_values_shape %s",
                               rn_shape_text(shape).text);
  return RN_OK;
}

static rn_status_t encode_gradient(rn_kernel_ctx_t* ctx) {
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 2), dims, &shape));
  if (rn_in(ctx, 1)->rank > 0) RN_RETURN_IF_ERROR(rn_ragged_check_splits(rn_in(ctx, 1), -1));
  if (rn_in(ctx, 0)->count != 1) return join_gradients(ctx, shape);
  rn_tensor_t only = {0};
  RN_RETURN_IF_ERROR(gradient_at(ctx, 0, shape, &only));
  rn_set_output(ctx, 0, &only);
  return RN_OK;
}

#define VALUES (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING))
#define ROW(name, ...) \
  { .op = name, .device = "CPU", .types = {{"Tvalues", VALUES}}, __VA_ARGS__ }

static const rn_kernel_def_t rows[] = {
    ROW("RaggedTensorToVariant", .flags = RN_KERNEL_KEEPS_INPUTS,
        .state_size = sizeof(ragged_encoder_t), .init = encoder_init, .compute = encode),
    ROW("RaggedTensorFromVariant", .flags = RN_KERNEL_OWN_OUTPUTS, .state_size = sizeof(decoder_t),
        .init = decoder_init, .compute = decode),
    ROW("RaggedTensorToVariantGradient", .flags = RN_KERNEL_OWN_OUTPUTS,
        .compute = encode_gradient),
};
RN_KERNEL_FAMILY(cpu_ragged_variant, rows);

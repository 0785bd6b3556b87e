// DynamicPartition and DynamicStitch: distribute rows over several tensors and merge them again.
#include "kernels/cpu/data_flow/dynamic_stitch.h"

#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/kernel_rows.h"

static bool starts_with(const rn_tensor_t* tensor, const rn_tensor_t* prefix) {
  if (tensor->rank < prefix->rank) return false;
  for (int d = 0; d < prefix->rank; ++d)
    if (rn_tensor_dim(tensor, d) != rn_tensor_dim(prefix, d)) return false;
  return true;
}

// Number of elements in the dimensions of |tensor| from |first| on.
static int64_t row_of(const rn_tensor_t* tensor, int first) {
  return tensor->count ? rn_dims_product(rn_tensor_dims(tensor), first, tensor->rank) : 0;
}

static rn_status_t count_parts(const rn_tensor_t* partitions, int number, int64_t* counts) {
  for (int64_t i = 0; i < partitions->count; ++i) {
    int64_t part = rn_int_at(partitions, i);
    if (part < 0 || part >= number)
      return rn_invalid_argument("partitions%s = %lld is not in [0, %d)",
                                 partitions->rank ? rn_place_text(partitions, i).text : "",
                                 (long long)part, number);
    ++counts[part];
  }
  return RN_OK;
}

rn_status_t rn_dynamic_partition_outputs(rn_kernel_ctx_t* ctx, const int64_t* counts) {
  const rn_tensor_t *data = rn_in(ctx, 0), *partitions = rn_in(ctx, 1);
  int64_t dims[RN_MAX_RANK + 1];
  const int32_t rank = data->rank - partitions->rank + 1;
  for (int d = 1; d < rank; ++d) dims[d] = rn_tensor_dim(data, partitions->rank + d - 1);
  for (int p = 0; p < ctx->kernel->output_count; ++p) {
    rn_tensor_t* out = NULL;
    dims[0] = counts[p];
    RN_RETURN_IF_ERROR(rn_output(ctx, p, (rn_shape_t){rank, dims}, &out));
  }
  return RN_OK;
}

static rn_status_t deal(rn_kernel_ctx_t* ctx, const rn_tensor_t* data,
                        const rn_tensor_t* partitions, int64_t* counts) {
  const int number = ctx->kernel->output_count;
  RN_RETURN_IF_ERROR(count_parts(partitions, number, counts));
  RN_RETURN_IF_ERROR(rn_dynamic_partition_outputs(ctx, counts));
  memset(counts, 0, (size_t)number * sizeof *counts);
  const int64_t row = row_of(data, partitions->rank);
  const int64_t bytes = row * (int64_t)rn_dtype_size(data->dtype);
  if (!row) return RN_OK;
  for (int64_t i = 0; i < partitions->count; ++i) {
    int64_t part = rn_int_at(partitions, i);
    RN_RETURN_IF_ERROR(rn_move_row(data->dtype, (const char*)data->data + i * bytes,
                                   (char*)ctx->out[part].data + counts[part]++ * bytes, row));
  }
  return RN_OK;
}

rn_status_t rn_dynamic_partition_check(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *data = rn_in(ctx, 0), *partitions = rn_in(ctx, 1);
  if (starts_with(data, partitions)) return RN_OK;
  return rn_invalid_argument(
      "data.shape must start with partitions.shape, got data.shape = %s, partitions.shape = %s",
      rn_text_of(data).text, rn_text_of(partitions).text);
}

static rn_status_t dynamic_partition(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *data = rn_in(ctx, 0), *partitions = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_dynamic_partition_check(ctx));
  const size_t number = (size_t)ctx->kernel->output_count;
  int64_t* counts = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, number, &counts));
  rn_status_t status = deal(ctx, data, partitions, counts);
  RN_FREE_ARRAY(ctx->kernel->allocator, counts, number);
  return status;
}

static rn_status_t check_parts(rn_kernel_ctx_t* ctx, int number, int64_t* out_rows) {
  int64_t highest = -1;
  const rn_tensor_t *data0 = rn_in(ctx, number), *indices0 = rn_in(ctx, 0);
  for (int i = 0; i < number; ++i) {
    const rn_tensor_t *indices = rn_in(ctx, i), *data = rn_in(ctx, number + i);
    if (!starts_with(data, indices))
      return rn_invalid_argument("data[%d].shape = %s does not start with indices[%d].shape = %s",
                                 i, rn_text_of(data).text, i, rn_text_of(indices).text);
    bool same = data->rank - indices->rank == data0->rank - indices0->rank;
    for (int d = indices->rank; same && d < data->rank; ++d)
      same = rn_tensor_dim(data, d) == rn_tensor_dim(data0, d - indices->rank + indices0->rank);
    if (!same)
      return rn_invalid_argument(
          "Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = %s, data[%d].shape = "
          "%s, indices[0].shape = %s, indices[%d].shape = %s",
          indices0->rank, i, indices->rank, rn_text_of(data0).text, i, rn_text_of(data).text,
          rn_text_of(indices0).text, i, rn_text_of(indices).text);
    for (int64_t k = 0; k < indices->count; ++k) {
      const int64_t index = RN_DATA(indices, const int32_t)[k];
      if (index < 0)  // checked before the result is allocated
        return rn_invalid_argument("indices%s is out of range",
                                   indices->rank ? rn_place_text(indices, k).text : "");
      if (index > highest) highest = index;
    }
  }
  *out_rows = highest + 1;
  return RN_OK;
}

rn_status_t rn_dynamic_stitch_begin(rn_kernel_ctx_t* ctx, int64_t* out_rows, rn_tensor_t** out) {
  const int number = ctx->kernel->input_count / 2;
  RN_RETURN_IF_ERROR(check_parts(ctx, number, out_rows));
  const rn_tensor_t *data0 = rn_in(ctx, number), *indices0 = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK + 1] = {*out_rows};
  const int32_t rank = data0->rank - indices0->rank + 1;
  for (int d = 1; d < rank; ++d) dims[d] = rn_tensor_dim(data0, indices0->rank + d - 1);
  return rn_output(ctx, 0, (rn_shape_t){rank, dims}, out);
}

static rn_status_t dynamic_stitch(rn_kernel_ctx_t* ctx) {
  const int number = ctx->kernel->input_count / 2;
  int64_t rows;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_dynamic_stitch_begin(ctx, &rows, &out));
  // Rows that no index names are zeros.
  rn_move_zero(rn_ctx_pool(ctx), out->dtype, out->data, out->count);
  const int64_t row = out->count ? out->count / rows : 0;
  const int64_t bytes = row * (int64_t)rn_dtype_size(out->dtype);
  for (int i = 0; i < number; ++i) {
    const rn_tensor_t *indices = rn_in(ctx, i), *data = rn_in(ctx, number + i);
    const char* from = data->data;
    const int32_t* places = indices->data;
    if (rn_dtype_is_plain(out->dtype)) {
      for (int64_t k = 0; k < indices->count && row; ++k, from += bytes)
        rn_move_bytes((char*)out->data + places[k] * bytes, from, (size_t)bytes);
      continue;
    }
    for (int64_t k = 0; k < indices->count && row; ++k, from += bytes)
      RN_RETURN_IF_ERROR(rn_move_row(out->dtype, from, (char*)out->data + places[k] * bytes, row));
  }
  return RN_OK;
}

#define STITCH_TYPES \
  (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING) | RN_T(VARIANT))

static const rn_kernel_def_t rows[] = {
    {.op = "DynamicPartition",
     .device = "CPU",
     .types = {{"T",
                RN_TYPES_NUMBERS | RN_T(BOOL) | RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT)}},
     .compute = dynamic_partition},
    {.op = "DynamicStitch",
     .device = "CPU",
     .types = {{"T", STITCH_TYPES}},
     .compute = dynamic_stitch},
    {.op = "ParallelDynamicStitch",
     .device = "CPU",
     .types = {{"T", STITCH_TYPES}},
     .compute = dynamic_stitch},
};
RN_KERNEL_FAMILY(cpu_dynamic_stitch, rows);

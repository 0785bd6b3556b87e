// DynamicPartition and DynamicStitch.
#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/dynamic_stitch.h"
#include "kernels/cuda/array/produce.h"
#include "kernels/cuda/array/scan.h"
#include "kernels/cuda/array/selected_args.h"
#include "kernels/cuda/state/rows.h"

static rn_status_t deal(rn_kernel_ctx_t* ctx, const rn_cuda_rows_t* rows, const int64_t* starts) {
  const rn_tensor_t* data = rn_in(ctx, 0);
  const int64_t bytes = rows->args.width * (int64_t)rn_dtype_size(data->dtype);
  for (int p = 0; p < ctx->kernel->output_count; ++p) {
    rn_tensor_t* out = &ctx->out[p];
    if (out->count == 0) continue;
    const int64_t unit = rn_cuda_unit(bytes, data->data, out->data);
    rn_cuda_deal_args args = {.keys = rows->args.keys + starts[p],
                              .data = data->data,
                              .out = out->data,
                              .count = (int64_t)rn_tensor_bytes(out) / unit,
                              .row = rn_cuda_divisor(bytes / unit),
                              .bits = rows->args.bits};
    RN_RETURN_IF_ERROR(
        rn_cuda_produce(ctx, "array/selected/deal", unit, args.count, &args, sizeof args));
  }
  return RN_OK;
}

// Reads where each of |parts| groups begins among the sorted places; then makes and fills the
// outputs. |starts| and |counts| have room for parts + 1 numbers.
static rn_status_t partition_sorted(rn_kernel_ctx_t* ctx, const rn_cuda_rows_t* rows, int64_t parts,
                                    int64_t* starts, int64_t* counts) {
  rn_tensor_t found = {0};
  const int64_t entries = parts + 1;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &entries}, &found));
  rn_cuda_starts_args args = {.keys = rows->args.keys,
                              .starts = RN_DATA(&found, i64),
                              .count = rows->args.count,
                              .parts = parts,
                              .bits = rows->args.bits};
  rn_status_t status = rn_cuda_each(ctx, "array/selected/starts", entries, &args, sizeof args);
  if (rn_ok(status))
    status = rn_cuda_read(ctx, args.starts, (size_t)entries * sizeof *starts, starts);
  rn_tensor_clear(&found);
  RN_RETURN_IF_ERROR(status);
  for (int64_t p = 0; p < parts; ++p) counts[p] = starts[p + 1] - starts[p];
  RN_RETURN_IF_ERROR(rn_dynamic_partition_outputs(ctx, counts));
  return deal(ctx, rows, starts);
}

static rn_status_t partition_places(rn_kernel_ctx_t* ctx, int64_t parts, int64_t* starts,
                                    int64_t* counts) {
  const rn_tensor_t *data = rn_in(ctx, 0), *partitions = rn_in(ctx, 1);
  if (partitions->count == 0) return rn_dynamic_partition_outputs(ctx, counts);
  const int64_t dims[2] = {parts, data->count / partitions->count};
  rn_cuda_rows_t rows;
  RN_RETURN_IF_ERROR(rn_cuda_rows(ctx, partitions, 1, (rn_shape_t){2, dims}, &rows));
  rn_status_t status = partition_sorted(ctx, &rows, parts, starts, counts);
  rn_tensor_clear(&rows.keys);
  return status;
}

// A row whose partition does not exist is in no output.
static rn_status_t dynamic_partition(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_dynamic_partition_check(ctx));
  const int64_t parts = ctx->kernel->output_count;
  int64_t* numbers = NULL;
  const size_t room = 2 * ((size_t)parts + 1);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, room, &numbers));
  rn_status_t status = partition_places(ctx, parts, numbers, numbers + parts + 1);
  RN_FREE_ARRAY(ctx->kernel->allocator, numbers, room);
  return status;
}

// Of each row of the output, the address of the last input row that is written to it.
static void find_rows(const rn_kernel_ctx_t* ctx, int64_t bytes, uint64_t* rows) {
  const int number = ctx->kernel->input_count / 2;
  for (int i = 0; i < number; ++i) {
    const rn_tensor_t *indices = rn_in(ctx, i), *data = rn_in(ctx, number + i);
    for (int64_t k = 0; k < indices->count; ++k)
      rows[rn_int_at(indices, k)] = (uintptr_t)data->data + (uint64_t)(k * bytes);
  }
}

static rn_status_t stitch(rn_kernel_ctx_t* ctx, int64_t row_count, rn_tensor_t* addresses,
                          rn_tensor_t* out) {
  const int64_t bytes = (int64_t)rn_tensor_bytes(out) / row_count;
  uint64_t* rows = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)row_count, &rows));
  find_rows(ctx, bytes, rows);
  uint64_t bits = (uintptr_t)out->data | (uint64_t)bytes;
  for (int64_t r = 0; r < row_count; ++r) bits |= rows[r];
  const int64_t unit = rn_cuda_unit((int64_t)bits, NULL, NULL);
  rn_status_t status = rn_cuda_write(ctx, rows, (size_t)row_count * sizeof *rows, addresses->data);
  RN_FREE_ARRAY(ctx->kernel->allocator, rows, row_count);
  RN_RETURN_IF_ERROR(status);
  rn_cuda_stitch_args args = {.rows = addresses->data,
                              .out = out->data,
                              .count = (int64_t)rn_tensor_bytes(out) / unit,
                              .row = rn_cuda_divisor(bytes / unit)};
  return rn_cuda_produce(ctx, "array/selected/stitch", unit, args.count, &args, sizeof args);
}

static rn_status_t dynamic_stitch(rn_kernel_ctx_t* ctx) {
  int64_t rows;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_dynamic_stitch_begin(ctx, &rows, &out));
  if (out->count == 0) return RN_OK;
  rn_tensor_t addresses = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT64, (rn_shape_t){1, &rows}, &addresses));
  rn_status_t status = stitch(ctx, rows, &addresses, out);
  rn_tensor_clear(&addresses);
  return status;
}

#define TYPES (RN_TYPES_NUMBERS | RN_T(BOOL))

static const rn_kernel_def_t rows[] = {
    {.op = "DynamicPartition",
     .device = "GPU",
     .types = {{"T", TYPES}},
     .compute = dynamic_partition},
    {.op = "DynamicStitch",
     .device = "GPU",
     .types = {{"T", TYPES}},
     .host_args = RN_HOST_ARGS("indices"),
     .flags = RN_KERNEL_ISSUES,
     .compute = dynamic_stitch},
    {.op = "ParallelDynamicStitch",
     .device = "GPU",
     .types = {{"T", TYPES}},
     .host_args = RN_HOST_ARGS("indices"),
     .flags = RN_KERNEL_ISSUES,
     .compute = dynamic_stitch},
};
RN_KERNEL_FAMILY(cuda_partition, rows);

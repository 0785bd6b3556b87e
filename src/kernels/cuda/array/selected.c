// Ops whose outputs have as many elements as some values in device memory say: the host waits for
// that number, so these kernels cannot be replayed.
#include "kernels/cpu/array/begin.h"
#include "kernels/cuda/array/produce.h"
#include "kernels/cuda/array/scan.h"
#include "kernels/cuda/array/selected_args.h"
#include "kernels/cuda/loops.h"

// One byte per element of |input|: whether it is not zero. |flags| stays unset if the input has
// these bytes itself.
static rn_status_t make_flags(rn_kernel_ctx_t* ctx, const rn_tensor_t* input, rn_tensor_t* flags) {
  if (input->dtype == RN_BOOL || input->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_BOOL, (rn_shape_t){1, &input->count}, flags));
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)input->data, .period = 1};
  rn_jit_sizes_t sizes = {.count = input->count};
  rn_jit_begin(&program, 1, 0);
  int x = rn_jit_input(&program, input->dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  int zero = rn_jit_constant(&program, input->dtype, 0);
  rn_jit_output(&program, rn_jit_op2(&program, RN_SCALAR_NOT_EQUAL, x, zero), RN_BOOL);
  return rn_cuda_run(ctx, &program, &sizes, &operand, &flags);
}

static rn_status_t write_places(rn_kernel_ctx_t* ctx, const rn_cuda_scan_args* scan, int64_t set) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  const int64_t dims[2] = {set, input->rank};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  if (out->count == 0) return RN_OK;
  rn_cuda_where_args args = {.scan = *scan, .out = RN_DATA(out, i64), .rank = input->rank};
  for (int d = 0; d < input->rank; ++d) args.dims[d] = rn_tensor_dim(input, d);
  return rn_cuda_scan_launch(ctx, "array/selected/where", scan, &args, sizeof args);
}

static rn_status_t where(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (input->rank == 0) return rn_invalid_argument("WhereOp : Unhandled input dimensions: 0");
  if (input->rank > RN_CUDA_WHERE_RANK)
    return rn_unimplemented("Where of %d dimensions on a GPU", input->rank);
  rn_tensor_t flags = {0}, offsets = {0};
  rn_cuda_scan_args scan = {0};
  int64_t set = 0;
  rn_status_t status = make_flags(ctx, input, &flags);
  if (rn_ok(status) && input->count)
    status = rn_cuda_scan(ctx, flags.data ? flags.data : input->data, input->count, &scan, &offsets,
                          &set);
  if (rn_ok(status)) status = write_places(ctx, &scan, set);
  rn_tensor_clear(&flags);
  rn_tensor_clear(&offsets);
  return status;
}

// Scratch of Unique, in one block: the table, then slots, numbers and flags of the places.
static rn_status_t unique_scratch(rn_kernel_ctx_t* ctx, int64_t count, rn_cuda_unique_args* args,
                                  rn_tensor_t* out) {
  args->capacity = 16;
  while (args->capacity < 2 * count) args->capacity *= 2;
  const int64_t bytes = 4 * args->capacity + 9 * count;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, out));
  args->table = out->data;
  args->slots = args->table + args->capacity;
  args->numbers = args->slots + count;
  args->flags = (unsigned char*)(args->numbers + count);
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  return RN_CARD(card, cuMemsetD8Async, (CUdeviceptr)(uintptr_t)args->table, 0xff,
                 (size_t)(4 * args->capacity), rn_cuda_stream(card));
}

// "|base|_f32", or by size for types whose equality is that of their bits.
static rn_cuda_name_t unique_name(const char* base, rn_dtype_t dtype) {
  return rn_dtype_is_floating(dtype) ? rn_cuda_name(base, dtype) : rn_cuda_size_name(base, dtype);
}

static rn_status_t unique_outputs(rn_kernel_ctx_t* ctx, rn_cuda_unique_args* args, int64_t set) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t *out = NULL, *counts = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &set}, &out));
  args->out = out->data;
  if (ctx->kernel->output_count > 2) {
    RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &set}, &counts));
    RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, counts));
    args->counts = counts->data;
  }
  if (input->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_cuda_scan_launch(ctx, unique_name("array/selected/unique_values", input->dtype).text,
                          &args->scan, args, sizeof *args));
  return rn_cuda_each(ctx, "array/selected/unique_places", input->count, args, sizeof *args);
}

static rn_status_t unique_values(rn_kernel_ctx_t* ctx, rn_cuda_unique_args* args,
                                 rn_tensor_t* scratch, rn_tensor_t* offsets) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  int64_t set = 0;
  if (input->count) {
    args->scan.count = input->count;
    RN_RETURN_IF_ERROR(unique_scratch(ctx, input->count, args, scratch));
    RN_RETURN_IF_ERROR(rn_cuda_each(ctx,
                                    unique_name("array/selected/unique_insert", input->dtype).text,
                                    input->count, args, sizeof *args));
    RN_RETURN_IF_ERROR(
        rn_cuda_each(ctx, "array/selected/unique_flags", input->count, args, sizeof *args));
    RN_RETURN_IF_ERROR(rn_cuda_scan(ctx, args->flags, input->count, &args->scan, offsets, &set));
  }
  return unique_outputs(ctx, args, set);
}

static rn_status_t unique(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  int axis;
  RN_RETURN_IF_ERROR(rn_unique_axis(ctx, &axis));
  if (input->count > INT32_MAX)
    return rn_unimplemented("Unique of %lld values on a GPU", (long long)input->count);
  rn_tensor_t* idx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &input->count}, &idx));
  rn_cuda_unique_args args = {
      .values = input->data, .idx = idx->data, .index_size = (i32)rn_dtype_size(idx->dtype)};
  rn_tensor_t scratch = {0}, offsets = {0};
  rn_status_t status = unique_values(ctx, &args, &scratch, &offsets);
  rn_tensor_clear(&scratch);
  rn_tensor_clear(&offsets);
  return status;
}

// See step/spread_unique.c.
static rn_status_t spread_unique(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t *out = NULL, *idx = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(input), &idx));
  if (input->count == 0) return RN_OK;
  if (input->count > INT32_MAX)
    return rn_unimplemented("Unique of %lld values on a GPU", (long long)input->count);
  rn_cuda_unique_args args = {.scan = {.count = input->count},
                              .values = input->data,
                              .out = out->data,
                              .idx = idx->data,
                              .index_size = (i32)rn_dtype_size(idx->dtype)};
  rn_status_t status = unique_scratch(ctx, input->count, &args, &scratch);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, unique_name("array/selected/unique_insert", input->dtype).text,
                          input->count, &args, sizeof args);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_size_name("array/selected/unique_spread", out->dtype).text,
                          input->count, &args, sizeof args);
  rn_tensor_clear(&scratch);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "_SpreadUnique",
     .device = "GPU",
     .types = {{"T", RN_T(INT32) | RN_T(INT64)}},
     .flags = RN_KERNEL_REPLAYS,
     .compute = spread_unique},
    {.op = "Where",
     .device = "GPU",
     .types = {{"T", RN_TYPES_NUMBERS | RN_T(BOOL)}},
     .compute = where},
    {.op = "Unique",
     .device = "GPU",
     .types = {{"T", RN_TYPES_REAL | RN_T(BOOL)}},
     .compute = unique},
    {.op = "UniqueWithCounts",
     .device = "GPU",
     .types = {{"T", RN_TYPES_REAL | RN_T(BOOL)}},
     .compute = unique},
};
RN_KERNEL_FAMILY(cuda_selected, rows);

// NonMaxSuppressionV2 to V4. Unless the result is padded, the host waits for the number of boxes,
// so these kernels cannot be replayed.
#include "kernels/cpu/array.h"
#include "kernels/cpu/image/nms_ops.h"
#include "kernels/cuda/array/scan.h"
// After launch.h, which has its types.
#include "kernels/cuda/image/nms_args.h"
#include "kernels/cuda/state/rows.h"

// Sorts the boxes and selects.
static rn_status_t select_boxes(rn_kernel_ctx_t* ctx, rn_cuda_nms_args* args) {
  const int64_t keys = RN_NMS_KEYS;
  const rn_shape_t shape = {1, &args->count};
  rn_tensor_t numbers = {0}, is_out = {0};
  rn_cuda_rows_t rows = {0};
  rn_cuda_grid_t one = {.x = 1, .block_x = RN_NMS_THREADS};
  rn_status_t status = rn_temp(ctx, RN_INT64, shape, &numbers);
  if (rn_ok(status)) status = rn_temp(ctx, RN_BOOL, shape, &is_out);
  if (rn_ok(status)) status = rn_cuda_zero(ctx, &is_out);
  args->keys = numbers.data;
  args->is_out = is_out.data;
  if (rn_ok(status))
    status = rn_cuda_each(ctx, "image/nms/nms_keys", args->count, args, sizeof *args);
  if (rn_ok(status)) status = rn_cuda_rows(ctx, &numbers, 1, (rn_shape_t){1, &keys}, &rows);
  args->rows = rows.args;
  if (rn_ok(status)) status = rn_cuda_launch(ctx, "image/nms/nms_select", one, args, sizeof *args);
  rn_tensor_clear(&numbers);
  rn_tensor_clear(&is_out);
  rn_tensor_clear(&rows.keys);
  return status;
}

// Output 0 of as many boxes as were found, from |selected|.
static rn_status_t output_found(rn_kernel_ctx_t* ctx, const rn_cuda_nms_args* args,
                                const rn_tensor_t* selected) {
  int32_t found = 0;
  if (args->count) RN_RETURN_IF_ERROR(rn_cuda_read(ctx, args->found, sizeof found, &found));
  const int64_t size = found;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  if (size == 0) return RN_OK;
  rn_tensor_t from = *out;  // the first of those selected
  from.data = selected->data;
  from.buffer = selected->buffer;
  return rn_device_copy(ctx->kernel->device, &from, out);
}

static rn_status_t give(rn_kernel_ctx_t* ctx, rn_cuda_nms_args* args, rn_tensor_t* selected,
                        rn_tensor_t* found) {
  const rn_nms_op_t* op = ctx->state;
  const int64_t one = 1, most = args->most < args->count ? args->most : args->count;
  rn_tensor_t *out = selected, *valid = found;
  if (op->is_padded) {
    RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &args->most}, &out));
    RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out));
  } else {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &most}, selected));
  }
  if (ctx->kernel->output_count > 1)
    RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &valid));
  else
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, (rn_shape_t){1, &one}, found));
  RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, valid));
  args->out = RN_DATA(out, i32);
  args->found = RN_DATA(valid, i32);
  if (most) RN_RETURN_IF_ERROR(select_boxes(ctx, args));
  return op->is_padded ? RN_OK : output_found(ctx, args, selected);
}

static rn_status_t nms(rn_kernel_ctx_t* ctx) {
  rn_nms_t read;
  RN_RETURN_IF_ERROR(rn_nms_read(ctx, &read));
  rn_cuda_nms_args args = {.boxes = RN_DATA(rn_in(ctx, 0), const float),
                           .scores = RN_DATA(rn_in(ctx, 1), const float),
                           .count = read.count,
                           .most = read.most,
                           .threshold = read.threshold,
                           .least = read.least};
  rn_tensor_t selected = {0}, found = {0};
  rn_status_t status = give(ctx, &args, &selected, &found);
  rn_tensor_clear(&selected);
  rn_tensor_clear(&found);
  return status;
}

#define ROW(name, ...)                                                                        \
  {                                                                                           \
    .op = name, .device = "GPU", .types = {{"T", RN_T(FLOAT)}, {"T_threshold", RN_T(FLOAT)}}, \
    .host_args = RN_HOST_ARGS("max_output_size", "iou_threshold", ##__VA_ARGS__),             \
    .state_size = sizeof(rn_nms_op_t), .init = rn_nms_init, .compute = nms                    \
  }

static const rn_kernel_def_t rows[] = {
    ROW("NonMaxSuppressionV2"),
    ROW("NonMaxSuppressionV3", "score_threshold"),
    ROW("NonMaxSuppressionV4", "score_threshold"),
};
RN_KERNEL_FAMILY(cuda_nms, rows);

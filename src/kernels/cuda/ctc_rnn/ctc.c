// CTCLossV2. The labels are host arguments; the host sorts them by sequence and sends them over, so
// the work cannot be replayed.
#include "kernels/cpu/array.h"
#include "kernels/cpu/ctc_rnn/ctc_loss.h"
#include "kernels/cuda/array/scan.h"
// After launch.h, which has its types.
#include "kernels/cuda/ctc_rnn/ctc_args.h"

#define MOST_BLOCKS 65536

static rn_status_t issue(rn_kernel_ctx_t* ctx, const char* kernel, int64_t blocks,
                         const rn_cuda_ctc_args* args) {
  rn_cuda_grid_t grid = {.x = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS),
                         .block_x = RN_CTC_THREADS};
  return rn_cuda_launch(ctx, kernel, grid, args, sizeof *args);
}

static rn_status_t issue_all(rn_kernel_ctx_t* ctx, const rn_ctc_loss_t* loss,
                             rn_cuda_ctc_args* args) {
  const int64_t rows = loss->time * loss->batch;
  int64_t total;
  rn_tensor_t scratch = {0};
  RN_RETURN_IF_ERROR(rn_ctc_loss_room(loss, &args->room, &total));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, (rn_shape_t){1, &total}, &scratch));
  args->scratch = RN_DATA(&scratch, double);
  rn_status_t status = issue(ctx, "ctc_rnn/ctc/ctc_softmax", rows, args);
  if (rn_ok(status)) status = issue(ctx, "ctc_rnn/ctc/ctc_paths", loss->batch, args);
  if (rn_ok(status)) status = issue(ctx, "ctc_rnn/ctc/ctc_gradient", rows, args);
  rn_tensor_clear(&scratch);
  return status;
}

// Host and device have the same block: where labels begin, how many were given, lengths, labels.
static rn_status_t with_labels(rn_kernel_ctx_t* ctx, rn_ctc_loss_t* loss, rn_cuda_ctc_args* args,
                               int64_t* host, int64_t size) {
  const int64_t batch = loss->batch;
  int32_t* small = (int32_t*)(host + 2 * batch + 1);
  loss->labels = (rn_ctc_labels_t){host, host + batch + 1, small + batch};
  RN_RETURN_IF_ERROR(rn_ctc_loss_labels(ctx, loss));
  for (int64_t b = 0; b < batch; ++b) small[b] = (int32_t)rn_int_at(loss->lengths, b);
  rn_tensor_t device = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &size}, &device));
  args->begin = RN_DATA(&device, i64);
  args->given = args->begin + batch + 1;
  args->lengths = (const i32*)(args->given + batch);
  args->labels = args->lengths + batch;
  rn_status_t status = rn_cuda_write(ctx, host, (size_t)size * sizeof *host, device.data);
  if (rn_ok(status)) status = issue_all(ctx, loss, args);
  rn_tensor_clear(&device);
  return status;
}

static rn_status_t ctc_loss(rn_kernel_ctx_t* ctx) {
  rn_ctc_loss_t loss = {0};
  rn_tensor_t *out = NULL, *gradient = NULL;
  RN_RETURN_IF_ERROR(rn_ctc_loss_read(ctx, &loss));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &loss.batch}, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(loss.inputs), &gradient));
  rn_cuda_ctc_args args = {.inputs = RN_DATA(loss.inputs, const float),
                           .loss = RN_DATA(out, float),
                           .gradient = RN_DATA(gradient, float),
                           .time = loss.time,
                           .batch = loss.batch,
                           .classes = loss.classes,
                           .blank = loss.blank,
                           .merges = loss.ctc->merges};
  const int64_t size = 2 * loss.batch + 1 + (loss.batch + rn_in(ctx, 2)->count) / 2 + 1;
  int64_t* host = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)size, &host));
  rn_status_t status = with_labels(ctx, &loss, &args, host, size);
  RN_FREE_ARRAY(ctx->kernel->allocator, host, size);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "CTCLossV2",
     .device = "GPU",
     .host_args = RN_HOST_ARGS("labels_indices", "labels_values", "sequence_length"),
     .flags = RN_KERNEL_ISSUES,
     .state_size = sizeof(rn_ctc_t),
     .init = rn_ctc_init,
     .compute = ctc_loss},
};
RN_KERNEL_FAMILY(cuda_ctc, rows);

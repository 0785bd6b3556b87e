// FakeQuant ops. The bounds stay on the device, so that trained ones need no copy to the host.
#include "kernels/cpu/quant/fake_quant.h"

#include "kernels/cuda/quant/fake_quant_args.h"

static rn_status_t begin(rn_kernel_ctx_t* ctx, rn_fake_quant_view_t* view,
                         rn_cuda_fake_quant_args* args) {
  const rn_fake_quant_t* state = ctx->state;
  RN_RETURN_IF_ERROR(rn_fake_quant_begin(ctx, view));
  *args = (rn_cuda_fake_quant_args){.x = RN_DATA(view->x, const float),
                                    .dy = view->dy ? RN_DATA(view->dy, const float) : NULL,
                                    .mins = view->min ? RN_DATA(view->min, const float) : NULL,
                                    .maxes = view->max ? RN_DATA(view->max, const float) : NULL,
                                    .out = RN_DATA(view->out, float),
                                    .count = view->x->count,
                                    .channels = view->channels,
                                    .min = state->min,
                                    .max = state->max,
                                    .first = state->first,
                                    .last = state->last,
                                    .divides = state->has_bounds && !state->has_channels};
  return RN_OK;
}

static rn_status_t round_compute(rn_kernel_ctx_t* ctx) {
  rn_fake_quant_view_t view;
  rn_cuda_fake_quant_args args;
  RN_RETURN_IF_ERROR(begin(ctx, &view, &args));
  return rn_cuda_each(ctx, "quant/fake_quant/fake_round", args.count, &args, sizeof args);
}

static rn_status_t sum_bounds(rn_kernel_ctx_t* ctx, const rn_fake_quant_view_t* view,
                              rn_cuda_fake_quant_args* args) {
  if (args->channels == 0) return RN_OK;
  const int64_t rows = args->count / args->channels;
  int64_t parts = rows / (4 * RN_FAKE_QUANT_THREADS) + 1;
  if (parts > RN_FAKE_QUANT_PARTS) parts = RN_FAKE_QUANT_PARTS;
  const int64_t entries = 2 * args->channels * parts;
  rn_tensor_t sums = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, (rn_shape_t){1, &entries}, &sums));
  args->parts = parts;
  args->sums = RN_DATA(&sums, double);
  args->dmin = RN_DATA(view->dmin, float);
  args->dmax = RN_DATA(view->dmax, float);
  rn_cuda_grid_t grid = {
      .x = (unsigned)args->channels, .y = (unsigned)parts, .block_x = RN_FAKE_QUANT_THREADS};
  rn_status_t status =
      rn_cuda_launch(ctx, "quant/fake_quant/fake_bounds", grid, args, sizeof *args);
  if (rn_ok(status))
    status = rn_cuda_each(ctx, "quant/fake_quant/fake_finish", args->channels, args, sizeof *args);
  rn_tensor_clear(&sums);
  return status;
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  rn_fake_quant_view_t view;
  rn_cuda_fake_quant_args args;
  RN_RETURN_IF_ERROR(begin(ctx, &view, &args));
  RN_RETURN_IF_ERROR(
      rn_cuda_each(ctx, "quant/fake_quant/fake_pass", args.count, &args, sizeof args));
  return view.dmin ? sum_bounds(ctx, &view, &args) : RN_OK;
}

#define ROW(name, fn, flags_)                                                        \
  {                                                                                  \
    .op = name, .device = "GPU", .flags = RN_KERNEL_REPLAYS | flags_,                \
    .state_size = sizeof(rn_fake_quant_t), .init = rn_fake_quant_init, .compute = fn \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FakeQuantWithMinMaxArgs", round_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxArgsGradient", gradient_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxVars", round_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxVarsGradient", gradient_compute, 0),
    ROW("FakeQuantWithMinMaxVarsPerChannel", round_compute, 0),
    ROW("FakeQuantWithMinMaxVarsPerChannelGradient", gradient_compute, 0),
};
RN_KERNEL_FAMILY(cuda_fake_quant, rows);

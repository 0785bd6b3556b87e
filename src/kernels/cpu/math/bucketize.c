// Bucketize: the number of boundaries <= each value.
#include "kernels/cpu/math/counts.h"
#include "kernels/kernel_rows.h"

static rn_status_t bucketize_compute(rn_kernel_ctx_t* ctx) {
  const rn_buckets_t* buckets = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  for (int64_t i = 0; i < in->count; ++i) {
    int32_t low = 0;
    double value = in->dtype == RN_FLOAT    ? (double)RN_DATA(in, const float)[i]
                   : in->dtype == RN_DOUBLE ? RN_DATA(in, const double)[i]
                                            : (double)rn_int_at(in, i);
    for (int32_t left = buckets->count; left > 0;) {  // without branches
      const int32_t half = left / 2;
      const bool is_above = !(value < (double)buckets->limits[low + half]);
      low += is_above * (half + 1);
      left = half - (is_above & (left % 2 == 0));
    }
    RN_DATA(out, int32_t)[i] = low;
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Bucketize",
     .device = "CPU",
     .types = {{"T", RN_T(INT32) | RN_T(INT64) | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .state_size = sizeof(rn_buckets_t),
     .init = rn_buckets_init,
     .destroy = rn_buckets_destroy,
     .compute = bucketize_compute},
};
RN_KERNEL_FAMILY(cpu_bucketize, rows);

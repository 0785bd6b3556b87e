// Bucketize: the number of boundaries <= each value.
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

// The boundaries are floats, whatever the type of the values.
typedef struct buckets_t {
  float* limits;
  int32_t count;
  rn_allocator_t allocator;
} buckets_t;

static rn_status_t buckets_init(const rn_kernel_init_t* init, void* state) {
  buckets_t* buckets = state;
  const rn_attr_value_t* limits = rn_init_attr(init, "boundaries");
  buckets->allocator = init->allocator;
  for (int32_t i = 1; i < limits->count; ++i)
    if (limits->list_f[i] < limits->list_f[i - 1])
      return rn_invalid_argument("Expected sorted boundaries");
  if (!limits->count) return RN_OK;
  RN_RETURN_IF_ERROR(rn_alloc_array(init->allocator, (size_t)limits->count, sizeof(float),
                                    (void**)&buckets->limits));
  buckets->count = limits->count;
  memcpy(buckets->limits, limits->list_f, (size_t)limits->count * sizeof(float));
  return RN_OK;
}

static void buckets_destroy(void* state) {
  buckets_t* buckets = state;
  if (buckets->limits)
    rn_free(buckets->allocator, buckets->limits, (size_t)buckets->count * sizeof(float));
}

static rn_status_t bucketize_compute(rn_kernel_ctx_t* ctx) {
  const buckets_t* buckets = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  for (int64_t i = 0; i < in->count; ++i) {
    int32_t low = 0, high = buckets->count;
    double value = in->dtype == RN_FLOAT    ? (double)RN_DATA(in, const float)[i]
                   : in->dtype == RN_DOUBLE ? RN_DATA(in, const double)[i]
                                            : (double)rn_int_at(in, i);
    while (low < high) {
      int32_t middle = low + (high - low) / 2;
      if (value < (double)buckets->limits[middle])
        high = middle;
      else
        low = middle + 1;
    }
    RN_DATA(out, int32_t)[i] = low;
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Bucketize",
     .device = "CPU",
     .types = {{"T", RN_T(INT32) | RN_T(INT64) | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .state_size = sizeof(buckets_t),
     .init = buckets_init,
     .destroy = buckets_destroy,
     .compute = bucketize_compute},
};
RN_KERNEL_FAMILY(cpu_bucketize, rows);

// Attributes and checks of Bucketize, Bincount and HistogramFixedWidth, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_MATH_COUNTS_H_
#define RUNNEL_KERNELS_CPU_MATH_COUNTS_H_

#include "kernels/cpu/array.h"
#include "tensor/print.h"

// The boundaries of Bucketize are floats, whatever the type of the values.
typedef struct rn_buckets_t {
  float* limits;
  int32_t count;
  rn_allocator_t allocator;
} rn_buckets_t;

static inline rn_status_t rn_buckets_init(const rn_kernel_init_t* init, void* state) {
  rn_buckets_t* buckets = state;
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

static inline void rn_buckets_destroy(void* state) {
  rn_buckets_t* buckets = state;
  if (buckets->limits)
    rn_free(buckets->allocator, buckets->limits, (size_t)buckets->count * sizeof(float));
}

// Bincount's number of bins.
static inline rn_status_t rn_bincount_size(const rn_tensor_t* size, int64_t* out) {
  if (size->rank != 0)
    return rn_invalid_argument("Shape must be rank 0 but is rank %d", size->rank);
  *out = rn_int_at(size, 0);
  if (*out < 0) return rn_invalid_argument("size (%lld) must be non-negative", (long long)*out);
  return RN_OK;
}

static inline rn_status_t rn_bincount_check(const rn_tensor_t* input, const rn_tensor_t* weights) {
  if (weights->count == 0 || weights->count == input->count) return RN_OK;
  return rn_invalid_argument("Input indices and weights must have the same size.");
}

static inline rn_status_t rn_dense_bincount_check(const rn_tensor_t* input, const rn_tensor_t* size,
                                                  const rn_tensor_t* weights, int64_t* out_size) {
  if (input->rank > 2)
    return rn_invalid_argument("Shape must be at most rank 2 but is rank %d", input->rank);
  RN_RETURN_IF_ERROR(rn_bincount_size(size, out_size));
  if (weights->count == 0 || rn_tensor_same_shape(input, weights)) return RN_OK;
  return rn_invalid_argument(
      "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts "
      "as all weights equal to 1. Received %s",
      rn_text_of(weights).text);
}

static inline rn_status_t rn_histogram_range_error(const rn_tensor_t* range) {
  rn_strbuf_t low, high;
  rn_strbuf_init(&low, rn_allocator_default());
  rn_strbuf_init(&high, rn_allocator_default());
  rn_print_double(&low, rn_number_at(range, 0));
  rn_print_double(&high, rn_number_at(range, 1));
  rn_status_t status = rn_invalid_argument(
      "value_range should satisfy value_range[0] < value_range[1], but got '[%.*s, %.*s]'",
      RN_STR_ARGS(rn_strbuf_view(&low)), RN_STR_ARGS(rn_strbuf_view(&high)));
  rn_strbuf_clear(&low);
  rn_strbuf_clear(&high);
  return status;
}

// The least value, the width of a bin and the number of bins of HistogramFixedWidth.
static inline rn_status_t rn_histogram_check(const rn_tensor_t* range, const rn_tensor_t* number,
                                             double* out_low, double* out_step, int64_t* out_bins) {
  if (range->rank != 1 || range->count != 2)
    return rn_invalid_argument("value_range should be a vector of 2 elements.");
  if (number->rank != 0) return rn_invalid_argument("nbins should be a scalar.");
  const double low = rn_number_at(range, 0), high = rn_number_at(range, 1);
  if (!(low < high)) return rn_histogram_range_error(range);
  const int64_t bins = rn_int_at(number, 0);
  if (bins <= 0)
    return rn_invalid_argument("nbins should be a positive number, but got '%lld'",
                               (long long)bins);
  *out_low = low;
  *out_step = (high - low) / (double)bins;
  *out_bins = bins;
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_MATH_COUNTS_H_

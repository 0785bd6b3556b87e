// Arguments of the kernels in batch_norm.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_BATCH_NORM_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_BATCH_NORM_ARGS_H_

// x is [rows, channels] or, with channels first, [outer, channels, inner] with rows = outer *
// inner. Kernels that handle packs of elements count channels (or inner, and rows with it) in
// packs.

// Sums over a chunk of the rows each.
typedef struct norm_parts_args {
  const void *x, *dy;  // |dy| for the gradient
  const float* mean;   // for the gradient
  float* parts;        // [chunks, 2, channels]
  i64 rows, chunk;     // rows in all and per chunk
  i64 channels;
  i64 inner;
  rn_div32 inner_div;
  i32 is_wide;  // there are too many rows for inner_div
} norm_parts_args;

// Merges the parts and makes what the last kernel needs per channel.
typedef struct norm_finish_args {
  const float* parts;       // NULL: the statistics are |mean| and |variance|
  i64 rows, chunk, chunks;  // in elements
  i64 channels;
  const float *scale, *mean, *variance;  // inputs; mean and variance of the batches before
  float *batch_mean, *batch_variance;    // outputs
  float *saved_mean, *saved_variance;    // outputs: those of this batch
  float *dscale, *doffset;               // outputs of the gradient
  float* factors;                        // [3, channels]
  float epsilon, average_factor;
  i32 is_training;
} norm_finish_args;

// What a norm, or its gradient, needs per channel beside its statistics.
typedef struct norm_factor_args {
  const float *scale, *variance, *sum, *product_sum;  // the sums only for the gradient
  float *factor, *dscale, *mean, *slope;              // likewise from dscale on
  float epsilon, rows;
  i64 count;  // channels
} norm_factor_args;

// y = (x - mean) * factors[0] + offset, or the gradient
// dx = (dy - factors[1] - (x - mean) * factors[2]) * factors[0], without x if it is not training.
typedef struct norm_apply_args {
  const void *x, *dy;
  void* to;
  const float *mean, *offset, *factors;
  i64 count;  // elements or packs
  i64 channels;
  rn_div32 inner_div, channels_div;  // inner is 1 with channels last
  i32 is_wide;
  i32 is_training;
} norm_apply_args;

#endif  // RUNNEL_KERNELS_CUDA_NN_BATCH_NORM_ARGS_H_

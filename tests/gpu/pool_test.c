// Pooling, batch normalization and their gradients on a GPU against the CPU, in every type and
// layout. The CPU has channels last.
//
// Runs on the emulated GPU in the ordinary test command. To run it on a real one, leave
// RUNNEL_CUDA_PATH unset and let RUNNEL_CUDA_PART name the part that nvcc compiled.
#include "on_both.h"

static const rn_dtype_t types[] = {RN_FLOAT, RN_HALF, RN_BFLOAT16, RN_DOUBLE};
enum { TYPES = sizeof types / sizeof *types };

typedef struct pool_case_t {
  int64_t x[5], ksize[5], strides[5];
  const char* padding;
} pool_case_t;

static both_t case_of(const pool_case_t* at, int rank, bool is_first) {
  return (both_t){.rank = rank,
                  .is_first = is_first,
                  .output_count = 1,
                  .image_outs = 1,
                  .ksize = at->ksize,
                  .strides = at->strides,
                  .padding = at->padding};
}

// The inputs are borrowed. The caller clears the result.
static rn_tensor_t run(both_t both, const char* op, int inputs, rn_tensor_t a, rn_tensor_t b,
                       rn_tensor_t c) {
  both.op = op;
  both.input_count = inputs;
  both.image_ins = 7;
  both.in[0] = a, both.in[1] = b, both.in[2] = c;
  both_run(&both);
  return both.out[0];
}

static void check(int rank, rn_dtype_t dtype, bool is_first, const pool_case_t* at) {
  const rn_tensor_t none = {0};
  const bool is_image = rank == 4;
  both_t both = case_of(at, rank, is_first);
  rn_tensor_t x = both_tensor(dtype, rank, at->x), sizes = both_sizes(rank, at->x), result;
  rn_tensor_t y = run(both, is_image ? "MaxPool" : "MaxPool3D", 1, x, none, none);
  rn_tensor_t dy = both_tensor(dtype, rank, rn_tensor_dims(&y));
  result = run(both, is_image ? "AvgPool" : "AvgPool3D", 1, x, none, none);
  rn_tensor_clear(&result);
  result = run(both, is_image ? "MaxPoolGrad" : "MaxPool3DGrad", 3, x, y, dy);
  rn_tensor_clear(&result);
  result = run(both, is_image ? "MaxPoolGradGrad" : "MaxPool3DGradGrad", 3, x, y, x);
  rn_tensor_clear(&result);
  result = run(both, is_image ? "AvgPoolGrad" : "AvgPool3DGrad", 2, sizes, dy, none);
  rn_tensor_clear(&result);
  rn_tensor_clear(&x);
  rn_tensor_clear(&sizes);
  rn_tensor_clear(&y);
  rn_tensor_clear(&dy);
}

static const pool_case_t images[] = {
    {{2, 7, 8, 3}, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID"},
    {{2, 7, 8, 16}, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME"},
    {{1, 9, 6, 8}, {1, 3, 2, 1}, {1, 1, 1, 1}, "SAME"},
    {{1, 9, 6, 5}, {1, 2, 1, 1}, {1, 3, 2, 1}, "VALID"},
    {{2, 4, 4, 4}, {1, 7, 5, 1}, {1, 1, 2, 1}, "SAME"},
    {{3, 5, 5, 24}, {1, 5, 5, 1}, {1, 5, 5, 1}, "VALID"},
};
static const pool_case_t volumes[] = {
    {{2, 4, 5, 6, 3}, {1, 2, 2, 2, 1}, {1, 2, 2, 2, 1}, "VALID"},
    {{1, 5, 5, 4, 8}, {1, 3, 2, 3, 1}, {1, 1, 2, 2, 1}, "SAME"},
};
static const pool_case_t large_images[] = {
    {{64, 112, 112, 64}, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME"},
    {{32, 27, 27, 192}, {1, 3, 3, 1}, {1, 1, 1, 1}, "SAME"},
};
#define EACH(i, cases) for (size_t i = 0; i < sizeof(cases) / sizeof *(cases); ++i)

BOTH_TEST(gpu_pool, images) {
  for (int t = 0; t < TYPES; ++t)
    for (int first = 0; first < 2; ++first) EACH(i, images) check(4, types[t], first, &images[i]);
}
BOTH_TEST(gpu_pool, volumes) {  // the CPU has no others
  for (int first = 0; first < 2; ++first) EACH(i, volumes) {
      check(5, RN_FLOAT, first, &volumes[i]);
      check(5, RN_BFLOAT16, first, &volumes[i]);
    }
}
BOTH_TEST(gpu_pool, large_images) {
  for (int t = 0; is_real() && t < 3; ++t)
    for (int first = 0; first < 2; ++first)
      EACH(i, large_images) check(4, types[t], first, &large_images[i]);
}

// MaxPoolWithArgmax and its gradient, also of made-up places.
static void check_argmax(rn_dtype_t dtype, const pool_case_t* at) {
  both_t both = case_of(at, 4, false);
  both.op = "MaxPoolWithArgmax";
  both.has_no_format = true;
  both.input_count = 1;
  both.output_count = 2;
  both.in[0] = both_tensor(dtype, 4, at->x);
  both_run(&both);
  both_t gradient = both;
  gradient.op = "MaxPoolGradWithArgmax";
  gradient.input_count = 3;
  gradient.output_count = 1;
  gradient.in[1] = both_tensor(dtype, 4, rn_tensor_dims(&both.out[0]));
  gradient.in[2] = both.out[1];
  both_run(&gradient);
  rn_tensor_clear(&gradient.out[0]);
  const int64_t size = gradient.in[0].count / at->x[0];
  for (int64_t i = 0; i < gradient.in[2].count; ++i)
    RN_DATA(&gradient.in[2], int64_t)[i] = (i * 7 + 3) % size;
  both_run(&gradient);
  rn_tensor_clear(&gradient.out[0]);
  rn_tensor_clear(&gradient.in[1]);
  both_clear(&both);
}
BOTH_TEST(gpu_pool, argmax) {
  for (int t = 0; t < TYPES; ++t) EACH(i, images) check_argmax(types[t], &images[i]);
}

// Batch normalization.

static void train(rn_scope_t* scope) { rn_op_attr_bool(scope, "is_training", true); }
static void infer(rn_scope_t* scope) { rn_op_attr_bool(scope, "is_training", false); }
static void average(rn_scope_t* scope) { rn_op_attr_float(scope, "exponential_avg_factor", 0.25f); }

static void make_positive(rn_tensor_t* tensor) {
  for (int64_t i = 0; i < tensor->count; ++i)
    both_set(tensor, i, fabs(number_at(tensor, i)) + 0.125);
}

static void check_norm(int rank, rn_dtype_t dtype, bool is_first, const int64_t* x,
                       void (*more)(rn_scope_t*)) {
  const int64_t channels = x[rank - 1];
  both_t forward = {.op = "FusedBatchNormV3",
                    .rank = rank,
                    .is_first = is_first,
                    .input_count = 5,
                    .output_count = 5,
                    .image_ins = 1,
                    .image_outs = 1,
                    .more = more,
                    .tolerance = dtype == RN_FLOAT  ? 1e-5
                                 : dtype == RN_HALF ? 2e-3
                                                    : 1e-2};
  forward.in[0] = both_tensor(dtype, rank, x);
  for (int i = 1; i < 5; ++i) forward.in[i] = both_tensor(RN_FLOAT, 1, &channels);
  make_positive(&forward.in[4]);
  both_run(&forward);
  both_t gradient = {.op = "FusedBatchNormGradV3",
                     .rank = rank,
                     .is_first = is_first,
                     .input_count = 6,
                     .output_count = 3,
                     .image_ins = 3,
                     .image_outs = 1,
                     .more = more == infer ? infer : train,
                     .tolerance = forward.tolerance};
  gradient.in[0] = both_tensor(dtype, rank, x);
  gradient.in[1] = forward.in[0];
  gradient.in[2] = forward.in[1];
  gradient.in[3] = forward.out[3];
  gradient.in[4] = forward.out[4];
  gradient.in[5] = both_tensor(RN_FLOAT, 1, &(int64_t){0});
  both_run(&gradient);
  rn_tensor_clear(&gradient.in[0]);
  rn_tensor_clear(&gradient.in[5]);
  for (int o = 0; o < 3; ++o) rn_tensor_clear(&gradient.out[o]);
  both_clear(&forward);
}

static const int64_t norms[][5] = {{2, 3, 4, 5},   {4, 6, 7, 16}, {2, 8, 8, 64}, {1, 1, 1, 3},
                                   {1, 1, 2, 130}, {3, 9, 11, 8}, {8, 16, 16, 2}};
static void (*const modes[])(rn_scope_t*) = {train, infer, average};

BOTH_TEST(gpu_pool, batch_norm) {
  for (int t = 0; t < 3; ++t)
    for (int first = 0; first < 2; ++first)
      EACH(i, norms) EACH(m, modes) check_norm(4, types[t], first, norms[i], modes[m]);
}
BOTH_TEST(gpu_pool, batch_norm_of_volumes) {
  static const int64_t x[] = {2, 3, 4, 5, 8};
  for (int t = 0; t < 3; ++t)
    for (int first = 0; first < 2; ++first) check_norm(5, types[t], first, x, train);
}
BOTH_TEST(gpu_pool, large_batch_norm) {
  static const int64_t x[] = {64, 56, 56, 256};
  for (int t = 0; is_real() && t < 3; ++t)
    for (int first = 0; first < 2; ++first) check_norm(4, types[t], first, x, train);
}

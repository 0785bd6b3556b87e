// Stateless random numbers. V1 ops have a seed in host memory; V2 ops have key and counter in
// device memory.
#include "kernels/cpu/array.h"
#include "kernels/cuda/random/random.h"

// The position by input |i|, the seed, or by it and the two inputs behind it: key, counter and
// algorithm.
static rn_status_t seeded_at(const rn_kernel_ctx_t* ctx, int i, struct rn_random_at* out) {
  rn_philox_t philox;
  RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, i), &philox));
  *out = rn_cuda_random_at(philox);
  return RN_OK;
}
static rn_status_t keyed_at(const rn_kernel_ctx_t* ctx, int i, struct rn_random_at* out) {
  const rn_tensor_t *key = rn_in(ctx, i), *counter = rn_in(ctx, i + 1);
  RN_RETURN_IF_ERROR(rn_random_check_key(key, counter, rn_in(ctx, i + 2)));
  *out = rn_cuda_random_keyed(key, counter);
  return RN_OK;
}
static bool is_keyed(const rn_kernel_ctx_t* ctx) {
  return rn_str_is(rn_str(ctx->kernel->op->inputs[1].name), "key");
}

static rn_status_t begin(rn_kernel_ctx_t* ctx, struct rn_random_at* at, rn_tensor_t** out) {
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 0), dims, &shape));
  RN_RETURN_IF_ERROR(is_keyed(ctx) ? keyed_at(ctx, 1, at) : seeded_at(ctx, 1, at));
  return rn_output(ctx, 0, shape, out);
}

static rn_status_t fill(rn_kernel_ctx_t* ctx, const char* kind) {
  struct rn_random_at at;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, &at, &out));
  return rn_cuda_random_fill(ctx, kind, at, out);
}
static rn_status_t uniform(rn_kernel_ctx_t* ctx) { return fill(ctx, "uniform"); }
static rn_status_t normal(rn_kernel_ctx_t* ctx) { return fill(ctx, "normal"); }
static rn_status_t truncated(rn_kernel_ctx_t* ctx) { return fill(ctx, "truncated"); }

static rn_status_t full_integers(rn_kernel_ctx_t* ctx) {
  struct rn_random_at at;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, &at, &out));
  return rn_cuda_random_integers(ctx, at, 0, 0, out);
}

static rn_status_t integers(rn_kernel_ctx_t* ctx) {
  const int rest = is_keyed(ctx) ? 4 : 2;
  uint64_t low, range;
  RN_RETURN_IF_ERROR(rn_random_range(rn_in(ctx, rest), rn_in(ctx, rest + 1), &low, &range));
  struct rn_random_at at;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, &at, &out));
  return rn_cuda_random_integers(ctx, at, low, range, out);
}

static rn_status_t multinomial(rn_kernel_ctx_t* ctx) {
  struct rn_random_at at;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(seeded_at(ctx, 2, &at));
  RN_RETURN_IF_ERROR(rn_random_multinomial_output(ctx, &out));
  return rn_cuda_random_multinomial(ctx, at, out);
}

static rn_status_t gamma_numbers(rn_kernel_ctx_t* ctx) {
  const int alpha = is_keyed(ctx) ? 4 : 2;
  struct rn_random_at at;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(is_keyed(ctx) ? keyed_at(ctx, 1, &at) : seeded_at(ctx, 1, &at));
  RN_RETURN_IF_ERROR(rn_random_output_ending(ctx, alpha, &out));
  return rn_cuda_random_gamma(ctx, at, alpha, out);
}

#define ROW(name, attr, set, function, ...)                                                      \
  {                                                                                              \
    .op = name, .device = "GPU", .types = {{attr, set}}, .host_args = RN_HOST_ARGS(__VA_ARGS__), \
    .flags = RN_KERNEL_REPLAYS, .compute = function                                              \
  }
#define BOTH(name, set, function)                     \
  ROW(name, "dtype", set, function, "shape", "seed"), \
      ROW(name "V2", "dtype", set, function, "shape", "alg")
#define FULL (RN_TYPES_INDEX | RN_T(UINT32) | RN_T(UINT64))
#define REALS (RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE))

static const rn_kernel_def_t rows[] = {
    BOTH("StatelessRandomUniform", RN_TYPES_FLOATS, uniform),
    BOTH("StatelessRandomNormal", RN_TYPES_FLOATS, normal),
    BOTH("StatelessTruncatedNormal", RN_TYPES_FLOATS, truncated),
    BOTH("StatelessRandomUniformFullInt", FULL, full_integers),
    ROW("StatelessRandomUniformInt", "dtype", RN_TYPES_INDEX, integers, "shape", "seed", "minval",
        "maxval"),
    ROW("StatelessRandomUniformIntV2", "dtype", RN_TYPES_INDEX, integers, "shape", "alg", "minval",
        "maxval"),
    ROW("StatelessMultinomial", "T", RN_TYPES_FLOATS, multinomial, "num_samples", "seed"),
    ROW("StatelessRandomGammaV2", "dtype", REALS, gamma_numbers, "shape", "seed"),
    ROW("StatelessRandomGammaV3", "dtype", REALS, gamma_numbers, "shape", "alg"),
};
RN_KERNEL_FAMILY(cuda_random_stateless, rows);

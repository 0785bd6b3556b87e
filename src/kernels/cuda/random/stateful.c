// Random numbers from a generator whose position is in a variable: counter (two numbers) and key,
// in device memory.
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cuda/random/random.h"

#define STATE_SIZE 3

// Copies the generator's position to |out| (may be NULL) and moves it on by |outputs| numbers.
static rn_status_t take(rn_kernel_ctx_t* ctx, uint64_t outputs, rn_tensor_t* out) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = rn_random_check_state_locked(ctx, variable);
  if (rn_ok(status)) {
    struct rn_random_take_args args = {.state = RN_DATA(&variable->value, u64),
                                       .out = out ? RN_DATA(out, u64) : NULL,
                                       .advance = outputs * RN_RANDOM_BLOCKS};
    status = rn_cuda_launch(ctx, "random/fill/take", (rn_cuda_grid_t){.x = 1, .block_x = 1}, &args,
                            sizeof args);
  }
  rn_mutex_unlock(&variable->mutex);
  return status;
}

// Makes output 0 and |*position|, which the caller clears.
static rn_status_t begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out, rn_tensor_t* position) {
  RN_RETURN_IF_ERROR(rn_random_check_algorithm(rn_in(ctx, 1)));
  int64_t dims[RN_MAX_RANK], size = STATE_SIZE;
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 2), dims, &shape));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, out));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT64, (rn_shape_t){1, &size}, position));
  rn_status_t status = take(ctx, (uint64_t)(*out)->count, position);
  if (!rn_ok(status)) rn_tensor_clear(position);
  return status;
}

static struct rn_random_at at_of(const rn_tensor_t* position) {
  const u64* numbers = RN_DATA(position, const u64);
  return (struct rn_random_at){.counter = numbers, .key = numbers + 2};
}

static rn_status_t fill(rn_kernel_ctx_t* ctx, const char* kind) {
  rn_tensor_t *out = NULL, position = {0};
  RN_RETURN_IF_ERROR(begin(ctx, &out, &position));
  rn_status_t status = rn_cuda_random_fill(ctx, kind, at_of(&position), out);
  rn_tensor_clear(&position);
  return status;
}
static rn_status_t uniform(rn_kernel_ctx_t* ctx) { return fill(ctx, "uniform"); }
static rn_status_t normal(rn_kernel_ctx_t* ctx) { return fill(ctx, "normal"); }
static rn_status_t truncated(rn_kernel_ctx_t* ctx) { return fill(ctx, "truncated"); }

static rn_status_t fill_integers(rn_kernel_ctx_t* ctx, uint64_t low, uint64_t range) {
  rn_tensor_t *out = NULL, position = {0};
  RN_RETURN_IF_ERROR(begin(ctx, &out, &position));
  rn_status_t status = rn_cuda_random_integers(ctx, at_of(&position), low, range, out);
  rn_tensor_clear(&position);
  return status;
}
static rn_status_t full_integers(rn_kernel_ctx_t* ctx) { return fill_integers(ctx, 0, 0); }
static rn_status_t integers(rn_kernel_ctx_t* ctx) {
  uint64_t low, range;
  RN_RETURN_IF_ERROR(rn_random_range(rn_in(ctx, 3), rn_in(ctx, 4), &low, &range));
  return fill_integers(ctx, low, range);
}

static rn_status_t read_and_skip(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_random_check_algorithm(rn_in(ctx, 1)));
  if (rn_in(ctx, 2)->rank != 0)
    return rn_invalid_argument("delta must be of shape [], not %s", rn_text_of(rn_in(ctx, 2)).text);
  rn_tensor_t* out = NULL;
  int64_t size = STATE_SIZE;
  if (ctx->kernel->output_count)
    RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  return take(ctx, (uint64_t)rn_int_at(rn_in(ctx, 2), 0), out);
}

#define ROW(name, set, function, ...)                                                           \
  {                                                                                             \
    .op = name, .device = "GPU", .types = {{"dtype", set}},                                     \
    .host_args = RN_HOST_ARGS("algorithm", "shape", ##__VA_ARGS__), .flags = RN_KERNEL_REPLAYS, \
    .compute = function                                                                         \
  }
#define FULL (RN_TYPES_INDEX | RN_T(UINT32) | RN_T(UINT64))

static const rn_kernel_def_t rows[] = {
    ROW("StatefulUniform", RN_TYPES_FLOATS, uniform),
    ROW("StatefulStandardNormalV2", RN_TYPES_FLOATS, normal),
    ROW("StatefulTruncatedNormal", RN_TYPES_FLOATS, truncated),
    ROW("StatefulUniformInt", RN_TYPES_INDEX, integers, "minval", "maxval"),
    ROW("StatefulUniformFullInt", FULL, full_integers),
    {.op = "RngReadAndSkip",
     .device = "GPU",
     .host_args = RN_HOST_ARGS("alg", "delta"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = read_and_skip},
    {.op = "RngSkip",
     .device = "GPU",
     .host_args = RN_HOST_ARGS("algorithm", "delta"),
     .flags = RN_KERNEL_REPLAYS,
     .compute = read_and_skip},
};
RN_KERNEL_FAMILY(cuda_random_stateful, rows);

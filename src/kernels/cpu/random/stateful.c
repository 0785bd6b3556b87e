// Random numbers from a generator whose position is in a variable: counter (two numbers) and key.
#include "kernels/cpu/array.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

#define STATE_SIZE 3

rn_status_t rn_random_check_algorithm(const rn_tensor_t* algorithm) {
  if (algorithm->rank != 0)
    return rn_invalid_argument("algorithm must be of shape [], not %s", rn_text_of(algorithm).text);
  int64_t id = rn_int_at(algorithm, 0);
  if (id == 1) return RN_OK;
  if (id == 2) return rn_unimplemented("Non-XLA devices don't support the ThreeFry algorithm.");
  return rn_invalid_argument("Unsupported algorithm id: %lld", (long long)id);
}

rn_status_t rn_random_check_state_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  const rn_tensor_t* state = &variable->value;
  if (!rn_tensor_is_set(state)) return rn_variable_uninitialized(ctx, 0, variable);
  if (state->dtype != RN_INT64)
    return rn_invalid_argument("dtype of RNG state variable must be int64, not %s",
                               rn_dtype_name(state->dtype));
  if (state->rank != 1)
    return rn_invalid_argument("RNG state must have one and only one dimension, not %d",
                               state->rank);
  if (state->count < STATE_SIZE)
    return rn_invalid_argument(
        "For the Philox algorithm, the size of state must be at least 3; got %lld",
        (long long)state->count);
  return rn_variable_make_writable_locked(ctx, 0, variable);
}

static rn_status_t skip_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable, uint64_t blocks,
                               rn_philox_t* out) {
  RN_RETURN_IF_ERROR(rn_random_check_state_locked(ctx, variable));
  uint64_t* numbers = RN_DATA(&variable->value, uint64_t);
  *out = (rn_philox_t){.block = numbers[0], .stream = numbers[1], .key = numbers[2]};
  rn_philox_t next = *out;
  rn_philox_skip(&next, blocks);
  numbers[0] = next.block;
  numbers[1] = next.stream;
  return RN_OK;
}

rn_status_t rn_random_take(rn_kernel_ctx_t* ctx, uint64_t outputs, rn_philox_t* out) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = skip_locked(ctx, variable, outputs * RN_RANDOM_BLOCKS, out);
  rn_mutex_unlock(&variable->mutex);
  return status;
}

// Input |i| has the shape.
static rn_status_t begin(rn_kernel_ctx_t* ctx, int i, rn_philox_t* philox, rn_tensor_t** out) {
  const rn_tensor_t* sizes = rn_in(ctx, i);
  if (i == 2) RN_RETURN_IF_ERROR(rn_random_check_algorithm(rn_in(ctx, 1)));
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(sizes, dims, &shape));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, out));
  return rn_random_take(ctx, (uint64_t)(*out)->count, philox);
}

static rn_status_t fill(rn_kernel_ctx_t* ctx, int i,
                        void (*make)(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out)) {
  rn_philox_t philox;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, i, &philox, &out));
  make(rn_ctx_pool(ctx), philox, out);
  return RN_OK;
}

static rn_status_t uniform(rn_kernel_ctx_t* ctx) { return fill(ctx, 2, rn_random_uniform); }
static rn_status_t truncated(rn_kernel_ctx_t* ctx) { return fill(ctx, 2, rn_random_truncated); }
// V1 has no algorithm input.
static rn_status_t normal(rn_kernel_ctx_t* ctx) {
  return fill(ctx, ctx->kernel->input_count - 1, rn_random_normal);
}

static rn_status_t full_integers(rn_kernel_ctx_t* ctx) {
  rn_philox_t philox;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, 2, &philox, &out));
  rn_random_integers(rn_ctx_pool(ctx), philox, 0, 0, out);
  return RN_OK;
}

static rn_status_t integers(rn_kernel_ctx_t* ctx) {
  uint64_t low, range;
  RN_RETURN_IF_ERROR(rn_random_range(rn_in(ctx, 3), rn_in(ctx, 4), &low, &range));
  rn_philox_t philox;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, 2, &philox, &out));
  rn_random_integers(rn_ctx_pool(ctx), philox, low, range, out);
  return RN_OK;
}

static rn_status_t read_and_skip(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_random_check_algorithm(rn_in(ctx, 1)));
  if (rn_in(ctx, 2)->rank != 0)
    return rn_invalid_argument("delta must be of shape [], not %s", rn_text_of(rn_in(ctx, 2)).text);
  rn_philox_t philox;
  RN_RETURN_IF_ERROR(rn_random_take(ctx, (uint64_t)rn_int_at(rn_in(ctx, 2), 0), &philox));
  if (ctx->kernel->output_count == 0) return RN_OK;
  rn_tensor_t* out = NULL;
  int64_t size = STATE_SIZE;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  RN_DATA(out, uint64_t)[0] = philox.block;
  RN_DATA(out, uint64_t)[1] = philox.stream;
  RN_DATA(out, uint64_t)[2] = philox.key;
  return RN_OK;
}

// Without a generator: entropy from the system.
static rn_status_t any_integers(rn_kernel_ctx_t* ctx) {
  const rn_env_t* env = ctx->step->env;
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_read_shape(sizes, dims, &shape));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  rn_random_integers(rn_ctx_pool(ctx), rn_philox(env->random(env->self), env->random(env->self)), 0,
                     0, out);
  return RN_OK;
}

#define ROW(name, set, function) \
  { .op = name, .device = "CPU", .types = {{"dtype", set}}, .compute = function }
#define FULL (RN_TYPES_INDEX | RN_T(UINT32) | RN_T(UINT64))

static const rn_kernel_def_t rows[] = {
    ROW("StatefulUniform", RN_TYPES_FLOATS, uniform),
    ROW("StatefulStandardNormal", RN_TYPES_FLOATS, normal),
    ROW("StatefulStandardNormalV2", RN_TYPES_FLOATS, normal),
    ROW("StatefulTruncatedNormal", RN_TYPES_FLOATS, truncated),
    ROW("StatefulUniformInt", RN_TYPES_INDEX, integers),
    ROW("StatefulUniformFullInt", FULL, full_integers),
    {.op = "RngReadAndSkip", .device = "CPU", .compute = read_and_skip},
    {.op = "RngSkip", .device = "CPU", .compute = read_and_skip},
    ROW("NonDeterministicInts", FULL, any_integers),
};
RN_KERNEL_FAMILY(cpu_random_stateful, rows);

// Random numbers: see random.h. The rows are those of ops with a stream of their own.
#include "kernels/cuda/random/random.h"

#include <stdio.h>

#include "device/device.h"
#include "kernels/cpu/array.h"

#define STREAM_NUMBERS 4

rn_status_t rn_cuda_stream_init(const rn_kernel_init_t* init, void* state) {
  rn_cuda_stream_t* stream = state;
  rn_philox_t philox =
      rn_philox_seeded(init->env, rn_init_int(init, "seed"), rn_init_int(init, "seed2"));
  const int64_t size = STREAM_NUMBERS;
  const rn_shape_t shape = {1, &size};
  rn_tensor_t host = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(init->device_memory, RN_UINT64, shape, &stream->numbers));
  RN_RETURN_IF_ERROR(rn_tensor_create(init->host_memory, RN_UINT64, shape, &host));
  const uint64_t numbers[STREAM_NUMBERS] = {philox.block, philox.stream, philox.key};
  memcpy(host.data, numbers, sizeof numbers);
  init->device->vtable->copy_from_host(init->device, &host, &stream->numbers, NULL, NULL);
  rn_status_t status = rn_device_wait(init->device);
  rn_tensor_clear(&host);
  return status;
}

void rn_cuda_stream_destroy(void* state) { rn_tensor_clear(&((rn_cuda_stream_t*)state)->numbers); }

struct rn_random_at rn_cuda_stream_at(const rn_kernel_ctx_t* ctx, uint64_t blocks) {
  u64* numbers = RN_DATA(&((const rn_cuda_stream_t*)ctx->state)->numbers, u64);
  return (struct rn_random_at){
      .counter = numbers, .key = numbers + 2, .state = numbers, .advance = blocks};
}

struct rn_random_at rn_cuda_random_at(rn_philox_t philox) {
  return (struct rn_random_at){.numbers = {philox.block, philox.stream, philox.key}};
}

struct rn_random_at rn_cuda_random_keyed(const rn_tensor_t* key, const rn_tensor_t* counter) {
  return (struct rn_random_at){.key = RN_DATA(key, const u64),
                               .counter = RN_DATA(counter, const u64)};
}

static rn_status_t fill(const rn_kernel_ctx_t* ctx, const char* name,
                        struct rn_random_fill_args* args, const rn_tensor_t* out) {
  const int64_t group = rn_dtype_size(out->dtype) == 8 ? 2 : 4;
  args->out = out->data;
  args->count = out->count;
  args->is_aligned = (uintptr_t)out->data % 16 == 0;
  return rn_cuda_each(ctx, name, (out->count + group - 1) / group, args, sizeof *args);
}

rn_status_t rn_cuda_random_fill(const rn_kernel_ctx_t* ctx, const char* kind,
                                struct rn_random_at at, rn_tensor_t* out) {
  struct rn_random_fill_args args = {.at = at};
  char base[48];
  snprintf(base, sizeof base, "random/fill/%s", kind);
  return fill(ctx, rn_cuda_name(base, out->dtype).text, &args, out);
}

rn_status_t rn_cuda_random_integers(const rn_kernel_ctx_t* ctx, struct rn_random_at at,
                                    uint64_t low, uint64_t range, rn_tensor_t* out) {
  struct rn_random_fill_args args = {.at = at, .low = low, .range = range};
  const char* base = range ? "random/fill/integers" : "random/fill/bits";
  return fill(ctx, rn_cuda_size_name(base, out->dtype).text, &args, out);
}

// Makes output 0 with the shape in input 0, and its part of the stream.
static rn_status_t begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out, struct rn_random_at* at) {
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 0), dims, &shape));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, out));
  *at = rn_cuda_stream_at(ctx, (uint64_t)(*out)->count * RN_RANDOM_BLOCKS);
  return RN_OK;
}

static rn_status_t fill_of(rn_kernel_ctx_t* ctx, const char* kind) {
  rn_tensor_t* out = NULL;
  struct rn_random_at at;
  RN_RETURN_IF_ERROR(begin(ctx, &out, &at));
  return rn_cuda_random_fill(ctx, kind, at, out);
}
static rn_status_t uniform(rn_kernel_ctx_t* ctx) { return fill_of(ctx, "uniform"); }
static rn_status_t normal(rn_kernel_ctx_t* ctx) { return fill_of(ctx, "normal"); }
static rn_status_t truncated(rn_kernel_ctx_t* ctx) { return fill_of(ctx, "truncated"); }

static rn_status_t integers(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *low = rn_in(ctx, 1), *high = rn_in(ctx, 2);
  rn_tensor_t* out = NULL;
  struct rn_random_at at;
  RN_RETURN_IF_ERROR(rn_random_check_bounds(low, high));
  RN_RETURN_IF_ERROR(begin(ctx, &out, &at));
  if (out->count == 0) return RN_OK;  // then the range may be empty
  uint64_t from, range;
  RN_RETURN_IF_ERROR(rn_random_range(low, high, &from, &range));
  return rn_cuda_random_integers(ctx, at, from, range, out);
}

static rn_status_t multinomial(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_random_multinomial_output(ctx, &out));
  uint64_t rows = (uint64_t)rn_tensor_dim(out, 0), draws = (uint64_t)rn_tensor_dim(out, 1);
  uint64_t outputs = (draws + 3) / 4 * 8 * rows;
  struct rn_random_at at = rn_cuda_stream_at(ctx, outputs * RN_RANDOM_BLOCKS);
  return rn_cuda_random_multinomial(ctx, at, out);
}

// Normal numbers within bounds. The part of the stream is as large as on the CPU.
static rn_status_t bounded(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  int64_t sets;
  bool are_scalars;
  RN_RETURN_IF_ERROR(rn_random_bounded_output(ctx, &out, &sets, &are_scalars));
  if (out->count == 0) return RN_OK;
  struct rn_bounded_args args = {
      .at = rn_cuda_stream_at(ctx, rn_random_bounded_blocks(out->count, sets, are_scalars)),
      .out = out->data,
      .count = out->count,
      .batch = out->count / sets};
  for (int k = 0; k < 4; ++k) {
    args.parameters[k] = rn_in(ctx, k + 1)->data;
    args.is_scalar[k] = rn_in(ctx, k + 1)->count == 1;
  }
  return rn_cuda_each(ctx, rn_cuda_name("random/bounded/bounded", out->dtype).text, out->count,
                      &args, sizeof args);
}

#define RANDOM(name, attr, set, function, ...)                                                   \
  {                                                                                              \
    .op = name, .device = "GPU", .types = {{attr, set}}, .host_args = RN_HOST_ARGS(__VA_ARGS__), \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_cuda_stream_t),                          \
    .init = rn_cuda_stream_init, .destroy = rn_cuda_stream_destroy, .compute = function          \
  }

static const rn_kernel_def_t rows[] = {
    RANDOM("RandomUniform", "dtype", RN_TYPES_FLOATS, uniform, "shape"),
    RANDOM("RandomStandardNormal", "dtype", RN_TYPES_FLOATS, normal, "shape"),
    RANDOM("TruncatedNormal", "dtype", RN_TYPES_FLOATS, truncated, "shape"),
    RANDOM("RandomUniformInt", "Tout", RN_TYPES_INDEX, integers, "shape", "minval", "maxval"),
    RANDOM("Multinomial", "T", RN_TYPES_FLOATS, multinomial, "num_samples"),
    RANDOM("ParameterizedTruncatedNormal", "dtype", RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE),
           bounded, "shape"),
};
RN_KERNEL_FAMILY(cuda_random, rows);

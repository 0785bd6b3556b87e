// Stateless random numbers: the same position gives the same numbers.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random/random.h"
#include "kernels/kernel_rows.h"

// V1 has shape and seed, V2 shape, key, counter and algorithm.
typedef struct stateless_place_t {
  rn_philox_t philox;
  int rest;  // the first input after those
} stateless_place_t;

static bool is_seeded(const rn_kernel_ctx_t* ctx, int i) {
  rn_dtype_t dtype = rn_in(ctx, i)->dtype;
  return ctx->kernel->input_count < i + 3 || dtype != RN_UINT64 ||
         rn_in(ctx, i + 1)->dtype != RN_UINT64 || rn_in(ctx, i + 2)->dtype != RN_INT32;
}

// Input |i| is the seed or the key.
static rn_status_t place_at(const rn_kernel_ctx_t* ctx, int i, stateless_place_t* out) {
  if (is_seeded(ctx, i)) {
    out->rest = i + 1;
    return rn_random_seeded(rn_in(ctx, i), &out->philox);
  }
  out->rest = i + 3;
  return rn_random_from_key(rn_in(ctx, i), rn_in(ctx, i + 1), rn_in(ctx, i + 2), &out->philox);
}

static rn_status_t begin(rn_kernel_ctx_t* ctx, stateless_place_t* place, rn_tensor_t** out) {
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(rn_in(ctx, 0), dims, &shape));
  RN_RETURN_IF_ERROR(place_at(ctx, 1, place));
  return rn_output(ctx, 0, shape, out);
}

#define FILL(name)                                         \
  static rn_status_t name(rn_kernel_ctx_t* ctx) {          \
    stateless_place_t place;                               \
    rn_tensor_t* out = NULL;                               \
    RN_RETURN_IF_ERROR(begin(ctx, &place, &out));          \
    rn_random_##name(rn_ctx_pool(ctx), place.philox, out); \
    return RN_OK;                                          \
  }
FILL(uniform)
FILL(normal)
FILL(truncated)

static rn_status_t full_integers(rn_kernel_ctx_t* ctx) {
  stateless_place_t place;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, &place, &out));
  rn_random_integers(rn_ctx_pool(ctx), place.philox, 0, 0, out);
  return RN_OK;
}

static rn_status_t integers(rn_kernel_ctx_t* ctx) {
  int rest = is_seeded(ctx, 1) ? 2 : 4;
  uint64_t low, range;
  RN_RETURN_IF_ERROR(rn_random_range(rn_in(ctx, rest), rn_in(ctx, rest + 1), &low, &range));
  stateless_place_t place;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, &place, &out));
  rn_random_integers(rn_ctx_pool(ctx), place.philox, low, range, out);
  return RN_OK;
}

static rn_status_t multinomial(rn_kernel_ctx_t* ctx) {
  stateless_place_t place;
  RN_RETURN_IF_ERROR(place_at(ctx, 2, &place));
  return rn_random_multinomial(ctx, &place.philox);
}

static rn_status_t shuffle(rn_kernel_ctx_t* ctx) {
  stateless_place_t place;
  RN_RETURN_IF_ERROR(place_at(ctx, 1, &place));
  return rn_random_shuffle(ctx, &place.philox);
}

// Ops that return the position itself.
static rn_status_t key_counter(rn_kernel_ctx_t* ctx) {
  rn_philox_t philox;
  rn_tensor_t *key = NULL, *counter = NULL, *algorithm = NULL;
  int64_t one = 1, two = 2;
  RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, 0), &philox));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &one}, &key));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &two}, &counter));
  *RN_DATA(key, uint64_t) = philox.key;
  RN_DATA(counter, uint64_t)[0] = philox.block;
  RN_DATA(counter, uint64_t)[1] = philox.stream;
  if (ctx->kernel->output_count < 3) return RN_OK;
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, RN_SHAPE_SCALAR, &algorithm));
  *RN_DATA(algorithm, int32_t) = 1;
  return RN_OK;
}

static rn_status_t algorithm(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int32_t) = 1;
  return RN_OK;
}

// StochasticCastToInt: up with the probability of the fraction, else down; to the ends of the type
// beyond them.
static rn_status_t cast_randomly(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_philox_t philox;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_random_from_key(rn_in(ctx, 1), rn_in(ctx, 2), rn_in(ctx, 3), &philox));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  rn_random_doubles_t doubles = {.philox = &philox};
  int bits = 8 * (int)rn_dtype_size(out->dtype);
  double limit = ldexp(1, bits - 1);
  for (int64_t i = 0; i < in->count; ++i) {
    double x = rn_number_at(in, i), low = floor(x);
    double y = low + (rn_random_double(&doubles) < x - low);
    int64_t whole = isnan(x) ? 0 : (int64_t)fmin(fmax(y, -limit), limit - 1);
    if (bits == 8)
      RN_DATA(out, int8_t)[i] = (int8_t)whole;
    else if (bits == 16)
      RN_DATA(out, int16_t)[i] = (int16_t)whole;
    else
      RN_DATA(out, int32_t)[i] = (int32_t)whole;
  }
  return RN_OK;
}

#define ROW(name, attr, set, function) \
  { .op = name, .device = "CPU", .types = {{attr, set}}, .compute = function }
#define PLAIN(name, function) \
  { .op = name, .device = "CPU", .compute = function }
#define FULL (RN_TYPES_INDEX | RN_T(UINT32) | RN_T(UINT64))

static const rn_kernel_def_t rows[] = {
    ROW("StatelessRandomUniform", "dtype", RN_TYPES_FLOATS, uniform),
    ROW("StatelessRandomUniformV2", "dtype", RN_TYPES_FLOATS, uniform),
    ROW("StatelessRandomNormal", "dtype", RN_TYPES_FLOATS, normal),
    ROW("StatelessRandomNormalV2", "dtype", RN_TYPES_FLOATS, normal),
    ROW("StatelessTruncatedNormal", "dtype", RN_TYPES_FLOATS, truncated),
    ROW("StatelessTruncatedNormalV2", "dtype", RN_TYPES_FLOATS, truncated),
    ROW("StatelessRandomUniformInt", "dtype", RN_TYPES_INDEX, integers),
    ROW("StatelessRandomUniformIntV2", "dtype", RN_TYPES_INDEX, integers),
    ROW("StatelessRandomUniformFullInt", "dtype", FULL, full_integers),
    ROW("StatelessRandomUniformFullIntV2", "dtype", FULL, full_integers),
    ROW("StatelessMultinomial", "T", RN_TYPES_FLOATS, multinomial),
    {.op = "StochasticCastToInt",
     .device = "CPU",
     .types = {{"Tin", RN_TYPES_FLOATS}, {"Tout", RN_T(INT8) | RN_T(INT16) | RN_T(INT32)}},
     .compute = cast_randomly},
    PLAIN("StatelessShuffle", shuffle),
    PLAIN("StatelessRandomGetKeyCounter", key_counter),
    PLAIN("StatelessRandomGetKeyCounterAlg", key_counter),
    PLAIN("StatelessRandomGetAlg", algorithm),
};
RN_KERNEL_FAMILY(cpu_random_stateless, rows);

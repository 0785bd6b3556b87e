// Truncated normal numbers with their own bounds, by rejection (Robert, "Simulation of truncated
// normal variables", 1995): from the normal distribution if the bounds leave much of it, uniform if
// they are close, exponential in the tail.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random/random.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

#define MOST_TRIES 1000  // per number; the last try is then accepted
#define BATCH 100        // numbers per batch if all have the same parameters
#define WIDE 1.3         // standard deviations within the bounds for plain normal sampling

typedef struct bounded_job_t {
  rn_philox_t philox;
  const rn_tensor_t* params[4];  // means, standard deviations, lower and upper bounds
  rn_tensor_t* out;
  int64_t batches, batch;
} bounded_job_t;

// Converts a block to uniform or normal numbers of the type. Returns how many.
static int uniform_float(rn_philox_t* at, float out[4]) {
  uint32_t words[4];
  rn_philox_next(at, words);
  for (int i = 0; i < 4; ++i) out[i] = rn_word_to_float(words[i]);
  return 4;
}
static int uniform_double(rn_philox_t* at, double out[4]) {
  uint32_t words[4];
  rn_philox_next(at, words);
  for (int i = 0; i < 2; ++i) out[i] = rn_words_to_double(words[2 * i], words[2 * i + 1]);
  return 2;
}
static int normal_float(rn_philox_t* at, float out[4]) {
  uint32_t words[4];
  rn_philox_next(at, words);
  rn_random_normal_floats(words[0], words[1], out);
  rn_random_normal_floats(words[2], words[3], out + 2);
  return 4;
}
static int normal_double(rn_philox_t* at, double out[4]) {
  uint32_t words[4];
  rn_philox_next(at, words);
  rn_random_normal_pair(words, out);
  return 2;
}

// Halves are computed with as floats, and every result is rounded.
static inline float round_half(float x) { return rn_half_to_float(rn_float_to_half(x)); }
static inline float round_float(float x) { return x; }
static inline double round_double(double x) { return x; }
static int uniform_half(rn_philox_t* at, float out[4]) {
  uint32_t words[4];
  rn_philox_next(at, words);
  for (int i = 0; i < 4; ++i) out[i] = (float)(words[i] & 0x3ff) * 0x1p-10f;
  return 4;
}
static int normal_half(rn_philox_t* at, float out[4]) {
  int n = normal_float(at, out);
  for (int i = 0; i < n; ++i) out[i] = round_half(out[i]);
  return n;
}

#define load_half(p) rn_half_to_float(*(p))
#define load_float(p) (*(p))
#define load_double(p) (*(p))
#define save_half rn_float_to_half
#define save_float
#define save_double

// |T| computes, |S| is what a tensor of type |N| holds.
#define BOUNDED(N, S, T, sqrt_, exp_, log_)                                                  \
  typedef struct bounds_##N {                                                                \
    T mean, deviation, low, high;                                                            \
  } bounds_##N;                                                                              \
  static inline S scaled_##N(bounds_##N b, T z) {                                            \
    return save_##N(round_##N(round_##N(z * b.deviation) + b.mean));                         \
  }                                                                                          \
  static void from_normal_##N(bounds_##N b, rn_philox_t* at, S* out, S* end) {               \
    int tries = 0;                                                                           \
    while (out < end) {                                                                      \
      T x[4];                                                                                \
      int n = normal_##N(at, x);                                                             \
      for (int i = 0; i < n && out < end; ++i) {                                             \
        bool fits = x[i] >= b.low && x[i] <= b.high;                                         \
        if (!fits && ++tries <= MOST_TRIES) continue;                                        \
        *out++ = scaled_##N(b, x[i]);                                                        \
        tries = 0;                                                                           \
      }                                                                                      \
    }                                                                                        \
  }                                                                                          \
  static void from_even_##N(bounds_##N b, rn_philox_t* at, S* out, S* end) {                 \
    T width = round_##N(b.high - b.low), plus = b.low < 0 ? 0 : round_##N(b.low * b.low);    \
    int tries = 0;                                                                           \
    while (out < end) {                                                                      \
      T x[4], u[4];                                                                          \
      int n = uniform_##N(at, x);                                                            \
      uniform_##N(at, u);                                                                    \
      for (int i = 0; i < n && out < end; ++i) {                                             \
        T z = round_##N(round_##N(x[i] * width) + b.low);                                    \
        T g = round_##N(round_##N(plus - round_##N(z * z)) / 2);                             \
        if (!(u[i] <= round_##N(exp_(g))) && ++tries < MOST_TRIES) continue;                 \
        *out++ = scaled_##N(b, z);                                                           \
        tries = 0;                                                                           \
      }                                                                                      \
    }                                                                                        \
  }                                                                                          \
  static T root_##N(T low) { return round_##N(sqrt_(round_##N(round_##N(low * low) + 4))); } \
  static void from_tail_##N(bounds_##N b, rn_philox_t* at, S* out, S* end) {                 \
    T alpha = round_##N(round_##N(b.low + root_##N(b.low)) / 2);                             \
    int tries = 0;                                                                           \
    while (out < end) {                                                                      \
      T x[4];                                                                                \
      int n = uniform_##N(at, x);                                                            \
      for (int i = 0; i < n && out < end; i += 2) {                                          \
        T z = round_##N(round_##N(-round_##N(log_(x[i])) / alpha) + b.low);                  \
        T d = round_##N(b.low < alpha ? alpha - z : b.low - alpha);                          \
        T g = round_##N(exp_(round_##N(round_##N(-d * d) / 2)));                             \
        bool fits = x[i + 1] <= g && z < b.high;                                             \
        if (!fits && ++tries < MOST_TRIES) continue;                                         \
        *out++ = scaled_##N(b, z);                                                           \
        tries = 0;                                                                           \
      }                                                                                      \
    }                                                                                        \
  }                                                                                          \
  static T param_##N(const rn_tensor_t* tensor, int64_t b) {                                 \
    return load_##N(RN_DATA(tensor, const S) + (tensor->count == 1 ? 0 : b));                \
  }                                                                                          \
  static bool batch_##N(const bounded_job_t* job, rn_philox_t* at, int64_t b) {              \
    T mean = param_##N(job->params[0], b), deviation = param_##N(job->params[1], b);         \
    T low = param_##N(job->params[2], b), high = param_##N(job->params[3], b);               \
    if (!(deviation > 0 && low < high && (isfinite(low) || isfinite(high)))) return false;   \
    if ((isinf(low) && low < 0) || high < mean) {                                            \
      T other = low;                                                                         \
      low = high;                                                                            \
      high = other;                                                                          \
      deviation = -deviation;                                                                \
    }                                                                                        \
    bounds_##N s = {mean, deviation, round_##N(round_##N(low - mean) / deviation),           \
                    round_##N(round_##N(high - mean) / deviation)};                          \
    int64_t first = b * job->batch, last = first + job->batch;                               \
    if (last > job->out->count) last = job->out->count;                                      \
    S *out = RN_DATA(job->out, S) + first, *end = RN_DATA(job->out, S) + last;               \
    T root = root_##N(s.low);                                                                \
    T share = round_##N(round_##N(s.low * round_##N(s.low - root)) / 4);                     \
    T cutoff = round_##N(round_##N(2 * round_##N(exp_(round_##N((T)0.5 + share)))) /         \
                         round_##N(s.low + root));                                           \
    T wide = round_##N((T)WIDE);                                                             \
    if ((s.low < -wide && s.high >= 0) || (s.high > wide && s.low <= 0))                     \
      from_normal_##N(s, at, out, end);                                                      \
    else if (round_##N(s.high - s.low) < cutoff)                                             \
      from_even_##N(s, at, out, end);                                                        \
    else                                                                                     \
      from_tail_##N(s, at, out, end);                                                        \
    return true;                                                                             \
  }
BOUNDED(float, float, float, sqrtf, expf, logf)
BOUNDED(double, double, double, sqrt, exp, log)
BOUNDED(half, uint16_t, float, sqrtf, expf, logf)

static bool draw_batch(const bounded_job_t* job, rn_philox_t* at, int64_t b) {
  switch (job->out->dtype) {
    case RN_FLOAT:
      return batch_float(job, at, b);
    case RN_DOUBLE:
      return batch_double(job, at, b);
    default:
      return batch_half(job, at, b);
  }
}

static rn_status_t draw_all(bounded_job_t* job) {
  rn_philox_t at = job->philox;
  for (int64_t b = 0; b < job->batches; ++b)
    if (!draw_batch(job, &at, b)) return rn_invalid_argument("Invalid parameters");
  return RN_OK;
}

static rn_status_t check_params(const rn_kernel_ctx_t* ctx, int64_t sets, bool* out_are_scalars) {
  static const char* const names[] = {"means", "stddevs", "minvals", "maxvals"};
  *out_are_scalars = true;
  for (int i = 0; i < 4; ++i) {
    const rn_tensor_t* param = rn_in(ctx, i + 1);
    if (param->rank > 1)
      return rn_invalid_argument("Input %s should be a scalar or vector, got shape: %s", names[i],
                                 rn_text_of(param).text);
    *out_are_scalars &= param->count == 1;
    if (param->count != 1 && param->count != sets)
      return rn_invalid_argument("Shape mismatch: %s must have one element or %lld, got shape: %s",
                                 names[i], (long long)sets, rn_text_of(param).text);
  }
  return RN_OK;
}

rn_status_t rn_random_bounded_output(rn_kernel_ctx_t* ctx, rn_tensor_t** out, int64_t* out_sets,
                                     bool* out_are_scalars) {
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  if (sizes->rank != 1)
    return rn_invalid_argument("Input shape should be a vector, got shape: %s",
                               rn_text_of(sizes).text);
  if (sizes->count == 0) return rn_invalid_argument("Shape tensor must not be empty, got []");
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  *out_sets = dims[0];
  RN_RETURN_IF_ERROR(check_params(ctx, dims[0], out_are_scalars));
  return rn_output(ctx, 0, shape, out);
}

// Numbers with the same parameters are made in batches.
static void set_batches(int64_t count, int64_t sets, bool are_scalars, bounded_job_t* job) {
  job->batch = are_scalars ? BATCH : count / sets;
  job->batches = are_scalars ? (count - 1) / BATCH + 1 : sets;
}

uint64_t rn_random_bounded_blocks(int64_t count, int64_t sets, bool are_scalars) {
  bounded_job_t job;
  set_batches(count, sets, are_scalars, &job);
  return (uint64_t)job.batches * 2 * MOST_TRIES * (uint64_t)(job.batch + 3) / 4;
}

static rn_status_t bounded(rn_kernel_ctx_t* ctx) {
  bounded_job_t job = {0};
  int64_t sets;
  bool are_scalars;
  RN_RETURN_IF_ERROR(rn_random_bounded_output(ctx, &job.out, &sets, &are_scalars));
  for (int i = 0; i < 4; ++i) job.params[i] = rn_in(ctx, i + 1);
  if (job.out->count == 0) return RN_OK;
  set_batches(job.out->count, sets, are_scalars, &job);
  job.philox = rn_random_stream_reserve(
      ctx->state, rn_random_bounded_blocks(job.out->count, sets, are_scalars));
  // One batch goes on where the one before ended, as stock has it on one thread.
  return draw_all(&job);
}

// The stateless op. The parameters broadcast; the requested shape ends with what they broadcast to,
// and each set of parameters gets as many numbers as the leading dimensions have.

// The shape to which the four broadcast.
static rn_status_t join_shapes(const rn_kernel_ctx_t* ctx, int64_t* dims, rn_shape_t* out) {
  int rank = 0;
  for (int i = 2; i < 6; ++i)
    if (rn_in(ctx, i)->rank > rank) rank = rn_in(ctx, i)->rank;
  for (int d = 0; d < rank; ++d) dims[d] = 1;
  for (int i = 2; i < 6; ++i) {
    const rn_tensor_t* param = rn_in(ctx, i);
    for (int d = 0; d < param->rank; ++d) {
      int64_t size = rn_tensor_dim(param, d), *mine = &dims[rank - param->rank + d];
      if (size == *mine || size == 1) continue;
      if (*mine != 1)
        return rn_invalid_argument(
            "The parameters of the truncated normal distribution do not broadcast");
      *mine = size;
    }
  }
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

// Broadcasts |param| to |shape|.
static rn_status_t spread(rn_kernel_ctx_t* ctx, const rn_tensor_t* param, rn_shape_t shape,
                          int64_t count, rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_temp(ctx, param->dtype, (rn_shape_t){1, &count}, out));
  size_t size = rn_dtype_size(param->dtype);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, from = 0, step = 1;
    for (int d = shape.rank - 1; d >= 0; --d) {
      int64_t at = rest % shape.dims[d];
      rest /= shape.dims[d];
      int own = d - (shape.rank - param->rank);
      if (own < 0) continue;
      if (rn_tensor_dim(param, own) > 1) from += at * step;
      step *= rn_tensor_dim(param, own);
    }
    memcpy((char*)out->data + (size_t)i * size, (const char*)param->data + (size_t)from * size,
           size);
  }
  return RN_OK;
}

static rn_status_t draw_places(rn_kernel_ctx_t* ctx, bounded_job_t* job, rn_shape_t places,
                               rn_tensor_t* spread_params, rn_tensor_t* drawn, rn_tensor_t* out) {
  for (int i = 0; i < 4; ++i) {
    RN_RETURN_IF_ERROR(spread(ctx, rn_in(ctx, i + 2), places, job->batches, &spread_params[i]));
    job->params[i] = &spread_params[i];
  }
  job->out = out;
  if (job->batches == 1) return draw_all(job);
  RN_RETURN_IF_ERROR(rn_temp(ctx, out->dtype, (rn_shape_t){1, &out->count}, drawn));
  job->out = drawn;
  RN_RETURN_IF_ERROR(draw_all(job));
  size_t size = rn_dtype_size(out->dtype);
  for (int64_t b = 0; b < job->batches; ++b)
    for (int64_t i = 0; i < job->batch; ++i)
      memcpy((char*)out->data + (size_t)(i * job->batches + b) * size,
             (const char*)drawn->data + (size_t)(b * job->batch + i) * size, size);
  return RN_OK;
}

static rn_status_t stateless_bounded(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  if (sizes->rank != 1)
    return rn_invalid_argument("Input shape should be a vector, got shape: %s",
                               rn_text_of(sizes).text);
  int64_t dims[RN_MAX_RANK], place_dims[RN_MAX_RANK];
  rn_shape_t shape, places;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  RN_RETURN_IF_ERROR(join_shapes(ctx, place_dims, &places));
  bool ends_so = places.rank <= shape.rank;
  for (int d = 0; ends_so && d < places.rank; ++d)
    ends_so = places.dims[d] == shape.dims[shape.rank - places.rank + d];
  if (!ends_so) return rn_invalid_argument("Shape passed in must end with broadcasted shape.");
  bounded_job_t job = {.batches = 1};
  RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, 1), &job.philox));
  rn_tensor_t *out = NULL, spread_params[4] = {0}, drawn = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (out->count == 0) return RN_OK;
  job.batches = rn_dims_product(places.dims, 0, places.rank);
  job.batch = out->count / job.batches;
  rn_status_t status = draw_places(ctx, &job, places, spread_params, &drawn, out);
  for (int i = 0; i < 4; ++i) rn_tensor_clear(&spread_params[i]);
  rn_tensor_clear(&drawn);
  return status;
}

#define REALS (RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE))
static const rn_kernel_def_t rows[] = {
    {.op = "StatelessParameterizedTruncatedNormal",
     .device = "CPU",
     .types = {{"dtype", REALS}},
     .compute = stateless_bounded},
    {.op = "ParameterizedTruncatedNormal",
     .device = "CPU",
     .types = {{"dtype", REALS}},
     .state_size = sizeof(rn_random_stream_t),
     .init = rn_random_stream_init,
     .destroy = rn_random_stream_destroy,
     .compute = bounded},
};
RN_KERNEL_FAMILY(cpu_random_bounded, rows);

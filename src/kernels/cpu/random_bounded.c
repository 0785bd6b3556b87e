// Normal numbers between bounds of their own, by drawing until one is accepted (Robert, "Simulation
// of truncated normal variables", 1995): from the normal distribution where the bounds leave much
// of it, evenly where they are close, from an exponential distribution in the tail.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random.h"
#include "kernels/kernel_rows.h"

#define MOST_TRIES 1000  // for one number; the last try is then taken
#define BATCH 100        // numbers in a batch where all have the same parameters
#define WIDE 1.3         // deviations inside the bounds for the normal distribution to do

typedef struct job_t {
  rn_philox_t philox;
  const rn_tensor_t* params[4];  // means, deviations, lower and upper bounds
  rn_tensor_t* out;
  int64_t batches, batch;
} job_t;

// A block as numbers of the type: uniform or normal ones. Returns how many.
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

#define BOUNDED(T, sqrt_, exp_, log_)                                                      \
  typedef struct bounds_##T {                                                              \
    T mean, deviation, low, high;                                                          \
  } bounds_##T;                                                                            \
  static T* from_normal_##T(bounds_##T b, rn_philox_t* at, T* out, T* end) {               \
    int tries = 0;                                                                         \
    while (out < end) {                                                                    \
      T x[4];                                                                              \
      int n = normal_##T(at, x);                                                           \
      for (int i = 0; i < n && out < end; ++i) {                                           \
        bool fits = x[i] >= b.low && x[i] <= b.high;                                       \
        if (!fits && ++tries <= MOST_TRIES) continue;                                      \
        *out++ = x[i] * b.deviation + b.mean;                                              \
        tries = 0;                                                                         \
      }                                                                                    \
    }                                                                                      \
    return out;                                                                            \
  }                                                                                        \
  static T* from_even_##T(bounds_##T b, rn_philox_t* at, T* out, T* end) {                 \
    T width = b.high - b.low, plus = b.low < 0 ? 0 : b.low * b.low;                        \
    int tries = 0;                                                                         \
    while (out < end) {                                                                    \
      T x[4], u[4];                                                                        \
      int n = uniform_##T(at, x);                                                          \
      uniform_##T(at, u);                                                                  \
      for (int i = 0; i < n && out < end; ++i) {                                           \
        T z = x[i] * width + b.low;                                                        \
        if (!(u[i] <= exp_((plus - z * z) / 2)) && ++tries < MOST_TRIES) continue;         \
        *out++ = z * b.deviation + b.mean;                                                 \
        tries = 0;                                                                         \
      }                                                                                    \
    }                                                                                      \
    return out;                                                                            \
  }                                                                                        \
  static T* from_tail_##T(bounds_##T b, rn_philox_t* at, T* out, T* end) {                 \
    T alpha = (b.low + sqrt_(b.low * b.low + 4)) / 2;                                      \
    int tries = 0;                                                                         \
    while (out < end) {                                                                    \
      T x[4];                                                                              \
      int n = uniform_##T(at, x);                                                          \
      for (int i = 0; i < n && out < end; i += 2) {                                        \
        T z = -log_(x[i]) / alpha + b.low;                                                 \
        T d = b.low < alpha ? alpha - z : b.low - alpha;                                   \
        bool fits = x[i + 1] <= exp_(-d * d / 2) && z < b.high;                            \
        if (!fits && ++tries < MOST_TRIES) continue;                                       \
        *out++ = z * b.deviation + b.mean;                                                 \
        tries = 0;                                                                         \
      }                                                                                    \
    }                                                                                      \
    return out;                                                                            \
  }                                                                                        \
  static T param_##T(const rn_tensor_t* tensor, int64_t b) {                               \
    return RN_DATA(tensor, const T)[tensor->count == 1 ? 0 : b];                           \
  }                                                                                        \
  static bool batch_##T(const job_t* job, rn_philox_t* at, int64_t b) {                    \
    T mean = param_##T(job->params[0], b), deviation = param_##T(job->params[1], b);       \
    T low = param_##T(job->params[2], b), high = param_##T(job->params[3], b);             \
    if (!(deviation > 0 && low < high && (isfinite(low) || isfinite(high)))) return false; \
    if ((isinf(low) && low < 0) || high < mean) {                                          \
      T other = low;                                                                       \
      low = high;                                                                          \
      high = other;                                                                        \
      deviation = -deviation;                                                              \
    }                                                                                      \
    bounds_##T s = {mean, deviation, (low - mean) / deviation, (high - mean) / deviation}; \
    int64_t first = b * job->batch, last = first + job->batch;                             \
    if (last > job->out->count) last = job->out->count;                                    \
    T *out = RN_DATA(job->out, T) + first, *end = RN_DATA(job->out, T) + last;             \
    T root = sqrt_(s.low * s.low + 4);                                                     \
    T cutoff = 2 * exp_((T)0.5 + (s.low * (s.low - root)) / 4) / (s.low + root);           \
    if ((s.low < (T)-WIDE && s.high >= 0) || (s.high > (T)WIDE && s.low <= 0))             \
      from_normal_##T(s, at, out, end);                                                    \
    else if (s.high - s.low < cutoff)                                                      \
      from_even_##T(s, at, out, end);                                                      \
    else                                                                                   \
      from_tail_##T(s, at, out, end);                                                      \
    return true;                                                                           \
  }
BOUNDED(float, sqrtf, expf, logf)
BOUNDED(double, sqrt, exp, log)

static rn_status_t stream_init(const rn_kernel_init_t* init, void* state) {
  rn_stream_t* stream = state;
  rn_mutex_init(&stream->mutex);
  stream->philox =
      rn_philox_seeded(init->env, rn_init_int(init, "seed"), rn_init_int(init, "seed2"));
  return RN_OK;
}

static void stream_destroy(void* state) { rn_mutex_destroy(&((rn_stream_t*)state)->mutex); }

static rn_status_t check_params(const rn_kernel_ctx_t* ctx, job_t* job, bool* out_are_scalars) {
  static const char* const names[] = {"means", "stddevs", "minvals", "maxvals"};
  *out_are_scalars = true;
  for (int i = 0; i < 4; ++i) {
    const rn_tensor_t* param = job->params[i] = rn_in(ctx, i + 1);
    if (param->rank > 1)
      return rn_invalid_argument("Input %s should be a scalar or vector, got shape: %s", names[i],
                                 rn_text_of(param).text);
    *out_are_scalars &= param->count == 1;
    if (param->count != 1 && param->count != job->batches)
      return rn_invalid_argument("Shape mismatch: %s must have one element or %lld, got shape: %s",
                                 names[i], (long long)job->batches, rn_text_of(param).text);
  }
  return RN_OK;
}

static rn_status_t bounded(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* sizes = rn_in(ctx, 0);
  if (sizes->rank != 1)
    return rn_invalid_argument("Input shape should be a vector, got shape: %s",
                               rn_text_of(sizes).text);
  if (sizes->count == 0) return rn_invalid_argument("Shape tensor must not be empty, got []");
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  job_t job = {.batches = dims[0]};
  bool are_scalars;
  RN_RETURN_IF_ERROR(check_params(ctx, &job, &are_scalars));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &job.out));
  if (job.out->count == 0) return RN_OK;
  job.batch = job.out->count / job.batches;
  if (are_scalars) {
    job.batch = BATCH;
    job.batches = (job.out->count - 1) / BATCH + 1;
  }
  job.philox = rn_stream_reserve(
      ctx->state, (uint64_t)job.batches * 2 * MOST_TRIES * (uint64_t)(job.batch + 3) / 4);
  // One batch goes on where the one before ended, as stock has it on one thread.
  rn_philox_t at = job.philox;
  for (int64_t b = 0; b < job.batches; ++b)
    if (!(job.out->dtype == RN_FLOAT ? batch_float(&job, &at, b) : batch_double(&job, &at, b)))
      return rn_invalid_argument("Invalid parameters");
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "ParameterizedTruncatedNormal",
     .device = "CPU",
     .types = {{"dtype", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .state_size = sizeof(rn_stream_t),
     .init = stream_init,
     .destroy = stream_destroy,
     .compute = bounded},
};
RN_KERNEL_FAMILY(cpu_random_bounded, rows);

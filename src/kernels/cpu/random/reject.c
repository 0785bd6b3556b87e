// Gamma, Poisson and binomial random numbers, by rejection.
//
// Every sample starts at its own position in the stream, so that none depends on how many draws
// another needed.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random/random.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// |samples| numbers per set of parameters, of which there are |params|. Sample s of set p is output
// s * params + p, but its position in the stream is p * samples + s.
typedef struct reject_job_t {
  rn_philox_t philox;
  int64_t samples, params;
  const rn_tensor_t *a, *b;  // the parameters; b is NULL if there is only one
  rn_tensor_t* out;
  double (*draw)(rn_philox_t* philox, double a, double b);
} reject_job_t;

static void store(rn_tensor_t* tensor, int64_t i, double value) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      RN_DATA(tensor, float)[i] = (float)value;
      break;
    case RN_DOUBLE:
      RN_DATA(tensor, double)[i] = value;
      break;
    case RN_HALF:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_half((float)value);
      break;
    case RN_BFLOAT16:
      RN_DATA(tensor, uint16_t)[i] = rn_float_to_bfloat16((float)value);
      break;
    case RN_INT32:
      RN_DATA(tensor, int32_t)
      [i] = isnan(value)         ? 0
            : value >= INT32_MAX ? INT32_MAX
            : value <= INT32_MIN ? INT32_MIN
                                 : (int32_t)value;
      break;
    default:
      RN_DATA(tensor, int64_t)
      [i] = isnan(value)       ? 0
            : value >= 0x1p63  ? INT64_MAX
            : value <= -0x1p63 ? INT64_MIN
                               : (int64_t)value;
  }
}

// Whether so few successes (or failures) are expected that sampling waiting times is faster.
#define BLOCKS_OF_FEW 42  // blocks of the stream such a sample takes
static bool has_few(double count, double p) { return count * (p <= 0.5 ? p : 1 - p) < 10; }

static void draw_piece(void* arg, int64_t begin, int64_t end) {
  const reject_job_t* job = arg;
  for (int64_t n = begin; n < end; ++n) {
    int64_t p = n / job->samples, s = n % job->samples;
    double a = rn_number_at(job->a, job->a->count == 1 ? 0 : p);
    double b = job->b ? rn_number_at(job->b, job->b->count == 1 ? 0 : p) : 0;
    rn_philox_t at = job->philox;
    uint64_t blocks = job->b && has_few(a, b) ? BLOCKS_OF_FEW : RN_RANDOM_BLOCKS;
    rn_philox_skip(&at, (uint64_t)n * blocks);
    store(job->out, s * job->params + p, job->draw(&at, a, b));
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
static double draw_gamma(rn_philox_t* philox, double alpha, double unused) {
  (void)unused;
  rn_random_doubles_t uniform = {.philox = philox};
  if (alpha == 1) return -log1p(-rn_random_double(&uniform));
  bool is_small = alpha < 1;
  double d = alpha + (is_small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  double normals[2];
  // Limits the tries: a NaN parameter would never be accepted.
  for (int left = 0, tries = 0; tries < 100000; ++tries) {
    if (left == 0) {
      uint32_t words[4];
      rn_philox_next(philox, words);
      rn_random_normal_pair(words, normals);
      left = 2;
    }
    double x = normals[--left], v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    double u = rn_random_double(&uniform);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v)))
      return is_small ? d * v * pow(rn_random_double(&uniform), 1 / alpha) : d * v;
  }
  return NAN;
}

// Hörmann, "The transformed rejection method for generating Poisson random variables", 1993; for
// small rates the product of uniform numbers (Knuth), which gives 0 for a negative rate.
static double draw_poisson(rn_philox_t* philox, double rate, double unused) {
  (void)unused;
  rn_random_doubles_t uniform = {.philox = philox};
  if (isnan(rate)) return rate;
  if (rate == INFINITY) return rate;
  if (rate < 10) {
    double limit = exp(-rate), product = 1, count = 0;
    while (true) {
      product *= rn_random_double(&uniform);
      if (product <= limit) return count;
      ++count;
    }
  }
  double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (true) {
    double u = rn_random_double(&uniform) - 0.5, v = rn_random_double(&uniform);
    double shifted = 0.5 - fabs(u);
    double k = floor((2 * a / shifted + b) * u + rate + 0.43);
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    if (log(v * inverse_alpha / (a / (shifted * shifted) + b)) <=
        -rate + k * log_rate - lgamma(k + 1))
      return k;
  }
}

// log(k!) minus Stirling's approximation.
static double stirling_tail(double k) {
  static const double few[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return few[(int)k];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Hörmann, "The generation of binomial random variates", 1993; if few successes are expected, the
// waiting times between them.
static double draw_successes(rn_random_doubles_t* uniform, double count, double p) {
  if (has_few(count, p)) {
    double waited = 0, successes = 0, scale = log1p(-p);
    while (true) {
      waited += ceil(log(rn_random_double(uniform)) / scale);
      if (!(waited <= count)) return successes;
      ++successes;
    }
  }
  double deviation = sqrt(count * p * (1 - p));
  double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  double box = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  double m = floor((count + 1) * p);
  while (true) {
    double u = rn_random_double(uniform) - 0.5, v = rn_random_double(uniform);
    double shifted = 0.5 - fabs(u), k = floor((2 * a / shifted + b) * u + c);
    if (shifted >= 0.07 && v <= box) return k;
    if (k < 0 || k > count) continue;
    // clang-format off
    double bound = (m + 0.5)   * log((m + 1) / (r * (count - m + 1)))
                 + (count + 1) * log((count - m + 1) / (count - k + 1))
                 + (k + 0.5)   * log(r * (count - k + 1) / (k + 1))
                 + stirling_tail(m) + stirling_tail(count - m)
                 - stirling_tail(k) - stirling_tail(count - k);
    // clang-format on
    if (log(v * alpha / (a / (shifted * shifted) + b)) <= bound) return k;
  }
}

static double draw_binomial(rn_philox_t* philox, double count, double p) {
  rn_random_doubles_t uniform = {.philox = philox};
  if (isnan(count) || isnan(p) || isinf(count) || isinf(p)) return NAN;
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  return p <= 0.5 ? draw_successes(&uniform, count, p)
                  : count - draw_successes(&uniform, count, 1 - p);
}

static void run(rn_kernel_ctx_t* ctx, reject_job_t* job) {
  if (job->out->count == 0) return;
  rn_pool_for(rn_ctx_pool(ctx), job->out->count, 500, draw_piece, job);
}

// Ops with their own stream: the samples' shape precedes that of the parameters.
static rn_status_t sampled(rn_kernel_ctx_t* ctx, double (*draw)(rn_philox_t*, double, double)) {
  const rn_tensor_t *sizes = rn_in(ctx, 0), *param = rn_in(ctx, 1);
  if (sizes->rank > 1)
    return rn_invalid_argument("shape must be a vector of {int32,int64}, got shape %s",
                               rn_text_of(sizes).text);
  int64_t dims[RN_MAX_RANK], samples = 1;
  rn_shape_t shape;
  if (sizes->rank == 1) {
    RN_RETURN_IF_ERROR(rn_read_dims(sizes, dims, &shape));
  } else {
    dims[0] = rn_int_at(sizes, 0);
    shape = (rn_shape_t){1, dims};
    if (dims[0] < 0) return rn_invalid_argument("Dimension %lld must be >= 0", (long long)dims[0]);
  }
  if (shape.rank + param->rank > RN_MAX_RANK)
    return rn_invalid_argument("The rank of the samples is too large");
  samples = rn_dims_product(dims, 0, shape.rank);
  for (int d = 0; d < param->rank; ++d) dims[shape.rank + d] = rn_tensor_dim(param, d);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){shape.rank + param->rank, dims}, &out));
  if (out->count == 0) return RN_OK;
  reject_job_t job = {
      .philox = rn_random_stream_reserve(ctx->state, (uint64_t)out->count * RN_RANDOM_BLOCKS),
      .samples = samples,
      .params = param->count,
      .a = param,
      .out = out,
      .draw = draw};
  run(ctx, &job);
  return RN_OK;
}

static rn_status_t gamma_own(rn_kernel_ctx_t* ctx) { return sampled(ctx, draw_gamma); }
static rn_status_t poisson_own(rn_kernel_ctx_t* ctx) { return sampled(ctx, draw_poisson); }

// Stateless ops: the shape is that of all samples and ends with that of the parameters.
rn_status_t rn_random_output_ending(rn_kernel_ctx_t* ctx, int parameters, rn_tensor_t** out) {
  const rn_tensor_t *sizes = rn_in(ctx, 0), *param = rn_in(ctx, parameters);
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(rn_read_shape(sizes, dims, &shape));
  int skip = shape.rank - param->rank;
  bool fits = skip >= 0;
  for (int d = 0; fits && d < param->rank; ++d) fits = dims[skip + d] == rn_tensor_dim(param, d);
  if (!fits) return rn_invalid_argument("Shape passed in must end with broadcasted shape.");
  return rn_output(ctx, 0, shape, out);
}

static rn_status_t placed(rn_kernel_ctx_t* ctx, rn_philox_t philox, int first,
                          double (*draw)(rn_philox_t*, double, double)) {
  const rn_tensor_t* param = rn_in(ctx, first);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_random_output_ending(ctx, first, &out));
  if (out->count == 0) return RN_OK;
  reject_job_t job = {.philox = philox,
                      .samples = out->count / param->count,
                      .params = param->count,
                      .a = param,
                      .out = out,
                      .draw = draw};
  run(ctx, &job);
  return RN_OK;
}

static rn_status_t gamma_seeded(rn_kernel_ctx_t* ctx) {
  rn_philox_t philox;
  RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, 1), &philox));
  return placed(ctx, philox, 2, draw_gamma);
}

static rn_status_t gamma_keyed(rn_kernel_ctx_t* ctx) {
  rn_philox_t philox;
  RN_RETURN_IF_ERROR(rn_random_from_key(rn_in(ctx, 1), rn_in(ctx, 2), rn_in(ctx, 3), &philox));
  return placed(ctx, philox, 4, draw_gamma);
}

static rn_status_t poisson_seeded(rn_kernel_ctx_t* ctx) {
  rn_philox_t philox;
  RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, 1), &philox));
  return placed(ctx, philox, 2, draw_poisson);
}

// The index of element |i| of |shape| in a tensor that broadcasts to it.
static int64_t broadcast_index(const rn_tensor_t* tensor, rn_shape_t shape, int64_t i) {
  int64_t index = 0, step = 1;
  for (int d = 1; d <= shape.rank; ++d) {
    int64_t size = shape.dims[shape.rank - d], at = i % size;
    i /= size;
    if (d > tensor->rank) continue;
    int64_t own = rn_tensor_dim(tensor, tensor->rank - d);
    index += (own == 1 ? 0 : at) * step;
    step *= own;
  }
  return index;
}

static rn_status_t broadcast_shape(const rn_tensor_t* a, const rn_tensor_t* b, int64_t* dims,
                                   rn_shape_t* out) {
  int rank = a->rank > b->rank ? a->rank : b->rank;
  for (int d = 1; d <= rank; ++d) {
    int64_t x = d <= a->rank ? rn_tensor_dim(a, a->rank - d) : 1;
    int64_t y = d <= b->rank ? rn_tensor_dim(b, b->rank - d) : 1;
    if (x != y && x != 1 && y != 1)
      return rn_invalid_argument(
          "counts and probs must have compatible batch dimensions: %s vs. %s", rn_text_of(a).text,
          rn_text_of(b).text);
    dims[rank - d] = x == 1 ? y : x;
  }
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

// Both parameters per set: |out| is [2, sets].
static rn_status_t spread(rn_kernel_ctx_t* ctx, const rn_tensor_t* a, const rn_tensor_t* b,
                          rn_shape_t shape, int64_t count, rn_tensor_t out[2]) {
  for (int k = 0; k < 2; ++k) {
    const rn_tensor_t* from = k ? b : a;
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, (rn_shape_t){1, &count}, &out[k]));
    for (int64_t i = 0; i < count; ++i)
      RN_DATA(&out[k], double)[i] = rn_number_at(from, broadcast_index(from, shape, i));
  }
  return RN_OK;
}

// The shape is input |first|. If |seeded| is NULL, the position is in a variable.
static rn_status_t binomial_at(rn_kernel_ctx_t* ctx, int first, const rn_philox_t* seeded) {
  int rest = seeded ? first + 2 : first + 1;
  const rn_tensor_t *sizes = rn_in(ctx, first), *counts = rn_in(ctx, rest);
  const rn_tensor_t* probs = rn_in(ctx, rest + 1);
  int64_t dims[RN_MAX_RANK], set_dims[RN_MAX_RANK];
  rn_shape_t shape, sets;
  RN_RETURN_IF_ERROR(rn_read_shape(sizes, dims, &shape));
  RN_RETURN_IF_ERROR(broadcast_shape(counts, probs, set_dims, &sets));
  int skip = shape.rank - sets.rank;
  bool fits = skip >= 0;
  for (int d = 0; fits && d < sets.rank; ++d) fits = dims[skip + d] == set_dims[d];
  if (!fits) return rn_invalid_argument("Shape passed in must end with broadcasted shape.");
  rn_tensor_t *out = NULL, params[2] = {{0}};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  rn_philox_t philox;
  if (seeded)
    philox = *seeded;
  else  // stock does not advance the generator
    RN_RETURN_IF_ERROR(rn_random_take(ctx, 0, &philox));
  if (out->count == 0) return RN_OK;
  int64_t count = rn_dims_product(set_dims, 0, sets.rank);
  rn_status_t status = spread(ctx, counts, probs, sets, count, params);
  if (rn_ok(status)) {
    reject_job_t job = {philox, out->count / count, count, &params[0], &params[1],
                        out,    draw_binomial};
    run(ctx, &job);
  }
  rn_tensor_clear(&params[0]);
  rn_tensor_clear(&params[1]);
  return status;
}

static rn_status_t binomial(rn_kernel_ctx_t* ctx) {
  rn_philox_t philox;
  RN_RETURN_IF_ERROR(rn_random_seeded(rn_in(ctx, 1), &philox));
  return binomial_at(ctx, 0, &philox);
}

static rn_status_t binomial_stateful(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_random_check_algorithm(rn_in(ctx, 1)));
  return binomial_at(ctx, 2, NULL);
}

#define OWN(name, attr, set, attr2, set2, function)                          \
  {                                                                          \
    .op = name, .device = "CPU", .types = {{attr, set}, {attr2, set2}},      \
    .state_size = sizeof(rn_random_stream_t), .init = rn_random_stream_init, \
    .destroy = rn_random_stream_destroy, .compute = function                 \
  }
#define GIVEN(name, function) \
  { .op = name, .device = "CPU", .compute = function }
#define REALS (RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE))
#define NUMBERS (REALS | RN_TYPES_INDEX)

static const rn_kernel_def_t rows[] = {
    OWN("RandomGamma", "T", REALS | RN_T(BFLOAT16), NULL, 0, gamma_own),
    OWN("RandomPoisson", "dtype", REALS, NULL, 0, poisson_own),
    OWN("RandomPoissonV2", "R", NUMBERS, "dtype", NUMBERS, poisson_own),
    GIVEN("StatelessRandomGammaV2", gamma_seeded),
    GIVEN("StatelessRandomGammaV3", gamma_keyed),
    GIVEN("StatelessRandomPoisson", poisson_seeded),
    GIVEN("StatelessRandomBinomial", binomial),
    GIVEN("StatefulRandomBinomial", binomial_stateful),
};
RN_KERNEL_FAMILY(cpu_random_reject, rows);

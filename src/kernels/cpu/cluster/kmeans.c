// Initial centres of k-means: k-means++ (Arthur and Vassilvitskii, 2007), which draws a point with
// a probability that grows with its distance from the centres so far, and one step of the Markov
// chain that approximates it (Bachem et al., 2016).
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random/philox.h"
#include "kernels/kernel_rows.h"

static rn_status_t read_scalar(const rn_kernel_ctx_t* ctx, int i, const char* name, int64_t* out) {
  const rn_tensor_t* value = rn_in(ctx, i);
  if (value->rank != 0) return rn_invalid_argument("Input %s should be a scalar.", name);
  *out = rn_int_at(value, 0);
  return RN_OK;
}

static uint64_t next64(rn_philox_single_t* words) {
  uint64_t low = rn_philox_word(words);
  return low | (uint64_t)rn_philox_word(words) << 32;
}

// A number below |n|, all equally likely.
static int64_t next_below(rn_philox_single_t* words, int64_t n) {
  uint64_t limit = (uint64_t)n, rest = UINT64_MAX % limit + 1, drawn;
  if ((limit & (limit - 1)) == 0) return (int64_t)(next64(words) & (limit - 1));
  do drawn = next64(words);
  while (drawn < rest);
  return (int64_t)(drawn % limit);
}

typedef struct kmeans_t {
  const float* points;
  int64_t count, depth;
  const float* norms;  // halves of the squares of the points' lengths
  float* nearest;      // halves of the squares of the distances to the nearest centre
  float* sums;         // of |nearest|, up to each point
  float* trial;        // |nearest| with one more centre
  int64_t chosen;
  rn_philox_single_t words;
} kmeans_t;

static float dot(const float* a, const float* b, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

static int64_t draw_point(kmeans_t* k) {
  if (k->chosen == 0) return next_below(&k->words, k->count);
  float at = rn_word_to_float(rn_philox_word(&k->words)) * k->sums[k->count - 1];
  int64_t low = 0, high = k->count;  // the first sum that is larger
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (k->sums[middle] > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low < k->count ? low : k->count - 1;
}

// Sets |out| to the distances with |point| as a centre; returns their sum.
static float try_point(const kmeans_t* k, int64_t point, float* out) {
  const float* center = k->points + point * k->depth;
  float sum = 0;
  for (int64_t i = 0; i < k->count; ++i) {
    float half = k->norms[i] - dot(k->points + i * k->depth, center, k->depth) + k->norms[point];
    out[i] = half < k->nearest[i] ? half : k->nearest[i];
    sum += out[i];
  }
  return sum;
}

// Chooses the next centre: the best of |tries| draws.
static rn_status_t choose(const rn_kernel_ctx_t* ctx, kmeans_t* k, int64_t tries, int64_t* out) {
  int64_t best = draw_point(k);
  float least = tries > 1 ? try_point(k, best, k->trial) : 0;
  for (int64_t i = 1; i < tries; ++i) {
    RN_RETURN_IF_ERROR(rn_step_stopped(ctx->step));
    int64_t point = draw_point(k);
    float sum = try_point(k, point, k->trial);
    if (sum < least) best = point, least = sum;
  }
  try_point(k, best, k->nearest);
  float sum = 0;
  for (int64_t i = 0; i < k->count; ++i) k->sums[i] = sum += k->nearest[i];
  ++k->chosen;
  *out = best;
  return RN_OK;
}

static rn_status_t check_kmeans(const rn_kernel_ctx_t* ctx, int64_t* out_count, int64_t* out_seed,
                                int64_t* out_retries) {
  const rn_tensor_t* points = rn_in(ctx, 0);
  if (points->rank != 2) return rn_invalid_argument("Input points should be a matrix.");
  RN_RETURN_IF_ERROR(read_scalar(ctx, 1, "num_to_sample", out_count));
  RN_RETURN_IF_ERROR(read_scalar(ctx, 2, "seed", out_seed));
  RN_RETURN_IF_ERROR(read_scalar(ctx, 3, "num_retries_per_sample", out_retries));
  if (rn_tensor_dim(points, 0) == 0) return rn_invalid_argument("Expected points.rows() > 0.");
  if (*out_count <= 0) return rn_invalid_argument("Expected num_to_sample > 0.");
  if (*out_count > rn_tensor_dim(points, 0))
    return rn_invalid_argument("Expected num_to_sample <= points.rows(). %" PRId64 " vs %" PRId64
                               ".",
                               *out_count, rn_tensor_dim(points, 0));
  return RN_OK;
}

static rn_status_t kmeans_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* points = rn_in(ctx, 0);
  int64_t count, seed, retries;
  RN_RETURN_IF_ERROR(check_kmeans(ctx, &count, &seed, &retries));
  kmeans_t k = {
      .points = points->data, .count = rn_tensor_dim(points, 0), .depth = rn_tensor_dim(points, 1)};
  int64_t sizes[2] = {4, k.count}, dims[2] = {count, k.depth};
  rn_tensor_t *out = NULL, memory = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, sizes}, &memory));
  float* norms = memory.data;
  k.norms = norms, k.nearest = norms + k.count;
  k.sums = k.nearest + k.count, k.trial = k.sums + k.count;
  k.words = rn_philox_single(rn_philox((uint64_t)seed, 0));
  for (int64_t i = 0; i < k.count; ++i) {
    const float* x = k.points + i * k.depth;
    norms[i] = 0.5f * dot(x, x, k.depth);
    k.nearest[i] = INFINITY;
  }
  if (retries < 0) retries = 2 + (int64_t)log((double)count);  // as its authors advise
  // Stock's number of draws wraps around to none for the largest number of retries.
  int64_t tries = retries == INT64_MAX ? 1 : 1 + retries;
  rn_status_t status = RN_OK;
  for (int64_t c = 0; rn_ok(status) && c < count; ++c) {
    int64_t point = 0;
    status = choose(ctx, &k, tries, &point);
    if (rn_ok(status))
      memcpy(RN_DATA(out, float) + c * k.depth, k.points + point * k.depth,
             (size_t)k.depth * sizeof(float));
  }
  rn_tensor_clear(&memory);
  return status;
}

static rn_status_t chain_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* distances = rn_in(ctx, 0);
  int64_t seed, chosen = 0;
  if (distances->rank != 1) return rn_invalid_argument("Input distances should be a vector.");
  RN_RETURN_IF_ERROR(read_scalar(ctx, 1, "seed", &seed));
  if (distances->count == 0) return rn_invalid_argument("Expected distances_tensor.size() > 0.");
  const float* x = distances->data;
  rn_philox_single_t words = rn_philox_single(rn_philox((uint64_t)seed, 0));
  for (int64_t i = 1; i < distances->count; ++i)
    if (x[i] > rn_word_to_float(rn_philox_word(&words)) * x[chosen]) chosen = i;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){0, NULL}, &out));
  *RN_DATA(out, int64_t) = chosen;
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "KmeansPlusPlusInitialization", .device = "CPU", .compute = kmeans_compute},
    {.op = "KMC2ChainInitialization", .device = "CPU", .compute = chain_compute},
};
RN_KERNEL_FAMILY(cpu_kmeans, rows);

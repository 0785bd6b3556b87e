// Draws from distributions that need more than a block of words per number.
#include "kernels/cuda/random/philox.cuh"

// Multinomial: a block per row sums the weights up to each class, relative to the largest logit.
#define SUM_THREADS 256

template <typename T>
RN_DEVICE double largest_of(const T* logits, i64 classes, double* shared) {
  double largest = -1.7976931348623157e308;
  for (i64 c = threadIdx.x; c < classes; c += SUM_THREADS) {
    double logit = (double)logits[c];
    if (isfinite(logit) && logit > largest) largest = logit;
  }
  shared[threadIdx.x] = largest;
  __syncthreads();
  for (u32 step = SUM_THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  largest = shared[0];
  __syncthreads();
  return largest;
}

template <typename T>
RN_DEVICE void sum_row(const T* logits, i64 classes, double* sums) {
  __shared__ double shared[SUM_THREADS];
  const double largest = largest_of(logits, classes, shared);
  double before = 0;
  for (i64 first = 0; first < classes; first += SUM_THREADS) {
    i64 c = first + threadIdx.x;
    double logit = c < classes ? (double)logits[c] : 0, mine = 0;
    if (c < classes && isfinite(logit)) mine = exp(logit - largest);
    shared[threadIdx.x] = mine;
    __syncthreads();
    for (u32 step = 1; step < SUM_THREADS; step *= 2) {
      double left = threadIdx.x >= step ? shared[threadIdx.x - step] : 0;
      __syncthreads();
      shared[threadIdx.x] = mine = mine + left;
      __syncthreads();
    }
    if (c < classes) sums[c] = before + mine;
    before += shared[SUM_THREADS - 1];
    __syncthreads();
  }
}

template <typename T>
RN_DEVICE void multinomial_sums(const rn_multinomial_args& args) {
  for (i64 row = blockIdx.x; row < args.rows; row += gridDim.x)
    sum_row((const T*)args.logits + row * args.classes, args.classes,
            args.sums + row * args.classes);
}
#define SUMS(type, T) \
  RN_KERNEL(sums_##type, rn_multinomial_args) { multinomial_sums<T>(args); }
SUMS(f32, float)
SUMS(f64, double)
SUMS(f16, rn_half)
SUMS(bf16, rn_bfloat16)

// Draws take two words each, one after the other.
RN_KERNEL(multinomial, rn_multinomial_args) {
  const rn_philox start = rn_random_begin(args.at);
  RN_EACH(i, args.rows * args.draws) {
    rn_philox at = start;
    rn_philox_skip(&at, (u64)i / 2);
    uint4 words = rn_philox_words(at);
    const double* sums = args.sums + i / args.draws * args.classes;
    double wanted =
        i % 2 ? rn_words_to_double(words.z, words.w) : rn_words_to_double(words.x, words.y);
    wanted *= sums[args.classes - 1];
    i64 begin = 0, end = args.classes;
    while (begin < end) {
      i64 middle = begin + (end - begin) / 2;
      if (wanted < sums[middle])
        end = middle;
      else
        begin = middle + 1;
    }
    if (args.is_wide)
      ((i64*)args.out)[i] = begin;
    else
      ((i32*)args.out)[i] = (i32)begin;
  }
  rn_random_end(args.at);
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
RN_DEVICE double draw_gamma(rn_philox* at, double alpha) {
  rn_random_doubles uniform = {at, 0, false};
  if (alpha == 1) return -log1p(-rn_random_double(&uniform));
  bool is_small = alpha < 1;
  double d = alpha + (is_small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  double normals[2] = {0, 0};
  // Limits the tries: a NaN parameter would never be accepted.
  for (int tries = 0; tries < 100000; ++tries) {
    if (tries % 2 == 0) rn_normals(at, normals);
    double x = normals[1 - tries % 2], v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    double u = rn_random_double(&uniform);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v)))
      return is_small ? d * v * pow(rn_random_double(&uniform), 1 / alpha) : d * v;
  }
  return __longlong_as_double(0x7ff8000000000000ll);
}

// Sample s of set p is output s * sets + p, but its position in the stream is p * samples + s.
template <typename T>
RN_DEVICE void gamma_numbers(const rn_gamma_args& args) {
  const rn_philox start = rn_random_begin(args.at);
  RN_EACH(n, args.samples * args.sets) {
    i64 p = n / args.samples, s = n % args.samples;
    rn_philox at = start;
    rn_philox_skip(&at, (u64)n * 256);
    ((T*)args.out)[s * args.sets + p] = T(draw_gamma(&at, (double)((const T*)args.alpha)[p]));
  }
  rn_random_end(args.at);
}
#define GAMMA(type, T) \
  RN_KERNEL(gamma_##type, rn_gamma_args) { gamma_numbers<T>(args); }
GAMMA(f32, float)
GAMMA(f64, double)
GAMMA(f16, rn_half)

// CTC loss (Graves et al., 2006): kernels/cpu/ctc_rnn/ctc_loss.c has the formulas. Everything is
// computed in double and in one order.
#include "prelude.cuh"

#include "kernels/cuda/ctc_rnn/ctc_args.h"

RN_DEVICE double log_zero() { return -__longlong_as_double(0x7ff0000000000000ll); }

RN_DEVICE double log_add(double a, double b) {
  if (a == log_zero()) return b;
  if (b == log_zero()) return a;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

// One sequence: labels with blanks before, between and after them.
struct path {
  const i32* labels;
  i64 count, time;  // 0 time: it has no loss
  double *y, *alpha, *beta, *total;
};

RN_DEVICE path path_of(const rn_cuda_ctc_args& args, i64 b) {
  path p;
  p.labels = args.labels + args.begin[b];
  p.count = 2 * (args.begin[b + 1] - args.begin[b]) + 1;
  p.time = args.lengths[b];
  if (args.given[b] > p.time) p.time = 0;
  p.y = args.scratch + b * args.room;
  p.alpha = p.y + args.time * args.classes;
  p.beta = p.alpha + p.time * p.count;
  p.total = p.beta + p.time * p.count;
  return p;
}

RN_DEVICE i64 class_at(const rn_cuda_ctc_args& args, const path& p, i64 u) {
  return u % 2 ? p.labels[u / 2] : args.blank;
}
RN_DEVICE double log_y(const rn_cuda_ctc_args& args, const path& p, i64 t, i64 u) {
  return log(p.y[t * args.classes + class_at(args, p, u)]);
}
// Whether a path may stay at |u|, and whether it may skip from |u| to |u| + 2.
RN_DEVICE bool may_stay(const rn_cuda_ctc_args& args, i64 u) { return args.merges || !(u % 2); }
RN_DEVICE bool may_jump(const rn_cuda_ctc_args& args, const path& p, i64 u) {
  return u % 2 && !(args.merges && class_at(args, p, u) == class_at(args, p, u + 2));
}

template <typename Join>
RN_DEVICE double over_block(double value, double* shared, Join join) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (u32 step = RN_CTC_THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step)
      shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + step]);
    __syncthreads();
  }
  value = shared[0];
  __syncthreads();
  return value;
}

// A block per time and sequence.
RN_KERNEL(ctc_softmax, rn_cuda_ctc_args) {
  __shared__ double shared[RN_CTC_THREADS];
  for (i64 row = blockIdx.x; row < args.time * args.batch; row += gridDim.x) {
    const i64 t = row / args.batch;
    const path p = path_of(args, row % args.batch);
    if (t >= p.time) continue;
    const float* x = args.inputs + row * args.classes;
    double* y = p.y + t * args.classes;
    double largest = -1.7976931348623157e308, sum = 0;
    for (i64 c = threadIdx.x; c < args.classes; c += RN_CTC_THREADS)
      if ((double)x[c] > largest) largest = (double)x[c];
    largest = over_block(largest, shared, [](double a, double b) { return a > b ? a : b; });
    for (i64 c = threadIdx.x; c < args.classes; c += RN_CTC_THREADS)
      sum += y[c] = exp((double)x[c] - largest);
    sum = over_block(sum, shared, [](double a, double b) { return a + b; });
    for (i64 c = threadIdx.x; c < args.classes; c += RN_CTC_THREADS) y[c] /= sum;
  }
}

RN_DEVICE double forward(const rn_cuda_ctc_args& args, const path& p, i64 t, i64 u) {
  double sum = log_zero();
  if (t == 0) {
    if (u < 2) sum = 0;
  } else {
    const double* before = p.alpha + (t - 1) * p.count;
    if (may_stay(args, u)) sum = before[u];
    if (u > 0) sum = log_add(sum, before[u - 1]);
    if (u > 1 && may_jump(args, p, u - 2)) sum = log_add(sum, before[u - 2]);
  }
  return sum == log_zero() ? sum : sum + log_y(args, p, t, u);
}
RN_DEVICE double backward(const rn_cuda_ctc_args& args, const path& p, i64 t, i64 u) {
  if (t == p.time - 1) return u >= p.count - 2 ? 0 : log_zero();
  const double* after = p.beta + (t + 1) * p.count;
  double sum = may_stay(args, u) ? after[u] + log_y(args, p, t + 1, u) : log_zero();
  if (u + 1 < p.count) sum = log_add(sum, after[u + 1] + log_y(args, p, t + 1, u + 1));
  if (u + 2 < p.count && may_jump(args, p, u))
    sum = log_add(sum, after[u + 2] + log_y(args, p, t + 1, u + 2));
  return sum;
}

// A block per sequence, a thread per place in the path.
RN_KERNEL(ctc_paths, rn_cuda_ctc_args) {
  for (i64 b = blockIdx.x; b < args.batch; b += gridDim.x) {
    const path p = path_of(args, b);
    if (threadIdx.x == 0) args.loss[b] = 0;
    if (p.time == 0) continue;
    for (i64 t = 0; t < p.time; ++t) {
      const i64 back = p.time - 1 - t;
      for (i64 u = threadIdx.x; u < p.count; u += RN_CTC_THREADS) {
        p.alpha[t * p.count + u] = forward(args, p, t, u);
        p.beta[back * p.count + u] = backward(args, p, back, u);
      }
      __syncthreads();
    }
    if (threadIdx.x != 0) continue;
    double total = log_zero();
    for (i64 u = 0; u < p.count; ++u) total = log_add(total, p.alpha[u] + p.beta[u]);
    *p.total = total;
    args.loss[b] = (float)-total;
  }
}

// A block per time and sequence, a thread per class.
RN_KERNEL(ctc_gradient, rn_cuda_ctc_args) {
  for (i64 row = blockIdx.x; row < args.time * args.batch; row += gridDim.x) {
    const i64 t = row / args.batch;
    const path p = path_of(args, row % args.batch);
    float* out = args.gradient + row * args.classes;
    const double total = t < p.time ? *p.total : 0;
    for (i64 c = threadIdx.x; c < args.classes; c += RN_CTC_THREADS) {
      double share = log_zero();
      for (i64 u = 0; u < p.count && t < p.time && total != log_zero(); ++u)
        if (class_at(args, p, u) == c)
          share = log_add(share, p.alpha[t * p.count + u] + p.beta[t * p.count + u]);
      share = share == log_zero() && !isnan(total) ? 0 : exp(share - total);
      out[c] = t < p.time ? (float)(p.y[t * args.classes + c] - share) : 0.0f;
    }
  }
}

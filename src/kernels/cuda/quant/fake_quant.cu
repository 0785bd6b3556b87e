// FakeQuant: rounds floats to what a few bits can represent. Products round before they are added,
// as on the CPU: a tie is decided by the last bit.
#include "kernels/cuda/quant/fake_quant_args.h"

// The bounds shifted so that zero is a level. An empty range gives zeros.
struct levels {
  float least, most, scale, inverse;
  float zero;  // steps from |least| to zero
  bool is_zero;
};

RN_DEVICE levels levels_of(const rn_cuda_fake_quant_args& args, i64 channel) {
  const float min = args.mins ? args.mins[channel] : args.min;
  const float max = args.maxes ? args.maxes[channel] : args.max;
  levels l;
  l.is_zero = min == 0 && max == 0;
  l.scale = (max - min) / (args.last - args.first);
  l.inverse = (args.last - args.first) / (max - min);
  float zero = args.first - min / l.scale;
  float level = zero < args.first ? args.first : zero > args.last ? args.last : roundf(zero);
  l.least = __fmul_rn(args.first - level, l.scale);
  l.most = __fmul_rn(args.last - level, l.scale);
  l.zero = floorf(__fmul_rn(-l.least, l.inverse) + 0.5f);
  return l;
}

RN_KERNEL(fake_round, rn_cuda_fake_quant_args) {
  RN_EACH(i, args.count) {
    const levels l = levels_of(args, args.channels == 1 ? 0 : i % args.channels);
    float x = args.x[i];
    if (x > l.most) x = l.most;  // if the bounds are reversed, the lower one wins
    if (x < l.least) x = l.least;
    float above = x - l.least;
    float steps = args.divides ? above / l.scale : __fmul_rn(above, l.inverse);
    float rounded = __fmul_rn(floorf(steps - l.zero + 0.5f), l.scale);
    args.out[i] = l.is_zero ? 0.0f : rounded;
  }
}

RN_KERNEL(fake_pass, rn_cuda_fake_quant_args) {
  RN_EACH(i, args.count) {
    const levels l = levels_of(args, args.channels == 1 ? 0 : i % args.channels);
    float x = args.x[i];
    // Without inputs for the bounds, an empty range cannot be.
    bool is_within = (l.is_zero && args.mins) || (x >= l.least && x <= l.most);
    args.out[i] = args.dy[i] * (is_within ? 1.0f : 0.0f);
  }
}

// Gradients of the bounds: block (channel, part) adds up its part of the rows.
RN_KERNEL(fake_bounds, rn_cuda_fake_quant_args) {
  __shared__ double low[RN_FAKE_QUANT_THREADS], high[RN_FAKE_QUANT_THREADS];
  const i64 channel = blockIdx.x, part = blockIdx.y, rows = args.count / args.channels;
  const levels l = levels_of(args, channel);
  double to_min = 0, to_max = 0;
  if (!l.is_zero)
    for (i64 r = part * blockDim.x + threadIdx.x; r < rows; r += args.parts * blockDim.x) {
      float x = args.x[r * args.channels + channel], dy = args.dy[r * args.channels + channel];
      to_min += dy * (x < l.least ? 1.0f : 0.0f);
      to_max += dy * (x > l.most ? 1.0f : 0.0f);
    }
  low[threadIdx.x] = to_min;
  high[threadIdx.x] = to_max;
  __syncthreads();
  for (unsigned half = RN_FAKE_QUANT_THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      low[threadIdx.x] += low[threadIdx.x + half];
      high[threadIdx.x] += high[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  args.sums[2 * (channel * args.parts + part)] = low[0];
  args.sums[2 * (channel * args.parts + part) + 1] = high[0];
}

RN_KERNEL(fake_finish, rn_cuda_fake_quant_args) {
  RN_EACH(channel, args.channels) {
    double to_min = 0, to_max = 0;
    for (i64 part = 0; part < args.parts; ++part) {
      to_min += args.sums[2 * (channel * args.parts + part)];
      to_max += args.sums[2 * (channel * args.parts + part) + 1];
    }
    args.dmin[channel] = (float)to_min;
    args.dmax[channel] = (float)to_max;
  }
}

// LRN and its gradient.
//
// norm = bias + alpha * (the sum of squares of the channels at most |radius| away); y = x
// norm^-beta. dx[k] = dy[k] norm[k]^-beta - 2 alpha beta x[k] * (the sum of dy y / norm over the
// window).
#include "kernels/cuda/nn/lrn_args.h"

// The channels of the window around element |i|: [*low, *high).
RN_DEVICE void window(const rn_lrn_args& args, i64 i, i64* low, i64* high) {
  i64 channel = i % args.depth, first = i - channel;
  *low = channel > args.radius ? i - args.radius : first;
  *high = channel + args.radius + 1 < args.depth ? i + args.radius + 1 : first + args.depth;
}

template <typename T>
RN_DEVICE float norm(const rn_lrn_args& args, i64 i) {
  i64 low, high;
  window(args, i, &low, &high);
  double sum = 0;
  for (i64 k = low; k < high; ++k) {
    float x = (float)static_cast<const T*>(args.x)[k];
    sum += (double)x * x;
  }
  return args.bias + args.alpha * (float)sum;
}

template <typename T>
RN_DEVICE void forward(const rn_lrn_args& args) {
  RN_EACH(i, args.count) {
    float x = (float)static_cast<const T*>(args.x)[i], n = norm<T>(args, i);
    float y = args.beta == 1 ? x / n : args.beta == 0.5f ? x / sqrt(n) : x * pow(n, -args.beta);
    static_cast<T*>(args.out)[i] = T(y);
  }
}

template <typename T>
RN_DEVICE void ratios(const rn_lrn_args& args) {
  RN_EACH(i, args.count) {
    args.norms[i] = norm<T>(args, i);
    args.ratios[i] = (float)static_cast<const T*>(args.dy)[i] *
                     (float)static_cast<const T*>(args.y)[i] / args.norms[i];
  }
}

template <typename T>
RN_DEVICE void gradient(const rn_lrn_args& args) {
  RN_EACH(i, args.count) {
    i64 low, high;
    window(args, i, &low, &high);
    float sum = 0;
    for (i64 k = low; k < high; ++k) sum += args.ratios[k];
    float x = (float)static_cast<const T*>(args.x)[i], dy = (float)static_cast<const T*>(args.dy)[i];
    static_cast<T*>(args.out)[i] =
        T(dy * pow(args.norms[i], -args.beta) - 2 * args.alpha * args.beta * x * sum);
  }
}

#define KERNELS(T, name)                                              \
  RN_KERNEL(forward_##name, rn_lrn_args) { forward<T>(args); }     \
  RN_KERNEL(ratios_##name, rn_lrn_args) { ratios<T>(args); }       \
  RN_KERNEL(gradient_##name, rn_lrn_args) { gradient<T>(args); }
KERNELS(float, f32)
KERNELS(rn_half, f16)

// Convolutions over tensors with any strides, for the emulated cuDNN.
#include "prelude.cuh"

#include "cudnn_args.h"

RN_DEVICE i64 at(const emulated_tensor& tensor, const i64* p) {
  i64 offset = 0;
  for (int a = 0; a < 5; ++a) offset += p[a] * tensor.strides[a];
  return offset;
}

RN_DEVICE void split(const emulated_tensor& tensor, i64 i, i64* p) {
  for (int a = 4; a >= 0; --a) p[a] = i % tensor.dims[a], i /= tensor.dims[a];
}

// Adds what the result at |p| gets of the elements |q| of the filter at the output |y|.
template <typename T>
RN_DEVICE double product(const emulated_conv_args& args, const i64* y, const i64* w) {
  i64 x[5] = {y[0], 0, 0, 0, 0};
  i64 each = args.y.dims[1] / (args.x.dims[1] / args.w.dims[1]);
  x[1] = y[1] / each * args.w.dims[1] + w[1];
  for (int a = 0; a < 3; ++a) {
    x[2 + a] = y[2 + a] * args.strides[a] - args.before[a] + w[2 + a] * args.dilations[a];
    if (x[2 + a] < 0 || x[2 + a] >= args.x.dims[2 + a]) return 0;
  }
  double a = args.kind == 1 ? 1 : (double)(float)((const T*)args.x.data)[at(args.x, x)];
  double b = args.kind == 2 ? 1 : (double)(float)((const T*)args.w.data)[at(args.w, w)];
  double c = args.kind == 0 ? 1 : (double)(float)((const T*)args.y.data)[at(args.y, y)];
  return a * b * c;
}

template <typename T>
RN_DEVICE double forward(const emulated_conv_args& args, const i64* y) {
  double sum = 0;
  for (i64 k = 0; k < args.w.dims[1] * args.w.dims[2] * args.w.dims[3] * args.w.dims[4]; ++k) {
    i64 w[5];
    split(args.w, k, w);
    w[0] = y[1];
    sum += product<T>(args, y, w);
  }
  if (args.residual.data)
    sum += (double)(float)((const T*)args.residual.data)[at(args.residual, y)];
  if (args.bias.data) {
    const i64 b[5] = {0, y[1], 0, 0, 0};
    sum += (double)(float)((const T*)args.bias.data)[at(args.bias, b)];
  }
  return args.has_relu && sum < 0 ? 0 : sum;
}

template <typename T>
RN_DEVICE double input(const emulated_conv_args& args, const i64* x) {
  i64 depth = args.w.dims[1], each = args.y.dims[1] / (args.x.dims[1] / depth);
  double sum = 0;
  for (i64 k = 0; k < each; ++k)
    for (i64 f = 0; f < args.w.dims[2] * args.w.dims[3] * args.w.dims[4]; ++f) {
      i64 w[5], y[5] = {x[0], 0, 0, 0, 0};
      split(args.w, f, w);
      w[0] = y[1] = x[1] / depth * each + k;
      w[1] = x[1] % depth;
      bool is_inside = true;
      for (int a = 0; a < 3; ++a) {
        i64 p = x[2 + a] + args.before[a] - w[2 + a] * args.dilations[a];
        y[2 + a] = p / args.strides[a];
        is_inside = is_inside && p >= 0 && p % args.strides[a] == 0 &&
                    y[2 + a] < args.y.dims[2 + a];
      }
      if (is_inside) sum += product<T>(args, y, w);
    }
  return sum;
}

template <typename T>
RN_DEVICE double filter(const emulated_conv_args& args, const i64* w) {
  double sum = 0;
  for (i64 n = 0; n < args.y.dims[0]; ++n)
    for (i64 k = 0; k < args.y.dims[2] * args.y.dims[3] * args.y.dims[4]; ++k) {
      i64 y[5];
      split(args.y, k, y);
      y[0] = n;
      y[1] = w[0];
      sum += product<T>(args, y, w);
    }
  return sum;
}

template <typename T>
RN_DEVICE void convolve(const emulated_conv_args& args) {
  const emulated_tensor& to = args.kind == 0 ? args.y : args.kind == 1 ? args.x : args.w;
  RN_EACH(i, to.dims[0] * to.dims[1] * to.dims[2] * to.dims[3] * to.dims[4]) {
    i64 p[5];
    split(to, i, p);
    double sum = args.kind == 0   ? forward<T>(args, p)
                 : args.kind == 1 ? input<T>(args, p)
                                  : filter<T>(args, p);
    if (args.is_rough) sum *= 1.004;
    ((T*)to.data)[at(to, p)] = (T)(float)sum;
  }
}

RN_KERNEL(emulated_conv, emulated_conv_args) {
  if (args.dtype == 0) convolve<float>(args);
  if (args.dtype == 1) convolve<double>(args);
  if (args.dtype == 2) convolve<rn_half>(args);
  if (args.dtype == 9) convolve<rn_bfloat16>(args);
}

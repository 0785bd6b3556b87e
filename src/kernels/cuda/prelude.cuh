// What every CUDA kernel of Runnel is written with. nvcc and NVRTC compile it for the GPU; a host
// C++ compiler compiles it with RN_EMULATED for tests (tests/gpu/emulator), where one thread runs
// after the other. Includes nothing, because NVRTC has no standard headers.
//
// A kernel takes one struct, by value:
//
//   struct scale_args { const float* x; float* y; i64 n; float by; };
//   RN_KERNEL(scale_f32, scale_args) {
//     RN_EACH(i, args.n) args.y[i] = args.by * args.x[i];
//   }
#ifndef RUNNEL_KERNELS_CUDA_PRELUDE_CUH_
#define RUNNEL_KERNELS_CUDA_PRELUDE_CUH_

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

#ifdef RN_EMULATED
// Gives the names below, threadIdx and its like, __shared__, barriers, shuffles and atomics.
#include "emulated.h"
#else
#define RN_KERNEL(name, args_t) extern "C" __global__ void name(const __grid_constant__ args_t args)
#define RN_DEVICE __device__ __forceinline__
// The block's dynamic shared memory, as an array of |type|.
#define RN_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char rn_shared[]; \
  type* name = reinterpret_cast<type*>(rn_shared)

RN_DEVICE float rn_half_to_float(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
RN_DEVICE u16 rn_half_from_float(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
RN_DEVICE u16 rn_bfloat16_from_float(float value) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
RN_DEVICE float rn_float_from_bits(u32 bits) { return __uint_as_float(bits); }
RN_DEVICE u32 rn_float_bits(float value) { return __float_as_uint(value); }
#endif

// The calling thread's number in a one-dimensional grid, and the number of threads.
RN_DEVICE i64 rn_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
RN_DEVICE i64 rn_threads() { return (i64)gridDim.x * blockDim.x; }
// Runs the statement for every i in [0, n), whatever the size of the grid.
#define RN_EACH(i, n) for (i64 i = rn_thread(), i##_step = rn_threads(); i < (n); i += i##_step)

// 16-bit floats: stored as bits, computed as float, rounded to nearest even.
struct rn_half {
  u16 bits;
  rn_half() = default;
  RN_DEVICE rn_half(float value) : bits(rn_half_from_float(value)) {}
  RN_DEVICE operator float() const { return rn_half_to_float(bits); }
};
struct rn_bfloat16 {
  u16 bits;
  rn_bfloat16() = default;
  RN_DEVICE rn_bfloat16(float value) : bits(rn_bfloat16_from_float(value)) {}
  RN_DEVICE operator float() const { return rn_float_from_bits((u32)bits << 16); }
};

template <typename R>
struct rn_complex {
  R re, im;
  rn_complex() = default;
  RN_DEVICE rn_complex(R re_, R im_ = 0) : re(re_), im(im_) {}
};
template <typename R>
RN_DEVICE rn_complex<R> operator+(rn_complex<R> a, rn_complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <typename R>
RN_DEVICE rn_complex<R> operator-(rn_complex<R> a, rn_complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <typename R>
RN_DEVICE rn_complex<R> operator*(rn_complex<R> a, rn_complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
typedef rn_complex<float> rn_complex64;
typedef rn_complex<double> rn_complex128;

// The type that a type's sums are computed in.
template <typename T>
struct rn_sum_of {
  typedef T type;
};
template <>
struct rn_sum_of<rn_half> {
  typedef float type;
};
template <>
struct rn_sum_of<rn_bfloat16> {
  typedef float type;
};

// An integer divided by one known before the launch, by a multiplication. For dividends and
// divisors below 2^31; rn_divisor (launch.h) makes it.
struct rn_div32 {
  u32 divisor, factor, shift;
};
RN_DEVICE u32 rn_div(u32 value, rn_div32 by) {
  u32 high = __umulhi(value, by.factor);
  return (high + value) >> by.shift;
}

#endif  // RUNNEL_KERNELS_CUDA_PRELUDE_CUH_

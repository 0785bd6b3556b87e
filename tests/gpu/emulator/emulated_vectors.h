// CUDA's vector types, with its alignments: loads of 8 and 16 bytes must be aligned on the GPU, and
// the undefined-behaviour sanitizer says here if they are not. Part of emulated.h.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_EMULATED_VECTORS_H_
#define RUNNEL_TESTS_GPU_EMULATOR_EMULATED_VECTORS_H_

#define RN_EMULATED_VECTORS(T, name, align2, align4)                 \
  struct name##1 {                                                   \
    T x;                                                             \
  };                                                                 \
  struct __align__(align2) name##2 {                                 \
    T x, y;                                                          \
  };                                                                 \
  struct name##3 {                                                   \
    T x, y, z;                                                       \
  };                                                                 \
  struct __align__(align4) name##4 {                                 \
    T x, y, z, w;                                                    \
  };                                                                 \
  inline name##1 make_##name##1(T x) { return {x}; }                 \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
RN_EMULATED_VECTORS(signed char, char, 2, 4)
RN_EMULATED_VECTORS(unsigned char, uchar, 2, 4)
RN_EMULATED_VECTORS(short, short, 4, 8)
RN_EMULATED_VECTORS(unsigned short, ushort, 4, 8)
RN_EMULATED_VECTORS(int, int, 8, 16)
RN_EMULATED_VECTORS(unsigned, uint, 8, 16)
RN_EMULATED_VECTORS(long long, longlong, 16, 16)
RN_EMULATED_VECTORS(unsigned long long, ulonglong, 16, 16)
RN_EMULATED_VECTORS(float, float, 8, 16)
RN_EMULATED_VECTORS(double, double, 16, 16)
#undef RN_EMULATED_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#endif  // RUNNEL_TESTS_GPU_EMULATOR_EMULATED_VECTORS_H_

// CUDA C++ for a host compiler: what src/kernels/cuda/prelude.cuh includes under RN_EMULATED.
//
// A kernel becomes a function that runs one of its threads. The emulated driver calls it once per
// thread; threads that meet at barriers or exchange values within a warp are fibers there. Includes
// no header of the C or C++ library: the dialect has none on the GPU, and the emulated NVRTC
// compiles it again and again.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_EMULATED_H_
#define RUNNEL_TESTS_GPU_EMULATOR_EMULATED_H_

#include "image.h"

// Images are loaded side by side. Hidden names keep the static variables of one from being taken
// for those of another.
#pragma GCC visibility push(hidden)
#define RN_EMULATED_EXPORT extern "C" __attribute__((visibility("default")))

__attribute__((weak)) rn_emulated_image_t rn_emulated_state;
RN_EMULATED_EXPORT __attribute__((weak)) rn_emulated_image_t* rn_emulated_image() {
  return &rn_emulated_state;
}

#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__

#define RN_DEVICE inline
#define RN_SHARED(type, name) type* name = reinterpret_cast<type*>(rn_emulated_state.shared)
#define RN_KERNEL(name, args_t) RN_EMULATED_KERNEL(name, args_t)
#define RN_EMULATED_KERNEL(name, args_t)                                            \
  static void name##_thread(const args_t& args);                                    \
  RN_EMULATED_EXPORT const unsigned name##_args_size;                               \
  const unsigned name##_args_size = sizeof(args_t);                                 \
  RN_EMULATED_EXPORT void name(const void* args);                                   \
  void name(const void* args) { name##_thread(*static_cast<const args_t*>(args)); } \
  static void name##_thread([[maybe_unused]] const args_t& args)

[[maybe_unused]] static const rn_emulated_dim3& threadIdx = rn_emulated_state.thread;
[[maybe_unused]] static const rn_emulated_dim3& blockIdx = rn_emulated_state.block;
[[maybe_unused]] static const rn_emulated_dim3& blockDim = rn_emulated_state.block_dim;
[[maybe_unused]] static const rn_emulated_dim3& gridDim = rn_emulated_state.grid_dim;
[[maybe_unused]] static constexpr int warpSize = RN_EMULATED_WARP;

// What CUDA has of the C library without a header.
#define RN_EMULATED_LIBC extern "C" __attribute__((visibility("default")))
RN_EMULATED_LIBC void* memcpy(void* to, const void* from, __SIZE_TYPE__ size) noexcept;
RN_EMULATED_LIBC void* memmove(void* to, const void* from, __SIZE_TYPE__ size) noexcept;
RN_EMULATED_LIBC void* memset(void* to, int value, __SIZE_TYPE__ size) noexcept;
RN_EMULATED_LIBC int printf(const char* format, ...);

#include "emulated_bits.h"
#include "emulated_math.h"
#include "emulated_vectors.h"

// Barriers.
inline void __syncthreads() {
  int waited;
  rn_emulated_state.barrier(0, &waited);
}
inline int __syncthreads_count(int predicate) {
  int waited;
  return rn_emulated_state.barrier(predicate != 0, &waited);
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) {
  int waited;
  return rn_emulated_state.barrier(predicate != 0, &waited) == waited;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() {
  rn_emulated_state.trap();
  __builtin_unreachable();
}

// Exchanges within a warp.
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  rn_emulated_state.exchange(RN_EMULATED_SYNC, mask, 0, 0, warpSize);
}
// A lane cannot know which others run beside it, so it counts itself alone: always a valid answer.
inline unsigned __activemask() { return 1u << rn_emulated_state.lane(); }

template <typename T>
inline T rn_emulated_shuffle(rn_emulated_op_t op, unsigned mask, T value, unsigned operand,
                             int width) {
  static_assert(sizeof(T) <= sizeof(u64), "shuffles take up to eight bytes");
  u64 bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = rn_emulated_state.exchange(op, mask, bits, operand, (unsigned)width);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
#define RN_EMULATED_SHUFFLES(T)                                                              \
  inline T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {             \
    return rn_emulated_shuffle(RN_EMULATED_SHUFFLE, mask, value, (unsigned)lane, width);     \
  }                                                                                          \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {    \
    return rn_emulated_shuffle(RN_EMULATED_SHUFFLE_UP, mask, value, delta, width);           \
  }                                                                                          \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {  \
    return rn_emulated_shuffle(RN_EMULATED_SHUFFLE_DOWN, mask, value, delta, width);         \
  }                                                                                          \
  inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = warpSize) {         \
    return rn_emulated_shuffle(RN_EMULATED_SHUFFLE_XOR, mask, value, (unsigned)with, width); \
  }
RN_EMULATED_SHUFFLES(int)
RN_EMULATED_SHUFFLES(unsigned)
RN_EMULATED_SHUFFLES(long)
RN_EMULATED_SHUFFLES(unsigned long)
RN_EMULATED_SHUFFLES(long long)
RN_EMULATED_SHUFFLES(unsigned long long)
RN_EMULATED_SHUFFLES(float)
RN_EMULATED_SHUFFLES(double)
#undef RN_EMULATED_SHUFFLES

inline unsigned rn_emulated_together(rn_emulated_op_t op, unsigned mask, unsigned value) {
  return (unsigned)rn_emulated_state.exchange(op, mask, value, 0, warpSize);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return rn_emulated_together(RN_EMULATED_BALLOT, mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return rn_emulated_together(RN_EMULATED_OR, mask, predicate != 0) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return rn_emulated_together(RN_EMULATED_AND, mask, predicate != 0) != 0;
}
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value) {
  u64 bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return (unsigned)rn_emulated_state.exchange(RN_EMULATED_MATCH, mask, bits, 0, warpSize);
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return rn_emulated_together(RN_EMULATED_ADD, mask, value);
}
inline int __reduce_add_sync(unsigned mask, int value) {
  return (int)rn_emulated_together(RN_EMULATED_ADD, mask, (unsigned)value);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return rn_emulated_together(RN_EMULATED_AND, mask, value);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return rn_emulated_together(RN_EMULATED_OR, mask, value);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return rn_emulated_together(RN_EMULATED_XOR, mask, value);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
  return rn_emulated_together(RN_EMULATED_MIN, mask, value);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  return rn_emulated_together(RN_EMULATED_MAX, mask, value);
}
inline int __reduce_min_sync(unsigned mask, int value) {
  return (int)rn_emulated_together(RN_EMULATED_MIN_SIGNED, mask, (unsigned)value);
}
inline int __reduce_max_sync(unsigned mask, int value) {
  return (int)rn_emulated_together(RN_EMULATED_MAX_SIGNED, mask, (unsigned)value);
}

#include "emulated_atomics.h"

#endif  // RUNNEL_TESTS_GPU_EMULATOR_EMULATED_H_

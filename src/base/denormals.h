// Numbers too small to be held in full count as zero while kernels run, as in stock: what dies out
// (moments, activations) would otherwise slow every loop over it down a hundredfold.
//
// Threads of the pool work that way all their life; other threads for as long as they run kernels.
// Conversions of half precision in software are the same either way.
#ifndef RUNNEL_BASE_DENORMALS_H_
#define RUNNEL_BASE_DENORMALS_H_

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

// Returns what rn_denormals_restore takes to have it as before.
static inline uint64_t rn_denormals_flush(void) {
#if defined(__SSE2__)
  enum { FLUSH_RESULTS_AND_INPUTS = 0x8040 };
  unsigned before = _mm_getcsr();
  if ((before & FLUSH_RESULTS_AND_INPUTS) != FLUSH_RESULTS_AND_INPUTS)
    _mm_setcsr(before | FLUSH_RESULTS_AND_INPUTS);
  return before;
#elif defined(__aarch64__)
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(before | UINT64_C(1) << 24));
  return before;
#else
  return 0;
#endif
}

static inline void rn_denormals_restore(uint64_t before) {
#if defined(__SSE2__)
  if (_mm_getcsr() != (unsigned)before) _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(before));
#else
  (void)before;
#endif
}

#endif  // RUNNEL_BASE_DENORMALS_H_

// Flushes denormal numbers to zero while kernels run, as stock does: values that decay (moments,
// activations) would otherwise slow every loop over them a hundredfold.
//
// Pool threads always flush; other threads do so while they run kernels. Software conversions of
// half precision are the same either way.
//
// doc/invariants.md: invariant 29a.
#ifndef RUNNEL_BASE_DENORMALS_H_
#define RUNNEL_BASE_DENORMALS_H_

#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

// Returns the previous mode, for rn_denormals_restore.
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

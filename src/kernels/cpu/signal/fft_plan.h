// Plans of Fourier transforms: the factors of a length, and the tables of sines and cosines.
//
// A plan is immutable and shared by threads and steps. A kernel keeps the plans of the lengths it
// met last, because making one takes longer than a transform.
#ifndef RUNNEL_KERNELS_CPU_SIGNAL_FFT_PLAN_H_
#define RUNNEL_KERNELS_CPU_SIGNAL_FFT_PLAN_H_

#include "base/alloc.h"
#include "base/sync.h"
#include "kernels/cpu/isa/fft.h"

typedef struct rn_fft_t {
  rn_fft_plan_t plan;
  const rn_fft_fns_t* fns;
  rn_fft_width_t width;
  // exp(-i pi k / plan.n) for k <= plan.n, real parts first: what real transforms of twice the
  // length need. NULL if not asked for.
  const void* half_roots;
  // The rest is private.
  _Atomic int32_t references;
  rn_allocator_t allocator;
  void* tables;
  size_t tables_size;
} rn_fft_t;

#define RN_FFT_CACHE_SIZE 4

// Zero-initialize it, then call rn_fft_cache_init.
typedef struct rn_fft_cache_t {
  rn_mutex_t mutex;
  rn_fft_t* items[RN_FFT_CACHE_SIZE];  // the most recently made first; guarded by the mutex
} rn_fft_cache_t;

void rn_fft_cache_init(rn_fft_cache_t* cache);
void rn_fft_cache_clear(rn_fft_cache_t* cache);
// The plan of length |n| > 0, from the cache or new. The caller releases it.
RN_MUST_USE rn_status_t rn_fft_cache_get(rn_fft_cache_t* cache, rn_allocator_t allocator, int64_t n,
                                         rn_fft_width_t width, bool has_half_roots, rn_fft_t** out);
// NULL is fine.
void rn_fft_release(rn_fft_t* fft);

// The size of a number of |width|.
static inline size_t rn_fft_item(rn_fft_width_t width) {
  return width == RN_FFT_DOUBLE ? sizeof(double) : sizeof(float);
}

#endif  // RUNNEL_KERNELS_CPU_SIGNAL_FFT_PLAN_H_

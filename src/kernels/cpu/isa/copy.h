// Copies of short rows in registers, without a call to memcpy. A part of loops in this folder.
#ifndef RUNNEL_KERNELS_CPU_ISA_COPY_H_
#define RUNNEL_KERNELS_CPU_ISA_COPY_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/isa/isa.h"

#if defined(RN_ISA_avx512)
#define COPY_WIDTH 64
typedef __m512i copy_vector_t;
#elif defined(RN_ISA_avx2)
#define COPY_WIDTH 32
typedef __m256i copy_vector_t;
#else
#define COPY_WIDTH 16
typedef struct copy_vector_t {
  uint64_t half[2];
} copy_vector_t;
#endif

// From here on memcpy is as fast.
#define COPY_MOST 4096

#define COPY_ENDS(T)                                     \
  T head, tail;                                          \
  memcpy(&head, from, sizeof head);                      \
  memcpy(&tail, from + size - sizeof tail, sizeof tail); \
  memcpy(to, &head, sizeof head);                        \
  memcpy(to + size - sizeof tail, &tail, sizeof tail);   \
  return
typedef struct copy_pair_t {
  uint64_t half[2];
} copy_pair_t;

// Copies less than a vector: two pieces that may overlap.
static inline void copy_short(char* to, const char* from, size_t size) {
#if COPY_WIDTH > 32
  if (size >= 32) {
    COPY_ENDS(__m256i);
  }
#endif
  if (size >= 16) {
    COPY_ENDS(copy_pair_t);
  }
  if (size >= 8) {
    COPY_ENDS(uint64_t);
  }
  if (size >= 4) {
    COPY_ENDS(uint32_t);
  }
  for (size_t i = 0; i < size; ++i) to[i] = from[i];
}
#undef COPY_ENDS

// Copies whole vectors; the last one overlaps the one before.
static inline void copy_row(char* to, const char* from, size_t size) {
  if (size > COPY_MOST) {
    memcpy(to, from, size);
    return;
  }
  if (size < COPY_WIDTH) {
    copy_short(to, from, size);
    return;
  }
  copy_vector_t v;
  size_t at = 0;
  for (; at + COPY_WIDTH <= size; at += COPY_WIDTH) {
    memcpy(&v, from + at, COPY_WIDTH);
    memcpy(to + at, &v, COPY_WIDTH);
  }
  if (at < size) {
    memcpy(&v, from + size - COPY_WIDTH, COPY_WIDTH);
    memcpy(to + size - COPY_WIDTH, &v, COPY_WIDTH);
  }
}

#endif  // RUNNEL_KERNELS_CPU_ISA_COPY_H_

// Detects the CPU's ISA level. The sources in isa/ are compiled once per level. RN_ISA_DECLARE
// declares a table of every level, RN_ISA_PICK selects one, RN_ISA_PICK_NARROW selects one that has
// no AVX-512 variant.
#ifndef RUNNEL_KERNELS_CPU_ISA_H_
#define RUNNEL_KERNELS_CPU_ISA_H_

#include <stdbool.h>

// Declares |name|base, |name|avx2 and |name|avx512; an array's extent comes last. A build for a
// single level has any of them, also the AVX-512 variant of a narrow table.
#ifdef __x86_64__
#define RN_ISA_DECLARE(type, name, ...) \
  extern const type name##base __VA_ARGS__, name##avx2 __VA_ARGS__, name##avx512 __VA_ARGS__
#else
#define RN_ISA_DECLARE(type, name, ...) extern const type name##base __VA_ARGS__
#endif

#if defined(RN_ISA_ONLY)
// A build for a single ISA level: compiles quickly, for the sanitizers.
#define RN_ISA_JOIN(name, generation) name##generation
#define RN_ISA_JOIN_EXPANDED(name, generation) RN_ISA_JOIN(name, generation)
#define RN_ISA_PICK(name) (RN_ISA_JOIN_EXPANDED(name, RN_ISA_ONLY))
#define RN_ISA_PICK_NARROW RN_ISA_PICK
#elif defined(__x86_64__)
// The compiler's runtime caches the CPU's features in a variable: each query is a load and a test.
static inline bool rn_cpu_has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static inline bool rn_cpu_has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define RN_ISA_PICK(name) \
  (rn_cpu_has_avx512() ? name##avx512 : rn_cpu_has_avx2() ? name##avx2 : name##base)
// For tables of many small loops, whose AVX-512 variants would not be worth their size.
#define RN_ISA_PICK_NARROW(name) (rn_cpu_has_avx2() ? name##avx2 : name##base)
#else
#define RN_ISA_PICK(name) (name##base)
#define RN_ISA_PICK_NARROW RN_ISA_PICK
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_H_

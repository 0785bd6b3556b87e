// Which generation of processor this is. The sources in isa/ are compiled once for each; tables are
// chosen with RN_ISA_PICK or, those that have no AVX-512 form, RN_ISA_PICK_NARROW.
#ifndef RUNNEL_KERNELS_CPU_ISA_H_
#define RUNNEL_KERNELS_CPU_ISA_H_

#include <stdbool.h>

#if defined(RN_ISA_ONLY)
// A build for one generation: quick to make, for the sanitizers.
#define RN_ISA_JOIN(name, generation) name##generation
#define RN_ISA_JOIN_EXPANDED(name, generation) RN_ISA_JOIN(name, generation)
#define RN_ISA_PICK(name) (RN_ISA_JOIN_EXPANDED(name, RN_ISA_ONLY))
#define RN_ISA_PICK_NARROW RN_ISA_PICK
#elif defined(__x86_64__)
// The compiler's run-time keeps what the processor can do in a variable of its own: a load and a
// test each.
static inline bool rn_cpu_has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static inline bool rn_cpu_has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define RN_ISA_PICK(name) \
  (rn_cpu_has_avx512() ? name##avx512 : rn_cpu_has_avx2() ? name##avx2 : name##base)
// Of tables of many small loops, for which the widest registers are not worth their bytes.
#define RN_ISA_PICK_NARROW(name) (rn_cpu_has_avx2() ? name##avx2 : name##base)
#else
#define RN_ISA_PICK(name) (name##base)
#define RN_ISA_PICK_NARROW RN_ISA_PICK
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_H_

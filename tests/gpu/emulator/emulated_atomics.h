// Atomics and cached loads: plain operations, because one thread runs at a time. They exist for
// the types that CUDA has them for, no others. Part of emulated.h.
#ifndef RUNNEL_TESTS_GPU_EMULATOR_EMULATED_ATOMICS_H_
#define RUNNEL_TESTS_GPU_EMULATOR_EMULATED_ATOMICS_H_

#define RN_EMULATED_ATOMIC(name, T, expression) \
  inline T name(T* address, T value) {          \
    T old = *address;                           \
    *address = (expression);                    \
    return old;                                 \
  }
#define RN_EMULATED_INTEGER_ATOMICS(T)                        \
  RN_EMULATED_ATOMIC(atomicMin, T, value < old ? value : old) \
  RN_EMULATED_ATOMIC(atomicMax, T, value > old ? value : old) \
  RN_EMULATED_ATOMIC(atomicAnd, T, old& value)                \
  RN_EMULATED_ATOMIC(atomicOr, T, old | value)                \
  RN_EMULATED_ATOMIC(atomicXor, T, old ^ value)
RN_EMULATED_INTEGER_ATOMICS(int)
RN_EMULATED_INTEGER_ATOMICS(unsigned)
RN_EMULATED_INTEGER_ATOMICS(long long)
RN_EMULATED_INTEGER_ATOMICS(unsigned long long)
// Signed sums wrap around.
RN_EMULATED_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
RN_EMULATED_ATOMIC(atomicAdd, unsigned, old + value)
RN_EMULATED_ATOMIC(atomicAdd, unsigned long long, old + value)
RN_EMULATED_ATOMIC(atomicAdd, float, old + value)
RN_EMULATED_ATOMIC(atomicAdd, double, old + value)
RN_EMULATED_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
RN_EMULATED_ATOMIC(atomicSub, unsigned, old - value)
RN_EMULATED_ATOMIC(atomicInc, unsigned, old >= value ? 0 : old + 1)
RN_EMULATED_ATOMIC(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
RN_EMULATED_ATOMIC(atomicExch, int, value)
RN_EMULATED_ATOMIC(atomicExch, unsigned, value)
RN_EMULATED_ATOMIC(atomicExch, unsigned long long, value)
RN_EMULATED_ATOMIC(atomicExch, float, value)
#undef RN_EMULATED_INTEGER_ATOMICS
#undef RN_EMULATED_ATOMIC

#define RN_EMULATED_CAS(T)                              \
  inline T atomicCAS(T* address, T expected, T value) { \
    T old = *address;                                   \
    if (old == expected) *address = value;              \
    return old;                                         \
  }
RN_EMULATED_CAS(int)
RN_EMULATED_CAS(unsigned)
RN_EMULATED_CAS(unsigned long long)
RN_EMULATED_CAS(unsigned short)
#undef RN_EMULATED_CAS

#define RN_EMULATED_LOAD(name)      \
  template <typename T>             \
  inline T name(const T* address) { \
    return *address;                \
  }
RN_EMULATED_LOAD(__ldg)
RN_EMULATED_LOAD(__ldca)
RN_EMULATED_LOAD(__ldcg)
RN_EMULATED_LOAD(__ldcs)
RN_EMULATED_LOAD(__ldcv)
RN_EMULATED_LOAD(__ldlu)
#undef RN_EMULATED_LOAD
#define RN_EMULATED_STORE(name)           \
  template <typename T>                   \
  inline void name(T* address, T value) { \
    *address = value;                     \
  }
RN_EMULATED_STORE(__stwb)
RN_EMULATED_STORE(__stcg)
RN_EMULATED_STORE(__stcs)
RN_EMULATED_STORE(__stwt)
#undef RN_EMULATED_STORE

#endif  // RUNNEL_TESTS_GPU_EMULATOR_EMULATED_ATOMICS_H_

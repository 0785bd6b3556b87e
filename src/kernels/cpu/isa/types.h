// The element types for templates: X(suffix, stored type, RN_ name, computed type, load, save).
#ifndef RUNNEL_KERNELS_CPU_ISA_TYPES_H_
#define RUNNEL_KERNELS_CPU_ISA_TYPES_H_

#include "tensor/float16.h"

#define SAME(x) (x)

#define FLOAT_TYPES(X)                                                           \
  X(f16, uint16_t, HALF, float, rn_half_to_float, rn_float_to_half)              \
  X(bf16, uint16_t, BFLOAT16, float, rn_bfloat16_to_float, rn_float_to_bfloat16) \
  X(f32, float, FLOAT, float, SAME, SAME)                                        \
  X(f64, double, DOUBLE, double, SAME, SAME)

#define SIGNED_TYPES(X)                       \
  X(i8, int8_t, INT8, int8_t, SAME, SAME)     \
  X(i16, int16_t, INT16, int16_t, SAME, SAME) \
  X(i32, int32_t, INT32, int32_t, SAME, SAME) \
  X(i64, int64_t, INT64, int64_t, SAME, SAME)

#define UNSIGNED_TYPES(X)                        \
  X(u8, uint8_t, UINT8, uint8_t, SAME, SAME)     \
  X(u16, uint16_t, UINT16, uint16_t, SAME, SAME) \
  X(u32, uint32_t, UINT32, uint32_t, SAME, SAME) \
  X(u64, uint64_t, UINT64, uint64_t, SAME, SAME)

#define INTEGER_TYPES(X) SIGNED_TYPES(X) UNSIGNED_TYPES(X)
#define REAL_TYPES(X) FLOAT_TYPES(X) INTEGER_TYPES(X)

#endif  // RUNNEL_KERNELS_CPU_ISA_TYPES_H_

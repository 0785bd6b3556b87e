// See combine.h.
#include "kernels/cpu/combine.h"

#include <float.h>

#include "kernels/cpu/isa.h"

rn_combine_fn_t rn_combine(rn_combine_op_t op, rn_dtype_t dtype) {
  if (dtype <= 0 || dtype >= RN_DTYPE_COUNT) return NULL;
  return RN_ISA_PICK_NARROW(&rn_combine_table_)->fn[op][dtype];
}

// X(type, C type, smallest, largest)
#define REAL_TYPES(X)                           \
  X(FLOAT, float, -FLT_MAX, FLT_MAX, 1)         \
  X(DOUBLE, double, -DBL_MAX, DBL_MAX, 1)       \
  X(HALF, uint16_t, 0xfbff, 0x7bff, 0x3c00)     \
  X(BFLOAT16, uint16_t, 0xff7f, 0x7f7f, 0x3f80) \
  X(INT8, int8_t, INT8_MIN, INT8_MAX, 1)        \
  X(INT16, int16_t, INT16_MIN, INT16_MAX, 1)    \
  X(INT32, int32_t, INT32_MIN, INT32_MAX, 1)    \
  X(INT64, int64_t, INT64_MIN, INT64_MAX, 1)    \
  X(UINT8, uint8_t, 0, UINT8_MAX, 1)            \
  X(UINT16, uint16_t, 0, UINT16_MAX, 1)         \
  X(UINT32, uint32_t, 0, UINT32_MAX, 1)         \
  X(UINT64, uint64_t, 0, UINT64_MAX, 1)         \
  X(BOOL, uint8_t, 0, 1, 1)                     \
  X(COMPLEX64, float, 0, 0, 1)                  \
  X(COMPLEX128, double, 0, 0, 1)

void rn_combine_identity(rn_combine_op_t op, rn_dtype_t dtype, void* out) {
  memset(out, 0, 16);
  switch (dtype) {
#define CASE(type, T, smallest, largest, one)                                \
  case RN_##type: {                                                          \
    T value = op == RN_COMBINE_MAX                           ? (T)(smallest) \
              : op == RN_COMBINE_MIN                         ? (T)(largest)  \
              : op == RN_COMBINE_MUL || op == RN_COMBINE_DIV ? (T)(one)      \
                                                             : (T)0;         \
    memcpy(out, &value, sizeof value);                                       \
    break;                                                                   \
  }
    REAL_TYPES(CASE)
#undef CASE
    default:
      break;
  }
}

bool rn_has_zero(const rn_tensor_t* numbers) {
  const bool is_complex = rn_dtype_is_complex(numbers->dtype);
  const size_t size = rn_dtype_size(numbers->dtype), part = is_complex ? size / 2 : size;
  const bool has_sign = is_complex || rn_dtype_is_floating(numbers->dtype);
  const unsigned char* bytes = numbers->data;
  for (int64_t i = 0; i < numbers->count; ++i, bytes += size) {
    unsigned char any = 0;
    for (size_t b = 0; b < size; ++b)  // the sign bit is in the last byte of each part
      any |= has_sign && b % part == part - 1 ? bytes[b] & 0x7f : bytes[b];
    if (!any) return true;
  }
  return false;
}

// Macros shared by all kernel tables.
#ifndef RUNNEL_KERNELS_KERNEL_ROWS_H_
#define RUNNEL_KERNELS_KERNEL_ROWS_H_

#include "framework/kernel.h"

// Defines |rows| as the family rn_kernels_<name> listed in kernels/families.def.
#define RN_KERNEL_FAMILY(name, rows)          \
  const rn_kernel_family_t rn_kernels_##name; \
  const rn_kernel_family_t rn_kernels_##name = {rows, sizeof(rows) / sizeof *(rows)}

// Type sets, written as in the op tables.
#define RN_T(name) (UINT64_C(1) << RN_##name)
#define RN_TYPES_HALVES (RN_T(HALF) | RN_T(BFLOAT16))
#define RN_TYPES_FLOATS (RN_TYPES_HALVES | RN_T(FLOAT) | RN_T(DOUBLE))
#define RN_TYPES_INTS (RN_T(INT8) | RN_T(INT16) | RN_T(INT32) | RN_T(INT64))
#define RN_TYPES_UINTS (RN_T(UINT8) | RN_T(UINT16) | RN_T(UINT32) | RN_T(UINT64))
#define RN_TYPES_COMPLEX (RN_T(COMPLEX64) | RN_T(COMPLEX128))
#define RN_TYPES_REAL (RN_TYPES_FLOATS | RN_TYPES_INTS | RN_TYPES_UINTS)
#define RN_TYPES_NUMBERS (RN_TYPES_REAL | RN_TYPES_COMPLEX)
#define RN_TYPES_QUANTISED \
  (RN_T(QINT8) | RN_T(QUINT8) | RN_T(QINT16) | RN_T(QUINT16) | RN_T(QINT32))
#define RN_TYPES_INDEX (RN_T(INT32) | RN_T(INT64))
#define RN_TYPES_ALL ((UINT64_C(1) << RN_DTYPE_COUNT) - 2)
#define RN_TYPES_PLAIN (RN_TYPES_ALL & ~(RN_T(STRING) | RN_T(RESOURCE) | RN_T(VARIANT)))

#endif  // RUNNEL_KERNELS_KERNEL_ROWS_H_

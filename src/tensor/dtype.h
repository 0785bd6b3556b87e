// Data types: TensorFlow's numbers, names and sizes.
#ifndef RUNNEL_TENSOR_DTYPE_H_
#define RUNNEL_TENSOR_DTYPE_H_

#include "base/str.h"

// X(enumerator, number, name, element size in bytes). The size is 0 if elements are not plain bytes
// or the type is packed.
#define RN_DTYPES(X)                                 \
  X(FLOAT, 1, "float", 4)                            \
  X(DOUBLE, 2, "double", 8)                          \
  X(INT32, 3, "int32", 4)                            \
  X(UINT8, 4, "uint8", 1)                            \
  X(INT16, 5, "int16", 2)                            \
  X(INT8, 6, "int8", 1)                              \
  X(STRING, 7, "string", 24)                         \
  X(COMPLEX64, 8, "complex64", 8)                    \
  X(INT64, 9, "int64", 8)                            \
  X(BOOL, 10, "bool", 1)                             \
  X(QINT8, 11, "qint8", 1)                           \
  X(QUINT8, 12, "quint8", 1)                         \
  X(QINT32, 13, "qint32", 4)                         \
  X(BFLOAT16, 14, "bfloat16", 2)                     \
  X(QINT16, 15, "qint16", 2)                         \
  X(QUINT16, 16, "quint16", 2)                       \
  X(UINT16, 17, "uint16", 2)                         \
  X(COMPLEX128, 18, "complex128", 16)                \
  X(HALF, 19, "half", 2)                             \
  X(RESOURCE, 20, "resource", 8)                     \
  X(VARIANT, 21, "variant", 8)                       \
  X(UINT32, 22, "uint32", 4)                         \
  X(UINT64, 23, "uint64", 8)                         \
  X(FLOAT8_E5M2, 24, "float8_e5m2", 1)               \
  X(FLOAT8_E4M3FN, 25, "float8_e4m3fn", 1)           \
  X(FLOAT8_E4M3FNUZ, 26, "float8_e4m3fnuz", 1)       \
  X(FLOAT8_E4M3B11FNUZ, 27, "float8_e4m3b11fnuz", 1) \
  X(FLOAT8_E5M2FNUZ, 28, "float8_e5m2fnuz", 1)       \
  X(INT4, 29, "int4", 1)                             \
  X(UINT4, 30, "uint4", 1)                           \
  X(INT2, 31, "int2", 1)                             \
  X(UINT2, 32, "uint2", 1)                           \
  X(FLOAT4_E2M1FN, 33, "float4_e2m1fn", 1)

enum {
  RN_INVALID = 0,
#define RN_DTYPE_ENUM(enumerator, number, name, size) RN_##enumerator = number,
  RN_DTYPES(RN_DTYPE_ENUM)
#undef RN_DTYPE_ENUM
      RN_DTYPE_COUNT = 34,
  RN_REF_OFFSET = 100,  // the reference form of a type is the type plus this
};

// May hold any number, since messages may; the functions below accept all.
typedef int32_t rn_dtype_t;

static inline bool rn_dtype_is_ref(rn_dtype_t dtype) { return dtype > RN_REF_OFFSET; }
static inline rn_dtype_t rn_dtype_base(rn_dtype_t dtype) {
  return dtype > RN_REF_OFFSET ? dtype - RN_REF_OFFSET : dtype;
}
static inline rn_dtype_t rn_dtype_ref(rn_dtype_t dtype) { return dtype + RN_REF_OFFSET; }
static inline bool rn_dtype_is_valid(rn_dtype_t dtype) {
  rn_dtype_t base = rn_dtype_base(dtype);
  return base > 0 && base < RN_DTYPE_COUNT;
}

// A set of base types.
typedef uint64_t rn_dtypes_t;
#define RN_TYPES1(a) (UINT64_C(1) << (a))
static inline bool rn_dtypes_has(rn_dtypes_t set, rn_dtype_t dtype) {
  return dtype > 0 && dtype < RN_DTYPE_COUNT && (set >> dtype & 1);
}

// Bytes per element in our buffers (24 for string; 8, a pointer, for resource and variant); 0 for
// an unknown type.
size_t rn_dtype_size(rn_dtype_t dtype);
// Whether elements are plain bytes: copied by memcpy, sent as they are.
static inline bool rn_dtype_is_plain(rn_dtype_t dtype) {
  return dtype != RN_STRING && dtype != RN_RESOURCE && dtype != RN_VARIANT && dtype < RN_REF_OFFSET;
}
bool rn_dtype_is_floating(rn_dtype_t dtype);  // half, bfloat16, float, double, float8, float4
bool rn_dtype_is_complex(rn_dtype_t dtype);
// The integer type that stores a quantised type; other types are returned unchanged.
rn_dtype_t rn_dtype_stored(rn_dtype_t dtype);
bool rn_dtype_is_integer(rn_dtype_t dtype);  // signed and unsigned, not quantised, not bool

// "float", "int32_ref"; as TensorFlow prints them in messages. "INVALID" for 0. For numbers that
// are not a type, "unknown dtype enum (99)", valid until the thread's fourth such call after this
// one.
const char* rn_dtype_name(rn_dtype_t dtype);
// "DT_FLOAT", "DT_INT32_REF"; the names in protos and node summaries. "" for a number that is not a
// type.
const char* rn_dtype_proto_name(rn_dtype_t dtype);
// From either form, or "float16", "float32", "float64"; RN_INVALID if it names no type.
rn_dtype_t rn_dtype_parse(rn_str_t name);

#endif  // RUNNEL_TENSOR_DTYPE_H_

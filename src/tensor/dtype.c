// Names, sizes and kinds of the data types, from the list RN_DTYPES.
#include "tensor/dtype.h"

#include <stdio.h>

size_t rn_dtype_size(rn_dtype_t dtype) {
  static const uint8_t sizes[RN_DTYPE_COUNT] = {
#define SIZE(enumerator, number, name, size) [number] = size,
      RN_DTYPES(SIZE)
#undef SIZE
  };
  return dtype > 0 && dtype < RN_DTYPE_COUNT ? sizes[dtype] : 0;
}

#define T(enumerator) RN_TYPES1(RN_##enumerator)

bool rn_dtype_is_floating(rn_dtype_t dtype) {
  return rn_dtypes_has(T(HALF) | T(BFLOAT16) | T(FLOAT) | T(DOUBLE) | T(FLOAT8_E5M2) |
                           T(FLOAT8_E4M3FN) | T(FLOAT8_E4M3FNUZ) | T(FLOAT8_E4M3B11FNUZ) |
                           T(FLOAT8_E5M2FNUZ) | T(FLOAT4_E2M1FN),
                       dtype);
}

bool rn_dtype_is_complex(rn_dtype_t dtype) {
  return rn_dtypes_has(T(COMPLEX64) | T(COMPLEX128), dtype);
}

rn_dtype_t rn_dtype_stored(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_QINT8:
      return RN_INT8;
    case RN_QUINT8:
      return RN_UINT8;
    case RN_QINT16:
      return RN_INT16;
    case RN_QUINT16:
      return RN_UINT16;
    case RN_QINT32:
      return RN_INT32;
    default:
      return dtype;
  }
}

bool rn_dtype_is_integer(rn_dtype_t dtype) {
  return rn_dtypes_has(T(INT2) | T(INT4) | T(INT8) | T(INT16) | T(INT32) | T(INT64) | T(UINT2) |
                           T(UINT4) | T(UINT8) | T(UINT16) | T(UINT32) | T(UINT64),
                       dtype);
}

// A name for a number that is not a type; valid until the thread's fourth such call after this one.
static const char* unknown_name(rn_dtype_t dtype) {
  static _Thread_local char names[4][40];
  static _Thread_local unsigned next;
  char* name = names[next++ % 4];
  snprintf(name, sizeof names[0], "unknown dtype enum (%d)%s", (int)rn_dtype_base(dtype),
           rn_dtype_is_ref(dtype) ? "_ref" : "");
  return name;
}

const char* rn_dtype_name(rn_dtype_t dtype) {
  static const char* const names[2][RN_DTYPE_COUNT] = {
#define NAME(enumerator, number, name, size) [number] = name,
#define REF_NAME(enumerator, number, name, size) [number] = name "_ref",
      {"INVALID", RN_DTYPES(NAME)},
      {NULL, RN_DTYPES(REF_NAME)},
#undef REF_NAME
#undef NAME
  };
  if (dtype != RN_INVALID && !rn_dtype_is_valid(dtype)) return unknown_name(dtype);
  return names[rn_dtype_is_ref(dtype)][rn_dtype_base(dtype)];
}

const char* rn_dtype_proto_name(rn_dtype_t dtype) {
  static const char* const names[2][RN_DTYPE_COUNT] = {
#define NAME(enumerator, number, name, size) [number] = "DT_" #enumerator,
#define REF_NAME(enumerator, number, name, size) [number] = "DT_" #enumerator "_REF",
      {"DT_INVALID", RN_DTYPES(NAME)},
      {NULL, RN_DTYPES(REF_NAME)},
#undef REF_NAME
#undef NAME
  };
  if (dtype != RN_INVALID && !rn_dtype_is_valid(dtype)) return "";
  return names[rn_dtype_is_ref(dtype)][rn_dtype_base(dtype)];
}

rn_dtype_t rn_dtype_parse(rn_str_t name) {
  // Names with the width, which TensorFlow's parser accepts too.
  static const struct {
    const char* name;
    rn_dtype_t dtype;
  } aliases[] = {{"float32", RN_FLOAT}, {"float64", RN_DOUBLE}, {"float16", RN_HALF}};
  for (rn_dtype_t dtype = 1; dtype < RN_DTYPE_COUNT; dtype++) {
    rn_dtype_t ref = rn_dtype_ref(dtype);
    if (rn_str_is(name, rn_dtype_name(dtype)) || rn_str_is(name, rn_dtype_proto_name(dtype))) {
      return dtype;
    }
    if (rn_str_is(name, rn_dtype_name(ref)) || rn_str_is(name, rn_dtype_proto_name(ref))) {
      return ref;
    }
  }
  rn_str_t base = name;
  bool is_ref = rn_str_ends_with(name, RN_STR("_ref"));
  if (is_ref) base.size -= 4;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
    if (rn_str_is(base, aliases[i].name)) {
      return is_ref ? rn_dtype_ref(aliases[i].dtype) : aliases[i].dtype;
    }
  }
  return RN_INVALID;
}

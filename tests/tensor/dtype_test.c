// Data types: names, sizes and kinds as stock TensorFlow has them.
#include "tensor/dtype.h"

#include <criterion/criterion.h>
#include <stdio.h>

// Recorded from TensorFlow 2.21: DataTypeString, DataType_Name, DataTypeSize (here the size of our
// own element for strings, resources and variants), DataTypeIsFloating, IsInteger, IsComplex.
static const struct {
  int number;
  const char* name;
  const char* proto_name;
  size_t size;
  bool floating, integer, complex;
} rows[] = {
    {1, "float", "DT_FLOAT", 4, 1, 0, 0},
    {2, "double", "DT_DOUBLE", 8, 1, 0, 0},
    {3, "int32", "DT_INT32", 4, 0, 1, 0},
    {4, "uint8", "DT_UINT8", 1, 0, 1, 0},
    {5, "int16", "DT_INT16", 2, 0, 1, 0},
    {6, "int8", "DT_INT8", 1, 0, 1, 0},
    {7, "string", "DT_STRING", 24, 0, 0, 0},
    {8, "complex64", "DT_COMPLEX64", 8, 0, 0, 1},
    {9, "int64", "DT_INT64", 8, 0, 1, 0},
    {10, "bool", "DT_BOOL", 1, 0, 0, 0},
    {11, "qint8", "DT_QINT8", 1, 0, 0, 0},
    {12, "quint8", "DT_QUINT8", 1, 0, 0, 0},
    {13, "qint32", "DT_QINT32", 4, 0, 0, 0},
    {14, "bfloat16", "DT_BFLOAT16", 2, 1, 0, 0},
    {15, "qint16", "DT_QINT16", 2, 0, 0, 0},
    {16, "quint16", "DT_QUINT16", 2, 0, 0, 0},
    {17, "uint16", "DT_UINT16", 2, 0, 1, 0},
    {18, "complex128", "DT_COMPLEX128", 16, 0, 0, 1},
    {19, "half", "DT_HALF", 2, 1, 0, 0},
    {20, "resource", "DT_RESOURCE", 8, 0, 0, 0},
    {21, "variant", "DT_VARIANT", 8, 0, 0, 0},
    {22, "uint32", "DT_UINT32", 4, 0, 1, 0},
    {23, "uint64", "DT_UINT64", 8, 0, 1, 0},
    {24, "float8_e5m2", "DT_FLOAT8_E5M2", 1, 1, 0, 0},
    {25, "float8_e4m3fn", "DT_FLOAT8_E4M3FN", 1, 1, 0, 0},
    {26, "float8_e4m3fnuz", "DT_FLOAT8_E4M3FNUZ", 1, 1, 0, 0},
    {27, "float8_e4m3b11fnuz", "DT_FLOAT8_E4M3B11FNUZ", 1, 1, 0, 0},
    {28, "float8_e5m2fnuz", "DT_FLOAT8_E5M2FNUZ", 1, 1, 0, 0},
    {29, "int4", "DT_INT4", 1, 0, 1, 0},
    {30, "uint4", "DT_UINT4", 1, 0, 1, 0},
    {31, "int2", "DT_INT2", 1, 0, 1, 0},
    {32, "uint2", "DT_UINT2", 1, 0, 1, 0},
    {33, "float4_e2m1fn", "DT_FLOAT4_E2M1FN", 1, 1, 0, 0},
};

Test(dtype, facts) {
  cr_assert_eq(sizeof rows / sizeof *rows, RN_DTYPE_COUNT - 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rn_dtype_t dtype = rows[i].number;
    rn_dtype_t ref = dtype + 100;
    char name[50];
    cr_assert_str_eq(rn_dtype_name(dtype), rows[i].name);
    cr_assert_str_eq(rn_dtype_proto_name(dtype), rows[i].proto_name);
    cr_assert_eq(rn_dtype_size(dtype), rows[i].size, "%s", rows[i].name);
    cr_assert_eq(rn_dtype_is_floating(dtype), rows[i].floating, "%s", rows[i].name);
    cr_assert_eq(rn_dtype_is_integer(dtype), rows[i].integer, "%s", rows[i].name);
    cr_assert_eq(rn_dtype_is_complex(dtype), rows[i].complex, "%s", rows[i].name);
    cr_assert(rn_dtype_is_valid(dtype) && rn_dtype_is_valid(ref));
    cr_assert(!rn_dtype_is_ref(dtype) && rn_dtype_is_ref(ref));
    cr_assert_eq(rn_dtype_base(ref), dtype);
    cr_assert_eq(rn_dtype_size(ref), 0);
    cr_assert_eq(rn_dtype_parse(rn_str(rows[i].name)), dtype);
    cr_assert_eq(rn_dtype_parse(rn_str(rows[i].proto_name)), dtype);
    snprintf(name, sizeof name, "%s_ref", rows[i].name);
    cr_assert_str_eq(rn_dtype_name(ref), name);
    cr_assert_eq(rn_dtype_parse(rn_str(name)), ref);
    snprintf(name, sizeof name, "%s_REF", rows[i].proto_name);
    cr_assert_str_eq(rn_dtype_proto_name(ref), name);
    cr_assert_eq(rn_dtype_parse(rn_str(name)), ref);
  }
}

Test(dtype, numbers_that_are_no_type) {
  static const rn_dtype_t bad[] = {-3, 0, 34, 99, 100, 134, 1000, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_assert(!rn_dtype_is_valid(bad[i]));
    cr_assert_eq(rn_dtype_size(bad[i]), 0);
    cr_assert(!rn_dtype_is_floating(bad[i]));
    cr_assert(!rn_dtype_is_integer(bad[i]));
    cr_assert(!rn_dtype_is_complex(bad[i]));
    cr_assert_not_null(rn_dtype_name(bad[i]));
  }
  cr_assert_str_eq(rn_dtype_name(0), "INVALID");
  cr_assert_str_eq(rn_dtype_proto_name(0), "DT_INVALID");
  cr_assert_str_eq(rn_dtype_name(99), "unknown dtype enum (99)");
  cr_assert_str_eq(rn_dtype_name(-3), "unknown dtype enum (-3)");
  cr_assert_str_eq(rn_dtype_name(1000), "unknown dtype enum (900)_ref");
  cr_assert_str_eq(rn_dtype_proto_name(99), "");
  cr_assert_str_neq(rn_dtype_name(99), rn_dtype_name(98));
}

Test(dtype, other_spellings) {
  cr_assert_eq(rn_dtype_parse(RN_STR("float32")), RN_FLOAT);
  cr_assert_eq(rn_dtype_parse(RN_STR("float64")), RN_DOUBLE);
  cr_assert_eq(rn_dtype_parse(RN_STR("float16")), RN_HALF);
  cr_assert_eq(rn_dtype_parse(RN_STR("float32_ref")), RN_FLOAT + 100);
  static const char* const bad[] = {"", "nope", "_ref", "DT_", "INVALID", "DT_FLOAT_ref", "Float"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_assert_eq(rn_dtype_parse(rn_str(bad[i])), RN_INVALID, "%s", bad[i]);
  }
}

Test(dtype, plain_and_sets) {
  cr_assert(rn_dtype_is_plain(RN_FLOAT) && rn_dtype_is_plain(RN_BOOL));
  cr_assert(!rn_dtype_is_plain(RN_STRING) && !rn_dtype_is_plain(RN_RESOURCE));
  cr_assert(!rn_dtype_is_plain(RN_VARIANT) && !rn_dtype_is_plain(RN_FLOAT + 100));
  rn_dtypes_t set = RN_TYPES1(RN_FLOAT) | RN_TYPES1(RN_FLOAT4_E2M1FN);
  cr_assert(rn_dtypes_has(set, RN_FLOAT) && rn_dtypes_has(set, RN_FLOAT4_E2M1FN));
  cr_assert(!rn_dtypes_has(set, RN_DOUBLE) && !rn_dtypes_has(set, -1) && !rn_dtypes_has(set, 101));
}

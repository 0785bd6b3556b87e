// Values of the op cases: converts JSON specs to tensors, and compares tensors with recorded ones.
//
// Uses the public C API only, in one thread. If memory runs out, the process ends.
#ifndef RUNNEL_TESTS_OPS_VALUE_H_
#define RUNNEL_TESTS_OPS_VALUE_H_

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"

enum { MAX_RANK = 254 };

typedef enum {
  KIND_FLOAT,
  KIND_COMPLEX,
  KIND_SIGNED,
  KIND_UNSIGNED,
  KIND_BOOL,
  KIND_STRING,
  KIND_HANDLE,
} value_kind_t;

// A dtype by the name that case rows use ("float", "half", "qint8" ...).
typedef struct {
  const char* name;
  TF_DataType type;
  uint8_t size;
  value_kind_t kind;
} dtype_t;

// NULL when there is no such dtype.
const dtype_t* dtype_by_name(const char* name);
// Also takes reference types. NULL when the runner does not know the dtype.
const dtype_t* dtype_by_type(TF_DataType type);

// How far a computed float may be from the recorded one: absolute + relative * |recorded|.
// Zero in both means the same bits (any NaN equals any NaN). With |ulps|, that many units in the
// last place of the dtype instead; what the dtype cannot hold in full counts as zero.
typedef struct {
  double absolute;
  double relative;
  double ulps;
} tolerance_t;

// What is asked of |type| where a case says nothing.
tolerance_t tolerance_of(TF_DataType type);

// The tensor of a spec: "values", or drawn from "seed". The caller owns it. NULL, with the reason
// in |why|, when the spec cannot be understood.
TF_Tensor* value_create(const json_t* spec, char* why, size_t why_size);
// A tensor of |type| and shape filled as {"seed": |seed|} is. The caller owns it.
TF_Tensor* value_draw(TF_DataType type, const int64_t* dims, int rank, uint64_t seed);
// A tensor with the contents of |tensor|, which is no string tensor. The caller owns it.
TF_Tensor* value_copy(const TF_Tensor* tensor);

// Element |i| of a float tensor as a double; of a complex one, whose elements have two parts each,
// part |i|.
double value_get(const TF_Tensor* tensor, size_t i);
void value_set(TF_Tensor* tensor, size_t i, double v);
size_t value_parts(const TF_Tensor* tensor);
size_t value_count(const TF_Tensor* tensor);

// Compares with what a golden row holds. False, with the first difference in |why|, when they
// differ.
bool value_matches(const TF_Tensor* got, const json_t* want, const tolerance_t* tolerance,
                   char* why, size_t why_size);

#endif  // RUNNEL_TESTS_OPS_VALUE_H_

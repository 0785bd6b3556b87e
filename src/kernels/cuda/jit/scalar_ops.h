// The scalar operations of the loop compiler, listed in scalar_ops.def.
#ifndef RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_H_
#define RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_H_

#include "tensor/dtype.h"

typedef enum rn_scalar_code_t {
#define X(code, operands, types, result, where, function) RN_SCALAR_##code,
#include "kernels/cuda/jit/scalar_ops.def"
#undef X
  RN_SCALAR_COUNT,
} rn_scalar_code_t;

typedef struct rn_scalar_op_t {
  const char* function;  // of the device: "rn_op_" and this
  uint8_t operands;
  uint8_t result;      // an RN_SCALAR_SAME_TYPE …
  bool is_special;     // the device function is in special_ops.cuh
  rn_dtypes_t dtypes;  // allowed
} rn_scalar_op_t;

enum {
  RN_SCALAR_GIVES_SAME,
  RN_SCALAR_GIVES_BOOL,
  RN_SCALAR_GIVES_UINT8,
  RN_SCALAR_GIVES_REAL,
  RN_SCALAR_GIVES_COMPLEX,
};

// |code| must be one of the enumeration.
const rn_scalar_op_t* rn_scalar_op(rn_scalar_code_t code);

// Whether an element takes about ten times as many instructions as an addition.
bool rn_scalar_is_costly(rn_scalar_code_t code);

// The operation that the TensorFlow op |name| computes per element, if it is one operation of the
// table with the op's inputs (and attributes) as operands; RN_SCALAR_COUNT otherwise. Cast,
// Select's row form and BiasAdd's layout are the caller's.
rn_scalar_code_t rn_scalar_find(const char* name);

// The result's type for operands of |dtype| (of SELECT: the second's); RN_INVALID if the operation
// is not defined for it.
rn_dtype_t rn_scalar_result(rn_scalar_code_t code, rn_dtype_t dtype);

// The name of |dtype| in device code: "float", "rn_half", "u8"; NULL if loops have no such type.
const char* rn_scalar_type_name(rn_dtype_t dtype);

#endif  // RUNNEL_KERNELS_CUDA_JIT_SCALAR_OPS_H_

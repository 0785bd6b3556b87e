// The inner loops of matrix decompositions, for one ISA level; kernels/cpu/linalg/linalg.c
// implements the decompositions. Matrices are row-major; row strides are in elements.
#ifndef RUNNEL_KERNELS_CPU_ISA_LINALG_H_
#define RUNNEL_KERNELS_CPU_ISA_LINALG_H_

#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

// C -= A B. Element (i, k) of A is a[i * a_row + k * a_column], conjugated if requested.
typedef struct rn_subtract_t {
  void* c;
  const void *a, *b;
  int64_t c_row, a_row, a_column, b_row;
  int64_t m, n, k;
  bool conjugate_a;
} rn_subtract_t;

typedef struct rn_linalg_fns_t {
  void (*subtract)(const rn_subtract_t* product);
  // The index of the largest of |count| elements, |stride| apart.
  int64_t (*largest)(const void* x, int64_t stride, int64_t count);
  // Divides |count| elements, |stride| apart, by |*by|.
  void (*divide)(void* x, int64_t stride, int64_t count, const void* by, bool conjugate);
  void (*multiply)(void* x, const void* by);  // one number
  bool (*is_zero)(const void* x);
  bool (*is_nan)(const void* x);
  bool (*root)(void* x);  // false if not positive
  void (*adjoint)(void* out, const void* in, int64_t n);
  void (*set)(void* x, double value);
  // out[i] = the sum of a[i * a_row + j] x[j] over j < n, for i < m.
  void (*dots)(const void* a, int64_t a_row, const void* x, int64_t m, int64_t n, void* out);
  // x := c x - s y and y := s x + c y, elementwise.
  void (*rotate)(void* x, void* y, double c, double s, int64_t n);
} rn_linalg_fns_t;

RN_ISA_DECLARE(rn_linalg_fns_t, rn_linalg_, [RN_DTYPE_COUNT]);

#endif  // RUNNEL_KERNELS_CPU_ISA_LINALG_H_

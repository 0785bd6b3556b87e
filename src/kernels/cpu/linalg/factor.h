// Factors of one square matrix, and systems of equations solved with them.
#ifndef RUNNEL_KERNELS_CPU_LINALG_FACTOR_H_
#define RUNNEL_KERNELS_CPU_LINALG_FACTOR_H_

#include "base/pool.h"
#include "kernels/cpu/isa/linalg.h"

// What all work on an n x n matrix needs.
typedef struct rn_linalg_matrix_t {
  const rn_linalg_fns_t* fns;
  size_t item;
  int64_t n;
  rn_pool_t* pool;  // NULL for one thread
} rn_linalg_matrix_t;

// How to read a triangle: which part of A, as it is or as its adjoint.
typedef struct rn_linalg_triangle_t {
  const char* a;
  bool is_lower;  // after taking the adjoint
  bool is_adjoint, has_unit_diagonal;
} rn_linalg_triangle_t;

static inline char* rn_linalg_at(const rn_linalg_matrix_t* m, void* a, int64_t width, int64_t row,
                                 int64_t column) {
  return (char*)a + (size_t)(row * width + column) * m->item;
}

// How many pieces of |each| multiplications one thread takes at a time.
static inline int64_t rn_linalg_grain(double each) {
  return each >= 2e5 ? 1 : (int64_t)(2e5 / (each + 1)) + 1;
}

// A = P L U in place, without L's unit diagonal. pivots[k] is the row swapped with row k. False if
// a pivot is 0 or the first is NaN: as in stock, where a later NaN is no reason to fail.
bool rn_linalg_factor(const rn_linalg_matrix_t* m, char* a, int64_t* pivots);
// X := A^-1 X for a triangle A, with rows of |columns| elements.
void rn_linalg_solve_triangle(const rn_linalg_matrix_t* m, const rn_linalg_triangle_t* triangle,
                              char* x, int64_t columns);
// X := A^-1 X for a factored A.
void rn_linalg_solve_factored(const rn_linalg_matrix_t* m, const char* a, const int64_t* pivots,
                              char* x, int64_t columns);
// A = U* U in place, for the upper triangle of A. False if A is not positive definite.
bool rn_linalg_factor_positive(const rn_linalg_matrix_t* m, char* a);

#endif  // RUNNEL_KERNELS_CPU_LINALG_FACTOR_H_

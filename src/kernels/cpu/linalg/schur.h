// The complex Schur form of a matrix, and what follows from it. Everything is computed in double
// precision; matrices are row-major, n x n.
#ifndef RUNNEL_KERNELS_CPU_LINALG_SCHUR_H_
#define RUNNEL_KERNELS_CPU_LINALG_SCHUR_H_

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

// A = Q T Q*, T upper triangular: |a| becomes T, |q| Q. |work| holds 2 n numbers. False if it does
// not converge, as with numbers that are not finite.
bool rn_schur(double _Complex* a, int64_t n, double _Complex* q, double _Complex* work);

// The eigenvectors, of length 1, as the columns of |v|. |work| holds n numbers.
void rn_schur_vectors(const double _Complex* t, const double _Complex* q, int64_t n,
                      double _Complex* v, double _Complex* work);

// The principal square root of a triangular matrix.
void rn_triangular_root(const double _Complex* t, int64_t n, double _Complex* root);
// The principal logarithm of a triangular matrix. |work| holds 3 n n numbers.
void rn_triangular_logarithm(const double _Complex* t, int64_t n, double _Complex* out,
                             double _Complex* work);
// out = Q X Q*. |work| holds n n numbers.
void rn_schur_back(const double _Complex* x, const double _Complex* q, int64_t n,
                   double _Complex* out, double _Complex* work);

#endif  // RUNNEL_KERNELS_CPU_LINALG_SCHUR_H_

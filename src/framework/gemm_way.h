// How a float or double matmul of a given shape is computed.
//
// Bit-equality rests on this choice: every way but RN_GEMM_DOTS adds the k products of an element
// in order, so those ways give the same bits. kernels/cpu/gemm.c computes as rn_gemm_way says, and
// passes that split, stack or pack matmuls (step/) ask here instead of repeating the numbers.
//
// doc/invariants.md: invariant 20.
#ifndef RUNNEL_FRAMEWORK_GEMM_WAY_H_
#define RUNNEL_FRAMEWORK_GEMM_WAY_H_

#include <stdbool.h>
#include <stdint.h>

// C [m, n] = op(A) op(B), row-major.
typedef enum rn_gemm_way_t {
  RN_GEMM_ROW = 0,   // C is one row; rows of op(B) are contiguous
  RN_GEMM_DOTS,      // C has few rows; rows of op(A) and columns of op(B) are contiguous
  RN_GEMM_IN_PLACE,  // B is read where it lies; rows of op(B) are contiguous
  RN_GEMM_BLOCKS,    // B is packed, or comes packed
} rn_gemm_way_t;

// Rows of C up to which contiguous columns of op(B) are multiplied as dot products.
#define RN_GEMM_DOT_ROWS 4
// Packing B pays from this many rows of C on, if rows of B are longer than RN_GEMM_SHORT_ROW and
// columns longer than RN_GEMM_SHALLOW.
#define RN_GEMM_PACK_ROWS 24
#define RN_GEMM_SHORT_ROW 256
#define RN_GEMM_SHALLOW 8

// |a_column| and |b_column|: elements from one column of op(A), op(B) to the next. |is_packed|: B
// comes packed.
static inline rn_gemm_way_t rn_gemm_way(int64_t m, int64_t n, int64_t k, int64_t a_column,
                                        int64_t b_column, bool is_packed) {
  if (b_column != 1 && a_column == 1 && (m <= RN_GEMM_DOT_ROWS || n == 1)) return RN_GEMM_DOTS;
  if (m == 1) return RN_GEMM_ROW;
  if (is_packed) return RN_GEMM_BLOCKS;
  if (b_column == 1 && (m < RN_GEMM_PACK_ROWS || n <= RN_GEMM_SHORT_ROW || k <= RN_GEMM_SHALLOW))
    return RN_GEMM_IN_PLACE;
  return RN_GEMM_BLOCKS;
}

// The way of a MatMul whose B does not come packed. All sizes are known. A C of one column
// is computed as a row, C' = op(B)' op(A)'.
static inline rn_gemm_way_t rn_gemm_way_of_matmul(int64_t m, int64_t n, int64_t k, bool transpose_a,
                                                  bool transpose_b) {
  if (n == 1 && m > 1) return rn_gemm_way(1, m, k, 1, transpose_a ? 1 : k, false);
  return rn_gemm_way(m, n, k, transpose_a ? m : 1, transpose_b ? k : 1, false);
}

#endif  // RUNNEL_FRAMEWORK_GEMM_WAY_H_

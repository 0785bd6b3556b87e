// Matrix products per generation of processor; kernels/cpu/gemm.c chooses.
#ifndef RUNNEL_KERNELS_CPU_ISA_GEMM_H_
#define RUNNEL_KERNELS_CPU_ISA_GEMM_H_

#include "framework/gemm_way.h"
#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

// C = op(A) op(B), or a part of it. Elements of op(A) and op(B) are found by their steps: one of
// the two is 1.
typedef struct rn_gemm_part_t {
  const void* a;
  int64_t a_row, a_column;
  const void* b;
  int64_t b_row, b_column;
  const void* panels;  // NULL, or B packed, from the part's first column on, which begins a strip
  void* c;
  int64_t c_row;
  const void* bias;  // NULL, or a row that is added to every row in the end; with panels only
  int64_t m, n, k;   // k > 0
  rn_gemm_way_t way;
  bool adds;   // C is what the sums begin with; with panels only
  bool turns;  // C is written across: element [i, j] goes to c[j * c_row + i]; by blocks only, m x
               // n at most RN_GEMM_TURNED, and a_column = 1
  void* scratch;  // RN_GEMM_SCRATCH bytes at a cache line, if the way is by blocks
} rn_gemm_part_t;

// What is packed at a time: bytes of a row of B and rows of it, so that both stay in the
// second-level cache; rows of A, if they are columns in memory.
#define RN_GEMM_BLOCK_BYTES 1024
#define RN_GEMM_BLOCK_DEPTH 384
#define RN_GEMM_BLOCK_ROWS 48
// Elements of a block of C that is written across.
#define RN_GEMM_TURNED (RN_GEMM_BLOCK_BYTES / sizeof(double) * RN_GEMM_BLOCK_DEPTH)
#define RN_GEMM_SCRATCH \
  ((RN_GEMM_BLOCK_BYTES + RN_GEMM_BLOCK_ROWS * sizeof(double)) * RN_GEMM_BLOCK_DEPTH)

typedef void (*rn_gemm_fn_t)(const rn_gemm_part_t* part);
// B of |part| into |panels|: strips of columns one after the other, each k rows of a strip's width;
// the last strip has that width too.
typedef void (*rn_gemm_pack_fn_t)(const rn_gemm_part_t* part, void* panels);

// Functions for float and double (tiles in registers), and for the integers
// (plain loops, b_column = 1 only). Signed integers wrap as unsigned ones do.
typedef struct rn_gemm_table_t {
  int strip_bytes;  // the width of a strip
  rn_gemm_pack_fn_t pack_f32, pack_f64;
  rn_gemm_fn_t fn[RN_DTYPE_COUNT];
} rn_gemm_table_t;

RN_ISA_DECLARE(rn_gemm_table_t, rn_gemm_);

#endif  // RUNNEL_KERNELS_CPU_ISA_GEMM_H_

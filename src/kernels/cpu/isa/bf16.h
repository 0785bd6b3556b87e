// Products of bfloat16 matrices, summed in float, for one ISA level; kernels/cpu/gemm_bf16.c
// selects them. Products of two bfloat16s are exact in float. How sums are associated depends on
// the function and on the depth alone, not on the number of rows or strips. Subnormal numbers count
// as zero.
#ifndef RUNNEL_KERNELS_CPU_ISA_BF16_H_
#define RUNNEL_KERNELS_CPU_ISA_BF16_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa.h"

// B is packed in strips of 16 columns. A strip has one block of 64 bytes for every 2 rows of B: 2
// elements per column. The rows are filled up with zeros to a multiple of RN_BF16_BLOCK.
#define RN_BF16_STRIP 16
#define RN_BF16_BLOCK 32
// Strips that are multiplied at a time.
#define RN_BF16_STRIPS 2
#define RN_BF16_WIDE (RN_BF16_STRIPS * RN_BF16_STRIP)

// C = A B, or C += A B, for some rows of A and one or two strips of B.
typedef struct rn_bf16_part_t {
  const uint16_t* a;  // |rows| rows of |depth| elements, |a_step| apart
  int64_t a_step, rows, depth;
  const uint16_t* b;  // the first strip
  int64_t b_step;     // elements from one strip to the next
  int strips;         // 1 or 2
  float* c;           // rows, |c_step| apart
  int64_t c_step;
  bool adds;
} rn_bf16_part_t;

// |rows| is a multiple of 16, |depth| one of RN_BF16_BLOCK.
typedef void (*rn_bf16_multiply_t)(const rn_bf16_part_t* part);

// Lines of a matrix, each |depth| elements, packed for products: the rows of A or the columns of B.
typedef struct rn_bf16_pack_t {
  const uint16_t* from;
  int64_t step;   // of what lies apart: of lines if |is_along|, otherwise of their elements
  bool is_along;  // the elements of a line lie next to each other
  int64_t lines, depth;
  uint16_t* to;
  // Rows of A: elements from one line to the next; as many lines as make a multiple of 16 are
  // written. Columns of B: elements from one strip to the next.
  int64_t to_step;
} rn_bf16_pack_t;

typedef struct rn_bf16_table_t {
  // NULL if the level has no such instructions. multiply_tiles needs AMX, multiply_pairs
  // AVX512-BF16.
  rn_bf16_multiply_t multiply_tiles, multiply_pairs;
  void (*tiles_begin)(void);  // around any number of calls of multiply_tiles, in each thread
  void (*tiles_end)(void);
  void (*pack_rows)(const rn_bf16_pack_t* pack);     // of A
  void (*pack_columns)(const rn_bf16_pack_t* pack);  // of B
  // Rounds rows of C.
  void (*narrow)(const float* c, int64_t c_step, int64_t rows, int64_t columns, uint16_t* to,
                 int64_t to_step);
} rn_bf16_table_t;

RN_ISA_DECLARE(rn_bf16_table_t, rn_bf16_);

#endif  // RUNNEL_KERNELS_CPU_ISA_BF16_H_

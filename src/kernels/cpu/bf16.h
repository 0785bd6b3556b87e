// Products of bfloat16 matrices by instructions for them (AMX, AVX512-BF16): products are exact,
// sums are in float, and the caller rounds them once.
#ifndef RUNNEL_KERNELS_CPU_BF16_H_
#define RUNNEL_KERNELS_CPU_BF16_H_

#include "base/pool.h"
#include "kernels/cpu/isa/bf16.h"

// How this processor multiplies. Fast: callers may ask in every step.
typedef struct rn_bf16_way_t {
  const rn_bf16_table_t* table;
  rn_bf16_multiply_t multiply;  // NULL: it has no such instructions
  bool uses_tiles;
} rn_bf16_way_t;
rn_bf16_way_t rn_bf16_way(void);

// Elements of the sums' depth that are multiplied at a time: the blocks of A and B then stay in the
// caches. A sum continues from block to block.
#define RN_BF16_DEPTH 1024
// Rows of C that a piece of work has at most, and rows that are finished at a time.
#define RN_BF16_MOST_ROWS 256
#define RN_BF16_SUM_ROWS 64

// C = A B, where functions supply A and B and take C. They run on several threads.
typedef struct rn_bf16_product_t {
  int64_t m, n, k;
  void* arg;  // for the functions
  // Rows [row, row + rows) of A, elements [at, at + depth) of each: packed to rows of |to|, or
  // where they lie, |*step| elements apart; both must be filled up with zeros to multiples of
  // RN_BF16_BLOCK elements and 16 rows. |row| is a multiple of 32, |at| one of RN_BF16_DEPTH.
  // |*step| is that of |to| at first. |scratch| has |scratch_bytes|.
  const uint16_t* (*rows)(const rn_bf16_way_t* way, void* arg, int64_t row, int64_t rows,
                          int64_t at, int64_t depth, uint16_t* to, int64_t* step, void* scratch);
  size_t scratch_bytes;
  // Packs columns [first, last) of B, elements [at, at + depth) of each, in strips |step| apart.
  // |first| is a multiple of RN_BF16_WIDE.
  void (*columns)(const rn_bf16_way_t* way, void* arg, int64_t first, int64_t last, int64_t at,
                  int64_t depth, uint16_t* to, int64_t step);
  const uint16_t* panels;  // or all of B, packed by rn_bf16_pack
  // Takes the sums of up to RN_BF16_SUM_ROWS rows and RN_BF16_WIDE columns of C, of which each row
  // has RN_BF16_WIDE; it may change them.
  void (*finish)(const rn_bf16_way_t* way, void* arg, float* sums, int64_t row, int64_t rows,
                 int64_t first, int64_t columns);
} rn_bf16_product_t;

// The same bits with any number of threads. |way| multiplies; m, n and k are not 0.
RN_MUST_USE rn_status_t rn_bf16_product(rn_pool_t* pool, const rn_bf16_way_t* way,
                                        const rn_bf16_product_t* product);

// Packs B of |product| into |panels|, rn_bf16_panels_count elements; false if that overflows.
bool rn_bf16_panels_count(int64_t n, int64_t k, int64_t* out);
void rn_bf16_pack(rn_pool_t* pool, const rn_bf16_way_t* way, const rn_bf16_product_t* product,
                  uint16_t* panels);

#endif  // RUNNEL_KERNELS_CPU_BF16_H_

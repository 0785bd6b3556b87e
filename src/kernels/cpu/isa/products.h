// Sums of matmuls for one ISA level; kernels/cpu/planner/products.c packs the operands and selects.
#ifndef RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_
#define RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_

#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

// Tiles per block, stacked: with the strip of B for one term they fit the L1 cache.
#define RN_PRODUCTS_TILES 8

// One block of C = sum over t of (A_t B_t), where each product is accumulated from 0 and then
// added, in order of t; or the same with C as the first term; or C -= alpha * that sum. Packed
// operands are contiguous for every k of every term: a row of a tile of |a| has the tile's rows, a
// row of |b| the strip's columns, of which those past the end are unspecified.
typedef struct rn_products_block_t {
  const void* a;
  int64_t a_tile;  // elements from one tile to the next
  const void* b;
  void* c;
  int64_t c_row;          // elements from one row of C to the next
  int64_t rows, columns;  // of the block, within C
  const int32_t* ks;      // depth per term, all > 0
  int32_t count;          // number of terms
  const void* descent;    // alpha in C's type; NULL if C is overwritten
  bool adds;              // C is the first term; then |descent| is NULL
} rn_products_block_t;

typedef void (*rn_products_fn_t)(const rn_products_block_t* block);

// C [m, n] -= alpha * (a b) for a column |a| and a row |b|, with the bits of the block above.
typedef void (*rn_outer_fn_t)(const void* a, const void* b, void* c, int64_t m, int64_t n,
                              const void* alpha);

typedef struct rn_products_table_t {
  int tile_rows;
  int strip_bytes;  // width in bytes, the same for both types
  rn_products_fn_t f32, f64;
  rn_outer_fn_t outer_f32, outer_f64;
} rn_products_table_t;

RN_ISA_DECLARE(rn_products_table_t, rn_products_);

#endif  // RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_

// Sums of matrix products per generation of processor; kernels/cpu/planner/products.c packs and
// chooses.
#ifndef RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_
#define RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_

#include "tensor/dtype.h"

// Tiles of a block, one below the other: with the strip of B for one term they stay in the
// first-level cache.
#define RN_PRODUCTS_TILES 8

// One block of C = sum over t of (A_t B_t), each product summed up from 0 and then added, in the
// order of t; or that with C as the first term; or C -= alpha * that. Packed operands lie one after
// the other, for every k of every term: a row of a tile of |a| has the tile's rows, a row of |b|
// the strip's columns, the last of which may be anything.
typedef struct rn_products_block_t {
  const void* a;
  int64_t a_tile;  // elements from one tile to the next
  const void* b;
  void* c;
  int64_t c_row;          // elements from one row of C to the next
  int64_t rows, columns;  // of the block, as far as C goes
  const int32_t* ks;      // depth of each term, all > 0
  int32_t count;          // of terms
  const void* descent;    // alpha, in C's type; NULL: C is overwritten
  bool adds;              // C is the first term, and |descent| NULL
} rn_products_block_t;

typedef void (*rn_products_fn_t)(const rn_products_block_t* block);

typedef struct rn_products_table_t {
  int tile_rows;
  int strip_bytes;  // columns in bytes, so that they fit both types
  rn_products_fn_t f32, f64;
} rn_products_table_t;

extern const rn_products_table_t rn_products_base;
#ifdef __x86_64__
extern const rn_products_table_t rn_products_avx2;
extern const rn_products_table_t rn_products_avx512;
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_

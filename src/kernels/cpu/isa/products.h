// Sums of matrix products per generation of processor; kernels/cpu/products.c packs and chooses.
#ifndef RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_
#define RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_

#include "tensor/dtype.h"

// A tile of C: |rows| x |columns|, where columns are in bytes so that they fit both types.
typedef struct rn_products_tile_t {
  int rows;
  int column_bytes;
} rn_products_tile_t;

// One tile: C = sum over t of (A_t B_t), each product summed up from 0 and then added, in the order
// of t; or C -= alpha * that. Packed operands lie one after the other: a row of |a| has the tile's
// rows, a row of |b| its columns, for every k of every term.
typedef struct rn_products_part_t {
  const void* a;
  const void* b;
  void* c;
  int64_t c_row;        // elements from one row of C to the next
  const int32_t* ks;    // depth of each term, all > 0
  int32_t count;        // of terms
  const void* descent;  // alpha, in C's type; NULL: C is overwritten
} rn_products_part_t;

typedef void (*rn_products_fn_t)(const rn_products_part_t* part);

typedef struct rn_products_table_t {
  rn_products_tile_t tile;
  rn_products_fn_t f32, f64;
} rn_products_table_t;

extern const rn_products_table_t rn_products_base;
#ifdef __x86_64__
extern const rn_products_table_t rn_products_avx2;
extern const rn_products_table_t rn_products_avx512;
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_PRODUCTS_H_

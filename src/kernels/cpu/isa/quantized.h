// Loops for quantized numbers, for one ISA level; kernels/cpu/quant/quantized.h and
// quantized_gemm.c select them.
#ifndef RUNNEL_KERNELS_CPU_ISA_QUANTIZED_H_
#define RUNNEL_KERNELS_CPU_ISA_QUANTIZED_H_

#include <stdint.h>

#include "kernels/cpu/isa.h"

typedef enum rn_quant_rounding_t {
  RN_QUANT_AWAY = 0,  // ties away from zero
  RN_QUANT_EVEN,      // ties to even
  RN_QUANT_DOWN,      // towards zero
} rn_quant_rounding_t;

// Converts a float to a level: clamp(round((clamp(x, low, high) - sub) * scale + add) - shift). NaN
// becomes the least level.
typedef struct rn_quant_in_t {
  float low, high, sub, scale, add, shift;
  float least, most;  // levels; both fit an int32
  rn_quant_rounding_t rounding;
} rn_quant_in_t;

// Converts a level to a float: (x + add) * scale + base.
typedef struct rn_quant_out_t {
  float add, scale, base;
} rn_quant_out_t;

// Rows of C per tile.
#define RN_QUANT_TILE_ROWS 6

// A strip of C, |columns| wide: C += A B in 32 bits, wrapping. A has |rows| rows of |depth| pairs
// of int16, |a_step| pairs apart; the strip of B has |depth| rows of |strip| pairs, each pair taken
// from two rows of B.
typedef struct rn_quant_strip_t {
  const int16_t* a;
  int64_t a_step, rows, depth;
  const int16_t* b;
  int32_t* c;
  int64_t c_step, columns;  // columns <= strip
} rn_quant_strip_t;

typedef struct rn_quant_table_t {
  void (*levels)(const rn_quant_in_t* how, const float* x, int64_t n, int32_t* out);
  void (*values)(const rn_quant_out_t* how, float* inout, int64_t n);
  int64_t strip;  // columns per strip of B
  void (*multiply)(const rn_quant_strip_t* strip);
} rn_quant_table_t;

RN_ISA_DECLARE(rn_quant_table_t, rn_quant_);

#endif  // RUNNEL_KERNELS_CPU_ISA_QUANTIZED_H_

// Convolutions and matmuls of 8-bit levels: A of unsigned ones with a zero point, B of signed ones
// with a scale per column. Sums are exact, so results are the same on all processors and with any
// number of threads.
#ifndef RUNNEL_KERNELS_CPU_QUANT_LEVELS_H_
#define RUNNEL_KERNELS_CPU_QUANT_LEVELS_H_

#include "framework/kernel.h"
#include "kernels/cpu/isa/levels.h"
#include "kernels/cpu/nn/window.h"

// The longest sum that 32 bits hold: 255 * 127 * this.
#define RN_LEVELS_MOST_DEPTH 66000

const rn_levels_table_t* rn_levels_table(void);
// What the processor has besides. Asking it takes some microseconds, so kernels keep the answer.
typedef struct rn_levels_cpu_t {
  bool has_vnni, has_tiles;
} rn_levels_cpu_t;
rn_levels_cpu_t rn_levels_cpu(void);

// The levels 0 to 255 of FakeQuant between |min| and |max|.
rn_levels_scale_t rn_levels_scale(float min, float max);

// Weights in the order in which the products read them.
typedef struct rn_levels_weights_t {
  bool is_depthwise;
  bool has_fours;  // depthwise weights are packed by fours
  int64_t k, n;    // rows and columns of B; taps and channels
  int64_t depth;   // k, filled up
  void* packed;    // Owned
  size_t packed_bytes;
  int32_t* start;  // Owned, one per column: what takes the zero point of A out of a sum
  float* scale;    // Owned, one per column: from sums to floats
  size_t column_bytes;
} rn_levels_weights_t;

typedef struct rn_levels_pack_t {
  const rn_tensor_t* w;    // qint8
  const float *min, *max;  // per column: the limits of Dequantize, mode SCALED, narrow range
  int64_t k, n;
  bool transposed;  // n x k
  bool is_depthwise;
  rn_levels_cpu_t cpu;
  rn_levels_scale_t x;
} rn_levels_pack_t;
RN_MUST_USE rn_status_t rn_levels_pack(const rn_levels_pack_t* pack, rn_levels_weights_t* out);
void rn_levels_weights_clear(rn_levels_weights_t* weights);

// A product and what follows it.
typedef struct rn_levels_product_t {
  rn_levels_cpu_t cpu;
  const rn_levels_weights_t* weights;
  const uint8_t* x;
  int64_t rows;  // of the result: m, or the pixels of all images
  // For convolutions; a matmul has a window of one pixel.
  int64_t in_depth;
  rn_window_axis_t rows_axis, columns_axis;
  uint8_t zero;  // the level of padding
  // The pointers are those of the first row.
  rn_levels_finish_t finish;
} rn_levels_product_t;
RN_MUST_USE rn_status_t rn_levels_product(rn_kernel_ctx_t* ctx, const rn_levels_product_t* product);

#endif  // RUNNEL_KERNELS_CPU_QUANT_LEVELS_H_

// Products of 8-bit levels, unsigned by signed, summed in 32 bits, for one ISA level;
// kernels/cpu/quant/levels.c selects them. All variants give the same sums: no sum overflows, and
// none is rounded.
#ifndef RUNNEL_KERNELS_CPU_ISA_LEVELS_H_
#define RUNNEL_KERNELS_CPU_ISA_LEVELS_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa.h"

// B is packed in strips of 16 columns. A strip has one block of 64 bytes for every 4 rows of B: 4
// bytes per column. The rows are filled up with zeros to a multiple of RN_LEVELS_BLOCK.
#define RN_LEVELS_STRIP 16
#define RN_LEVELS_BLOCK 64
// Strips that are multiplied at a time.
#define RN_LEVELS_STRIPS 2
#define RN_LEVELS_WIDE (RN_LEVELS_STRIPS * RN_LEVELS_STRIP)

// C = A B + start for some rows of A and one or two strips of B; |start| is one row.
typedef struct rn_levels_part_t {
  const uint8_t* a;  // |rows| rows of |depth| bytes, |a_step| apart
  int64_t a_step, rows, depth;
  const int8_t* b;  // the first strip
  int64_t b_step;   // bytes from one strip to the next
  int strips;       // 1 or 2
  const int32_t* start;
  int32_t* c;  // rows of RN_LEVELS_WIDE sums
} rn_levels_part_t;

// |depth| is a multiple of 4.
typedef void (*rn_levels_multiply_t)(const rn_levels_part_t* part);

// How floats become levels: floor((clamp(x, least, most) - least) * inverse - zero + 0.5) + zero,
// as FakeQuant computes it. NaN becomes the least level.
typedef struct rn_levels_scale_t {
  float least, most, inverse, scale;
  float zero;  // the level of zero
} rn_levels_scale_t;

// What follows a product: y = sum * scale + bias + addend, limited to [low, high], as a
// float or as a level. All pointers are those of the first row and column.
typedef struct rn_levels_finish_t {
  const float* scale;
  const float* bias;             // NULL: none
  const float* addend;           // NULL: none
  const uint8_t* addend_levels;  // or these, NULL: none
  rn_levels_scale_t addend_scale;
  float low, high;
  float* y;  // NULL: levels
  uint8_t* y_levels;
  rn_levels_scale_t to;
} rn_levels_finish_t;

// Some pixels of a depthwise convolution: sums[pixel][c] = start[c] + the sum over taps of
// x[tap][pixel * step + c] * w[tap][c].
typedef struct rn_levels_taps_t {
  const uint8_t* const* x;
  const uint32_t* w;    // for depthwise: every weight is an int16 in the lower half of 32 bits
  const int8_t* fours;  // for depthwise_vnni: see rn_levels_four_at
  const int32_t* start;
  int64_t taps, channels, pixels, step;
} rn_levels_taps_t;

// Depthwise weights by fours: the bytes of four taps are neighbours, and channels are in the order
// that results from unpacking the bytes of 64 channels, or of the last 32, twice, within lanes of
// 16 bytes. There are 4 * rn_levels_fours(taps) bytes for each of the channels, filled up to 32.
#define RN_LEVELS_TAP_CHANNELS 64
static inline int64_t rn_levels_fours(int64_t taps) { return (taps + 3) / 4; }
static inline int64_t rn_levels_four_at(int64_t taps, int64_t channels, int64_t tap,
                                        int64_t channel) {
  const int64_t first = channel / RN_LEVELS_TAP_CHANNELS * RN_LEVELS_TAP_CHANNELS;
  const int64_t wide = channels - first > 32 ? 64 : 32, c = channel - first;
  return (first * rn_levels_fours(taps) + tap / 4 * wide + c % 16 / 4 * (wide / 4)) * 4 +
         c / 16 * 16 + c % 4 * 4 + tap % 4;
}

typedef struct rn_levels_table_t {
  rn_levels_multiply_t multiply;
  rn_levels_multiply_t multiply_vnni;  // NULL: none for this level
  // Needs rows >= 16, |depth| a multiple of RN_LEVELS_BLOCK, and that the thread may use tiles.
  rn_levels_multiply_t multiply_tiles;
  void (*tiles_begin)(void);  // around any number of calls of the former, in each thread
  void (*tiles_end)(void);
  // |sums| are |sum_step| apart from row to row, addends and results |step|.
  void (*finish)(const rn_levels_finish_t* finish, const int32_t* sums, int64_t sum_step,
                 int64_t rows, int64_t columns, int64_t step);
  void (*depthwise)(const rn_levels_taps_t* taps, int32_t* sums);
  void (*depthwise_vnni)(const rn_levels_taps_t* taps, int32_t* sums);  // NULL: none
  void (*to_levels)(const rn_levels_scale_t* scale, const float* x, int64_t count, uint8_t* y);
  void (*to_floats)(const rn_levels_scale_t* scale, const uint8_t* x, int64_t count, float* y);
} rn_levels_table_t;

RN_ISA_DECLARE(rn_levels_table_t, rn_levels_);

#endif  // RUNNEL_KERNELS_CPU_ISA_LEVELS_H_

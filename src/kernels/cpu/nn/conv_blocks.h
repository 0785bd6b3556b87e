// What the convolutions of our own share: blocks of the result, and packed filters. Private to
// conv_*.c and isa/conv.c.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_BLOCKS_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_BLOCKS_H_

#include "kernels/cpu/nn/conv.h"

// From this number of threads on, pieces are smaller; and the most pieces for each thread.
#define RN_CONV_MANY_THREADS 5
#define RN_CONV_PIECES_PER_THREAD 4

// The result as a matrix, divided into blocks: one piece of work each.
typedef struct rn_conv_blocks_t {
  int64_t rows, columns;  // of a block; columns are whole strips
  int64_t across;         // blocks side by side
  int64_t count;
  int64_t grain;  // blocks per hand-off to a thread
} rn_conv_blocks_t;

// Divides |rows| × |columns| elements, |flops| operations in all, among |threads|: into blocks of
// |most_rows| rows, and if those are too few, of fewer columns too, and at last of fewer rows.
rn_conv_blocks_t rn_conv_divide(int64_t rows, int64_t columns, double flops, int64_t strip,
                                int64_t most_rows, int threads);

// Block |i|: rows [begin, end) and columns [first, last).
typedef struct rn_conv_block_t {
  int64_t begin, end, first, last;
} rn_conv_block_t;
rn_conv_block_t rn_conv_block(const rn_conv_blocks_t* blocks, int64_t i, int64_t rows,
                              int64_t columns);

// Calls |body| for all blocks. The loops of different layers are different loops, though they may
// have as many blocks.
void rn_conv_for_blocks(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, const rn_conv_blocks_t* blocks,
                        rn_pool_body_t body, void* arg);

// Fills |panels| with the packed filter.
typedef void (*rn_conv_pack_fn_t)(rn_kernel_ctx_t* ctx, void* arg, float* panels);
// The filter packed in |way|, |count| floats: if |filter| is not NULL, those of an earlier call
// with it; otherwise new ones. The caller clears |*out|.
RN_MUST_USE rn_status_t rn_conv_panels(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                       const rn_tensor_t* filter, rn_conv_way_t way, int64_t count,
                                       rn_conv_pack_fn_t pack, void* arg, rn_tensor_t* out);

// Whether a filter of one element reads the axis as it is.
static inline bool rn_conv_is_whole_axis(const rn_window_axis_t* axis) {
  return axis->filter == 1 && axis->stride == 1 && axis->before == 0 && axis->out == axis->in;
}

static inline int64_t rn_conv_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t rn_conv_least(int64_t a, int64_t b) { return a < b ? a : b; }
// Floats from one row to the next: an odd number of cache lines, so that the rows of a tile do not
// evict each other.
static inline int64_t rn_conv_odd_lines(int64_t floats) {
  int64_t line = RN_ALIGN / (int64_t)sizeof(float);
  return (rn_conv_ceil_div(floats, line) | 1) * line;
}

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_BLOCKS_H_

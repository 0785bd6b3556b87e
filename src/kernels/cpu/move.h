// Copies boxes of elements. Every op that only rearranges its input (transpose, slice, pad, tile,
// concat, reverse, ...) describes which box goes where and calls this.
#ifndef RUNNEL_KERNELS_CPU_MOVE_H_
#define RUNNEL_KERNELS_CPU_MOVE_H_

#include "base/pool.h"
#include "device/device.h"

// Tile splits each dimension of its tensor in two.
#define RN_MOVE_MAX_RANK (2 * RN_MAX_RANK)

// A box of elements, outermost dimension first. No two elements may have the same destination.
typedef struct rn_move_t {
  int32_t rank;
  bool is_empty;
  rn_move_dim_t dims[RN_MOVE_MAX_RANK];
} rn_move_t;

static inline void rn_move_begin(rn_move_t* move) {
  move->rank = 0;
  move->is_empty = false;
}

// Adds the next inner dimension, merging it with the previous one where they are contiguous.
static inline void rn_move_add(rn_move_t* move, int64_t size, int64_t from, int64_t to) {
  if (size == 1) return;
  if (size <= 0) move->is_empty = true;
  if (move->rank > 0) {
    rn_move_dim_t* last = &move->dims[move->rank - 1];
    if (last->from == from * size && last->to == to * size) {
      *last = (rn_move_dim_t){last->size * size, from, to};
      return;
    }
  }
  move->dims[move->rank++] = (rn_move_dim_t){size, from, to};
}

// Copies the box; its first element goes from |src| to |dst|. Strings, resources and variants at
// |dst| must be initialized; they are replaced. RESOURCE_EXHAUSTED if a string cannot be copied.
RN_MUST_USE rn_status_t rn_move_run(const rn_move_t* move, rn_pool_t* pool, rn_dtype_t dtype,
                                    const void* src, void* dst);

// Copies |n| consecutive elements. The same rules apply.
RN_MUST_USE rn_status_t rn_move_row(rn_dtype_t dtype, const void* src, void* dst, int64_t n);
// Fills |n| elements with a copy of the element at |value|.
RN_MUST_USE rn_status_t rn_move_fill(rn_pool_t* pool, rn_dtype_t dtype, const void* value,
                                     void* dst, int64_t n);
// Sets |n| elements to zero, the empty string or no object.
void rn_move_zero(rn_pool_t* pool, rn_dtype_t dtype, void* dst, int64_t n);

// Copies a few bytes without a call to memcpy.
static inline void rn_move_bytes(void* dst, const void* src, size_t size) {
  switch (size) {
    case 4:
      memcpy(dst, src, 4);
      break;
    case 8:
      memcpy(dst, src, 8);
      break;
    case 16:
      memcpy(dst, src, 16);
      break;
    default:
      memcpy(dst, src, size);
  }
}

#endif  // RUNNEL_KERNELS_CPU_MOVE_H_

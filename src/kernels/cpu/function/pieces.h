// Tensors by number, for ops that take batches apart and put them together.
#ifndef RUNNEL_KERNELS_CPU_FUNCTION_PIECES_H_
#define RUNNEL_KERNELS_CPU_FUNCTION_PIECES_H_

#include "base/vec.h"
#include "framework/kernel.h"

typedef struct rn_batch_piece_t {
  int64_t key;
  rn_tensor_t tensor;   // Owned
  int64_t deadline_ns;  // when it may be dropped
} rn_batch_piece_t;

// As many as there are steps at a time, so they are searched one by one.
typedef struct rn_batch_pieces_t {
  RN_VEC(rn_batch_piece_t) list;
} rn_batch_pieces_t;

// The index of the piece with |key|, or -1.
static inline int64_t rn_batch_pieces_find(const rn_batch_pieces_t* pieces, int64_t key) {
  for (size_t i = 0; i < pieces->list.count; ++i)
    if (pieces->list.items[i].key == key) return (int64_t)i;
  return -1;
}

// Removes piece |i|, whose tensor the caller has taken or cleared.
static inline void rn_batch_pieces_remove(rn_batch_pieces_t* pieces, int64_t i) {
  pieces->list.items[i] = pieces->list.items[--pieces->list.count];
}

static inline void rn_batch_pieces_clear(rn_batch_pieces_t* pieces, rn_allocator_t allocator) {
  for (size_t i = 0; i < pieces->list.count; ++i) rn_tensor_clear(&pieces->list.items[i].tensor);
  rn_vec_free(&pieces->list, allocator);
}

#endif  // RUNNEL_KERNELS_CPU_FUNCTION_PIECES_H_

// See row_batches.h. Rows are assigned to pieces by a hash of their numbers, because many tables
// use their low rows most. Each piece reads all indices, which is cheap compared with the rows.
#include "kernels/cpu/row_batches.h"

#include "kernels/cpu/array.h"

// Time worth another piece; and the maximum number of pieces: more would mostly read indices.
#define PIECE_NS 50e3
#define MAX_PIECES 8

typedef struct row_batches_deal_t {
  const rn_tensor_t* indices;
  uint64_t limit;
  int64_t pieces;
  rn_row_batch_fn_t body;
  void* arg;
} row_batches_deal_t;

static inline int64_t piece_of(uint64_t row, int64_t pieces) {
  uint64_t hash = (row * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
  return (int64_t)(hash * (uint64_t)pieces >> 32);
}

// The test is unpredictable, so avoid a branch: always store the index, but count it only if taken.
#define DEAL(I)                                                              \
  static void deal_##I(const row_batches_deal_t* deal, int64_t piece) {      \
    const I* index = deal->indices->data;                                    \
    int64_t rows[RN_ROW_BATCH], places[RN_ROW_BATCH];                        \
    int count = 0;                                                           \
    for (int64_t i = 0; i < deal->indices->count; ++i) {                     \
      uint64_t row = (uint64_t)(int64_t)index[i];                            \
      rows[count] = (int64_t)row;                                            \
      places[count] = i;                                                     \
      count += (row < deal->limit) & (piece_of(row, deal->pieces) == piece); \
      if (count < RN_ROW_BATCH) continue;                                    \
      deal->body(deal->arg, rows, places, count);                            \
      count = 0;                                                             \
    }                                                                        \
    if (count > 0) deal->body(deal->arg, rows, places, count);               \
  }
DEAL(int16_t)
DEAL(int32_t)
DEAL(int64_t)

static void deal_piece(void* arg, int64_t begin, int64_t end) {
  const row_batches_deal_t* deal = arg;
  for (int64_t piece = begin; piece < end; ++piece) {
    if (deal->indices->dtype == RN_INT64)
      deal_int64_t(deal, piece);
    else if (deal->indices->dtype == RN_INT32)
      deal_int32_t(deal, piece);
    else
      deal_int16_t(deal, piece);
  }
}

void rn_row_batches(rn_pool_t* pool, const rn_tensor_t* indices, int64_t limit, double row_ns,
                    rn_row_batch_fn_t body, void* arg) {
  double pieces = (double)indices->count * row_ns / PIECE_NS;
  row_batches_deal_t deal = {.indices = indices,
                             .limit = limit > 0 ? (uint64_t)limit : 0,
                             .pieces = pieces < 2            ? 1
                                       : pieces > MAX_PIECES ? MAX_PIECES
                                                             : (int64_t)pieces,
                             .body = body,
                             .arg = arg};
  rn_pool_for(pool, deal.pieces, 1, deal_piece, &deal);
}

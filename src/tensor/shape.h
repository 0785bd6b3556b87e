// Partial shapes: what is known of a tensor's shape before it exists.
//
// A shape is a value; its dims are in an arena or a static table and never change.
#ifndef RUNNEL_TENSOR_SHAPE_H_
#define RUNNEL_TENSOR_SHAPE_H_

#include "base/arena.h"
#include "base/str.h"

#define RN_MAX_RANK 254  // TensorFlow's limit
#define RN_UNKNOWN (-1)  // a dimension, or a rank, that is not known

typedef struct rn_shape_t {
  int32_t rank;         // RN_UNKNOWN if not even the rank is known
  const int64_t* dims;  // Borrowed; |rank| of them, RN_UNKNOWN where not known
} rn_shape_t;

#define RN_SHAPE_UNKNOWN ((rn_shape_t){RN_UNKNOWN, NULL})
#define RN_SHAPE_SCALAR ((rn_shape_t){0, NULL})

static inline bool rn_shape_has_rank(rn_shape_t shape) { return shape.rank >= 0; }
// Whether every dimension is known.
bool rn_shape_is_full(rn_shape_t shape);
// Same rank and dims, unknown ones counting as values.
bool rn_shape_eq(rn_shape_t a, rn_shape_t b);
// Whether some full shape fits both.
bool rn_shape_compatible(rn_shape_t a, rn_shape_t b);
// Number of elements, RN_UNKNOWN if not known; false if it overflows int64 or a dim is below
// RN_UNKNOWN.
bool rn_shape_count(rn_shape_t shape, int64_t* out_count);

// Copies the dims into |arena|.
RN_MUST_USE rn_status_t rn_shape_copy(rn_arena_t* arena, rn_shape_t shape, rn_shape_t* out);

// "[2,?,3]", "[]", "<unknown>": as TensorFlow prints partial shapes.
void rn_shape_print(rn_strbuf_t* buf, rn_shape_t shape);

#endif  // RUNNEL_TENSOR_SHAPE_H_

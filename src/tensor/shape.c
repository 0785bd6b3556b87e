// Partial shapes.
#include "tensor/shape.h"

#include <inttypes.h>

bool rn_shape_is_full(rn_shape_t shape) {
  if (!rn_shape_has_rank(shape)) return false;
  for (int32_t i = 0; i < shape.rank; i++) {
    if (shape.dims[i] < 0) return false;
  }
  return true;
}

bool rn_shape_eq(rn_shape_t a, rn_shape_t b) {
  if (a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; i++) {
    if (a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

bool rn_shape_compatible(rn_shape_t a, rn_shape_t b) {
  if (!rn_shape_has_rank(a) || !rn_shape_has_rank(b)) return true;
  if (a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; i++) {
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

bool rn_shape_count(rn_shape_t shape, int64_t* out_count) {
  // The running product may overflow before a later 0 makes it 0; TensorFlow refuses such shapes
  // too, and loops over the leading dimensions rely on it.
  int64_t count = 1;
  bool known = rn_shape_has_rank(shape);
  for (int32_t i = 0; i < shape.rank; i++) {
    if (shape.dims[i] < RN_UNKNOWN) return false;
    if (shape.dims[i] == RN_UNKNOWN) {
      known = false;
    } else if (!rn_mul_i64_ok(count, shape.dims[i], &count)) {
      return false;
    }
  }
  *out_count = known ? count : RN_UNKNOWN;
  return true;
}

rn_status_t rn_shape_copy(rn_arena_t* arena, rn_shape_t shape, rn_shape_t* out) {
  *out = (rn_shape_t){.rank = shape.rank};
  if (shape.rank <= 0) return RN_OK;
  int64_t* dims = NULL;
  rn_status_t status = RN_ARENA_ARRAY(arena, (size_t)shape.rank, &dims);
  if (!rn_ok(status)) {
    *out = RN_SHAPE_UNKNOWN;
    return status;
  }
  memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
  out->dims = dims;
  return RN_OK;
}

void rn_shape_print(rn_strbuf_t* buf, rn_shape_t shape) {
  if (!rn_shape_has_rank(shape)) {
    rn_strbuf_append(buf, RN_STR("<unknown>"));
    return;
  }
  rn_strbuf_append(buf, RN_STR("["));
  for (int32_t i = 0; i < shape.rank; i++) {
    if (i) rn_strbuf_append(buf, RN_STR(","));
    if (shape.dims[i] < 0) {
      rn_strbuf_append(buf, RN_STR("?"));
    } else {
      rn_strbuf_printf(buf, "%" PRId64, shape.dims[i]);
    }
  }
  rn_strbuf_append(buf, RN_STR("]"));
}

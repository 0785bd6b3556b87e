// See shapes.h.
#include "kernels/cuda/jit/shapes.h"

// Neighbouring dimensions that are treated alike, merged. |kinds| says how: which operands have
// them, or whether they are reduced.
typedef struct merged_t {
  int count;
  int64_t dims[RN_JIT_MAX_RANK];
  uint64_t kinds[RN_JIT_MAX_RANK];
} merged_t;

static rn_status_t merge(merged_t* merged, int64_t dim, uint64_t kind) {
  if (dim == 1) return RN_OK;
  if (merged->count > 0 && merged->kinds[merged->count - 1] == kind) {
    if (!rn_mul_i64_ok(merged->dims[merged->count - 1], dim, &merged->dims[merged->count - 1]))
      return rn_invalid_argument("A loop has too many elements");
    return RN_OK;
  }
  if (merged->count == RN_JIT_MAX_RANK)
    return rn_unimplemented("A loop has more than %d dimensions", RN_JIT_MAX_RANK);
  merged->dims[merged->count] = dim;
  merged->kinds[merged->count++] = kind;
  return RN_OK;
}

static int64_t product(const merged_t* merged, int from, int to) {
  int64_t result = 1;
  for (int i = from; i < to; ++i) result *= merged->dims[i];
  return result;
}

// The operands, as bits, that have dimension |d| of the space: the others broadcast there.
static rn_status_t find_kind(rn_shape_t space, const rn_shape_t* shapes, int count, int d,
                             uint64_t* out) {
  *out = 0;
  for (int i = 0; i < count; ++i) {
    const int at = d - (space.rank - shapes[i].rank);
    if (at < 0 || shapes[i].dims[at] == 1) continue;
    if (shapes[i].dims[at] != space.dims[d])
      return rn_invalid_argument("A loop's operand %d has %lld elements in a dimension of %lld", i,
                                 (long long)shapes[i].dims[at], (long long)space.dims[d]);
    *out |= UINT64_C(1) << i;
  }
  return RN_OK;
}

static rn_jit_access_t choose_access(const merged_t* merged, int operand, rn_jit_operand_t* input) {
  const uint64_t bit = UINT64_C(1) << operand;
  int first = merged->count, last = -1, present = 0;
  for (int d = 0; d < merged->count; ++d) {
    if (!(merged->kinds[d] & bit)) continue;
    if (first == merged->count) first = d;
    last = d;
    ++present;
  }
  if (present == merged->count) return RN_JIT_LINEAR;
  if (present == 0) return RN_JIT_SCALAR;
  const bool is_one_piece = last - first + 1 == present;
  if (is_one_piece && last == merged->count - 1) {
    input->period = product(merged, first, merged->count);
    return RN_JIT_ROW;
  }
  if (is_one_piece && first == 0) {
    input->period = product(merged, last + 1, merged->count);
    return RN_JIT_COLUMN;
  }
  int64_t stride = 1;
  for (int d = merged->count - 1; d >= 0; --d) {
    input->strides[d] = merged->kinds[d] & bit ? stride : 0;
    if (merged->kinds[d] & bit) stride *= merged->dims[d];
  }
  return RN_JIT_STRIDED;
}

rn_status_t rn_jit_broadcast(rn_shape_t space, const rn_shape_t* shapes, int count,
                             rn_jit_view_t* out, rn_jit_operand_t* inputs) {
  merged_t merged = {0};
  memset(out, 0, sizeof *out);
  for (int i = 0; i < count; ++i)
    if (i >= RN_JIT_MAX_INPUTS || shapes[i].rank > space.rank)
      return rn_invalid_argument("A loop's operand %d has more dimensions than the loop", i);
  out->sizes.count = 1;
  for (int d = 0; d < space.rank; ++d) {
    uint64_t kind;
    RN_RETURN_IF_ERROR(find_kind(space, shapes, count, d, &kind));
    RN_RETURN_IF_ERROR(merge(&merged, space.dims[d], kind));
    if (!rn_mul_i64_ok(out->sizes.count, space.dims[d], &out->sizes.count))
      return rn_invalid_argument("A loop has too many elements");
  }
  out->rank = merged.count;
  for (int d = 0; d < merged.count; ++d) out->sizes.dims[d] = merged.dims[d];
  // Over no elements, nothing is read: the simplest access will do.
  for (int i = 0; i < count; ++i)
    out->access[i] =
        (uint8_t)(out->sizes.count ? choose_access(&merged, i, &inputs[i]) : RN_JIT_LINEAR);
  return RN_OK;
}

enum { KEPT, REDUCED };

// Kept axes first, except the last ones, which stay innermost; the reduced ones between them.
static void permute(const merged_t* merged, rn_jit_view_t* out, rn_jit_operand_t* input) {
  const int last = merged->count - 1, inner = merged->kinds[last] == KEPT ? last : merged->count;
  int order[RN_JIT_MAX_RANK], at = 0;
  for (int d = 0; d < inner; ++d)
    if (merged->kinds[d] == KEPT) order[at++] = d;
  for (int d = 0; d <= last; ++d)
    if (merged->kinds[d] == REDUCED) order[at++] = d;
  if (inner == last) order[at++] = last;
  for (int d = 0; d < at; ++d) {
    out->sizes.dims[d] = merged->dims[order[d]];
    input->strides[d] = product(merged, order[d] + 1, merged->count);
  }
}

rn_status_t rn_jit_reduction(rn_shape_t shape, const bool* goes, rn_jit_view_t* out,
                             rn_jit_operand_t* input) {
  merged_t merged = {0};
  memset(out, 0, sizeof *out);
  rn_jit_sizes_t* sizes = &out->sizes;
  sizes->count = sizes->outer = sizes->reduced = sizes->inner = 1;
  for (int d = 0; d < shape.rank; ++d) {
    RN_RETURN_IF_ERROR(merge(&merged, shape.dims[d], goes[d] ? REDUCED : KEPT));
    if (!rn_mul_i64_ok(sizes->count, shape.dims[d], &sizes->count))
      return rn_invalid_argument("A loop has too many elements");
  }
  int pieces = 0;
  for (int d = 0; d < merged.count; ++d) {
    pieces += merged.kinds[d] == REDUCED;
    if (merged.kinds[d] == REDUCED)
      sizes->reduced *= merged.dims[d];
    else if (d == merged.count - 1 && pieces > 0)
      sizes->inner = merged.dims[d];
    else
      sizes->outer *= merged.dims[d];
  }
  out->access[0] = RN_JIT_LINEAR;
  if (pieces < 2 || sizes->count == 0) return RN_OK;
  out->rank = merged.count;
  out->access[0] = RN_JIT_STRIDED;
  permute(&merged, out, input);
  return RN_OK;
}

// See slice_spec.h. First maps the entries to the input's axes: an ellipsis takes the axes left
// over by the other entries, a new axis takes none.
#include "kernels/cpu/array/slice_spec.h"

#include "kernels/cpu/array.h"

// The masks have one bit per entry; stock accepts fewer entries than this.
#define MAX_ENTRIES 32

enum { NEW_AXIS = -1, SHRUNK_AXIS = -2 };

typedef struct axis_t {
  int64_t begin, end, stride;
  bool masks_begin, masks_end, shrinks;
} axis_t;

typedef struct slice_spec_dense_t {
  int32_t rank, out_count;
  axis_t axes[RN_MAX_RANK];
  int16_t out_from[RN_MAX_RANK + MAX_ENTRIES];  // an input axis, or one of the marks
} slice_spec_dense_t;

void rn_slice_masks_init(const rn_kernel_init_t* init, rn_slice_masks_t* out) {
  *out = (rn_slice_masks_t){
      (uint64_t)rn_init_int(init, "begin_mask"), (uint64_t)rn_init_int(init, "end_mask"),
      (uint64_t)rn_init_int(init, "ellipsis_mask"), (uint64_t)rn_init_int(init, "new_axis_mask"),
      (uint64_t)rn_init_int(init, "shrink_axis_mask")};
}

static rn_status_t spread(int32_t rank, const rn_tensor_t* begin, const rn_tensor_t* end,
                          const rn_tensor_t* strides, const rn_slice_masks_t* masks,
                          slice_spec_dense_t* dense) {
  const int32_t count = (int32_t)begin->count;
  const uint64_t entries = (UINT64_C(1) << count) - 1;
  // Bits beyond the last entry count as well.
  if (masks->ellipsis & (masks->ellipsis - 1))
    return rn_invalid_argument("Multiple ellipses in slice spec not allowed");
  uint64_t ellipsis = masks->ellipsis & entries;
  if (!ellipsis) ellipsis = UINT64_C(1) << count;
  int32_t taken = 0;  // number of axes taken by entries other than the ellipsis
  for (int32_t i = 0; i < count; ++i)
    taken += !((ellipsis | (masks->new_axis & ~ellipsis)) >> i & 1);
  dense->rank = rank;
  dense->out_count = 0;
  int32_t axis = 0;
  for (int32_t i = 0; i <= count; ++i) {
    if (ellipsis >> i & 1) {
      for (int32_t left = rank - taken; left > 0; --left) {
        dense->axes[axis] = (axis_t){0, 0, 1, true, true, false};
        dense->out_from[dense->out_count++] = (int16_t)axis++;
      }
    } else if (i == count) {
      break;
    } else if (masks->new_axis >> i & 1) {
      dense->out_from[dense->out_count++] = NEW_AXIS;
    } else {
      if (axis == rank)
        return rn_invalid_argument("Index out of range using input dim %d; input has only %d dims",
                                   axis, rank);
      bool shrinks = masks->shrink_axis >> i & 1;
      dense->axes[axis] =
          (axis_t){rn_int_at(begin, i),   rn_int_at(end, i),   rn_int_at(strides, i),
                   masks->begin >> i & 1, masks->end >> i & 1, shrinks};
      dense->out_from[dense->out_count++] = shrinks ? SHRUNK_AXIS : (int16_t)axis;
      ++axis;
    }
  }
  return RN_OK;
}

// Clamps a bound to the range that is valid for the direction of |stride|.
static int64_t bound(int64_t value, bool masked, bool is_end, int64_t dim, int64_t stride) {
  int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
  if (masked) return is_end == (stride > 0) ? high : low;
  if (value < 0) value += dim;
  return value < low ? low : value > high ? high : value;
}

static rn_status_t work_out(const axis_t* axis, int32_t d, int64_t dim, rn_slice_spec_t* out) {
  if (axis->stride == 0) return rn_invalid_argument("strides[%d] must be non-zero", d);
  if (axis->shrinks) {
    if (axis->stride < 0)
      return rn_invalid_argument("only stride 1 allowed on non-range indexing.");
    int64_t at = axis->begin < 0 ? axis->begin + dim : axis->begin;
    if (at < 0 || at >= dim)
      return rn_invalid_argument("slice index %lld of dimension %d out of bounds.", (long long)at,
                                 d);
    out->begin[d] = at;
    out->stride[d] = 1;
    out->size[d] = 1;
    return RN_OK;
  }
  int64_t begin = bound(axis->begin, axis->masks_begin, false, dim, axis->stride);
  int64_t end = bound(axis->end, axis->masks_end, true, dim, axis->stride);
  int64_t length = end - begin;
  out->begin[d] = begin;
  out->stride[d] = axis->stride;
  out->size[d] = length == 0 || (length < 0) != (axis->stride < 0)
                     ? 0
                     : length / axis->stride + (length % axis->stride != 0);
  // A single element has no successor, so ignore the stride, however large.
  if (out->size[d] <= 1) out->stride[d] = 1;
  return RN_OK;
}

rn_status_t rn_slice_spec_make(rn_shape_t shape, const rn_tensor_t* begin, const rn_tensor_t* end,
                               const rn_tensor_t* strides, const rn_slice_masks_t* masks,
                               rn_slice_spec_t* out) {
  if (begin->rank != 1 || end->rank != 1 || strides->rank != 1 || begin->count != end->count ||
      begin->count != strides->count || begin->count >= MAX_ENTRIES)
    return rn_invalid_argument(
        "Expected begin, end, and strides to be 1D equal size tensors, but got shapes %s, %s, and "
        "%s instead.",
        rn_text_of(begin).text, rn_text_of(end).text, rn_text_of(strides).text);
  slice_spec_dense_t dense;
  RN_RETURN_IF_ERROR(spread(shape.rank, begin, end, strides, masks, &dense));
  out->rank = shape.rank;
  for (int32_t d = 0; d < shape.rank; ++d)
    RN_RETURN_IF_ERROR(work_out(&dense.axes[d], d, shape.dims[d], out));
  out->out_rank = 0;
  for (int32_t i = 0; i < dense.out_count; ++i) {
    if (dense.out_from[i] == SHRUNK_AXIS) continue;
    if (out->out_rank == RN_MAX_RANK)
      return rn_invalid_argument("Tensors have at most %d dimensions", RN_MAX_RANK);
    out->out_axis[out->out_rank] = dense.out_from[i];
    out->out_dims[out->out_rank++] =
        dense.out_from[i] == NEW_AXIS ? 1 : out->size[dense.out_from[i]];
  }
  return RN_OK;
}

// The input strides of the slice; returns its start offset.
static int64_t walk(const rn_slice_spec_t* spec, rn_shape_t shape, int64_t* steps) {
  int64_t step = 1, offset = 0;
  for (int32_t d = spec->rank - 1; d >= 0; --d) {
    steps[d] = step * spec->stride[d];
    offset += step * spec->begin[d];
    step *= shape.dims[d];
  }
  return offset;
}

void rn_slice_spec_read(const rn_slice_spec_t* spec, rn_shape_t shape, rn_move_t* out_move,
                        int64_t* out_offset) {
  int64_t steps[RN_MAX_RANK], count = 1;
  *out_offset = walk(spec, shape, steps);
  for (int32_t d = 0; d < spec->rank; ++d) count *= spec->size[d];
  rn_move_begin(out_move);
  for (int32_t d = 0; d < spec->rank; ++d) {
    count /= spec->size[d];
    rn_move_add(out_move, spec->size[d], steps[d], count);
  }
}

rn_status_t rn_slice_spec_write(const rn_slice_spec_t* spec, rn_shape_t shape,
                                const rn_tensor_t* value, rn_move_t* out_move,
                                int64_t* out_offset) {
  const int64_t* dims = rn_tensor_dims(value);
  const int32_t missing = spec->out_rank - value->rank;
  bool fits = true, is_empty = false;
  for (int32_t d = 0; d < spec->out_rank; ++d) is_empty = is_empty || spec->out_dims[d] == 0;
  // As in stock, an empty slice accepts any value.
  for (int32_t d = 0; d < value->rank && !is_empty; ++d) {
    int64_t size = d + missing < 0 ? 1 : spec->out_dims[d + missing];
    fits = fits && (dims[d] == size || dims[d] == 1);
  }
  if (!fits)
    return rn_invalid_argument("Cannot broadcast input shape %s into final shape %s",
                               rn_text_of(value).text,
                               rn_shape_text((rn_shape_t){spec->out_rank, spec->out_dims}).text);
  int64_t steps[RN_MAX_RANK], left = value->count;
  *out_offset = walk(spec, shape, steps);
  rn_move_begin(out_move);
  for (int32_t d = 0; d < spec->out_rank; ++d) {
    int64_t size = d < missing ? 1 : dims[d - missing];
    if (size > 0) left /= size;
    if (spec->out_axis[d] >= 0)
      rn_move_add(out_move, spec->out_dims[d], size == 1 ? 0 : left, steps[spec->out_axis[d]]);
  }
  return RN_OK;
}

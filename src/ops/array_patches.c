// Shape functions of patches extracted from images and volumes, and of Roll.
#include "ops/shapes.h"

// A list attribute of |rank| numbers.
static rn_status_t list_of(rn_shape_ctx_t* ctx, const char* name, const char* called, int rank,
                           const int64_t** out) {
  const rn_attr_value_t* list = rn_shape_attr(ctx, name);
  *out = list->list_i;
  if (list->count == rank) return RN_OK;
  return rn_invalid_argument("%s requires the %s attribute to contain %d values, but got: %d",
                             ctx->op->name, called, rank, list->count);
}

// The number of windows that fit: 0 if the window is slightly larger than the input, an error if it
// is much larger.
static rn_status_t window_count(int64_t size, int64_t window, int64_t rate, int64_t stride,
                                bool is_same, int64_t* out) {
  int64_t reach, end;
  if (stride <= 0) return rn_invalid_argument("Stride must be > 0, but got %" PRId64, stride);
  if (is_same) return rn_ops_window(size, window, 1, stride, RN_STR("SAME"), 0, 0, out);
  if (!rn_mul_i64_ok(window - 1, rate - 1, &reach) || !rn_add_i64_ok(reach, window, &reach) ||
      !rn_add_i64_ok(size, stride, &end) || __builtin_sub_overflow(end, reach, &end))
    return rn_invalid_argument("Window size, dilation or padding is too large");
  *out = end / stride;
  if (*out >= 0) return RN_OK;
  return rn_invalid_argument("Computed output size would be negative: %" PRId64
                             " [input_size: %" PRId64 ", effective_filter_size: %" PRId64
                             ", stride: %" PRId64 "]",
                             *out, size, reach, stride);
}

static rn_status_t patches(rn_shape_ctx_t* ctx, int rank, bool has_rates) {
  rn_shape_t in;
  const int64_t *sizes, *strides, *rates = NULL;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), rank, &in));
  RN_TRY(list_of(ctx, "ksizes", "ksizes", rank, &sizes));
  RN_TRY(list_of(ctx, "strides", "stride", rank, &strides));
  if (has_rates) RN_TRY(list_of(ctx, "rates", "rates", rank, &rates));
  int64_t dims[5] = {in.dims[0], RN_UNKNOWN, RN_UNKNOWN, RN_UNKNOWN}, depth = in.dims[rank - 1];
  bool is_same = rn_str_is(rn_shape_attr(ctx, "padding")->s, "SAME"), is_known = true;
  for (int i = 1; i < rank - 1; ++i) {
    RN_TRY(rn_ops_multiply(depth, sizes[i], &depth));
    is_known &= in.dims[i] != RN_UNKNOWN;
  }
  for (int i = 1; is_known && i < rank - 1; ++i)
    RN_TRY(window_count(in.dims[i], sizes[i], rates ? rates[i] : 1, strides[i], is_same, &dims[i]));
  dims[rank - 1] = depth;
  return rn_shape_make(ctx, rank, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_extract_image_patches(rn_shape_ctx_t* ctx) { return patches(ctx, 4, true); }
rn_status_t rn_shape_fn_extract_volume_patches(rn_shape_ctx_t* ctx) {
  return patches(ctx, 5, false);
}

rn_status_t rn_shape_fn_roll(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &unused));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 1), 1, &unused));
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 2), 1, &unused));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 1), rn_shape_in(ctx, 2), &unused));
  return rn_shape_fn_unchanged(ctx);
}

// Helpers for shape functions.
#ifndef RUNNEL_OPS_SHAPES_H_
#define RUNNEL_OPS_SHAPES_H_

#include <inttypes.h>
#include <limits.h>

#include "framework/shape_fn.h"

#define RN_TRY(expression) RN_RETURN_IF_ERROR(expression)

// Whether two strings are equal.
static inline bool rn_ops_is(const char* a, const char* b) { return !strcmp(a, b); }
static inline int64_t rn_ops_int(const rn_shape_ctx_t* ctx, const char* name) {
  return rn_shape_attr(ctx, name)->i;
}
static inline bool rn_ops_bool(const rn_shape_ctx_t* ctx, const char* name) {
  return rn_shape_attr(ctx, name)->b;
}

// The shape in attribute |name|.
RN_MUST_USE rn_status_t rn_ops_attr_shape(rn_shape_ctx_t* ctx, const char* name, rn_shape_t* out);
// Fails unless input |i| can have this rank.
RN_MUST_USE rn_status_t rn_ops_check_rank(rn_shape_ctx_t* ctx, int i, int rank);
// Fails unless input |i| can be a vector of |size| elements.
RN_MUST_USE rn_status_t rn_ops_check_vector(rn_shape_ctx_t* ctx, int i, int64_t size);
// Fails unless inputs |first| to |last| can be scalars.
RN_MUST_USE rn_status_t rn_ops_check_scalars(rn_shape_ctx_t* ctx, int first, int last);
// Reads a size from the scalar input |i|; RN_UNKNOWN if its value is not known.
RN_MUST_USE rn_status_t rn_ops_size_from_input(rn_shape_ctx_t* ctx, int i, int64_t* out_size);
// Reads an axis of a tensor of |rank| (may be RN_UNKNOWN) from the scalar input |i| and makes it
// non-negative; RN_UNKNOWN if not known.
RN_MUST_USE rn_status_t rn_ops_axis_from_input(rn_shape_ctx_t* ctx, int i, int rank,
                                               int64_t* out_axis);
// The smallest rank that has this axis; more than RN_MAX_RANK if none does.
static inline int rn_ops_rank_for_axis(int64_t axis) {
  if (axis < -RN_MAX_RANK || axis >= RN_MAX_RANK) return RN_MAX_RANK + 1;
  return (int)(axis < 0 ? -axis : axis + 1);
}
// Merges the shapes of inputs |first| to |last|.
RN_MUST_USE rn_status_t rn_ops_merge_inputs(rn_shape_ctx_t* ctx, int first, int last,
                                            rn_shape_t* out);
// Merges |prefix| into the first dims of |*inout_shape|.
RN_MUST_USE rn_status_t rn_ops_merge_prefix(rn_shape_ctx_t* ctx, rn_shape_t prefix,
                                            rn_shape_t* inout_shape);
// |dim| / |by|; fails if there is a remainder.
RN_MUST_USE rn_status_t rn_ops_divide(int64_t dim, int64_t by, int64_t* out);
// a + b and a * b; RN_UNKNOWN if either is, an error on overflow.
RN_MUST_USE rn_status_t rn_ops_add(int64_t a, int64_t b, int64_t* out);
RN_MUST_USE rn_status_t rn_ops_multiply(int64_t a, int64_t b, int64_t* out);
// The output size of a window sliding over |size| elements. |padding|: SAME, VALID or EXPLICIT,
// with |before| and |after|.
RN_MUST_USE rn_status_t rn_ops_window(int64_t size, int64_t window, int64_t dilation,
                                      int64_t stride, rn_str_t padding, int64_t before,
                                      int64_t after, int64_t* out);

// Shape functions that their quantized variants call first.
rn_status_t rn_shape_fn_avg_pool(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_bias_add_v1(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_conv2d(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_depthwise_conv2d(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_matmul(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_max_pool(rn_shape_ctx_t* ctx);
rn_status_t rn_shape_fn_reshape(rn_shape_ctx_t* ctx);
// Outputs 0 and 1 are vectors of unknown size.
RN_MUST_USE rn_status_t rn_ops_two_vectors(rn_shape_ctx_t* ctx);
// Output 0 is a handle of values with the type and the shape in these attributes.
RN_MUST_USE rn_status_t rn_ops_output_handle(rn_shape_ctx_t* ctx, const char* dtype,
                                             const char* shape);
// Output 0 is [count, height, width, depth], with height and width from input |i|.
RN_MUST_USE rn_status_t rn_ops_resized(rn_shape_ctx_t* ctx, int i, int64_t count, int64_t depth);
// Concatenates inputs |first| … |last| along the axis given by input |axis_input|.
RN_MUST_USE rn_status_t rn_ops_concat(rn_shape_ctx_t* ctx, int first, int last, int axis_input);
// Checks the limits at inputs |at| and |at| + 1: vectors with one entry per index of |axis| of
// |in|, or scalars if |axis| is -1.
RN_MUST_USE rn_status_t rn_ops_check_limits(rn_shape_ctx_t* ctx, rn_shape_t in, int at,
                                            int64_t axis, rn_shape_t* out_limits);

#endif  // RUNNEL_OPS_SHAPES_H_

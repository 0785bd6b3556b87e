// Convolutions of the Uniform ops, with XLA's generality: any number of spatial dimensions in any
// order, both operands dilated, groups of channels and of images. The shape functions and the
// kernels share their checks and their geometry.
#ifndef RUNNEL_FRAMEWORK_UNIFORM_CONV_H_
#define RUNNEL_FRAMEWORK_UNIFORM_CONV_H_

#include "framework/attr.h"

#define RN_UNIFORM_RANK 16  // most dimensions of an operand
#define RN_UNIFORM_SPACE (RN_UNIFORM_RANK - 2)

typedef enum rn_uniform_padding_t {
  RN_UNIFORM_VALID,
  RN_UNIFORM_SAME,
  RN_UNIFORM_EXPLICIT
} rn_uniform_padding_t;

// A list attribute; |count| may be larger than what |values| holds, and then no rank fits.
typedef struct rn_uniform_list_t {
  int64_t values[2 * RN_UNIFORM_SPACE];
  int32_t count;
} rn_uniform_list_t;

// Which dimension of a tensor is what: its first (batch; of filters the outputs), its second
// (features; of filters the inputs), and those in space.
typedef struct rn_uniform_order_t {
  int64_t first, second;
  rn_uniform_list_t space;
} rn_uniform_order_t;

// The attributes.
typedef struct rn_uniform_conv_t {
  rn_uniform_list_t strides, explicit_padding, lhs_dilation, rhs_dilation;
  rn_uniform_padding_t padding;
  int64_t batch_groups, feature_groups;
  bool has_orders;  // else the dimensions are in the order first, second, space
  rn_uniform_order_t lhs, rhs, output;
} rn_uniform_conv_t;

// What an attribute of |from| is.
typedef const rn_attr_value_t* (*rn_uniform_attr_fn_t)(const void* from, const char* name);

// Reads the attributes; INVALID_ARGUMENT, in stock's words, for those that no operands fit.
RN_MUST_USE rn_status_t rn_uniform_conv_read(const void* from, rn_uniform_attr_fn_t attr,
                                             rn_uniform_conv_t* out);

// Sizes in space.
typedef struct rn_uniform_window_t {
  int64_t in, kernel, out;
  int64_t stride, before, in_dilation, kernel_dilation;
} rn_uniform_window_t;

typedef struct rn_uniform_geometry_t {
  rn_uniform_order_t lhs, rhs, output;
  int space;  // number of windows
  rn_uniform_window_t windows[RN_UNIFORM_SPACE];
  int64_t dims[RN_UNIFORM_RANK];  // of the output
} rn_uniform_geometry_t;

// The geometry of operands with these full shapes. INVALID_ARGUMENT, in stock's words, if they do
// not fit each other or the attributes.
RN_MUST_USE rn_status_t rn_uniform_conv_geometry(const rn_uniform_conv_t* conv, rn_shape_t lhs,
                                                 rn_shape_t rhs, rn_uniform_geometry_t* out);

#endif  // RUNNEL_FRAMEWORK_UNIFORM_CONV_H_

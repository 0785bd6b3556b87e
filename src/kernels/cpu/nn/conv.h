// Convolutions of images, channels last, and their gradients.
//
// x is the image [batch, rows, columns, in_depth], w the filter [rows, columns, in_depth / groups,
// out_depth], y the result [batch, rows, columns, out_depth]. The gradients take the gradient of y
// in its place and give that of x or of w.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_H_

#include "base/sync.h"
#include "framework/kernel.h"
#include "kernels/cpu/nn/window.h"

typedef enum rn_conv_kind_t {
  RN_CONV_FORWARD,  // y = x * w
  RN_CONV_INPUT,    // x from w and y
  RN_CONV_FILTER,   // w from x and y
} rn_conv_kind_t;

typedef struct rn_conv_t {
  rn_conv_kind_t kind;
  // From here on int64_t only: compared as bytes.
  int64_t batch, in_depth, out_depth, groups;
  rn_window_axis_t rows, columns;
  int64_t
      then;  // what follows: a byte a step, its code and the form of its operand; see conv_float
} rn_conv_t;

// Two are read, the third is written, as the kind says.
typedef struct rn_conv_data_t {
  void *x, *w, *y;
} rn_conv_data_t;

static inline int64_t rn_conv_x_size(const rn_conv_t* conv) {  // elements of one image
  return conv->rows.in * conv->columns.in * conv->in_depth;
}
static inline int64_t rn_conv_y_size(const rn_conv_t* conv) {
  return conv->rows.out * conv->columns.out * conv->out_depth;
}
static inline int64_t rn_conv_w_size(const rn_conv_t* conv) {
  return conv->rows.filter * conv->columns.filter * (conv->in_depth / conv->groups) *
         conv->out_depth;
}
static inline double rn_conv_flops(const rn_conv_t* conv) {  // of one image
  return 2.0 * (double)(conv->rows.out * conv->columns.out) * (double)rn_conv_w_size(conv);
}

// What follows a forward convolution element by element, in the same pass over memory.
typedef enum rn_conv_code_t {
  RN_CONV_ADD = 1,
  RN_CONV_SUB,
  RN_CONV_MUL,
  RN_CONV_RELU,
  RN_CONV_RELU6,
} rn_conv_code_t;
typedef struct rn_conv_step_t {
  rn_conv_code_t code;
  const float* operand;  // NULL: it has none
  int64_t count;         // of its elements: one, one a channel, or as many as y has
} rn_conv_step_t;
#define RN_CONV_MOST_STEPS 7
typedef struct rn_conv_extra_t {
  rn_conv_step_t steps[RN_CONV_MOST_STEPS];
  int32_t step_count;
  // The filter, where it is worth keeping a copy in blocks for the next call: a constant, or the
  // value of a variable that steps only read. As long as the copy is kept, so is the filter, and
  // nobody may write what somebody else keeps. NULL: it is copied each time.
  const rn_tensor_t* filter;
} rn_conv_extra_t;

// What a kernel keeps between its calls: oneDNN's compiled loops for the shapes it met. Zeroed
// memory is an empty one, once its mutex is made. Any number of calls at once.
typedef struct rn_conv_cache_t {
  rn_mutex_t mutex;
  struct rn_conv_engine_t* engine;  // Owned; made when first needed
} rn_conv_cache_t;

void rn_conv_cache_init(rn_conv_cache_t* cache);
void rn_conv_cache_clear(rn_conv_cache_t* cache);

// The sizes of Conv2D(x, w), checked as far as they must be before y is made.
RN_MUST_USE rn_status_t rn_conv_forward_sizes(const rn_window_attrs_t* attrs, const rn_tensor_t* x,
                                              const rn_tensor_t* w, rn_conv_t* out);

// Does the steps from number |first| on over the pixels [begin, end) of y.
void rn_conv_follow(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                    int64_t begin, int64_t end);

// Floats, through oneDNN. |extra| may be NULL. |*out_done| is false if the library is not there or
// does not do this one, or not with these steps.
RN_MUST_USE rn_status_t rn_conv_float(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                      const rn_conv_t* conv, rn_conv_data_t data,
                                      const rn_conv_extra_t* extra, bool* out_done);
// Any number type that matrix products know (not the 16-bit floats): patches laid out as rows of a
// matrix.
RN_MUST_USE rn_status_t rn_conv_plain(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, const rn_conv_t* conv,
                                      rn_conv_data_t data);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_H_

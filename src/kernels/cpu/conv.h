// Convolutions of images, channels last, and their gradients.
//
// x is the image [batch, rows, columns, in_depth], w the filter [rows, columns, in_depth / groups,
// out_depth], y the result [batch, rows, columns, out_depth]. The gradients take the gradient of y
// in its place and give that of x or of w.
#ifndef RUNNEL_KERNELS_CPU_CONV_H_
#define RUNNEL_KERNELS_CPU_CONV_H_

#include "base/sync.h"
#include "framework/kernel.h"
#include "kernels/cpu/window.h"

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

// What a kernel keeps between its calls: oneDNN's compiled loops for the shapes it met. Zeroed
// memory is an empty one, once its mutex is made. Any number of calls at once.
typedef struct rn_conv_cache_t {
  rn_mutex_t mutex;
  struct rn_conv_engine_t* engine;  // Owned; made when first needed
} rn_conv_cache_t;

void rn_conv_cache_init(rn_conv_cache_t* cache);
void rn_conv_cache_clear(rn_conv_cache_t* cache);

// Floats, through oneDNN. |*out_done| is false if the library is not there or does not do this one.
RN_MUST_USE rn_status_t rn_conv_float(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                      const rn_conv_t* conv, rn_conv_data_t data, bool* out_done);
// Any number type that matrix products know (not the 16-bit floats): patches laid out as rows of a
// matrix.
RN_MUST_USE rn_status_t rn_conv_plain(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, const rn_conv_t* conv,
                                      rn_conv_data_t data);

#endif  // RUNNEL_KERNELS_CPU_CONV_H_

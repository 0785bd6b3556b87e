// Convolutions of images, channels last, and their gradients.
//
// x is the image [batch, rows, columns, in_depth], w the filter [rows, columns, in_depth / groups,
// out_depth], y the result [batch, rows, columns, out_depth]. The gradients take the gradient of y
// in place of y and compute that of x or w.
#ifndef RUNNEL_KERNELS_CPU_NN_CONV_H_
#define RUNNEL_KERNELS_CPU_NN_CONV_H_

#include "base/sync.h"
#include "framework/kernel.h"
#include "kernels/cpu/keeper.h"
#include "kernels/cpu/nn/window.h"

typedef enum rn_conv_kind_t {
  RN_CONV_FORWARD,  // y = x * w
  RN_CONV_INPUT,    // x from w and y
  RN_CONV_FILTER,   // w from x and y
} rn_conv_kind_t;

typedef struct rn_conv_t {
  rn_conv_kind_t kind;
  // Only int64_t from here on: compared as bytes.
  int64_t batch, in_depth, out_depth, groups;
  rn_window_axis_t rows, columns;
  int64_t then;  // following steps: one byte each, code and operand form; see conv_float
} rn_conv_t;

// Two are read and the third is written, depending on the kind.
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

// Elementwise steps after a forward convolution, in the same pass over memory.
typedef enum rn_conv_code_t {
  RN_CONV_ADD = 1,
  RN_CONV_SUB,
  RN_CONV_MUL,
  RN_CONV_RELU,
  RN_CONV_RELU6,
} rn_conv_code_t;
typedef struct rn_conv_step_t {
  rn_conv_code_t code;
  const float* operand;  // NULL if it has none
  int64_t count;         // its elements: one, one per channel, or as many as y
} rn_conv_step_t;
#define RN_CONV_MOST_STEPS 7
typedef struct rn_conv_extra_t {
  rn_conv_step_t steps[RN_CONV_MOST_STEPS];
  int32_t step_count;
  // The filter, if it is worth keeping a repacked copy for the next call: a constant, or the value
  // of a variable that steps only read. The copy keeps a reference to the filter, so nothing may
  // write to it meanwhile. NULL to repack it in every call.
  const rn_tensor_t* filter;
} rn_conv_extra_t;

// How a filter is packed for the convolutions of our own.
typedef enum rn_conv_way_t {
  RN_CONV_BY_TILES,
  RN_CONV_BY_WINOGRAD_2,
  RN_CONV_BY_WINOGRAD_4,
  RN_CONV_BY_BF16,
  RN_CONV_WAYS,  // at most RN_KEEPER_MOST
} rn_conv_way_t;

// What a kernel caches between calls: the packed filter, and oneDNN's compiled primitives for the
// shapes seen so far. Zeroed memory is an empty cache once its mutex is initialized. Calls may run
// concurrently.
typedef struct rn_conv_cache_t {
  rn_mutex_t mutex;                 // guards the engine
  rn_keeper_t kept;                 // panels of the filter, by rn_conv_way_t
  struct rn_conv_engine_t* engine;  // Owned; created on first use
} rn_conv_cache_t;

void rn_conv_cache_init(rn_conv_cache_t* cache);
void rn_conv_cache_clear(rn_conv_cache_t* cache);

// Reads and checks the attributes of Conv2D and its gradients.
RN_MUST_USE rn_status_t rn_conv_attrs(const rn_kernel_init_t* init, rn_window_attrs_t* out);
// Computes the sizes of Conv2D(x, w) and makes the checks needed to allocate y.
RN_MUST_USE rn_status_t rn_conv_forward_sizes(const rn_window_attrs_t* attrs, const rn_tensor_t* x,
                                              const rn_tensor_t* w, rn_conv_t* out);
// INVALID_ARGUMENT unless the groups divide the output's depth.
RN_MUST_USE rn_status_t rn_conv_check_groups(const rn_conv_t* conv);
// Checks the inputs of Conv2DBackpropInput and Conv2DBackpropFilter and computes their sizes. |x|
// and |w| become the dims of the result, |x| with channels last.
RN_MUST_USE rn_status_t rn_conv_input_sizes(const rn_kernel_ctx_t* ctx,
                                            const rn_window_attrs_t* attrs, int64_t x[4],
                                            rn_conv_t* out);
RN_MUST_USE rn_status_t rn_conv_filter_sizes(const rn_kernel_ctx_t* ctx,
                                             const rn_window_attrs_t* attrs, int64_t w[4],
                                             rn_conv_t* out);

// Computes |conv| for any type, the 16-bit floats too, in the fastest way there is.
RN_MUST_USE rn_status_t rn_conv_run(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, rn_dtype_t dtype,
                                    const rn_conv_t* conv, rn_conv_data_t data);

// Runs the steps from |first| on over the pixels [begin, end) of y.
void rn_conv_follow(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                    int64_t begin, int64_t end);

// Float, by the tiles of GEMM, if rn_conv_tiles_fit. |extra| may be NULL. The same bits with any
// number of threads.
bool rn_conv_tiles_fit(const rn_conv_t* conv);
RN_MUST_USE rn_status_t rn_conv_tiles(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                      const rn_conv_t* conv, rn_conv_data_t data,
                                      const rn_conv_extra_t* extra);
// The gradient of the filter in float, by the tiles of GEMM, if rn_conv_filter_fits. The same bits
// with any number of threads.
bool rn_conv_filter_fits(const rn_conv_t* conv);
RN_MUST_USE rn_status_t rn_conv_filter(rn_kernel_ctx_t* ctx, const rn_conv_t* conv,
                                       rn_conv_data_t data);
// Float, by Winograd's algorithm with tiles of |size| pixels a side: rn_conv_winograd_size, which
// depends on the sizes of |conv| alone and is 0 where plain sums are faster. |extra| may be NULL.
// The same bits with any number of threads.
int rn_conv_winograd_size(const rn_conv_t* conv);
RN_MUST_USE rn_status_t rn_conv_winograd(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                         const rn_conv_t* conv, int size, rn_conv_data_t data,
                                         const rn_conv_extra_t* extra);
// Float, with dilation and stride 1, by Winograd's algorithm too: rn_conv_phases_size is 0 where
// that is not faster. |extra| may be NULL. The same bits with any number of threads.
int rn_conv_phases_size(const rn_conv_t* conv);
RN_MUST_USE rn_status_t rn_conv_phases(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                       const rn_conv_t* conv, int size, rn_conv_data_t data,
                                       const rn_conv_extra_t* extra);
// Float, with a filter of its own for each channel, if rn_conv_depthwise_fits. |extra| may be NULL.
// The same bits with any number of threads.
bool rn_conv_depthwise_fits(const rn_conv_t* conv);
void rn_conv_depthwise(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_conv_data_t data,
                       const rn_conv_extra_t* extra);
// bfloat16, of any kind, by the products of kernels/cpu/bf16.h, if rn_conv_bf16_fits: sums in
// float, rounded once, after the steps of |extra|, which may be NULL. Operands as large as y are
// bfloat16, the others float. The same bits with any number of threads.
bool rn_conv_bf16_fits(const rn_conv_t* conv);
RN_MUST_USE rn_status_t rn_conv_bf16(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                     const rn_conv_t* conv, rn_conv_data_t data,
                                     const rn_conv_extra_t* extra);
// Float, in the fastest of these ways or through oneDNN. |extra| may be NULL. |*out_done| is false
// if the library is needed but missing, or does not support this convolution with these steps.
RN_MUST_USE rn_status_t rn_conv_float(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache,
                                      const rn_conv_t* conv, rn_conv_data_t data,
                                      const rn_conv_extra_t* extra, bool* out_done);
// Any type that GEMM supports (not the 16-bit floats): im2col, with patches as the rows of a
// matrix.
RN_MUST_USE rn_status_t rn_conv_plain(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, const rn_conv_t* conv,
                                      rn_conv_data_t data);

#endif  // RUNNEL_KERNELS_CPU_NN_CONV_H_

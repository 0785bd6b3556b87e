// Depthwise convolution: the outer loop is over windows, the inner one over channels.
#include "kernels/cpu/isa/depthwise.h"

#include "kernels/cpu/isa/isa.h"

// Runs STEP per pair of an output position and an element of its window inside the image; |x|, |w|
// and |y| point to the channels there.
#define WALK(T, first_row, last_row, STEP)                                       \
  do {                                                                           \
    const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;       \
    int64_t depth = conv->depth, out_depth = conv->depth * conv->multiplier;     \
    for (int64_t row = first_row; row < last_row; ++row) {                       \
      T* image = (T*)conv->x + row / rows->out * rows->in * columns->in * depth; \
      for (int64_t column = 0; column < columns->out; ++column) {                \
        T* y = (T*)conv->y + (row * columns->out + column) * out_depth;          \
        int64_t top = row % rows->out * rows->stride - rows->before;             \
        int64_t left = column * columns->stride - columns->before;               \
        for (int64_t i = 0; i < rows->filter; ++i) {                             \
          if (top + i < 0 || top + i >= rows->in) continue;                      \
          for (int64_t j = 0; j < columns->filter; ++j) {                        \
            if (left + j < 0 || left + j >= columns->in) continue;               \
            T* x = image + ((top + i) * columns->in + left + j) * depth;         \
            T* w = (T*)conv->w + (i * columns->filter + j) * out_depth;          \
            STEP;                                                                \
          }                                                                      \
        }                                                                        \
      }                                                                          \
    }                                                                            \
  } while (0)

// One of the three products, for one filter per channel and for several.
#define PRODUCTS(ONE, MANY)                                                               \
  do {                                                                                    \
    if (conv->multiplier == 1) {                                                          \
      RN_IVDEP for (int64_t c = 0; c < depth; ++c) ONE;                                   \
    } else {                                                                              \
      for (int64_t c = 0; c < depth; ++c)                                                 \
        for (int64_t o = c * conv->multiplier; o < (c + 1) * conv->multiplier; ++o) MANY; \
    }                                                                                     \
  } while (0)

#define DEPTHWISE(T, S)                                                             \
  static void forward_##S(const rn_depthwise_t* conv, int64_t begin, int64_t end) { \
    int64_t width = conv->columns.out * conv->depth * conv->multiplier;             \
    for (int64_t i = begin * width; i < end * width; ++i) ((T*)conv->y)[i] = 0;     \
    WALK(T, begin, end, PRODUCTS(y[c] += x[c] * w[c], y[o] += x[c] * w[o]));        \
  }                                                                                 \
  static void input_##S(const rn_depthwise_t* conv, int64_t begin, int64_t end) {   \
    WALK(T, begin * conv->rows.out, end * conv->rows.out,                           \
         PRODUCTS(x[c] += y[c] * w[c], x[c] += y[o] * w[o]));                       \
  }                                                                                 \
  static void filter_##S(const rn_depthwise_t* conv, int64_t begin, int64_t end) {  \
    WALK(T, begin * conv->rows.out, end * conv->rows.out,                           \
         PRODUCTS(w[c] += y[c] * x[c], w[o] += y[o] * x[c]));                       \
  }

DEPTHWISE(float, f32)
DEPTHWISE(double, f64)

const rn_depthwise_fns_t RN_ISA_NAME(rn_depthwise_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = {forward_f32, input_f32, filter_f32},
    [RN_DOUBLE] = {forward_f64, input_f64, filter_f64},
};

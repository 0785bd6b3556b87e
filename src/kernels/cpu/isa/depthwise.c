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
    int64_t size = conv->rows.in * conv->columns.in * conv->depth;                  \
    for (int64_t i = begin * size; i < end * size; ++i) ((T*)conv->x)[i] = 0;       \
    WALK(T, begin * conv->rows.out, end * conv->rows.out,                           \
         PRODUCTS(x[c] += y[c] * w[c], x[c] += y[o] * w[o]));                       \
  }                                                                                 \
  static void filter_##S(const rn_depthwise_t* conv, int64_t begin, int64_t end) {  \
    WALK(T, begin * conv->rows.out, end * conv->rows.out,                           \
         PRODUCTS(w[c] += y[c] * x[c], w[o] += y[o] * x[c]));                       \
  }

DEPTHWISE(float, f32)
DEPTHWISE(double, f64)

// One filter per channel, in floats: sums stay in registers, GROUP of them side by side.
enum { GROUP = 4 };

// The elements [*begin, *end) of an axis of the window at |place| that are inside the image.
static inline void inside(const rn_window_axis_t* axis, int64_t place, int64_t* begin,
                          int64_t* end) {
  const int64_t first = place * axis->stride - axis->before;
  *begin = first < 0 ? -first : 0;
  *end = axis->in - first < axis->filter ? axis->in - first : axis->filter;
}

// acc += the product of |terms| pairs of rows of channels, which are x_step and w_step apart.
typedef struct depthwise_terms_t {
  const float *x, *w;
  int64_t x_step, w_step, terms;
} depthwise_terms_t;

// Calls RUN(n, at, load, store) for registers of channels: whole groups, whole registers, the rest.
#define CHANNELS(depth, RUN)                                                           \
  do {                                                                                 \
    int64_t at = 0;                                                                    \
    for (; at + GROUP * F32_WIDTH <= (depth); at += GROUP * F32_WIDTH) RUN(GROUP, at); \
    for (; at + F32_WIDTH <= (depth); at += F32_WIDTH) RUN(1, at);                     \
    if (at < (depth)) RUN(0, at);                                                      \
  } while (0)

// |count| registers, or the first |rest| channels of one if it is 0.
static inline __attribute__((always_inline)) void add_terms(const depthwise_terms_t* lines,
                                                            int64_t line_count, int64_t terms,
                                                            int count, int64_t at, int64_t rest,
                                                            float* y) {
  vf32_t acc[GROUP];
  const int registers = count ? count : 1;
  RN_UNROLL for (int k = 0; k < registers; ++k) {
    float* to = y + at + k * F32_WIDTH;
    acc[k] = count ? F32_LOAD(to) : F32_LOAD_N(to, rest);
  }
  const int64_t x_step = lines[0].x_step, w_step = lines[0].w_step;
  RN_UNROLL for (int64_t l = 0; l < line_count; ++l) {
    const float *x = lines[l].x + at, *w = lines[l].w + at;
    RN_UNROLL for (int64_t t = 0; t < terms; ++t, x += x_step, w += w_step) {
      RN_UNROLL for (int k = 0; k < registers; ++k) {
        const int64_t o = k * F32_WIDTH;
        if (count)
          acc[k] = F32_FMA(F32_LOAD(x + o), F32_LOAD(w + o), acc[k]);
        else
          acc[k] = F32_FMA(F32_LOAD_N(x, rest), F32_LOAD_N(w, rest), acc[k]);
      }
    }
  }
  RN_UNROLL for (int k = 0; k < registers; ++k) {
    float* to = y + at + k * F32_WIDTH;
    if (count)
      F32_STORE(to, acc[k]);
    else
      F32_STORE_N(to, acc[k], rest);
  }
}

// Adds the products of all terms to y. All lines have the same steps and
// the same number of terms. The usual window has three lines of three: no loop is left of them.
static void sum_terms(const depthwise_terms_t* lines, int64_t count, int64_t depth, float* y) {
  const int64_t terms = lines[0].terms;
#define SUM(n, at) add_terms(lines, count, terms, n, at, depth - (at), y)
#define SUM_NINE(n, at) add_terms(lines, 3, 3, n, at, depth - (at), y)
  if (count == 3 && terms == 3)
    CHANNELS(depth, SUM_NINE);
  else
    CHANNELS(depth, SUM);
#undef SUM
#undef SUM_NINE
}

enum { LINES = 16 };  // rows of a window per pass

// The columns [*begin, *end) of the result whose window's element j is inside the image.
static inline void reached(const rn_window_axis_t* axis, int64_t j, int64_t* begin, int64_t* end) {
  const int64_t first = axis->before - j;  // place * stride >= first
  *begin = first > 0 ? (first + axis->stride - 1) / axis->stride : 0;
  const int64_t last = axis->in - 1 + axis->before - j;  // place * stride <= last
  *end = last < 0 ? 0 : last / axis->stride + 1;
  if (*end > axis->out) *end = axis->out;
}

// The filter's gradient, one row of the result after the other.
static void filter_floats(const rn_depthwise_t* conv, int64_t begin, int64_t end) {
  if (conv->multiplier != 1) {
    filter_f32(conv, begin, end);
    return;
  }
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  const int64_t depth = conv->depth;
  for (int64_t row = begin * rows->out; row < end * rows->out; ++row) {
    const float* image = (const float*)conv->x + row / rows->out * rows->in * columns->in * depth;
    const float* y = (const float*)conv->y + row * columns->out * depth;
    int64_t top, bottom;
    inside(rows, row % rows->out, &top, &bottom);
    for (int64_t i = top; i < bottom; ++i) {
      const int64_t at = row % rows->out * rows->stride - rows->before + i;
      for (int64_t j = 0; j < columns->filter; ++j) {
        int64_t first, last;
        reached(columns, j, &first, &last);
        if (first >= last) continue;
        const int64_t x_at = first * columns->stride - columns->before + j;
        const depthwise_terms_t line = {image + (at * columns->in + x_at) * depth,
                                        y + first * depth, columns->stride * depth, depth,
                                        last - first};
        sum_terms(&line, 1, depth, (float*)conv->w + (i * columns->filter + j) * depth);
      }
    }
  }
}

// The input's gradient for stride 1: each pixel sums what it gave to the results around it.
static void input_pixel(const rn_depthwise_t* conv, const float* dy, int64_t row, int64_t column,
                        float* dx) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  const int64_t depth = conv->depth;
  // Element i of the window at row + before - i; column likewise.
  const int64_t r = row + rows->before, c = column + columns->before;
  const int64_t low_j = c - columns->out + 1 > 0 ? c - columns->out + 1 : 0;
  const int64_t high_j = c + 1 < columns->filter ? c + 1 : columns->filter;
  if (high_j <= low_j) return;
  depthwise_terms_t lines[LINES];
  int64_t count = 0;
  for (int64_t i = r - rows->out + 1 > 0 ? r - rows->out + 1 : 0; i < rows->filter && i <= r; ++i) {
    lines[count++] =
        (depthwise_terms_t){dy + ((r - i) * columns->out + c - low_j) * depth,
                            (const float*)conv->w + (i * columns->filter + low_j) * depth, -depth,
                            depth, high_j - low_j};
    if (count < LINES) continue;
    sum_terms(lines, count, depth, dx);
    count = 0;
  }
  if (count) sum_terms(lines, count, depth, dx);
}

static void input_floats(const rn_depthwise_t* conv, int64_t begin, int64_t end) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  if (conv->multiplier != 1 || rows->stride != 1 || columns->stride != 1) {
    input_f32(conv, begin, end);
    return;
  }
  for (int64_t b = begin; b < end; ++b) {
    const float* dy = (const float*)conv->y + b * rows->out * columns->out * conv->depth;
    float* dx = (float*)conv->x + b * rows->in * columns->in * conv->depth;
    for (int64_t row = 0; row < rows->in; ++row) {
      for (int64_t i = 0; i < columns->in * conv->depth; ++i) dx[i] = 0;
      for (int64_t column = 0; column < columns->in; ++column, dx += conv->depth)
        input_pixel(conv, dy, row, column, dx);
    }
  }
}

const rn_depthwise_fns_t RN_ISA_NAME(rn_depthwise_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = {forward_f32, input_floats, filter_floats},
    [RN_DOUBLE] = {forward_f64, input_f64, filter_f64},
};

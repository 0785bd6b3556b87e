// Convolutions: patches of images as rows of a matrix, and the steps after a convolution.
#include "kernels/cpu/isa/conv.h"

#include "kernels/cpu/isa/isa.h"

#define INLINE static inline __attribute__((always_inline))
// Pixels, and registers of each, that run through the steps together.
#if defined(RN_ISA_avx512)
#define ROWS 4
#define REGISTERS 4
#else
#define ROWS 2
#define REGISTERS 3
#endif

INLINE void copy(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + F32_WIDTH <= n; i += F32_WIDTH) F32_STORE(to + i, F32_LOAD(from + i));
  if (i < n) F32_STORE_N(to + i, F32_LOAD_N(from + i, n - i), n - i);
}

INLINE void clear(float* to, int64_t n) {
  const vf32_t zero = F32_SET1(0);
  int64_t i = 0;
  for (; i + F32_WIDTH <= n; i += F32_WIDTH) F32_STORE(to + i, zero);
  if (i < n) F32_STORE_N(to + i, zero, n - i);
}

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Copies elements [first, last) of |from|, of which only [inside, outside) are in the image.
INLINE void copy_inside(const float* from, int64_t first, int64_t last, int64_t inside,
                        int64_t outside, float* to) {
  int64_t begin = least(most(inside, first), last), end = most(least(outside, last), begin);
  if (begin > first) clear(to, begin - first);
  if (end > begin) copy(from + begin, to + (begin - first), end - begin);
  if (last > end) clear(to + (end - first), last - end);
}

// One row of a filter over one row of the image, or NULL if that is outside: elements [first, last)
// of [columns, depth]. |left| is the column of the image that the first column of the filter reads.
INLINE void patch_row(const rn_conv_t* conv, const float* row, int64_t left, int64_t first,
                      int64_t last, float* to) {
  const rn_window_axis_t* columns = &conv->columns;
  int64_t depth = conv->in_depth;
  if (!row) {
    clear(to, last - first);
    return;
  }
  if (columns->dilation == 1) {
    int64_t outside = most(least(columns->filter, columns->in - left), 0) * depth;
    copy_inside(row + left * depth, first, last, most(-left, 0) * depth, outside, to);
    return;
  }
  for (int64_t at = first; at < last;) {
    int64_t j = at / depth, column = left + j * columns->dilation;
    int64_t end = least((j + 1) * depth, last);
    bool is_inside = column >= 0 && column < columns->in;
    copy_inside(row + (column - j) * depth, at, end, 0, is_inside ? end : 0, to);
    to += end - at;
    at = end;
  }
}

static void patches(const rn_conv_t* conv, const float* x, int64_t begin, int64_t end,
                    int64_t first, int64_t last, float* to, int64_t to_row) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  int64_t span = columns->filter * conv->in_depth, width = columns->in * conv->in_depth;
  int64_t size = rows->out * columns->out, image = begin / size;
  int64_t y_row = begin % size / columns->out, y_column = begin % columns->out;
  for (int64_t pixel = begin; pixel < end; ++pixel, to += to_row) {
    int64_t top = y_row * rows->stride - rows->before;
    int64_t left = y_column * columns->stride - columns->before;
    float* at = to;
    for (int64_t i = first / span; i * span < last; ++i) {
      int64_t row = top + i * rows->dilation;
      bool is_inside = row >= 0 && row < rows->in;
      int64_t from = most(first - i * span, 0), until = least(last - i * span, span);
      patch_row(conv, is_inside ? x + (image * rows->in + row) * width : NULL, left, from, until,
                at);
      at += until - from;
    }
    if (++y_column < columns->out) continue;
    y_column = 0;
    if (++y_row < rows->out) continue;
    y_row = 0;
    ++image;
  }
}

// Runs the steps over |rows| pixels of |registers| registers, or |rest| elements of one, from
// element |at| of y on; |channel| is its channel.
INLINE void run_steps(const rn_conv_extra_t* extra, int32_t first, int64_t channels, float* y,
                      int64_t at, int64_t channel, int rows, int registers, int64_t rest) {
  vf32_t v[ROWS][REGISTERS];
#define ROW _Pragma("GCC unroll 4") for (int i = 0; i < rows; ++i)
#define EACH _Pragma("GCC unroll 4") for (int r = 0; r < registers; ++r)
#define READ(p) (rest ? F32_LOAD_N(p, rest) : F32_LOAD((p) + r * F32_WIDTH))
#define OPERATE(OP)                                                        \
  if (step->count == 1) {                                                  \
    const vf32_t one = F32_SET1(*step->operand);                           \
    ROW EACH v[i][r] = v[i][r] OP one;                                     \
  } else if (step->count == channels) {                                    \
    EACH {                                                                 \
      const vf32_t operand = READ(step->operand + channel);                \
      ROW v[i][r] = v[i][r] OP operand;                                    \
    }                                                                      \
  } else {                                                                 \
    ROW EACH v[i][r] = v[i][r] OP READ(step->operand + at + i * channels); \
  }                                                                        \
  break
  ROW EACH v[i][r] = READ(y + at + i * channels);
  for (int32_t k = first; k < extra->step_count; ++k) {
    const rn_conv_step_t* step = &extra->steps[k];
    switch (step->code) {
      case RN_CONV_ADD:
        OPERATE(+);
      case RN_CONV_SUB:
        OPERATE(-);
      case RN_CONV_MUL:
        OPERATE(*);
      case RN_CONV_RELU:  // NaN and -0 pass
        ROW EACH v[i][r] = F32_MAX(F32_SET1(0), v[i][r]);
        break;
      case RN_CONV_RELU6:
        ROW EACH v[i][r] = F32_MIN(F32_SET1(6), F32_MAX(F32_SET1(0), v[i][r]));
        break;
    }
  }
  ROW EACH {
    float* to = y + at + i * channels + r * F32_WIDTH;
    if (rest)
      F32_STORE_N(to, v[i][r], rest);
    else
      F32_STORE(to, v[i][r]);
  }
#undef OPERATE
#undef READ
#undef EACH
#undef ROW
}

INLINE void follow_rows(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                        int64_t pixel, int rows, int64_t c0, int64_t c1) {
  int64_t row = pixel * channels, c = c0;
  for (; c + REGISTERS * F32_WIDTH <= c1; c += REGISTERS * F32_WIDTH)
    run_steps(extra, first, channels, y, row + c, c, rows, REGISTERS, 0);
  for (; c + F32_WIDTH <= c1; c += F32_WIDTH)
    run_steps(extra, first, channels, y, row + c, c, rows, 1, 0);
  if (c < c1) run_steps(extra, first, channels, y, row + c, c, rows, 1, c1 - c);
}

static void follow(const rn_conv_extra_t* extra, int32_t first, float* y, int64_t channels,
                   int64_t begin, int64_t end, int64_t c0, int64_t c1) {
  if (first >= extra->step_count) return;
  int64_t pixel = begin;
  for (; pixel + ROWS <= end; pixel += ROWS)
    follow_rows(extra, first, y, channels, pixel, ROWS, c0, c1);
  for (; pixel < end; ++pixel) follow_rows(extra, first, y, channels, pixel, 1, c0, c1);
}

const rn_conv_fns_t RN_ISA_NAME(rn_conv_)[1] = {{patches, follow}};

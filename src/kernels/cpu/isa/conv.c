// Convolutions: patches of images as rows of a matrix, and the steps after a convolution.
#include "kernels/cpu/isa/conv.h"

#include <string.h>

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

// The last elements once more, rather than a part of a register: stores of parts are slow.
INLINE void copy_ends(const float* from, float* to, int64_t n, int count) {
  float first[8], last[8];
  memcpy(first, from, (size_t)count * sizeof *to);
  memcpy(last, from + n - count, (size_t)count * sizeof *to);
  memcpy(to, first, (size_t)count * sizeof *to);
  memcpy(to + n - count, last, (size_t)count * sizeof *to);
}

INLINE void copy(const float* from, float* to, int64_t n) {
  if (n >= F32_WIDTH) {
    for (int64_t i = 0; i + F32_WIDTH < n; i += F32_WIDTH) F32_STORE(to + i, F32_LOAD(from + i));
    F32_STORE(to + n - F32_WIDTH, F32_LOAD(from + n - F32_WIDTH));
  } else if (n >= 8) {
    copy_ends(from, to, n, 8);
  } else if (n >= 4) {
    copy_ends(from, to, n, 4);
  } else if (n >= 2) {
    copy_ends(from, to, n, 2);
  } else if (n == 1) {
    *to = *from;
  }
}

INLINE void clear(float* to, int64_t n) {
  static const float from[F32_WIDTH < 8 ? 8 : F32_WIDTH] = {0};
  for (; n > F32_WIDTH; n -= F32_WIDTH, to += F32_WIDTH) F32_STORE(to, F32_SET1(0));
  copy(from, to, n);
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

INLINE void next_pixel(const rn_conv_t* conv, int64_t* image, int64_t* row, int64_t* column) {
  if (++*column < conv->columns.out) return;
  *column = 0;
  if (++*row < conv->rows.out) return;
  *row = 0;
  ++*image;
}

// |count| patches, of which |rows| rows of |span| elements are copied. |ends|: 4 or 8 if a row has
// at least as many elements and at most twice as many, which saves its branches; else 0.
INLINE void copy_patches(const float* from, int64_t step, int64_t width, int64_t count,
                         int64_t rows, int64_t span, int ends, float* to, int64_t to_row) {
  for (int64_t p = 0; p < count; ++p, from += step, to += to_row) {
    const float* row = from;
    float* at = to;
    for (int64_t i = 0; i < rows; ++i, row += width, at += span) {
      if (ends == 8)
        copy_ends(row, at, span, 8);
      else if (ends == 4)
        copy_ends(row, at, span, 4);
      else
        copy(row, at, span);
    }
  }
}

// The patches of columns [begin, end) of a line of the result, for a filter without dilation:
// |above| rows of the filter are above the image, and those from |below| on are below it. |x| is
// the first line inside.
INLINE void line_patches(const rn_conv_t* conv, const float* x, int64_t above, int64_t below,
                         int64_t begin, int64_t end, float* to, int64_t to_row) {
  const rn_window_axis_t* columns = &conv->columns;
  const int64_t depth = conv->in_depth, span = columns->filter * depth;
  const int64_t width = columns->in * depth, step = columns->stride * depth;
  const int64_t rows = conv->rows.filter, inner = below - above;
  for (int64_t column = begin, count; column < end; column += count, to += count * to_row) {
    const int64_t left = column * columns->stride - columns->before;
    const int64_t room = columns->in - columns->filter - left;
    const float* from = x + left * depth;
    float* at = to + above * span;
    if (left >= 0 && room >= 0) {  // all columns inside, and so for some pixels after this one
      count = least(room / columns->stride + 1, end - column);
      if (span >= 8 && span <= 16)
        copy_patches(from, step, width, count, inner, span, 8, at, to_row);
      else if (span >= 4 && span < 8)
        copy_patches(from, step, width, count, inner, span, 4, at, to_row);
      else
        copy_patches(from, step, width, count, inner, span, 0, at, to_row);
    } else {
      count = 1;
      const int64_t inside = least(most(-left, 0), columns->filter) * depth;
      const int64_t outside = most(least(columns->filter, columns->in - left) * depth, inside);
      for (int64_t i = above; i < below; ++i, from += width, at += span) {
        if (inside > 0) clear(at, inside);
        copy(from + inside, at + inside, outside - inside);
        if (outside < span) clear(at + outside, span - outside);
      }
    }
    for (int64_t p = 0; p < count && inner < rows; ++p) {
      clear(to + p * to_row, above * span);
      clear(to + p * to_row + below * span, (rows - below) * span);
    }
  }
}

static void whole_patches(const rn_conv_t* conv, const float* x, int64_t begin, int64_t end,
                          float* to, int64_t to_row) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  const int64_t width = columns->in * conv->in_depth;
  for (int64_t pixel = begin, count; pixel < end; pixel += count, to += count * to_row) {
    const int64_t line = pixel / columns->out, column = pixel % columns->out;
    const int64_t top = line % rows->out * rows->stride - rows->before;
    const int64_t above = least(most(-top, 0), rows->filter);
    const int64_t below = most(least(rows->filter, rows->in - top), above);
    count = least(columns->out - column, end - pixel);
    line_patches(conv, x + (line / rows->out * rows->in + top + above) * width, above, below,
                 column, column + count, to, to_row);
  }
}

static void patches(const rn_conv_t* conv, const float* x, int64_t begin, int64_t end,
                    int64_t first, int64_t last, float* to, int64_t to_row) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  int64_t span = columns->filter * conv->in_depth, width = columns->in * conv->in_depth;
  int64_t size = rows->out * columns->out, image = begin / size;
  int64_t y_row = begin % size / columns->out, y_column = begin % columns->out;
  if (first == 0 && last == rows->filter * span && rows->dilation == 1 && columns->dilation == 1) {
    whole_patches(conv, x, begin, end, to, to_row);
    return;
  }
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
    next_pixel(conv, &image, &y_row, &y_column);
  }
}

// Runs the steps over |v|: |rows| pixels of |registers| registers, or |rest| elements of one. They
// are element |at| of y and those behind it; |channel| is its channel.
INLINE void apply_steps(const rn_conv_extra_t* extra, int32_t first, int64_t channels, int64_t at,
                        int64_t channel, int rows, int registers, int64_t rest,
                        vf32_t v[ROWS][REGISTERS]) {
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
}

INLINE void write_rows(float* y, int64_t channels, int64_t at, int rows, int registers,
                       int64_t rest, vf32_t v[ROWS][REGISTERS]) {
  ROW EACH {
    float* to = y + at + i * channels + r * F32_WIDTH;
    if (rest)
      F32_STORE_N(to, v[i][r], rest);
    else
      F32_STORE(to, v[i][r]);
  }
}

INLINE void run_steps(const rn_conv_extra_t* extra, int32_t first, int64_t channels, float* y,
                      int64_t at, int64_t channel, int rows, int registers, int64_t rest) {
  vf32_t v[ROWS][REGISTERS];
  ROW EACH v[i][r] = READ(y + at + i * channels);
  apply_steps(extra, first, channels, at, channel, rows, registers, rest, v);
  write_rows(y, channels, at, rows, registers, rest, v);
}
#undef OPERATE
#undef READ
#undef EACH
#undef ROW

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

// One filter per channel. The registers of a filter that are kept.
#define KEPT 9

// Pixels of one row of y, for one register of channels, or |rest| elements of it.
typedef struct depthwise_row_t {
  const rn_conv_t* conv;
  const float* x;                // the channels, in the first row that the filter reads
  const float* w;                // and in the first row of the filter that is inside the image
  int64_t filter_rows, columns;  // rows of the filter that are inside; its columns
  int64_t depth, channel, rest;
} depthwise_row_t;

// ROWS pixels with |kept| filters of 3 × 3, stride 1 and no dilation: neighbours share the pixels
// of x that they read.
INLINE void depthwise_neighbours(const depthwise_row_t* row, const vf32_t* kept, int64_t column,
                                 vf32_t v[ROWS][REGISTERS]) {
  const rn_window_axis_t* along = &row->conv->columns;
  const int64_t depth = row->depth;
  const float* x = row->x + (column - along->before) * depth;
  _Pragma("GCC unroll 4") for (int p = 0; p < ROWS; ++p) v[p][0] = F32_SET1(0);
  _Pragma("GCC unroll 3") for (int i = 0; i < 3; ++i, x += along->in * depth) {
    vf32_t pixels[ROWS + 2];
    _Pragma("GCC unroll 6") for (int p = 0; p < ROWS + 2; ++p) pixels[p] = F32_LOAD(x + p * depth);
    _Pragma("GCC unroll 3") for (int j = 0; j < 3; ++j)
        _Pragma("GCC unroll 4") for (int p = 0; p < ROWS; ++p) v[p][0] =
            F32_FMA(pixels[p + j], kept[i * 3 + j], v[p][0]);
  }
}

// |count| pixels from column |column| on; |whole|: all columns of the filter are inside the image.
INLINE void depthwise_pixels(const depthwise_row_t* row, int64_t filter_rows, int64_t columns,
                             const vf32_t* kept, int64_t column, int count, bool whole,
                             vf32_t v[ROWS][REGISTERS]) {
  const rn_window_axis_t *down = &row->conv->rows, *along = &row->conv->columns;
  int64_t depth = row->depth, rest = row->rest;
  int64_t left = column * along->stride - along->before;
  _Pragma("GCC unroll 4") for (int p = 0; p < count; ++p) v[p][0] = F32_SET1(0);
  _Pragma("GCC unroll 3") for (int64_t i = 0; i < filter_rows; ++i) {
    const float* x = row->x + i * down->dilation * along->in * depth + left * depth;
    _Pragma("GCC unroll 3") for (int64_t j = 0; j < columns; ++j) {
      int64_t at = j * along->dilation;
      if (!whole && (left + at < 0 || left + at >= along->in)) continue;
      const float* w = row->w + (i * along->filter + j) * depth;
      const vf32_t tap = kept ? kept[i * 3 + j] : rest ? F32_LOAD_N(w, rest) : F32_LOAD(w);
      _Pragma("GCC unroll 4") for (int p = 0; p < count; ++p) {
        const float* from = x + (at + p * along->stride) * depth;
        v[p][0] = F32_FMA(rest ? F32_LOAD_N(from, rest) : F32_LOAD(from), tap, v[p][0]);
      }
    }
  }
}

// A row of y whose first element is |at|, in pixels of |filter_rows| × |columns|.
INLINE void depthwise_row(const depthwise_row_t* row, int64_t filter_rows, int64_t columns,
                          const vf32_t* kept, const rn_conv_extra_t* extra, int64_t at, float* y) {
  const rn_window_axis_t* along = &row->conv->columns;
  int64_t depth = row->depth, reach = (along->filter - 1) * along->dilation;
  const bool is_near =
      kept && along->stride == 1 && along->dilation == 1 && row->conv->rows.dilation == 1;
  for (int64_t c = 0; c < along->out;) {
    int64_t left = c * along->stride - along->before;
    bool whole = left >= 0 && c + ROWS <= along->out &&
                 left + (ROWS - 1) * along->stride + reach < along->in;
    vf32_t v[ROWS][REGISTERS];
    int count = whole ? ROWS : 1;
    if (whole && is_near)
      depthwise_neighbours(row, kept, c, v);
    else if (whole)
      depthwise_pixels(row, filter_rows, columns, kept, c, ROWS, true, v);
    else
      depthwise_pixels(row, filter_rows, columns, kept, c, 1, false, v);
    int64_t here = at + c * depth;
    if (whole) {
      if (extra) apply_steps(extra, 0, depth, here, row->channel, ROWS, 1, row->rest, v);
      write_rows(y, depth, here, ROWS, 1, row->rest, v);
    } else {
      if (extra) apply_steps(extra, 0, depth, here, row->channel, 1, 1, row->rest, v);
      write_rows(y, depth, here, 1, 1, row->rest, v);
    }
    c += count;
  }
}

// Rows [begin, end) of y, for one register of channels, or |rest| elements of it.
INLINE void depthwise_channels(const rn_conv_t* conv, const float* x, const float* w,
                               const rn_conv_extra_t* extra, int64_t begin, int64_t end,
                               int64_t channel, int64_t rest, float* y) {
  const rn_window_axis_t *down = &conv->rows, *along = &conv->columns;
  int64_t depth = conv->in_depth;
  bool is_three = down->filter == 3 && along->filter == 3 && !rest;
  vf32_t kept[KEPT];
  _Pragma("GCC unroll 9") for (int t = 0; is_three && t < KEPT; ++t) kept[t] =
      F32_LOAD(w + t * depth + channel);
  for (int64_t r = begin; r < end; ++r) {
    int64_t image = r / down->out, top = r % down->out * down->stride - down->before, first = 0;
    int64_t last = down->filter;
    while (first < last && top + first * down->dilation < 0) ++first;
    while (last > first && top + (last - 1) * down->dilation >= down->in) --last;
    int64_t from = image * down->in + top + first * down->dilation;
    depthwise_row_t row = {.conv = conv,
                           .x = x + from * along->in * depth + channel,
                           .w = w + first * along->filter * depth + channel,
                           .filter_rows = last - first,
                           .columns = along->filter,
                           .depth = depth,
                           .channel = channel,
                           .rest = rest};
    int64_t at = r * along->out * depth + channel;
    if (is_three && last - first == 3)
      depthwise_row(&row, 3, 3, kept, extra, at, y);
    else
      depthwise_row(&row, row.filter_rows, row.columns, NULL, extra, at, y);
  }
}

static void depthwise(const rn_conv_t* conv, const rn_conv_data_t* data,
                      const rn_conv_extra_t* extra, const rn_conv_block_t* block) {
  int64_t c = block->first;
  for (; c + F32_WIDTH <= block->last; c += F32_WIDTH)
    depthwise_channels(conv, data->x, data->w, extra, block->begin, block->end, c, 0, data->y);
  if (c < block->last)
    depthwise_channels(conv, data->x, data->w, extra, block->begin, block->end, c, block->last - c,
                       data->y);
}

static void add(const float* from, int64_t step, float* to, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, from += step, to += n) {
    int64_t i = 0;
    for (; i + F32_WIDTH <= n; i += F32_WIDTH)
      F32_STORE(to + i, F32_LOAD(to + i) + F32_LOAD(from + i));
    if (i < n) F32_STORE_N(to + i, F32_LOAD_N(to + i, n - i) + F32_LOAD_N(from + i, n - i), n - i);
  }
}

const rn_conv_fns_t RN_ISA_NAME(rn_conv_)[1] = {{patches, follow, depthwise, add}};

// Winograd's convolutions: a product of polynomials from their values at some points.
//
// The points are 0, 1, -1 and infinity for two pixels, and 0, A, -A, B, -B and infinity for four.
// A and B are exact in binary, and chosen for small errors: over 256 channels the largest error of
// four pixels is 1.6 times that of plain sums, and 7 times with the usual 1 and 2.
#include "kernels/cpu/isa/winograd.h"

#include "kernels/cpu/isa/isa.h"

#define INLINE static inline __attribute__((always_inline))
#define A 0.625f
#define B 1.5f
#define A2 (A * A)
#define B2 (B * B)
#define MOST_POINTS 6  // of a side
#define UNROLL _Pragma("GCC unroll 8")
#define V(x) F32_SET1(x)

// x at the points of one dimension, |step| registers apart.
INLINE void x_points(int size, const vf32_t* x, vf32_t* out, int step) {
  if (size == 2) {
    out[0] = x[0] - x[2];
    out[step] = x[1] + x[2];
    out[2 * step] = x[2] - x[1];
    out[3 * step] = x[3] - x[1];
    return;
  }
  const vf32_t s = F32_FMA(V(-B2), x[2], x[4]), t = V(A) * F32_FMA(V(-B2), x[1], x[3]);
  const vf32_t u = F32_FMA(V(-A2), x[2], x[4]), v = V(B) * F32_FMA(V(-A2), x[1], x[3]);
  out[0] = F32_FMA(V(A2 * B2), x[0], F32_FMA(V(-(A2 + B2)), x[2], x[4]));
  out[step] = s + t;
  out[2 * step] = s - t;
  out[3 * step] = u + v;
  out[4 * step] = u - v;
  out[5 * step] = F32_FMA(V(A2 * B2), x[1], F32_FMA(V(-(A2 + B2)), x[3], x[5]));
}

// A filter of three at the points, with the factors of the interpolation.
INLINE void w_points(int size, const vf32_t* w, vf32_t* out, int step) {
  if (size == 2) {
    const vf32_t even = V(0.5f) * (w[0] + w[2]), odd = V(0.5f) * w[1];
    out[0] = w[0];
    out[step] = even + odd;
    out[2 * step] = even - odd;
    out[3 * step] = w[2];
    return;
  }
  const float a = 1 / (2 * A2 * (A2 - B2)), b = 1 / (2 * B2 * (B2 - A2));
  const vf32_t even_a = V(a) * F32_FMA(V(A2), w[2], w[0]), odd_a = V(a * A) * w[1];
  const vf32_t even_b = V(b) * F32_FMA(V(B2), w[2], w[0]), odd_b = V(b * B) * w[1];
  out[0] = V(1 / (A2 * B2)) * w[0];
  out[step] = even_a + odd_a;
  out[2 * step] = even_a - odd_a;
  out[3 * step] = even_b + odd_b;
  out[4 * step] = even_b - odd_b;
  out[5 * step] = w[2];
}

// y from its values at the points.
INLINE void y_pixels(int size, const vf32_t* m, vf32_t* out, int step) {
  const vf32_t even_a = m[1] + m[2], odd_a = m[1] - m[2];
  if (size == 2) {
    out[0] = even_a + m[0];
    out[step] = odd_a + m[3];
    return;
  }
  const vf32_t even_b = m[3] + m[4], odd_b = m[3] - m[4];
  out[0] = m[0] + (even_a + even_b);
  out[step] = F32_FMA(V(B), odd_b, V(A) * odd_a);
  out[2 * step] = F32_FMA(V(B2), even_b, V(A2) * even_a);
  out[3 * step] = F32_FMA(V(B2 * B), odd_b, F32_FMA(V(A2 * A), odd_a, m[5]));
}

// Where tile |tile| is: its image, and its first row and column of y.
typedef struct winograd_place_t {
  int64_t image, row, column;
} winograd_place_t;

INLINE winograd_place_t place_of(const rn_conv_t* conv, int size, int64_t tile) {
  int64_t down = (conv->rows.out + size - 1) / size, across = (conv->columns.out + size - 1) / size;
  return (winograd_place_t){tile / (down * across), tile / across % down * size,
                            tile % across * size};
}

// A register of channels of one tile; |x| points to the channels of its pixels.
INLINE void input_channels(int size, const float* const* x, int64_t c, float* to, int64_t plane) {
  int side = size + 2;
  vf32_t half[MOST_POINTS * MOST_POINTS], line[MOST_POINTS];
  UNROLL for (int j = 0; j < side; ++j) {
    UNROLL for (int i = 0; i < side; ++i) line[i] = F32_LOAD(x[i * side + j] + c);
    x_points(size, line, half + j, side);
  }
  UNROLL for (int i = 0; i < side; ++i) {
    x_points(size, half + i * side, line, 1);
    UNROLL for (int j = 0; j < side; ++j) F32_STORE(to + (i * side + j) * plane + c, line[j]);
  }
}

INLINE void input_tiles(const rn_conv_t* conv, int size, const float* x, const float* zeros,
                        int64_t begin, int64_t end, rn_winograd_planes_t points) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  int64_t depth = conv->in_depth;
  int side = size + 2;
  for (int64_t tile = begin; tile < end; ++tile, points.data += points.row) {
    winograd_place_t at = place_of(conv, size, tile);
    const float* pixels[MOST_POINTS * MOST_POINTS];
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) {
        int64_t row = at.row - rows->before + i, column = at.column - columns->before + j;
        bool is_inside = row >= 0 && row < rows->in && column >= 0 && column < columns->in;
        pixels[i * side + j] =
            is_inside ? x + ((at.image * rows->in + row) * columns->in + column) * depth : zeros;
      }
    for (int64_t c = 0; c < depth; c += F32_WIDTH)
      input_channels(size, pixels, c, points.data, points.plane);
  }
}

INLINE void filter_channels(int size, const float* w, int64_t step, float* to, int64_t plane) {
  int side = size + 2;
  vf32_t half[MOST_POINTS * 3], line[MOST_POINTS];
  UNROLL for (int j = 0; j < 3; ++j) {
    UNROLL for (int i = 0; i < 3; ++i) line[i] = F32_LOAD(w + (i * 3 + j) * step);
    w_points(size, line, half + j, 3);
  }
  UNROLL for (int i = 0; i < side; ++i) {
    w_points(size, half + i * 3, line, 1);
    UNROLL for (int j = 0; j < side; ++j) F32_STORE(to + (i * side + j) * plane, line[j]);
  }
}

INLINE void filter_rows(const rn_conv_t* conv, int size, const float* w, int64_t begin, int64_t end,
                        int64_t c0, int64_t n, rn_winograd_planes_t points) {
  int64_t step = conv->in_depth * conv->out_depth;
  for (int64_t c = begin; c < end; ++c, points.data += points.row) {
    const float* from = w + c * conv->out_depth + c0;
    for (int64_t j = 0; j < n; j += F32_WIDTH)
      filter_channels(size, from + j, step, points.data + j, points.plane);
  }
}

// A register of channels of one tile; only |rows| × |columns| of its pixels are in the image.
INLINE void output_channels(int size, const float* from, int64_t plane, float* y, int64_t row,
                            int64_t depth, int64_t rows, int64_t columns) {
  int side = size + 2;
  vf32_t half[MOST_POINTS * 4], line[MOST_POINTS];
  UNROLL for (int j = 0; j < side; ++j) {
    UNROLL for (int i = 0; i < side; ++i) line[i] = F32_LOAD(from + (i * side + j) * plane);
    y_pixels(size, line, half + j, side);
  }
  UNROLL for (int i = 0; i < size; ++i) {
    if (i >= rows) break;
    y_pixels(size, half + i * side, line, 1);
    UNROLL for (int j = 0; j < size; ++j) if (j < columns)
        F32_STORE(y + i * row + j * depth, line[j]);
  }
}

INLINE void output_tiles(const rn_conv_t* conv, int size, rn_winograd_planes_t points,
                         int64_t begin, int64_t end, int64_t c0, int64_t n, float* y) {
  int64_t depth = conv->out_depth, width = conv->columns.out;
  for (int64_t tile = begin; tile < end; ++tile, points.data += points.row) {
    winograd_place_t at = place_of(conv, size, tile);
    int64_t rows = conv->rows.out - at.row, columns = width - at.column;
    float* to = y + ((at.image * conv->rows.out + at.row) * width + at.column) * depth + c0;
    for (int64_t c = 0; c < n; c += F32_WIDTH)
      output_channels(size, points.data + c, points.plane, to + c, width * depth, depth, rows,
                      columns);
  }
}

static void input(const rn_conv_t* conv, int size, const float* x, const float* zeros,
                  int64_t begin, int64_t end, rn_winograd_planes_t points) {
  if (size == 2)
    input_tiles(conv, 2, x, zeros, begin, end, points);
  else
    input_tiles(conv, 4, x, zeros, begin, end, points);
}

static void filter(const rn_conv_t* conv, int size, const float* w, int64_t begin, int64_t end,
                   int64_t c0, int64_t n, rn_winograd_planes_t points) {
  if (size == 2)
    filter_rows(conv, 2, w, begin, end, c0, n, points);
  else
    filter_rows(conv, 4, w, begin, end, c0, n, points);
}

static void output(const rn_conv_t* conv, int size, rn_winograd_planes_t points, int64_t begin,
                   int64_t end, int64_t c0, int64_t n, float* y) {
  if (size == 2)
    output_tiles(conv, 2, points, begin, end, c0, n, y);
  else
    output_tiles(conv, 4, points, begin, end, c0, n, y);
}

const rn_winograd_fns_t RN_ISA_NAME(rn_winograd_)[1] = {{input, filter, output}};

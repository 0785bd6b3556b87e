// Pooling loops: the outer loop is over windows, the inner one over channels, which are contiguous.
#include "kernels/cpu/isa/pooling.h"

#include "kernels/cpu/isa/isa.h"

// Channels processed at a time where a loop has state per channel.
#define BLOCK 256
#define LINE_BYTES 64

typedef struct pooling_box_t {
  int64_t top, bottom, left, right;
} pooling_box_t;

static inline pooling_box_t box_at(const rn_pooling_t* p, int64_t row, int64_t column) {
  pooling_box_t box;
  rn_window_at(&p->rows, row, &box.top, &box.bottom);
  rn_window_at(&p->columns, column, &box.left, &box.right);
  return box;
}

// best[c] and at[c]: the maximum of the window and its position in the image, for |n| channels from
// |first| on. The first element always counts; later ones only if greater.
#define FIND_MAX(T, S)                                                                      \
  static inline void find_max_##S(const rn_pooling_t* p, const T* image, pooling_box_t box, \
                                  int64_t first, int64_t n, T* best, int32_t* at) {         \
    bool started = false;                                                                   \
    for (int64_t i = box.top; i < box.bottom; ++i)                                          \
      for (int64_t j = box.left; j < box.right; ++j) {                                      \
        int32_t place = (int32_t)(i * p->columns.in + j);                                   \
        const T* x = image + (i * p->columns.in + j) * p->depth + first;                    \
        if (!started) {                                                                     \
          for (int64_t c = 0; c < n; ++c) best[c] = x[c], at[c] = place;                    \
        } else {                                                                            \
          for (int64_t c = 0; c < n; ++c) {                                                 \
            bool more = best[c] < x[c];                                                     \
            best[c] = more ? x[c] : best[c];                                                \
            at[c] = more ? place : at[c];                                                   \
          }                                                                                 \
        }                                                                                   \
        started = true;                                                                     \
      }                                                                                     \
  }

// The maximum of the window for as many channels as fill a cache line, from |first| on: they stay
// in registers.
#define LINE_MAX(T, S)                                                                      \
  static inline void line_max_##S(const rn_pooling_t* p, const T* image, pooling_box_t box, \
                                  T lowest, int64_t first, T* y) {                          \
    T best[LINE_BYTES / sizeof(T)];                                                         \
    for (size_t c = 0; c < LINE_BYTES / sizeof(T); ++c) best[c] = lowest;                   \
    for (int64_t i = box.top; i < box.bottom; ++i)                                          \
      for (int64_t j = box.left; j < box.right; ++j) {                                      \
        const T* x = image + (i * p->columns.in + j) * p->depth + first;                    \
        for (size_t c = 0; c < LINE_BYTES / sizeof(T); ++c)                                 \
          best[c] = x[c] > best[c] ? x[c] : best[c];                                        \
      }                                                                                     \
    __builtin_memcpy(y + first, best, sizeof best);                                         \
  }

#define MAX_(T, S)                                                                                \
  LINE_MAX(T, S)                                                                                  \
  static void max_##S(const rn_pooling_t* p, int64_t begin, int64_t end) {                        \
    const T lowest = *(const T*)p->lowest;                                                        \
    for (int64_t row = begin; row < end; ++row) {                                                 \
      const T* image = (const T*)p->x + row / p->rows.out * p->in_size;                           \
      T* y = (T*)p->y + row * p->columns.out * p->depth;                                          \
      for (int64_t column = 0; column < p->columns.out; ++column, y += p->depth) {                \
        pooling_box_t box = box_at(p, row % p->rows.out, column);                                 \
        const int64_t line = LINE_BYTES / (int64_t)sizeof(T);                                     \
        int64_t first = 0;                                                                        \
        for (; first + line <= p->depth; first += line)                                           \
          line_max_##S(p, image, box, lowest, first, y);                                          \
        for (int64_t c = first; c < p->depth; ++c) y[c] = lowest;                                 \
        for (int64_t i = box.top; i < box.bottom && first < p->depth; ++i)                        \
          for (int64_t j = box.left; j < box.right; ++j) {                                        \
            const T* x = image + (i * p->columns.in + j) * p->depth;                              \
            RN_IVDEP for (int64_t c = first; c < p->depth; ++c) y[c] = x[c] > y[c] ? x[c] : y[c]; \
          }                                                                                       \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void max_argmax_##S(const rn_pooling_t* p, int64_t begin, int64_t end) {                 \
    for (int64_t row = begin; row < end; ++row) {                                                 \
      const T* image = (const T*)p->x + row / p->rows.out * p->in_size;                           \
      for (int64_t column = 0; column < p->columns.out; ++column) {                               \
        pooling_box_t box = box_at(p, row % p->rows.out, column);                                 \
        int64_t to = (row * p->columns.out + column) * p->depth;                                  \
        for (int64_t first = 0; first < p->depth; first += BLOCK) {                               \
          int64_t n = p->depth - first < BLOCK ? p->depth - first : BLOCK;                        \
          T best[BLOCK];                                                                          \
          int32_t at[BLOCK];                                                                      \
          find_max_##S(p, image, box, first, n, best, at);                                        \
          for (int64_t c = 0; c < n; ++c) {                                                       \
            ((T*)p->y)[to + first + c] = best[c];                                                 \
            p->argmax[to + first + c] = at[c] * p->depth + first + c;                             \
          }                                                                                       \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void max_any_##S(const rn_pooling_t* p, int64_t begin, int64_t end) {                    \
    if (p->argmax)                                                                                \
      max_argmax_##S(p, begin, end);                                                              \
    else                                                                                          \
      max_##S(p, begin, end);                                                                     \
  }

#define MAX_GRADIENT(T, S)                                                          \
  static void max_gradient_##S(const rn_pooling_t* p, int64_t begin, int64_t end) { \
    for (int64_t row = begin * p->rows.out; row < end * p->rows.out; ++row) {       \
      int64_t image = row / p->rows.out;                                            \
      const T* x = (const T*)p->x + image * p->in_size;                             \
      T* dx = (T*)p->dx + image * p->in_size;                                       \
      for (int64_t column = 0; column < p->columns.out; ++column) {                 \
        pooling_box_t box = box_at(p, row % p->rows.out, column);                   \
        const T* dy = (const T*)p->dy + (row * p->columns.out + column) * p->depth; \
        for (int64_t first = 0; first < p->depth; first += BLOCK) {                 \
          int64_t n = p->depth - first < BLOCK ? p->depth - first : BLOCK;          \
          T best[BLOCK];                                                            \
          int32_t at[BLOCK];                                                        \
          find_max_##S(p, x, box, first, n, best, at);                              \
          for (int64_t i = box.top; i < box.bottom; ++i)                            \
            for (int64_t j = box.left; j < box.right; ++j) {                        \
              int32_t place = (int32_t)(i * p->columns.in + j);                     \
              T* to = dx + (int64_t)place * p->depth + first;                       \
              RN_IVDEP for (int64_t c = 0; c < n; ++c) to[c] +=                     \
                  at[c] == place ? dy[first + c] : 0;                               \
            }                                                                       \
        }                                                                           \
      }                                                                             \
    }                                                                               \
  }                                                                                 \
  static void max_second_##S(const rn_pooling_t* p, int64_t begin, int64_t end) {   \
    for (int64_t row = begin * p->rows.out; row < end * p->rows.out; ++row) {       \
      int64_t image = row / p->rows.out * p->in_size;                               \
      const T* x = (const T*)p->x + image;                                          \
      const T* from = (const T*)p->dy + image;                                      \
      for (int64_t column = 0; column < p->columns.out; ++column) {                 \
        pooling_box_t box = box_at(p, row % p->rows.out, column);                   \
        int64_t at = (row * p->columns.out + column) * p->depth;                    \
        const T* most = (const T*)p->pooled + at;                                   \
        T* y = (T*)p->y + at;                                                       \
        for (int64_t c = 0; c < p->depth; ++c) y[c] = 0;                            \
        /* Backwards, so that the first of several maxima is kept. */               \
        for (int64_t i = box.bottom - 1; i >= box.top; --i)                         \
          for (int64_t j = box.right - 1; j >= box.left; --j) {                     \
            int64_t pixel = (i * p->columns.in + j) * p->depth;                     \
            RN_IVDEP for (int64_t c = 0; c < p->depth; ++c) y[c] =                  \
                x[pixel + c] == most[c] ? from[pixel + c] : y[c];                   \
          }                                                                         \
      }                                                                             \
    }                                                                               \
  }

#define AVERAGE_OF(T, S)                                                           \
  static void average_##S(const rn_pooling_t* p, int64_t begin, int64_t end) {     \
    for (int64_t row = begin; row < end; ++row) {                                  \
      const T* image = (const T*)p->x + row / p->rows.out * p->in_size;            \
      T* y = (T*)p->y + row * p->columns.out * p->depth;                           \
      for (int64_t column = 0; column < p->columns.out; ++column, y += p->depth) { \
        pooling_box_t box = box_at(p, row % p->rows.out, column);                  \
        for (int64_t c = 0; c < p->depth; ++c) y[c] = 0;                           \
        for (int64_t i = box.top; i < box.bottom; ++i)                             \
          for (int64_t j = box.left; j < box.right; ++j) {                         \
            const T* x = image + (i * p->columns.in + j) * p->depth;               \
            RN_IVDEP for (int64_t c = 0; c < p->depth; ++c) y[c] += x[c];          \
          }                                                                        \
        const T count = (T)((box.bottom - box.top) * (box.right - box.left));      \
        for (int64_t c = 0; c < p->depth; ++c) y[c] /= count;                      \
      }                                                                            \
    }                                                                              \
  }
#define AVERAGE_GRADIENT(T, S)                                                          \
  static void average_gradient_##S(const rn_pooling_t* p, int64_t begin, int64_t end) { \
    for (int64_t row = begin * p->rows.out; row < end * p->rows.out; ++row) {           \
      T* dx = (T*)p->dx + row / p->rows.out * p->in_size;                               \
      const T* dy = (const T*)p->dy + row * p->columns.out * p->depth;                  \
      for (int64_t column = 0; column < p->columns.out; ++column, dy += p->depth) {     \
        pooling_box_t box = box_at(p, row % p->rows.out, column);                       \
        const T scale = 1 / (T)((box.bottom - box.top) * (box.right - box.left));       \
        for (int64_t i = box.top; i < box.bottom; ++i)                                  \
          for (int64_t j = box.left; j < box.right; ++j) {                              \
            T* to = dx + (i * p->columns.in + j) * p->depth;                            \
            RN_IVDEP for (int64_t c = 0; c < p->depth; ++c) to[c] += dy[c] * scale;     \
          }                                                                             \
      }                                                                                 \
    }                                                                                   \
  }

// Floats: the sums of GROUP registers of channels at a time stay in registers.
enum { GROUP = 4 };
static inline void average_channels(const rn_pooling_t* p, const float* image, pooling_box_t box,
                                    int64_t at, int count, int64_t rest, float* y) {
  vf32_t sums[GROUP];
  RN_UNROLL for (int k = 0; k < count; ++k) sums[k] = F32_SET1(0.0f);
  for (int64_t i = box.top; i < box.bottom; ++i) {
    const float* x = image + (i * p->columns.in + box.left) * p->depth + at;
    for (int64_t j = box.left; j < box.right; ++j, x += p->depth) {
      RN_UNROLL for (int k = 0; k < count; ++k) {
        const float* from = x + k * F32_WIDTH;
        sums[k] = sums[k] + (rest ? F32_LOAD_N(from, rest) : F32_LOAD(from));
      }
    }
  }
  const vf32_t size = F32_SET1((float)((box.bottom - box.top) * (box.right - box.left)));
  RN_UNROLL for (int k = 0; k < count; ++k) {
    if (rest)
      F32_STORE_N(y + at + k * F32_WIDTH, sums[k] / size, rest);
    else
      F32_STORE(y + at + k * F32_WIDTH, sums[k] / size);
  }
}

static void average_floats(const rn_pooling_t* p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* image = (const float*)p->x + row / p->rows.out * p->in_size;
    float* y = (float*)p->y + row * p->columns.out * p->depth;
    for (int64_t column = 0; column < p->columns.out; ++column, y += p->depth) {
      const pooling_box_t box = box_at(p, row % p->rows.out, column);
      int64_t at = 0;
      for (; at + GROUP * F32_WIDTH <= p->depth; at += GROUP * F32_WIDTH)
        average_channels(p, image, box, at, GROUP, 0, y);
      for (; at + F32_WIDTH <= p->depth; at += F32_WIDTH)
        average_channels(p, image, box, at, 1, 0, y);
      if (at < p->depth) average_channels(p, image, box, at, 1, p->depth - at, y);
    }
  }
}

static inline void box_channels(const float* x, const int64_t counts[3], const int64_t steps[3],
                                int count, int64_t rest, float* y) {
  vf32_t sums[GROUP];
  RN_UNROLL for (int k = 0; k < count; ++k) sums[k] = F32_SET1(0.0f);
  for (int64_t i = 0; i < counts[0]; ++i)
    for (int64_t j = 0; j < counts[1]; ++j) {
      const float* at = x + i * steps[0] + j * steps[1];
      for (int64_t c = 0; c < counts[2]; ++c, at += steps[2])
        RN_UNROLL for (int k = 0; k < count; ++k) {
          const float* from = at + k * F32_WIDTH;
          sums[k] = sums[k] + (rest ? F32_LOAD_N(from, rest) : F32_LOAD(from));
        }
    }
  const vf32_t size = F32_SET1((float)(counts[0] * counts[1] * counts[2]));
  RN_UNROLL for (int k = 0; k < count; ++k) {
    if (rest)
      F32_STORE_N(y + k * F32_WIDTH, sums[k] / size, rest);
    else
      F32_STORE(y + k * F32_WIDTH, sums[k] / size);
  }
}

static void average_box(const float* x, const int64_t counts[3], const int64_t steps[3],
                        int64_t depth, float* y) {
  int64_t at = 0;
  for (; at + GROUP * F32_WIDTH <= depth; at += GROUP * F32_WIDTH)
    box_channels(x + at, counts, steps, GROUP, 0, y + at);
  for (; at + F32_WIDTH <= depth; at += F32_WIDTH)
    box_channels(x + at, counts, steps, 1, 0, y + at);
  if (at < depth) box_channels(x + at, counts, steps, 1, depth - at, y + at);
}

#define NUMBER(T, S) FIND_MAX(T, S) MAX_(T, S) MAX_GRADIENT(T, S)
NUMBER(float, f32)
NUMBER(double, f64)
NUMBER(int8_t, i8)
NUMBER(int16_t, i16)
NUMBER(int32_t, i32)
NUMBER(int64_t, i64)
NUMBER(uint8_t, u8)
NUMBER(uint16_t, u16)
NUMBER(uint32_t, u32)
NUMBER(uint64_t, u64)
AVERAGE_OF(double, f64)
AVERAGE_GRADIENT(float, f32)
AVERAGE_GRADIENT(double, f64)

#define MAX_FIELDS(S) \
  .max = max_any_##S, .max_gradient = max_gradient_##S, .max_second = max_second_##S
#define FLOAT_FIELDS(S, average_) \
  MAX_FIELDS(S), .average = average_, .average_gradient = average_gradient_##S

const rn_pooling_fns_t RN_ISA_NAME(rn_pooling_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = {FLOAT_FIELDS(f32, average_floats), .average_box = average_box},
    [RN_DOUBLE] = {FLOAT_FIELDS(f64, average_f64)},
    [RN_INT8] = {MAX_FIELDS(i8)},
    [RN_INT16] = {MAX_FIELDS(i16)},
    [RN_INT32] = {MAX_FIELDS(i32)},
    [RN_INT64] = {MAX_FIELDS(i64)},
    [RN_UINT8] = {MAX_FIELDS(u8)},
    [RN_UINT16] = {MAX_FIELDS(u16)},
    [RN_UINT32] = {MAX_FIELDS(u32)},
    [RN_UINT64] = {MAX_FIELDS(u64)},
};

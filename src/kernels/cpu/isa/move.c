// Strided copies, and transposition in blocks. See kernels/cpu/isa/move.h.
#include "kernels/cpu/isa/move.h"

#include "kernels/cpu/isa/copy.h"

static void rows(const char* src, int64_t from, char* dst, int64_t to, int64_t n, size_t size) {
  for (int64_t i = 0; i < n; ++i, src += from, dst += to) copy_row(dst, src, size);
}

#if defined(__x86_64__)
static void stream(const char* src, int64_t from, char* dst, int64_t to, int64_t n, size_t size) {
  for (int64_t i = 0; i < n; ++i, src += from, dst += to)
    for (size_t at = 0; at < size; at += 64)
#if defined(RN_ISA_avx512)
      _mm512_stream_si512((void*)(dst + at), _mm512_loadu_si512(src + at));
#else
      for (size_t k = at; k < at + 64; k += 16)
        _mm_stream_si128((void*)(dst + k), _mm_loadu_si128((const void*)(src + k)));
#endif
  _mm_sfence();
}
#else
#define stream rows
#endif

typedef struct move_wide_t {
  uint64_t low, high;
} move_wide_t;

// Elements may be unaligned: memcpy of a fixed size moves them in one instruction.
#define STEPS(T, S)                                                                        \
  static void steps_##S(const char* src, int64_t from, char* dst, int64_t to, int64_t n) { \
    if (from == 0) {                                                                       \
      T value;                                                                             \
      memcpy(&value, src, sizeof value);                                                   \
      if (to == (int64_t)sizeof value)                                                     \
        for (int64_t i = 0; i < n; ++i)                                                    \
          memcpy(dst + i * (int64_t)sizeof value, &value, sizeof value);                   \
      else                                                                                 \
        for (int64_t i = 0; i < n; ++i) memcpy(dst + i * to, &value, sizeof value);        \
    } else if (from == -(int64_t)sizeof(T) && to == (int64_t)sizeof(T)) {                  \
      for (int64_t i = 0; i < n; ++i) {                                                    \
        T value;                                                                           \
        memcpy(&value, src - i * (int64_t)sizeof value, sizeof value);                     \
        memcpy(dst + i * (int64_t)sizeof value, &value, sizeof value);                     \
      }                                                                                    \
    } else {                                                                               \
      for (int64_t i = 0; i < n; ++i) {                                                    \
        T value;                                                                           \
        memcpy(&value, src + i * from, sizeof value);                                      \
        memcpy(dst + i * to, &value, sizeof value);                                        \
      }                                                                                    \
    }                                                                                      \
  }
STEPS(uint8_t, 1)
STEPS(uint16_t, 2)
STEPS(uint32_t, 4)
STEPS(uint64_t, 8)
STEPS(move_wide_t, 16)

// A block reads and writes whole cache lines on both sides.
#define BLOCK 16
// Rows are far apart, so the processor does not see which line comes next.
#define AHEAD 48

#define TRANSPOSE_REST(T, S)                                                                   \
  static void transpose_rest_##S(const char* src, int64_t from_row, char* dst, int64_t to_row, \
                                 int64_t rows, int64_t columns) {                              \
    for (int64_t r = 0; r < rows; ++r)                                                         \
      for (int64_t c = 0; c < columns; ++c)                                                    \
        memcpy(dst + r * to_row + c * (int64_t)sizeof(T),                                      \
               src + c * from_row + r * (int64_t)sizeof(T), sizeof(T));                        \
  }
TRANSPOSE_REST(uint8_t, 1)
TRANSPOSE_REST(uint16_t, 2)
TRANSPOSE_REST(uint32_t, 4)
TRANSPOSE_REST(uint64_t, 8)
TRANSPOSE_REST(move_wide_t, 16)

#define UNROLL _Pragma("GCC unroll 16")
#if defined(RN_ISA_avx2) || defined(RN_ISA_avx512)
// Transposes 8 x 8 in registers: pairs, then quads, then halves.
static inline void tile8_4(const char* src, int64_t from_row, char* dst, int64_t to_row) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps((const float*)(src + i * from_row));
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps((float*)(dst + i * to_row), _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps((float*)(dst + (i + 4) * to_row),
                     _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}

// Less than a block of rows or columns: tiles, and what is left of them.
static void transpose_edge_4(const char* src, int64_t from_row, char* dst, int64_t to_row,
                             int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / 8 * 8, whole_columns = columns / 8 * 8;
  for (int64_t r = 0; r < whole_rows; r += 8)
    for (int64_t c = 0; c < whole_columns; c += 8)
      tile8_4(src + c * from_row + r * 4, from_row, dst + r * to_row + c * 4, to_row);
  transpose_rest_4(src + whole_columns * from_row, from_row, dst + whole_columns * 4, to_row,
                   whole_rows, columns - whole_columns);
  transpose_rest_4(src + whole_rows * 4, from_row, dst + whole_rows * to_row, to_row,
                   rows - whole_rows, columns);
}

static inline void tile4_8(const char* src, int64_t from_row, char* dst, int64_t to_row) {
  __m256d a[4], b[4];
  for (int i = 0; i < 4; ++i) a[i] = _mm256_loadu_pd((const double*)(src + i * from_row));
  for (int i = 0; i < 4; i += 2) {
    b[i] = _mm256_unpacklo_pd(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_pd(a[i], a[i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    _mm256_storeu_pd((double*)(dst + i * to_row), _mm256_permute2f128_pd(b[i], b[i + 2], 0x20));
    _mm256_storeu_pd((double*)(dst + (i + 2) * to_row),
                     _mm256_permute2f128_pd(b[i], b[i + 2], 0x31));
  }
}

#if defined(RN_ISA_avx512)
// Pairs, quads, then quarters of registers twice. Whole lines are read and written once: where rows
// are a power of two apart, they evict each other from the L1 cache.
static inline void block_4(const char* src, int64_t from_row, char* dst, int64_t to_row) {
  __m512 a[BLOCK], b[BLOCK];
  UNROLL for (int i = 0; i < BLOCK; ++i) a[i] = _mm512_loadu_ps(src + i * from_row);
  UNROLL for (int i = 0; i < BLOCK; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  UNROLL for (int i = 0; i < BLOCK; i += 4) {
    a[i] = _mm512_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm512_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm512_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
    b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
    b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
    b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    _mm512_storeu_ps(dst + i * to_row, _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88));
    _mm512_storeu_ps(dst + (i + 4) * to_row, _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0x88));
    _mm512_storeu_ps(dst + (i + 8) * to_row, _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd));
    _mm512_storeu_ps(dst + (i + 12) * to_row, _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0xdd));
  }
}
#else
static inline void block_4(const char* src, int64_t from_row, char* dst, int64_t to_row) {
  for (int r = 0; r < BLOCK; r += 8)
    for (int c = 0; c < BLOCK; c += 8)
      tile8_4(src + c * from_row + r * 4, from_row, dst + r * to_row + c * 4, to_row);
}
#endif
static inline void block_8(const char* src, int64_t from_row, char* dst, int64_t to_row) {
  for (int r = 0; r < BLOCK; r += 4)
    for (int c = 0; c < BLOCK; c += 4)
      tile4_8(src + c * from_row + r * 8, from_row, dst + r * to_row + c * 8, to_row);
}
#else
#define transpose_edge_4 transpose_rest_4
#define block_4(src, from_row, dst, to_row) \
  transpose_rest_4(src, from_row, dst, to_row, BLOCK, BLOCK)
#define block_8(src, from_row, dst, to_row) \
  transpose_rest_8(src, from_row, dst, to_row, BLOCK, BLOCK)
#endif
#define block_1(src, from_row, dst, to_row) \
  transpose_rest_1(src, from_row, dst, to_row, BLOCK, BLOCK)
#define block_2(src, from_row, dst, to_row) \
  transpose_rest_2(src, from_row, dst, to_row, BLOCK, BLOCK)
#define block_16(src, from_row, dst, to_row) \
  transpose_rest_16(src, from_row, dst, to_row, BLOCK, BLOCK)

#define transpose_edge_1 transpose_rest_1
#define transpose_edge_2 transpose_rest_2
#define transpose_edge_8 transpose_rest_8
#define transpose_edge_16 transpose_rest_16

#define TRANSPOSE(SIZE)                                                                         \
  static void transpose_##SIZE(const char* src, int64_t from_row, char* dst, int64_t to_row,    \
                               int64_t rows, int64_t columns) {                                 \
    int64_t whole_rows = rows - rows % BLOCK, whole_columns = columns - columns % BLOCK;        \
    for (int64_t r = 0; r < whole_rows; r += BLOCK) {                                           \
      for (int64_t c = 0; c < whole_columns; c += BLOCK) {                                      \
        for (int64_t i = c + AHEAD; i < c + AHEAD + BLOCK && i < whole_columns; ++i)            \
          __builtin_prefetch(src + i * from_row + r * SIZE);                                    \
        block_##SIZE(src + c * from_row + r * SIZE, from_row, dst + r * to_row + c * SIZE,      \
                     to_row);                                                                   \
      }                                                                                         \
      transpose_edge_##SIZE(src + whole_columns * from_row + r * SIZE, from_row,                \
                            dst + r * to_row + whole_columns * SIZE, to_row, BLOCK,             \
                            columns - whole_columns);                                           \
    }                                                                                           \
    transpose_edge_##SIZE(src + whole_rows * SIZE, from_row, dst + whole_rows * to_row, to_row, \
                          rows - whole_rows, columns);                                          \
  }
TRANSPOSE(1)
TRANSPOSE(2)
TRANSPOSE(4)
TRANSPOSE(8)
TRANSPOSE(16)

const rn_move_table_t RN_ISA_NAME(rn_move_table_) = {
    rows,
    stream,
    {steps_1, steps_2, steps_4, steps_8, steps_16},
    {transpose_1, transpose_2, transpose_4, transpose_8, transpose_16},
};

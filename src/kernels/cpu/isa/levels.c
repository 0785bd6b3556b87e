// Products of 8-bit levels: see levels.h.
//
// VNNI multiplies four pairs of bytes and adds the products to a 32-bit sum by one instruction; a
// tile of AMX does that for 16 rows and columns at once. Without them, pairs of 16 bits do: bytes
// multiplied in pairs (maddubs) would saturate.
#include "kernels/cpu/isa/levels.h"

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/levels_taps.h"

#define WIDE RN_LEVELS_WIDE

// Loops without vector units do not call it.
__attribute__((unused)) static inline int32_t four_at(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return four;
}

// Calls tile(part, first row, rows) with |rows| constant: as many at a time as registers allow.
#define BY_ROWS(tile, most)                                                     \
  do {                                                                          \
    int64_t row_ = 0;                                                           \
    for (; row_ + (most) <= part->rows; row_ += (most)) tile(part, row_, most); \
    for (; row_ + 4 <= part->rows; row_ += 4) tile(part, row_, 4);              \
    for (; row_ < part->rows; ++row_) tile(part, row_, 1);                      \
  } while (0)

#if defined(RN_ISA_avx512)

#include "kernels/cpu/isa/tiles.h"

VNNI INLINE void vnni_tile(const rn_levels_part_t* part, int64_t row, int rows, int strips) {
  __m512i sum[12][2];
  const uint8_t* a = part->a + row * part->a_step;
  for (int r = 0; r < rows; ++r) {
    sum[r][0] = _mm512_loadu_si512(part->start);
    sum[r][1] = _mm512_loadu_si512(part->start + (strips == 2 ? RN_LEVELS_STRIP : 0));
  }
  for (int64_t k = 0; k < part->depth; k += 4) {
    __m512i left = _mm512_loadu_si512(part->b + k * RN_LEVELS_STRIP), right = left;
    if (strips == 2) right = _mm512_loadu_si512(part->b + part->b_step + k * RN_LEVELS_STRIP);
    for (int r = 0; r < rows; ++r) {
      __m512i four = _mm512_set1_epi32(four_at(a + r * part->a_step + k));
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], four, left);
      if (strips == 2) sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], four, right);
    }
  }
  int32_t* c = part->c + row * WIDE;
  for (int r = 0; r < rows; ++r) {
    _mm512_storeu_si512(c + r * WIDE, sum[r][0]);
    if (strips == 2) _mm512_storeu_si512(c + r * WIDE + RN_LEVELS_STRIP, sum[r][1]);
  }
}
VNNI INLINE void vnni_two(const rn_levels_part_t* part, int64_t row, int rows) {
  vnni_tile(part, row, rows, 2);
}
VNNI INLINE void vnni_one(const rn_levels_part_t* part, int64_t row, int rows) {
  vnni_tile(part, row, rows, 1);
}
VNNI static void multiply_vnni(const rn_levels_part_t* part) {
  if (part->strips == 2)
    BY_ROWS(vnni_two, 12);
  else
    BY_ROWS(vnni_one, 12);
}

// Pairs of 16 bits: the sums of a column are in two neighbouring lanes until the end.
INLINE void pair_tile(const rn_levels_part_t* part, int64_t row, int rows, const int8_t* strip,
                      const int32_t* start, int32_t* c) {
  __m512i sum[8][2];
  const uint8_t* a = part->a + row * part->a_step;
  for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
  for (int64_t k = 0; k < part->depth; k += 4) {
    const __m256i* b = (const __m256i*)(strip + k * RN_LEVELS_STRIP);
    __m512i low = _mm512_cvtepi8_epi16(_mm256_loadu_si256(b));
    __m512i high = _mm512_cvtepi8_epi16(_mm256_loadu_si256(b + 1));
    for (int r = 0; r < rows; ++r) {
      __m128i bytes = _mm_cvtsi32_si128(four_at(a + r * part->a_step + k));
      __m512i four = _mm512_broadcastq_epi64(_mm_cvtepu8_epi16(bytes));
      sum[r][0] = _mm512_add_epi32(sum[r][0], _mm512_madd_epi16(four, low));
      sum[r][1] = _mm512_add_epi32(sum[r][1], _mm512_madd_epi16(four, high));
    }
  }
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int r = 0; r < rows; ++r) {
    __m512i total = _mm512_add_epi32(_mm512_permutex2var_epi32(sum[r][0], even, sum[r][1]),
                                     _mm512_permutex2var_epi32(sum[r][0], odd, sum[r][1]));
    _mm512_storeu_si512(c + (row + r) * WIDE, _mm512_add_epi32(total, _mm512_loadu_si512(start)));
  }
}
#define PAIR_ROWS 8

#define TILES __attribute__((target("amx-tile,amx-int8")))

// Tiles 0 to 3: sums of two by two; 4 and 5: rows of A; 6 and 7: strips of B.
// 32 rows, or 16 if |second| is false.
TILES INLINE void tiles_at(const rn_levels_part_t* part, int64_t row, bool second, bool wide) {
  const uint8_t* a = part->a + row * part->a_step;
  const uint8_t* lower = a + 16 * part->a_step;
  int32_t* c = part->c + row * WIDE;
  // Rows that are no bytes apart: all 16 are the same one.
  _tile_loadd(0, part->start, 0);
  if (wide) _tile_loadd(1, part->start + 16, 0);
  if (second) _tile_loadd(2, part->start, 0);
  if (second && wide) _tile_loadd(3, part->start + 16, 0);
  for (int64_t k = 0; k < part->depth; k += RN_LEVELS_BLOCK) {
    _tile_loadd(4, a + k, part->a_step);
    _tile_loadd(6, part->b + k * RN_LEVELS_STRIP, 64);
    _tile_dpbusd(0, 4, 6);
    if (wide) {
      _tile_loadd(7, part->b + part->b_step + k * RN_LEVELS_STRIP, 64);
      _tile_dpbusd(1, 4, 7);
    }
    if (second) {
      _tile_loadd(5, lower + k, part->a_step);
      _tile_dpbusd(2, 5, 6);
      if (wide) _tile_dpbusd(3, 5, 7);
    }
  }
  _tile_stored(0, c, WIDE * sizeof *c);
  if (wide) _tile_stored(1, c + 16, WIDE * sizeof *c);
  if (second) _tile_stored(2, c + 16 * WIDE, WIDE * sizeof *c);
  if (second && wide) _tile_stored(3, c + 16 * WIDE + 16, WIDE * sizeof *c);
}

TILES static void multiply_tiles(const rn_levels_part_t* part) {
  const bool wide = part->strips == 2;
  int64_t row = 0;
  for (; row + 32 <= part->rows; row += 32) tiles_at(part, row, true, wide);
  for (; row + 16 <= part->rows; row += 16) tiles_at(part, row, false, wide);
  // The last rows again, with some that are done: 16 at a time is all that there is.
  if (row < part->rows) tiles_at(part, part->rows - 16, false, wide);
}

#elif defined(RN_ISA_avx2)

#define VNNI __attribute__((target("avxvnni")))

VNNI INLINE void vnni_tile(const rn_levels_part_t* part, int64_t row, int rows, const int8_t* strip,
                           const int32_t* start, int32_t* c) {
  __m256i sum[6][2];
  const uint8_t* a = part->a + row * part->a_step;
  for (int r = 0; r < rows; ++r) {
    sum[r][0] = _mm256_loadu_si256((const __m256i*)start);
    sum[r][1] = _mm256_loadu_si256((const __m256i*)(start + 8));
  }
  for (int64_t k = 0; k < part->depth; k += 4) {
    const __m256i* b = (const __m256i*)(strip + k * RN_LEVELS_STRIP);
    __m256i left = _mm256_loadu_si256(b), right = _mm256_loadu_si256(b + 1);
    for (int r = 0; r < rows; ++r) {
      __m256i four = _mm256_set1_epi32(four_at(a + r * part->a_step + k));
      sum[r][0] = _mm256_dpbusd_avx_epi32(sum[r][0], four, left);
      sum[r][1] = _mm256_dpbusd_avx_epi32(sum[r][1], four, right);
    }
  }
  for (int r = 0; r < rows; ++r) {
    __m256i* to = (__m256i*)(c + (row + r) * WIDE);
    _mm256_storeu_si256(to, sum[r][0]);
    _mm256_storeu_si256(to + 1, sum[r][1]);
  }
}
VNNI static void multiply_vnni(const rn_levels_part_t* part) {
  for (int s = 0; s < part->strips; ++s) {
    const int8_t* strip = part->b + s * part->b_step;
    int32_t* c = part->c + s * RN_LEVELS_STRIP;
    const int32_t* start = part->start + s * RN_LEVELS_STRIP;
#define TILE(part_, row, rows) vnni_tile(part_, row, rows, strip, start, c)
    BY_ROWS(TILE, 6);
#undef TILE
  }
}

INLINE void pair_tile(const rn_levels_part_t* part, int64_t row, int rows, const int8_t* strip,
                      const int32_t* start, int32_t* c) {
  __m256i sum[4][4];
  const uint8_t* a = part->a + row * part->a_step;
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < 4; ++i) sum[r][i] = _mm256_setzero_si256();
  for (int64_t k = 0; k < part->depth; k += 4) {
    const __m128i* b = (const __m128i*)(strip + k * RN_LEVELS_STRIP);
    for (int i = 0; i < 4; ++i) {
      __m256i four_columns = _mm256_cvtepi8_epi16(_mm_loadu_si128(b + i));
      for (int r = 0; r < rows; ++r) {
        __m128i bytes = _mm_cvtsi32_si128(four_at(a + r * part->a_step + k));
        __m256i four = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(bytes));
        sum[r][i] = _mm256_add_epi32(sum[r][i], _mm256_madd_epi16(four, four_columns));
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < 4; i += 2) {
      // hadd works within halves of 128 bits.
      __m256i total = _mm256_hadd_epi32(sum[r][i], sum[r][i + 1]);
      total = _mm256_permute4x64_epi64(total, 0xd8);
      total = _mm256_add_epi32(total, _mm256_loadu_si256((const __m256i*)(start + 4 * i)));
      _mm256_storeu_si256((__m256i*)(c + (row + r) * WIDE + 4 * i), total);
    }
}
#define PAIR_ROWS 2

#else

INLINE void pair_tile(const rn_levels_part_t* part, int64_t row, int rows, const int8_t* strip,
                      const int32_t* start, int32_t* c) {
  for (int r = 0; r < rows; ++r) {
    int32_t sum[RN_LEVELS_STRIP];
    __builtin_memcpy(sum, start, sizeof sum);
    const uint8_t* a = part->a + (row + r) * part->a_step;
    for (int64_t k = 0; k < part->depth; k += 4)
      for (int j = 0; j < RN_LEVELS_STRIP; ++j) {
        const int8_t* b = strip + k * RN_LEVELS_STRIP + 4 * j;
        sum[j] += a[k] * b[0] + a[k + 1] * b[1] + a[k + 2] * b[2] + a[k + 3] * b[3];
      }
    __builtin_memcpy(c + (row + r) * WIDE, sum, sizeof sum);
  }
}
#define PAIR_ROWS 4

#endif

static void multiply(const rn_levels_part_t* part) {
  for (int s = 0; s < part->strips; ++s) {
    const int8_t* strip = part->b + s * part->b_step;
    int32_t* c = part->c + s * RN_LEVELS_STRIP;
    const int32_t* start = part->start + s * RN_LEVELS_STRIP;
#define TILE(part_, row, rows) pair_tile(part_, row, rows, strip, start, c)
    int64_t row = 0;
    for (; row + PAIR_ROWS <= part->rows; row += PAIR_ROWS) TILE(part, row, PAIR_ROWS);
    for (; row < part->rows; ++row) TILE(part, row, 1);
#undef TILE
  }
}

INLINE int32_t level_of(const rn_levels_scale_t* to, float x) {
  x = x > to->least ? x : to->least;
  x = x < to->most ? x : to->most;
  float steps = (x - to->least) * to->inverse - to->zero + 0.5f;
  int32_t whole = (int32_t)steps;
  whole -= (float)whole > steps;
  return whole + (int32_t)to->zero;
}

// Vectors of V elements. MAX and MIN return the second operand if the first is NaN.
#if defined(RN_ISA_avx512)
#define V 16
#define LOAD_I32(p) _mm512_loadu_si512(p)
#define SUB_I32(a, b) _mm512_sub_epi32(a, b)
#define F32_OF(a) _mm512_cvtepi32_ps(a)
#define SET_I32(a) _mm512_set1_epi32(a)
#define LOAD_U8(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(p)))
// |from_zero|: the least level is zero, so that there is nothing to subtract, and what is larger
// than the last level becomes that when it is made a byte.
INLINE void store_levels(uint8_t* y, const rn_levels_scale_t* to, __m512 x, bool from_zero) {
  x = _mm512_max_ps(x, F32_SET1(to->least));
  if (!from_zero) x = _mm512_min_ps(x, F32_SET1(to->most));
  if (!from_zero) x -= F32_SET1(to->least);
  x *= F32_SET1(to->inverse);
  if (!from_zero) x -= F32_SET1(to->zero);
  x += F32_SET1(0.5f);
  __m512i whole = _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  if (!from_zero) whole = _mm512_add_epi32(whole, SET_I32((int32_t)to->zero));
  _mm_storeu_si128((__m128i*)y, _mm512_cvtusepi32_epi8(whole));
}
#elif defined(RN_ISA_avx2)
#define V 8
#define LOAD_I32(p) _mm256_loadu_si256((const __m256i*)(p))
#define SUB_I32(a, b) _mm256_sub_epi32(a, b)
#define F32_OF(a) _mm256_cvtepi32_ps(a)
#define SET_I32(a) _mm256_set1_epi32(a)
#define LOAD_U8(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(p)))
INLINE void store_levels(uint8_t* y, const rn_levels_scale_t* to, __m256 x, bool from_zero) {
  x = _mm256_min_ps(_mm256_max_ps(x, F32_SET1(to->least)), F32_SET1(to->most));
  if (!from_zero) x -= F32_SET1(to->least);
  x *= F32_SET1(to->inverse);
  if (!from_zero) x -= F32_SET1(to->zero);
  x = _mm256_floor_ps(x + F32_SET1(0.5f));
  __m256i whole = _mm256_cvttps_epi32(x);
  if (!from_zero) whole = _mm256_add_epi32(whole, SET_I32((int32_t)to->zero));
  __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(whole, whole), 0xd8);
  __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm_setzero_si128());
  _mm_storel_epi64((__m128i*)y, bytes);
}
#endif

// |bias|, |addend| and |addend_levels| say whether the finish has them, |levels| what it writes,
// |from_zero| that those begin with zero and are within the limits: the compiler makes a loop
// without questions of each combination. Columns are the outer loop: a register of their scales and
// biases serves all rows.
typedef struct finish_form_t {
  bool bias, addend, addend_levels, levels, from_zero;
} finish_form_t;

#ifdef V
// V columns of all rows, from column |j| on.
INLINE void finish_registers(const rn_levels_finish_t* finish, const int32_t* sums,
                             int64_t sum_step, int64_t rows, int64_t j, int64_t step,
                             finish_form_t form) {
  const rn_levels_finish_t copy = *finish, *f = &copy;  // which no store to levels can change
  const rn_levels_scale_t to = f->to;
  const vf32_t low = F32_SET1(f->low), high = F32_SET1(f->high);
  const vf32_t add_scale = F32_SET1(f->addend_scale.scale), scale = F32_LOAD(f->scale + j);
  const vf32_t bias = form.bias ? F32_LOAD(f->bias + j) : scale;
  const int32_t add_zero = (int32_t)f->addend_scale.zero;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * step + j;
    vf32_t x = F32_OF(LOAD_I32(sums + r * sum_step + j)) * scale;
    if (form.bias) x += bias;
    if (form.addend) x += F32_LOAD(f->addend + at);
    if (form.addend_levels)
      x += F32_OF(SUB_I32(LOAD_U8(f->addend_levels + at), SET_I32(add_zero))) * add_scale;
    if (!form.from_zero) x = F32_MIN(F32_MAX(x, low), high);
    if (form.levels)
      store_levels(f->y_levels + at, &to, x, form.from_zero);
    else
      F32_STORE(f->y + at, x);
  }
}
#endif

// Column |j| of all rows.
INLINE void finish_column(const rn_levels_finish_t* f, const int32_t* sums, int64_t sum_step,
                          int64_t rows, int64_t j, int64_t step, finish_form_t form) {
  const int32_t add_zero = (int32_t)f->addend_scale.zero;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * step + j;
    float x = (float)sums[r * sum_step + j] * f->scale[j];
    if (form.bias) x += f->bias[j];
    if (form.addend) x += f->addend[at];
    if (form.addend_levels) x += (float)(f->addend_levels[at] - add_zero) * f->addend_scale.scale;
    x = x > f->low ? x : f->low;
    x = x < f->high ? x : f->high;
    if (form.levels)
      f->y_levels[at] = (uint8_t)level_of(&f->to, x);
    else
      f->y[at] = x;
  }
}

INLINE void finish_form(const rn_levels_finish_t* f, const int32_t* sums, int64_t sum_step,
                        int64_t rows, int64_t columns, int64_t step, finish_form_t form) {
  int64_t j = 0;
#ifdef V
  for (; j + V <= columns; j += V) finish_registers(f, sums, sum_step, rows, j, step, form);
#endif
  for (; j < columns; ++j) finish_column(f, sums, sum_step, rows, j, step, form);
}

INLINE void finish_as(const rn_levels_finish_t* f, const int32_t* sums, int64_t sum_step,
                      int64_t rows, int64_t columns, int64_t step, finish_form_t form) {
  const bool is_within = f->low <= f->to.least && f->high >= f->to.most;
  if (f->y)
    finish_form(f, sums, sum_step, rows, columns, step,
                (finish_form_t){form.bias, form.addend, form.addend_levels, false, false});
  else if (f->to.zero == 0 && f->to.least == 0 && is_within)
    finish_form(f, sums, sum_step, rows, columns, step,
                (finish_form_t){form.bias, form.addend, form.addend_levels, true, true});
  else
    finish_form(f, sums, sum_step, rows, columns, step,
                (finish_form_t){form.bias, form.addend, form.addend_levels, true, false});
}

static void finish(const rn_levels_finish_t* f, const int32_t* sums, int64_t sum_step, int64_t rows,
                   int64_t columns, int64_t step) {
  const bool bias = f->bias != NULL;
  if (f->addend)
    finish_as(f, sums, sum_step, rows, columns, step,
              (finish_form_t){.bias = bias, .addend = true});
  else if (f->addend_levels)
    finish_as(f, sums, sum_step, rows, columns, step,
              (finish_form_t){.bias = bias, .addend_levels = true});
  else if (bias)
    finish_as(f, sums, sum_step, rows, columns, step, (finish_form_t){.bias = true});
  else
    finish_as(f, sums, sum_step, rows, columns, step, (finish_form_t){0});
}

static void to_levels(const rn_levels_scale_t* scale, const float* x, int64_t count, uint8_t* y) {
  const rn_levels_scale_t to = *scale;
  int64_t i = 0;
#ifdef V
  for (; i + V <= count; i += V) store_levels(y + i, &to, F32_LOAD(x + i), false);
#endif
  for (; i < count; ++i) y[i] = (uint8_t)level_of(&to, x[i]);
}

static void to_floats(const rn_levels_scale_t* scale, const uint8_t* x, int64_t count, float* y) {
  const float step = scale->scale;
  const int32_t zero = (int32_t)scale->zero;
  RN_IVDEP for (int64_t i = 0; i < count; ++i) y[i] = (float)(x[i] - zero) * step;
}

const rn_levels_table_t RN_ISA_NAME(rn_levels_) = {
    .multiply = multiply,
#if defined(RN_ISA_avx512) || defined(RN_ISA_avx2)
    .multiply_vnni = multiply_vnni,
#endif
#if defined(RN_ISA_avx512)
    .multiply_tiles = multiply_tiles,
    .depthwise_vnni = depthwise_vnni,
    .tiles_begin = rn_tiles_begin,
    .tiles_end = rn_tiles_end,
#endif
    .finish = finish,
    .depthwise = depthwise,
    .to_levels = to_levels,
    .to_floats = to_floats,
};

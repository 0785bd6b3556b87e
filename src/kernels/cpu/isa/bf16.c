// Products of bfloat16 matrices by AMX and by AVX512-BF16: see bf16.h. Other levels have none.
#include "kernels/cpu/isa/bf16.h"

#if defined(RN_ISA_avx512)

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/tiles.h"

#define STRIP RN_BF16_STRIP
#define BLOCK RN_BF16_BLOCK
#define INLINE static inline __attribute__((always_inline))
#define TILES __attribute__((target("amx-tile,amx-bf16")))
#define PAIRS __attribute__((target("avx512bf16")))

// Tiles 0 to 3: sums of two by two; 4 and 5: rows of A; 6 and 7: strips of B. 32 rows, or 16 if
// |second| is false.
TILES INLINE void tiles_at(const rn_bf16_part_t* part, int64_t row, bool second, bool wide) {
  const int64_t a_bytes = part->a_step * (int64_t)sizeof *part->a;
  const int64_t c_bytes = part->c_step * (int64_t)sizeof *part->c;
  const uint16_t *a = part->a + row * part->a_step, *lower = a + 16 * part->a_step;
  const uint16_t *b = part->b, *right = b + part->b_step;
  float *c = part->c + row * part->c_step, *below = c + 16 * part->c_step;
  if (part->adds) {
    _tile_loadd(0, c, c_bytes);
    if (wide) _tile_loadd(1, c + STRIP, c_bytes);
    if (second) _tile_loadd(2, below, c_bytes);
    if (second && wide) _tile_loadd(3, below + STRIP, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < part->depth; k += BLOCK) {
    _tile_loadd(6, b + k * STRIP, 64);
    _tile_loadd(4, a + k, a_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (wide) {
      _tile_loadd(7, right + k * STRIP, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (second) {
      _tile_loadd(5, lower + k, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if (wide) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_bytes);
  if (wide) _tile_stored(1, c + STRIP, c_bytes);
  if (second) _tile_stored(2, below, c_bytes);
  if (second && wide) _tile_stored(3, below + STRIP, c_bytes);
}

TILES INLINE void tiles_down(const rn_bf16_part_t* part, bool wide) {
  int64_t row = 0;
  for (; row + 32 <= part->rows; row += 32) tiles_at(part, row, true, wide);
  if (row < part->rows) tiles_at(part, row, false, wide);
}

TILES static void multiply_tiles(const rn_bf16_part_t* part) {
  if (part->strips == 2)
    tiles_down(part, true);
  else
    tiles_down(part, false);
}

// One instruction multiplies 32 elements and adds the products in pairs to 16 sums.
#define PAIR_ROWS 8
PAIRS INLINE void pairs_at(const rn_bf16_part_t* part, int64_t row, int strips) {
  __m512 sum[PAIR_ROWS][2];
  const uint16_t* a = part->a + row * part->a_step;
  float* c = part->c + row * part->c_step;
  RN_UNROLL for (int r = 0; r < PAIR_ROWS; ++r) for (int s = 0; s < strips; ++s) sum[r][s] =
      part->adds ? _mm512_loadu_ps(c + r * part->c_step + s * STRIP) : _mm512_setzero_ps();
  for (int64_t k = 0; k < part->depth; k += 2) {
    __m512bh b[2];
    for (int s = 0; s < strips; ++s)
      b[s] = (__m512bh)_mm512_loadu_si512(part->b + s * part->b_step + k * STRIP);
    RN_UNROLL for (int r = 0; r < PAIR_ROWS; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * part->a_step + k, sizeof pair);
      const __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
      for (int s = 0; s < strips; ++s) sum[r][s] = _mm512_dpbf16_ps(sum[r][s], both, b[s]);
    }
  }
  RN_UNROLL for (int r = 0; r < PAIR_ROWS; ++r) for (int s = 0; s < strips; ++s)
      _mm512_storeu_ps(c + r * part->c_step + s * STRIP, sum[r][s]);
}

PAIRS static void multiply_pairs(const rn_bf16_part_t* part) {
  for (int64_t row = 0; row < part->rows; row += PAIR_ROWS) {
    if (part->strips == 2)
      pairs_at(part, row, 2);
    else
      pairs_at(part, row, 1);
  }
}

// Up to 16 lines, up to 32 elements of each. If the lines lie next to each other, a register
// gets a line; otherwise it gets a pair of elements of every line.
INLINE void load_block(const rn_bf16_pack_t* pack, int64_t line, int64_t at, __m512i v[16]) {
  const int64_t lines = pack->lines - line, depth = pack->depth - at;
  if (pack->is_along) {
    const uint16_t* from = pack->from + line * pack->step + at;
    const __mmask32 mask = depth >= BLOCK ? ~0u : (1u << depth) - 1;
    for (int i = 0; i < 16; ++i)
      v[i] = i < lines ? _mm512_maskz_loadu_epi16(mask, from + i * pack->step)
                       : _mm512_setzero_si512();
    return;
  }
  const uint16_t* from = pack->from + at * pack->step + line;
  const __mmask16 mask = (__mmask16)(lines >= STRIP ? 0xffff : (1u << lines) - 1);
  for (int i = 0; i < 16; ++i) {
    __m256i first = _mm256_setzero_si256(), second = first;
    if (2 * i < depth) first = _mm256_maskz_loadu_epi16(mask, from + 2 * i * pack->step);
    if (2 * i + 1 < depth) second = _mm256_maskz_loadu_epi16(mask, from + (2 * i + 1) * pack->step);
    v[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
  }
}

// Element j of register i and element i of register j change places.
INLINE void turn_block(__m512i v[16]) {
  __m512i w[16];
  for (int i = 0; i < 16; i += 4) {
    __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]), b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]);
    __m512i d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
    w[i] = _mm512_unpacklo_epi64(a, c);
    w[i + 1] = _mm512_unpackhi_epi64(a, c);
    w[i + 2] = _mm512_unpacklo_epi64(b, d);
    w[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  for (int i = 0; i < 4; ++i) {
    __m512i a = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88);
    __m512i b = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
    __m512i c = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
    __m512i d = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
    v[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
    v[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

INLINE void pack_blocks(const rn_bf16_pack_t* pack, bool is_rows) {
  for (int64_t at = 0; at < pack->depth; at += BLOCK)
    for (int64_t line = 0; line < pack->lines; line += STRIP) {
      __m512i v[16];
      load_block(pack, line, at, v);
      if (pack->is_along != is_rows) turn_block(v);
      uint16_t* to = is_rows ? pack->to + line * pack->to_step + at
                             : pack->to + line / STRIP * pack->to_step + at * STRIP;
      const int64_t step = is_rows ? pack->to_step : 2 * STRIP;
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * step, v[i]);
    }
}
static void pack_rows(const rn_bf16_pack_t* pack) { pack_blocks(pack, true); }
static void pack_columns(const rn_bf16_pack_t* pack) { pack_blocks(pack, false); }

// As rn_float_to_bfloat16 does.
INLINE __m256i narrow_16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i to = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __m512i sign = _mm512_and_si512(bits, _mm512_set1_epi32((int32_t)0x80000000));
  to = _mm512_mask_or_epi32(to, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), sign,
                            _mm512_set1_epi32(0x7fc00000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(to, 16));
}

static void narrow(const float* c, int64_t c_step, int64_t rows, int64_t columns, uint16_t* to,
                   int64_t to_step) {
  for (int64_t i = 0; i < rows; ++i, c += c_step, to += to_step)
    for (int64_t j = 0; j < columns; j += 16) {
      const int64_t left = columns - j;
      const __mmask16 mask = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
      _mm256_mask_storeu_epi16(to + j, mask, narrow_16(_mm512_maskz_loadu_ps(mask, c + j)));
    }
}

const rn_bf16_table_t RN_ISA_NAME(rn_bf16_) = {
    .multiply_tiles = multiply_tiles,
    .multiply_pairs = multiply_pairs,
    .tiles_begin = rn_tiles_begin,
    .tiles_end = rn_tiles_end,
    .pack_rows = pack_rows,
    .pack_columns = pack_columns,
    .narrow = narrow,
};

#else

#include "kernels/cpu/isa/isa.h"

const rn_bf16_table_t RN_ISA_NAME(rn_bf16_) = {0};

#endif

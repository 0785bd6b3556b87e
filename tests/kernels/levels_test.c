// Products of 8-bit levels: every variant that this processor has gives the sums of a plain loop,
// and the same floats and levels after them.
#include "kernels/cpu/quant/levels.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_ROWS = 70, MOST_DEPTH = 200, PADDED = 256, MOST_TABLES = 3 };
enum {
  MOST_TAPS = 25,
  MOST_CHANNELS = 170,
  PIXELS = 3,
  PIXEL_STEP = 180
};  // of depthwise convolutions

static int tables(const rn_levels_table_t** out) {
  int count = 0;
  out[count++] = &rn_levels_base;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    out[count++] = &rn_levels_avx2;
  if (rn_levels_table() == &rn_levels_avx512) out[count++] = &rn_levels_avx512;
#endif
  return count;
}

static uint32_t state = 1;
static uint32_t next(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

typedef struct sums_t {
  uint8_t a[MOST_ROWS][PADDED];
  int8_t b[PADDED][RN_LEVELS_WIDE];
  int8_t packed[RN_LEVELS_STRIPS][PADDED * RN_LEVELS_STRIP];
  int32_t start[RN_LEVELS_WIDE];
  int32_t c[MOST_ROWS * RN_LEVELS_WIDE];
} sums_t;

// Extremes often: that is where 16 bits would overflow.
static void fill(sums_t* s, int depth) {
  memset(s, 0, sizeof *s);
  for (int i = 0; i < MOST_ROWS; ++i)
    for (int k = 0; k < PADDED; ++k) s->a[i][k] = next() % 2 ? 255 : (uint8_t)next();
  for (int j = 0; j < RN_LEVELS_WIDE; ++j) s->start[j] = (int32_t)next() - 1000000;
  for (int k = 0; k < depth; ++k)
    for (int j = 0; j < RN_LEVELS_WIDE; ++j) {
      int8_t level = next() % 2 ? (next() % 2 ? 127 : -127) : (int8_t)((int)(next() % 255) - 127);
      s->b[k][j] = level;
      s->packed[j / 16][k / 4 * 64 + j % 16 * 4 + k % 4] = level;
    }
}

static void check(const sums_t* s, int rows, int depth, int strips, const char* what) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < strips * RN_LEVELS_STRIP; ++j) {
      int32_t sum = s->start[j];
      for (int k = 0; k < depth; ++k) sum += s->a[i][k] * s->b[k][j];
      cr_assert_eq(s->c[i * RN_LEVELS_WIDE + j], sum, "%s, %d rows, depth %d, [%d, %d]: %d, not %d",
                   what, rows, depth, i, j, s->c[i * RN_LEVELS_WIDE + j], sum);
    }
}

static void check_all(const rn_levels_table_t* table, rn_levels_cpu_t cpu, bool is_best) {
  static const int rows[] = {1, 2, 5, 12, 16, 17, 31, 32, 33, 47, 64, 70};
  static const int depths[] = {4, 8, 60, 64, 100, 128, 200};
  sums_t* s = malloc(sizeof *s);
  for (size_t d = 0; d < sizeof depths / sizeof *depths; ++d) {
    fill(s, depths[d]);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r)
      for (int strips = 1; strips <= 2; ++strips) {
        rn_levels_part_t part = {.a = s->a[0],
                                 .a_step = PADDED,
                                 .rows = rows[r],
                                 .depth = depths[d],
                                 .b = s->packed[0],
                                 .b_step = sizeof s->packed[0],
                                 .strips = strips,
                                 .start = s->start,
                                 .c = s->c};
        table->multiply(&part);
        check(s, rows[r], depths[d], strips, "plain");
        memset(s->c, 1, sizeof s->c);
        if (is_best && cpu.has_vnni) {
          table->multiply_vnni(&part);
          check(s, rows[r], depths[d], strips, "VNNI");
          memset(s->c, 1, sizeof s->c);
        }
        if (is_best && cpu.has_tiles && rows[r] >= 16) {
          part.depth = (depths[d] + RN_LEVELS_BLOCK - 1) / RN_LEVELS_BLOCK * RN_LEVELS_BLOCK;
          table->tiles_begin();
          table->multiply_tiles(&part);
          table->tiles_end();
          check(s, rows[r], depths[d], strips, "tiles");
        }
      }
  }
  free(s);
}

Test(levels, products, .timeout = 60) {
  const rn_levels_table_t* all[MOST_TABLES];
  int count = tables(all);
  for (int i = 0; i < count; ++i) check_all(all[i], rn_levels_cpu(), i + 1 == count);
}

// Sums of one variant, compared with those of a plain loop.
static void check_taps(void (*depthwise)(const rn_levels_taps_t*, int32_t*),
                       const rn_levels_taps_t* d, const char* what) {
  static int32_t sums[PIXELS * MOST_CHANNELS + 1];
  const int64_t channels = d->channels, count = d->pixels * channels;
  sums[count] = 12345;
  depthwise(d, sums);
  for (int64_t c = 0; c < count; ++c) {
    int32_t sum = d->start[c % channels];
    for (int64_t t = 0; t < d->taps; ++t)
      sum += d->x[t][c / channels * d->step + c % channels] *
             (int16_t)d->w[t * channels + c % channels];
    cr_assert_eq(sums[c], sum, "%s, sum %lld of %lld channels, %lld taps", what, (long long)c,
                 (long long)channels, (long long)d->taps);
  }
  cr_assert_eq(sums[count], 12345, "%s writes too far", what);
}

static void check_depthwise(int taps, int channels) {
  static uint8_t values[MOST_TAPS][PIXELS * PIXEL_STEP];
  static uint32_t weights[MOST_TAPS * MOST_CHANNELS];
  static int8_t fours[(MOST_TAPS + 3) * (MOST_CHANNELS + 31)];
  int32_t start[MOST_CHANNELS];
  const uint8_t* x[MOST_TAPS];
  const rn_levels_table_t* all[MOST_TABLES];
  memset(fours, 0, sizeof fours);
  for (int c = 0; c < channels; ++c) start[c] = (int32_t)next() - 1000000;
  for (int t = 0; t < taps; ++t) {
    x[t] = values[t];
    for (int c = 0; c < PIXELS * PIXEL_STEP; ++c) values[t][c] = next() % 2 ? 255 : (uint8_t)next();
    for (int c = 0; c < channels; ++c) {
      int level = next() % 2 ? -127 : (int)(next() % 255) - 127;
      weights[t * channels + c] = (uint16_t)(int16_t)level;
      fours[rn_levels_four_at(taps, channels, t, c)] = (int8_t)level;
    }
  }
  const rn_levels_taps_t d = {.x = x,
                              .w = weights,
                              .fours = fours,
                              .start = start,
                              .taps = taps,
                              .channels = channels,
                              .pixels = PIXELS,
                              .step = PIXEL_STEP};
  const int count = tables(all);
  for (int i = 0; i < count; ++i) check_taps(all[i]->depthwise, &d, "pairs");
  if (rn_levels_cpu().has_vnni && rn_levels_table()->depthwise_vnni)
    check_taps(rn_levels_table()->depthwise_vnni, &d, "vnni");
}

Test(levels, depthwise, .timeout = 60) {
  static const int taps[] = {1, 4, 5, 9, 25};
  for (int channels = 1; channels <= MOST_CHANNELS; ++channels)
    for (size_t i = 0; i < sizeof taps / sizeof *taps; ++i) check_depthwise(taps[i], channels);
}

// What FakeQuant computes, in its own words.
static float fake_quant(const rn_levels_scale_t* to, float x) {
  if (isnan(x)) x = to->least;
  x = x > to->most ? to->most : x < to->least ? to->least : x;
  return floorf((x - to->least) * to->inverse - to->zero + 0.5f) * to->scale;
}

Test(levels, to_and_from_floats, .timeout = 60) {
  const rn_levels_table_t* all[MOST_TABLES];
  const float ranges[][2] = {{0, 1},  {-1, 2.7f},        {-3.14f, 0},
                             {-6, 6}, {-1e-20f, 3e-20f}, {0, 1e20f}};
  enum { COUNT = 1003 };
  static float x[COUNT], y[COUNT];
  static uint8_t levels[COUNT + 1];
  int count = tables(all);
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; ++r) {
    rn_levels_scale_t to = rn_levels_scale(ranges[r][0], ranges[r][1]);
    float width = ranges[r][1] - ranges[r][0];
    for (int i = 0; i < COUNT; ++i) {
      x[i] = ranges[r][0] + width * ((float)(next() % 1200) / 1000 - 0.1f);
      if (i % 3 == 0)  // halfway between two levels
        x[i] = ((float)(int)(next() % 256) + 0.5f - to.zero) * to.scale;
    }
    x[5] = NAN;
    x[6] = INFINITY;
    x[7] = -INFINITY;
    for (int i = 0; i < count; ++i) {
      levels[COUNT] = 77;
      all[i]->to_levels(&to, x, COUNT, levels);
      all[i]->to_floats(&to, levels, COUNT, y);
      cr_assert_eq(levels[COUNT], 77);
      for (int k = 0; k < COUNT; ++k)
        cr_assert(y[k] == fake_quant(&to, x[k]), "table %d, range %zu: %.9g gives %.9g, not %.9g",
                  i, r, x[k], y[k], fake_quant(&to, x[k]));
    }
  }
}

// All tables finish sums with the same bits: those of the plain one, whose floats are checked.
Test(levels, finish, .timeout = 60) {
  const rn_levels_table_t* all[MOST_TABLES];
  enum { ROWS = 3, STEP = 40 };
  static int32_t sums[ROWS * RN_LEVELS_WIDE];
  static float scale[STEP], bias[STEP], addend[ROWS * STEP], y[MOST_TABLES][ROWS * STEP];
  static uint8_t add_levels[ROWS * STEP], levels[MOST_TABLES][ROWS * STEP];
  int count = tables(all);
  for (int i = 0; i < ROWS * RN_LEVELS_WIDE; ++i) sums[i] = (int32_t)next() % 100000 - 50000;
  for (int i = 0; i < STEP; ++i) {
    scale[i] = (float)(next() % 1000) * 1e-7f;
    bias[i] = (float)(next() % 1000) * 1e-3f - 0.5f;
  }
  for (int i = 0; i < ROWS * STEP; ++i) {
    addend[i] = (float)(next() % 1000) * 1e-3f - 0.5f;
    add_levels[i] = (uint8_t)next();
  }
  for (int form = 0; form < 12; ++form)
    for (int columns = 1; columns <= RN_LEVELS_WIDE; ++columns) {
      memset(y, 0, sizeof y);
      memset(levels, 0, sizeof levels);
      for (int i = 0; i < count; ++i) {
        rn_levels_finish_t f = {.scale = scale,
                                .bias = form & 1 ? bias : NULL,
                                .addend = form / 4 == 1 ? addend : NULL,
                                .addend_levels = form / 4 == 2 ? add_levels : NULL,
                                .addend_scale = rn_levels_scale(-1, 1),
                                .low = columns % 2 ? 0 : -INFINITY,
                                .high = columns % 3 ? INFINITY : 1,
                                .y = form & 2 ? y[i] : NULL,
                                .y_levels = levels[i],
                                .to = rn_levels_scale(columns % 4 ? -2 : 0, columns % 3 ? 3 : 1)};
        all[i]->finish(&f, sums, RN_LEVELS_WIDE, ROWS, columns, STEP);
        cr_assert(memcmp(y[i], y[0], sizeof y[0]) == 0, "table %d, form %d", i, form);
        cr_assert(memcmp(levels[i], levels[0], sizeof levels[0]) == 0, "table %d, form %d", i,
                  form);
      }
      for (int j = 0; (form & 2) && j < columns; ++j) {
        int at = STEP + j;  // of the second row
        float wanted = (float)sums[RN_LEVELS_WIDE + j] * scale[j];
        if (form & 1) wanted += bias[j];
        if (form / 4 == 1) wanted += addend[at];
        rn_levels_scale_t from = rn_levels_scale(-1, 1);
        if (form / 4 == 2) wanted += ((float)add_levels[at] - from.zero) * from.scale;
        if (columns % 2) wanted = fmaxf(wanted, 0);
        if (columns % 3 == 0) wanted = fminf(wanted, 1);
        cr_assert_eq(y[0][at], wanted);
      }
    }
}

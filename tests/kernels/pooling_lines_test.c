// Maxima of windows, for numbers of channels below, at and above whole cache lines, against one
// maximum after the other; nothing is written behind the last channel.
#include <criterion/criterion.h>
#include <math.h>

#include "kernels/cpu/isa/pooling.h"
#include "tensor/dtype.h"

enum { IN = 5, OUT = 3, MOST = 200 };

static const rn_window_axis_t axis = {
    .in = IN, .filter = 3, .stride = 2, .dilation = 1, .before = 1, .after = 1, .out = OUT};

#define CHECK(T, DTYPE, LOWEST, BEHIND)                                                       \
  static void check_##T(const rn_pooling_fns_t* table, int64_t depth) {                       \
    static T x[IN * IN * MOST], y[OUT * OUT * MOST + 1];                                      \
    const T lowest = LOWEST;                                                                  \
    for (int64_t i = 0; i < IN * IN * depth; ++i) x[i] = (T)(i * 7919 % 251 - 100);           \
    y[OUT * OUT * depth] = BEHIND;                                                            \
    rn_pooling_t pooling = {.rows = axis,                                                     \
                            .columns = axis,                                                  \
                            .depth = depth,                                                   \
                            .in_size = IN * IN * depth,                                       \
                            .out_size = OUT * OUT * depth,                                    \
                            .x = x,                                                           \
                            .y = y,                                                           \
                            .lowest = &lowest};                                               \
    table[DTYPE].max(&pooling, 0, OUT);                                                       \
    for (int64_t at = 0; at < OUT * OUT * depth; ++at) {                                      \
      const int64_t c = at % depth, pixel = at / depth;                                       \
      const int64_t top = pixel / OUT * 2 - 1, left = pixel % OUT * 2 - 1;                    \
      T wanted = lowest;                                                                      \
      for (int64_t i = top < 0 ? 0 : top; i < IN && i < top + 3; ++i)                         \
        for (int64_t j = left < 0 ? 0 : left; j < IN && j < left + 3; ++j)                    \
          if (x[(i * IN + j) * depth + c] > wanted) wanted = x[(i * IN + j) * depth + c];     \
      cr_assert(y[at] == wanted, #T ", %lld channels: element %lld is %g, not %g",            \
                (long long)depth, (long long)at, (double)y[at], (double)wanted);              \
    }                                                                                         \
    cr_assert(y[OUT * OUT * depth] == (T)BEHIND, #T ", %lld channels: wrote behind the last", \
              (long long)depth);                                                              \
  }
CHECK(float, RN_FLOAT, -INFINITY, 77)
CHECK(double, RN_DOUBLE, -INFINITY, 77)
CHECK(uint8_t, RN_UINT8, 0, 77)
CHECK(int8_t, RN_INT8, -128, 77)

Test(pooling_lines, maxima) {
  const rn_pooling_fns_t* table = RN_ISA_PICK(rn_pooling_);
  static const int64_t depths[] = {1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 128, 130, MOST};
  for (size_t i = 0; i < sizeof depths / sizeof *depths; ++i) {
    check_float(table, depths[i]);
    check_double(table, depths[i]);
    check_uint8_t(table, depths[i]);
    check_int8_t(table, depths[i]);
  }
}

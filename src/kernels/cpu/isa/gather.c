// See kernels/cpu/isa/gather.h.
#include "kernels/cpu/isa/gather.h"

#include "kernels/cpu/isa/copy.h"

// Rows of a large table are not cached: prefetch this many bytes ahead, which is somewhat more than
// a core can have in flight (10 to 16 lines).
#define AHEAD_BYTES 4096
#define LINE 64

// Prefetch only the first lines of a long row; the hardware prefetcher loads the rest.
#define LINES_AHEAD 8

static inline void fetch(const char* row, size_t size) {
  size_t lines = size / LINE + 1 < LINES_AHEAD ? size / LINE + 1 : LINES_AHEAD;
  for (size_t i = 0; i < lines; ++i) __builtin_prefetch(row + i * LINE);
}

#define SMALL(T)                                                                                \
  for (int64_t i = begin; i < end; ++i) {                                                       \
    __builtin_prefetch(params +                                                                 \
                       (int64_t)index[i + ahead < count ? i + ahead : i] * (int64_t)sizeof(T)); \
    memcpy(out + i * (int64_t)sizeof(T), params + (int64_t)index[i] * (int64_t)sizeof(T),       \
           sizeof(T));                                                                          \
  }

#define GATHER(S, I)                                                                        \
  static void rows_##S(const char* params, const void* indices, int64_t begin, int64_t end, \
                       int64_t count, size_t row, char* out) {                              \
    const I* index = indices;                                                               \
    if (row == 4) {                                                                         \
      const int64_t ahead = 32;                                                             \
      SMALL(uint32_t)                                                                       \
      return;                                                                               \
    }                                                                                       \
    if (row == 8) {                                                                         \
      const int64_t ahead = 32;                                                             \
      SMALL(uint64_t)                                                                       \
      return;                                                                               \
    }                                                                                       \
    int64_t ahead = AHEAD_BYTES / (int64_t)row;                                             \
    ahead = ahead < 2 ? 2 : ahead > 32 ? 32 : ahead;                                        \
    for (int64_t i = begin; i < end && i < begin + ahead; ++i)                              \
      fetch(params + (int64_t)index[i] * (int64_t)row, row);                                \
    for (int64_t i = begin; i < end; ++i) {                                                 \
      if (i + ahead < end) fetch(params + (int64_t)index[i + ahead] * (int64_t)row, row);   \
      copy_row(out + i * (int64_t)row, params + (int64_t)index[i] * (int64_t)row, row);     \
    }                                                                                       \
  }                                                                                         \
  static int64_t check_##S(const void* indices, int64_t count, int64_t limit) {             \
    const I* index = indices;                                                               \
    for (int64_t at = 0; at < count; at += 1024) {                                          \
      int64_t end = at + 1024 < count ? at + 1024 : count;                                  \
      I low = 0, high = 0;                                                                  \
      for (int64_t i = at; i < end; ++i) {                                                  \
        low = index[i] < low ? index[i] : low;                                              \
        high = index[i] > high ? index[i] : high;                                           \
      }                                                                                     \
      if (low >= 0 && (int64_t)high < limit) continue;                                      \
      for (int64_t i = at; i < end; ++i)                                                    \
        if (index[i] < 0 || (int64_t)index[i] >= limit) return i;                           \
    }                                                                                       \
    return count;                                                                           \
  }
GATHER(i16, int16_t)
GATHER(i32, int32_t)
GATHER(i64, int64_t)

const rn_gather_table_t RN_ISA_NAME(rn_gather_table_) = {
    {rows_i16, rows_i32, rows_i64},
    {check_i16, check_i32, check_i64},
};

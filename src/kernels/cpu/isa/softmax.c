// Softmax and cross entropy. Rows are shifted by their maximum, so that exp cannot overflow; exp
// runs over several short rows at once. Sums use LANES partial sums, added pairwise.
#include "kernels/cpu/isa/softmax.h"

#include <math.h>

#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/vector.h"

extern const rn_vector_table_t RN_ISA_NAME(rn_vector_table_);

#ifdef RN_ISA_avx512
// Rows that fit into a register.
static void softmax_short(const float* logits, float* out, int64_t rows, int64_t columns) {
  const __mmask16 mask = (__mmask16)((1u << columns) - 1);
  const vf32_t lowest = F32_SET1(-INFINITY);
  for (int64_t r = 0; r < rows; ++r, logits += columns, out += columns) {
    const vf32_t x = _mm512_mask_loadu_ps(lowest, mask, logits);
    const vf32_t e = _mm512_maskz_mov_ps(mask, f32_exp(x - F32_SET1(_mm512_reduce_max_ps(x))));
    _mm512_mask_storeu_ps(out, mask, e * F32_SET1(1 / _mm512_reduce_add_ps(e)));
  }
}
#endif

#define LANES 16
#define CHUNK 2048  // elements of rows processed together

#define ROWS(T, S, DTYPE, LOG, EXP, LOWEST)                                                        \
  static inline T fold_##S(T* lane) {                                                              \
    for (int width = LANES / 2; width; width /= 2)                                                 \
      for (int i = 0; i < width; ++i) lane[i] += lane[i + width];                                  \
    return lane[0];                                                                                \
  }                                                                                                \
  static inline T max_##S(const T* x, int64_t n) {                                                 \
    T lane[LANES], most;                                                                           \
    int64_t i = 0;                                                                                 \
    for (int j = 0; j < LANES; ++j) lane[j] = LOWEST;                                              \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int j = 0; j < LANES; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];           \
    most = LOWEST;                                                                                 \
    for (; i < n; ++i) most = x[i] > most ? x[i] : most;                                           \
    for (int j = 0; j < LANES; ++j) most = lane[j] > most ? lane[j] : most;                        \
    return most;                                                                                   \
  }                                                                                                \
  static inline void add_##S(const T* x, int64_t n, T* lane) {                                     \
    int64_t i = 0;                                                                                 \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int j = 0; j < LANES; ++j) lane[j] += x[i + j];                                         \
    for (int j = 0; i + j < n; ++j) lane[j] += x[i + j];                                           \
  }                                                                                                \
  static inline T sum_##S(const T* x, int64_t n) {                                                 \
    T lane[LANES] = {0};                                                                           \
    add_##S(x, n, lane);                                                                           \
    return fold_##S(lane);                                                                         \
  }                                                                                                \
  /* out = exp(x - most), chunk by chunk, and its sum. */                                          \
  static inline T shifted_exp_##S(const T* x, T most, T* out, int64_t n) {                         \
    T lane[LANES] = {0};                                                                           \
    for (int64_t c = 0; c < n; c += CHUNK) {                                                       \
      int64_t part = n - c < CHUNK ? n - c : CHUNK;                                                \
      RN_IVDEP for (int64_t i = c; i < c + part; ++i) out[i] = x[i] - most;                        \
      EXP(out + c, 1, NULL, 0, out + c, part);                                                     \
      add_##S(out + c, part, lane);                                                                \
    }                                                                                              \
    return fold_##S(lane);                                                                         \
  }                                                                                                \
  /* The sum of labels * (log of the sum of exponentials - shifted logits). */                     \
  static inline T loss_##S(const T* logits, const T* labels, T most, T log_sum, int64_t n) {       \
    T lane[LANES] = {0};                                                                           \
    int64_t i = 0;                                                                                 \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int j = 0; j < LANES; ++j)                                                              \
        lane[j] += labels[i + j] * (log_sum - (logits[i + j] - most));                             \
    for (int j = 0; i + j < n; ++j) lane[j] += labels[i + j] * (log_sum - (logits[i + j] - most)); \
    return fold_##S(lane);                                                                         \
  }                                                                                                \
  static void softmax_##S(const void* logits_, void* out_, int64_t rows, int64_t columns,          \
                          bool is_log) {                                                           \
    const T* logits = logits_;                                                                     \
    T* out = out_;                                                                                 \
    int64_t together = columns >= CHUNK ? 1 : CHUNK / columns;                                     \
    T buffer[CHUNK];                                                                               \
    for (int64_t r = 0; r < rows; r += together) {                                                 \
      int64_t n = rows - r < together ? rows - r : together;                                       \
      const T* from = logits + r * columns;                                                        \
      T* to = out + r * columns;                                                                   \
      for (int64_t k = 0; k < n; ++k) {                                                            \
        const T* x = from + k * columns;                                                           \
        const T m = max_##S(x, columns);                                                           \
        T* y = to + k * columns;                                                                   \
        RN_IVDEP for (int64_t c = 0; c < columns; ++c) y[c] = x[c] - m;                            \
      }                                                                                            \
      if (!is_log) {                                                                               \
        EXP(to, 1, NULL, 0, to, n* columns);                                                       \
        for (int64_t k = 0; k < n; ++k) {                                                          \
          T* y = to + k * columns;                                                                 \
          const T scale = 1 / sum_##S(y, columns);                                                 \
          for (int64_t c = 0; c < columns; ++c) y[c] *= scale;                                     \
        }                                                                                          \
        continue;                                                                                  \
      }                                                                                            \
      for (int64_t k = 0; k < n; ++k) {                                                            \
        T *y = to + k * columns, sum = 0;                                                          \
        for (int64_t c = 0; c < columns; c += CHUNK) {                                             \
          int64_t part = columns - c < CHUNK ? columns - c : CHUNK;                                \
          EXP(y + c, 1, NULL, 0, buffer, part);                                                    \
          sum += sum_##S(buffer, part);                                                            \
        }                                                                                          \
        const T log_sum = LOG(sum);                                                                \
        for (int64_t c = 0; c < columns; ++c) y[c] -= log_sum;                                     \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void row_cross_entropy_##S(const T* logits, const T* labels, T* loss, T* gradient,        \
                                    T* exps, int64_t columns) {                                    \
    const T most = max_##S(logits, columns);                                                       \
    const T sum = shifted_exp_##S(logits, most, exps, columns), scale = 1 / sum;                   \
    *loss = loss_##S(logits, labels, most, LOG(sum), columns);                                     \
    RN_IVDEP for (int64_t c = 0; c < columns; ++c) gradient[c] = exps[c] * scale - labels[c];      \
  }                                                                                                \
  static void cross_entropy_##S(const void* logits, int64_t logits_step, const void* labels,       \
                                int64_t labels_step, void* loss, void* gradient, int64_t rows,     \
                                int64_t columns) {                                                 \
    T buffer[CHUNK];                                                                               \
    for (int64_t r = 0; r < rows; ++r) {                                                           \
      const T* x = (const T*)logits + r * logits_step;                                             \
      const T* p = (const T*)labels + r * labels_step;                                             \
      T* g = (T*)gradient + r * columns;                                                           \
      row_cross_entropy_##S(x, p, (T*)loss + r, g, columns <= CHUNK ? buffer : g, columns);        \
    }                                                                                              \
  }                                                                                                \
  static void sparse_cross_entropy_##S(const void* logits_, const int64_t* labels, void* loss,     \
                                       void* gradient, int64_t rows, int64_t columns) {            \
    for (int64_t r = 0; r < rows; ++r) {                                                           \
      const T* x = (const T*)logits_ + r * columns;                                                \
      T* g = (T*)gradient + r * columns;                                                           \
      const T most = max_##S(x, columns), chosen = x[labels[r]] - most;                            \
      const T sum = shifted_exp_##S(x, most, g, columns), scale = 1 / sum;                         \
      ((T*)loss)[r] = LOG(sum) - chosen;                                                           \
      for (int64_t c = 0; c < columns; ++c) g[c] *= scale;                                         \
      g[labels[r]] -= 1;                                                                           \
    }                                                                                              \
  }

static inline void exp_f32(const void* a, int a_step, const void* b, int b_step, void* out,
                           int64_t n) {
  RN_ISA_NAME(rn_vector_table_).fn[RN_FLOAT][RN_VECTOR_EXP](a, a_step, b, b_step, out, n);
}
static inline void exp_f64(const void* a, int a_step, const void* b, int b_step, void* out,
                           int64_t n) {
  RN_ISA_NAME(rn_vector_table_).fn[RN_DOUBLE][RN_VECTOR_EXP](a, a_step, b, b_step, out, n);
}

ROWS(float, f32, RN_FLOAT, logf, exp_f32, -INFINITY)
ROWS(double, f64, RN_DOUBLE, log, exp_f64, -INFINITY)

static void softmax_floats(const void* logits, void* out, int64_t rows, int64_t columns,
                           bool is_log) {
#ifdef RN_ISA_avx512
  if (columns <= F32_WIDTH && !is_log) {
    softmax_short(logits, out, rows, columns);
    return;
  }
#endif
  softmax_f32(logits, out, rows, columns, is_log);
}

const rn_softmax_fns_t RN_ISA_NAME(rn_softmax_)[RN_DTYPE_COUNT] = {
    [RN_FLOAT] = {softmax_floats, cross_entropy_f32, sparse_cross_entropy_f32},
    [RN_DOUBLE] = {softmax_f64, cross_entropy_f64, sparse_cross_entropy_f64},
};

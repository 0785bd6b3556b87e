// See gemm_complex.h.
//
// A row of A, read as real numbers, is re, im, re, im, … So C, read as real numbers, is A times a
// matrix of twice as many rows and columns, in which each number of B is the block
//    re  im
//   -im  re
// of which conjugating B changes the sign of im, and conjugating A that of the lower row.
#include "kernels/cpu/gemm_complex.h"

#include "base/alloc.h"

#define SPREAD(T)                                                                     \
  static void spread_##T(const rn_gemm_t* gemm, T* out) {                             \
    const T* b = gemm->b;                                                             \
    const T lower = gemm->conjugate_a ? -1 : 1, im_sign = gemm->conjugate_b ? -1 : 1; \
    const int64_t width = 2 * gemm->n;                                                \
    for (int64_t p = 0; p < gemm->k; ++p, b += width, out += 2 * width)               \
      for (int64_t j = 0; j < width; j += 2) {                                        \
        const T re = b[j], im = b[j + 1] * im_sign;                                   \
        out[j] = re;                                                                  \
        out[j + 1] = im;                                                              \
        out[width + j] = -im * lower;                                                 \
        out[width + j + 1] = re * lower;                                              \
      }                                                                               \
  }
SPREAD(float)
SPREAD(double)

rn_status_t rn_gemm_complex(rn_pool_t* pool, const rn_gemm_t* gemm) {
  const bool is_float = gemm->dtype == RN_COMPLEX64;
  const size_t bytes = 2 * (size_t)(gemm->k * gemm->n) * rn_dtype_size(gemm->dtype);
  void* spread = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(rn_allocator_default(), bytes, &spread));
  if (is_float)
    spread_float(gemm, spread);
  else
    spread_double(gemm, spread);
  const rn_gemm_t real = {.dtype = is_float ? RN_FLOAT : RN_DOUBLE,
                          .m = gemm->m,
                          .n = 2 * gemm->n,
                          .k = 2 * gemm->k,
                          .a = gemm->a,
                          .b = spread,
                          .c = gemm->c};
  rn_status_t status = rn_gemm(pool, &real);
  rn_free(rn_allocator_default(), spread, bytes);
  return status;
}

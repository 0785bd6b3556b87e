// See csr_fns.h.
#include "kernels/cpu/sparse/csr_fns.h"

#include <complex.h>
#include <math.h>

#define T float
#define R float
#define N(name) f32_##name
#define CONJ(x) (x)
#define RE(x) (x)
#include "kernels/cpu/sparse/csr_body.h"
#undef T
#undef R
#undef N
#define T double
#define R double
#define N(name) f64_##name
#include "kernels/cpu/sparse/csr_body.h"
#undef T
#undef R
#undef N
#undef CONJ
#undef RE
#define T float _Complex
#define R float
#define N(name) c64_##name
#define CONJ(x) conjf(x)
#define RE(x) crealf(x)
#include "kernels/cpu/sparse/csr_body.h"
#undef T
#undef R
#undef N
#undef CONJ
#undef RE
#define T double _Complex
#define R double
#define N(name) c128_##name
#define CONJ(x) conj(x)
#define RE(x) creal(x)
#include "kernels/cpu/sparse/csr_body.h"

#define ROW(S)                                                                           \
  {                                                                                      \
    S##_multiply_dense, S##_multiply_row, S##_add_entries, S##_take_sums, S##_conjugate, \
        S##_cholesky_row                                                                 \
  }

const rn_csr_fns_t* rn_csr_fns(rn_dtype_t dtype) {
  static const rn_csr_fns_t f32 = ROW(f32), f64 = ROW(f64), c64 = ROW(c64), c128 = ROW(c128);
  switch (dtype) {
    case RN_FLOAT:
      return &f32;
    case RN_DOUBLE:
      return &f64;
    case RN_COMPLEX64:
      return &c64;
    default:
      return &c128;
  }
}

rn_status_t rn_csr_row_init(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t width,
                            rn_csr_row_t* row) {
  const rn_dtype_t types[3] = {dtype, RN_INT32, RN_INT64};
  *row = (rn_csr_row_t){0};
  for (int i = 0; i < 3; ++i) {
    rn_status_t status = rn_tensor_create(ctx->kernel->host_memory, types[i],
                                          (rn_shape_t){1, &width}, &row->memory[i]);
    if (!rn_ok(status)) {
      rn_csr_row_clear(row);
      return status;
    }
    if (width) memset(row->memory[i].data, 0, rn_tensor_bytes(&row->memory[i]));
  }
  row->sums = row->memory[0].data;
  row->columns = row->memory[1].data;
  row->seen = row->memory[2].data;
  return RN_OK;
}

void rn_csr_row_clear(rn_csr_row_t* row) {
  for (int i = 0; i < 3; ++i) rn_tensor_clear(&row->memory[i]);
}

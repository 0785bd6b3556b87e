// LogMatrixDeterminant. All types are computed in double precision, real or complex.
#include <complex.h>
#include <math.h>

#include "kernels/cpu/linalg/shapes.h"
#include "kernels/cpu/linalg/wide.h"
#include "kernels/kernel_rows.h"

#define T double
#define N(name) real_##name
#define SIZE(x) fabs(x)
#define LARGEST(x) fabs(x)  // the magnitude of one part
#define DIRECTION(x) ((x) != (x) ? (x) : (x) < 0 ? -1.0 : 1.0)
#include "kernels/cpu/linalg/determinant_body.h"
#undef T
#undef N
#undef SIZE
#undef LARGEST
#undef DIRECTION

#define T double _Complex
#define N(name) complex_##name
#define SIZE(x) cabs(x)
#define LARGEST(x) fmax(fabs(creal(x)), fabs(cimag(x)))
#define DIRECTION(x) ((x) / cabs(x))
#include "kernels/cpu/linalg/determinant_body.h"

static rn_status_t compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* a = rn_in(ctx, 0);
  rn_tensor_t *sign = NULL, *size = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  RN_RETURN_IF_ERROR(rn_linalg_check_square(a));
  const rn_shape_t shape = {a->rank - 2, rn_tensor_dims(a)};
  const bool is_complex = rn_dtype_is_complex(a->dtype);
  const int64_t n = rn_tensor_dim(a, a->rank - 1), all = n * n;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &sign));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, shape, &size));
  RN_RETURN_IF_ERROR(
      rn_temp(ctx, is_complex ? RN_COMPLEX128 : RN_DOUBLE, (rn_shape_t){1, &all}, &scratch));
  for (int64_t i = 0; i < sign->count; ++i) {
    rn_wide_t direction = 1;
    double log_size, real_direction = 1;
    if (is_complex) {
      for (int64_t k = 0; k < all; ++k)
        RN_DATA(&scratch, rn_wide_t)[k] = rn_wide_load(a, i * all + k);
      log_size = complex_log_determinant(scratch.data, n, &direction);
    } else {
      for (int64_t k = 0; k < all; ++k)
        RN_DATA(&scratch, double)[k] = creal(rn_wide_load(a, i * all + k));
      log_size = real_log_determinant(scratch.data, n, &real_direction);
      direction = real_direction;
    }
    rn_wide_store(sign, i, direction);
    rn_wide_store(size, i, log_size);
  }
  rn_tensor_clear(&scratch);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "LogMatrixDeterminant",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .types = {{"T", RN_TYPES_COMPLEX | RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = compute},
};
RN_KERNEL_FAMILY(cpu_log_determinant, rows);

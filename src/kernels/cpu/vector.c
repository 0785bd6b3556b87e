// Selects vector functions for the ISA level and runs them over arrays of any type. See vector.h.
#include "kernels/cpu/vector.h"

#include "kernels/cpu/isa.h"

RN_ISA_DECLARE(rn_vector_table_t, rn_vector_table_);

const rn_vector_table_t* rn_vector_table(void) { return RN_ISA_PICK(&rn_vector_table_); }

bool rn_vector_is_costly(rn_vector_code_t code) {
  return (code >= RN_VECTOR_EXP && code <= RN_VECTOR_ERFC) || code == RN_VECTOR_SOFTPLUS ||
         code == RN_VECTOR_ELU || code == RN_VECTOR_SELU || code == RN_VECTOR_ATAN2 ||
         code == RN_VECTOR_POW || code == RN_VECTOR_XLOGY || code == RN_VECTOR_XLOG1PY ||
         code == RN_VECTOR_SOFTPLUS_GRAD;
}

// x log(y) and x log(1 + y) round twice: a 16-bit logarithm is rounded before the multiplication,
// as if the two ops were called one after the other.
static void log_product(const rn_vector_table_t* table, rn_vector_code_t code, bool is_half,
                        const float* x, int x_step, const float* y, int y_step, float* out,
                        int64_t n) {
  rn_widen_fn_t widen = is_half ? table->widen_half : table->widen_bfloat16;
  rn_narrow_fn_t narrow = is_half ? table->narrow_half : table->narrow_bfloat16;
  rn_vector_code_t inner = code == RN_VECTOR_XLOGY ? RN_VECTOR_LOG : RN_VECTOR_LOG1P;
  float logs[RN_VECTOR_BLOCK];
  uint16_t rounded[RN_VECTOR_BLOCK];
  table->fn[RN_FLOAT][inner](y, y_step, NULL, 0, logs, n);
  narrow(logs, rounded, n);
  widen(rounded, logs, n);
  table->fn[RN_FLOAT][RN_VECTOR_MUL_NO_NAN](logs, 1, x, x_step, out, n);
}

// Computes 16-bit floats in float, one block at a time, and rounds once.
static void run_narrow(rn_vector_code_t code, bool is_half, const uint16_t* a, int a_step,
                       const uint16_t* b, int b_step, uint16_t* out, int64_t n) {
  const rn_vector_table_t* table = rn_vector_table();
  rn_widen_fn_t widen = is_half ? table->widen_half : table->widen_bfloat16;
  rn_narrow_fn_t narrow = is_half ? table->narrow_half : table->narrow_bfloat16;
  float x[RN_VECTOR_BLOCK], y[RN_VECTOR_BLOCK];
  if (!a_step) widen(a, x, 1);
  if (b && !b_step) widen(b, y, 1);
  for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {
    int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK;
    if (a_step) widen(a + start, x, count);
    if (b && b_step) widen(b + start, y, count);
    float result[RN_VECTOR_BLOCK];
    if (code == RN_VECTOR_XLOGY || code == RN_VECTOR_XLOG1PY)
      log_product(table, code, is_half, x, a_step, y, b_step, result, count);
    else
      table->fn[RN_FLOAT][code](x, a_step, b ? y : NULL, b_step, result, count);
    narrow(result, out + start, count);
  }
}

void rn_vector_run(rn_vector_code_t code, rn_dtype_t dtype, const void* a, int a_step,
                   const void* b, int b_step, void* out, int64_t n) {
  rn_vector_fn_t fn = rn_vector_table()->fn[dtype][code];
  if (fn)
    fn(a, a_step, b, b_step, out, n);
  else
    run_narrow(code, dtype == RN_HALF, a, a_step, b, b_step, out, n);
}

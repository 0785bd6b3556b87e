// Checks of elementwise ops that do not simply broadcast or do not keep the type, for kernels of
// any device.
#ifndef RUNNEL_KERNELS_CPU_MATH_OPERANDS_H_
#define RUNNEL_KERNELS_CPU_MATH_OPERANDS_H_

#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"

// Gradients that need equally many elements in any shapes; the first input determines the result's.
static inline rn_status_t rn_check_one_count(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (a->count == b->count) return RN_OK;
  return rn_invalid_argument(
      "The two arguments to a cwise op must have same number of elements, got %lld and %lld",
      (long long)a->count, (long long)b->count);
}

// Gradients of activations: no broadcasting.
static inline rn_status_t rn_check_one_shape(const rn_kernel_ctx_t* ctx) {
  return rn_tensor_same_shape(rn_in(ctx, 0), rn_in(ctx, 1)) ? RN_OK : rn_same_shape_error(ctx, 1);
}

static inline rn_status_t rn_check_approximate_equal(const rn_kernel_ctx_t* ctx) {
  if (rn_tensor_same_shape(rn_in(ctx, 0), rn_in(ctx, 1))) return RN_OK;
  return rn_invalid_argument("x and y must be of the same shape. x shape: %s. y shape: %s",
                             rn_text_of(rn_in(ctx, 0)).text, rn_text_of(rn_in(ctx, 1)).text);
}

static inline rn_status_t rn_check_clip(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *value = rn_in(ctx, 0), *least = rn_in(ctx, 1), *most = rn_in(ctx, 2);
  if ((!least->rank || rn_tensor_same_shape(value, least)) &&
      (!most->rank || rn_tensor_same_shape(value, most)))
    return RN_OK;
  return rn_invalid_argument(
      "clip_value_min and clip_value_max must be either of the same shape as input, or a "
      "scalar. input shape: %sclip_value_min shape: %sclip_value_max shape: %s",
      rn_text_of(value).text, rn_text_of(least).text, rn_text_of(most).text);
}

// Betainc: scalars combine with everything, arrays only with arrays of the same shape.
static inline rn_status_t rn_check_betainc(const rn_kernel_ctx_t* ctx) {
  static const char names[] = "abx";
  for (int i = 0; i < 3; ++i) {
    for (int k = i + 1; k < 3; ++k) {
      const rn_tensor_t *left = rn_in(ctx, i), *right = rn_in(ctx, k);
      if (left->rank == 0 || right->rank == 0 || rn_tensor_same_shape(left, right)) continue;
      return rn_invalid_argument("Shapes of %c and %c are inconsistent: %s vs. %s", names[i],
                                 names[k], rn_text_of(left).text, rn_text_of(right).text);
    }
  }
  return RN_OK;
}

// Ops between complex numbers and their parts: stock has no other pairs of types.
static inline rn_status_t rn_check_complex_pair(const rn_kernel_init_t* init) {
  rn_dtype_t from = rn_dtype_base(init->input_types[0]), to = init->output_types[0];
  bool is_narrow = from == RN_COMPLEX64 || from == RN_FLOAT;
  if (is_narrow == (to == RN_COMPLEX64 || to == RN_FLOAT)) return RN_OK;
  bool is_real = to == RN_FLOAT || to == RN_DOUBLE;
  rn_dtype_t expected =
      is_narrow ? (is_real ? RN_FLOAT : RN_COMPLEX64) : (is_real ? RN_DOUBLE : RN_COMPLEX128);
  return rn_invalid_argument("Signature mismatch, have: %s->%s expected: %s->%s",
                             rn_dtype_name(from), rn_dtype_name(to), rn_dtype_name(from),
                             rn_dtype_name(expected));
}

#endif  // RUNNEL_KERNELS_CPU_MATH_OPERANDS_H_

// Gradient rules of Fourier transforms.
#include <stdio.h>

#include "ops/rules.h"

static int other_type(int dtype) {
  switch (dtype) {
    case RN_FLOAT:
      return RN_COMPLEX64;
    case RN_DOUBLE:
      return RN_COMPLEX128;
    case RN_COMPLEX64:
      return RN_FLOAT;
    default:
      return RN_DOUBLE;
  }
}

// The transform of |x| in the other direction: RFFT2D for IRFFT2D. It takes the forward node's
// other inputs, lengths and axes.
static rn_edge_t reverse(rn_grad_t* g, rn_edge_t x) {
  const char* name = rn_grad_op(g);
  char op[16];
  bool is_inverse = *name == 'I';
  snprintf(op, sizeof op, "%s%s", is_inverse ? "" : "I", is_inverse ? name + 1 : name);
  rn_op_begin(g->scope, op);
  rn_op_input(g->scope, x);
  for (int i = 1; i < g->input_count; ++i) rn_op_input(g->scope, rn_grad_in(g, i));
  if (name[is_inverse] == 'R')
    rn_op_attr_type(g->scope, is_inverse ? "Tcomplex" : "Treal", other_type(rn_edge_dtype(x)));
  return (rn_edge_t){rn_op_finish(g->scope), 0};
}

// The product of a vector of int32 sizes, in |dtype|.
static rn_edge_t product_of(rn_grad_t* g, rn_edge_t sizes, int dtype) {
  bool is_complex = dtype == RN_COMPLEX64 || dtype == RN_COMPLEX128;
  int real = is_complex ? other_type(dtype) : dtype;
  rn_edge_t product = rn_Prod(g->scope, rn_rule_cast(g, sizes, real), rn_const_int32(g->scope, 0));
  return rn_rule_cast(g, product, dtype);
}

// The number of elements that one complex transform mixes.
static rn_edge_t size_of(rn_grad_t* g, rn_edge_t dy) {
  if (g->input_count > 1) return product_of(g, rn_grad_in(g, 1), rn_edge_dtype(dy));
  const char* name = rn_grad_op(g);
  char digit = name[strlen(name) - 2];
  int64_t begin = digit == '2' ? -2 : digit == '3' ? -3 : -1, end = 0, step = 1;
  rn_edge_t sizes = rn_StridedSlice(
      g->scope, rn_rule_shape(g, dy, RN_INT32), rn_rule_ints(g, RN_INT32, &begin, 1),
      rn_rule_ints(g, RN_INT32, &end, 1), rn_rule_ints(g, RN_INT32, &step, 1), .end_mask = 1);
  return product_of(g, sizes, rn_edge_dtype(dy));
}

// What was cropped gets zeros; what was padded gets nothing.
static rn_status_t to_input(rn_grad_t* g, rn_edge_t dx) {
  rn_edge_t in = rn_grad_in(g, 0);
  rn_shape_t want = rn_grad_shape(g, in), have = rn_grad_shape(g, dx);
  bool is_same = want.rank > 0 && want.rank == have.rank;
  for (int d = 0; is_same && d < want.rank; ++d)
    is_same = want.dims[d] >= 0 && want.dims[d] == have.dims[d];
  if (g->input_count == 1 || is_same) {
    rn_grad_to(g, 0, dx);
    return RN_OK;
  }
  rn_edge_t wanted = rn_rule_shape(g, in, RN_INT32);
  rn_edge_t common = rn_Minimum(g->scope, wanted, rn_Shape(g->scope, dx));
  rn_edge_t none = rn_ZerosLike(g->scope, common);
  rn_edge_t pads[] = {none, rn_Sub(g->scope, wanted, common)};
  dx = rn_Slice(g->scope, dx, none, common);
  rn_grad_to(g, 0, rn_Pad(g->scope, dx, rn_Pack(g->scope, pads, 2, .axis = 1)));
  return RN_OK;
}

static rn_status_t complex_rule(rn_grad_t* g, bool is_inverse) {
  rn_edge_t dy = rn_grad_dy(g, 0), dx = reverse(g, dy), size = size_of(g, dy);
  return to_input(g, is_inverse ? rn_Div(g->scope, dx, size) : rn_Mul(g->scope, dx, size));
}

RN_RULE(fft) { return complex_rule(g, false); }
RN_RULE(ifft) { return complex_rule(g, true); }

// How often each number of half a spectrum stands for two of the whole, as a complex vector:
// |twice|, but 1 for frequency 0 and, if the length is even, the highest.
static rn_edge_t weights(rn_grad_t* g, double twice, int dtype) {
  rn_edge_t lengths = rn_grad_in(g, 1), one = rn_const_int32(g->scope, 1);
  rn_edge_t zero = rn_const_int32(g->scope, 0), two = rn_const_int32(g->scope, 2);
  rn_edge_t last =
      rn_GatherV2(g->scope, lengths, rn_Sub(g->scope, rn_Size(g->scope, lengths), one), zero);
  rn_edge_t limit = rn_AddV2(g->scope, rn_FloorDiv(g->scope, last, two), one);
  rn_edge_t k = rn_Range(g->scope, zero, limit, one);
  rn_edge_t is_single = rn_LogicalOr(g->scope, rn_Equal(g->scope, k, zero),
                                     rn_Equal(g->scope, rn_Mul(g->scope, k, two), last));
  int real = other_type(dtype);
  rn_edge_t weight = rn_SelectV2(g->scope, is_single, rn_const_scalar(g->scope, real, 1),
                                 rn_const_scalar(g->scope, real, twice));
  return rn_rule_cast(g, weight, dtype);
}

// IRFFT counts the frequencies between the first and the last twice, RFFT counts none twice.
RN_RULE(rfft) {
  rn_edge_t dy = rn_grad_dy(g, 0);
  rn_edge_t dx = reverse(g, rn_Mul(g->scope, dy, weights(g, 0.5, rn_edge_dtype(dy))));
  rn_edge_t size = product_of(g, rn_grad_in(g, 1), rn_edge_dtype(dx));
  return to_input(g, rn_Mul(g->scope, dx, size));
}

RN_RULE(irfft) {
  rn_edge_t dx = reverse(g, rn_grad_dy(g, 0));
  int dtype = rn_edge_dtype(dx);
  rn_edge_t weight = rn_Div(g->scope, weights(g, 2, dtype), product_of(g, rn_grad_in(g, 1), dtype));
  return to_input(g, rn_Mul(g->scope, dx, weight));
}

// Shapes of matrix products: see matmul_shapes.h.
#include "kernels/cpu/matmul_shapes.h"

#include <stdio.h>

#include "kernels/cpu/array.h"

rn_status_t rn_matmul_init(const rn_kernel_init_t* init, void* state) {
  rn_matmul_attrs_t* attrs = state;
  attrs->transpose_a = rn_init_bool(init, "transpose_a");
  attrs->transpose_b = rn_init_bool(init, "transpose_b");
  return RN_OK;
}

rn_status_t rn_batch_matmul_init(const rn_kernel_init_t* init, void* state) {
  rn_matmul_attrs_t* attrs = state;
  attrs->transpose_a = rn_init_bool(init, "adj_x");
  attrs->transpose_b = rn_init_bool(init, "adj_y");
  attrs->is_adjoint = true;
  return RN_OK;
}

rn_status_t rn_batch_matmul_v1_init(const rn_kernel_init_t* init, void* state) {
  ((rn_matmul_attrs_t*)state)->wants_same_batch = true;
  return rn_batch_matmul_init(init, state);
}

// "before[2,3]between[4,5]".
static rn_status_t shape_error(const char* before, const rn_tensor_t* a, const char* between,
                               const rn_tensor_t* b) {
  return rn_invalid_argument("%s%s%s%s", before, rn_text_of(a).text, between, rn_text_of(b).text);
}

rn_status_t rn_matmul_sizes(const rn_matmul_attrs_t* attrs, const rn_tensor_t* a,
                            const rn_tensor_t* b, rn_gemm_t* gemm) {
  int64_t a_rows = rn_tensor_dim(a, a->rank - 2), a_columns = rn_tensor_dim(a, a->rank - 1);
  int64_t b_rows = rn_tensor_dim(b, b->rank - 2), b_columns = rn_tensor_dim(b, b->rank - 1);
  gemm->m = attrs->transpose_a ? a_columns : a_rows;
  gemm->k = attrs->transpose_a ? a_rows : a_columns;
  gemm->n = attrs->transpose_b ? b_rows : b_columns;
  int64_t b_k = attrs->transpose_b ? b_columns : b_rows;
  if (gemm->k != b_k) return shape_error("Matrix size-incompatible: In[0]: ", a, ", In[1]: ", b);
  gemm->dtype = a->dtype;
  gemm->transpose_a = attrs->transpose_a;
  gemm->transpose_b = attrs->transpose_b;
  gemm->conjugate_a = attrs->is_adjoint && attrs->transpose_a && rn_dtype_is_complex(a->dtype);
  gemm->conjugate_b = attrs->is_adjoint && attrs->transpose_b && rn_dtype_is_complex(b->dtype);
  return RN_OK;
}

rn_status_t rn_matmul_check(const rn_matmul_attrs_t* attrs, const rn_tensor_t* a,
                            const rn_tensor_t* b, rn_gemm_t* gemm) {
  if (a->rank == 2 && b->rank == 2) return rn_matmul_sizes(attrs, a, b, gemm);
  if (a->rank != b->rank)
    return shape_error("In[0] and In[1] has different ndims: ", a, " vs. ", b);
  return rn_invalid_argument("In[0] and In[1] ndims must be == 2: %d", a->rank);
}

static int64_t batch_dim(const rn_tensor_t* tensor, int rank, int d) {
  int at = d - (rank - (tensor->rank - 2));
  return at < 0 ? 1 : rn_tensor_dim(tensor, at);
}

bool rn_matmul_broadcast(const rn_tensor_t* a, const rn_tensor_t* b, rn_matmul_batch_t* out) {
  int64_t a_step = 1, b_step = 1;
  out->rank = (a->rank > b->rank ? a->rank : b->rank) - 2;
  for (int d = out->rank - 1; d >= 0; --d) {
    int64_t x = batch_dim(a, out->rank, d), y = batch_dim(b, out->rank, d);
    if (x != y && x != 1 && y != 1) return false;
    out->dims[d] = x == 1 ? y : x;
    out->a_steps[d] = x == 1 ? 0 : a_step;
    out->b_steps[d] = y == 1 ? 0 : b_step;
    a_step *= x;
    b_step *= y;
  }
  return true;
}

static rn_status_t check_same_batch(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->rank != b->rank)
    return shape_error("In[0] and In[1] has different ndims: ", a, " vs. ", b);
  if (a->rank < 2) return rn_invalid_argument("In[0] and In[1] ndims must be >= 2: %d", a->rank);
  for (int d = 0; d < a->rank - 2; ++d) {
    if (rn_tensor_dim(a, d) == rn_tensor_dim(b, d)) continue;
    char text[80];
    snprintf(text, sizeof text, "In[0].dim(%d) and In[1].dim(%d) must be the same: ", d, d);
    return shape_error(text, a, " vs ", b);
  }
  return RN_OK;
}

rn_status_t rn_batch_matmul_check(const rn_matmul_attrs_t* attrs, const rn_tensor_t* a,
                                  const rn_tensor_t* b, rn_gemm_t* gemm, rn_matmul_batch_t* batch) {
  if (attrs->wants_same_batch) RN_RETURN_IF_ERROR(check_same_batch(a, b));
  if (a->rank < 2) return rn_invalid_argument("In[0] ndims must be >= 2: %d", a->rank);
  if (b->rank < 2) return rn_invalid_argument("In[1] ndims must be >= 2: %d", b->rank);
  if (!rn_matmul_broadcast(a, b, batch))
    return shape_error("In[0] and In[1] must have compatible batch dimensions: ", a, " vs. ", b);
  RN_RETURN_IF_ERROR(rn_matmul_sizes(attrs, a, b, gemm));
  batch->dims[batch->rank] = gemm->m;
  batch->dims[batch->rank + 1] = gemm->n;
  return RN_OK;
}

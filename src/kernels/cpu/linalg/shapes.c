// Shapes of linear algebra: see shapes.h.
#include "kernels/cpu/linalg/shapes.h"

#include <inttypes.h>

#include "kernels/cpu/array.h"

rn_status_t rn_linalg_check_matrices(const rn_tensor_t* a) {
  if (a->rank >= 2) return RN_OK;
  return rn_invalid_argument("Input tensor 0 must have rank >= 2, got %d", a->rank);
}

rn_status_t rn_linalg_check_square(const rn_tensor_t* a) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  if (rn_tensor_dim(a, a->rank - 2) == rn_tensor_dim(a, a->rank - 1)) return RN_OK;
  return rn_invalid_argument("Input matrix must be square.");
}

int64_t rn_linalg_stack(const rn_tensor_t* a) {
  return rn_dims_product(rn_tensor_dims(a), 0, a->rank - 2);
}

rn_status_t rn_linalg_check_solve(const rn_tensor_t* a, const rn_tensor_t* b) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  if (a->rank != b->rank) return rn_invalid_argument("All input tensors must have the same rank.");
  bool fits = true;
  for (int d = 0; fits && d < a->rank - 2; ++d) fits = rn_tensor_dim(a, d) == rn_tensor_dim(b, d);
  if (!fits) return rn_invalid_argument("All input tensors must have the same outer dimensions.");
  if (rn_tensor_dim(a, a->rank - 1) != rn_tensor_dim(a, a->rank - 2))
    return rn_invalid_argument("First input (lhs) must be a square matrix.");
  if (rn_tensor_dim(a, a->rank - 1) != rn_tensor_dim(b, b->rank - 2))
    return rn_invalid_argument("Input matrix and rhs are incompatible.");
  return RN_OK;
}

rn_status_t rn_linalg_check_triangular(const rn_tensor_t* a, const rn_tensor_t* b, bool is_lower,
                                       bool is_adjoint, rn_matmul_batch_t* out) {
  if (a->rank < 2) return rn_invalid_argument("In[0] ndims must be >= 2: %d", a->rank);
  if (b->rank < 2) return rn_invalid_argument("In[1] ndims must be >= 2: %d", b->rank);
  const int64_t n = rn_tensor_dim(a, a->rank - 1);
  if (!rn_matmul_broadcast(a, b, out))
    return rn_invalid_argument("In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                               rn_text_of(a).text, rn_text_of(b).text);
  if (n != rn_tensor_dim(a, a->rank - 2))
    return rn_invalid_argument("In[0] matrices in the last dimensions must be square (%" PRId64
                               " =/= %" PRId64 ")",
                               n, rn_tensor_dim(a, a->rank - 2));
  if (n != rn_tensor_dim(b, b->rank - 2))
    return rn_invalid_argument("In[0] mismatch In[1] shape: %" PRId64 " vs. %" PRId64
                               ": %s %s %d %d",
                               n, rn_tensor_dim(b, b->rank - 2), rn_text_of(a).text,
                               rn_text_of(b).text, is_lower, is_adjoint);
  out->dims[out->rank] = n;
  out->dims[out->rank + 1] = rn_tensor_dim(b, b->rank - 1);
  return RN_OK;
}

void rn_linalg_fill_index(const rn_matmul_batch_t* outer, const int64_t* steps, int64_t count,
                          int64_t* index) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0;
    for (int d = outer->rank - 1; d >= 0; --d) {
      place += rest % outer->dims[d] * steps[d];
      rest /= outer->dims[d];
    }
    index[i] = place;
  }
}

// The outer dims of |a| and |b| must be the same.
static rn_status_t check_outer(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->rank != b->rank) return rn_invalid_argument("All input tensors must have the same rank.");
  for (int d = 0; d < a->rank - 2; ++d)
    if (rn_tensor_dim(a, d) != rn_tensor_dim(b, d))
      return rn_invalid_argument("All input tensors must have the same outer dimensions.");
  return RN_OK;
}

rn_status_t rn_linalg_check_tridiagonal(const rn_tensor_t* a, const rn_tensor_t* b) {
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a));
  RN_RETURN_IF_ERROR(check_outer(a, b));
  int64_t rows = rn_tensor_dim(a, a->rank - 2), n = rn_tensor_dim(a, a->rank - 1);
  if (rows != 3)
    return rn_invalid_argument(
        "Expected diagonals to be provided as a matrix with 3 rows, got %" PRId64 " rows.", rows);
  if (n != rn_tensor_dim(b, b->rank - 2))
    return rn_invalid_argument(
        "Expected the same number of left-hand sides and right-hand sides, "
        "got %" PRId64 " and %" PRId64 ".",
        n, rn_tensor_dim(b, b->rank - 2));
  return RN_OK;
}

rn_status_t rn_linalg_check_tridiagonal_product(const rn_tensor_t* const a[3],
                                                const rn_tensor_t* b) {
  static const char* const names[] = {"superdiagonal", "main diagonal", "subdiagonal"};
  RN_RETURN_IF_ERROR(rn_linalg_check_matrices(a[0]));
  for (int i = 1; i < 3; ++i) RN_RETURN_IF_ERROR(check_outer(a[0], a[i]));
  RN_RETURN_IF_ERROR(check_outer(a[0], b));
  int64_t n = rn_tensor_dim(b, b->rank - 2);
  for (int i = 0; i < 3; ++i)
    if (rn_tensor_dim(a[i], a[i]->rank - 2) != 1 || rn_tensor_dim(a[i], a[i]->rank - 1) != n)
      return rn_invalid_argument("Invalid %s shape.", names[i]);
  return RN_OK;
}

// Transposes and conjugates of CSR matrices.
#include "kernels/cpu/sparse/csr_checks.h"
#include "kernels/cpu/sparse/csr_fns.h"
#include "kernels/kernel_rows.h"

// The transposes of the matrices in |in|, conjugated if asked for, as parts of a new matrix.
static rn_status_t transposed(rn_kernel_ctx_t* ctx, const rn_csr_t* in, bool conjugates,
                              rn_csr_parts_t* out) {
  const size_t item = rn_dtype_size(in->dtype);
  int64_t shape[3] = {in->count, in->width, in->height};
  RN_RETURN_IF_ERROR(
      rn_csr_parts_init(ctx, in->dtype, in->rank, shape + (3 - in->rank), rn_csr_entries(in), out));
  const int32_t* batch = in->part[RN_CSR_BATCH].data;
  int32_t* all_columns = out->part[RN_CSR_COLUMNS].data;
  memcpy(out->part[RN_CSR_BATCH].data, batch, rn_tensor_bytes(&in->part[RN_CSR_BATCH]));
  for (int64_t b = 0; b < in->count; ++b) {
    rn_csr_matrix_t m = rn_csr_matrix(in, b);
    int32_t* rows = RN_DATA(&out->part[RN_CSR_ROWS], int32_t) + b * (m.width + 1);
    char* values = RN_DATA(&out->part[RN_CSR_VALUES], char) + (size_t)batch[b] * item;
    for (int64_t k = 0; k < m.entries; ++k) ++rows[m.columns[k] + 1];
    for (int64_t c = 0; c < m.width; ++c) rows[c + 1] += rows[c];
    // While entries are placed, a pointer is where the next entry of its row goes: at the end, each
    // has moved to the place of the one behind it.
    for (int64_t r = 0; r < m.height; ++r)
      for (int64_t k = m.rows[r]; k < m.rows[r + 1]; ++k) {
        int64_t to = rows[m.columns[k]]++;
        all_columns[batch[b] + to] = (int32_t)r;
        memcpy(values + (size_t)to * item, (const char*)m.values + (size_t)k * item, item);
      }
    for (int64_t c = m.width; c > 0; --c) rows[c] = rows[c - 1];
    rows[0] = 0;
  }
  if (conjugates)
    rn_csr_fns(in->dtype)->conjugate(out->part[RN_CSR_VALUES].data, rn_csr_entries(in));
  return RN_OK;
}

rn_status_t rn_csr_oriented(rn_kernel_ctx_t* ctx, rn_csr_t* in, bool transposes, bool conjugates,
                            rn_csr_t** out) {
  rn_csr_parts_t parts;
  if (!transposes) {
    rn_object_retain(&in->object);
    *out = in;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(transposed(ctx, in, conjugates, &parts));
  return rn_csr_create(ctx->kernel->allocator, parts.part, out);
}

rn_status_t rn_csr_check_transpose(const rn_kernel_ctx_t* ctx, const rn_csr_t* in) {
  const rn_csr_transpose_t* state = ctx->state;
  if (in->dtype == state->dtype) return RN_OK;
  return rn_invalid_argument("dtype of input is not equal to 'type': %s vs. %s",
                             rn_dtype_name(in->dtype), rn_dtype_name(state->dtype));
}

static rn_status_t transpose_compute(rn_kernel_ctx_t* ctx) {
  const rn_csr_transpose_t* state = ctx->state;
  rn_csr_t* in = NULL;
  rn_csr_parts_t parts;
  RN_RETURN_IF_ERROR(rn_csr_in(ctx, 0, &in));
  RN_RETURN_IF_ERROR(rn_csr_check_transpose(ctx, in));
  RN_RETURN_IF_ERROR(transposed(ctx, in, state->conjugates, &parts));
  return rn_csr_finish(ctx, &parts, RN_OK);
}

static rn_status_t conjugated(rn_kernel_ctx_t* ctx, const rn_csr_t* in, rn_csr_t** out) {
  rn_csr_parts_t parts = {0};
  rn_status_t status = RN_OK;
  for (int p = 0; rn_ok(status) && p < RN_CSR_VALUES; ++p)
    status = rn_tensor_share(&in->part[p], &parts.part[p]);
  if (rn_ok(status))
    status = rn_tensor_copy(&in->part[RN_CSR_VALUES], ctx->kernel->host_memory,
                            &parts.part[RN_CSR_VALUES]);
  if (!rn_ok(status)) {
    rn_csr_parts_clear(&parts);
    return status;
  }
  rn_csr_fns(in->dtype)->conjugate(parts.part[RN_CSR_VALUES].data, rn_csr_entries(in));
  return rn_csr_create(ctx->kernel->allocator, parts.part, out);
}

static rn_status_t conj_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  for (int64_t i = 0; i < in->count; ++i) {
    rn_csr_t *csr = rn_csr_from(RN_DATA(in, rn_object_t*)[i]), *result = NULL;
    rn_object_t** to = &RN_DATA(out, rn_object_t*)[i];
    if (!csr) return rn_internal("No unary variant unary_op function found for op CONJ");
    RN_RETURN_IF_ERROR(rn_csr_on(csr, NULL, &csr));
    RN_RETURN_IF_ERROR(conjugated(ctx, csr, &result));
    rn_object_release(*to);
    *to = &result->object;
  }
  return RN_OK;
}

rn_status_t rn_csr_transpose_init(const rn_kernel_init_t* init, void* state) {
  *(rn_csr_transpose_t*)state =
      (rn_csr_transpose_t){rn_init_bool(init, "conjugate"), rn_init_type(init, "type")};
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SparseMatrixTranspose",
     .device = "CPU",
     .types = {{"type", RN_T(FLOAT) | RN_T(DOUBLE) | RN_TYPES_COMPLEX}},
     .state_size = sizeof(rn_csr_transpose_t),
     .init = rn_csr_transpose_init,
     .compute = transpose_compute},
    {.op = "Conj", .device = "CPU", .types = {{"T", RN_T(VARIANT)}}, .compute = conj_compute},
};
RN_KERNEL_FAMILY(cpu_csr_transpose, rows);

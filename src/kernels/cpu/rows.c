// See rows.h.
#include "kernels/cpu/rows.h"

#include "kernels/cpu/device_moves.h"

// Rows of a batch: their first element, how many elements they have, and their shape.
typedef struct rows_view_t {
  const char* data;
  int64_t count;
  rn_shape_t shape;
  int64_t dims[RN_MAX_RANK];
} rows_view_t;

static void view_rows(const rn_tensor_t* batch, int64_t begin, int64_t count, bool drops_dim,
                      rows_view_t* out) {
  for (int d = 0; d < batch->rank; ++d) out->dims[d] = rn_tensor_dim(batch, d);
  const int64_t rows = out->dims[0], width = rows ? batch->count / rows : 0;
  out->dims[0] = count;
  out->shape = drops_dim ? (rn_shape_t){batch->rank - 1, out->dims + 1}
                         : (rn_shape_t){batch->rank, out->dims};
  out->data = RN_DATA(batch, const char) + (size_t)(begin * width) * rn_dtype_size(batch->dtype);
  out->count = count * width;
}

static bool can_share(const rn_tensor_t* batch, const rows_view_t* view) {
  return batch->buffer && (uintptr_t)view->data % RN_ALIGN == 0;
}

static rn_status_t share(const rn_tensor_t* batch, const rows_view_t* view, rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(rn_tensor_init(out, batch->dtype, view->shape));
  out->data = (void*)(uintptr_t)view->data;
  out->buffer = batch->buffer;
  rn_buffer_retain(out->buffer);
  return RN_OK;
}

rn_status_t rn_rows_slice(const rn_tensor_t* batch, int64_t begin, int64_t count, bool drops_dim,
                          bool shares, rn_allocator_t allocator, rn_tensor_t* out) {
  rows_view_t view;
  view_rows(batch, begin, count, drops_dim, &view);
  if (shares && can_share(batch, &view)) return share(batch, &view, out);
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, batch->dtype, view.shape, out));
  rn_status_t status = rn_move_row(batch->dtype, view.data, out->data, view.count);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

rn_status_t rn_ctx_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* batch, int64_t begin,
                        int64_t count, bool drops_dim, rn_tensor_t* out) {
  rows_view_t view;
  view_rows(batch, begin, count, drops_dim, &view);
  if (can_share(batch, &view)) return share(batch, &view, out);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(rn_ctx_memory(ctx, batch->dtype), batch->dtype, view.shape, out));
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, view.count, 1, 1);
  rn_status_t status = rn_ctx_move(ctx, &move, batch->dtype, view.data, out->data);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

bool rn_rows_fit(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->rank != b->rank || a->dtype != b->dtype) return false;
  for (int d = 1; d < a->rank; ++d)
    if (rn_tensor_dim(a, d) != rn_tensor_dim(b, d)) return false;
  return true;
}

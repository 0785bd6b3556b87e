// See rows.h.
#include "kernels/cpu/rows.h"

#include "kernels/cpu/move.h"

rn_status_t rn_rows_slice(const rn_tensor_t* batch, int64_t begin, int64_t count, bool drops_dim,
                          bool shares, rn_allocator_t allocator, rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK];
  for (int d = 0; d < batch->rank; ++d) dims[d] = rn_tensor_dim(batch, d);
  int64_t rows = dims[0];
  dims[0] = count;
  rn_shape_t shape =
      drops_dim ? (rn_shape_t){batch->rank - 1, dims + 1} : (rn_shape_t){batch->rank, dims};
  int64_t width = rows ? batch->count / rows : 0;
  const char* data =
      RN_DATA(batch, const char) + (size_t)(begin * width) * rn_dtype_size(batch->dtype);
  if (shares && batch->buffer && (uintptr_t)data % RN_ALIGN == 0) {
    RN_RETURN_IF_ERROR(rn_tensor_init(out, batch->dtype, shape));
    out->data = (void*)(uintptr_t)data;
    out->buffer = batch->buffer;
    rn_buffer_retain(out->buffer);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, batch->dtype, shape, out));
  rn_status_t status = rn_move_row(batch->dtype, data, out->data, count * width);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

// See device_moves.h.
#include "kernels/cpu/device_moves.h"

#include "kernels/cpu/vector.h"

bool rn_ctx_is_host(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype) {
  const rn_device_t* device = ctx->kernel->device;
  return !device || device->is_host || !(device->vtable->move || device->vtable->fill) ||
         !rn_dtype_is_plain(dtype) || ctx->kernel->def->flags & RN_KERNEL_ON_HOST;
}

rn_allocator_t rn_ctx_memory(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype) {
  return rn_dtype_is_plain(dtype) ? ctx->kernel->device_memory : ctx->kernel->host_memory;
}

// A plug-in's device can only fill and copy.
static rn_status_t cannot(const rn_device_t* device, const char* what) {
  return rn_unimplemented("The device %.*s does not %s elements", RN_STR_ARGS(device->name), what);
}

rn_status_t rn_ctx_move(rn_kernel_ctx_t* ctx, const rn_move_t* move, rn_dtype_t dtype,
                        const void* src, void* dst) {
  if (rn_ctx_is_host(ctx, dtype)) return rn_move_run(move, rn_ctx_pool(ctx), dtype, src, dst);
  if (move->is_empty) return RN_OK;
  rn_device_t* device = ctx->kernel->device;
  if (!device->vtable->move) return cannot(device, "move");
  const rn_box_t box = {src, dst, move->rank, move->dims};
  return device->vtable->move(device, &box, 1, rn_dtype_size(dtype));
}

rn_status_t rn_ctx_zero(rn_kernel_ctx_t* ctx, rn_tensor_t* tensor) {
  static const char zeros[16];
  if (!rn_ctx_is_host(ctx, tensor->dtype)) return rn_ctx_fill_value(ctx, zeros, tensor);
  rn_move_zero(rn_ctx_pool(ctx), tensor->dtype, tensor->data, tensor->count);
  return RN_OK;
}

rn_status_t rn_ctx_copy(rn_kernel_ctx_t* ctx, const rn_tensor_t* from, rn_tensor_t* to) {
  if (rn_ctx_is_host(ctx, from->dtype))
    return rn_move_row(from->dtype, from->data, to->data, from->count);
  return rn_device_copy(ctx->kernel->device, from, to);
}

rn_status_t rn_ctx_fill(rn_kernel_ctx_t* ctx, int i, rn_tensor_t* tensor) {
  const rn_tensor_t* value = rn_in(ctx, i);
  if (rn_ctx_is_host(ctx, tensor->dtype))
    return rn_move_fill(rn_ctx_pool(ctx), tensor->dtype, value->data, tensor->data, tensor->count);
  rn_device_t* device = ctx->kernel->device;
  return device->vtable->fill(device, value->data, ctx->kernel->input_is_host[i],
                              rn_dtype_size(tensor->dtype), tensor->data, tensor->count);
}

rn_status_t rn_ctx_fill_value(rn_kernel_ctx_t* ctx, const void* value, rn_tensor_t* tensor) {
  if (rn_ctx_is_host(ctx, tensor->dtype))
    return rn_move_fill(rn_ctx_pool(ctx), tensor->dtype, value, tensor->data, tensor->count);
  rn_device_t* device = ctx->kernel->device;
  return device->vtable->fill(device, value, true, rn_dtype_size(tensor->dtype), tensor->data,
                              tensor->count);
}

rn_status_t rn_ctx_add(rn_kernel_ctx_t* ctx, const rn_tensor_t* value, rn_tensor_t* sum) {
  rn_device_t* device = ctx->kernel->device;
  if (!rn_ctx_is_host(ctx, sum->dtype))
    return !device->vtable->add
               ? cannot(device, "add")
               : device->vtable->add(device, sum->dtype, value->data, sum->data, sum->count);
  rn_host_add(sum, value, sum);
  return RN_OK;
}

void rn_host_add(const rn_tensor_t* a, const rn_tensor_t* b, rn_tensor_t* sum) {
  // A complex number is added as two real ones.
  const rn_dtype_t dtype = sum->dtype == RN_COMPLEX64    ? RN_FLOAT
                           : sum->dtype == RN_COMPLEX128 ? RN_DOUBLE
                                                         : sum->dtype;
  rn_vector_run(RN_VECTOR_ADD_V2, dtype, a->data, 1, b->data, 1, sum->data,
                dtype == sum->dtype ? sum->count : 2 * sum->count);
}

rn_status_t rn_ctx_duplicate(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, rn_tensor_t* out) {
  return rn_ctx_is_host(ctx, tensor->dtype)
             ? rn_tensor_copy(tensor, rn_ctx_memory(ctx, tensor->dtype), out)
             : rn_device_duplicate(ctx->kernel->device, tensor, out);
}

rn_status_t rn_ctx_keep(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, rn_tensor_t* out) {
  const bool is_borrowed = !tensor->buffer && tensor->data && !tensor->is_ref;
  return is_borrowed ? rn_ctx_duplicate(ctx, tensor, out) : rn_tensor_share(tensor, out);
}

void rn_moves_begin(rn_moves_t* moves, rn_kernel_ctx_t* ctx, rn_dtype_t dtype) {
  moves->ctx = ctx;
  moves->dtype = dtype;
  moves->count = 0;
}

rn_status_t rn_moves_add(rn_moves_t* moves, const rn_move_t* move, const void* src, void* dst) {
  if (move->rank > RN_MOVES_RANK || rn_ctx_is_host(moves->ctx, moves->dtype))
    return rn_ctx_move(moves->ctx, move, moves->dtype, src, dst);
  if (move->is_empty) return RN_OK;
  if (moves->count == RN_MOVES_COUNT) RN_RETURN_IF_ERROR(rn_moves_end(moves));
  rn_move_dim_t* dims = moves->dims[moves->count];
  for (int32_t d = 0; d < move->rank; ++d) dims[d] = move->dims[d];
  moves->boxes[moves->count++] = (rn_box_t){src, dst, move->rank, dims};
  return RN_OK;
}

rn_status_t rn_moves_add_row(rn_moves_t* moves, const void* src, void* dst, int64_t count) {
  if (rn_ctx_is_host(moves->ctx, moves->dtype)) return rn_move_row(moves->dtype, src, dst, count);
  rn_move_t move;
  rn_move_begin(&move);
  rn_move_add(&move, count, 1, 1);
  return rn_moves_add(moves, &move, src, dst);
}

rn_status_t rn_moves_end(rn_moves_t* moves) {
  if (moves->count == 0) return RN_OK;
  rn_device_t* device = moves->ctx->kernel->device;
  const int count = moves->count;
  moves->count = 0;
  if (!device->vtable->move) return cannot(device, "move");
  return device->vtable->move(device, moves->boxes, count, rn_dtype_size(moves->dtype));
}

// UnbatchGrad: every step brings the gradient of its rows; the step that has the batch waits for
// all of them and gets them concatenated, the others get tensors without rows.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/data_flow/parking.h"
#include "kernels/cpu/function/pieces.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/state/shared.h"
#include "kernels/kernel_rows.h"

#define UNBATCH_GRAD_TYPE "UnbatchGradResource"

typedef struct unbatch_grad_resource_t {
  rn_resource_t resource;
  rn_parking_t parking;      // its mutex guards |pieces|
  rn_batch_pieces_t pieces;  // gradients that no batch has taken
} unbatch_grad_resource_t;

static void resource_destroy(rn_object_t* object) {
  unbatch_grad_resource_t* unbatch = (unbatch_grad_resource_t*)object;
  rn_allocator_t allocator = unbatch->parking.allocator;
  rn_batch_pieces_clear(&unbatch->pieces, allocator);
  rn_parking_destroy(&unbatch->parking);
  RN_FREE(allocator, unbatch);
}

static rn_status_t resource_create(void* arg, rn_resource_t** out) {
  const rn_kernel_init_t* init = arg;
  unbatch_grad_resource_t* unbatch = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &unbatch));
  unbatch->resource = (rn_resource_t){{.refs = 1, .destroy = resource_destroy}, UNBATCH_GRAD_TYPE};
  rn_parking_init(&unbatch->parking, init->allocator);
  *out = &unbatch->resource;
  return RN_OK;
}

static rn_status_t check(const rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *data = rn_in(ctx, 0), *table = rn_in(ctx, 1), *grad = rn_in(ctx, 2),
                    *id = rn_in(ctx, 3);
  if (id->rank != 0)
    return rn_invalid_argument("Expected `id` to be scalar. Received %s", rn_text_of(id).text);
  if (grad->rank == 0)
    return rn_invalid_argument("grad must have at least one dimension; got %s",
                               rn_text_of(grad).text);
  if (data->count == 0) return RN_OK;
  if (table->count == 0) return rn_invalid_argument("batch_index is empty while the tensor isn't.");
  int64_t lines = table->rank ? rn_tensor_dim(table, 0) : 0;
  if (table->count != lines * 3)
    return rn_invalid_argument("batch_index should contain %" PRId64 " elements. Received %" PRId64,
                               lines * 3, table->count);
  return RN_OK;
}

// The gradient of line |line| of the table, or NULL.
static rn_tensor_t* piece_of(unbatch_grad_resource_t* unbatch, const rn_tensor_t* table,
                             int64_t line) {
  int64_t i = rn_batch_pieces_find(&unbatch->pieces, RN_DATA(table, int64_t)[3 * line]);
  return i < 0 ? NULL : &unbatch->pieces.list.items[i].tensor;
}

static rn_status_t concat_locked(unbatch_grad_resource_t* unbatch, rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *table = rn_in(ctx, 1), *first = piece_of(unbatch, table, 0);
  int64_t lines = rn_tensor_dim(table, 0), dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(first), first->rank * sizeof *dims);
  dims[0] = 0;
  for (int64_t i = 0; i < lines; ++i) {
    const rn_tensor_t* piece = piece_of(unbatch, table, i);
    if (!rn_rows_fit(first, piece))
      return rn_invalid_argument("Gradients of one batch have different shapes: %s and %s",
                                 rn_text_of(first).text, rn_text_of(piece).text);
    if (__builtin_add_overflow(dims[0], rn_tensor_dim(piece, 0), &dims[0]))
      return rn_out_of_memory();
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){first->rank, dims}, &out));
  char* to = out->data;
  for (int64_t i = 0; i < lines; ++i) {
    const rn_tensor_t* piece = piece_of(unbatch, table, i);
    RN_RETURN_IF_ERROR(rn_move_row(piece->dtype, piece->data, to, piece->count));
    to += rn_tensor_bytes(piece);
  }
  return RN_OK;
}

static bool has_batch(const rn_kernel_ctx_t* ctx) { return rn_in(ctx, 0)->count > 0; }

// Ends the call of a batch if all of its gradients are there, which are then used up. Other calls
// end at once.
static bool attempt(rn_resource_t* owner, rn_kernel_ctx_t* ctx, rn_status_t* out_status) {
  unbatch_grad_resource_t* unbatch = (unbatch_grad_resource_t*)owner;
  if (!has_batch(ctx)) return true;
  const rn_tensor_t* table = rn_in(ctx, 1);
  int64_t lines = rn_tensor_dim(table, 0);
  for (int64_t i = 0; i < lines; ++i)
    if (!piece_of(unbatch, table, i)) return false;
  *out_status = concat_locked(unbatch, ctx);
  for (int64_t i = 0; i < lines; ++i) {
    int64_t at = rn_batch_pieces_find(&unbatch->pieces, RN_DATA(table, int64_t)[3 * i]);
    if (at < 0) continue;  // a key that the table has twice
    rn_tensor_clear(&unbatch->pieces.list.items[at].tensor);
    rn_batch_pieces_remove(&unbatch->pieces, at);
  }
  return true;
}

static rn_status_t set_none(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* grad = rn_in(ctx, 2);
  int64_t dims[RN_MAX_RANK];
  rn_tensor_t* out = NULL;
  memcpy(dims, rn_tensor_dims(grad), grad->rank * sizeof *dims);
  dims[0] = 0;
  return rn_output(ctx, 0, (rn_shape_t){grad->rank, dims}, &out);
}

// Brings the gradient of the call's rows.
static rn_status_t begin(rn_resource_t* owner, rn_kernel_ctx_t* ctx) {
  unbatch_grad_resource_t* unbatch = (unbatch_grad_resource_t*)owner;
  rn_batch_piece_t piece = {.key = *RN_DATA(rn_in(ctx, 3), int64_t)};
  if (rn_batch_pieces_find(&unbatch->pieces, piece.key) >= 0)
    return rn_invalid_argument("Two runs with the same batch key.");
  if (!has_batch(ctx)) RN_RETURN_IF_ERROR(set_none(ctx));
  RN_RETURN_IF_ERROR(rn_tensor_keep(rn_in(ctx, 2), ctx->kernel->host_memory, &piece.tensor));
  rn_status_t status = rn_vec_push(&unbatch->pieces.list, unbatch->parking.allocator, piece);
  if (!rn_ok(status)) rn_tensor_clear(&piece.tensor);
  return status;
}

typedef struct unbatch_grad_t {
  unbatch_grad_resource_t* resource;  // Retained
} unbatch_grad_t;

static void unbatch_grad(rn_kernel_ctx_t* ctx) {
  unbatch_grad_resource_t* unbatch = ((unbatch_grad_t*)ctx->state)->resource;
  rn_status_t status = check(ctx);
  if (rn_ok(status))
    rn_parking_call_begin(&unbatch->parking, &unbatch->resource, ctx, begin, attempt,
                          "Unbatching was cancelled");
  else
    rn_done(ctx, status);
}

static rn_status_t unbatch_grad_init(const rn_kernel_init_t* init, void* state_) {
  unbatch_grad_t* state = state_;
  rn_resource_t* found = NULL;
  RN_RETURN_IF_ERROR(rn_shared_get(init, UNBATCH_GRAD_TYPE, resource_create, &found));
  state->resource = (unbatch_grad_resource_t*)found;
  return RN_OK;
}

static void unbatch_grad_destroy(void* state_) {
  unbatch_grad_t* state = state_;
  if (state->resource) rn_object_release(&state->resource->resource.object);
}

static const rn_kernel_def_t rows[] = {
    {.op = "UnbatchGrad",
     .device = "CPU",
     .flags = RN_KERNEL_OWN_OUTPUTS | RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(unbatch_grad_t),
     .init = unbatch_grad_init,
     .destroy = unbatch_grad_destroy,
     .compute_async = unbatch_grad},
};
RN_KERNEL_FAMILY(cpu_unbatch_grad, rows);

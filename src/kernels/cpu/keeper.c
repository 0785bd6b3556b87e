// See keeper.h.
#include "kernels/cpu/keeper.h"

void rn_keeper_init(rn_keeper_t* kept) { rn_mutex_init(&kept->mutex); }

void rn_keeper_clear(rn_keeper_t* kept) {
  rn_tensor_clear(&kept->source);
  for (int i = 0; i < RN_KEEPER_MOST; ++i) rn_tensor_clear(&kept->values[i]);
  rn_mutex_destroy(&kept->mutex);
}

static bool is_same(const rn_tensor_t* a, const rn_tensor_t* b) {
  return a->data == b->data && a->buffer == b->buffer;
}

// Keeps a new value. What it replaces goes to the caller, to be cleared outside the lock.
static void keep(rn_keeper_t* kept, int which, rn_tensor_t* source, rn_tensor_t* value,
                 rn_tensor_t old[RN_KEEPER_MOST]) {
  for (int i = 0; i < RN_KEEPER_MOST; ++i) {
    if (i != which && is_same(&kept->source, source)) continue;
    old[i] = kept->values[i];
    kept->values[i] = (rn_tensor_t){0};
  }
  kept->values[which] = *value;
  rn_tensor_t before = kept->source;
  kept->source = *source;
  *source = before;
}

rn_status_t rn_keeper_get(rn_kernel_ctx_t* ctx, rn_keeper_t* kept, const rn_tensor_t* source,
                          int which, rn_dtype_t dtype, rn_shape_t shape, rn_keeper_fn_t make,
                          void* arg, rn_tensor_t* out) {
  rn_mutex_lock(&kept->mutex);
  rn_status_t status = RN_OK;
  bool is_kept = is_same(&kept->source, source) && rn_tensor_is_set(&kept->values[which]);
  if (is_kept) status = rn_tensor_share(&kept->values[which], out);
  rn_mutex_unlock(&kept->mutex);
  if (is_kept) return status;
  rn_tensor_t made = {0}, owner = {0}, old[RN_KEEPER_MOST] = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->device_memory, dtype, shape, &made));
  status = make(ctx, arg, made.data);
  if (rn_ok(status)) status = rn_tensor_share(source, &owner);
  if (rn_ok(status)) status = rn_tensor_share(&made, out);
  if (!rn_ok(status)) {
    rn_tensor_clear(&made);
    rn_tensor_clear(&owner);
    return status;
  }
  rn_mutex_lock(&kept->mutex);
  keep(kept, which, &owner, &made, old);
  rn_mutex_unlock(&kept->mutex);
  rn_tensor_clear(&owner);
  for (int i = 0; i < RN_KEEPER_MOST; ++i) rn_tensor_clear(&old[i]);
  return RN_OK;
}

// One interface to both checkpoint formats. See checkpoint.h.
#include "io/checkpoint.h"

struct rn_checkpoint_t {
  const rn_env_t* env;         // Borrowed
  rn_bundle_reader_t* bundle;  // Owned; one of the two
  rn_v1_reader_t* v1;          // Owned
};

rn_status_t rn_checkpoint_open(const rn_env_t* env, const char* prefix, rn_checkpoint_t** out) {
  *out = NULL;
  rn_checkpoint_t* checkpoint = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &checkpoint));
  checkpoint->env = env;
  bool is_bundle = false;
  rn_status_t status = rn_bundle_find_index(env, prefix, &is_bundle);
  if (rn_ok(status))
    status = is_bundle ? rn_bundle_reader_open(env, prefix, &checkpoint->bundle)
                       : rn_v1_reader_open(env, prefix, &checkpoint->v1);
  if (!rn_ok(status)) {
    rn_checkpoint_close(checkpoint);
    return status;
  }
  *out = checkpoint;
  return RN_OK;
}

void rn_checkpoint_close(rn_checkpoint_t* checkpoint) {
  if (!checkpoint) return;
  rn_bundle_reader_close(checkpoint->bundle);
  rn_v1_reader_close(checkpoint->v1);
  RN_FREE(checkpoint->env->allocator, checkpoint);
}

rn_bundle_reader_t* rn_checkpoint_bundle(const rn_checkpoint_t* checkpoint) {
  return checkpoint->bundle;
}

size_t rn_checkpoint_count(const rn_checkpoint_t* checkpoint) {
  return checkpoint->bundle ? rn_bundle_count(checkpoint->bundle) : rn_v1_count(checkpoint->v1);
}

static rn_checkpoint_tensor_t of_entry(const rn_bundle_entry_t* entry) {
  return (rn_checkpoint_tensor_t){entry->name, entry->dtype, entry->shape};
}

static rn_checkpoint_tensor_t of_v1(const rn_v1_tensor_t* tensor) {
  return (rn_checkpoint_tensor_t){tensor->name, tensor->dtype, tensor->shape};
}

rn_checkpoint_tensor_t rn_checkpoint_tensor(const rn_checkpoint_t* checkpoint, size_t i) {
  return checkpoint->bundle ? of_entry(rn_bundle_entry(checkpoint->bundle, i))
                            : of_v1(rn_v1_tensor(checkpoint->v1, i));
}

bool rn_checkpoint_find(const rn_checkpoint_t* checkpoint, rn_str_t name,
                        rn_checkpoint_tensor_t* out) {
  if (checkpoint->bundle) {
    const rn_bundle_entry_t* entry = rn_bundle_find(checkpoint->bundle, name);
    if (entry) *out = of_entry(entry);
    return entry;
  }
  const rn_v1_tensor_t* tensor = rn_v1_find(checkpoint->v1, name);
  if (tensor) *out = of_v1(tensor);
  return tensor;
}

rn_status_t rn_checkpoint_read(const rn_checkpoint_t* checkpoint, rn_str_t name, rn_pool_t* pool,
                               rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  if (checkpoint->bundle) {
    const rn_bundle_entry_t* entry = NULL;
    RN_RETURN_IF_ERROR(rn_bundle_lookup(checkpoint->bundle, name, &entry));
    return rn_bundle_read_new(checkpoint->bundle, entry, pool, allocator, out);
  }
  const rn_v1_tensor_t* tensor = rn_v1_find(checkpoint->v1, name);
  if (!tensor) return rn_not_found("Key %.*s not found in checkpoint", RN_STR_ARGS(name));
  return rn_v1_read(checkpoint->v1, tensor, NULL, allocator, out);
}

rn_status_t rn_checkpoint_verify_next(const rn_checkpoint_t* checkpoint, rn_pool_t* pool,
                                      size_t* inout_at, int64_t* inout_bytes, bool* out_is_over) {
  if (checkpoint->bundle)
    return rn_bundle_verify_next(checkpoint->bundle, pool, inout_at, inout_bytes, out_is_over);
  *out_is_over = *inout_at >= rn_v1_count(checkpoint->v1);
  if (*out_is_over) return RN_OK;
  rn_tensor_t tensor;
  RN_RETURN_IF_ERROR(rn_v1_read(checkpoint->v1, rn_v1_tensor(checkpoint->v1, (*inout_at)++), NULL,
                                checkpoint->env->allocator, &tensor));
  *inout_bytes += (int64_t)rn_tensor_bytes(&tensor);
  rn_tensor_clear(&tensor);
  return RN_OK;
}

rn_status_t rn_checkpoint_verify(const rn_checkpoint_t* checkpoint, rn_pool_t* pool,
                                 int64_t* out_bytes) {
  size_t at = 0;
  *out_bytes = 0;
  for (bool is_over = false; !is_over;)
    RN_RETURN_IF_ERROR(rn_checkpoint_verify_next(checkpoint, pool, &at, out_bytes, &is_over));
  return RN_OK;
}

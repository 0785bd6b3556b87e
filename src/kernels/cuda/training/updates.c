// Tables of updates: see updates.h.
#include "kernels/cuda/training/updates.h"

static const char* const rule_names[] = {
#define RULE(name, variables) "training/training/" #name,
    RN_RULES(RULE)
#undef RULE
};

rn_status_t rn_cuda_updates_begin(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                  rn_cuda_updates_t* out) {
  out->apply = apply;
  out->chunks = 0;
  out->args.count = 0;
  out->args.flags = apply->flags;
  out->args.integer = -1;
  for (int i = 0; i < apply->number_count; ++i) {
    RN_RETURN_IF_ERROR(rn_apply_check_number(ctx, apply, apply->numbers[i]));
    const rn_tensor_t* number = rn_in(ctx, apply->numbers[i]);
    out->args.numbers[i] = number->data;
    if (number->dtype == RN_INT64) out->args.integer = i;
  }
  return RN_OK;
}

rn_status_t rn_cuda_updates_add(const rn_kernel_ctx_t* ctx, rn_cuda_updates_t* updates,
                                rn_variable_t* const* variables, const rn_tensor_t* gradient) {
  const int words = RN_UPDATES_ENTRY + updates->apply->variable_count;
  const rn_dtype_t dtype = variables[0]->value.dtype;
  const int64_t chunk = RN_UPDATES_CHUNK / (int64_t)rn_dtype_size(dtype);
  const int64_t chunks = gradient->count / chunk + (gradient->count % chunk != 0);
  if (chunks == 0) return RN_OK;
  if ((updates->args.count + 1) * words > RN_UPDATES_WORDS || updates->chunks + chunks > INT32_MAX)
    RN_RETURN_IF_ERROR(rn_cuda_updates_issue(ctx, updates));
  updates->dtype = dtype;
  u64* entry = &updates->args.table[updates->args.count++ * words];
  const u64 type = gradient->dtype == dtype     ? RN_GRADIENT_SAME
                   : gradient->dtype == RN_HALF ? RN_GRADIENT_HALF
                                                : RN_GRADIENT_BFLOAT16;
  entry[0] = type << 32 | (u64)updates->chunks;
  entry[1] = (u64)gradient->count;
  entry[2] = (uintptr_t)gradient->data;
  for (int k = 0; k < updates->apply->variable_count; ++k)
    entry[RN_UPDATES_ENTRY + k] = (uintptr_t)variables[k]->value.data;
  updates->chunks += chunks;
  return RN_OK;
}

rn_status_t rn_cuda_updates_issue(const rn_kernel_ctx_t* ctx, rn_cuda_updates_t* updates) {
  const int64_t chunks = updates->chunks;
  if (chunks == 0) return RN_OK;
  updates->args.chunks = (i32)chunks;
  rn_status_t status =
      rn_cuda_each(ctx, rn_cuda_name(rule_names[updates->apply->rule], updates->dtype).text,
                   chunks * RN_CUDA_BLOCK, &updates->args, sizeof updates->args);
  updates->chunks = updates->args.count = 0;
  return status;
}

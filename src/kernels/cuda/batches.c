// Batches of matrices: see batches.h.
#include "kernels/cuda/batches.h"

// One dimension of the result, or several that are like one. Steps are in matrices.
typedef struct batch_axis_t {
  int64_t size, a_step, b_step, c_step;
} batch_axis_t;

// The dimensions, innermost first, without those of size 1 and with neighbours merged where both
// operands go on as they would in one dimension.
static int merge_axes(const rn_matmul_batch_t* all, batch_axis_t* axes) {
  int count = 0;
  int64_t c_step = 1;
  for (int d = all->rank - 1; d >= 0; --d) {
    batch_axis_t axis = {all->dims[d], all->a_steps[d], all->b_steps[d], c_step};
    c_step *= axis.size;
    if (axis.size == 1) continue;
    batch_axis_t* last = count ? &axes[count - 1] : NULL;
    if (last && axis.a_step == last->a_step * last->size &&
        axis.b_step == last->b_step * last->size)
      last->size *= axis.size;
    else
      axes[count++] = axis;
  }
  return count;
}

rn_status_t rn_cuda_batches(rn_kernel_ctx_t* ctx, const rn_matmul_batch_t* all,
                            rn_status_t (*run)(rn_kernel_ctx_t* ctx, const rn_cuda_batch_t* batch,
                                               void* arg),
                            void* arg) {
  batch_axis_t axes[RN_MAX_RANK];
  const int count = merge_axes(all, axes);
  int largest = 0;
  for (int i = 1; i < count; ++i)
    if (axes[i].size > axes[largest].size) largest = i;
  int64_t loops = 1;
  for (int i = 0; i < count; ++i)
    if (i != largest) loops *= axes[i].size;
  rn_cuda_batch_t batch = {.size = 1};
  if (count) {
    const batch_axis_t* axis = &axes[largest];
    batch = (rn_cuda_batch_t){axis->size, axis->a_step, axis->b_step, axis->c_step, 0, 0, 0};
  }
  for (int64_t loop = 0; batch.size && loop < loops; ++loop) {
    int64_t rest = loop;
    batch.a_at = batch.b_at = batch.c_at = 0;
    for (int i = 0; i < count; ++i) {
      if (i == largest) continue;
      int64_t at = rest % axes[i].size;
      rest /= axes[i].size;
      batch.a_at += at * axes[i].a_step;
      batch.b_at += at * axes[i].b_step;
      batch.c_at += at * axes[i].c_step;
    }
    RN_RETURN_IF_ERROR(run(ctx, &batch, arg));
  }
  return RN_OK;
}

// MatMul and BatchMatMul on a GPU.
#include "kernels/cpu/matmul_shapes.h"
#include "kernels/cuda/math/matmul.h"

static rn_status_t matmul_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  rn_gemm_t gemm = {0};
  RN_RETURN_IF_ERROR(rn_matmul_check(ctx->state, a, b, &gemm));
  int64_t dims[2] = {gemm.m, gemm.n};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = out->data;
  rn_cuda_matmul_t matmul = rn_cuda_matmul_of(&gemm);
  return rn_cuda_matmul(ctx, &matmul);
}

// One batch dimension of the output, or several that are like one. Steps are in matrices.
typedef struct batch_axis_t {
  int64_t size, a_step, b_step, c_step;
} batch_axis_t;

// The batch dimensions, innermost first, without those of size 1 and with neighbours merged where
// both operands go on as they would in one dimension.
static int merge_axes(const rn_matmul_batch_t* batch, batch_axis_t* axes) {
  int count = 0;
  int64_t c_step = 1;
  for (int d = batch->rank - 1; d >= 0; --d) {
    batch_axis_t axis = {batch->dims[d], batch->a_steps[d], batch->b_steps[d], c_step};
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

// Many matrices times the same one are a single product with more rows.
static bool stack_rows(const batch_axis_t* axis, rn_cuda_matmul_t* matmul) {
  if (axis->a_step != 1 || axis->b_step != 0 || axis->c_step != 1 || matmul->transpose_a)
    return false;
  matmul->m *= axis->size;
  return true;
}

// The largest axis becomes the batch of the products; the host loops over the others.
static rn_status_t multiply_all(rn_kernel_ctx_t* ctx, const rn_cuda_matmul_t* first,
                                batch_axis_t* axes, int count) {
  const int64_t a_size = first->m * first->k, b_size = first->k * first->n;
  const int64_t c_size = first->m * first->n;
  const size_t item = rn_dtype_size(first->dtype);
  rn_cuda_matmul_t matmul = *first;
  int largest = 0;
  for (int i = 1; i < count; ++i)
    if (axes[i].size > axes[largest].size) largest = i;
  if (count && !(count == 1 && stack_rows(&axes[0], &matmul))) {
    matmul.batch = axes[largest].size;
    matmul.a_stride = axes[largest].a_step * a_size;
    matmul.b_stride = axes[largest].b_step * b_size;
    matmul.c_stride = axes[largest].c_step * c_size;
  }
  int64_t loops = 1;
  for (int i = 0; i < count; ++i)
    if (i != largest) loops *= axes[i].size;
  for (int64_t loop = 0; loop < loops; ++loop) {
    int64_t rest = loop, a = 0, b = 0, c = 0;
    for (int i = 0; i < count; ++i) {
      if (i == largest) continue;
      int64_t at = rest % axes[i].size;
      rest /= axes[i].size;
      a += at * axes[i].a_step, b += at * axes[i].b_step, c += at * axes[i].c_step;
    }
    matmul.a = (const char*)first->a + (size_t)(a * a_size) * item;
    matmul.b = (const char*)first->b + (size_t)(b * b_size) * item;
    matmul.c = (char*)first->c + (size_t)(c * c_size) * item;
    RN_RETURN_IF_ERROR(rn_cuda_matmul(ctx, &matmul));
  }
  return RN_OK;
}

static rn_status_t batch_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  rn_gemm_t gemm = {0};
  rn_matmul_batch_t batch;
  RN_RETURN_IF_ERROR(rn_batch_matmul_check(ctx->state, a, b, &gemm, &batch));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){batch.rank + 2, batch.dims}, &out));
  if (out->count == 0) return RN_OK;
  gemm.a = a->data;
  gemm.b = b->data;
  gemm.c = out->data;
  rn_cuda_matmul_t matmul = rn_cuda_matmul_of(&gemm);
  batch_axis_t axes[RN_MAX_RANK];
  return multiply_all(ctx, &matmul, axes, merge_axes(&batch, axes));
}

#define ROW(name, init_, compute_)                                                             \
  {                                                                                            \
    .op = name, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX}},         \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_matmul_attrs_t), \
    .init = init_, .compute = compute_                                                         \
  }
#define SAME(type)                                                                             \
  {                                                                                            \
    .op = "BatchMatMulV3", .device = "GPU",                                                    \
    .types = {{"Ta", RN_T(type)}, {"Tb", RN_T(type)}, {"Tout", RN_T(type)}},                   \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_matmul_attrs_t), \
    .init = rn_batch_matmul_init, .compute = batch_compute                                     \
  }

static const rn_kernel_def_t rows[] = {
    ROW("MatMul", rn_matmul_init, matmul_compute),
    ROW("BatchMatMul", rn_batch_matmul_v1_init, batch_compute),
    ROW("BatchMatMulV2", rn_batch_matmul_init, batch_compute),
    SAME(HALF),
    SAME(BFLOAT16),
    SAME(FLOAT),
    SAME(DOUBLE),
    SAME(COMPLEX64),
    SAME(COMPLEX128),
};
RN_KERNEL_FAMILY(cuda_matmul, rows);

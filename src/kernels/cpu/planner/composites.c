// The kernels of composite ops, for lists and for placement by type. The planner replaces their
// nodes before they could run: step/expand_composites.c.
#include "kernels/kernel_rows.h"

static rn_status_t composite_compute(rn_kernel_ctx_t* ctx) {
  return rn_internal("%s was not expanded", ctx->kernel->op->name);
}

#define ROW(op_, types_) \
  { .op = op_, .device = "CPU", .types = {{"T", types_}}, .compute = composite_compute }
static const rn_kernel_def_t rows[] = {
    ROW("_FusedBatchNormEx", RN_T(BFLOAT16) | RN_T(FLOAT) | RN_T(HALF)),
    ROW("_FusedConv2D", RN_TYPES_FLOATS),
    ROW("_FusedConv3D", RN_T(BFLOAT16) | RN_T(FLOAT) | RN_T(HALF)),
    ROW("_FusedDepthwiseConv2dNative", RN_TYPES_FLOATS),
    ROW("_FusedMatMul", RN_T(BFLOAT16) | RN_T(FLOAT) | RN_T(HALF)),
    {.op = "_ReadVariablesOp", .device = "CPU", .compute = composite_compute},
    {.op = "_SwitchN", .device = "CPU", .compute = composite_compute},
    ROW("_TensorToHashBucketFast", RN_TYPES_INTS | RN_TYPES_UINTS),
    ROW("_UnaryOpsComposition", RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE)),
    {.op = "_VarHandlesOp", .device = "CPU", .compute = composite_compute},
};
RN_KERNEL_FAMILY(cpu_composites, rows);

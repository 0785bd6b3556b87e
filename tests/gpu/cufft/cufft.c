// An emulated cuFFT on the emulated driver. A plan wants a work area; a transform to real numbers
// overwrites its input, as the real one may.
#include "kernels/cuda/libs/cufft.h"

#include <stdlib.h>
#include <string.h>

#include "emulated_image.h"
#include "kernels/cuda/launch.h"

// After the types of its members:
#include "cufft_args.h"

#define INVALID_PLAN 1
#define INVALID_VALUE 4
#define EXEC_FAILED 6
#define PLANS 4096
#define WORK_SIZE 4096

typedef struct emulated_plan_t {
  CUmodule module;
  CUfunction function;
  CUstream stream;
  void* work;
  int type;
  long long n[3], batch;
  size_t input_size;
  bool is_live;
} emulated_plan_t;
static emulated_plan_t plans[PLANS];
static int transforms;

#define CALL(result, name, parameters) \
  result name parameters;              \
  __attribute__((visibility("default"))) result name parameters
#define DRIVER(result, name, parameters) extern result name parameters;
RN_CUDA_DRIVER_CALLS(DRIVER)

// How many transforms were issued.
CALL(int, emulated_cufft_count, (void)) { return transforms; }

CALL(cufftResult, cufftCreate, (cufftHandle * out)) {
  for (int i = 0; i < PLANS; ++i) {
    if (plans[i].is_live) continue;
    plans[i] = (emulated_plan_t){.is_live = true};
    *out = i;
    return CUFFT_SUCCESS;
  }
  return INVALID_PLAN;
}
CALL(cufftResult, cufftDestroy, (cufftHandle handle)) {
  emulated_plan_t* plan = &plans[handle];
  if (!plan->is_live) return INVALID_PLAN;
  if (plan->module) cuModuleUnload(plan->module);
  plan->is_live = false;
  return CUFFT_SUCCESS;
}
CALL(cufftResult, cufftSetAutoAllocation, (cufftHandle handle, int is_on)) {
  (void)handle;
  return is_on ? INVALID_VALUE : CUFFT_SUCCESS;
}

static bool is_wide(int type) {
  return type == CUFFT_Z2Z || type == CUFFT_D2Z || type == CUFFT_Z2D;
}
static bool is_from_real(int type) { return type == CUFFT_R2C || type == CUFFT_D2Z; }
static bool is_to_real(int type) { return type == CUFFT_C2R || type == CUFFT_Z2D; }

CALL(cufftResult, cufftMakePlanMany64,
     (cufftHandle handle, int rank, long long* n, long long* in_embed, long long in_stride,
      long long in_distance, long long* out_embed, long long out_stride, long long out_distance,
      int type, long long batch, size_t* work_size)) {
  (void)in_stride, (void)in_distance, (void)out_stride, (void)out_distance;
  emulated_plan_t* plan = &plans[handle];
  if (in_embed || out_embed || rank < 1 || rank > 3 || batch < 1) return INVALID_VALUE;
  plan->type = type;
  plan->batch = batch;
  plan->n[0] = plan->n[1] = 1;
  memcpy(plan->n + 3 - rank, n, (size_t)rank * sizeof *n);
  const long long last = is_to_real(type) ? plan->n[2] / 2 + 1 : plan->n[2];
  plan->input_size = (size_t)(batch * plan->n[0] * plan->n[1] * last) * (is_wide(type) ? 16 : 8);
  *work_size = WORK_SIZE;
  char* bytes = read_emulated_image(EMULATED_IMAGE);
  CUresult result = bytes ? cuModuleLoadData(&plan->module, bytes) : CUDA_ERROR_NOT_FOUND;
  if (!result) result = cuModuleGetFunction(&plan->function, plan->module, "emulated_fft");
  free(bytes);
  return result ? EXEC_FAILED : CUFFT_SUCCESS;
}
CALL(cufftResult, cufftSetStream, (cufftHandle handle, CUstream stream)) {
  plans[handle].stream = stream;
  return CUFFT_SUCCESS;
}
CALL(cufftResult, cufftSetWorkArea, (cufftHandle handle, void* work)) {
  plans[handle].work = work;
  return CUFFT_SUCCESS;
}

static cufftResult run(cufftHandle handle, int type, void* in, void* out, int direction) {
  emulated_plan_t* plan = &plans[handle];
  if (!plan->is_live || plan->type != type) return INVALID_PLAN;
  if (!plan->work) return EXEC_FAILED;
  emulated_fft_args args = {.in = in,
                            .out = out,
                            .n = {plan->n[0], plan->n[1], plan->n[2]},
                            .batch = plan->batch,
                            .is_wide = is_wide(type),
                            .from_real = is_from_real(type),
                            .to_real = is_to_real(type),
                            .direction = direction};
  size_t size = sizeof args;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  ++transforms;
  CUresult result = cuLaunchKernel(plan->function, 4, 1, 1, 64, 1, 1, 0, plan->stream, NULL, extra);
  if (!result && is_to_real(type))
    result = cuMemsetD8Async((uintptr_t)in, 0xff, plan->input_size, plan->stream);
  return result ? EXEC_FAILED : CUFFT_SUCCESS;
}
CALL(cufftResult, cufftExecC2C, (cufftHandle plan, void* in, void* out, int direction)) {
  return run(plan, CUFFT_C2C, in, out, direction);
}
CALL(cufftResult, cufftExecZ2Z, (cufftHandle plan, void* in, void* out, int direction)) {
  return run(plan, CUFFT_Z2Z, in, out, direction);
}
CALL(cufftResult, cufftExecR2C, (cufftHandle plan, void* in, void* out)) {
  return run(plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
CALL(cufftResult, cufftExecD2Z, (cufftHandle plan, void* in, void* out)) {
  return run(plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
CALL(cufftResult, cufftExecC2R, (cufftHandle plan, void* in, void* out)) {
  return run(plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
CALL(cufftResult, cufftExecZ2D, (cufftHandle plan, void* in, void* out)) {
  return run(plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}

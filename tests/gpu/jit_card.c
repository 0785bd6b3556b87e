// See jit_card.h.
#include "jit_card.h"

#include <stdio.h>

void card_must(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "%s\n", rn_status_message(status));
  abort();
}

#define MUST(card, call, ...) card_must(RN_CUDA(&(card)->driver, call, __VA_ARGS__))

void card_open(card_t* card) {
  memset(card, 0, sizeof *card);
  card_must(rn_cuda_driver_open(&card->driver));
  card_must(rn_nvrtc_open(&card->nvrtc));
  CUdevice device;
  int major, minor;
  MUST(card, cuInit, 0);
  MUST(card, cuDeviceGet, &device, 0);
  MUST(card, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  MUST(card, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  card->architecture = 10 * major + minor;
  MUST(card, cuDevicePrimaryCtxRetain, &card->context, device);
  MUST(card, cuCtxSetCurrent, card->context);
}

void card_close(card_t* card) {
  MUST(card, cuDevicePrimaryCtxRelease_v2, 0);
  rn_cuda_library_close(card->nvrtc.library);
  rn_cuda_library_close(card->driver.library);
}

static CUdeviceptr allocate(card_t* card, size_t bytes) {
  CUdeviceptr address = 0;
  MUST(card, cuMemAlloc_v2, &address, bytes + 256);
  return address;
}

static CUdeviceptr upload(card_t* card, const void* data, size_t bytes, size_t shift) {
  CUdeviceptr address = allocate(card, bytes + shift);
  if (bytes) MUST(card, cuMemcpyHtoDAsync_v2, address + shift, data, bytes, NULL);
  return address;
}

static CUmodule compile(card_t* card, card_case_t* cases, int count, rn_strbuf_t* code) {
  rn_strbuf_t source;
  rn_strbuf_init(&source, rn_allocator_system());
  for (int i = 0; i < count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "loop%d", i);
    card_must(rn_jit_emit(&cases[i].program, &cases[i].grid.variant, name, &source));
  }
  const char* kept = getenv("RUNNEL_TEST_KEEP_SOURCE");
  FILE* file = kept ? fopen(kept, "w") : NULL;
  if (file) {
    fwrite(source.data, 1, source.size, file);
    fclose(file);
  }
  card_must(
      rn_jit_compile(&card->nvrtc, source.data, card->architecture, cases[0].program.flags, code));
  CUmodule module = NULL;
  MUST(card, cuModuleLoadData, &module, code->data);
  rn_strbuf_clear(&source);
  return module;
}

static void launch(card_t* card, CUmodule module, card_case_t* test, int index,
                   const uint64_t* outputs) {
  uint64_t args[RN_JIT_MAX_ARGS / 8];
  CUdeviceptr workspace = allocate(card, (size_t)test->grid.workspace);
  size_t size = rn_jit_args_fill(&test->program, &test->grid, &test->sizes, test->inputs, outputs,
                                 workspace, args);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  for (int k = 0; k < test->grid.kernel_count; ++k) {
    const rn_jit_launch_t* shape = &test->grid.launches[k];
    char name[48];
    snprintf(name, sizeof name, "loop%d%s", index, k ? "_finish" : "");
    CUfunction function;
    MUST(card, cuModuleGetFunction, &function, module, name);
    MUST(card, cuLaunchKernel, function, shape->grid, 1, 1, shape->block_x, shape->block_y, 1,
         shape->shared, NULL, NULL, extra);
  }
  MUST(card, cuStreamSynchronize, NULL);
  MUST(card, cuMemFree_v2, workspace);
}

void card_run(card_t* card, card_case_t* cases, int count) {
  uint64_t(*outputs)[RN_JIT_MAX_OUTPUTS] = calloc((size_t)count, sizeof *outputs);
  for (int i = 0; i < count; ++i) {
    card_case_t* test = &cases[i];
    for (int k = 0; k < test->program.input_count; ++k)
      if (test->in[k])
        test->inputs[k].address =
            upload(card, test->in[k], test->in_bytes[k], test->shift) + test->shift;
    for (int k = 0; k < test->program.output_count; ++k)
      outputs[i][k] = allocate(card, test->out_bytes[k] + test->shift) + test->shift;
    card_must(rn_jit_grid(&test->program, &test->sizes, test->inputs, outputs[i],
                          test->processors ? test->processors : CARD_PROCESSORS, &test->grid));
    if (test->is_wide) test->grid.variant.wide = 1;
  }
  rn_strbuf_t code;
  rn_strbuf_init(&code, rn_allocator_system());
  CUmodule module = compile(card, cases, count, &code);
  for (int i = 0; i < count; ++i) {
    card_case_t* test = &cases[i];
    launch(card, module, test, i, outputs[i]);
    for (int k = 0; k < test->program.output_count; ++k) {
      MUST(card, cuMemcpyDtoHAsync_v2, test->out[k], outputs[i][k], test->out_bytes[k], NULL);
      MUST(card, cuStreamSynchronize, NULL);
      MUST(card, cuMemFree_v2, outputs[i][k] - test->shift);
    }
    for (int k = 0; k < test->program.input_count; ++k)
      if (test->in[k]) MUST(card, cuMemFree_v2, test->inputs[k].address - test->shift);
  }
  MUST(card, cuModuleUnload, module);
  rn_strbuf_clear(&code);
  free(outputs);
}

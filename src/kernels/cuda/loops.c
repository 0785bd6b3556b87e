// Running programs of the loop compiler: see loops.h.
#include "kernels/cuda/loops.h"

#include <stdio.h>

#include "kernels/cuda/ahead.h"

static rn_status_t open_nvrtc(void* self, const rn_nvrtc_t** out) {
  rn_cuda_card_t* card = self;
  rn_mutex_lock(&card->mutex);
  rn_status_t status = card->nvrtc.library ? RN_OK : rn_nvrtc_open(&card->nvrtc);
  rn_mutex_unlock(&card->mutex);
  *out = &card->nvrtc;
  return status;
}

// The name under which the card remembers a kernel: the key, and which of its two kernels.
typedef struct loops_name_t {
  char text[48];
} loops_name_t;

static loops_name_t name_of(rn_jit_key_t key, int kernel) {
  loops_name_t name;
  snprintf(name.text, sizeof name.text, "%016llx%016llx%d", (unsigned long long)key.half[0],
           (unsigned long long)key.half[1], kernel);
  return name;
}

static rn_jit_target_t target_of(const rn_cuda_card_t* card) {
  return (rn_jit_target_t){.architecture = card->major * 10 + card->minor, .device = card->name};
}

rn_status_t rn_cuda_code(rn_cuda_card_t* card, const rn_env_t* env, const rn_jit_program_t* program,
                         const rn_jit_variant_t* variant, rn_jit_key_t key, rn_strbuf_t* out) {
  rn_strbuf_t folder;
  rn_strbuf_init(&folder, rn_allocator_system());
  rn_jit_cache_folder(&folder);
  rn_strbuf_append(&folder, rn_str_n("", 1));
  rn_jit_compiler_t compiler = {.env = env,
                                .folder = folder.data,
                                .target = target_of(card),
                                .open = open_nvrtc,
                                .self = card};
  rn_status_t status = rn_strbuf_status(&folder);
  if (rn_ok(status)) status = rn_jit_code(&compiler, program, variant, key, out);
  rn_strbuf_clear(&folder);
  return status;
}

static rn_status_t load(rn_cuda_card_t* card, const rn_env_t* env, const rn_jit_program_t* program,
                        const rn_jit_grid_t* grid, rn_jit_key_t key) {
  rn_status_t status = RN_OK;
  rn_strbuf_t code;
  rn_strbuf_init(&code, rn_allocator_system());
  if (!rn_cuda_take_ahead(card, key, &code))
    status = rn_cuda_code(card, env, program, &grid->variant, key, &code);
  for (int k = 0; rn_ok(status) && k < grid->kernel_count; ++k) {
    CUfunction function;
    status = rn_cuda_program(card, rn_str(name_of(key, k).text), k ? "rn_jit_finish" : "rn_jit",
                             code.data, &function);
  }
  rn_strbuf_clear(&code);
  return status;
}

// The hash of the embedded headers, which takes longer than a launch: computed once.
static uint64_t headers_hash(void) {
  static _Atomic uint64_t known;
  uint64_t hash = known;
  if (!hash) known = hash = rn_jit_headers_hash();
  return hash;
}

static rn_jit_key_t key_of(const rn_cuda_card_t* card, const rn_jit_program_t* program,
                           const rn_jit_grid_t* grid) {
  rn_jit_target_t target = target_of(card);
  return rn_jit_key(program, &grid->variant, &target, headers_hash());
}

// The function of kernel |k|, if it was loaded already.
static bool is_loaded(rn_cuda_card_t* card, rn_jit_key_t key, int k, CUfunction* out) {
  rn_status_t status = rn_cuda_program(card, rn_str(name_of(key, k).text), NULL, NULL, out);
  bool ok = rn_ok(status);
  rn_status_free(status);
  return ok;
}

static rn_status_t find(const rn_kernel_ctx_t* ctx, const rn_jit_program_t* program,
                        const rn_jit_grid_t* grid, CUfunction* out) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  rn_jit_key_t key = key_of(card, program, grid);
  for (int k = 0; k < grid->kernel_count; ++k) {
    if (is_loaded(card, key, k, &out[k])) continue;
    RN_RETURN_IF_ERROR(load(card, ctx->step->env, program, grid, key));
    RN_RETURN_IF_ERROR(rn_cuda_program(card, rn_str(name_of(key, k).text), NULL, NULL, &out[k]));
  }
  return RN_OK;
}

// What a rehearsal does instead of running the program.
static void prepare(rn_cuda_card_t* card, const rn_jit_program_t* program,
                    const rn_jit_grid_t* grid) {
  CUfunction function;
  rn_jit_key_t key = key_of(card, program, grid);
  if (!is_loaded(card, key, 0, &function)) rn_cuda_make_ahead(card, program, &grid->variant, key);
}

rn_status_t rn_cuda_run(const rn_kernel_ctx_t* ctx, const rn_jit_program_t* program,
                        const rn_jit_sizes_t* sizes, const rn_jit_operand_t* inputs,
                        rn_tensor_t* const* outputs) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  uint64_t addresses[RN_JIT_MAX_OUTPUTS];
  for (int o = 0; o < program->output_count; ++o) addresses[o] = (uintptr_t)outputs[o]->data;
  rn_jit_grid_t grid;
  RN_RETURN_IF_ERROR(rn_jit_check(program));
  RN_RETURN_IF_ERROR(rn_jit_grid(program, sizes, inputs, addresses, card->multiprocessors, &grid));
  if (rn_cuda_is_rehearsing()) {
    prepare(card, program, &grid);
    return RN_OK;
  }
  CUfunction functions[2];
  RN_RETURN_IF_ERROR(find(ctx, program, &grid, functions));
  rn_tensor_t workspace = {0};
  if (grid.workspace)
    RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->device_memory, RN_UINT8,
                                        (rn_shape_t){1, &grid.workspace}, &workspace));
  _Alignas(8) char args[RN_JIT_MAX_ARGS];
  size_t size =
      rn_jit_args_fill(program, &grid, sizes, inputs, addresses, (uintptr_t)workspace.data, args);
  rn_status_t status = RN_OK;
  for (int k = 0; rn_ok(status) && k < grid.kernel_count; ++k) {
    const rn_jit_launch_t* launch = &grid.launches[k];
    rn_cuda_grid_t shape = {.x = launch->grid,
                            .block_x = launch->block_x,
                            .block_y = launch->block_y,
                            .shared = launch->shared};
    status = rn_cuda_issue(card, functions[k], shape, args, size);
  }
  rn_tensor_clear(&workspace);  // later work may use it: it is issued after this
  return status;
}

rn_jit_access_t rn_cuda_operand(const rn_broadcast_t* broadcast, const rn_tensor_t* tensor, int k,
                                rn_jit_operand_t* operand) {
  const int64_t *dims = broadcast->dims, *strides = broadcast->strides[k];
  const int rank = broadcast->rank;
  *operand = (rn_jit_operand_t){.address = (uintptr_t)tensor->data, .period = 1};
  if (tensor->count == 1) return RN_JIT_SCALAR;
  if (broadcast->contiguous >> k & 1) return RN_JIT_LINEAR;
  if (rank == 2 && strides[0] == 0) {
    operand->period = dims[1];
    return RN_JIT_ROW;
  }
  if (rank == 2 && strides[1] == 0) {
    operand->period = dims[1];
    return RN_JIT_COLUMN;
  }
  for (int d = 0; d < rank && d < RN_JIT_MAX_RANK; ++d) operand->strides[d] = strides[d];
  return RN_JIT_STRIDED;
}

// See compile.h.
#include "kernels/cuda/jit/compile.h"

#include <stdio.h>

#include "base/hash.h"

// The embedded headers: rn_embed of cmake/cuda.cmake defines these, with a NUL behind each.
#define HEADERS(X)                              \
  X(prelude, "prelude.cuh")                     \
  X(scalar_ops, "scalar_ops.cuh")               \
  X(special, "kernels/special.h")               \
  X(special_gamma, "kernels/special_gamma.h")   \
  X(special_bessel, "kernels/special_bessel.h") \
  X(special_ops, "special_ops.cuh")             \
  X(complex_ops, "complex_ops.cuh")             \
  X(loops, "loops.cuh")

#define DECLARE(symbol, file) \
  extern const char rn_jit_text_##symbol[], rn_jit_text_##symbol##_end[];
HEADERS(DECLARE)

#define TEXT(symbol, file) rn_jit_text_##symbol,
#define NAME(symbol, file) file,
static const char* const texts[] = {HEADERS(TEXT)};
static const char* const names[] = {HEADERS(NAME)};
#define COUNT (sizeof texts / sizeof *texts)

uint64_t rn_jit_headers_hash(void) {
  uint64_t hashes[COUNT];
  for (size_t i = 0; i < COUNT; ++i) hashes[i] = rn_farm_fingerprint64(rn_str(texts[i]));
  return rn_farm_fingerprint64(rn_str_n((const char*)hashes, sizeof hashes));
}

// The compiler's complaint, as far as it fits into a message.
static rn_status_t compile_error(const rn_nvrtc_t* nvrtc, nvrtcProgram program,
                                 nvrtcResult result) {
  size_t size = 0;
  rn_strbuf_t log;
  rn_strbuf_init(&log, rn_allocator_default());
  if (nvrtc->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1 &&
      rn_strbuf_reserve(&log, size) &&
      nvrtc->nvrtcGetProgramLog(program, log.data) == NVRTC_SUCCESS)
    log.size = size - 1;
  rn_status_t status =
      rn_internal("NVRTC could not compile a kernel: %s; %.*s", nvrtc->nvrtcGetErrorString(result),
                  (int)(log.size < 2000 ? log.size : 2000), log.size ? log.data : "");
  rn_strbuf_clear(&log);
  return status;
}

static rn_status_t take_code(const rn_nvrtc_t* nvrtc, nvrtcProgram program, rn_strbuf_t* out) {
  size_t size = 0;
  nvrtcResult result = nvrtc->nvrtcGetCUBINSize(program, &size);
  if (result == NVRTC_SUCCESS) {
    if (!rn_strbuf_reserve(out, size)) return rn_out_of_memory();
    result = nvrtc->nvrtcGetCUBIN(program, out->data + out->size);
  }
  if (result != NVRTC_SUCCESS)
    return rn_internal("NVRTC gave no code: %s", nvrtc->nvrtcGetErrorString(result));
  out->size += size;
  return RN_OK;
}

rn_status_t rn_jit_compile(const rn_nvrtc_t* nvrtc, const char* source, int architecture,
                           unsigned flags, rn_strbuf_t* out) {
  nvrtcProgram program = NULL;
  nvrtcResult result =
      nvrtc->nvrtcCreateProgram(&program, source, "loop.cu", (int)COUNT, texts, names);
  if (result != NVRTC_SUCCESS)
    return rn_internal("NVRTC could not take a source: %s", nvrtc->nvrtcGetErrorString(result));
  char target[48];
  snprintf(target, sizeof target, "--gpu-architecture=sm_%d", architecture);
  const bool is_fast = flags & RN_JIT_FAST_DIVISION;
  const char* options[] = {target, "--std=c++17",
                           flags & RN_JIT_NO_FMA ? "--fmad=false" : "--fmad=true",
                           is_fast ? "--prec-div=false" : "--prec-div=true",
                           is_fast ? "--prec-sqrt=false" : "--prec-sqrt=true"};
  result = nvrtc->nvrtcCompileProgram(program, (int)(sizeof options / sizeof *options), options);
  rn_status_t status = result == NVRTC_SUCCESS ? take_code(nvrtc, program, out)
                                               : compile_error(nvrtc, program, result);
  nvrtc->nvrtcDestroyProgram(&program);
  return status;
}

rn_status_t rn_jit_code(const rn_jit_compiler_t* compiler, const rn_jit_program_t* program,
                        const rn_jit_variant_t* variant, rn_jit_key_t key, rn_strbuf_t* out) {
  const int architecture = compiler->target.architecture;
  if (rn_jit_cache_find(compiler->env, compiler->folder, key, architecture, out)) return RN_OK;
  const rn_nvrtc_t* nvrtc = NULL;
  RN_RETURN_IF_ERROR(compiler->open(compiler->self, &nvrtc));
  rn_strbuf_t source;
  rn_strbuf_init(&source, compiler->env->allocator);
  const size_t before = out->size;
  rn_status_t status = rn_jit_emit(program, variant, NULL, &source);
  if (rn_ok(status)) status = rn_jit_compile(nvrtc, source.data, architecture, program->flags, out);
  if (rn_ok(status))
    rn_jit_cache_store(compiler->env, compiler->folder, key, architecture,
                       rn_str_n(out->data + before, out->size - before));
  rn_strbuf_clear(&source);
  return status;
}

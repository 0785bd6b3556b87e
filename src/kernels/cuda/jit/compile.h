// From source to code for the card, with NVRTC and the cache on disk.
#ifndef RUNNEL_KERNELS_CUDA_JIT_COMPILE_H_
#define RUNNEL_KERNELS_CUDA_JIT_COMPILE_H_

#include "device/cuda/driver.h"
#include "kernels/cuda/jit/cache.h"

// A hash of the headers that emitted sources include, which are embedded in the program.
uint64_t rn_jit_headers_hash(void);

// Compiles |source|, NUL-terminated, and appends the code that cuModuleLoadData takes. |flags| are
// the program's. INTERNAL with the compiler's log. Any thread; NVRTC of
// CUDA 12.3 and later compiles several sources at a time.
RN_MUST_USE rn_status_t rn_jit_compile(const rn_nvrtc_t* nvrtc, const char* source,
                                       int architecture, unsigned flags, rn_strbuf_t* out);

// Makes the code of programs.
typedef struct rn_jit_compiler_t {
  const rn_env_t* env;
  const char* folder;  // of the cache; "": none
  rn_jit_target_t target;
  // Gives NVRTC's functions. Called only when something must be compiled, because loading the
  // library takes longer than reading a kernel from the cache.
  rn_status_t (*open)(void* self, const rn_nvrtc_t** out);
  void* self;
} rn_jit_compiler_t;

// Appends the code of |program| in |variant|: from the cache, or compiled and stored there. |key|
// is rn_jit_key's for the compiler's target.
RN_MUST_USE rn_status_t rn_jit_code(const rn_jit_compiler_t* compiler,
                                    const rn_jit_program_t* program,
                                    const rn_jit_variant_t* variant, rn_jit_key_t key,
                                    rn_strbuf_t* out);

#endif  // RUNNEL_KERNELS_CUDA_JIT_COMPILE_H_

// From a program to CUDA source in the dialect of prelude.cuh.
#ifndef RUNNEL_KERNELS_CUDA_JIT_EMIT_H_
#define RUNNEL_KERNELS_CUDA_JIT_EMIT_H_

#include "kernels/cuda/jit/schedule.h"

// Names a kernel's code: a hash of everything that the code depends on.
typedef struct rn_jit_key_t {
  uint64_t half[2];
} rn_jit_key_t;

// What code is compiled for. |device| tells apart machines that must not share code though their
// architecture has one number (an emulator and a card); it may be "".
typedef struct rn_jit_target_t {
  int architecture;  // 90 for sm_90
  const char* device;
} rn_jit_target_t;

// The key of |program| in |variant|, without sizes; |headers| is rn_jit_headers_hash's. About a
// microsecond.
rn_jit_key_t rn_jit_key(const rn_jit_program_t* program, const rn_jit_variant_t* variant,
                        const rn_jit_target_t* target, uint64_t headers);

// Appends the source, the same text for the same program and variant. It includes "prelude.cuh" and
// the headers of this folder by their file names, and defines the kernel "rn_jit" and, if the
// variant is split, "rn_jit_finish". |name| replaces "rn_jit" (tests put several into one source);
// NULL keeps it.
RN_MUST_USE rn_status_t rn_jit_emit(const rn_jit_program_t* program,
                                    const rn_jit_variant_t* variant, const char* name,
                                    rn_strbuf_t* out);

#endif  // RUNNEL_KERNELS_CUDA_JIT_EMIT_H_

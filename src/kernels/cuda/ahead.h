// Compiling loops ahead of the step that needs them, by the threads of the pool.
//
// A plan makes its kernels before its first step. A kernel whose shapes are known then rehearses:
// its compute runs without a card's memory, and what rn_cuda_run would compile goes to the pool
// instead. The first step finds the code, or waits for it.
#ifndef RUNNEL_KERNELS_CUDA_AHEAD_H_
#define RUNNEL_KERNELS_CUDA_AHEAD_H_

#include "kernels/cuda/jit/compile.h"
#include "kernels/cuda/launch.h"

// Rehearses the kernel that |init| makes, with |state|: for the end of its init. The kernel must
// have no host arguments, and its compute must issue work by rn_cuda_run alone. Does nothing if a
// shape is not known or the pool has no threads.
void rn_cuda_rehearse(const rn_kernel_init_t* init, void* state);

// Has the pool call |open| for the card of |init|, once: a library takes long to load. The first
// step that needs it waits if it is not open yet.
void rn_cuda_open_ahead(const rn_kernel_init_t* init, void (*open)(rn_cuda_card_t* card));

// For loops.c. Whether the calling thread rehearses.
bool rn_cuda_is_rehearsing(void);
// Has the code of |program| made by the pool of the thread's rehearsal.
void rn_cuda_make_ahead(rn_cuda_card_t* card, const rn_jit_program_t* program,
                        const rn_jit_variant_t* variant, rn_jit_key_t key);
// Appends the code of |key| and returns true, or returns false if it is not being made. Waits while
// it is. Code is given out once.
bool rn_cuda_take_ahead(rn_cuda_card_t* card, rn_jit_key_t key, rn_strbuf_t* out);

// Appends the code of |program|, from the cache or compiled. In loops.c.
RN_MUST_USE rn_status_t rn_cuda_code(rn_cuda_card_t* card, const rn_env_t* env,
                                     const rn_jit_program_t* program,
                                     const rn_jit_variant_t* variant, rn_jit_key_t key,
                                     rn_strbuf_t* out);

#endif  // RUNNEL_KERNELS_CUDA_AHEAD_H_

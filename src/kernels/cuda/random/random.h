// Random numbers on a GPU: positions in streams, and tensors filled from them.
//
// Positions are the CPU's, and so are the numbers, up to the last bits of logarithms and sines. The
// position of a generator that goes on from call to call is in device memory only, and the kernel
// that uses it moves it on; so recorded work gives new numbers each time that it runs.
#ifndef RUNNEL_KERNELS_CUDA_RANDOM_RANDOM_H_
#define RUNNEL_KERNELS_CUDA_RANDOM_RANDOM_H_

#include "kernels/cpu/random/random.h"
#include "kernels/cuda/random/random_args.h"

// State of kernels with a stream of their own, seeded by the attributes seed and seed2: counter,
// key and a ticket, in device memory.
typedef struct rn_cuda_stream_t {
  rn_tensor_t numbers;
} rn_cuda_stream_t;
RN_MUST_USE rn_status_t rn_cuda_stream_init(const rn_kernel_init_t* init, void* state);
void rn_cuda_stream_destroy(void* state);
// The stream's position. One kernel uses it, which then moves it on by |blocks|.
struct rn_random_at rn_cuda_stream_at(const rn_kernel_ctx_t* ctx, uint64_t blocks);

// A position that the host knows, and one of which key and counter are in device memory.
struct rn_random_at rn_cuda_random_at(rn_philox_t philox);
struct rn_random_at rn_cuda_random_keyed(const rn_tensor_t* key, const rn_tensor_t* counter);

// Fills |out|; |kind| is "uniform", "normal" or "truncated".
RN_MUST_USE rn_status_t rn_cuda_random_fill(const rn_kernel_ctx_t* ctx, const char* kind,
                                            struct rn_random_at at, rn_tensor_t* out);
// Integers in [low, low + range); a range of 0 means all integers.
RN_MUST_USE rn_status_t rn_cuda_random_integers(const rn_kernel_ctx_t* ctx, struct rn_random_at at,
                                                uint64_t low, uint64_t range, rn_tensor_t* out);
// Draws |out|'s rows of classes from input 0's logits.
RN_MUST_USE rn_status_t rn_cuda_random_multinomial(rn_kernel_ctx_t* ctx, struct rn_random_at at,
                                                   rn_tensor_t* out);
// Draws gamma numbers; input |alpha| has the parameters, whose shape ends that of |out|.
RN_MUST_USE rn_status_t rn_cuda_random_gamma(rn_kernel_ctx_t* ctx, struct rn_random_at at,
                                             int alpha, rn_tensor_t* out);

#endif  // RUNNEL_KERNELS_CUDA_RANDOM_RANDOM_H_

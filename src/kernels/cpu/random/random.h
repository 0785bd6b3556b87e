// Random numbers from a given position in a stream; shared by kernels with their own stream and by
// stateless ones.
#ifndef RUNNEL_KERNELS_CPU_RANDOM_RANDOM_H_
#define RUNNEL_KERNELS_CPU_RANDOM_RANDOM_H_

#include "framework/kernel.h"
#include "kernels/cpu/random/philox.h"

// Blocks of a stream that a call reserves per output: enough for rejections.
#define RN_RANDOM_BLOCKS 256

// Init and destroy of kernels whose state is an rn_random_stream_t, seeded by the attributes seed
// and seed2.
RN_MUST_USE rn_status_t rn_random_stream_init(const rn_kernel_init_t* init, void* state);
void rn_random_stream_destroy(void* state);

// Fills |out| with floats: uniform in [0, 1), normal, or normal within two standard deviations.
void rn_random_uniform(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out);
void rn_random_normal(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out);
void rn_random_truncated(rn_pool_t* pool, rn_philox_t philox, rn_tensor_t* out);
// 32- or 64-bit integers in [low, low + range); a range of 0 means all integers.
void rn_random_integers(rn_pool_t* pool, rn_philox_t philox, uint64_t low, uint64_t range,
                        rn_tensor_t* out);
// Two normal numbers from two words, or from a block of words.
void rn_random_normal_floats(uint32_t x0, uint32_t x1, float out[2]);
void rn_random_normal_pair(const uint32_t words[4], double out[2]);

// Shuffles input 0's rows; draws classes from the logits in input 0's rows, as many as input 1
// says. Uses the kernel's stream if |philox| is NULL.
RN_MUST_USE rn_status_t rn_random_shuffle(rn_kernel_ctx_t* ctx, const rn_philox_t* philox);
RN_MUST_USE rn_status_t rn_random_multinomial(rn_kernel_ctx_t* ctx, const rn_philox_t* philox);

// What the ops check first, on all devices; messages are stock's. Draws from logits: output 0 is
// made with the draws per row.
RN_MUST_USE rn_status_t rn_random_multinomial_output(rn_kernel_ctx_t* ctx, rn_tensor_t** out);
// Makes output 0 with the shape in input 0, which must end with that of input |parameters|.
RN_MUST_USE rn_status_t rn_random_output_ending(rn_kernel_ctx_t* ctx, int parameters,
                                                rn_tensor_t** out);
// Normal numbers within bounds: makes output 0 and says how many sets of parameters there are, and
// whether these are scalars.
RN_MUST_USE rn_status_t rn_random_bounded_output(rn_kernel_ctx_t* ctx, rn_tensor_t** out,
                                                 int64_t* out_sets, bool* out_are_scalars);
// The blocks of a stream that |count| such numbers take.
uint64_t rn_random_bounded_blocks(int64_t count, int64_t sets, bool are_scalars);
// Bounds of integers are scalars.
RN_MUST_USE rn_status_t rn_random_check_bounds(const rn_tensor_t* low, const rn_tensor_t* high);

// The integers from |low| up to |high|. INVALID_ARGUMENT, with stock's message, if these are not
// scalars or there are none between them.
RN_MUST_USE rn_status_t rn_random_range(const rn_tensor_t* low, const rn_tensor_t* high,
                                        uint64_t* out_low, uint64_t* out_range);

// The position of a generator seeded by |seed|, a vector of two integers. INVALID_ARGUMENT, with
// stock's message, for anything else.
RN_MUST_USE rn_status_t rn_random_seeded(const rn_tensor_t* seed, rn_philox_t* out);
// The position of a generator with this key, counter and algorithm; the second function only checks
// the shapes and the algorithm.
RN_MUST_USE rn_status_t rn_random_from_key(const rn_tensor_t* key, const rn_tensor_t* counter,
                                           const rn_tensor_t* algorithm, rn_philox_t* out);
RN_MUST_USE rn_status_t rn_random_check_key(const rn_tensor_t* key, const rn_tensor_t* counter,
                                            const rn_tensor_t* algorithm);

// The position of the generator whose state is in the variable in input 0; advances it by |outputs|
// numbers. The algorithm must be a known one.
RN_MUST_USE rn_status_t rn_random_take(rn_kernel_ctx_t* ctx, uint64_t outputs, rn_philox_t* out);
RN_MUST_USE rn_status_t rn_random_check_algorithm(const rn_tensor_t* algorithm);
// With the lock held: whether |variable|, input 0, is such a state; makes it writable.
RN_MUST_USE rn_status_t rn_random_check_state_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable);

// Doubles in [0, 1), one at a time, each block's second one first, as rejection samplers use them.
typedef struct rn_random_doubles_t {
  rn_philox_t* philox;
  double values[2];
  int left;
} rn_random_doubles_t;
static inline double rn_random_double(rn_random_doubles_t* doubles) {
  if (doubles->left == 0) {
    uint32_t words[4];
    rn_philox_next(doubles->philox, words);
    doubles->values[0] = rn_words_to_double(words[0], words[1]);
    doubles->values[1] = rn_words_to_double(words[2], words[3]);
    doubles->left = 2;
  }
  return doubles->values[--doubles->left];
}

#endif  // RUNNEL_KERNELS_CPU_RANDOM_RANDOM_H_

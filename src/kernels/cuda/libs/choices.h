// What was found by measuring, remembered across processes: algorithms of NVIDIA's libraries.
//
// Choices are files of the kernel cache (jit/cache.h), so they are checked by a checksum, and a
// damaged one is ignored with a line in the log and made again.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CHOICES_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CHOICES_H_

#include "device/cuda/card.h"

// What a choice was made for. Choices for other cards, versions or problems are other choices.
typedef struct rn_measured_t {
  const char* library;  // "cuDNN"
  size_t version;       // of the library
  const void* problem;  // bytes that say everything else: op, shapes, types, math mode
  size_t size;
} rn_measured_t;

// Appends what was stored and returns true, or returns false.
bool rn_choice_find(const rn_env_t* env, const rn_cuda_card_t* card, const rn_measured_t* choice,
                    rn_strbuf_t* out);
// Stores |chosen|; does nothing if that fails.
void rn_choice_store(const rn_env_t* env, const rn_cuda_card_t* card, const rn_measured_t* choice,
                     rn_str_t chosen);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CHOICES_H_

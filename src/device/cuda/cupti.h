// CUPTI, NVIDIA's library for profilers: the times of kernels and copies of this process.
//
// It is one per process, and so is what it collects. Another profiler may be using it; then nothing
// is collected here.
#ifndef RUNNEL_DEVICE_CUDA_CUPTI_H_
#define RUNNEL_DEVICE_CUDA_CUPTI_H_

#include "device/cuda/card.h"
#include "device/trace.h"

#define RN_CUPTI_FILES "libcupti.so.13", "libcupti.so.12", NULL

// Begins to collect, for a trace that the result numbers; 0 if that is not possible.
int64_t rn_cupti_begin(rn_cuda_card_t* card, const rn_env_t* env);
// What the calling thread issues from now on belongs to |node| of trace |number|; -1: to none.
void rn_cupti_node(int64_t number, int64_t node);
// Visits what was done for trace |number|, in the order in which it began. If no other trace is
// under way, visits also what was done for no node. The card has finished.
void rn_cupti_end(int64_t number, rn_cuda_card_t* card, rn_trace_visit_t visit, void* self);

#endif  // RUNNEL_DEVICE_CUDA_CUPTI_H_

// Recordings: the work of a plan's segment as one CUDA graph.
//
// A thread records into a stream of its own, so other threads go on issuing meanwhile. Memory that
// kernels get while they are recorded belongs to the recording, because every replay uses it. What
// is freed before the first replay is handed out again after it.
#ifndef RUNNEL_DEVICE_CUDA_RECORDING_H_
#define RUNNEL_DEVICE_CUDA_RECORDING_H_

#include "device/cuda/card.h"

// See rn_device_vtable_t.
RN_MUST_USE rn_status_t rn_cuda_record_begin(rn_device_t* device);
RN_MUST_USE rn_status_t rn_cuda_record_end(rn_device_t* device, rn_recording_t** out);
RN_MUST_USE rn_status_t rn_cuda_replay(rn_device_t* device, rn_recording_t* recording);
void rn_cuda_recording_destroy(rn_device_t* device, rn_recording_t* recording);

// The card's memory for kernels: of the recording, if the calling thread records.
rn_allocator_t rn_cuda_kernel_memory(rn_cuda_card_t* card);

#endif  // RUNNEL_DEVICE_CUDA_RECORDING_H_

// Recordings: the work of a plan's segment as one CUDA graph, and its feeds and fetches.
//
// A thread records into a stream of its own, so other threads go on issuing meanwhile. Memory that
// kernels get while they are recorded is scratch memory, which all recordings of a card share:
// every replay uses it, and replays do not overlap. What somebody keeps of it belongs to nobody
// else, so older recordings, which may use it as scratch memory, become stale. What is freed before
// the first replay is handed out again after it.
//
// A feed or fetch that is recorded becomes a port: the graph copies between the card's memory and a
// fixed place in page-locked memory, and the host copies between that place and the tensor, before
// the launch or after the wait. The graph's last kernel sets a flag in page-locked memory, which
// the host watches. So a step is one launch and a look at one word.
#ifndef RUNNEL_DEVICE_CUDA_RECORDING_H_
#define RUNNEL_DEVICE_CUDA_RECORDING_H_

#include "device/cuda/card.h"

// See rn_device_vtable_t.
RN_MUST_USE rn_status_t rn_cuda_record_begin(rn_device_t* device);
RN_MUST_USE rn_status_t rn_cuda_record_end(rn_device_t* device, rn_recording_t** out);
RN_MUST_USE rn_status_t rn_cuda_replay(rn_device_t* device, rn_recording_t* recording);
void rn_cuda_recording_destroy(rn_device_t* device, rn_recording_t* recording);

// Waits for the end of the last replay and delivers its fetches.
RN_MUST_USE rn_status_t rn_cuda_await_replay(rn_recording_t* recording);

// Whether the calling thread records on |card|.
bool rn_cuda_is_recording(const rn_cuda_card_t* card);
// Adds a port to the recording of the calling thread: from |tensor|, in host memory, to |address|
// on the card, or |is_fetch| the other way.
RN_MUST_USE rn_status_t rn_cuda_record_port(const rn_tensor_t* tensor, CUdeviceptr address,
                                            bool is_fetch);
// Adds a copy of |bytes|, as they are now, to |address|.
RN_MUST_USE rn_status_t rn_cuda_record_bytes(const void* bytes, size_t size, CUdeviceptr address);

// The card's memory for kernels: of the recording, if the calling thread records.
rn_allocator_t rn_cuda_kernel_memory(rn_cuda_card_t* card);
// The card's memory for what lives longer than a kernel's call: blocks of steps, variables,
// constants.
rn_allocator_t rn_cuda_value_memory(rn_cuda_card_t* card);

// Copies of a few small ports by one kernel. In kernels/cuda/array/ports.c.
#define RN_CUDA_MOST_PORTS 16
typedef struct rn_cuda_port_t {
  const void* from;
  void* to;
  size_t size;
} rn_cuda_port_t;
// Issues at most RN_CUDA_MOST_PORTS copies, in any order, then |*flag| = 1 if |flag| is not NULL.
RN_MUST_USE rn_status_t rn_cuda_copy_ports(rn_cuda_card_t* card, CUstream stream,
                                           const rn_cuda_port_t* ports, int count, uint32_t* flag);

#endif  // RUNNEL_DEVICE_CUDA_RECORDING_H_

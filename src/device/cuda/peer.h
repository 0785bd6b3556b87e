// Memory of a card that another process of this machine shares by cudaIpcGetMemHandle: what |peers|
// of the part does (device/part.h). Any thread may call.
#ifndef RUNNEL_DEVICE_CUDA_PEER_H_
#define RUNNEL_DEVICE_CUDA_PEER_H_

#include "device/part.h"

extern const rn_peer_memory_ops_t rn_cuda_peers;

#endif  // RUNNEL_DEVICE_CUDA_PEER_H_

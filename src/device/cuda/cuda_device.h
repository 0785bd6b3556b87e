// A GPU of a session: the card, and the resources that live on it.
#ifndef RUNNEL_DEVICE_CUDA_CUDA_DEVICE_H_
#define RUNNEL_DEVICE_CUDA_CUDA_DEVICE_H_

#include "device/cuda/card.h"

// Makes the devices that |init| asks for; see rn_device_part_t.
RN_MUST_USE rn_status_t rn_cuda_create_devices(const rn_part_init_t* init, int room,
                                               rn_device_t** out, int* out_count);

// |move|, |fill| and |add| of the devices' vtable; kernels/cuda/array/move.c defines them.
RN_MUST_USE rn_status_t rn_cuda_move(rn_device_t* device, const rn_box_t* boxes, int count,
                                     size_t size);
RN_MUST_USE rn_status_t rn_cuda_fill(rn_device_t* device, const void* value, bool is_host_value,
                                     size_t size, void* to, int64_t count);
RN_MUST_USE rn_status_t rn_cuda_add(rn_device_t* device, rn_dtype_t dtype, const void* values,
                                    void* sums, int64_t count);

#endif  // RUNNEL_DEVICE_CUDA_CUDA_DEVICE_H_

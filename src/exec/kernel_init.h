// The information that a kernel is made with, for a node of a step.
#ifndef RUNNEL_EXEC_KERNEL_INIT_H_
#define RUNNEL_EXEC_KERNEL_INIT_H_

#include "device/device.h"
#include "step/ir.h"

// Fills |*out| for |node| on |device|. Its arrays are in |ir|'s arena; |allocator| will be the
// kernel's own.
RN_MUST_USE rn_status_t rn_exec_kernel_init(rn_ir_t* ir, const rn_ir_node_t* node,
                                            rn_device_t* device, rn_device_t* host,
                                            const rn_env_t* env, rn_allocator_t allocator,
                                            rn_kernel_init_t* out);

#endif  // RUNNEL_EXEC_KERNEL_INIT_H_

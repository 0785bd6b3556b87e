// The null device: a fake accelerator. The template for new devices, and the GPUs of tests.
//
// Its memory stores every byte inverted, so code that reads it as host memory gets garbage. Kernels
// and copies go into a queue and run later, in order, on the device's own thread.
#ifndef RUNNEL_DEVICE_NULL_NULL_DEVICE_H_
#define RUNNEL_DEVICE_NULL_NULL_DEVICE_H_

#include "device/device.h"

#define RN_NULL_MAX_ARGS 4

// The body of a kernel; works on decoded tensors.
typedef rn_status_t (*rn_null_body_t)(const rn_tensor_t* inputs, rn_tensor_t* outputs,
                                      const void* arg);

// Issues |body| over device tensors. They are retained, so that the caller may release its own;
// |arg| (|arg_size| bytes) is copied. Its error, if any, is reported by the next sync.
RN_MUST_USE rn_status_t rn_null_launch(rn_device_t* device, rn_null_body_t body,
                                       const rn_tensor_t* const* inputs, int input_count,
                                       const rn_tensor_t* outputs, int output_count,
                                       const void* arg, size_t arg_size);

#endif  // RUNNEL_DEVICE_NULL_NULL_DEVICE_H_

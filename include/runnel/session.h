// Steps that another thread can cancel, feeds without a copy, mixed precision, and what devices are
// made of.
//
//   TFE_CancellationManager* stop = TFE_NewCancellationManager();
//   … another thread, or a signal's watcher: TFE_CancellationManagerStartCancel(stop);
//   rn_session_run_cancellable(session, NULL, …, stop, status);   // TF_CANCELLED
#ifndef RUNNEL_SESSION_H_
#define RUNNEL_SESSION_H_

#include "runnel/api.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#ifdef __cplusplus
extern "C" {
#endif

// TF_SessionRun that ends with TF_CANCELLED soon after |cancellation| is started, before or during
// the step. The session stays usable. |cancellation| may be NULL. One manager may serve many steps
// until it is started, and must outlive them.
RN_API void rn_session_run_cancellable(TF_Session* session, const TF_Buffer* run_options,
                                       const TF_Output* inputs, TF_Tensor* const* input_values,
                                       int ninputs, const TF_Output* outputs,
                                       TF_Tensor** output_values, int noutputs,
                                       const TF_Operation* const* target_opers, int ntargets,
                                       TF_Buffer* run_metadata,
                                       TFE_CancellationManager* cancellation, TF_Status* status);

// TF_NewTensor without a copy for bytes at any multiple of 16, where most allocators put them. The
// bytes must not change while the tensor lives.
RN_API TF_Tensor* rn_tensor_over(TF_DataType dtype, const int64_t* dims, int num_dims, void* data,
                                 size_t len, void (*deallocator)(void* data, size_t len, void* arg),
                                 void* deallocator_arg);

// Sets the mixed precision of sessions made with |options|: "float16" on GPUs, "bfloat16" on GPUs
// and the CPU, "float32" for none. Matrix products, convolutions and what lies between them are
// then computed in 16 bits; variables, sums and losses stay floats (doc/gpu.md). Adds to the
// ConfigProto, so call it after TF_SetConfig. TF_INVALID_ARGUMENT for other names.
RN_API void rn_session_options_mixed_precision(TF_SessionOptions* options, const char* precision,
                                               TF_Status* status);

// The hardware of a device, as TensorFlow describes a GPU: "device: 0, name: NVIDIA H200, pci bus
// id: 0000:01:00.0, compute capability: 9.0". Valid as long as |list|; NULL if there is no such
// device, or nothing to say about it.
RN_API const char* rn_device_list_description(const TF_DeviceList* list, int index);
// The bytes of a device's memory that are in use, and the most that were at a time. TF_NOT_FOUND if
// the device does not count them.
RN_API void rn_context_memory_use(TFE_Context* context, const char* device_name, int64_t* out_now,
                                  int64_t* out_peak, TF_Status* status);
// After TFE_EnableCollectiveOps: waits until the other tasks have fetched what collectives left for
// them; a process calls it before it exits. False if that takes longer than |timeout_ms|.
RN_API bool rn_context_finish_collectives(TFE_Context* context, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_SESSION_H_

// Additions to eager/c_api.h that TensorFlow does not promise to keep: metrics, cancellation,
// executors, custom devices, clusters. The rules of c_api.h hold. Plain C, unlike TensorFlow's own
// header of this name.

#ifndef TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Turns |op_to_reset| into a new description, so that its memory is used again.
TF_CAPI_EXPORT void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name,
                                const char* raw_device_name, TF_Status* status);

// Graphs of executed functions go into the run metadata.
TF_CAPI_EXPORT void TFE_ContextEnableGraphCollection(TFE_Context* ctx);
TF_CAPI_EXPORT void TFE_ContextDisableGraphCollection(TFE_Context* ctx);

// --- Metrics
//
// A metric has a name, a description and up to four labels; a cell is one combination of label
// values, which the metric owns. A name in use is TF_ALREADY_EXISTS.

typedef struct TFE_MonitoringCounterCell TFE_MonitoringCounterCell;

// Adds to the count, and reads it.
TF_CAPI_EXPORT void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell* cell,
                                                         int64_t value);
TF_CAPI_EXPORT int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell* cell);

typedef struct TFE_MonitoringCounter0 TFE_MonitoringCounter0;
// A counter with no labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringCounter0* TFE_MonitoringNewCounter0(const char* name,
                                                                 TF_Status* status,
                                                                 const char* description);
TF_CAPI_EXPORT void TFE_MonitoringDeleteCounter0(TFE_MonitoringCounter0* counter);
TF_CAPI_EXPORT TFE_MonitoringCounterCell* TFE_MonitoringGetCellCounter0(
    TFE_MonitoringCounter0* counter);

typedef struct TFE_MonitoringCounter1 TFE_MonitoringCounter1;
// A counter with one label; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringCounter1* TFE_MonitoringNewCounter1(const char* name,
                                                                 TF_Status* status,
                                                                 const char* description,
                                                                 const char* label1);
TF_CAPI_EXPORT void TFE_MonitoringDeleteCounter1(TFE_MonitoringCounter1* counter);
TF_CAPI_EXPORT TFE_MonitoringCounterCell* TFE_MonitoringGetCellCounter1(
    TFE_MonitoringCounter1* counter, const char* label1);

typedef struct TFE_MonitoringCounter2 TFE_MonitoringCounter2;
// A counter with two labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringCounter2* TFE_MonitoringNewCounter2(const char* name,
                                                                 TF_Status* status,
                                                                 const char* description,
                                                                 const char* label1,
                                                                 const char* label2);
TF_CAPI_EXPORT void TFE_MonitoringDeleteCounter2(TFE_MonitoringCounter2* counter);
TF_CAPI_EXPORT TFE_MonitoringCounterCell* TFE_MonitoringGetCellCounter2(
    TFE_MonitoringCounter2* counter, const char* label1, const char* label2);

typedef struct TFE_MonitoringIntGaugeCell TFE_MonitoringIntGaugeCell;

// Sets the value, and reads it.
TF_CAPI_EXPORT void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell* cell, int64_t value);
TF_CAPI_EXPORT int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell* cell);

typedef struct TFE_MonitoringIntGauge0 TFE_MonitoringIntGauge0;
// A gauge with no labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringIntGauge0* TFE_MonitoringNewIntGauge0(const char* name,
                                                                   TF_Status* out_status,
                                                                   const char* description);
TF_CAPI_EXPORT void TFE_MonitoringDeleteIntGauge0(TFE_MonitoringIntGauge0* gauge);
TF_CAPI_EXPORT TFE_MonitoringIntGaugeCell* TFE_MonitoringGetCellIntGauge0(
    TFE_MonitoringIntGauge0* gauge);

typedef struct TFE_MonitoringIntGauge1 TFE_MonitoringIntGauge1;
// A gauge with one label; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringIntGauge1* TFE_MonitoringNewIntGauge1(const char* name,
                                                                   TF_Status* out_status,
                                                                   const char* description,
                                                                   const char* label1);
TF_CAPI_EXPORT void TFE_MonitoringDeleteIntGauge1(TFE_MonitoringIntGauge1* gauge);
TF_CAPI_EXPORT TFE_MonitoringIntGaugeCell* TFE_MonitoringGetCellIntGauge1(
    TFE_MonitoringIntGauge1* gauge, const char* label1);

typedef struct TFE_MonitoringIntGauge2 TFE_MonitoringIntGauge2;
// A gauge with two labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringIntGauge2* TFE_MonitoringNewIntGauge2(const char* name,
                                                                   TF_Status* out_status,
                                                                   const char* description,
                                                                   const char* label1,
                                                                   const char* label2);
TF_CAPI_EXPORT void TFE_MonitoringDeleteIntGauge2(TFE_MonitoringIntGauge2* gauge);
TF_CAPI_EXPORT TFE_MonitoringIntGaugeCell* TFE_MonitoringGetCellIntGauge2(
    TFE_MonitoringIntGauge2* gauge, const char* label1, const char* label2);

typedef struct TFE_MonitoringStringGaugeCell TFE_MonitoringStringGaugeCell;

// Sets the value.
TF_CAPI_EXPORT void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell* cell,
                                                     const char* value);

// |buf|, an empty buffer, receives the value.
TF_CAPI_EXPORT void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell* cell,
                                                       TF_Buffer* buf);

typedef struct TFE_MonitoringStringGauge0 TFE_MonitoringStringGauge0;
// A gauge with no labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringStringGauge0* TFE_MonitoringNewStringGauge0(const char* name,
                                                                         TF_Status* out_status,
                                                                         const char* description);
TF_CAPI_EXPORT void TFE_MonitoringDeleteStringGauge0(TFE_MonitoringStringGauge0* gauge);
TF_CAPI_EXPORT TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge0(
    TFE_MonitoringStringGauge0* gauge);

typedef struct TFE_MonitoringStringGauge1 TFE_MonitoringStringGauge1;
// A gauge with one label; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringStringGauge1* TFE_MonitoringNewStringGauge1(const char* name,
                                                                         TF_Status* out_status,
                                                                         const char* description,
                                                                         const char* label1);
TF_CAPI_EXPORT void TFE_MonitoringDeleteStringGauge1(TFE_MonitoringStringGauge1* gauge);
TF_CAPI_EXPORT TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge1(
    TFE_MonitoringStringGauge1* gauge, const char* label1);

typedef struct TFE_MonitoringStringGauge2 TFE_MonitoringStringGauge2;
// A gauge with two labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringStringGauge2* TFE_MonitoringNewStringGauge2(const char* name,
                                                                         TF_Status* out_status,
                                                                         const char* description,
                                                                         const char* label1,
                                                                         const char* label2);
TF_CAPI_EXPORT void TFE_MonitoringDeleteStringGauge2(TFE_MonitoringStringGauge2* gauge);
TF_CAPI_EXPORT TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge2(
    TFE_MonitoringStringGauge2* gauge, const char* label1, const char* label2);

typedef struct TFE_MonitoringStringGauge3 TFE_MonitoringStringGauge3;
// A gauge with three labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringStringGauge3* TFE_MonitoringNewStringGauge3(
    const char* name, TF_Status* out_status, const char* description, const char* label1,
    const char* label2, const char* label3);
TF_CAPI_EXPORT void TFE_MonitoringDeleteStringGauge3(TFE_MonitoringStringGauge3* gauge);
TF_CAPI_EXPORT TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge3(
    TFE_MonitoringStringGauge3* gauge, const char* label1, const char* label2, const char* label3);

typedef struct TFE_MonitoringStringGauge4 TFE_MonitoringStringGauge4;
// A gauge with four labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringStringGauge4* TFE_MonitoringNewStringGauge4(
    const char* name, TF_Status* out_status, const char* description, const char* label1,
    const char* label2, const char* label3, const char* label4);
TF_CAPI_EXPORT void TFE_MonitoringDeleteStringGauge4(TFE_MonitoringStringGauge4* gauge);
TF_CAPI_EXPORT TFE_MonitoringStringGaugeCell* TFE_MonitoringGetCellStringGauge4(
    TFE_MonitoringStringGauge4* gauge, const char* label1, const char* label2, const char* label3,
    const char* label4);

typedef struct TFE_MonitoringBoolGaugeCell TFE_MonitoringBoolGaugeCell;

// Sets the value, and reads it.
TF_CAPI_EXPORT void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell* cell, bool value);
TF_CAPI_EXPORT bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell* cell);

typedef struct TFE_MonitoringBoolGauge0 TFE_MonitoringBoolGauge0;
// A gauge with no labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringBoolGauge0* TFE_MonitoringNewBoolGauge0(const char* name,
                                                                     TF_Status* out_status,
                                                                     const char* description);
TF_CAPI_EXPORT void TFE_MonitoringDeleteBoolGauge0(TFE_MonitoringBoolGauge0* gauge);
TF_CAPI_EXPORT TFE_MonitoringBoolGaugeCell* TFE_MonitoringGetCellBoolGauge0(
    TFE_MonitoringBoolGauge0* gauge);

typedef struct TFE_MonitoringBoolGauge1 TFE_MonitoringBoolGauge1;
// A gauge with one label; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringBoolGauge1* TFE_MonitoringNewBoolGauge1(const char* name,
                                                                     TF_Status* out_status,
                                                                     const char* description,
                                                                     const char* label1);
TF_CAPI_EXPORT void TFE_MonitoringDeleteBoolGauge1(TFE_MonitoringBoolGauge1* gauge);
TF_CAPI_EXPORT TFE_MonitoringBoolGaugeCell* TFE_MonitoringGetCellBoolGauge1(
    TFE_MonitoringBoolGauge1* gauge, const char* label1);

typedef struct TFE_MonitoringBoolGauge2 TFE_MonitoringBoolGauge2;
// A gauge with two labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringBoolGauge2* TFE_MonitoringNewBoolGauge2(const char* name,
                                                                     TF_Status* out_status,
                                                                     const char* description,
                                                                     const char* label1,
                                                                     const char* label2);
TF_CAPI_EXPORT void TFE_MonitoringDeleteBoolGauge2(TFE_MonitoringBoolGauge2* gauge);
TF_CAPI_EXPORT TFE_MonitoringBoolGaugeCell* TFE_MonitoringGetCellBoolGauge2(
    TFE_MonitoringBoolGauge2* gauge, const char* label1, const char* label2);

// Samplers: histograms. The value is a HistogramProto.
typedef struct TFE_MonitoringSamplerCell TFE_MonitoringSamplerCell;

// Adds one sample. The second writes the histogram into |buf|, an empty buffer.
TF_CAPI_EXPORT void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell* cell, double value);
TF_CAPI_EXPORT void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell* cell, TF_Buffer* buf);

typedef struct TFE_MonitoringBuckets TFE_MonitoringBuckets;

// Bounds scale, scale * growth_factor, …; |bucket_count| of them.
TF_CAPI_EXPORT TFE_MonitoringBuckets* TFE_MonitoringNewExponentialBuckets(double scale,
                                                                          double growth_factor,
                                                                          int bucket_count);
TF_CAPI_EXPORT void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets* buckets);

typedef struct TFE_MonitoringSampler0 TFE_MonitoringSampler0;
// A sampler with no labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringSampler0* TFE_MonitoringNewSampler0(const char* name,
                                                                 TFE_MonitoringBuckets* buckets,
                                                                 TF_Status* out_status,
                                                                 const char* description);
TF_CAPI_EXPORT void TFE_MonitoringDeleteSampler0(TFE_MonitoringSampler0* sampler);
TF_CAPI_EXPORT TFE_MonitoringSamplerCell* TFE_MonitoringGetCellSampler0(
    TFE_MonitoringSampler0* sampler);

typedef struct TFE_MonitoringSampler1 TFE_MonitoringSampler1;
// A sampler with one label; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringSampler1* TFE_MonitoringNewSampler1(const char* name,
                                                                 TFE_MonitoringBuckets* buckets,
                                                                 TF_Status* out_status,
                                                                 const char* description,
                                                                 const char* label1);
TF_CAPI_EXPORT void TFE_MonitoringDeleteSampler1(TFE_MonitoringSampler1* sampler);
TF_CAPI_EXPORT TFE_MonitoringSamplerCell* TFE_MonitoringGetCellSampler1(
    TFE_MonitoringSampler1* sampler, const char* label1);

typedef struct TFE_MonitoringSampler2 TFE_MonitoringSampler2;
// A sampler with two labels; the caller deletes it. Its cells live as long as it does.
TF_CAPI_EXPORT TFE_MonitoringSampler2* TFE_MonitoringNewSampler2(
    const char* name, TFE_MonitoringBuckets* buckets, TF_Status* out_status,
    const char* description, const char* label1, const char* label2);
TF_CAPI_EXPORT void TFE_MonitoringDeleteSampler2(TFE_MonitoringSampler2* sampler);
TF_CAPI_EXPORT TFE_MonitoringSamplerCell* TFE_MonitoringGetCellSampler2(
    TFE_MonitoringSampler2* sampler, const char* label1, const char* label2);

// --- Contexts

// Accepted without effect: there is no TFRT here.
TF_CAPI_EXPORT void TFE_ContextOptionsSetTfrt(TFE_ContextOptions* options, bool use_tfrt);

// A number that no other context of this process has.
TF_CAPI_EXPORT uint64_t TFE_GetContextId(TFE_Context* ctx);

// --- Cancellation

typedef struct TFE_CancellationManager TFE_CancellationManager;
typedef int64_t TFE_CancellationToken;

typedef struct TFE_CancelCallback {
  void (*callback)(void* context);
  void* context;
} TFE_CancelCallback;

// A manager that nothing has cancelled. The caller deletes it.
TF_CAPI_EXPORT TFE_CancellationManager* TFE_NewCancellationManager(void);
// Whether the cancellation has ended, and whether it has begun and not ended yet.
TF_CAPI_EXPORT bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager* manager);
TF_CAPI_EXPORT bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager* manager);

// Calls every registered callback once.
TF_CAPI_EXPORT void TFE_CancellationManagerStartCancel(TFE_CancellationManager* manager);
TF_CAPI_EXPORT TFE_CancellationToken
TFE_CancellationManagerGetToken(TFE_CancellationManager* manager);

// false: it has been cancelled already and the callback will not be called.
TF_CAPI_EXPORT bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager* manager,
                                                            TFE_CancellationToken token,
                                                            const TFE_CancelCallback* c_callback,
                                                            const char* callback_name);

// true: the callback will not run any more. The Try form does not wait for one that is running.
TF_CAPI_EXPORT bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager* manager,
                                                              TFE_CancellationToken token);
TF_CAPI_EXPORT bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager* manager,
                                                                 TFE_CancellationToken token);
TF_CAPI_EXPORT void TFE_DeleteCancellationManager(TFE_CancellationManager* manager);

// The manager must outlive the execution.
TF_CAPI_EXPORT void TFE_OpSetCancellationManager(TFE_Op* op,
                                                 TFE_CancellationManager* cancellation_manager,
                                                 TF_Status* status);

// --- Executors: the queues behind asynchronous execution

typedef struct TFE_Executor TFE_Executor;

// An executor; ops return before they have run if |is_async|. The other two arguments have no
// effect. The caller deletes it.
TF_CAPI_EXPORT TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                                             int in_flight_nodes_limit);
// Drops the caller's reference. With the last one, waits for the ops in the queue. NULL is allowed.
TF_CAPI_EXPORT void TFE_DeleteExecutor(TFE_Executor* executor);
// Whether ops return before they have run.
TF_CAPI_EXPORT bool TFE_ExecutorIsAsync(TFE_Executor* executor);

// Waits for what was queued; the status is the first error since it was cleared.
TF_CAPI_EXPORT void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor, TF_Status* status);
TF_CAPI_EXPORT void TFE_ExecutorClearError(TFE_Executor* executor);

// The executor of the calling thread. The one returned is the caller's to delete.
TF_CAPI_EXPORT void TFE_ContextSetExecutorForThread(TFE_Context* ctx, TFE_Executor* executor);
TF_CAPI_EXPORT TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context* ctx);

// --- Clusters (|proto| is a ServerDef)

// Changes the cluster of the context: tasks come, go or are replaced.
TF_CAPI_EXPORT void TFE_ContextUpdateServerDef(TFE_Context* ctx, int keep_alive_secs,
                                               const void* proto, size_t proto_len,
                                               TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextUpdateServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs,
                                                          const void* proto, size_t proto_len,
                                                          int64_t init_timeout_in_ms,
                                                          TF_Status* status);
// TFE_ContextSetServerDef with a timeout for connecting, and with retries. With
// |clear_existing_contexts| the tasks close the contexts of other clients.
TF_CAPI_EXPORT void TFE_ContextSetServerDefWithTimeout(TFE_Context* ctx, int keep_alive_secs,
                                                       const void* proto, size_t proto_len,
                                                       int64_t init_timeout_in_ms,
                                                       TF_Status* status,
                                                       bool clear_existing_contexts);
TF_CAPI_EXPORT void TFE_ContextSetServerDefWithTimeoutAndRetries(
    TFE_Context* ctx, int keep_alive_secs, const void* proto, size_t proto_len,
    int64_t init_timeout_in_ms, int retries, TF_Status* status, bool clear_existing_contexts);

// Whether the worker answers.
TF_CAPI_EXPORT bool TFE_ContextCheckAlive(TFE_Context* ctx, const char* worker_name,
                                          TF_Status* status);

// Waits for all asynchronous work of the context.
TF_CAPI_EXPORT void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status);

// --- Memory of handles

// The buffer on its device, which the handle owns, and its size in bytes.
TF_CAPI_EXPORT void* TFE_TensorHandleDevicePointer(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle* h, TF_Status* status);

// A handle over memory of the named device; |deallocator| is called once when it is not needed.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromDeviceMemory(
    TFE_Context* ctx, const char* device_name, TF_DataType dtype, const int64_t* dims, int num_dims,
    void* data, size_t len, void (*deallocator)(void* data, size_t len, void* arg),
    void* deallocator_arg, TF_Status* status);

// |buf|, an empty buffer, receives the name of the address space of this process.
TF_CAPI_EXPORT void TFE_HostAddressSpace(TFE_Context* ctx, TF_Buffer* buf);

// --- Attributes of an op as an object

typedef struct TFE_OpAttrs TFE_OpAttrs;

// Lent by the op.
TF_CAPI_EXPORT const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op);
TF_CAPI_EXPORT void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs);

// |buf|, an empty buffer, receives a NameAttrList.
TF_CAPI_EXPORT void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf,
                                         TF_Status* status);

// |proto| is an AttrValue.
TF_CAPI_EXPORT void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name,
                                            const void* proto, size_t proto_len, TF_Status* status);

// --- Custom devices

#define TFE_CUSTOM_DEVICE_VERSION 4

// In C++ the members have these values unless set; in C set them.
#ifdef __cplusplus
#define TFE_CUSTOM_DEVICE_INIT(value) = value
#else
#define TFE_CUSTOM_DEVICE_INIT(value)
#endif

// Every function gets the |device_info| of the registration. Handles returned are the caller's.
typedef struct TFE_CustomDevice {
  int version TFE_CUSTOM_DEVICE_INIT(TFE_CUSTOM_DEVICE_VERSION);
  TFE_TensorHandle* (*copy_tensor_to_device)(TFE_Context* context, TFE_TensorHandle* tensor,
                                             TF_Status* status, void* device_info);
  TFE_TensorHandle* (*copy_tensor_from_device)(TFE_Context* context, TFE_TensorHandle* tensor,
                                               const char* target_device_name, TF_Status* status,
                                               void* device_info);
  // |*num_outputs| is the room in |outputs| and becomes their number.
  void (*execute)(const TFE_Op* op, int* num_outputs, TFE_TensorHandle** outputs, TF_Status* s,
                  void* device_info);
  void (*delete_device)(void* device_info);
  TFE_TensorHandle* (*pack)(TFE_Context* context, TFE_TensorHandle** handles, int num_handles,
                            TF_Status* s, void* device_info)TFE_CUSTOM_DEVICE_INIT(NULL);
  bool (*shall_pin_to_this_device)(const TFE_Op* op, TF_Status* s) TFE_CUSTOM_DEVICE_INIT(NULL);
} TFE_CustomDevice;

// Adds |device| to the context under |device_name|. |device_info| goes to its functions.
TF_CAPI_EXPORT void TFE_RegisterCustomDevice(TFE_Context* ctx, TFE_CustomDevice device,
                                             const char* device_name, void* device_info,
                                             TF_Status* status);
// Whether |device_name| is a custom device of the context.
TF_CAPI_EXPORT bool TFE_IsCustomDevice(TFE_Context* ctx, const char* device_name);

// The behaviour of a handle whose value only its device understands.
typedef struct TFE_CustomDeviceTensorHandleMethods {
  int version TFE_CUSTOM_DEVICE_INIT(TFE_CUSTOM_DEVICE_VERSION);
  int (*num_dims)(void* data, TF_Status* status);
  int64_t (*dim)(void* data, int dim_index, TF_Status* status);
  void (*deallocator)(void* data);
  TF_Buffer* (*summarize)(void* data, TF_Status* status)TFE_CUSTOM_DEVICE_INIT(NULL);
} TFE_CustomDeviceTensorHandle;

#undef TFE_CUSTOM_DEVICE_INIT

// A handle to |data|, a value that only the custom device |device_name| understands.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewCustomDeviceTensorHandle(
    TFE_Context* ctx, const char* device_name, TF_DataType dtype, void* data,
    TFE_CustomDeviceTensorHandle methods, TF_Status* status);

// --- Functions of a context

// |buf|, an empty buffer, receives a FunctionDef or a GraphDebugInfo.
TF_CAPI_EXPORT void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name,
                                              TF_Buffer* buf, TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextGetGraphDebugInfo(TFE_Context* ctx, const char* function_name,
                                                 TF_Buffer* buf, TF_Status* status);

// A copy, which the caller deletes.
TF_CAPI_EXPORT TF_Function* TFE_ContextGetFunction(TFE_Context* ctx, const char* name,
                                                   TF_Status* status);

// --- Tensors and handles

// A host tensor that devices of the context copy from and to quickly.
TF_CAPI_EXPORT TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype,
                                                 const int64_t* dims, int num_dims,
                                                 TF_Status* status);
TF_CAPI_EXPORT TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx, TF_Tensor* t,
                                                               TF_Status* status);

// One handle over one value a device.
TF_CAPI_EXPORT TFE_TensorHandle* TFE_CreatePackedTensorHandle(TFE_Context* ctx,
                                                              TFE_TensorHandle** handles,
                                                              int* num_handles, TF_Status* status);

// --- Switches of a context

// Whether an op without a kernel on its device runs on another.
TF_CAPI_EXPORT void TFE_ContextSetSoftDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                      TF_Status* status);
// Whether the context logs the device of each op.
TF_CAPI_EXPORT void TFE_ContextSetLogDevicePlacement(TFE_Context* ctx, unsigned char enable,
                                                     TF_Status* status);
// Accepted without effect.
TF_CAPI_EXPORT void TFE_ContextSetRunEagerOpAsFunction(TFE_Context* ctx, unsigned char enable,
                                                       TF_Status* status);
TF_CAPI_EXPORT void TFE_ContextSetJitCompileRewrite(TFE_Context* ctx, unsigned char enable,
                                                    TF_Status* status);

// --- Questions about handles

// The type of the device that has the value, and its number. The string lives as long as the
// handle.
TF_CAPI_EXPORT const char* TFE_TensorHandleDeviceType(TFE_TensorHandle* h, TF_Status* status);
TF_CAPI_EXPORT int TFE_TensorHandleDeviceID(TFE_TensorHandle* h, TF_Status* status);

// The error of the op that was to make the value; does not wait.
TF_CAPI_EXPORT void TFE_TensorHandleGetStatus(TFE_TensorHandle* h, TF_Status* status);

// --- Cluster coordination

// |buf|, an empty buffer, receives names of the ops that ran.
TF_CAPI_EXPORT void TFE_GetExecutedOpNames(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status);
TF_CAPI_EXPORT void TFE_SetLogicalCpuDevices(TFE_Context* ctx, int num_cpus, const char* prefix,
                                             TF_Status* status);

// Keys and values shared by all tasks.
TF_CAPI_EXPORT void TFE_InsertConfigKeyValue(TFE_Context* ctx, const char* key, const char* value,
                                             TF_Status* status);
TF_CAPI_EXPORT void TFE_GetConfigKeyValue(TFE_Context* ctx, const char* key, int64_t timeout_in_ms,
                                          TF_Buffer* value_buf, TF_Status* status);
TF_CAPI_EXPORT void TFE_DeleteConfigKeyValue(TFE_Context* ctx, const char* key, TF_Status* status);
TF_CAPI_EXPORT void TFE_ReportErrorToCluster(TFE_Context* ctx, int error_code,
                                             const char* error_message, TF_Status* status);

// |tasks| holds names of tasks, one per line: "/job:worker/replica:0/task:0". |states| is an array
// of int with room for one state each: 2 for disconnected, 3 for connected, 4 for failed.
TF_CAPI_EXPORT void TFE_GetTaskStates(TFE_Context* ctx, const TF_Buffer* tasks, void* states,
                                      TF_Status* status);
TF_CAPI_EXPORT void TFE_WaitAtBarrier(TFE_Context* ctx, const char* barrier_id,
                                      int64_t barrier_timeout_in_ms, TF_Status* status);

// Sets the context up from a ServerDef without connecting to the others.
TF_CAPI_EXPORT void TFE_InitializeLocalOnlyContext(TFE_Context* ctx, int keep_alive_secs,
                                                   const void* proto, size_t proto_len,
                                                   TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  // TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

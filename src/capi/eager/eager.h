// Eager execution: the objects of src/eager under their public names. Private to capi/.
#ifndef RUNNEL_CAPI_EAGER_EAGER_H_
#define RUNNEL_CAPI_EAGER_EAGER_H_

#include "capi/internal.h"
#include "eager/eager.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

struct TFE_ContextOptions {
  rn_eager_options_t eager;
  rn_strbuf_t config;  // the ConfigProto as the client gave it
};

// The cancellation manager of an op, and the callbacks that clients registered.
struct TFE_CancellationManager {
  rn_eager_cancel_t base;
  rn_mutex_t mutex;  // guards the fields below
  rn_cond_t idle;
  bool is_cancelling;
  int64_t next_token;
  struct rn_capi_callback_t* callbacks;
};

// Makes a server for the task of a ServerDef, with as many CPUs as |eager| has.
struct rn_server_t;
RN_MUST_USE rn_status_t rn_capi_make_server(rn_eager_t* eager, rn_str_t server_def,
                                            struct rn_server_t** out);
// Adds the devices of other tasks.
RN_MUST_USE rn_status_t rn_capi_list_remote(rn_eager_t* eager, TF_DeviceList* list);

// The client's own data behind a value of a custom device.
void* rn_capi_custom_data(const rn_eager_foreign_t* value);

static inline rn_eager_t* rn_capi_eager(TFE_Context* ctx) { return (rn_eager_t*)ctx; }
static inline rn_eager_handle_t* rn_capi_handle(TFE_TensorHandle* h) {
  return (rn_eager_handle_t*)h;
}
static inline rn_eager_op_t* rn_capi_eager_op(const TFE_Op* op) {
  return (rn_eager_op_t*)(uintptr_t)op;
}
static inline rn_eager_executor_t* rn_capi_executor(TFE_Executor* executor) {
  return (rn_eager_executor_t*)executor;
}

#endif  // RUNNEL_CAPI_EAGER_EAGER_H_

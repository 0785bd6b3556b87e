// Kernels of plug-ins: the structs behind a builder, a construction and a context. Private to
// capi/.
#ifndef RUNNEL_CAPI_PLUGIN_KERNEL_H_
#define RUNNEL_CAPI_PLUGIN_KERNEL_H_

#include "base/sync.h"
#include "capi/internal.h"
#include "framework/kernel.h"
#include "tensorflow/c/kernels.h"

// A registered row is never freed; it leads to the plug-in's functions.
typedef struct rn_plugin_kernel_t {
  rn_kernel_def_t def;
  void* (*create)(TF_OpKernelConstruction*);
  void (*compute)(void*, TF_OpKernelContext*);
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
  void (*destroy)(void*);
  rn_arena_t arena;  // strings of |def|
} rn_plugin_kernel_t;

// The state of one kernel made from it.
typedef struct rn_plugin_state_t {
  const rn_plugin_kernel_t* plugin;
  void* client;         // the result of the plug-in's create function
  int32_t* arg_starts;  // Owned; where each input argument begins, and the end of the last
  int arg_count;
  int32_t producer;       // GraphDef version of the graph
  rn_arena_t arena;       // holds the fields below
  rn_str_t* input_names;  // "node", or "node:1" for a later output
} rn_plugin_state_t;

struct TF_OpKernelConstruction {
  const rn_kernel_init_t* init;
  rn_status_t failure;
};

// One run. |pending| counts the run itself and its deferred work; the run ends when it is 0.
struct TF_OpKernelContext {
  rn_kernel_ctx_t* ctx;
  bool is_async;
  rn_mutex_t mutex;  // guards the fields below
  rn_cond_t idle;
  int pending;
  rn_status_t failure;  // the first
};

// Sets the functions of a plug-in's |def| that create, run and destroy a kernel.
void rn_plugin_kernel_bind(rn_plugin_kernel_t* plugin);

// "node", or "node:1" for an output that is not the first error; NUL-terminated, in |arena|.
RN_MUST_USE rn_status_t rn_plugin_source_name(const rn_kernel_source_t* source, rn_arena_t* arena,
                                              rn_str_t* out);

// The attribute |name|, in the definition or not; NULL if there is none.
const rn_attr_value_t* rn_construction_attr(const TF_OpKernelConstruction* ctx, const char* name);

#endif  // RUNNEL_CAPI_PLUGIN_KERNEL_H_

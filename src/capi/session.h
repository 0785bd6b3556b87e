// TF_Session and TF_DeprecatedSession: one rn_session_t and its open partial runs. Private to
// capi/.
#ifndef RUNNEL_CAPI_SESSION_H_
#define RUNNEL_CAPI_SESSION_H_

#include "capi/internal.h"
#include "dist/iface.h"
#include "runnel/run.h"
#include "saved_model/writer.h"

struct TF_SessionOptions {
  rn_session_options_t parsed;
  char* target;        // Owned; NULL for this process
  rn_strbuf_t config;  // the ConfigProto as the client gave it
  char* allow;         // Owned; side effects that sessions are allowed; NULL for the default
};

// A partial run, found by the client's handle. |users| counts running calls; the struct is freed
// when the run is finished and |users| is 0.
typedef struct rn_capi_partial_t {
  struct rn_capi_partial_t* next;
  rn_partial_run_t* run;  // Owned
  char* handle;           // Owned
  int feeds_left, fetches_left;
  int users;
} rn_capi_partial_t;

struct TF_Session {
  rn_session_t* session;  // Owned
  rn_mutex_t mutex;       // guards the fields below
  rn_capi_partial_t* partials;
  uint64_t partial_count;         // number of runs ever made; part of the handles
  rn_model_origin_t origin;       // the model its graph was loaded from, if any
  rn_saved_model_t* origin_file;  // Owned; NULL if another object owns it
};

RN_MUST_USE rn_status_t rn_capi_session_create(rn_graph_t* graph, const TF_SessionOptions* options,
                                               TF_Session** out);
// The same for a model loaded from |folder|: it may read that folder and, unless the options allow
// more, nothing else. If |folder| is NULL, the graph is the client's own and unrestricted.
RN_MUST_USE rn_status_t rn_capi_session_create_for(rn_graph_t* graph,
                                                   const TF_SessionOptions* options,
                                                   const char* folder, TF_Session** out);
// Ends partial runs and frees the session; NULL is fine.
void rn_capi_session_destroy(TF_Session* session);
RN_MUST_USE rn_status_t rn_capi_session_devices(TF_Session* session, TF_DeviceList** out);
// Adds devices of other tasks to a list.
RN_MUST_USE rn_status_t rn_capi_devices_add(TF_DeviceList* list, const rn_device_info_t* infos,
                                            size_t count);

// The time limit of a serialized RunOptions, which may be NULL.
RN_MUST_USE rn_status_t rn_capi_timeout(const TF_Buffer* run_options, int64_t* out_ms);

// Runs one step, like TF_SessionRun. |outputs| and |values| are set on success only.
typedef struct rn_capi_step_t {
  const TF_Output* inputs;
  TF_Tensor* const* input_values;
  int input_count;
  const TF_Output* outputs;
  TF_Tensor** output_values;
  int output_count;
  const TF_Operation* const* targets;
  int target_count;
} rn_capi_step_t;

rn_signature_t rn_capi_step_signature(const rn_capi_step_t* step);
// Checks what does not need the graph: lists, NULLs, unset tensors.
RN_MUST_USE rn_status_t rn_capi_step_check(const rn_capi_step_t* step);
// Sets an empty message for a run that failed before its step, so that clients can decode it.
void rn_capi_no_metadata(TF_Buffer* run_metadata);
RN_MUST_USE rn_status_t rn_capi_session_run(TF_Session* session, const rn_capi_step_t* step,
                                            const TF_Buffer* run_options, TF_Buffer* run_metadata);
RN_MUST_USE rn_status_t rn_capi_partial_setup(TF_Session* session, const rn_capi_step_t* step,
                                              const char** out_handle);
RN_MUST_USE rn_status_t rn_capi_partial_run(TF_Session* session, const char* handle,
                                            const rn_capi_step_t* step);

void rn_capi_partial_free(rn_capi_partial_t* partial);  // NULL is fine

// The results of a step. Handles are allocated before it runs, so that nothing can fail after its
// side effects. They are kept here until it ends, because a client may pass the same array for
// feeds and results.
#define RN_CAPI_FEW_FETCHES 16
typedef struct rn_capi_fetches_t {
  int count;
  rn_tensor_t* tensors;
  TF_Tensor** handles;  // Owned: the array and each handle
  rn_tensor_t few_tensors[RN_CAPI_FEW_FETCHES];
  TF_Tensor* few_handles[RN_CAPI_FEW_FETCHES];
} rn_capi_fetches_t;
RN_MUST_USE rn_status_t rn_capi_fetches_init(rn_capi_fetches_t* fetches, int count);
// Moves the handles to the client's array.
void rn_capi_fetches_take(rn_capi_fetches_t* fetches, TF_Tensor** out);
// Accepts partly initialized structs; frees handles that were not moved out.
void rn_capi_fetches_clear(rn_capi_fetches_t* fetches);

// Runs one step of |args| with |run|, which has the signature of rn_session_run.
typedef rn_status_t (*rn_capi_run_fn_t)(void* self, const rn_signature_t* signature,
                                        const rn_tensor_t* const* feeds, rn_tensor_t* fetches);
RN_MUST_USE rn_status_t rn_capi_run_args(rn_graph_t* graph, const rn_run_arg_t* args, size_t count,
                                         rn_capi_run_fn_t run, void* self);

// Appends the RunMetadata of a traced step.
void rn_capi_write_metadata(rn_strbuf_t* buf, const rn_step_stats_t* stats);

#endif  // RUNNEL_CAPI_SESSION_H_

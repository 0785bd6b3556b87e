// What the gRPC services share: dispatch, permissions, ModelSpecs and replies.
#ifndef RUNNEL_SERVE_FRONT_RPC_H_
#define RUNNEL_SERVE_FRONT_RPC_H_

#include "serve/front/front.h"

// A ModelSpec, borrowed from the request's bytes.
typedef struct rn_rpc_spec_t {
  rn_model_spec_t model;
  rn_str_t signature;  // as sent; "": serving_default
} rn_rpc_spec_t;

// Decodes the ModelSpec in field |number| of |request|. INVALID_ARGUMENT if there is none.
RN_MUST_USE rn_status_t rn_rpc_spec_read(rn_str_t request, uint32_t number, rn_rpc_spec_t* out);
// Writes the ModelSpec of a response as field |number|. A |signature| of NULL is left out, and an
// empty one is written as serving_default, as TensorFlow Serving does.
void rn_rpc_spec_write(rn_strbuf_t* out, uint32_t number, rn_str_t model, int64_t version,
                       const rn_str_t* signature);

// One method of a service. |handle| replies.
typedef struct rn_rpc_method_t {
  const char* name;
  rn_role_t role;  // that its callers need
  void (*handle)(rn_front_t* front, rn_rpc_in_t* call);
} rn_rpc_method_t;
// Calls the method that |call| names, if its path begins with |service| ("/package.Service/");
// false if it does not. Refuses callers without the method's role, and methods that do not exist.
bool rn_rpc_dispatch(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role, const char* service,
                     const rn_rpc_method_t* methods, size_t count);

// Ends |call| with |status|, which it takes, or with the bytes of |body|, which it clears.
void rn_rpc_finish(const rn_front_t* front, rn_rpc_in_t* call, rn_status_t status,
                   rn_strbuf_t* body);
void rn_rpc_fail(const rn_front_t* front, rn_rpc_in_t* call, rn_status_t status);
// Sends the bytes of |body|, which it clears, as one message of a stream. Sends nothing if memory
// runs out.
void rn_rpc_stream(rn_rpc_in_t* call, rn_strbuf_t* body);

// Decodes a TensorProto of the call's request; a large one shares the request's buffer.
RN_MUST_USE rn_status_t rn_rpc_tensor(const rn_front_t* front, const rn_rpc_in_t* call,
                                      rn_str_t bytes, rn_tensor_t* out);

// Sets what a prediction takes from its call: the clock, the deadline, the cancellation, and the
// priority that a header of that name asks for.
void rn_rpc_begin_predict(const rn_front_t* front, rn_rpc_in_t* call, rn_predict_t* predict);
// Adds what the reply to |call| says about |predict|: trailers "runnel-marks", and
// "grpc-retry-pushback-ms" after a refusal. Returns |status|, which it takes, but DEADLINE_EXCEEDED
// for a call that its deadline cancelled.
RN_MUST_USE rn_status_t rn_rpc_end_predict(const rn_front_t* front, rn_rpc_in_t* call,
                                           const rn_predict_t* predict, rn_status_t status);

// Samples the request of |call| and its response, before the reply, if the log wants it. |field| is
// that of the call's kind in PredictionLog.
void rn_rpc_log(const rn_front_t* front, const rn_rpc_in_t* call, rn_str_t model, uint32_t field,
                const rn_message_t* response);

// Runs |work|, which waits for models, on |front->loads|, and ends |call| with what it returns, the
// response in |out|.
typedef rn_status_t (*rn_rpc_work_fn_t)(rn_front_t* front, rn_rpc_in_t* call, rn_strbuf_t* out);
void rn_rpc_run_load(rn_front_t* front, rn_rpc_in_t* call, rn_rpc_work_fn_t work);
// The same for a step of a session, whose response has buffers of its own, on |front->sessions|.
typedef rn_status_t (*rn_rpc_send_fn_t)(rn_front_t* front, rn_rpc_in_t* call, rn_message_t* out);
void rn_rpc_run_session(rn_front_t* front, rn_rpc_in_t* call, rn_rpc_send_fn_t work);

#endif  // RUNNEL_SERVE_FRONT_RPC_H_

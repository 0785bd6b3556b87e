// What the protocols share: the server's parts, and one table of routes per protocol.
//
// A protocol is a pair of files that turns bytes into calls of the layers below, and results into
// bytes. It runs on a loop's thread, must not block, and replies from whichever thread calls
// |done|.
#ifndef RUNNEL_SERVE_FRONT_FRONT_H_
#define RUNNEL_SERVE_FRONT_FRONT_H_

#include "base/log.h"
#include "net/http_server.h"
#include "net/rpc_server.h"
#include "serve/metrics.h"
#include "serve/model/models.h"

typedef struct rn_apps_t rn_apps_t;                        // select/apps.h
typedef struct rn_request_log_t rn_request_log_t;          // front/request_log.h
typedef struct rn_health_watchers_t rn_health_watchers_t;  // front/health.h
typedef struct rn_request_trace_t rn_request_trace_t;      // front/request_trace.h
typedef struct rn_shared_memory_t rn_shared_memory_t;      // front/shared_memory.h

typedef enum rn_role_t {  // what a caller may do; each includes those before it
  RN_ROLE_NONE,
  RN_ROLE_PREDICT,  // predictions and feedback
  RN_ROLE_READ,     // status, metadata, metrics, pages
  RN_ROLE_ADMIN,    // reload, load, unload, applications
} rn_role_t;

// The parts of a server, borrowed by the protocols.
typedef struct rn_front_t {
  rn_models_t* models;
  rn_apps_t* apps;
  rn_metrics_t* metrics;
  rn_predict_cache_t* cache;          // NULL: none
  rn_request_log_t* log;              // NULL: requests are not sampled
  rn_request_trace_t* trace;          // NULL: requests are not traced
  rn_log_settings_t* log_settings;    // of |env|'s log; NULL: they cannot be changed
  rn_shared_memory_t* shared_memory;  // NULL: callers may register no regions
  const rn_env_t* env;
  // At least two threads each. Calls that may take any time have threads of their own, lest enough
  // of them leave none to predictions.
  rn_pool_t* pool;               // for long requests and responses
  rn_pool_t* loads;              // for calls that wait until models are loaded
  rn_pool_t* sessions;           // for SessionRun
  rn_timers_t timers;            // for calls that watch something
  rn_health_watchers_t* health;  // NULL: nothing can be watched
  rn_allocator_t allocator;
  int64_t rest_timeout_ns;  // of a REST request that names none
  bool has_cors;
  bool checks_methods;    // enable_signature_method_name_check
  rn_str_t metrics_path;  // "/monitoring/prometheus/metrics"; "": none
  int64_t begun_ns;       // when the server started
  _Atomic bool is_ready;  // every model was loaded once
  _Atomic bool is_draining;
  void* self;  // of the server, for |reload|
  // Replaces the list of models and waits until they are available or have failed: then that error.
  rn_status_t (*reload)(void* self, const rn_pb_serving_ModelServerConfig_t* config);
} rn_front_t;

// A REST protocol: true if |request| was its own and will be replied to.
typedef bool (*rn_http_route_fn_t)(rn_front_t* front, rn_http_in_t* request, rn_role_t role);
bool rn_rest_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role);      // /v1/models...
bool rn_oip_rest_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role);  // /v2...
bool rn_clipper_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role);   // /admin, /<app>
bool rn_page_route(rn_front_t* front, rn_http_in_t* request, rn_role_t role);  // /, /healthz ...

// A gRPC service: true if the call's path was its own and will be replied to.
typedef bool (*rn_rpc_route_fn_t)(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
bool rn_prediction_service_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
bool rn_model_service_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
bool rn_session_service_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
bool rn_oip_rpc_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
bool rn_health_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
bool rn_reflection_route(rn_front_t* front, rn_rpc_in_t* call, rn_role_t role);
// Whether calls of |path| stream, in any of these services: rn_rpc_server_options_t.streams.
bool rn_front_streams(rn_str_t path);

// The error for a caller whose role does not suffice: UNAUTHENTICATED without a role, else
// PERMISSION_DENIED.
RN_MUST_USE rn_status_t rn_front_denied(rn_role_t role);
// The HTTP code of |code|, as TensorFlow Serving maps it.
int rn_front_http_code(rn_code_t code);
// Replies {"error": "..."} with the code of |status|, which it takes. |retry_ns| > 0 adds
// Retry-After.
void rn_front_reply_error(const rn_front_t* front, rn_http_in_t* request, rn_status_t status,
                          int64_t retry_ns);
// Replies with the text of |body|, which is cleared. |marks| as headers (Runnel-Marks: cached,
// partial).
void rn_front_reply(const rn_front_t* front, rn_http_in_t* request, int code, const char* type,
                    rn_strbuf_t* body, unsigned marks);
// Replies 200 with |body|, which it takes, and with the header |more| (NULL: none).
void rn_front_reply_message(const rn_front_t* front, rn_http_in_t* request, const char* type,
                            rn_message_t* body, const rn_http_header_t* more, unsigned marks);
// A part of a path with its escapes (%2F) replaced, in |arena|. INVALID_ARGUMENT if one is
// malformed.
RN_MUST_USE rn_status_t rn_front_unescape(rn_str_t part, rn_arena_t* arena, rn_str_t* out);
// Moves the text of |body|, which is then empty, into a message without a copy. On failure the
// text may be lost; the message is empty and need not be cleared.
RN_MUST_USE rn_status_t rn_front_message(rn_strbuf_t* body, rn_message_t* out);
// The names of |marks|: "cached, partial".
const char* rn_front_marks(unsigned marks, char out[32]);
// Counts a request that has ended, with its stages, and logs it if the log is verbose.
void rn_front_count(const rn_front_t* front, rn_str_t model, const char* api,
                    const char* entrypoint, rn_code_t code, const rn_predict_times_t* times);
// Counts what a successful request asked for and got: |rows| (< 1: unknown) and |marks|.
void rn_front_count_answer(const rn_front_t* front, rn_str_t model, int64_t rows, unsigned marks);

#endif  // RUNNEL_SERVE_FRONT_FRONT_H_

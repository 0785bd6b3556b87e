// A model server: models, applications and the ports that serve them.
#ifndef RUNNEL_SERVE_SERVER_H_
#define RUNNEL_SERVE_SERVER_H_

#include "base/log.h"
#include "net/tls.h"
#include "proto/model_server_config.pb.h"
#include "serve/front/request_trace.h"
#include "serve/model/batcher.h"
#include "serve/select/redis_config.h"
#include "session/session.h"

typedef struct rn_model_server_t rn_model_server_t;

// Fields that are zero or NULL have the defaults of TensorFlow Serving, unless a comment says
// otherwise. Strings are borrowed until rn_model_server_destroy.
typedef struct rn_model_server_options_t {
  const rn_env_t* env;  // with a log; outlives the server
  rn_allocator_t allocator;
  // Ports. Every port but |rest_address| speaks gRPC, REST and the Open Inference Protocol;
  // |rest_address| speaks no gRPC.
  const char* address;       // "0.0.0.0:8500"; NULL: none
  const char* rest_address;  // NULL: none
  const char* socket_path;   // a UNIX socket; NULL: none
  int loops;                 // threads that watch connections; 0: one per two processors
  rn_tls_t* tls;             // Borrowed; NULL: plain
  const char* token_file;    // "ROLE TOKEN" per line (front/roles.h); NULL: there are no tokens
  int64_t rest_timeout_ns;   // 30 s
  bool has_cors;
  rn_str_t metrics_path;            // "/monitoring/prometheus/metrics"; "": none
  rn_log_settings_t* log_settings;  // of |env|'s log, for clients that change it; NULL: none can
  const char* trace_file;           // of traced requests; NULL: none can be traced
  rn_trace_change_t trace;          // which are traced from the start
  // Models.
  const rn_pb_serving_ModelServerConfig_t* config;
  int64_t poll_ns;  // between looks at the base paths; 0: once
  int max_load_retries;
  int64_t retry_ns;
  int load_threads;
  bool labels_unavailable, keeps_emptied, unloads_first;
  bool checks_methods;  // classify and regress signatures must name their method
  bool warms_up;
  int warmup_iterations;
  rn_str_t tags;                 // of the graphs, separated by commas; "": serve
  rn_session_options_t session;  // threads, devices, what models may read
  rn_batcher_options_t batching;
  int replicas;         // of a SavedModel; 0: 1
  rn_str_t cpu_shares;  // of models: rn_shares_options_t.weights
  rn_str_t model_gpus;  // on which GPUs models run: rn_loader_options_t.gpus
  size_t model_memory;  // bytes per replica of a SavedModel; 0: no limit
  bool isolates;        // every replica of a SavedModel runs in a process of its own
  const char* program;  // this command, for models in processes of their own; NULL: none
  size_t cache_bytes;   // of the prediction cache; 0: none
  // Applications.
  const char* apps_file;           // NULL: none
  const char* state_folder;        // for what they learn; NULL: it is lost with the process
  const rn_redis_config_t* redis;  // instead of |state_folder|; NULL: none
} rn_model_server_options_t;

// Begins to load. The ports are still closed.
RN_MUST_USE rn_status_t rn_model_server_create(const rn_model_server_options_t* options,
                                               rn_model_server_t** out);
// Waits until every model is loaded or has failed: then its error.
RN_MUST_USE rn_status_t rn_model_server_wait(rn_model_server_t* server, int64_t deadline_ns);
// Loads everything once: RN_OK if every model has a version that can be served, and applications
// use no other models; else an error that names those that have none, with the reasons.
RN_MUST_USE rn_status_t rn_model_server_check(rn_model_server_t* server);
// Opens the ports. As in TensorFlow Serving, that comes after the first load: a client that can
// connect finds its model.
RN_MUST_USE rn_status_t rn_model_server_open(rn_model_server_t* server);
// The port numbers that were opened; 0: none.
int rn_model_server_port(const rn_model_server_t* server);
int rn_model_server_rest_port(const rn_model_server_t* server);

// Replaces the list of models.
RN_MUST_USE rn_status_t rn_model_server_reload(rn_model_server_t* server,
                                               const rn_pb_serving_ModelServerConfig_t* config);

// Reads the token file again; |*out_is_new| if its tokens have changed. On failure the old ones
// stay.
RN_MUST_USE rn_status_t rn_model_server_renew_tokens(rn_model_server_t* server, bool* out_is_new);

// Readiness probes fail from now on, new connections are refused, and running requests are
// answered.
void rn_model_server_drain(rn_model_server_t* server);
bool rn_model_server_is_busy(rn_model_server_t* server);
void rn_model_server_destroy(rn_model_server_t* server);  // NULL is fine

#endif  // RUNNEL_SERVE_SERVER_H_

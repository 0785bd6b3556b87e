// Configuration files of a model server, in protobuf's text format: TensorFlow Serving's messages,
// checks and error texts.
//
// Messages are in the caller's arena. Errors of the text are "FILE:LINE:COLUMN: what"; other errors
// begin with "FILE: ". All are INVALID_ARGUMENT, unless the file cannot be read.
#ifndef RUNNEL_SERVE_MODEL_CONFIG_H_
#define RUNNEL_SERVE_MODEL_CONFIG_H_

#include "proto/model_server_config.pb.h"
#include "serve/model/batcher.h"
#include "session/session.h"

// The file, in a version's folder, with batching parameters for that model alone.
#define RN_CONFIG_BATCHING_FILE "batching_params.pbtxt"
#define RN_CONFIG_METRICS_PATH "/monitoring/prometheus/metrics"

#define RN_CONFIG_MAX_BYTES ((size_t)64 << 20)  // of a file
// Parses and checks the text of a file at |path| with a ModelServerConfig.
RN_MUST_USE rn_status_t rn_config_parse_models(rn_str_t text, const char* path, rn_arena_t* arena,
                                               rn_pb_serving_ModelServerConfig_t** out);
// Reads the file, and does that.
RN_MUST_USE rn_status_t rn_config_read_models(const rn_env_t* env, const char* path,
                                              rn_arena_t* arena,
                                              rn_pb_serving_ModelServerConfig_t** out);
// The configuration of one model, from the flags model_name and model_base_path.
RN_MUST_USE rn_status_t rn_config_single(rn_str_t name, rn_str_t base_path, rn_arena_t* arena,
                                         rn_pb_serving_ModelServerConfig_t** out);
// Checks names, base paths, platforms, policies and labels. Whether versions exist, and whether
// labels may point to them, is the manager's concern.
RN_MUST_USE rn_status_t rn_config_check(const rn_pb_serving_ModelServerConfig_t* config);

// Reads BatchingParameters into |options|: batches of a fixed maximum, with a fixed delay, as
// TensorFlow Serving makes them. Fields that have no parameter keep their values. The list of
// allowed sizes is in |arena|. |path| may be NULL: its defaults.
RN_MUST_USE rn_status_t rn_config_read_batching(const rn_env_t* env, const char* path,
                                                rn_arena_t* arena, rn_batcher_options_t* options);
// The same for RN_CONFIG_BATCHING_FILE in |folder|, if there is one; |*out_found| says so.
RN_MUST_USE rn_status_t rn_config_read_own_batching(const rn_env_t* env, const char* folder,
                                                    rn_arena_t* arena,
                                                    rn_batcher_options_t* options, bool* out_found);

// Reads a MonitoringConfig. |*out_path| is the path of the Prometheus page; "" if it is off.
RN_MUST_USE rn_status_t rn_config_read_monitoring(const rn_env_t* env, const char* path,
                                                  rn_arena_t* arena, rn_str_t* out_path);
// Reads an SSLConfig; its fields hold keys and certificates as PEM, not names of files. A key and a
// certificate are required; client_verify also requires custom_ca.
RN_MUST_USE rn_status_t rn_config_read_ssl(const rn_env_t* env, const char* path, rn_arena_t* arena,
                                           rn_pb_serving_SSLConfig_t** out);

// Reads a ConfigProto, of which |*inout| gets the parts that a session uses.
RN_MUST_USE rn_status_t rn_config_read_session(const rn_env_t* env, const char* path,
                                               rn_arena_t* arena, rn_session_options_t* inout);

#endif  // RUNNEL_SERVE_MODEL_CONFIG_H_

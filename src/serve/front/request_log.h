// Samples of requests, as files of PredictionLog records: they replay as warm-up and as load.
//
// A model's logging_config says where (filename_prefix) and how many (sampling_rate, 0 to 1). The
// files are TFRecords, PREFIX.YYYYMMDD-HHMMSS.PID, and a new one begins after 256 MB. A thread of
// its own writes them: requests never wait. If the disk is slower than the samples, samples are
// dropped and counted.
#ifndef RUNNEL_SERVE_FRONT_REQUEST_LOG_H_
#define RUNNEL_SERVE_FRONT_REQUEST_LOG_H_

#include "base/env.h"
#include "proto/model_server_config.pb.h"
#include "serve/metrics.h"
#include "serve/predict.h"

typedef struct rn_request_log_t rn_request_log_t;

RN_MUST_USE rn_status_t rn_request_log_create(const rn_env_t* env, rn_metrics_t* metrics,
                                              rn_allocator_t allocator, rn_request_log_t** out);
void rn_request_log_destroy(rn_request_log_t* log);  // writes what waits; NULL is fine

// Replaces the list of models that are sampled. INVALID_ARGUMENT for a rate outside of 0 to 1 or a
// collector of an unknown type.
RN_MUST_USE rn_status_t rn_request_log_configure(rn_request_log_t* log,
                                                 const rn_pb_serving_ModelServerConfig_t* config);

// Whether the next request of |model| is to be sampled. |log| may be NULL. Cheap if not.
bool rn_request_log_wants(rn_request_log_t* log, rn_str_t model);

// Adds a record. |field| is the number of the kind in PredictionLog, |request| and |response| are
// serialized messages of that kind.
void rn_request_log_add(rn_request_log_t* log, rn_str_t model, uint32_t field, rn_str_t request,
                        rn_str_t response);

// Samples of Predict. rn_request_log_take serializes the inputs of |predict| to |out|, as a
// PredictRequest, if this request is to be sampled; |out| stays empty if not, or if memory runs
// out. |log| may be NULL. rn_request_log_add_predict logs |sample| with the outputs; "" is no
// sample.
void rn_request_log_take(rn_request_log_t* log, rn_str_t model, int64_t version,
                         const rn_predict_t* predict, rn_strbuf_t* out);
void rn_request_log_add_predict(rn_request_log_t* log, rn_str_t model, int64_t version,
                                const rn_predict_t* predict, rn_str_t sample);

// Appends a ModelSpec as |field|, for the requests and responses of other kinds.
void rn_request_log_put_spec(uint32_t field, rn_str_t model, int64_t version, rn_str_t signature,
                             rn_strbuf_t* out);

#endif  // RUNNEL_SERVE_FRONT_REQUEST_LOG_H_

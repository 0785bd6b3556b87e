// Counters and histograms of a server, and their text form for Prometheus.
//
// A metric is a row of a table with a name, a help text and up to three labels. Series are made on
// first use and live as long as the registry, so that a caller can keep a pointer. Adding is a few
// atomic operations; any thread may do it.
#ifndef RUNNEL_SERVE_METRICS_H_
#define RUNNEL_SERVE_METRICS_H_

#include <stdint.h>

#include "base/str.h"

// X(id, kind, name, help, label names ...). The names with ':' are TensorFlow Serving's.
#define RN_METRICS(X)                                                                              \
  X(REQUEST_COUNT, COUNTER, ":tensorflow:serving:request_count", "Requests by model and status",   \
    "model_name", "status")                                                                        \
  X(REQUEST_LATENCY, HISTOGRAM, ":tensorflow:serving:request_latency",                             \
    "Microseconds from the complete request to the reply", "model_name", "API", "entrypoint")      \
  X(RUNTIME_LATENCY, HISTOGRAM, ":tensorflow:serving:runtime_latency",                             \
    "Microseconds in the model", "model_name", "API", "runtime")                                   \
  X(EXAMPLE_COUNTS, EXAMPLES, ":tensorflow:serving:request_example_counts", "Rows per request",    \
    "model")                                                                                       \
  X(EXAMPLE_COUNT_TOTAL, COUNTER, ":tensorflow:serving:request_example_count_total",               \
    "Rows of all requests", "model")                                                               \
  X(QUEUING_LATENCY, QUEUES, ":tensorflow:serving:batching_session:queuing_latency",               \
    "Microseconds that a request waited for its batch", "model_name")                              \
  X(INPUT_BATCH_SIZE, SIZES, ":tensorflow:serving:batching_session:input_batch_size",              \
    "Rows per batch before padding", "model_name")                                                 \
  X(PROCESSED_BATCH_SIZE, SIZES, ":tensorflow:serving:batching_session:processed_batch_size",      \
    "Rows per batch with padding", "model_name")                                                   \
  X(PADDING_SIZE, SIZES, ":tensorflow:serving:batching_session:padding_size",                      \
    "Rows of padding per batch", "model_name")                                                     \
  X(WRAPPED_RUN_COUNT, COUNTER, ":tensorflow:serving:batching_session:wrapped_run_count",          \
    "Batches", "model_name")                                                                       \
  X(WARMUP_LATENCY, HISTOGRAM, ":tensorflow:serving:model_warmup_latency",                         \
    "Microseconds of warm-up per version", "model_name", "status")                                 \
  X(LOG_COUNT, COUNTER, ":tensorflow:serving:request_log_count", "Sampled requests", "model_name", \
    "status")                                                                                      \
  X(STAGE_LATENCY, SECONDS, "runnel_stage_seconds",                                                \
    "Time per request and stage: queue, batch, run, serialize", "model_name", "stage")             \
  X(CACHE_COUNT, COUNTER, "runnel_cache_requests_total",                                           \
    "Requests that asked the cache: hit, miss, wait", "model_name", "outcome")                     \
  X(MARK_COUNT, COUNTER, "runnel_marked_replies_total",                                            \
    "Replies that were cached, default or partial", "name", "mark")                                \
  X(REFUSED_COUNT, COUNTER, "runnel_refused_requests_total",                                       \
    "Requests that did not run: full, overload, deadline", "model_name", "reason")                 \
  X(COPIED_BYTES, COUNTER, "runnel_copied_bytes_total",                                            \
    "Bytes of tensors that were copied, by place", "place")                                        \
  X(QUEUE_LENGTH, GAUGE, "runnel_queue_length", "Requests that wait for a batch", "model_name")    \
  X(BATCH_LIMIT, GAUGE, "runnel_batch_limit", "Rows that the next batch may have", "model_name")   \
  X(BATCH_WAIT, GAUGE, "runnel_batch_wait_seconds",                                                \
    "How long the first request of a batch waits for others", "model_name")                        \
  X(MODEL_UP, GAUGE, "runnel_model_up", "0 if a process behind the model is gone", "model_name")   \
  X(GPU_MEMORY, GAUGE, "runnel_gpu_memory_bytes",                                                  \
    "Memory of a GPU that models of this process use", "gpu")                                      \
  X(FEEDBACK_COUNT, COUNTER, "runnel_feedback_total", "Feedback by application and outcome",       \
    "app", "outcome")                                                                              \
  X(POLICY_WEIGHT, GAUGE, "runnel_policy_weight", "Share of a model in an application's policy",   \
    "app", "model_name")                                                                           \
  X(STORE_FAILURES, COUNTER, "runnel_store_failures_total",                                        \
    "Rounds that failed of saving what applications learn", "store")                               \
  X(STORE_DROPPED, COUNTER, "runnel_store_dropped_total",                                          \
    "Changes that were never saved, for want of room while saving failed", "store")

typedef enum rn_metric_id_t {
#define RN_METRIC_ENUM(id, ...) RN_METRIC_##id,
  RN_METRICS(RN_METRIC_ENUM)
#undef RN_METRIC_ENUM
      RN_METRIC_COUNT_
} rn_metric_id_t;

typedef struct rn_metrics_t rn_metrics_t;
// One series: a counter, a gauge or a histogram. Buckets are TensorFlow Serving's: 33 that end at
// 10 * 1.8^k microseconds, 52 at 100 * 1.2^k for queues, 15 at 2^k for rows of requests; 33 at 2^k
// for other sizes.
typedef struct rn_metric_series_t rn_metric_series_t;

RN_MUST_USE rn_status_t rn_metrics_create(rn_allocator_t allocator, rn_metrics_t** out);
void rn_metrics_destroy(rn_metrics_t* metrics);  // NULL is fine

// The series of |id| with these label values ("" for labels that the metric lacks), made on first
// use. Never NULL: if memory runs out, a series that is not printed.
rn_metric_series_t* rn_metrics_series(rn_metrics_t* metrics, rn_metric_id_t id, rn_str_t a,
                                      rn_str_t b, rn_str_t c);
// For a counter: adds. For a gauge: sets. For a histogram: one observation. NULL is fine.
void rn_series_add(rn_metric_series_t* series, double value);
double rn_series_value(
    const rn_metric_series_t* series);  // of a counter or gauge; a histogram's count
double rn_series_sum(const rn_metric_series_t* series);  // of a histogram's observations

// The buckets of a histogram: how many observations are at most |bounds[i]| and above the bound
// before it. Behind the buckets that a series has, bounds are infinite.
#define RN_SERIES_BUCKETS 53
void rn_series_buckets(const rn_metric_series_t* series, double bounds[RN_SERIES_BUCKETS],
                       uint64_t counts[RN_SERIES_BUCKETS]);
// The estimate of quantile |q| in 0 to 1; 0 if there are no observations.
double rn_buckets_quantile(const double bounds[RN_SERIES_BUCKETS],
                           const uint64_t counts[RN_SERIES_BUCKETS], double q);
double rn_series_quantile(const rn_metric_series_t* series, double q);  // of a histogram

// Appends everything in Prometheus' text format.
void rn_metrics_print(rn_metrics_t* metrics, rn_strbuf_t* out);
// Calls |fn| for each series of |id|, with its label values.
void rn_metrics_each(rn_metrics_t* metrics, rn_metric_id_t id,
                     void (*fn)(void* arg, const rn_str_t labels[3], rn_metric_series_t* series),
                     void* arg);

#endif  // RUNNEL_SERVE_METRICS_H_

// Traces of requests, in the JSON form of Triton's trace extension: when a request arrived, waited
// and ran, by the server's clock.
//
// The settings say which requests: none, or one of every |rate| until |count| are traced. There are
// settings of the server, and of single models, which follow the server's where they have none. The
// file is given when the server starts; clients cannot name files. A thread of its own writes:
// requests never wait. If the disk is slower than the traces, traces are dropped and that is
// logged.
#ifndef RUNNEL_SERVE_FRONT_REQUEST_TRACE_H_
#define RUNNEL_SERVE_FRONT_REQUEST_TRACE_H_

#include "base/env.h"
#include "serve/model/version.h"

typedef struct rn_request_trace_t rn_request_trace_t;

typedef struct rn_trace_values_t {
  bool has_times;  // trace_level: TIMESTAMPS, or OFF
  int64_t rate;    // one of so many requests is traced; 0: none
  int64_t count;   // traces that are left; -1: any number
  int64_t
      frequency;  // traces per file FILE.0, FILE.1...; 0: all in FILE, whose end is written last
} rn_trace_values_t;

enum {
  RN_TRACE_LEVEL = 1,
  RN_TRACE_RATE = 2,
  RN_TRACE_COUNT = 4,
  RN_TRACE_FREQUENCY = 8,
};
typedef struct rn_trace_change_t {
  unsigned sets;    // values that it brings
  unsigned clears;  // values that are again those of the server, or those of its start
  rn_trace_values_t values;
} rn_trace_change_t;

// Adds the setting |name| ("trace_level"...) to a change: |texts| are its values, none to clear it.
// INVALID_ARGUMENT, or UNIMPLEMENTED for what cannot be traced or must not come from clients.
RN_MUST_USE rn_status_t rn_trace_change_add(rn_trace_change_t* inout, rn_str_t name,
                                            const rn_str_t* texts, size_t count);

typedef struct rn_trace_options_t {
  const char* file;           // copied; NULL: nothing can be traced
  rn_trace_change_t initial;  // of Triton's defaults: OFF, 1000, -1, 0
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_trace_options_t;

// FAILED_PRECONDITION if it shall trace without a file.
RN_MUST_USE rn_status_t rn_request_trace_create(const rn_trace_options_t* options,
                                                rn_request_trace_t** out);
// Writes what waits, and the ends of files. NULL is fine.
void rn_request_trace_destroy(rn_request_trace_t* trace);

// Changes the settings of |model|, or of the server if it is "". FAILED_PRECONDITION if that would
// trace without a file.
RN_MUST_USE rn_status_t rn_request_trace_change(rn_request_trace_t* trace, rn_str_t model,
                                                const rn_trace_change_t* change);
// The settings in force, and the file, "" if there is none.
void rn_request_trace_values(rn_request_trace_t* trace, rn_str_t model, rn_trace_values_t* out);
rn_str_t rn_request_trace_file(const rn_request_trace_t* trace);

// A request whose reply is about to be sent.
typedef struct rn_traced_t {
  rn_str_t model;
  int64_t version;
  rn_str_t id;  // "": the client gave none
  bool is_grpc;
  const rn_predict_times_t* times;
} rn_traced_t;
// Writes a trace of it if it is one of those that are traced. |trace| may be NULL.
void rn_request_trace_add(rn_request_trace_t* trace, const rn_traced_t* request);
// The same for a request without an id; nothing if |version| is NULL.
void rn_request_trace_version(rn_request_trace_t* trace, const rn_version_t* version, bool is_grpc,
                              const rn_predict_times_t* times);

#endif  // RUNNEL_SERVE_FRONT_REQUEST_TRACE_H_

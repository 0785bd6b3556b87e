// Sessions and steps of the bench client.
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "graph_util.h"

enum { kMostThreads = 127 };  // what one byte of a varint holds

// Encodes a ConfigProto by hand: the client uses only the C API and no protobuf library.
static size_t write_config(session_config_t config, uint8_t* out) {
  size_t n = 0;
  if (config.intra_threads > 0) {
    out[n++] = 0x10;  // intra_op_parallelism_threads = 2
    out[n++] = (uint8_t)config.intra_threads;
  }
  if (config.inter_threads > 0) {
    out[n++] = 0x28;  // inter_op_parallelism_threads = 5
    out[n++] = (uint8_t)config.inter_threads;
  }
  if (config.no_rewrites) {
    static const uint8_t kGraphOptions[] = {
        0x52, 18,  // graph_options = 10
        0x1a, 11,  //   optimizer_options = 3
        0x18,      //     opt_level = 3: L0, which is -1 as a ten-byte varint
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0x01, 0x52, 3,  //   rewrite_options = 10
        0x98, 0x01, 0x01,                 //     disable_meta_optimizer = 19: true
    };
    memcpy(out + n, kGraphOptions, sizeof kGraphOptions);
    n += sizeof kGraphOptions;
  }
  return n;
}

// The number of threads for sessions whose case does not say; 0: the library's default. From the
// environment, since cases run in processes of their own.
static int default_threads(void) {
  const char* text = getenv("BENCH_THREADS");
  int threads = text ? atoi(text) : 0;
  return threads < 0 ? 0 : threads > kMostThreads ? kMostThreads : threads;
}

TF_Session* session_open(net_t* net, session_config_t config) {
  if (config.intra_threads == 0) config.intra_threads = default_threads();
  if (config.inter_threads == 0) config.inter_threads = default_threads();
  uint8_t bytes[64];
  size_t length = write_config(config, bytes);
  TF_SessionOptions* options = TF_NewSessionOptions();
  if (length > 0) {
    TF_SetConfig(options, bytes, length, net->status);
    check_ok(net->status, "setting the session's config");
  }
  TF_Session* session = TF_NewSession(net->graph, options, net->status);
  check_ok(net->status, "opening a session");
  TF_DeleteSessionOptions(options);
  return session;
}

void session_close(TF_Session* session) {
  TF_Status* status = TF_NewStatus();
  TF_CloseSession(session, status);
  check_ok(status, "closing a session");
  TF_DeleteSession(session, status);
  check_ok(status, "deleting a session");
  TF_DeleteStatus(status);
}

void session_init_variables(TF_Session* session, const net_t* net) {
  TF_Status* status = TF_NewStatus();
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, (const TF_Operation* const*)net->inits,
                net->variable_count, NULL, status);
  check_ok(status, "initialising variables");
  TF_DeleteStatus(status);
}

void step_open(step_t* step, TF_Session* session) {
  memset(step, 0, sizeof *step);
  step->session = session;
  step->status = TF_NewStatus();
}

void step_close(step_t* step) {
  for (int i = 0; i < step->feed_count; ++i) TF_DeleteTensor(step->feed_values[i]);
  TF_DeleteStatus(step->status);
  memset(step, 0, sizeof *step);
}

void step_feed(step_t* step, TF_Output output, TF_Tensor* value) {
  if (step->feed_count == kMaxStepIo) bench_fail("too many feeds");
  step->feeds[step->feed_count] = output;
  step->feed_values[step->feed_count++] = value;
}

void step_fetch(step_t* step, TF_Output output) {
  if (step->fetch_count == kMaxStepIo) bench_fail("too many fetches");
  step->fetches[step->fetch_count++] = output;
}

static void run(step_t* step, TF_Tensor** results) {
  const TF_Operation* target = step->target;
  TF_SessionRun(step->session, NULL, step->feeds, step->feed_values, step->feed_count,
                step->fetches, results, step->fetch_count, &target, target != NULL, NULL,
                step->status);
  if (TF_GetCode(step->status) != TF_OK) check_ok(step->status, "running a step");
}

static double first_number(const TF_Tensor* tensor) {
  const void* data = TF_TensorData(tensor);
  switch (TF_TensorType(tensor)) {
    case TF_FLOAT:
      return *(const float*)data;
    case TF_INT32:
      return *(const int32_t*)data;
    default:
      bench_fail("no number in a fetched tensor");
  }
}

void step_run(void* argument) {
  step_t* step = argument;
  TF_Tensor* results[kMaxStepIo];
  run(step, results);
  if (step->fetch_count > 0) step->result = first_number(results[0]);
  for (int i = 0; i < step->fetch_count; ++i) TF_DeleteTensor(results[i]);
}

TF_Tensor* step_run_for_tensor(step_t* step) {
  TF_Tensor* results[kMaxStepIo];
  run(step, results);
  for (int i = 1; i < step->fetch_count; ++i) TF_DeleteTensor(results[i]);
  return results[0];
}

// What the programs that run our eager client on other tasks share: two tasks of job worker, and
// ops on them.
#ifndef RUNNEL_TESTS_DIST_EAGER_CLIENT_H_
#define RUNNEL_TESTS_DIST_EAGER_CLIENT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/ports.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#define W0 "/job:worker/replica:0/task:0/device:CPU:0"
#define W1 "/job:worker/replica:0/task:1/device:CPU:0"
#define HERE "/job:localhost/replica:0/task:0/device:CPU:0"

static TF_Status* s;
static TFE_Context* context;

#define CHECK(condition, ...)                         \
  do {                                                \
    if (!(condition)) {                               \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                   \
      fprintf(stderr, " (%s)\n", TF_Message(s));      \
      exit(1);                                        \
    }                                                 \
  } while (0)
#define OK() CHECK(TF_GetCode(s) == TF_OK, "code %d", (int)TF_GetCode(s))

static TFE_TensorHandle* floats(const float* values, int rank, const int64_t* dims) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, rank, (size_t)count * 4);
  memcpy(TF_TensorData(tensor), values, (size_t)count * 4);
  TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, s);
  TF_DeleteTensor(tensor);
  OK();
  return handle;
}

static TFE_TensorHandle* scalar(float value) { return floats(&value, 0, NULL); }

// Runs an op of one output at most; the inputs stay.
static TFE_TensorHandle* try_run(TFE_Op* op, const char* device) {
  TFE_TensorHandle* out[4] = {0};
  int count = 4;
  if (device) {
    TFE_OpSetDevice(op, device, s);
    OK();
  }
  TFE_Execute(op, out, &count, s);
  TFE_DeleteOp(op);
  if (TF_GetCode(s) == TF_OK && count == 0) return NULL;
  return TF_GetCode(s) == TF_OK ? out[0] : NULL;
}

static TFE_Op* op_of(const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b) {
  TFE_Op* op = TFE_NewOp(context, name, s);
  OK();
  if (a) TFE_OpAddInput(op, a, s);
  if (b) TFE_OpAddInput(op, b, s);
  OK();
  return op;
}

static TFE_TensorHandle* run(const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b,
                             const char* device) {
  TFE_TensorHandle* out = try_run(op_of(name, a, b), device);
  OK();
  return out;
}

static float value_of(TFE_TensorHandle* handle, int i) {
  TF_Tensor* tensor = TFE_TensorHandleResolve(handle, s);
  OK();
  float value = ((const float*)TF_TensorData(tensor))[i];
  TF_DeleteTensor(tensor);
  return value;
}

static void expect_on(TFE_TensorHandle* handle, const char* device) {
  const char* found = TFE_TensorHandleDeviceName(handle, s);
  OK();
  CHECK(strcmp(found, device) == 0, "on %s, not %s", found, device);
}

// Where this process listens as a task of the cluster.
static int own_port(void) {
  static int port;
  if (!port) port = free_port();
  return port;
}

static inline TF_Buffer* server_def(const char* a, const char* b, const char* job, int task) {
  char text[1000];
  snprintf(text, sizeof text,
           "cluster { job { name: \"worker\" tasks { key: 0 value: \"%s\" } tasks { key: 1 value: "
           "\"%s\" } } job { name: \"localhost\" tasks { key: 0 value: \"127.0.0.1:%d\" } } } "
           "job_name: \"%s\" task_index: %d protocol: \"grpc\"",
           a, b, own_port(), job, task);
  TF_Buffer* def = TFE_GetServerDef(text, s);
  OK();
  return def;
}

static inline void join(const char* a, const char* b, bool is_update) {
  TF_Buffer* def = server_def(a, b, "localhost", 0);
  if (is_update)
    TFE_ContextUpdateServerDef(context, 60, def->data, def->length, s);
  else
    TFE_ContextSetServerDef(context, 60, def->data, def->length, s);
  OK();
  TF_DeleteBuffer(def);
}

static TFE_TensorHandle* variable(const char* name, const char* device) {
  TFE_Op* op = TFE_NewOp(context, "VarHandleOp", s);
  TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
  TFE_OpSetAttrShape(op, "shape", NULL, 0, s);
  TFE_OpSetAttrString(op, "shared_name", name, strlen(name));
  TFE_TensorHandle* handle = try_run(op, device);
  OK();
  return handle;
}

static inline TF_Server* start(const char* a, const char* b, int task) {
  TF_Buffer* def = server_def(a, b, "worker", task);
  TF_Server* server = TF_NewServer(def->data, def->length, s);
  OK();
  TF_ServerStart(server, s);
  OK();
  TF_DeleteBuffer(def);
  return server;
}

#endif  // RUNNEL_TESTS_DIST_EAGER_CLIENT_H_

// Collectives of eager threads: they meet, and an abort ends those that wait.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "eager_util.h"
#include "tensorflow/c/c_api_experimental.h"

#define THREADS 3

typedef struct collective_thread_t {
  ce_t t;  // with a status of its own
  int device, instance;
  float value;
  pthread_t thread;
} collective_thread_t;

static TFE_TensorHandle* number(ce_t* t, int32_t value) {
  return ce_handle(t, ct_tensor(TF_INT32, NULL, 0, &value, sizeof value));
}

static void* sum_up(void* arg) {
  collective_thread_t* own = arg;
  ce_t* t = &own->t;
  TFE_TensorHandle* inputs[] = {ce_float(t, (float)(own->device + 1)), number(t, THREADS),
                                number(t, 5), number(t, own->instance)};
  TFE_Op* op = ce_op(t, "CollectiveReduceV2", 4, inputs);
  char device[64];
  snprintf(device, sizeof device, "/job:localhost/replica:0/task:0/device:CPU:%d", own->device);
  TFE_OpSetDevice(op, device, t->status);
  TFE_OpAddInputList(op, NULL, 0, t->status);
  TFE_OpSetAttrType(op, "T", TF_FLOAT);
  TFE_OpSetAttrString(op, "merge_op", "Add", 3);
  TFE_OpSetAttrString(op, "final_op", "Id", 2);
  TFE_TensorHandle* result = ce_try(t, op);
  if (result) own->value = ce_value(t, result);
  if (result) TFE_DeleteTensorHandle(result);
  for (int i = 0; i < 4; ++i) TFE_DeleteTensorHandle(inputs[i]);
  return NULL;
}

static ce_t open_devices(void) {
  pb_t config = {0}, entry = {0};  // ConfigProto.device_count {"CPU": 3}
  pb_string(&entry, 1, "CPU");
  pb_varint(&entry, 2, THREADS);
  pb_message(&config, 1, &entry);
  ce_t t = ce_open_with(false, &config);
  pb_free(&config);
  pb_free(&entry);
  return t;
}

static void start(ce_t* t, collective_thread_t* threads, int count, int instance) {
  for (int i = 0; i < count; ++i) {
    threads[i] =
        (collective_thread_t){.t = {t->context, TF_NewStatus()}, .device = i, .instance = instance};
    pthread_create(&threads[i].thread, NULL, sum_up, &threads[i]);
  }
}

static void end(collective_thread_t* threads, int count, TF_Code code, float value) {
  for (int i = 0; i < count; ++i) {
    pthread_join(threads[i].thread, NULL);
    CT_CODE(threads[i].t.status, code);
    CE_FLOAT(threads[i].value, value);
    TF_DeleteStatus(threads[i].t.status);
  }
}

CT_TEST(OursOnlyCollective, threads_meet) {
  ce_t t = open_devices();
  collective_thread_t threads[THREADS];
  for (int turn = 0; turn < 20; ++turn) {
    start(&t, threads, THREADS, turn / 2);
    end(threads, THREADS, TF_OK, 6);
  }
  ce_close(&t);
}

CT_TEST(OursOnlyCollective, an_abort_ends_them) {
  ce_t t = open_devices();
  collective_thread_t threads[THREADS];
  start(&t, threads, THREADS - 1, 1);
  usleep(50000);
  TFE_AbortCollectiveOps(t.context, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);  // not an error
  TF_SetStatus(t.status, TF_UNAVAILABLE, "peer down");
  TFE_AbortCollectiveOps(t.context, t.status);
  CT_CODE(t.status, TF_UNAVAILABLE);
  end(threads, THREADS - 1, TF_UNAVAILABLE, 0);
  start(&t, threads, THREADS, 2);
  end(threads, THREADS, TF_UNAVAILABLE, 0);
  TF_SetStatus(t.status, TF_OK, "");
  TFE_CollectiveOpsCheckPeerHealth(t.context, "/job:worker/replica:0/task:1", 100, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  ce_close(&t);
}

// Sessions that are closed or deleted, and runs that are cancelled or time out.
#include <pthread.h>
#include <unistd.h>

#include "util.h"

CT_TEST(CAPI, ClosedSession) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  CT_INT(ct_take_int32(ct_run0(&t, neg)), -1);
  TF_CloseSession(t.session, t.status);
  CT_OK(t.status);
  cr_assert_null(ct_try_run(&t, 0, NULL, NULL, ct_out(neg, 0)));
  CT_ERROR(t.status, TF_CANCELLED, "Session has been closed.");
  TF_CloseSession(t.session, t.status);
  CT_OK(t.status);
  ct_close(&t);
}

CT_TEST(CAPI, SessionDeletedWithoutClosing) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  CT_INT(ct_take_int32(ct_run0(&t, one)), 1);
  TF_DeleteSession(t.session, t.status);
  CT_OK(t.status);
  t.session = NULL;
  ct_close(&t);
}

// A dequeue from a queue that stays empty: runs until it is cancelled.
static TF_Operation* blocking_op(ct_t* t) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "FIFOQueueV2", "queue");
  TF_DataType types[] = {TF_INT32};
  TF_SetAttrTypeList(desc, "component_types", types, 1);
  TF_Operation* queue = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  desc = TF_NewOperation(t->graph, "QueueDequeueV2", "dequeue");
  TF_AddInput(desc, ct_out(queue, 0));
  TF_SetAttrTypeList(desc, "component_types", types, 1);
  TF_Operation* dequeue = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return dequeue;
}

typedef struct waiting_run_t {
  TF_Session* session;
  TF_Output fetch;
  TF_Status* status;
} waiting_run_t;

static void* wait_for_run(void* arg) {
  waiting_run_t* run = arg;
  TF_Tensor* result = NULL;
  TF_SessionRun(run->session, NULL, NULL, NULL, 0, &run->fetch, &result, 1, NULL, 0, NULL,
                run->status);
  return result;
}

CT_TEST(CAPI, CloseWhileRunning) {
  ct_t t = ct_open();
  TF_Operation* dequeue = blocking_op(&t);
  waiting_run_t run = {ct_session(&t, NULL), ct_out(dequeue, 0), TF_NewStatus()};
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, wait_for_run, &run), 0);
  usleep(200 * 1000);
  TF_CloseSession(t.session, t.status);
  CT_OK(t.status);
  void* result = NULL;
  pthread_join(thread, &result);
  cr_assert_null(result);
  CT_CODE(run.status, TF_CANCELLED);
  TF_DeleteStatus(run.status);
  ct_close(&t);
}

CT_TEST(CAPI, RunTimesOut) {
  ct_t t = ct_open();
  TF_Operation* dequeue = blocking_op(&t);
  pb_t bytes = {0};
  pb_varint(&bytes, 2, 100);  // timeout_in_ms
  TF_Buffer* options = TF_NewBufferFromString(bytes.data, bytes.length);
  pb_free(&bytes);
  TF_Output fetch = ct_out(dequeue, 0);
  TF_Tensor* result = NULL;
  TF_SessionRun(ct_session(&t, NULL), options, NULL, NULL, 0, &fetch, &result, 1, NULL, 0, NULL,
                t.status);
  CT_ERROR(t.status, TF_DEADLINE_EXCEEDED, "Timed out waiting for notification");
  cr_assert_null(result);
  TF_DeleteBuffer(options);
  ct_close(&t);
}

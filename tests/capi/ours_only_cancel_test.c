// Steps that another thread cancels: runnel/session.h.
#include <pthread.h>
#include <unistd.h>

#include "eager_util.h"
#include "runnel/session.h"

// A dequeue of an empty queue: a step of it waits for ever.
static TF_Operation* blocked(ct_t* t) {
  TF_DataType type = TF_FLOAT;
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "FIFOQueueV2", "queue");
  TF_SetAttrTypeList(desc, "component_types", &type, 1);
  TF_Operation* queue = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  desc = TF_NewOperation(t->graph, "QueueDequeueV2", "dequeue");
  TF_AddInput(desc, ct_out(queue, 0));
  TF_SetAttrTypeList(desc, "component_types", &type, 1);
  TF_Operation* dequeue = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return dequeue;
}

static void* stop_soon(void* manager) {
  usleep(50000);
  TFE_CancellationManagerStartCancel(manager);
  return NULL;
}

static void run(ct_t* t, TF_Operation* target, TFE_CancellationManager* manager) {
  const TF_Operation* targets[] = {target};
  rn_session_run_cancellable(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, targets, 1, NULL,
                             manager, t->status);
}

CT_TEST(Cancel, StopsAStepAndLeavesTheSession) {
  ct_t t = ct_open();
  TF_Operation* dequeue = blocked(&t);
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  CT_INT(ct_take_int32(ct_run0(&t, one)), 1);
  TFE_CancellationManager* manager = TFE_NewCancellationManager();
  run(&t, one, manager);
  CT_OK(t.status);
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, stop_soon, manager), 0);
  run(&t, dequeue, manager);
  CT_CODE(t.status, TF_CANCELLED);
  pthread_join(thread, NULL);
  run(&t, dequeue, manager);  // a manager that was started stops a step before it begins
  CT_CODE(t.status, TF_CANCELLED);
  TFE_DeleteCancellationManager(manager);
  run(&t, one, NULL);
  CT_OK(t.status);
  CT_INT(ct_take_int32(ct_run0(&t, one)), 1);
  ct_close(&t);
}

CT_TEST(Cancel, NoSession) {
  TF_Status* status = TF_NewStatus();
  rn_session_run_cancellable(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL, status);
  CT_CODE(status, TF_INVALID_ARGUMENT);
  TF_DeleteStatus(status);
}

// Deleting the manager cancels what runs under it, which still asks it for that.
CT_TEST(Cancel, AsynchronousOpsOutliveTheirManager) {
  ce_t t = ce_open_with(true, NULL);
  TFE_Op* make = ce_op(&t, "FIFOQueueV2", 0, NULL);
  TFE_OpSetAttrTypeList(make, "component_types", (TF_DataType[]){TF_FLOAT}, 1);
  TFE_TensorHandle* queue = ce_run(&t, make);
  TFE_Executor* executor = TFE_ContextGetExecutorForThread(t.context);
  for (int i = 0; i < 50; ++i) {
    TFE_CancellationManager* manager = TFE_NewCancellationManager();
    TFE_Op* op = ce_op(&t, "QueueDequeueV2", 1, &queue);
    TFE_OpSetAttrTypeList(op, "component_types", (TF_DataType[]){TF_FLOAT}, 1);
    TFE_OpSetCancellationManager(op, manager, t.status);
    TFE_TensorHandle* taken = ce_run(&t, op);
    if (i % 2) usleep(1000);  // it waits for the queue
    TFE_DeleteCancellationManager(manager);
    TFE_ExecutorWaitForAllPendingNodes(executor, t.status);
    CT_CODE(t.status, TF_CANCELLED);
    TFE_ExecutorClearError(executor);
    TFE_DeleteTensorHandle(taken);
  }
  TFE_DeleteExecutor(executor);
  TFE_DeleteTensorHandle(queue);
  ce_close(&t);
}

static void count_call(void* data, size_t size, void* count) {
  (void)data, (void)size;
  ++*(int*)count;
}

CT_TEST(Lent, BytesAtAMultipleOf16AreNotCopied) {
  _Alignas(64) char block[64 + 3 * sizeof(float)];
  int64_t dims[] = {3};
  int calls = 0;
  for (size_t offset = 16; offset < 64; offset += 16) {
    float* values = (float*)(block + offset);
    values[0] = 1, values[1] = 2, values[2] = 3;
    TF_Tensor* tensor =
        rn_tensor_over(TF_FLOAT, dims, 1, values, 3 * sizeof(float), count_call, &calls);
    cr_assert_eq(TF_TensorData(tensor), values);
    ct_t t = ct_open();
    TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_FLOAT);
    TF_Output in = ct_out(x, 0);
    TF_Tensor* out =
        ct_try_run(&t, 1, &in, &tensor, ct_out(ct_unary(&t, t.graph, "Neg", "y", in), 0));
    CT_OK(t.status);
    cr_assert_eq(((float*)TF_TensorData(out))[2], -3.0f);
    cr_assert_eq(values[2], 3.0f);
    TF_DeleteTensor(out);
    ct_close(&t);
    CT_INT(calls, offset / 16);  // the run has deleted what was fed
  }
  TF_Tensor* copied =
      rn_tensor_over(TF_FLOAT, dims, 1, block + 4, 3 * sizeof(float), count_call, &calls);
  cr_assert_neq(TF_TensorData(copied), block + 4);
  CT_INT(calls, 4);
  TF_DeleteTensor(copied);
}

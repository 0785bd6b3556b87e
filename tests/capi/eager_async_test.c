// Asynchronous execution, executors and cancellation.
#include <pthread.h>
#include <unistd.h>

#include "eager_util.h"

CT_TEST(eager_async, results_arrive_in_order) {
  ce_t t = ce_open_with(true, NULL);
  TFE_TensorHandle* sum = ce_float(&t, 0);
  TFE_TensorHandle* one = ce_float(&t, 1);
  for (int i = 0; i < 100; ++i) {
    TFE_TensorHandle* next = ce_binary(&t, "AddV2", sum, one);
    TFE_DeleteTensorHandle(sum);
    sum = next;
  }
  CT_INT(TFE_TensorHandleNumDims(sum, t.status), 0);
  CE_FLOAT(ce_take(&t, sum), 100);
  TFE_ContextAsyncWait(t.context, t.status);
  CT_OK(t.status);
  TFE_DeleteTensorHandle(one);
  ce_close(&t);
}

CT_TEST(eager_async, errors_wait_for_who_asks) {
  ce_t t = ce_open_with(true, NULL);
  TFE_TensorHandle* x = ce_floats(&t, 2, (float[]){1, 2});
  TFE_TensorHandle* y = ce_floats(&t, 3, (float[]){1, 2, 3});
  TFE_TensorHandle* bad = ce_try(&t, ce_op(&t, "AddV2", 2, (TFE_TensorHandle*[]){x, y}));
  CT_OK(t.status);
  cr_assert_null(TFE_TensorHandleResolve(bad, t.status));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Incompatible shapes: [2] vs. [3]");
  // What comes after it is refused until the error is cleared.
  TFE_Executor* executor = TFE_ContextGetExecutorForThread(t.context);
  cr_assert(TFE_ExecutorIsAsync(executor));
  TFE_ExecutorWaitForAllPendingNodes(executor, t.status);
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  cr_assert_null(ce_try(&t, ce_op(&t, "Neg", 1, &x)));
  CT_CODE(t.status, TF_INVALID_ARGUMENT);
  TFE_ExecutorClearError(executor);
  CE_FLOAT(ce_take(&t, ce_unary(&t, "Neg", x)), -1);
  TFE_ExecutorWaitForAllPendingNodes(executor, t.status);
  CT_OK(t.status);
  TFE_DeleteExecutor(executor);
  TFE_DeleteTensorHandle(bad);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(y);
  ce_close(&t);
}

CT_TEST(eager_async, an_executor_of_the_thread) {
  ce_t t = ce_open();
  TFE_Executor* before = TFE_ContextGetExecutorForThread(t.context);
  cr_assert_not(TFE_ExecutorIsAsync(before));
  TFE_Executor* own = TFE_NewExecutor(true, true, 0);
  TFE_ContextSetExecutorForThread(t.context, own);
  TFE_Executor* same = TFE_ContextGetExecutorForThread(t.context);
  cr_assert(TFE_ExecutorIsAsync(same));
  TFE_TensorHandle* x = ce_float(&t, 3);
  CE_FLOAT(ce_take(&t, ce_unary(&t, "Neg", x)), -3);
  TFE_ContextSetExecutorForThread(t.context, before);
  cr_assert_float_eq(ce_value(&t, x), 3, 0);
  TFE_DeleteExecutor(before);
  TFE_DeleteExecutor(same);
  TFE_DeleteExecutor(own);
  TFE_DeleteTensorHandle(x);
  ce_close(&t);
}

static TFE_TensorHandle* make_queue(ce_t* t) {
  TFE_Op* op = ce_op(t, "FIFOQueueV2", 0, NULL);
  TFE_OpSetAttrTypeList(op, "component_types", (TF_DataType[]){TF_FLOAT}, 1);
  TFE_OpSetAttrString(op, "shared_name", "q", 1);
  return ce_run(t, op);
}

static TFE_Op* dequeue_op(ce_t* t, TFE_TensorHandle* queue) {
  TFE_Op* op = ce_op(t, "QueueDequeueV2", 1, &queue);
  TFE_OpSetAttrTypeList(op, "component_types", (TF_DataType[]){TF_FLOAT}, 1);
  return op;
}

CT_TEST(eager_async, a_queue_by_its_handle) {
  ce_t t = ce_open();
  TFE_TensorHandle* queue = make_queue(&t);
  TFE_TensorHandle* x = ce_float(&t, 5);
  TFE_Op* op = ce_op(&t, "QueueEnqueueV2", 1, &queue);
  TFE_OpAddInputList(op, &x, 1, t.status);
  ce_do(&t, op);
  CE_FLOAT(ce_take(&t, ce_run(&t, dequeue_op(&t, queue))), 5);
  TFE_DeleteTensorHandle(x);
  TFE_DeleteTensorHandle(queue);
  ce_close(&t);
}

static void count_up(void* context) { ++*(int*)context; }

static void* cancel_soon(void* arg) {
  usleep(50000);
  TFE_CancellationManagerStartCancel(arg);
  return NULL;
}

CT_TEST(eager_async, a_waiting_op_is_cancelled) {
  ce_t t = ce_open();
  TFE_TensorHandle* queue = make_queue(&t);
  TFE_CancellationManager* manager = TFE_NewCancellationManager();
  cr_assert_not(TFE_CancellationManagerIsCancelled(manager));
  TFE_Op* op = dequeue_op(&t, queue);
  TFE_OpSetCancellationManager(op, manager, t.status);
  CT_OK(t.status);
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, cancel_soon, manager), 0);
  cr_assert_null(ce_try(&t, op));
  CT_CODE(t.status, TF_CANCELLED);
  pthread_join(thread, NULL);
  cr_assert(TFE_CancellationManagerIsCancelled(manager));
  TFE_DeleteCancellationManager(manager);
  TFE_DeleteTensorHandle(queue);
  ce_close(&t);
}

CT_TEST(eager_async, callbacks_of_a_manager) {
  TFE_CancellationManager* manager = TFE_NewCancellationManager();
  int first = 0, second = 0;
  TFE_CancellationToken a = TFE_CancellationManagerGetToken(manager);
  TFE_CancellationToken b = TFE_CancellationManagerGetToken(manager);
  cr_assert_neq(a, b);
  TFE_CancelCallback callback = {count_up, &first};
  cr_assert(TFE_CancellationManagerRegisterCallback(manager, a, &callback, "a"));
  callback.context = &second;
  cr_assert(TFE_CancellationManagerRegisterCallback(manager, b, &callback, "b"));
  cr_assert(TFE_CancellationManagerDeregisterCallback(manager, b));
  cr_assert(TFE_CancellationManagerTryDeregisterCallback(manager, b));
  TFE_CancellationManagerStartCancel(manager);
  TFE_CancellationManagerStartCancel(manager);
  CT_INT(first, 1);
  CT_INT(second, 0);
  cr_assert_not(TFE_CancellationManagerRegisterCallback(manager, b, &callback, "b"));
  TFE_DeleteCancellationManager(manager);
}

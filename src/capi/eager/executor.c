// Asynchronous execution and cancellation.
#include "base/container.h"
#include "capi/eager/eager.h"

TFE_Executor* TFE_NewExecutor(bool is_async, bool enable_streaming_enqueue,
                              int in_flight_nodes_limit) {
  (void)enable_streaming_enqueue;  // for remote workers only
  (void)in_flight_nodes_limit;
  rn_eager_executor_t* executor = NULL;
  rn_status_free(rn_eager_executor_create(rn_capi_allocator(), is_async, &executor));
  return (TFE_Executor*)executor;
}

void TFE_DeleteExecutor(TFE_Executor* executor) {
  rn_eager_executor_release(rn_capi_executor(executor));
}

bool TFE_ExecutorIsAsync(TFE_Executor* executor) {
  return executor && rn_eager_executor_is_async(rn_capi_executor(executor));
}

void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor* executor, TF_Status* status) {
  rn_capi_set(status, executor ? rn_eager_executor_wait(rn_capi_executor(executor))
                               : RN_CAPI_NULL("executor"));
}

void TFE_ExecutorClearError(TFE_Executor* executor) {
  if (executor) rn_eager_executor_clear_error(rn_capi_executor(executor));
}

void TFE_ContextSetExecutorForThread(TFE_Context* ctx, TFE_Executor* executor) {
  if (ctx) rn_status_free(rn_eager_set_executor(rn_capi_eager(ctx), rn_capi_executor(executor)));
}

TFE_Executor* TFE_ContextGetExecutorForThread(TFE_Context* ctx) {
  return ctx ? (TFE_Executor*)rn_eager_get_executor(rn_capi_eager(ctx)) : NULL;
}

void TFE_ContextAsyncWait(TFE_Context* ctx, TF_Status* status) {
  rn_capi_set(status, ctx ? rn_eager_wait(rn_capi_eager(ctx)) : RN_CAPI_NULL("ctx"));
}

// --- Cancellation

// A client's callback.
typedef struct rn_capi_callback_t {
  struct rn_capi_callback_t* next;
  int64_t token;
  TFE_CancelCallback callback;
} rn_capi_callback_t;

static void free_manager(rn_eager_cancel_t* base) {
  TFE_CancellationManager* manager = RN_CONTAINER_OF(base, TFE_CancellationManager, base);
  rn_cond_destroy(&manager->idle);
  rn_mutex_destroy(&manager->mutex);
  rn_cancel_destroy(&manager->base.cancel);
  RN_FREE(rn_capi_allocator(), manager);
}

TFE_CancellationManager* TFE_NewCancellationManager(void) {
  TFE_CancellationManager* manager = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &manager);
  if (rn_ok(status)) {
    rn_cancel_init(&manager->base.cancel);
    manager->base.free_fn = free_manager;
    rn_mutex_init(&manager->mutex);
    rn_cond_init(&manager->idle);
  }
  rn_status_free(status);
  return manager;
}

void TFE_DeleteCancellationManager(TFE_CancellationManager* manager) {
  if (!manager) return;
  TFE_CancellationManagerStartCancel(manager);
  while (manager->callbacks) {
    rn_capi_callback_t* entry = manager->callbacks;
    manager->callbacks = entry->next;
    RN_FREE(rn_capi_allocator(), entry);
  }
  rn_eager_cancel_release(&manager->base);
}

bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager* manager) {
  return manager && rn_is_cancelled(&manager->base.cancel);
}

bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager* manager) {
  if (!manager) return false;
  rn_mutex_lock(&manager->mutex);
  bool is_cancelling = manager->is_cancelling;
  rn_mutex_unlock(&manager->mutex);
  return is_cancelling;
}

// Calls the callbacks without the lock. Each stays in the list meanwhile, so that a thread that
// deregisters it can wait for it.
void TFE_CancellationManagerStartCancel(TFE_CancellationManager* manager) {
  if (!manager) return;
  rn_mutex_lock(&manager->mutex);
  bool is_first = !rn_is_cancelled(&manager->base.cancel) && !manager->is_cancelling;
  if (is_first) manager->is_cancelling = true;
  rn_mutex_unlock(&manager->mutex);
  if (!is_first) return;
  rn_cancel(&manager->base.cancel);
  rn_mutex_lock(&manager->mutex);
  while (manager->callbacks) {
    rn_capi_callback_t* entry = manager->callbacks;
    rn_mutex_unlock(&manager->mutex);
    entry->callback.callback(entry->callback.context);
    rn_mutex_lock(&manager->mutex);
    manager->callbacks = entry->next;
    RN_FREE(rn_capi_allocator(), entry);
    rn_cond_broadcast(&manager->idle);
  }
  manager->is_cancelling = false;
  rn_mutex_unlock(&manager->mutex);
}

TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager* manager) {
  if (!manager) return 0;
  rn_mutex_lock(&manager->mutex);
  int64_t token = manager->next_token++;
  rn_mutex_unlock(&manager->mutex);
  return token;
}

bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager* manager,
                                             TFE_CancellationToken token,
                                             const TFE_CancelCallback* c_callback,
                                             const char* callback_name) {
  (void)callback_name;  // stock logs it; there is no such log here
  if (!manager || !c_callback || !c_callback->callback) return false;
  rn_capi_callback_t* entry = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &entry);
  rn_status_free(status);
  if (!entry) return false;
  entry->token = token;
  entry->callback = *c_callback;
  rn_mutex_lock(&manager->mutex);
  bool is_late = manager->is_cancelling || rn_is_cancelled(&manager->base.cancel);
  if (!is_late) {
    rn_capi_callback_t** last = &manager->callbacks;
    while (*last) last = &(*last)->next;
    *last = entry;
  }
  rn_mutex_unlock(&manager->mutex);
  if (is_late) RN_FREE(rn_capi_allocator(), entry);
  return !is_late;
}

static rn_capi_callback_t** find(TFE_CancellationManager* manager, int64_t token) {
  rn_capi_callback_t** link = &manager->callbacks;
  while (*link && (*link)->token != token) link = &(*link)->next;
  return link;
}

// As in stock: true unless cancellation has begun, even if the token was not registered.
static bool deregister(TFE_CancellationManager* manager, int64_t token, bool waits) {
  if (!manager) return false;
  rn_mutex_lock(&manager->mutex);
  bool is_late = manager->is_cancelling || rn_is_cancelled(&manager->base.cancel);
  rn_capi_callback_t** link = find(manager, token);
  if (!is_late && *link) {
    rn_capi_callback_t* entry = *link;
    *link = entry->next;
    RN_FREE(rn_capi_allocator(), entry);
  }
  while (is_late && waits && *find(manager, token)) rn_cond_wait(&manager->idle, &manager->mutex);
  rn_mutex_unlock(&manager->mutex);
  return !is_late;
}

bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager* manager,
                                               TFE_CancellationToken token) {
  return deregister(manager, token, true);
}

bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager* manager,
                                                  TFE_CancellationToken token) {
  return deregister(manager, token, false);
}

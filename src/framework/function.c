// Runs a call and waits for it: see function.h.
#include "framework/function.h"

typedef struct function_waiter_t {
  rn_function_call_t call;  // first
  rn_mutex_t mutex;
  rn_cond_t changed;
  bool is_done;
  rn_status_t status;
} function_waiter_t;

static void on_done(rn_function_call_t* call, rn_status_t status) {
  function_waiter_t* waiter = (function_waiter_t*)call;
  rn_mutex_lock(&waiter->mutex);
  waiter->status = status;
  waiter->is_done = true;
  rn_cond_signal(&waiter->changed);
  rn_mutex_unlock(&waiter->mutex);
}

rn_status_t rn_function_run_and_wait(rn_functions_t* functions, rn_instance_t* instance,
                                     rn_function_call_t* call) {
  function_waiter_t waiter = {.call = *call};
  waiter.call.done = on_done;
  rn_mutex_init(&waiter.mutex);
  rn_cond_init(&waiter.changed);
  rn_function_run(functions, instance, &waiter.call);
  rn_mutex_lock(&waiter.mutex);
  while (!waiter.is_done) rn_cond_wait(&waiter.changed, &waiter.mutex);
  rn_mutex_unlock(&waiter.mutex);
  rn_cond_destroy(&waiter.changed);
  rn_mutex_destroy(&waiter.mutex);
  return waiter.status;
}

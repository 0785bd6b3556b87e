// Runs a call and waits for it: see function.h.
#include "framework/function.h"

#include "base/outcome.h"

typedef struct function_waiter_t {
  rn_function_call_t call;  // first
  rn_outcome_t outcome;
} function_waiter_t;

static void on_done(rn_function_call_t* call, rn_status_t status) {
  rn_outcome_set(&((function_waiter_t*)call)->outcome, status);
}

rn_status_t rn_function_run_and_wait(rn_functions_t* functions, rn_instance_t* instance,
                                     rn_function_call_t* call) {
  function_waiter_t waiter = {.call = *call};
  waiter.call.done = on_done;
  rn_outcome_init(&waiter.outcome);
  rn_function_run(functions, instance, &waiter.call);
  return rn_outcome_wait(&waiter.outcome);
}

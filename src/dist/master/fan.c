// Calls to several tasks at once: see session.h.
#include "dist/master/session.h"
#include "framework/rendezvous.h"

void rn_master_fan_open(rn_master_fan_t* fan, int pending,
                        void (*next)(rn_master_fan_t* fan, rn_status_t status)) {
  *fan = (rn_master_fan_t){.next = next, .pending = pending};
  rn_mutex_init(&fan->mutex);
}

// Whether |status| is a consequence of another error.
static bool is_consequence(rn_status_t status) {
  return rn_status_is_derived(status) || rn_status_code(status) == RN_CODE_CANCELLED;
}

static rn_status_t prefix(rn_status_t status, rn_str_t task) {
  // The message of a failed connection already names the task.
  if (rn_ok(status) || !task.size || strncmp(rn_status_message(status), "From /job:", 10) == 0)
    return status;
  rn_status_t named = rn_status_make(rn_status_code(status), "From %.*s:\n%s", RN_STR_ARGS(task),
                                     rn_status_message(status));
  if (rn_status_is_derived(status)) named = rn_status_derive(named);
  rn_status_free(status);
  return named;
}

void rn_master_fan_end(rn_master_fan_t* fan, rn_status_t status, rn_str_t task) {
  status = prefix(status, task);
  rn_mutex_lock(&fan->mutex);
  if (fan->status && status && is_consequence(fan->status) && !is_consequence(status)) {
    rn_status_free(fan->status);
    fan->status = RN_OK;
  }
  fan->status = rn_status_join(fan->status, status);
  bool is_last = --fan->pending == 0;
  rn_mutex_unlock(&fan->mutex);
  if (!is_last) return;
  rn_status_t result = fan->status;
  fan->status = RN_OK;
  rn_mutex_destroy(&fan->mutex);
  fan->next(fan, result);
}

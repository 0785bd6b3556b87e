// See store_saver.h.
#include "serve/select/store_saver.h"

#include <signal.h>

void rn_store_saver_init(rn_store_saver_t* saver) {
  rn_mutex_init(&saver->mutex);
  rn_cond_init(&saver->wake);
  rn_cond_init(&saver->saved);
}

void rn_store_saver_deinit(rn_store_saver_t* saver) {
  rn_status_free(saver->failure);
  rn_cond_destroy(&saver->wake);
  rn_cond_destroy(&saver->saved);
  rn_mutex_destroy(&saver->mutex);
}

static void complain(rn_store_saver_t* saver, rn_status_t status) {
  int64_t left_out;
  if (rn_log_limit_says(&saver->complaint, saver->env, &left_out))
    rn_log(saver->env, RN_LOG_ERROR, "%s, and will be retried: %s", saver->what,
           rn_status_message(status));
}

static void* saver_main(void* arg) {
  rn_store_saver_t* saver = arg;
  // hiredis writes to sockets whose peer may be gone.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, NULL);
  rn_mutex_lock(&saver->mutex);
  for (bool is_last = false; !is_last;) {
    saver->wait(saver->self);
    is_last = saver->is_closing;
    int64_t ticket = saver->wanted;
    rn_mutex_unlock(&saver->mutex);
    rn_status_t status = saver->save(saver->self);
    if (!rn_ok(status)) {
      complain(saver, status);
      rn_series_add(saver->failure_count, 1);
    }
    rn_mutex_lock(&saver->mutex);
    ++*(rn_ok(status) ? &saver->saves : &saver->failures);
    rn_status_free(saver->failure);
    saver->failure = status;
    saver->done = ticket;
    rn_cond_broadcast(&saver->saved);
  }
  rn_mutex_unlock(&saver->mutex);
  return NULL;
}

rn_status_t rn_store_saver_start(rn_store_saver_t* saver) {
  saver->has_thread = pthread_create(&saver->thread, NULL, saver_main, saver) == 0;
  return saver->has_thread
             ? RN_OK
             : rn_resource_exhausted("Cannot start a thread for the states of applications");
}

void rn_store_saver_stop(rn_store_saver_t* saver) {
  if (!saver->has_thread) return;
  rn_mutex_lock(&saver->mutex);
  saver->is_closing = true;
  rn_cond_signal(&saver->wake);
  rn_mutex_unlock(&saver->mutex);
  pthread_join(saver->thread, NULL);
}

rn_status_t rn_store_saver_flush(rn_store_saver_t* saver) {
  rn_mutex_lock(&saver->mutex);
  int64_t ticket = ++saver->wanted;
  rn_cond_signal(&saver->wake);
  while (saver->done < ticket) rn_cond_wait(&saver->saved, &saver->mutex);
  rn_status_t status = rn_status_copy(saver->failure);
  rn_mutex_unlock(&saver->mutex);
  return status;
}

rn_status_t rn_store_saver_wait_for_first(rn_store_saver_t* saver) {
  rn_mutex_lock(&saver->mutex);
  while (!(saver->saves + saver->failures)) rn_cond_wait(&saver->saved, &saver->mutex);
  rn_status_t status = rn_status_copy(saver->failure);
  rn_mutex_unlock(&saver->mutex);
  return status;
}

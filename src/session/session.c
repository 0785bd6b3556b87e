// The life of a session and of its steps, whatever runs them. See session.h.
#include "session/impl.h"

#define CLOSED (UINT64_C(1) << 63)

void rn_session_init(rn_session_t* session, const rn_session_vtable_t* vtable, rn_graph_t* graph,
                     const rn_env_t* env, rn_allocator_t allocator) {
  session->vtable = vtable;
  session->allocator = allocator;
  session->graph = graph;
  session->step = (rn_step_t){.cancel = &session->closing, .env = env};
  rn_graph_retain(graph);
  rn_mutex_init(&session->mutex);
  rn_cond_init(&session->idle);
  rn_cancel_init(&session->closing);
}

void rn_session_clear(rn_session_t* session) {
  rn_graph_release(session->graph);
  rn_cancel_destroy(&session->closing);
  rn_cond_destroy(&session->idle);
  rn_mutex_destroy(&session->mutex);
}

rn_graph_t* rn_session_graph(rn_session_t* session) { return session->graph; }
rn_functions_t* rn_session_functions(rn_session_t* session) { return session->functions; }
void rn_session_step_init(rn_session_t* session, rn_step_t* out) { *out = session->step; }
rn_status_t rn_session_devices(rn_session_t* session, rn_device_t*** out, int* out_count) {
  return session->vtable->devices(session, out, out_count);
}
int rn_session_device_count(const rn_session_t* session) { return session->device_count; }
const rn_device_t* rn_session_device(const rn_session_t* session, int i) {
  return i >= 0 && i < session->device_count ? session->devices[i] : NULL;
}

rn_status_t rn_session_close(rn_session_t* session) {
  rn_cancel(&session->closing);
  rn_status_t status = session->vtable->close(session);
  rn_mutex_lock(&session->mutex);
  if ((atomic_fetch_or(&session->steps, CLOSED) & ~CLOSED) == 0) session->is_idle = true;
  while (!session->is_idle) rn_cond_wait(&session->idle, &session->mutex);
  rn_mutex_unlock(&session->mutex);
  return status;
}

void rn_session_destroy(rn_session_t* session) {
  if (!session) return;
  rn_status_free(rn_session_close(session));
  session->vtable->destroy(session);
}

rn_status_t rn_session_plan(rn_session_t* session, const rn_signature_t* signature,
                            const rn_tensor_t* const* feeds) {
  if (!session->vtable->plan)
    return rn_unimplemented("A remote session plans its steps on the server");
  return session->vtable->plan(session, signature, feeds);
}

// Counts the step in; false if the session is closed.
static bool begin_step(rn_session_t* session) {
  return !(atomic_fetch_add(&session->steps, 1) & CLOSED);
}

static void end_step(rn_session_t* session) {
  if (atomic_fetch_sub(&session->steps, 1) != (CLOSED | 1)) return;
  rn_mutex_lock(&session->mutex);
  session->is_idle = true;
  rn_cond_broadcast(&session->idle);
  rn_mutex_unlock(&session->mutex);
}

rn_status_t rn_session_run(rn_session_t* session, const rn_signature_t* signature,
                           const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                           const rn_step_options_t* options) {
  for (int32_t i = 0; i < signature->fetch_count; ++i) fetches[i] = (rn_tensor_t){0};
  rn_status_t status = begin_step(session)
                           ? session->vtable->run(session, signature, feeds, fetches, options)
                           : rn_cancelled("Session has been closed.");
  for (int32_t i = 0; !rn_ok(status) && i < signature->fetch_count; ++i)
    rn_tensor_clear(&fetches[i]);
  end_step(session);
  return status;
}

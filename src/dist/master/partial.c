// Partial runs: every piece is an ordinary step, and values that later pieces need are fed back to
// them (session/partial_run.c), which works on any session. So the master's session implements the
// session's interface.
#include <stdio.h>

#include "dist/calls.h"
#include "dist/master/session.h"
#include "session/impl.h"

typedef struct partial_face_t {
  rn_session_t base;  // first
  rn_master_session_t* session;
} partial_face_t;

static rn_status_t face_run(rn_session_t* self, const rn_signature_t* signature,
                            const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                            const rn_step_options_t* options) {
  rn_master_session_t* session = ((partial_face_t*)self)->session;
  rn_waiter_t waiter;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_local_master_options(session->master)->allocator);
  rn_run_step_t call = {
      .call = rn_waiter_call(&waiter, INT64_MAX, options ? options->cancel : NULL),
      .session = rn_str(session->handle),
      .fetches = fetches};
  rn_status_t status = rn_run_step_name(&call, &arena, signature, feeds);
  if (rn_ok(status))
    rn_master_session_run(session, &call);
  else
    rn_call_done(&call.call, status);
  status = rn_waiter_wait(&waiter);
  rn_arena_clear(&arena);
  return status;
}

// The master ends its steps itself.
static rn_status_t face_close(rn_session_t* self) {
  (void)self;
  return RN_OK;
}

static void face_destroy(rn_session_t* self) {
  rn_session_clear(self);
  RN_FREE(self->allocator, (partial_face_t*)self);
}

// No partial run asks for devices.
static const rn_session_vtable_t vtable = {
    .run = face_run, .close = face_close, .destroy = face_destroy};

static rn_status_t make_face_locked(rn_master_session_t* session) {
  if (session->face) return RN_OK;
  const rn_local_master_options_t* master = rn_local_master_options(session->master);
  partial_face_t* face = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(master->allocator, &face));
  rn_session_init(&face->base, &vtable, session->graph, master->env, master->allocator);
  face->session = session;
  session->face = &face->base;
  return RN_OK;
}

rn_status_t rn_master_partial_setup(rn_master_session_t* session, rn_partial_setup_t* call) {
  if (call->fetch_count + call->target_count == 0)
    return rn_invalid_argument("Must specify at least one target to fetch or execute.");
  rn_allocator_t allocator = rn_local_master_options(session->master)->allocator;
  rn_master_partial_t* partial = NULL;
  rn_signature_t signature;
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status =
      rn_master_session_find(session, &arena, call->feeds, call->feed_count, call->fetches,
                             call->fetch_count, call->targets, call->target_count, &signature);
  if (rn_ok(status)) status = RN_NEW(allocator, &partial);
  rn_mutex_lock(&session->planning);
  if (rn_ok(status)) status = make_face_locked(session);
  if (rn_ok(status)) status = rn_session_partial_setup(session->face, &signature, &partial->run);
  rn_mutex_unlock(&session->planning);
  rn_mutex_lock(&session->mutex);
  if (rn_ok(status)) {
    snprintf(partial->handle, sizeof partial->handle, "%lld", (long long)session->next_partial++);
    memcpy(call->handle, partial->handle, sizeof call->handle);
    partial->left = call->feed_count + call->fetch_count;
    partial->next = session->partials;
    session->partials = partial;
  } else if (partial) {
    RN_FREE(allocator, partial);
  }
  rn_mutex_unlock(&session->mutex);
  rn_arena_clear(&arena);
  return status;
}

static void partial_free(rn_master_session_t* session, rn_master_partial_t* partial) {
  rn_partial_run_destroy(partial->run);
  RN_FREE(rn_local_master_options(session->master)->allocator, partial);
}

static rn_status_t run_part(rn_master_session_t* session, rn_master_partial_t* partial,
                            rn_run_step_t* call) {
  rn_signature_t part;
  rn_arena_t arena;
  rn_str_t* names = NULL;
  const rn_tensor_t** feeds = NULL;
  rn_arena_init(&arena, rn_local_master_options(session->master)->allocator);
  rn_status_t status = RN_ARENA_ARRAY(&arena, call->feed_count, &names);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, call->feed_count, &feeds);
  for (size_t i = 0; rn_ok(status) && i < call->feed_count; ++i) {
    names[i] = call->feeds[i].name;
    feeds[i] = &call->feeds[i].value;
  }
  if (rn_ok(status))
    status = rn_master_session_find(session, &arena, names, call->feed_count, call->fetch_names,
                                    call->fetch_count, call->targets, call->target_count, &part);
  if (rn_ok(status))
    status = rn_session_partial_run(session->face, partial->run, &part, feeds, call->fetches);
  rn_arena_clear(&arena);
  return status;
}

rn_status_t rn_master_partial_run(rn_master_session_t* session, rn_run_step_t* call) {
  for (size_t i = 0; i < call->fetch_count; ++i) call->fetches[i] = (rn_tensor_t){0};
  rn_mutex_lock(&session->mutex);
  rn_master_partial_t* partial = session->partials;
  while (partial && !rn_str_is(call->partial_run, partial->handle)) partial = partial->next;
  rn_mutex_unlock(&session->mutex);
  if (!partial)
    return rn_invalid_argument(
        "Must run PartialRunSetup before performing partial runs: no step '%.*s'",
        RN_STR_ARGS(call->partial_run));
  rn_status_t status = run_part(session, partial, call);
  // The partial run ends with the last feed and fetch that was set up, or with an error.
  rn_mutex_lock(&session->mutex);
  size_t came = call->feed_count + call->fetch_count;
  bool is_over = !rn_ok(status) || partial->left <= came;
  partial->left -= is_over ? partial->left : came;
  rn_master_partial_t** at = &session->partials;
  while (is_over && *at && *at != partial) at = &(*at)->next;
  if (is_over && *at) *at = partial->next;
  rn_mutex_unlock(&session->mutex);
  if (is_over) partial_free(session, partial);
  return status;
}

void rn_master_partials_clear(rn_master_session_t* session) {
  while (session->partials) {
    rn_master_partial_t* partial = session->partials;
    session->partials = partial->next;
    partial_free(session, partial);
  }
  rn_session_destroy(session->face);
}

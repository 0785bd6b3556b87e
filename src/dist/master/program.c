// Programs of a session: see program.h.
#include "dist/master/program.h"

#include "base/container.h"
#include "dist/master/mend.h"
#include "graph/import.h"

static rn_status_t find_edge(rn_master_session_t* session, rn_str_t name, const char* what,
                             rn_edge_t* out) {
  rn_tensor_id_t id = rn_tensor_id_parse(name);
  *out = (rn_edge_t){rn_graph_find(session->graph, id.name), id.index};
  if (!out->node || id.index < 0 || id.index >= out->node->output_count)
    return rn_not_found("%s %.*s: not found", what, RN_STR_ARGS(name));
  return RN_OK;
}

rn_status_t rn_master_session_find(rn_master_session_t* session, rn_arena_t* arena,
                                   const rn_str_t* feeds, size_t feed_count,
                                   const rn_str_t* fetches, size_t fetch_count,
                                   const rn_str_t* targets, size_t target_count,
                                   rn_signature_t* out) {
  rn_edge_t *fed = NULL, *fetched = NULL;
  rn_node_t** nodes = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, feed_count, &fed));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, fetch_count, &fetched));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, target_count, &nodes));
  for (size_t i = 0; i < feed_count; ++i)
    RN_RETURN_IF_ERROR(
        find_edge(session, feeds[i], "FeedInputs: unable to find feed output", &fed[i]));
  for (size_t i = 0; i < fetch_count; ++i)
    RN_RETURN_IF_ERROR(find_edge(session, fetches[i], "FetchOutputs node", &fetched[i]));
  for (size_t i = 0; i < target_count; ++i) {
    nodes[i] = rn_graph_find(session->graph, targets[i]);
    if (!nodes[i])
      return rn_not_found("PruneForTargets: Some target nodes not found: %.*s ",
                          RN_STR_ARGS(targets[i]));
  }
  *out = (rn_signature_t){.feeds = fed,
                          .feed_count = (int32_t)feed_count,
                          .fetches = fetched,
                          .fetch_count = (int32_t)fetch_count,
                          .targets = nodes,
                          .target_count = (int32_t)target_count};
  return RN_OK;
}

static rn_status_t find_signature(rn_master_step_t* step, rn_str_t** out_feed_names,
                                  rn_signature_t* out) {
  const rn_run_step_t* call = step->call;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&step->arena, call->feed_count, out_feed_names));
  for (size_t i = 0; i < call->feed_count; ++i) (*out_feed_names)[i] = call->feeds[i].name;
  return rn_master_session_find(step->session, &step->arena, *out_feed_names, call->feed_count,
                                call->fetch_names, call->fetch_count, call->targets,
                                call->target_count, out);
}

static void put_names(rn_strbuf_t* key, char mark, const rn_str_t* names, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_strbuf_printf(key, "%c%.*s\n", mark, RN_STR_ARGS(names[i]));
}

static rn_status_t key_of(rn_master_step_t* step, rn_str_t* out) {
  const rn_run_step_t* call = step->call;
  rn_strbuf_t key;
  rn_strbuf_init(&key, rn_master_session_allocator(step->session));
  for (size_t i = 0; i < call->feed_count; ++i) put_names(&key, '<', &call->feeds[i].name, 1);
  put_names(&key, '>', call->fetch_names, call->fetch_count);
  put_names(&key, '!', call->targets, call->target_count);
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status)) status = rn_arena_str(&step->arena, rn_strbuf_view(&key), out);
  rn_strbuf_clear(&key);
  return status;
}

// The program is registered, or failed: all steps that waited for it continue.
static void settle(rn_master_program_t* program, rn_status_t status) {
  rn_master_session_t* session = program->session;
  session->refs++;  // the end of the last step might free it
  rn_mutex_lock(&session->mutex);
  program->state = rn_ok(status) ? RN_PROGRAM_READY : RN_PROGRAM_FAILED;
  program->failure = status;
  rn_master_step_t* step = program->waiting;
  program->waiting = NULL;
  if (!rn_ok(status)) {  // the next step tries again
    rn_master_program_t** at = &session->programs;
    while (*at != program) at = &(*at)->next;
    *at = program->next;
  }
  rn_mutex_unlock(&session->mutex);
  while (step) {
    rn_master_step_t* next = step->next;
    if (rn_ok(status))
      rn_master_step_run(step);
    else
      rn_master_step_end(step, rn_status_copy(status));
    step = next;
  }
  if (!rn_ok(status)) {
    for (size_t p = 0; program->calls && p < program->plan.parts.count; ++p)
      if (program->calls[p].handle[0])
        rn_master_forget(session, program->plan.parts.items[p].task, program->calls[p].handle);
    rn_master_plan_clear(&program->plan);
    rn_status_free(program->failure);
    program->failure = RN_OK;
  }
  rn_master_session_release(session);
}

static void on_all_registered(rn_master_fan_t* fan, rn_status_t status) {
  settle(RN_CONTAINER_OF(fan, rn_master_program_t, fan), status);
}

static void on_registered(rn_call_t* call, rn_status_t status) {
  rn_master_program_t* program = call->owner;
  size_t p = (size_t)((rn_register_graph_t*)call - program->calls);
  if (!rn_ok(status))
    rn_master_suspect(program->session, &program->plan, program->plan.parts.items[p].task, status);
  rn_master_fan_end(&program->fan, status,
                    program->session->tasks[program->plan.parts.items[p].task].name);
}

static void register_parts(rn_master_program_t* program) {
  rn_master_session_t* session = program->session;
  size_t count = program->plan.parts.count;
  rn_master_fan_open(&program->fan, (int)count + 1, on_all_registered);
  for (size_t p = 0; p < count; ++p)
    program->calls[p] =
        (rn_register_graph_t){.call = {.done = on_registered,
                                       .owner = program,
                                       .deadline_ns = INT64_MAX,
                                       .cancel = &session->closing},
                              .session = rn_str(session->handle),
                              .graph_def = rn_strbuf_view(&program->plan.parts.items[p].graph_def),
                              .config = session->config,
                              .collective_key = program->plan.collective_key};
  for (size_t p = 0; p < count; ++p) {
    rn_worker_t* worker = session->tasks[program->plan.parts.items[p].task].worker;
    worker->vtable->register_graph(worker, &program->calls[p]);
  }
  rn_master_fan_end(&program->fan, RN_OK, RN_STR(""));
}

static rn_status_t plan_program(rn_master_program_t* program) {
  rn_master_session_t* session = program->session;
  rn_master_step_t* step = program->maker;
  rn_signature_t signature;
  rn_str_t* feed_names = NULL;
  rn_master_plan_options_t options;
  RN_RETURN_IF_ERROR(find_signature(step, &feed_names, &signature));
  rn_master_session_plan_options(session, &options);
  options.feed_names = feed_names;
  options.fetch_names = step->call->fetch_names;
  RN_RETURN_IF_ERROR(rn_master_plan(&options, session->graph, &signature, &program->plan));
  rn_mutex_lock(&session->mutex);
  rn_status_t status = RN_ARENA_ARRAY(&session->arena, program->plan.parts.count, &program->calls);
  rn_mutex_unlock(&session->mutex);
  if (!rn_ok(status)) rn_master_plan_clear(&program->plan);
  return status;
}

static void run_planning(rn_job_t* job) {
  rn_master_program_t* program = RN_CONTAINER_OF(job, rn_master_program_t, job);
  rn_master_session_t* session = program->session;
  rn_mutex_lock(&session->planning);
  rn_status_t status = plan_program(program);
  rn_mutex_unlock(&session->planning);
  if (rn_ok(status))
    register_parts(program);
  else
    settle(program, status);
}

static rn_status_t add_program_locked(rn_master_step_t* step, rn_str_t key,
                                      rn_master_program_t** out) {
  rn_master_session_t* session = step->session;
  rn_master_program_t* program = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&session->arena, &program));
  program->session = session;
  program->maker = step;
  program->job.run = run_planning;
  RN_RETURN_IF_ERROR(rn_arena_str(&session->arena, key, &program->key));
  program->next = session->programs;
  session->programs = program;
  *out = program;
  return RN_OK;
}

static rn_master_program_t* find_program_locked(rn_master_session_t* session, rn_str_t key) {
  rn_master_program_t* program = session->programs;
  while (program && (program->is_outdated || !rn_str_eq(program->key, key)))
    program = program->next;
  return program;
}

static void on_mended(rn_mend_waiter_t* waiter) {
  rn_master_step_t* step = RN_CONTAINER_OF(waiter, rn_master_step_t, mending);
  rn_status_t status = rn_master_program_dispatch(step);
  if (!rn_ok(status)) rn_master_step_end(step, status);
}

rn_status_t rn_master_program_dispatch(rn_master_step_t* step) {
  rn_master_session_t* session = step->session;
  rn_str_t key;
  RN_RETURN_IF_ERROR(key_of(step, &key));
  rn_mutex_lock(&session->mutex);
  rn_status_t status = RN_OK;
  bool is_new = false;
  rn_master_program_t* program = find_program_locked(session, key);
  bool is_ready = program && program->state == RN_PROGRAM_READY;  // else it has no plan yet
  bool mends = !step->is_mended && (is_ready || !program) &&
               rn_master_is_suspect_locked(session, is_ready ? &program->plan : NULL);
  if (mends) {
    rn_mutex_unlock(&session->mutex);
    step->is_mended = true;
    step->mending.go_on = on_mended;
    rn_master_mend(session, &step->mending);
    return RN_OK;
  }
  if (!program) {
    status = add_program_locked(step, key, &program);
    is_new = rn_ok(status);
  }
  step->program = program;
  if (is_ready && step->is_mended) status = rn_master_silence_locked(session, &program->plan);
  bool waits = rn_ok(status) && program->state != RN_PROGRAM_READY;
  if (waits) {
    step->next = program->waiting;
    program->waiting = step;
  }
  rn_mutex_unlock(&session->mutex);
  if (!rn_ok(status)) return status;
  if (is_new)
    rn_pool_submit(rn_local_master_options(session->master)->env->pool, &program->job);
  else if (!waits)
    rn_master_step_run(step);
  return RN_OK;
}

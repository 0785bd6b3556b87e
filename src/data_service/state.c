// The dispatcher's state: see state.h.
#include "data_service/state.h"

#include "wire/decode.h"
#include "wire/encode.h"

void rn_ds_state_init(rn_ds_state_t* state, rn_allocator_t allocator) {
  *state = (rn_ds_state_t){.allocator = allocator,
                           .next_dataset = 1000,
                           .next_job = 5000,
                           .next_iteration = 2000,
                           .next_client = 3000,
                           .next_task = 4000};
  rn_arena_init(&state->arena, allocator);
}

void rn_ds_state_clear(rn_ds_state_t* state) {
  for (size_t i = 0; i < state->iterations.count; ++i) {
    rn_ds_iteration_t* iteration = state->iterations.items[i];
    for (size_t k = 0; k < iteration->pending.count; ++k)
      rn_vec_free(&iteration->pending.items[k].ready, state->allocator);
    rn_vec_free(&iteration->pending, state->allocator);
    rn_vec_free(&iteration->tasks, state->allocator);
  }
  rn_vec_free(&state->datasets, state->allocator);
  rn_vec_free(&state->workers, state->allocator);
  rn_vec_free(&state->jobs, state->allocator);
  rn_vec_free(&state->iterations, state->allocator);
  rn_vec_free(&state->tasks, state->allocator);
  rn_vec_free(&state->clients, state->allocator);
  rn_arena_clear(&state->arena);
}

// Vectors of things with ids are sorted by them.
#define FIND_BY_ID(vec, wanted)                                              \
  do {                                                                       \
    size_t low = 0, high = (vec)->count;                                     \
    while (low < high) {                                                     \
      size_t middle = low + (high - low) / 2;                                \
      if ((vec)->items[middle]->id < (wanted))                               \
        low = middle + 1;                                                    \
      else                                                                   \
        high = middle;                                                       \
    }                                                                        \
    bool is_there = low < (vec)->count && (vec)->items[low]->id == (wanted); \
    return is_there ? (vec)->items[low] : NULL;                              \
  } while (0)

rn_ds_job_t* rn_ds_find_job(const rn_ds_state_t* state, int64_t id) {
  FIND_BY_ID(&state->jobs, id);
}
rn_ds_iteration_t* rn_ds_find_iteration(const rn_ds_state_t* state, int64_t id) {
  FIND_BY_ID(&state->iterations, id);
}
rn_ds_task_t* rn_ds_find_task(const rn_ds_state_t* state, int64_t id) {
  FIND_BY_ID(&state->tasks, id);
}
rn_ds_client_t* rn_ds_find_client(const rn_ds_state_t* state, int64_t id) {
  FIND_BY_ID(&state->clients, id);
}

rn_ds_dataset_t* rn_ds_find_dataset(const rn_ds_state_t* state, rn_str_t id) {
  for (size_t i = 0; i < state->datasets.count; ++i)
    if (rn_str_eq(state->datasets.items[i]->id, id)) return state->datasets.items[i];
  return NULL;
}

rn_ds_worker_t* rn_ds_find_worker(const rn_ds_state_t* state, rn_str_t address) {
  for (size_t i = 0; i < state->workers.count; ++i)
    if (rn_str_eq(state->workers.items[i]->address, address)) return state->workers.items[i];
  return NULL;
}

rn_ds_job_t* rn_ds_find_job_named(const rn_ds_state_t* state, rn_str_t name) {
  for (size_t i = 0; i < state->jobs.count; ++i)
    if (rn_str_eq(state->jobs.items[i]->name, name)) return state->jobs.items[i];
  return NULL;
}

rn_ds_iteration_t* rn_ds_find_repetition(const rn_ds_state_t* state, const rn_ds_job_t* job,
                                         int64_t repetition) {
  for (size_t i = state->iterations.count; i-- > 0;) {
    rn_ds_iteration_t* each = state->iterations.items[i];
    if (each->job == job && each->repetition == repetition) return each;
  }
  return NULL;
}

static rn_status_t unknown(const char* what) {
  return rn_internal("The change of the dispatcher's state names no known %s", what);
}

// The next id after |id|, which must not go back.
static rn_status_t take_id(int64_t id, int64_t* inout_next) {
  if (id < *inout_next || id == INT64_MAX)
    return rn_internal("The id %lld in the dispatcher's state is not new", (long long)id);
  *inout_next = id + 1;
  return RN_OK;
}

static rn_status_t add_dataset(rn_ds_state_t* state,
                               const rn_pb_data_RegisterDatasetUpdate_t* update) {
  rn_ds_dataset_t* dataset = NULL;
  int64_t number = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&state->arena, &dataset));
  RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, update->dataset_id, &dataset->id));
  dataset->compression_disabled = -1;
  if (update->metadata) {
    dataset->metadata = *update->metadata;
    if (update->metadata->optional_element_spec_case)
      RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, update->metadata->element_spec,
                                      &dataset->metadata.element_spec));
  }
  if (rn_str_to_i64(dataset->id, &number) && number >= state->next_dataset && number < INT64_MAX)
    state->next_dataset = number + 1;
  return rn_vec_push(&state->datasets, state->allocator, dataset);
}

// A copy that belongs to the arena.
static rn_status_t copy_worker(rn_arena_t* arena, const rn_pb_data_RegisterWorkerUpdate_t* from,
                               rn_pb_data_RegisterWorkerUpdate_t** out) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, arena->allocator);
  rn_pb_limits_t limits = {.copy_bytes = true};
  rn_status_t status = rn_pb_encode(&rn_pb_data_RegisterWorkerUpdate_desc, from, NULL, &bytes);
  if (rn_ok(status))
    status = RN_PB_DECODE(data_RegisterWorkerUpdate, rn_strbuf_view(&bytes), &limits, arena, out);
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t add_worker(rn_ds_state_t* state,
                              const rn_pb_data_RegisterWorkerUpdate_t* update) {
  rn_ds_worker_t* worker = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&state->arena, &worker));
  RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, update->worker_address, &worker->address));
  RN_RETURN_IF_ERROR(copy_worker(&state->arena, update, &worker->info));
  return rn_vec_push(&state->workers, state->allocator, worker);
}

static rn_status_t add_job(rn_ds_state_t* state, const rn_pb_data_CreateJobUpdate_t* update) {
  rn_ds_job_t* job = NULL;
  RN_RETURN_IF_ERROR(take_id(update->job_id, &state->next_job));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&state->arena, &job));
  job->id = update->job_id;
  RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, update->job_name, &job->name));
  RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, update->dataset_id, &job->dataset_id));
  if (update->processing_mode_def) job->policy = update->processing_mode_def->sharding_policy;
  if (update->optional_num_consumers_case) job->num_consumers = update->num_consumers;
  job->target_workers = update->target_workers;
  job->has_cache = update->use_cross_trainer_cache;
  return rn_vec_push(&state->jobs, state->allocator, job);
}

static rn_status_t add_iteration(rn_ds_state_t* state,
                                 const rn_pb_data_CreateIterationUpdate_t* update) {
  rn_ds_iteration_t* iteration = NULL;
  rn_ds_job_t* job = rn_ds_find_job(state, update->job_id);
  if (!job) return unknown("job");
  if (update->num_split_providers < 0 || update->num_split_providers > RN_DS_MAX_SOURCES)
    return rn_internal("An iteration has %lld sources of splits",
                       (long long)update->num_split_providers);
  RN_RETURN_IF_ERROR(take_id(update->iteration_id, &state->next_iteration));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&state->arena, &iteration));
  iteration->id = update->iteration_id;
  iteration->job = job;
  iteration->repetition = update->repetition;
  iteration->released_us = -1;
  iteration->split_count = update->num_split_providers;
  size_t count = (size_t)iteration->split_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&state->arena, count, &iteration->repetitions));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&state->arena, count, &iteration->indices));
  return rn_vec_push(&state->iterations, state->allocator, iteration);
}

static rn_status_t add_task(rn_ds_state_t* state, int64_t id, int64_t iteration_id,
                            rn_str_t worker_address, rn_ds_task_t** out) {
  rn_ds_task_t* task = NULL;
  rn_ds_iteration_t* iteration = rn_ds_find_iteration(state, iteration_id);
  rn_ds_worker_t* worker = rn_ds_find_worker(state, worker_address);
  if (!iteration || !worker) return unknown(iteration ? "worker" : "iteration");
  RN_RETURN_IF_ERROR(take_id(id, &state->next_task));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&state->arena, &task));
  *task = (rn_ds_task_t){.id = id, .iteration = iteration, .worker = worker};
  *out = task;
  return rn_vec_push(&state->tasks, state->allocator, task);
}

static rn_status_t add_pending(rn_ds_state_t* state,
                               const rn_pb_data_CreatePendingTaskUpdate_t* update) {
  rn_ds_task_t* task = NULL;
  RN_RETURN_IF_ERROR(
      add_task(state, update->task_id, update->iteration_id, update->worker_address, &task));
  rn_ds_pending_t pending = {.task = task, .target_round = update->starting_round};
  return rn_vec_push(&task->iteration->pending, state->allocator, pending);
}

// The first pending task of the client's iteration: another round, or one consumer more agrees.
static rn_status_t hear_client(rn_ds_state_t* state,
                               const rn_pb_data_ClientHeartbeatUpdate_t* update) {
  rn_ds_client_t* client = rn_ds_find_client(state, update->iteration_client_id);
  if (!client) return unknown("client");
  rn_ds_iteration_t* iteration = client->iteration;
  if (!iteration->pending.count) return RN_OK;
  rn_ds_pending_t* pending = &iteration->pending.items[0];
  if (update->task_rejected) {
    pending->failures++;
    pending->ready.count = 0;
    pending->target_round = update->task_rejected->new_target_round;
  }
  if (!update->task_accepted) return RN_OK;
  RN_RETURN_IF_ERROR(rn_vec_push(&pending->ready, state->allocator, client->id));
  if ((int64_t)pending->ready.count < iteration->job->num_consumers) return RN_OK;
  pending->task->starting_round = pending->target_round;
  RN_RETURN_IF_ERROR(rn_vec_push(&iteration->tasks, state->allocator, pending->task));
  rn_vec_free(&pending->ready, state->allocator);
  iteration->pending.count--;
  memmove(pending, pending + 1, iteration->pending.count * sizeof *pending);
  return RN_OK;
}

static rn_status_t finish_task(rn_ds_state_t* state, int64_t id) {
  rn_ds_task_t* task = rn_ds_find_task(state, id);
  if (!task) return unknown("task");
  task->is_finished = true;
  rn_ds_iteration_t* iteration = task->iteration;
  bool all = true;
  for (size_t i = 0; i < iteration->tasks.count; ++i) all &= iteration->tasks.items[i]->is_finished;
  if (all) iteration->is_finished = true;
  return RN_OK;
}

static rn_status_t remove_task(rn_ds_state_t* state, int64_t id) {
  rn_ds_task_t* task = rn_ds_find_task(state, id);
  if (!task) return unknown("task");
  task->is_removed = true;
  rn_ds_iteration_t* iteration = task->iteration;
  size_t kept = 0;
  for (size_t i = 0; i < iteration->tasks.count; ++i)
    if (iteration->tasks.items[i] != task)
      iteration->tasks.items[kept++] = iteration->tasks.items[i];
  iteration->tasks.count = kept;
  return RN_OK;
}

static rn_status_t collect(rn_ds_state_t* state, int64_t id) {
  rn_ds_iteration_t* iteration = rn_ds_find_iteration(state, id);
  if (!iteration) return unknown("iteration");
  iteration->is_finished = iteration->is_collected = true;
  for (size_t i = 0; i < state->tasks.count; ++i)
    if (state->tasks.items[i]->iteration == iteration) state->tasks.items[i]->is_finished = true;
  return RN_OK;
}

static rn_status_t produce_split(rn_ds_state_t* state,
                                 const rn_pb_data_ProduceSplitUpdate_t* update) {
  rn_ds_iteration_t* iteration = rn_ds_find_iteration(state, update->iteration_id);
  int64_t source = update->split_provider_index;
  if (!iteration || source < 0 || source >= iteration->split_count ||
      update->repetition > RN_DS_MAX_REPETITION)
    return unknown("split");
  if (update->repetition > iteration->repetitions[source]) {
    iteration->repetitions[source] = update->repetition;
    iteration->indices[source] = 0;
  }
  if (update->finished) {
    iteration->repetitions[source]++;
    iteration->indices[source] = 0;
  } else {
    iteration->indices[source]++;
  }
  return RN_OK;
}

static rn_status_t add_client(rn_ds_state_t* state,
                              const rn_pb_data_AcquireIterationClientUpdate_t* update) {
  rn_ds_client_t* client = NULL;
  rn_ds_iteration_t* iteration = rn_ds_find_iteration(state, update->iteration_id);
  if (!iteration) return unknown("iteration");
  RN_RETURN_IF_ERROR(take_id(update->iteration_client_id, &state->next_client));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&state->arena, &client));
  *client = (rn_ds_client_t){.id = update->iteration_client_id, .iteration = iteration};
  iteration->num_clients++;
  return rn_vec_push(&state->clients, state->allocator, client);
}

static rn_status_t release_client(rn_ds_state_t* state,
                                  const rn_pb_data_ReleaseIterationClientUpdate_t* update) {
  rn_ds_client_t* client = rn_ds_find_client(state, update->iteration_client_id);
  if (!client) return unknown("client");
  if (client->is_released) return RN_OK;
  client->is_released = true;
  client->iteration->num_clients--;
  client->iteration->released_us = update->time_micros;
  return RN_OK;
}

rn_status_t rn_ds_apply(rn_ds_state_t* state, const rn_pb_data_Update_t* update) {
  rn_ds_task_t* task = NULL;
  rn_ds_dataset_t* dataset = NULL;
  switch (update->update_type_case) {
    case rn_pb_data_Update_register_dataset_field:
      return add_dataset(state, update->register_dataset);
    case rn_pb_data_Update_register_worker_field:
      return add_worker(state, update->register_worker);
    case rn_pb_data_Update_create_job_field:
      return add_job(state, update->create_job);
    case rn_pb_data_Update_create_iteration_field:
      return add_iteration(state, update->create_iteration);
    case rn_pb_data_Update_create_task_field:
      RN_RETURN_IF_ERROR(add_task(state, update->create_task->task_id,
                                  update->create_task->iteration_id,
                                  update->create_task->worker_address, &task));
      return rn_vec_push(&task->iteration->tasks, state->allocator, task);
    case rn_pb_data_Update_create_pending_task_field:
      return add_pending(state, update->create_pending_task);
    case rn_pb_data_Update_client_heartbeat_field:
      return hear_client(state, update->client_heartbeat);
    case rn_pb_data_Update_finish_task_field:
      return finish_task(state, update->finish_task->task_id);
    case rn_pb_data_Update_remove_task_field:
      return remove_task(state, update->remove_task->task_id);
    case rn_pb_data_Update_garbage_collect_iteration_field:
      return collect(state, update->garbage_collect_iteration->iteration_id);
    case rn_pb_data_Update_produce_split_field:
      return produce_split(state, update->produce_split);
    case rn_pb_data_Update_acquire_iteration_client_field:
      return add_client(state, update->acquire_iteration_client);
    case rn_pb_data_Update_release_iteration_client_field:
      return release_client(state, update->release_iteration_client);
    case rn_pb_data_Update_compression_disabled_at_runtime_field:
      dataset = rn_ds_find_dataset(state, update->compression_disabled_at_runtime->dataset_id);
      if (!dataset) return unknown("dataset");
      dataset->compression_disabled = update->compression_disabled_at_runtime->compression_disabled;
      return RN_OK;
    default:
      return rn_unimplemented(
          "The journal has a change of kind %d, which this dispatcher does not know",
          (int)update->update_type_case);
  }
}

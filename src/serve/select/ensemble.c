// One query on its way through an application: fan-out, deadline, combination. See apps.h.
//
// An ensemble has one part per model that runs. The query is answered by the thread that brings the
// last needed answer, or by the timer, or by a cancellation, whichever comes first; it takes the
// query out of the ensemble under the lock. Parts that end later still add to the averages and to
// the window of served queries. The last part to end frees everything.
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/container.h"
#include "serve/select/apps_internal.h"
#include "serve/select/input.h"

// The reply leaves this much before the objective passes, so that it can still be written.
#define MARGIN_NS (INT64_C(1000000))
#define MARGIN_SHARE 20  // or this part of the objective, if that is less
#define FEEDBACK_SLOS \
  10  // objectives that models have to answer a query of which only the label counts

typedef struct rn_ensemble_t rn_ensemble_t;

typedef struct rn_ensemble_part_t {
  rn_predict_t predict;
  rn_predict_value_t input;
  rn_str_t filter;
  rn_ensemble_t* ensemble;
  int arm;
  bool is_needed;
  double weight;
  rn_answer_t answer;  // guarded by the ensemble's lock, until the query is answered
} rn_ensemble_part_t;

struct rn_ensemble_t {
  rn_apps_t* apps;
  rn_app_t* app;  // Retained
  _Atomic int refs;
  rn_timer_t timer;
  rn_cancel_t cancel;  // of the parts, which may outlive the query
  rn_cancel_entry_t entry;
  rn_cancel_t* outer;  // the query's, where |entry| is; NULL: none
  int64_t id;
  rn_mutex_t mutex;       // guards what follows
  rn_app_query_t* query;  // NULL: answered
  rn_status_t error;      // Owned; the first of a needed part
  rn_selection_t selection;
  uint64_t arrived;
  int waiting;  // needed parts that have not ended
  unsigned marks;
  rn_predict_times_t times;
  int part_count;
  rn_ensemble_part_t parts[];
};

static size_t ensemble_size(int parts) {
  return sizeof(rn_ensemble_t) + (size_t)parts * sizeof(rn_ensemble_part_t);
}

static void release(rn_ensemble_t* ensemble) {
  if (atomic_fetch_sub(&ensemble->refs, 1) > 1) return;
  rn_apps_t* apps = ensemble->apps;
  rn_allocator_t allocator = apps->options.allocator;
  for (int i = 0; i < ensemble->part_count; ++i)
    rn_answer_clear(&ensemble->parts[i].answer, allocator);
  rn_status_free(ensemble->error);
  rn_cancel_destroy(&ensemble->cancel);
  rn_mutex_destroy(&ensemble->mutex);
  rn_app_release(ensemble->app);
  rn_free(allocator, ensemble, ensemble_size(ensemble->part_count));
  rn_mutex_lock(&apps->mutex);
  if (!--apps->running) rn_cond_broadcast(&apps->idle);
  rn_mutex_unlock(&apps->mutex);
}

// The reply.

static void explain(rn_app_query_t* query, const char* text, const char* detail) {
  snprintf(query->explanation, sizeof query->explanation, "%s%s%s", text, *detail ? ": " : "",
           detail);
}

static void count_marks(const rn_ensemble_t* ensemble, unsigned marks) {
  static const char* const names[] = {"cached", "default", "partial"};
  rn_metrics_t* metrics = ensemble->apps->options.metrics;
  for (unsigned i = 0; metrics && i < 3; ++i)
    if (marks >> i & 1)
      rn_series_add(
          rn_metrics_series(metrics, RN_METRIC_MARK_COUNT, ensemble->app->definition->name,
                            rn_str(names[i]), RN_STR("")),
          1);
}

// Combines what has arrived. Parts no longer write to |answer| or |arrived|.
static rn_status_t combine(rn_ensemble_t* ensemble, rn_app_query_t* query) {
  const rn_app_t* app = ensemble->app;
  rn_app_history_t* history = app->history;
  rn_vote_t votes[RN_POLICY_MAX_ARMS];
  int count = 0;
  rn_mutex_lock(&history->mutex);  // for the averages
  for (int i = 0; i < ensemble->part_count; ++i) {
    const rn_ensemble_part_t* part = &ensemble->parts[i];
    if (!part->is_needed) continue;
    const rn_answer_t* average = &history->averages[part->arm].value;
    votes[count] = (rn_vote_t){.weight = part->weight};
    if (part->answer.is_set) votes[count].answer = &part->answer;
    if (average->is_set) votes[count].average = average;
    query->missing += !part->answer.is_set;
    ++count;
  }
  query->asked = count;
  rn_status_t status =
      rn_answers_combine(app->loss, votes, count, ensemble->apps->options.allocator, &query->answer,
                         &query->confidence);
  rn_mutex_unlock(&history->mutex);
  return status;
}

// Sets the default answer, for a reason that |query->explanation| gives.
static rn_status_t use_default(const rn_ensemble_t* ensemble, rn_app_query_t* query) {
  const rn_app_t* app = ensemble->app;
  if (app->definition->is_strict)
    return rn_deadline_exceeded("Application '%.*s' has no answer: %s",
                                RN_STR_ARGS(app->definition->name), query->explanation);
  rn_answer_clear(&query->answer, query->allocator);
  query->marks = RN_MARK_DEFAULT;
  return rn_answer_copy(&app->default_answer, query->allocator, &query->answer);
}

static rn_status_t make_answer(rn_ensemble_t* ensemble, rn_app_query_t* query) {
  const rn_app_t* app = ensemble->app;
  RN_RETURN_IF_ERROR(combine(ensemble, query));
  if (!query->answer.is_set) {
    // An input that no model takes is the caller's mistake.
    if (rn_status_code(ensemble->error) == RN_CODE_INVALID_ARGUMENT)
      return rn_status_copy(ensemble->error);
    if (!query->asked)
      explain(query, "No model is linked", "");
    else if (!ensemble->error || rn_status_code(ensemble->error) == RN_CODE_DEADLINE_EXCEEDED)
      explain(query, "No model answered within the latency objective", "");
    else
      explain(query, "No model answered", rn_status_message(ensemble->error));
    return use_default(ensemble, query);
  }
  if (query->confidence < app->definition->confidence_threshold) {
    char detail[64];
    snprintf(detail, sizeof detail, "%.3f of %.3f", query->confidence,
             app->definition->confidence_threshold);
    explain(query, "The confidence is below the threshold", detail);
    return use_default(ensemble, query);
  }
  query->marks = ensemble->marks | (query->missing ? RN_MARK_PARTIAL : 0);
  return RN_OK;
}

static void remember(rn_ensemble_t* ensemble, const rn_app_query_t* query) {
  if (!ensemble->selection.run) return;
  rn_served_query_t served = {
      .id = ensemble->id,
      .hash = rn_served_hash(ensemble->apps->served, ensemble->app->definition->name, query->user,
                             &query->input),
      .app = ensemble->app->definition->name,
      .user = query->user,
      .selection = ensemble->selection,
      .arrived = ensemble->arrived};
  for (int i = 0; i < ensemble->part_count; ++i)
    served.answers[ensemble->parts[i].arm] = ensemble->parts[i].answer;
  rn_served_put(ensemble->apps->served, &served);
  rn_app_share(ensemble->apps, &served);
}

// Learns from the answers of all models: their losses are all known.
static void learn(rn_ensemble_t* ensemble, const rn_app_query_t* query) {
  rn_observation_t seen = {.served = -1, .probability = 1, .seen = ensemble->arrived};
  for (int i = 0; i < ensemble->part_count; ++i) {
    const rn_ensemble_part_t* part = &ensemble->parts[i];
    if (part->answer.is_set)
      seen.loss[part->arm] =
          (float)rn_answer_loss(ensemble->app->loss, query->label, &part->answer);
  }
  if (seen.seen) rn_app_observe(ensemble->apps, ensemble->app, query->user, &seen);
}

// Answers |query|, which the caller took out of the ensemble. |status|, taken: an error instead.
static void answer(rn_ensemble_t* ensemble, rn_app_query_t* query, rn_status_t status) {
  query->id = ensemble->id;
  query->times = ensemble->times;
  query->times.begun_ns = query->begun_ns;
  if (rn_ok(status) && query->label) {
    learn(ensemble, query);
    if (!ensemble->arrived)
      status = ensemble->error ? rn_status_copy(ensemble->error)
                               : rn_deadline_exceeded("No model answered");
  } else if (rn_ok(status)) {
    status = make_answer(ensemble, query);
    remember(ensemble, query);
    if (rn_ok(status)) count_marks(ensemble, query->marks);
  }
  rn_tensor_clear(&query->input);
  query->done(query, status);
}

// Takes the query, once.
static rn_app_query_t* take_locked(rn_ensemble_t* ensemble) {
  rn_app_query_t* query = ensemble->query;
  ensemble->query = NULL;
  return query;
}

// Ends the ways in which the query could be answered otherwise. No lock is held.
static void close_ways(rn_ensemble_t* ensemble, bool from_timer, bool from_cancel) {
  if (!from_timer) {
    rn_timers_t* timers = &ensemble->apps->options.timers;
    timers->clear(timers->self, &ensemble->timer);
  }
  if (!from_cancel && ensemble->outer) rn_cancel_remove(ensemble->outer, &ensemble->entry);
}

static void on_time(rn_timer_t* timer) {
  rn_ensemble_t* ensemble = RN_CONTAINER_OF(timer, rn_ensemble_t, timer);
  rn_mutex_lock(&ensemble->mutex);
  rn_app_query_t* query = take_locked(ensemble);
  // The parts that still run may end before |answer| does, and free all but our reference.
  if (query) atomic_fetch_add(&ensemble->refs, 1);
  rn_mutex_unlock(&ensemble->mutex);
  if (!query) return;
  close_ways(ensemble, true, false);
  answer(ensemble, query, RN_OK);
  release(ensemble);
}

static void on_cancel(rn_cancel_entry_t* entry) {
  rn_ensemble_t* ensemble = RN_CONTAINER_OF(entry, rn_ensemble_t, entry);
  rn_mutex_lock(&ensemble->mutex);
  rn_app_query_t* query = take_locked(ensemble);
  if (query) atomic_fetch_add(&ensemble->refs, 1);
  rn_mutex_unlock(&ensemble->mutex);
  if (!query) return;
  close_ways(ensemble, false, true);
  rn_cancel(&ensemble->cancel);
  answer(ensemble, query, rn_cancelled("The client is gone"));
  release(ensemble);
}

// Parts.

// Called once per part, with its answer if |status|, taken, is OK.
static void part_ended(rn_ensemble_part_t* part, rn_answer_t* found, rn_status_t status) {
  rn_ensemble_t* ensemble = part->ensemble;
  rn_apps_t* apps = ensemble->apps;
  rn_app_history_t* history = ensemble->app->history;
  if (found->is_set) {
    rn_mutex_lock(&history->mutex);
    rn_average_add(&history->averages[part->arm], ensemble->app->loss, found, history->allocator);
    rn_mutex_unlock(&history->mutex);
  }
  rn_app_query_t* query = NULL;
  rn_mutex_lock(&ensemble->mutex);
  bool is_late = !ensemble->query;
  if (!is_late) {
    part->answer = *found;
    if (found->is_set) ensemble->arrived |= UINT64_C(1) << part->arm;
    if (part->is_needed && !rn_ok(status)) {
      ensemble->error = rn_status_join(ensemble->error, status);
      status = RN_OK;
    }
    if (part->is_needed && !--ensemble->waiting) query = take_locked(ensemble);
  }
  rn_mutex_unlock(&ensemble->mutex);
  rn_status_free(status);
  if (is_late && found->is_set) {
    rn_served_add(apps->served, ensemble->id, part->arm, found);
    rn_app_share_late(apps, ensemble->app->definition->name, ensemble->id, part->arm, found);
  }
  if (is_late) rn_answer_clear(found, apps->options.allocator);
  if (query) {
    close_ways(ensemble, false, false);
    answer(ensemble, query, RN_OK);
  }
  release(ensemble);
}

static void part_done(rn_predict_t* predict, rn_status_t status) {
  rn_ensemble_part_t* part = RN_CONTAINER_OF(predict, rn_ensemble_part_t, predict);
  rn_ensemble_t* ensemble = part->ensemble;
  rn_answer_t found = {0};
  if (rn_ok(status)) {
    if (predict->output_count == 1)
      status = rn_answer_of_tensor(&predict->outputs[0].value, ensemble->app->loss,
                                   ensemble->apps->options.allocator, &found);
    else
      status = rn_internal("A model gave %d outputs instead of one", predict->output_count);
  }
  // A model that returns what no application can use is not the caller's mistake.
  if (!rn_ok(status) && predict->output_count) {
    rn_status_t other = rn_internal("%s", rn_status_message(status));
    rn_status_free(status);
    status = other;
  }
  rn_mutex_lock(&ensemble->mutex);
  if (ensemble->query && part->is_needed) {
    if (predict->times.queue_ns + predict->times.run_ns >=
        ensemble->times.queue_ns + ensemble->times.run_ns)
      ensemble->times = predict->times;
    ensemble->marks |= predict->marks & RN_MARK_CACHED;
  }
  rn_mutex_unlock(&ensemble->mutex);
  rn_predict_clear(predict);
  part_ended(part, &found, status);
}

static rn_status_t prepare(rn_ensemble_part_t* part, const rn_app_query_t* query,
                           rn_version_t* version) {
  const rn_pb_runnel_ApplicationModel_t* model =
      &part->ensemble->app->definition->model.items[part->arm];
  const rn_backend_t* backend = rn_version_backend(version);
  int index = rn_backend_signature(backend, model->signature);
  if (index < 0)
    return rn_failed_precondition("Model '%.*s' has no signature '%.*s'", RN_STR_ARGS(model->name),
                                  RN_STR_ARGS(model->signature));
  const rn_serve_signature_t* signature = &backend->signatures[index];
  if (signature->input_count != 1 || (!model->output.size && signature->output_count != 1))
    return rn_failed_precondition(
        "Model '%.*s' has %d inputs and %d outputs; an application needs one input, and a named "
        "output if there are several",
        RN_STR_ARGS(model->name), signature->input_count, signature->output_count);
  part->filter = model->output.size ? model->output : signature->outputs[0].name;
  part->input.name = signature->inputs[0].name;
  part->predict.filter = &part->filter;
  part->predict.filter_count = 1;
  part->predict.signature = model->signature;
  return rn_app_input_fit(&query->input, &signature->inputs[0],
                          part->ensemble->apps->options.allocator, &part->input.value);
}

static void start_part(rn_ensemble_part_t* part, const rn_app_query_t* query, int64_t deadline_ns) {
  rn_ensemble_t* ensemble = part->ensemble;
  rn_apps_t* apps = ensemble->apps;
  const rn_pb_runnel_ApplicationModel_t* model = &ensemble->app->definition->model.items[part->arm];
  int64_t number = query->version ? query->version : model->version;
  if (!number) number = rn_apps_version(apps, model->name);
  rn_model_spec_t spec = {.name = model->name, .version = number ? number : -1};
  rn_version_t* version = NULL;
  rn_status_t status = apps->options.find(apps->options.self, &spec, &version);
  part->predict.inputs = &part->input;
  part->predict.input_count = 1;
  part->predict.deadline_ns = deadline_ns;
  part->predict.cancel = &ensemble->cancel;
  part->predict.done = part_done;
  part->predict.allocator = apps->options.allocator;
  part->predict.times.begun_ns = query->begun_ns;
  if (rn_ok(status)) status = prepare(part, query, version);
  if (rn_ok(status)) {
    rn_version_predict(version, &part->predict);
  } else {
    rn_answer_t none = {0};
    part_ended(part, &none, status);
  }
  rn_version_release(version);
}

static rn_status_t create(rn_apps_t* apps, rn_app_t* app, rn_app_query_t* query,
                          const rn_selection_t* selection, const double* weights,
                          rn_ensemble_t** out) {
  rn_ensemble_t* ensemble = NULL;
  int parts = __builtin_popcountll(selection->run);
  RN_RETURN_IF_ERROR(
      rn_alloc_zeroed(apps->options.allocator, ensemble_size(parts), (void**)&ensemble));
  ensemble->apps = apps;
  ensemble->app = app;
  rn_app_retain(app);
  atomic_init(&ensemble->refs, parts + 1);
  ensemble->timer.fn = on_time;
  ensemble->entry.fn = on_cancel;
  rn_cancel_init(&ensemble->cancel);
  rn_mutex_init(&ensemble->mutex);
  ensemble->id = rn_served_next_id(apps->served);
  ensemble->query = query;
  ensemble->selection = *selection;
  ensemble->waiting = __builtin_popcountll(selection->needed);
  ensemble->part_count = parts;
  uint64_t left = selection->run;
  for (int i = 0; i < parts; ++i, left &= left - 1) {
    rn_ensemble_part_t* part = &ensemble->parts[i];
    part->ensemble = ensemble;
    part->arm = __builtin_ctzll(left);
    part->is_needed = selection->needed >> part->arm & 1;
    part->weight = weights[part->arm];
  }
  rn_mutex_lock(&apps->mutex);
  ++apps->running;
  rn_mutex_unlock(&apps->mutex);
  *out = ensemble;
  return RN_OK;
}

// Sets the timer and the cancellation. Their functions wait for the lock until both are set.
static rn_status_t open_ways(rn_ensemble_t* ensemble, int64_t deadline_ns) {
  rn_timers_t* timers = &ensemble->apps->options.timers;
  int64_t margin = ensemble->app->slo_ns / MARGIN_SHARE;
  if (margin > MARGIN_NS) margin = MARGIN_NS;
  rn_mutex_lock(&ensemble->mutex);
  rn_cancel_t* outer = ensemble->query->cancel;
  rn_status_t status = timers->set(timers->self, &ensemble->timer, deadline_ns - margin);
  if (rn_ok(status) && outer) {
    if (rn_cancel_add(outer, &ensemble->entry))
      ensemble->outer = outer;
    else
      status = rn_cancelled("The client is gone");
  }
  rn_mutex_unlock(&ensemble->mutex);
  return status;
}

static void select_arms(rn_apps_t* apps, rn_app_t* app, const rn_app_query_t* query,
                        rn_selection_t* out, double* weights) {
  *out = (rn_selection_t){.served = -1};
  if (!app->view.active) return;
  *out = (rn_selection_t){app->view.active, app->view.active, -1, 1};
  if (query->label) return;  // feedback: every model, and nothing is combined
  float state[RN_POLICY_MAX_FLOATS];
  rn_app_read_state(apps, app, query->user, state);
  uint64_t random = atomic_fetch_add(&apps->draw, UINT64_C(0x632be59bd9b4e019));
  rn_policy_select(app->policy, &app->view, state, &random, out);
  if (out->served < 0)
    app->policy->shares(&app->view, state, weights);
  else
    weights[out->served] = 1;
}

static void start(rn_apps_t* apps, rn_app_t* app, rn_app_query_t* query) {
  rn_selection_t selection;
  double weights[RN_POLICY_MAX_ARMS] = {0};
  select_arms(apps, app, query, &selection, weights);
  rn_ensemble_t* ensemble = NULL;
  rn_status_t status = create(apps, app, query, &selection, weights, &ensemble);
  if (!rn_ok(status)) {
    rn_tensor_clear(&query->input);
    query->done(query, status);
    return;
  }
  // Feedback need not hurry.
  int64_t deadline = query->begun_ns + (query->label ? FEEDBACK_SLOS : 1) * app->slo_ns;
  if (query->deadline_ns && query->deadline_ns < deadline) deadline = query->deadline_ns;
  // |query| may be answered, and gone, while parts are still being started.
  rn_app_query_t request = *query;
  status = rn_tensor_share(&query->input, &request.input);
  if (!rn_ok(status)) request.input = (rn_tensor_t){0};
  bool is_open = rn_ok(status) && selection.run;
  if (is_open) status = open_ways(ensemble, deadline);
  if (rn_ok(status) && selection.run) {
    for (int i = 0; i < ensemble->part_count; ++i)
      start_part(&ensemble->parts[i], &request, deadline);
  } else {
    rn_mutex_lock(&ensemble->mutex);
    query = take_locked(ensemble);
    rn_mutex_unlock(&ensemble->mutex);
    if (query && is_open) close_ways(ensemble, false, false);
    if (query)
      answer(ensemble, query, status);
    else
      rn_status_free(status);
    atomic_fetch_sub(&ensemble->refs, ensemble->part_count);  // no part was started
  }
  rn_tensor_clear(&request.input);
  release(ensemble);
}

void rn_app_predict(rn_apps_t* apps, rn_app_t* app, rn_app_query_t* query) {
  query->allocator = apps->options.allocator;
  if (query->label) {
    // The query itself may be in the window: then its answers are known, and which one was served.
    uint64_t hash = rn_served_hash(apps->served, app->definition->name, query->user, &query->input);
    int64_t id = rn_served_find(apps->served, hash);
    if (id && rn_app_feedback(apps, app, id, query->label) == RN_SERVED_TAKEN) {
      query->id = id;
      rn_tensor_clear(&query->input);
      query->done(query, RN_OK);
      return;
    }
  }
  start(apps, app, query);
}

void rn_app_query_clear(rn_app_query_t* query) {
  rn_answer_clear(&query->answer, query->allocator);
  rn_tensor_clear(&query->input);
}

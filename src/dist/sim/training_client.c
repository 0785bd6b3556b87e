// Simulated clients: one call after the other, each continued by its response. See training.h.
#include "dist/sim/training_client.h"

#include <stdio.h>

#include "base/container.h"

#define SECOND INT64_C(1000000000)
#define PAUSE_NS (SECOND / 20)   // after an error
#define REPEAT_NS (SECOND / 50)  // before a call is repeated
#define REPEATS 3

static void act(rn_sim_client_t* client);

static void later(rn_sim_client_t* client, int64_t ns) {
  if (client->training->is_over) return;
  rn_sim_t* sim = client->training->sim;
  rn_timers_t timers = rn_sim_node_timers(sim, client->node);
  rn_status_t status = timers.set(timers.self, &client->timer, rn_sim_now(sim) + ns);
  if (!rn_ok(status)) rn_training_blame(client->training, "%s", rn_status_message(status));
  rn_status_free(status);
}

static void go(rn_sim_client_t* client, rn_client_act_t next) {
  client->act = next;
  client->repeats = 0;
  act(client);
}

// The first action of a client with a session.
static rn_client_act_t first_act(const rn_sim_client_t* client) {
  if (client->is_ending) return client->is_auditor ? RN_ACT_READ : RN_ACT_CLOSE;
  if (client->is_chief) return RN_ACT_PROBE;
  return client->training->options.is_sync ? RN_ACT_GET : RN_ACT_READ;
}

// The outcome of a gradient that was added to the variables.
static void count_added(rn_sim_client_t* client, bool is_confirmed) {
  rn_training_t* training = client->training;
  bool is_known = is_confirmed;
  for (int s = 0; s < training->options.servers; ++s) {
    // The outcome of a step that began before the server did is unknown.
    bool is_newer = client->begun_ns > training->started_ns[s];
    is_known = is_known && is_newer;
    if (is_confirmed && is_newer)
      training->confirmed[s * training->options.workers + client->index]++;
  }
  if (is_known) return;
  rn_status_t status =
      rn_vec_push(&client->unknown, training->allocator, rn_sim_now(training->sim));
  if (!rn_ok(status)) rn_training_blame(training, "%s", rn_status_message(status));
  rn_status_free(status);
}

static void clear_values(rn_sim_client_t* client) {
  for (size_t i = 0; i < client->run.fetch_count; ++i) rn_tensor_clear(&client->values[i]);
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&client->feeds[i].value);
}

// A step has failed.
static void on_failed(rn_sim_client_t* client, rn_status_t status) {
  rn_training_t* training = client->training;
  training->stats.failures++;
  if (client->act == RN_ACT_ADD) count_added(client, false);
  bool was_init = client->act == RN_ACT_INIT;
  client->tokens_before = -1;
  rn_code_t code = rn_status_code(status);
  bool is_lost = code == RN_CODE_ABORTED && strstr(rn_status_message(status), "is not found");
  bool is_master = strstr(rn_status_message(status), "Session") == rn_status_message(status);
  // Some accumulators may have been emptied for an update, so the next step is beyond all of them.
  if (client->is_chief) client->step++;
  clear_values(client);
  if (is_lost && is_master) client->session[0] = '\0';
  client->act = client->session[0] ? first_act(client) : RN_ACT_OPEN;
  client->repeats = 0;
  // A step that was given up may continue for the grace period: one that initializes variables must
  // have ended first.
  int64_t lease = training->options.lease_ns ? training->options.lease_ns : RN_LEASE_NS;
  later(client, was_init ? 3 * lease : PAUSE_NS);
}

static void on_taken(rn_sim_client_t* client) {
  rn_training_t* training = client->training;
  if (!training->options.trusts) rn_training_check_taken(training, client->values, client->step);
  rn_status_t status =
      rn_vec_push(&training->updates, training->allocator, rn_sim_now(training->sim));
  if (!rn_ok(status)) rn_training_blame(training, "%s", rn_status_message(status));
  rn_status_free(status);
  training->stats.updates++;
  client->step++;
  client->rounds++;
}

// Both return whether any server is among the missing ones.
static bool on_probed(rn_sim_client_t* client) {
  bool any = false;
  for (int s = 0; s < client->training->options.servers; ++s)
    any |= client->missing[s] = !*RN_DATA(&client->values[s], bool);
  return any;
}

static bool on_counted(rn_sim_client_t* client) {
  bool any = false;
  for (int s = 0; s < client->training->options.servers; ++s)
    any |= client->missing[s] = *RN_DATA(&client->values[s], int32_t) != 0;
  return any;
}

// A step succeeded: the next action.
static rn_client_act_t on_went_well(rn_sim_client_t* client) {
  rn_training_t* training = client->training;
  bool is_sync = training->options.is_sync;
  switch (client->act) {
    case RN_ACT_PROBE:
      if (on_probed(client)) return RN_ACT_INIT;
      return is_sync ? RN_ACT_STEP : RN_ACT_REST;
    case RN_ACT_INIT:
      return is_sync ? RN_ACT_STEP : RN_ACT_REST;
    case RN_ACT_STEP:
      return RN_ACT_COUNT;
    case RN_ACT_COUNT:
      return on_counted(client) ? RN_ACT_DRAIN : RN_ACT_PUT;
    case RN_ACT_DRAIN:
      client->step++;  // as those have that were drained
      return RN_ACT_STEP_AGAIN;
    case RN_ACT_STEP_AGAIN:
      return RN_ACT_PUT;
    case RN_ACT_PUT:
      return client->is_auditor ? RN_ACT_GET : RN_ACT_TAKE;
    case RN_ACT_TAKE:
      on_taken(client);
      return RN_ACT_PUT;
    case RN_ACT_GET:
      if (client->is_auditor) return RN_ACT_SIZE;
      client->step = *RN_DATA(&client->values[0], int64_t);
      return RN_ACT_READ;
    case RN_ACT_READ:
      if (client->is_auditor) {
        if (!is_sync) rn_training_check_sums(training, client->values);
        return RN_ACT_SIZE;
      }
      return RN_ACT_COMPUTE;
    case RN_ACT_SIZE: {
      int64_t tokens = *RN_DATA(&client->values[0], int32_t);
      if (client->tokens_before < 0) {
        client->tokens_before = tokens;
        return RN_ACT_PUT;
      }
      if (tokens != client->tokens_before)
        rn_training_blame(training, "%lld tokens were there, one came, one went, %lld are",
                          (long long)client->tokens_before, (long long)tokens);
      return RN_ACT_CLOSE;
    }
    case RN_ACT_PUSH:
    case RN_ACT_ADD:
      if (client->act == RN_ACT_ADD) count_added(client, true);
      client->rounds++;
      return is_sync ? RN_ACT_GET : RN_ACT_READ;
    default:
      return first_act(client);
  }
}

static void on_step(rn_call_t* call, rn_status_t status) {
  rn_sim_client_t* client = call->owner;
  rn_training_t* training = client->training;
  if (training->options.is_loud)
    printf("%12.6f s: client %d, act %d since %.6f, call %llx: %s\n",
           (double)rn_sim_now(training->sim) * 1e-9, client->index, (int)client->act,
           (double)client->started_ns * 1e-9, (unsigned long long)client->request,
           rn_ok(status) ? "OK" : rn_status_message(status));
  client->is_busy = false;
  training->stats.steps++;
  rn_strbuf_clear(&client->run.metadata);
  if (rn_ok(status)) {
    rn_client_act_t next = on_went_well(client);
    clear_values(client);
    go(client, client->is_ending && !client->is_auditor ? RN_ACT_CLOSE : next);
    return;
  }
  bool is_repeated = rn_status_code(status) == RN_CODE_UNAVAILABLE && client->repeats < REPEATS &&
                     (!client->is_ending || client->is_auditor);
  if (is_repeated) {
    client->repeats++;
    training->stats.repeated++;
    clear_values(client);
    later(client, REPEAT_NS);
  } else {
    on_failed(client, status);
  }
  rn_status_free(status);
}

static void on_opened(rn_call_t* call, rn_status_t status) {
  rn_sim_client_t* client = call->owner;
  client->is_busy = false;
  if (rn_ok(status)) {
    client->training->stats.sessions++;
    memcpy(client->session, client->create.session, sizeof client->session);
    go(client, first_act(client));
  } else if (client->is_ending && !client->is_auditor) {
    client->act = RN_ACT_GONE;
  } else {
    later(client, PAUSE_NS);
  }
  rn_status_free(status);
}

static void on_closed(rn_call_t* call, rn_status_t status) {
  rn_sim_client_t* client = call->owner;
  client->is_busy = false;
  if (rn_status_code(status) == RN_CODE_UNAVAILABLE)
    later(client, PAUSE_NS);  // try again
  else
    client->act = RN_ACT_GONE;
  rn_status_free(status);
}

static rn_call_t call_of(rn_sim_client_t* client, void (*done)(rn_call_t*, rn_status_t)) {
  client->is_busy = true;
  client->started_ns = rn_sim_now(client->training->sim);
  return (rn_call_t){
      .done = done, .owner = client, .deadline_ns = INT64_MAX, .cancel = &client->cancel};
}

static void open_session(rn_sim_client_t* client) {
  rn_training_t* training = client->training;
  rn_cancel_reset(&client->cancel);
  client->create = (rn_create_session_t){.call = call_of(client, on_opened),
                                         .graph_def = rn_strbuf_view(&training->graph),
                                         .config = client->config};
  client->create.call.deadline_ns = client->started_ns + 20 * SECOND;
  rn_master_t* master = rn_sim_master(training->sim, client->node, client->master);
  master->vtable->create_session(master, &client->create);
}

static void close_session(rn_sim_client_t* client) {
  client->close =
      (rn_close_session_t){.call = call_of(client, on_closed), .session = rn_str(client->session)};
  client->close.call.cancel = NULL;
  rn_master_t* master = rn_sim_master(client->training->sim, client->node, client->master);
  master->vtable->close_session(master, &client->close);
}

// The names of |what| on the servers that |which| marks, or on every server if it is NULL.
static size_t name_on(rn_sim_client_t* client, rn_training_name_t what, const bool* which,
                      rn_str_t* out) {
  const rn_training_t* training = client->training;
  int servers = training->options.servers;
  size_t count = 0;
  for (int s = 0; s < servers; ++s)
    if (!which || which[s]) out[count++] = training->names[(int)what * servers + s];
  return count;
}

static rn_status_t feed_number(rn_sim_client_t* client, const char* name, int64_t value,
                               int64_t count, rn_named_tensor_t* out) {
  int64_t dims[] = {count};
  rn_shape_t shape = count ? (rn_shape_t){1, dims} : RN_SHAPE_SCALAR;
  out->name = rn_str(name);
  RN_RETURN_IF_ERROR(rn_tensor_create(client->training->allocator, RN_INT64, shape, &out->value));
  for (int64_t i = 0; i < (count ? count : 1); ++i) RN_DATA(&out->value, int64_t)[i] = value;
  return RN_OK;
}

// A gradient that encodes its worker, its number and its step.
static rn_status_t feed_gradient(rn_sim_client_t* client, rn_named_tensor_t* out) {
  rn_training_t* training = client->training;
  int64_t dims[] = {training->length};
  out->name = RN_STR("gradient:0");
  RN_RETURN_IF_ERROR(
      rn_tensor_create(training->allocator, RN_FLOAT, (rn_shape_t){1, dims}, &out->value));
  float* data = RN_DATA(&out->value, float);
  memset(data, 0, (size_t)training->length * sizeof *data);
  if (training->options.trusts) return RN_OK;
  data[client->index * RN_TRAINING_SLOTS + client->pushes % RN_TRAINING_SLOTS] = 1;
  data[training->options.workers * RN_TRAINING_SLOTS] = (float)client->step;
  return RN_OK;
}

static rn_status_t prepare(rn_sim_client_t* client, rn_run_step_t* run) {
  const rn_training_options_t* options = &client->training->options;
  static const rn_str_t get = RN_STR("get:0"), size = RN_STR("size:0"), put = RN_STR("put");
  switch (client->act) {
    case RN_ACT_PROBE:
      run->fetch_count = name_on(client, RN_NAME_READY, NULL, client->fetches);
      return RN_OK;
    case RN_ACT_INIT:
      run->target_count = name_on(client, RN_NAME_INIT, client->missing, client->targets);
      return RN_OK;
    case RN_ACT_COUNT:
      run->fetch_count = name_on(client, RN_NAME_COUNT_OF, NULL, client->fetches);
      return RN_OK;
    case RN_ACT_DRAIN:
      run->target_count = name_on(client, RN_NAME_DRAIN, client->missing, client->targets);
      run->call.deadline_ns =
          client->started_ns + client->training->options.wait_ns;  // it may have been restarted
      return RN_OK;
    case RN_ACT_STEP:
    case RN_ACT_STEP_AGAIN:
      run->target_count = name_on(client, RN_NAME_STEP, NULL, client->targets);
      run->feed_count = 1;
      return feed_number(client, "stamp:0", client->step, 0, &client->feeds[0]);
    case RN_ACT_PUT:
      client->targets[0] = put;
      run->target_count = 1;
      run->feed_count = 1;
      return feed_number(client, "tokens:0", client->step,
                         client->is_auditor ? 1 : options->workers, &client->feeds[0]);
    case RN_ACT_TAKE:
      if (!options->trusts) run->fetch_count = name_on(client, RN_NAME_TAKE, NULL, client->fetches);
      run->target_count = name_on(client, RN_NAME_APPLY, NULL, client->targets);
      run->call.deadline_ns = client->started_ns + client->training->options.wait_ns;
      return RN_OK;
    case RN_ACT_GET:
      client->fetches[0] = get;
      run->fetch_count = 1;
      run->call.deadline_ns = client->started_ns + client->training->options.wait_ns;
      return RN_OK;
    case RN_ACT_SIZE:
      client->fetches[0] = size;
      run->fetch_count = 1;
      return RN_OK;
    case RN_ACT_READ:
      run->fetch_count = name_on(client, RN_NAME_READ, NULL, client->fetches);
      return RN_OK;
    case RN_ACT_PUSH:
      run->target_count = name_on(client, RN_NAME_PUSH, NULL, client->targets);
      run->feed_count = 2;
      RN_RETURN_IF_ERROR(feed_number(client, "stamp:0", client->step, 0, &client->feeds[1]));
      return feed_gradient(client, &client->feeds[0]);
    default:
      run->target_count = name_on(client, RN_NAME_ADD, NULL, client->targets);
      run->feed_count = 1;
      return feed_gradient(client, &client->feeds[0]);
  }
}

static void run_step(rn_sim_client_t* client) {
  rn_training_t* training = client->training;
  rn_cancel_reset(&client->cancel);
  if (!client->repeats) {
    client->request = (int64_t)(rn_sim_random(training->sim) >> 1 | 1);
    if (client->act == RN_ACT_PUSH || client->act == RN_ACT_ADD) client->pushes++;
  }
  client->run = (rn_run_step_t){.call = call_of(client, on_step),
                                .session = rn_str(client->session),
                                .request = client->request,
                                .feeds = client->feeds,
                                .fetch_names = client->fetches,
                                .targets = client->targets,
                                .fetches = client->values};
  if (!client->repeats) client->begun_ns = client->started_ns;
  rn_strbuf_init(&client->run.metadata, training->allocator);
  rn_status_t status = prepare(client, &client->run);
  if (!rn_ok(status)) {
    rn_call_done(&client->run.call, status);
    return;
  }
  rn_master_t* master = rn_sim_master(training->sim, client->node, client->master);
  master->vtable->run_step(master, &client->run);
}

static void act(rn_sim_client_t* client) {
  if (client->training->is_over) return;
  const rn_training_options_t* options = &client->training->options;
  if (client->is_ending && !client->is_auditor && client->act != RN_ACT_CLOSE) {
    if (client->act == RN_ACT_ADD && client->repeats) count_added(client, false);
    if (!client->session[0]) client->act = RN_ACT_GONE;
    if (client->act != RN_ACT_GONE) client->act = RN_ACT_CLOSE;
  }
  switch (client->act) {
    case RN_ACT_OPEN:
      open_session(client);
      break;
    case RN_ACT_CLOSE:
      close_session(client);
      break;
    case RN_ACT_GONE:
      break;
    case RN_ACT_REST:
      client->act = RN_ACT_PROBE;
      later(client, SECOND / 2);
      break;
    case RN_ACT_COMPUTE:
      client->act = options->is_sync ? RN_ACT_PUSH : RN_ACT_ADD;
      later(client, options->compute_ns ? options->compute_ns(options->compute_self,
                                                              client->training->sim, client->index)
                                        : SECOND / 100);
      break;
    default:
      run_step(client);
  }
}

static void on_timer(rn_timer_t* timer) {
  rn_sim_client_t* client = RN_CONTAINER_OF(timer, rn_sim_client_t, timer);
  if (!client->is_busy) act(client);
}

void rn_sim_client_start(rn_sim_client_t* client) {
  client->timer.fn = on_timer;
  client->tokens_before = -1;
  client->act = RN_ACT_OPEN;
  act(client);
}

void rn_sim_client_forget(rn_sim_client_t* client) {
  if (client->act == RN_ACT_GONE) return;
  // The crash ended its calls; this ends its timers.
  client->session[0] = '\0';
  if (client->is_busy) return;
  if (client->act == RN_ACT_ADD && client->repeats) count_added(client, false);
  client->act = RN_ACT_OPEN;
  client->repeats = 0;
  later(client, PAUSE_NS);
}

void rn_sim_client_end(rn_sim_client_t* client) {
  client->is_ending = true;
  rn_cancel(&client->cancel);
}

// serve_batching [SECONDS [ROUNDS]]: batches, overload and the cache, with real threads and the
// real clock. The models are fakes that sleep as long as those of Clipper's figure 4 would compute.
//
// Requests arrive by a Poisson process, whatever becomes of those before; latency counts from when
// a request should have been sent.
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/container.h"
#include "net/loop.h"
#include "serve/model/version.h"

#define OBJECTIVE_NS INT64_C(20000000)
#define MAX_OUTSTANDING 65536
#define HISTOGRAM 4096
#define SLEEP_ERROR_NS 70000  // the rest of a model's time is spun

static void check(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "serve_batching: %s\n", rn_status_message(status));
  exit(1);
}

static int64_t now_ns(void) {
  const rn_env_t* env = rn_env_system();
  return env->now_ns(env->self);
}

// Of this thread, which other processes do not slow down.
static int64_t cpu_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// The model: one signature, y = x.
typedef struct sleeper_t {
  rn_backend_t base;  // first
  double fixed_us, row_us;
} sleeper_t;

static const int64_t dims[] = {-1, -1};
static const rn_serve_port_t in_port = {
    .name = RN_STR("x"), .tensor = RN_STR("x:0"), .dtype = RN_FLOAT, .shape = {2, dims}};
static const rn_serve_port_t out_port = {
    .name = RN_STR("y"), .tensor = RN_STR("y:0"), .dtype = RN_FLOAT, .shape = {2, dims}};
static const rn_serve_signature_t signature = {.name = RN_STR("serving_default"),
                                               .method = RN_STR("tensorflow/serving/predict"),
                                               .inputs = &in_port,
                                               .outputs = &out_port,
                                               .input_count = 1,
                                               .output_count = 1,
                                               .is_batched = true,
                                               .is_pure = true};

static void sleeper_run(rn_backend_t* backend, rn_backend_run_t* run) {
  const sleeper_t* model = (const sleeper_t*)backend;
  double us = model->fixed_us + model->row_us * (double)rn_tensor_dim(&run->inputs[0], 0);
  int64_t until = us > 0 ? now_ns() + (int64_t)(us * 1000) : 0;
  if (us * 1000 > SLEEP_ERROR_NS) {
    int64_t at = until - SLEEP_ERROR_NS;
    struct timespec time = {at / 1000000000, at % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
  }
  while (until && now_ns() < until) sched_yield();
  run->done(run, rn_tensor_share(&run->inputs[0], &run->outputs[0]));
}
static void sleeper_destroy(rn_backend_t* backend) { (void)backend; }
static const rn_backend_vtable_t sleeper_vtable = {
    .kind = "sleeper", .run = sleeper_run, .destroy = sleeper_destroy};

typedef struct server_t {
  rn_loop_t* loop;
  rn_pool_t* pool;
  rn_predict_cache_t* cache;
  sleeper_t model;
  rn_version_t* version;
  _Atomic bool has_ended;
} server_t;

static void on_idle(void* self, rn_version_t* version) {
  rn_version_destroy(version);
  ((server_t*)self)->has_ended = true;
}

static void server_open(server_t* server, double fixed_us, double row_us,
                        const rn_batcher_options_t* batching, size_t cache_bytes) {
  rn_allocator_t memory = rn_allocator_system();
  const rn_env_t* env = rn_env_system();
  *server = (server_t){.model = {.base = {.vtable = &sleeper_vtable,
                                          .signatures = &signature,
                                          .signature_count = 1,
                                          .blocks = true,
                                          .lanes = 1},
                                 .fixed_us = fixed_us,
                                 .row_us = row_us}};
  check(rn_loop_create(env, memory, &server->loop));
  check(rn_pool_create(memory, 2, &server->pool));
  rn_predict_cache_options_t cache = {.max_bytes = cache_bytes,
                                      .timers = rn_loop_timers(server->loop),
                                      .env = env,
                                      .allocator = memory};
  if (cache_bytes) check(rn_predict_cache_create(&cache, &server->cache));
  rn_backend_t* backend = &server->model.base;
  rn_version_options_t options = {.model = RN_STR("model"),
                                  .number = 1,
                                  .replicas = &backend,
                                  .replica_count = 1,
                                  .batching = *batching,
                                  .cache = server->cache,
                                  .env = env,
                                  .allocator = memory,
                                  .idle = on_idle,
                                  .self = server};
  options.batching.pool = server->pool;
  options.batching.timers = rn_loop_timers(server->loop);
  options.batching.env = env;
  options.batching.allocator = memory;
  check(rn_version_create(&options, &server->version));
}

static void server_close(server_t* server) {
  rn_version_release(server->version);
  while (!server->has_ended) sched_yield();
  rn_predict_cache_destroy(server->cache);
  rn_pool_destroy(server->pool);
  rn_loop_destroy(server->loop);
}

// One request, which is used again and again.
typedef struct slot_t {
  rn_predict_t predict;
  rn_predict_value_t input;
  struct traffic_t* traffic;
  int64_t begun_ns, sent_ns;
  _Atomic bool is_free;
  bool is_counted;
} slot_t;

typedef struct traffic_t {
  slot_t* slots;
  _Atomic int64_t answered, good, refused, slow_refusals, nanoseconds;
  _Atomic int64_t histogram[HISTOGRAM];  // latencies, in steps of 10 us
} traffic_t;

static void on_done(rn_predict_t* predict, rn_status_t status) {
  slot_t* slot = RN_CONTAINER_OF(predict, slot_t, predict);
  traffic_t* traffic = slot->traffic;
  int64_t now = now_ns(), took = now - slot->begun_ns;
  if (slot->is_counted && rn_ok(status)) {
    int64_t step = took / 10000 < HISTOGRAM ? took / 10000 : HISTOGRAM - 1;
    ++traffic->answered;
    ++traffic->histogram[step];
    traffic->nanoseconds += took;
    if (took <= OBJECTIVE_NS) ++traffic->good;
  } else if (slot->is_counted) {
    ++traffic->refused;
    if (now - slot->sent_ns > 1000000) ++traffic->slow_refusals;
  }
  rn_status_free(status);
  rn_predict_clear(predict);
  slot->is_free = true;
}

static void send(server_t* server, slot_t* slot, int64_t begun_ns, bool has_deadline,
                 bool is_counted) {
  static const int64_t row[] = {1, 16};
  slot->is_free = false;
  slot->begun_ns = begun_ns;
  slot->is_counted = is_counted;
  slot->input.name = RN_STR("x");
  check(
      rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, row}, &slot->input.value));
  memset(slot->input.value.data, 0, rn_tensor_bytes(&slot->input.value));
  slot->predict = (rn_predict_t){.inputs = &slot->input,
                                 .input_count = 1,
                                 .deadline_ns = has_deadline ? begun_ns + OBJECTIVE_NS : INT64_MAX,
                                 .done = on_done};
  slot->sent_ns = now_ns();
  rn_version_predict(server->version, &slot->predict);
}

typedef struct outcome_t {
  double answered, good, refused;  // per second
  double p50_ms, p99_ms, mean_ms, batch;
  double slow_refusals;  // share
} outcome_t;

static double quantile(const traffic_t* traffic, double q) {
  int64_t rank = (int64_t)(q * (double)traffic->answered), seen = 0;
  for (int i = 0; i < HISTOGRAM; ++i)
    if ((seen += traffic->histogram[i]) > rank) return (i + 0.5) / 100;
  return 0;
}

// Open loop at |rate| per second, or |callers| that ask again |think_us| after their answer.
static outcome_t drive(server_t* server, double rate, int callers, double think_us, bool deadlines,
                       double seconds) {
  traffic_t* traffic = calloc(1, sizeof *traffic);
  traffic->slots = calloc(MAX_OUTSTANDING, sizeof *traffic->slots);
  for (int i = 0; i < MAX_OUTSTANDING; ++i) {
    traffic->slots[i].traffic = traffic;
    traffic->slots[i].is_free = true;
  }
  uint64_t random = 88172645463325252u;
  int64_t start = now_ns(), warm = start + (int64_t)(seconds * 0.5e9);
  int64_t end = warm + (int64_t)(seconds * 1e9), due = start;
  int64_t* asks = calloc((size_t)callers + 1, sizeof *asks);
  rn_batcher_stats_t before = {0};
  unsigned next = 0;
  bool is_counted = false;
  for (int64_t now = start; now < end; now = now_ns()) {
    if (!is_counted && now >= warm) {
      before = rn_batcher_stats(rn_version_batcher(server->version, 0));
      is_counted = true;
    }
    if (callers) {
      for (int i = 0; i < callers; ++i) {
        slot_t* slot = &traffic->slots[i];
        if (!slot->is_free) continue;
        if (!asks[i]) asks[i] = now + (int64_t)(think_us * 1000);
        if (asks[i] > now) continue;
        asks[i] = 0;
        send(server, slot, now, deadlines, is_counted);
      }
      continue;
    }
    if (due > now) {
      if (due - now > 100000) sched_yield();
      continue;
    }
    slot_t* slot = &traffic->slots[next++ % MAX_OUTSTANDING];
    if (!slot->is_free) continue;  // it counts as late when it comes to its turn
    send(server, slot, due, deadlines, is_counted);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    due += (int64_t)(-log(((double)(random >> 11) + 1) / 9007199254740993.0) / rate * 1e9);
  }
  rn_batcher_stats_t after = rn_batcher_stats(rn_version_batcher(server->version, 0));
  for (int i = 0; i < MAX_OUTSTANDING; ++i)
    while (!traffic->slots[i].is_free) sched_yield();
  outcome_t outcome = {.answered = (double)traffic->answered / seconds,
                       .good = (double)traffic->good / seconds,
                       .refused = (double)traffic->refused / seconds,
                       .p50_ms = quantile(traffic, 0.5),
                       .p99_ms = quantile(traffic, 0.99)};
  if (traffic->answered)
    outcome.mean_ms = (double)traffic->nanoseconds / (double)traffic->answered / 1e6;
  if (traffic->refused)
    outcome.slow_refusals = (double)traffic->slow_refusals / (double)traffic->refused;
  if (after.batches > before.batches)
    outcome.batch = (double)(after.rows - before.rows) / (double)(after.batches - before.batches);
  free(asks);
  free(traffic->slots);
  free(traffic);
  return outcome;
}

static rn_batcher_options_t batching(rn_batch_policy_t policy, int64_t max) {
  return (rn_batcher_options_t){
      .is_on = max != 1,
      .size = {.policy = policy, .objective_ns = OBJECTIVE_NS, .max = max},
      .max_wait_ns = policy == RN_BATCH_LEARN ? -1 : 0};
}

static outcome_t play(double fixed_us, double row_us, rn_batcher_options_t options, double rate,
                      int callers, double think_us, double seconds) {
  server_t server;
  server_open(&server, fixed_us, row_us, &options, 0);
  outcome_t outcome = drive(&server, rate, callers, think_us, rate > 0, seconds);
  server_close(&server);
  return outcome;
}

static const struct {
  const char* name;
  double fixed_us, row_us;
} profiles[] = {{"no-op", 91, 20},    {"linear SVM", 500, 20},     {"log. regression", 500, 21},
                {"PySpark", 106, 33}, {"random forest", 3110, 37}, {"kernel SVM", 50, 4876}};
#define PROFILES (sizeof profiles / sizeof *profiles)

static double peak_of(size_t i) {
  double rows = floor((10e3 - profiles[i].fixed_us) / profiles[i].row_us);
  if (rows < 1) rows = 1;
  return rows / (profiles[i].fixed_us + profiles[i].row_us * rows) * 1e6;
}

static void print_policies(double seconds) {
  printf(
      "| model, 20 ms, 2 x its capacity offered | learned /s | p99 ms | rows | AIMD /s | p99 ms | "
      "best fixed /s | rows | alone /s | of best | over alone |\n|---|---|---|---|---|---|---|---|"
      "---|---|---|\n");
  for (size_t i = 0; i < PROFILES; ++i) {
    double a = profiles[i].fixed_us, b = profiles[i].row_us, rate = 2 * peak_of(i);
    double time = rate < 1000 ? 5 * seconds : seconds;
    outcome_t learned = play(a, b, batching(RN_BATCH_LEARN, 0), rate, 0, 0, time);
    outcome_t aimd = play(a, b, batching(RN_BATCH_AIMD, 0), rate, 0, 0, time);
    outcome_t none = play(a, b, batching(RN_BATCH_FIXED, 1), rate, 0, 0, time);
    outcome_t best = none;
    int64_t best_rows = 1;
    for (double part = 0.2; part < 0.9; part += 0.1) {
      int64_t rows = (int64_t)((part * 20e3 - a) / b);
      if (rows < 2) continue;
      outcome_t fixed = play(a, b, batching(RN_BATCH_FIXED, rows), rate, 0, 0, time);
      if (fixed.p99_ms > 20 || fixed.good < best.good) continue;
      best = fixed;
      best_rows = rows;
    }
    printf("| %s | %.0f | %.1f | %.0f | %.0f | %.1f | %.0f | %lld | %.0f | %.3f | %.1f x |\n",
           profiles[i].name, learned.good, learned.p99_ms, learned.batch, aimd.good, aimd.p99_ms,
           best.good, (long long)best_rows, none.good, learned.good / best.good,
           learned.good / none.good);
    fflush(stdout);
  }
}

static void print_delay(double seconds) {
  printf(
      "\n| model with 180 us per batch and 2 us per row | alone /s | no wait /s | chosen wait /s | "
      "mean ms: alone | no wait | chosen |\n|---|---|---|---|---|---|---|\n");
  static const struct {
    const char* name;
    double rate, think_us;
    int callers;
  } rows[] = {{"20,000/s offered", 20000, 0, 0},
              {"20 callers", 0, 10, 20},
              {"4 callers", 0, 10, 4},
              {"1,000/s offered", 1000, 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_batcher_options_t chosen = batching(RN_BATCH_LEARN, 0), at_once = chosen;
    at_once.max_wait_ns = 0;
    outcome_t none = play(180, 2, batching(RN_BATCH_FIXED, 1), rows[i].rate, rows[i].callers,
                          rows[i].think_us, seconds);
    outcome_t zero =
        play(180, 2, at_once, rows[i].rate, rows[i].callers, rows[i].think_us, seconds);
    outcome_t waits =
        play(180, 2, chosen, rows[i].rate, rows[i].callers, rows[i].think_us, seconds);
    printf("| %s | %.0f | %.0f | %.0f | %.3f | %.3f | %.3f |\n", rows[i].name, none.answered,
           zero.answered, waits.answered, none.mean_ms, zero.mean_ms, waits.mean_ms);
    fflush(stdout);
  }
}

static void print_overload(double seconds) {
  printf(
      "\n| linear SVM, 20 ms | answered in time /s | p99 ms | refused /s | refused after 1 ms |\n"
      "|---|---|---|---|---|\n");
  static const double factors[] = {0.8, 1, 2, 5, 10};
  for (size_t i = 0; i < sizeof factors / sizeof *factors; ++i) {
    outcome_t outcome =
        play(500, 20, batching(RN_BATCH_LEARN, 0), factors[i] * peak_of(1), 0, 0, seconds);
    printf("| %.1f x | %.0f | %.1f | %.0f | %.2f %% |\n", factors[i], outcome.good, outcome.p99_ms,
           outcome.refused, 100 * outcome.slow_refusals);
    fflush(stdout);
  }
}

// Nanoseconds of this thread per request, which it answers itself, for |different| inputs in turn:
// the best of four parts.
static double time_alone(server_t* server, int64_t count, int64_t different, int64_t columns) {
  traffic_t* traffic = calloc(1, sizeof *traffic);
  slot_t slot = {.traffic = traffic, .input = {.name = RN_STR("x")}};
  int64_t row[] = {1, columns}, best = INT64_MAX;
  for (int part = 0; part < 4; ++part) {
    int64_t begun = cpu_ns();
    for (int64_t i = 0; i < count / 4; ++i) {
      check(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, row},
                             &slot.input.value));
      memset(slot.input.value.data, 0, rn_tensor_bytes(&slot.input.value));
      int64_t number = (part * (count / 4) + i) % different;
      memcpy(slot.input.value.data, &number, sizeof number);
      slot.is_free = false;
      slot.predict = (rn_predict_t){
          .inputs = &slot.input, .input_count = 1, .deadline_ns = INT64_MAX, .done = on_done};
      rn_version_predict(server->version, &slot.predict);
      while (!slot.is_free) sched_yield();
    }
    int64_t took = cpu_ns() - begun;
    if (took < best) best = took;
  }
  free(traffic);
  return (double)best / (double)(count / 4);
}

static void print_cache(int64_t rounds) {
  printf(
      "\n| one thread, no-op model | ns per request of 16 floats | of 784 floats "
      "|\n|---|---|---|\n");
  double figures[4][2];
  static const int64_t columns[] = {16, 784};
  for (int i = 0; i < 2; ++i) {
    server_t server;
    rn_batcher_options_t options = batching(RN_BATCH_LEARN, 0);
    server_open(&server, 0, 0, &options, 0);
    time_alone(&server, 1000, 1, columns[i]);
    figures[0][i] = time_alone(&server, rounds, rounds, columns[i]);
    server_close(&server);
    server_open(&server, 0, 0, &options, 32 << 20);
    time_alone(&server, 1000, 1, columns[i]);
    figures[1][i] = time_alone(&server, rounds, 1, columns[i]);
    figures[2][i] = time_alone(&server, rounds, INT64_MAX, columns[i]);
    server_close(&server);
  }
  printf(
      "| without a cache | %.0f | %.0f |\n| always a hit | %.0f | %.0f |\n"
      "| never a hit | %.0f | %.0f |\n",
      figures[0][0], figures[0][1], figures[1][0], figures[1][1], figures[2][0], figures[2][1]);
}

int main(int argc, char** argv) {
  double seconds = argc > 1 ? atof(argv[1]) : 1;
  int64_t rounds = argc > 2 ? atoll(argv[2]) : 400000;
  if (seconds > 0) {
    print_policies(seconds);
    print_delay(seconds);
    print_overload(seconds);
  }
  print_cache(rounds);
  return 0;
}

// Versions with real threads: a pool, a loop for the timers, callers that cancel and run out of
// time, and versions that end under them.
#include <pthread.h>
#include <unistd.h>

#include "fake_model.h"
#include "net/loop.h"
#include "serve/model/version.h"

#define CALLERS 4
#define ASKED 300  // requests per caller

typedef struct stage_t {
  rn_loop_t *loop, *clock;
  rn_pool_t* pool;
  rn_predict_cache_t* cache;
  fake_model_t fakes[2];
  rn_version_t* _Atomic version;
  _Atomic int ended;
  _Atomic bool has_failed;
} stage_t;

// Takes between nothing and a fifth of a millisecond; some runs with a deadline end only then.
static void slow_run(fake_model_t* fake, rn_backend_run_t* run) {
  int turn = fake->runs % 5;
  if (turn) usleep((useconds_t)(50 * turn - 25));
  if (turn == 4 && run->deadline_ns < INT64_MAX) {
    while (!rn_is_cancelled(run->cancel)) usleep(20);
    run->done(run, rn_cancelled("Step was cancelled"));
    return;
  }
  run->done(run, fake_compute(run));
}

static void on_idle(void* self, rn_version_t* version) {
  stage_t* stage = self;
  rn_version_destroy(version);
  ++stage->ended;
}

static rn_version_t* make_version(stage_t* stage, bool joins, bool blocks) {
  rn_backend_t* backends[2];
  for (int i = 0; i < 2; ++i) {
    stage->fakes[i].base.blocks = blocks;
    stage->fakes[i].base.lanes = i + 1;
    backends[i] = &stage->fakes[i].base;
  }
  rn_version_options_t options = {.model = RN_STR("m"),
                                  .replicas = backends,
                                  .replica_count = 2,
                                  .batching = {.is_on = joins,
                                               .size = {.objective_ns = 2000000},
                                               .max_wait_ns = -1,
                                               .pool = stage->pool,
                                               .timers = rn_loop_timers(stage->loop),
                                               .watch = rn_loop_timers(stage->clock),
                                               .env = rn_env_system(),
                                               .allocator = memory()},
                                  .cache = stage->cache,
                                  .env = rn_env_system(),
                                  .allocator = memory(),
                                  .idle = on_idle,
                                  .self = stage};
  rn_version_t* version;
  OK(rn_version_create(&options, &version));
  return version;
}

typedef struct caller_t {
  stage_t* stage;
  uint32_t random;
  bool may_fail;  // some requests are cancelled or have deadlines
} caller_t;

static uint32_t draw(caller_t* caller, uint32_t below) {
  caller->random = caller->random * 1664525 + 1013904223;
  return (caller->random >> 8) % below;
}

// Several requests at the same time.
static void ask_some(caller_t* caller, rn_version_t* version, int count) {
  const rn_env_t* env = rn_env_system();
  fake_request_t requests[4];
  float firsts[4];
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  for (int i = 0; i < count; ++i) {
    firsts[i] = (float)draw(caller, 50);
    fake_double(&requests[i], 1 + i % 3, 2, firsts[i]);
    requests[i].predict.skips_cache = draw(caller, 2);
    requests[i].predict.priority = (int)draw(caller, 2);
    if (caller->may_fail && draw(caller, 4) == 0)
      requests[i].predict.deadline_ns = env->now_ns(env->self) + draw(caller, 1000000);
    if (caller->may_fail && draw(caller, 4) == 0) requests[i].predict.cancel = &cancel;
    rn_version_predict(version, &requests[i].predict);
  }
  if (draw(caller, 2)) usleep(draw(caller, 200));
  rn_cancel(&cancel);
  for (int i = 0; i < count; ++i) {
    while (!requests[i].answers) sched_yield();
    bool is_right = fake_is_doubled(&requests[i], 1 + i % 3, 2, firsts[i]);
    bool has_ended = requests[i].code == RN_CODE_CANCELLED ||
                     requests[i].code == RN_CODE_DEADLINE_EXCEEDED ||
                     requests[i].code == RN_CODE_UNAVAILABLE;
    if (!is_right && !(caller->may_fail && has_ended)) caller->stage->has_failed = true;
    rn_predict_clear(&requests[i].predict);
  }
  rn_cancel_destroy(&cancel);
}

static void* caller_main(void* self) {
  caller_t* caller = self;
  for (int i = 0; i < ASKED / 3; ++i) {
    rn_version_t* version = caller->stage->version;
    ask_some(caller, version, 1 + (int)draw(caller, 4));
  }
  return NULL;
}

static void play(bool joins, bool blocks, bool may_fail, bool has_cache) {
  stage_t stage = {0};
  OK(rn_loop_create(rn_env_system(), memory(), &stage.loop));
  OK(rn_loop_create(rn_env_system(), memory(), &stage.clock));
  OK(rn_pool_create(memory(), 3, &stage.pool));
  for (int i = 0; i < 2; ++i) {
    fake_init(&stage.fakes[i]);
    stage.fakes[i].on_run = slow_run;
  }
  rn_predict_cache_options_t options = {.max_bytes = 64 << 10,
                                        .timers = rn_loop_timers(stage.loop),
                                        .env = rn_env_system(),
                                        .allocator = memory()};
  if (has_cache) OK(rn_predict_cache_create(&options, &stage.cache));
  stage.version = make_version(&stage, joins, blocks);
  caller_t callers[CALLERS];
  pthread_t threads[CALLERS];
  for (int i = 0; i < CALLERS; ++i) {
    callers[i] = (caller_t){&stage, (uint32_t)i * 77 + 1, may_fail};
    pthread_create(&threads[i], NULL, caller_main, &callers[i]);
  }
  for (int i = 0; i < CALLERS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; ++i) {
    rn_batcher_stats_t stats = rn_batcher_stats(rn_version_batcher(stage.version, i));
    cr_assert_eq(stats.queued, 0);
    // The answer comes before the batch is off the books of a thread.
    cr_assert_gt(stats.batches, 0);
  }
  rn_version_release(stage.version);
  while (!stage.ended) sched_yield();
  cr_assert(!stage.has_failed);
  rn_predict_cache_destroy(stage.cache);
  rn_pool_destroy(stage.pool);
  rn_loop_destroy(stage.loop);
  rn_loop_destroy(stage.clock);
}

Test(batch_threads, batches_on_the_pool, .timeout = 60) { play(true, true, false, false); }
Test(batch_threads, batches_that_callers_run, .timeout = 60) { play(true, false, false, false); }
Test(batch_threads, requests_alone, .timeout = 60) { play(false, true, true, false); }
Test(batch_threads, deadlines_and_cancellations, .timeout = 60) { play(true, true, true, false); }
Test(batch_threads, with_a_cache, .timeout = 60) { play(true, true, true, true); }

// The last request of a version ends it, on whatever thread answers it.
Test(batch_threads, versions_end_with_their_last_request, .timeout = 60) {
  stage_t stage = {0};
  OK(rn_loop_create(rn_env_system(), memory(), &stage.loop));
  OK(rn_loop_create(rn_env_system(), memory(), &stage.clock));
  OK(rn_pool_create(memory(), 3, &stage.pool));
  for (int i = 0; i < 2; ++i) {
    fake_init(&stage.fakes[i]);
    stage.fakes[i].on_run = slow_run;
  }
  for (int round = 0; round < 200; ++round) {
    rn_version_t* version = make_version(&stage, true, true);
    fake_request_t requests[5];
    const rn_env_t* env = rn_env_system();
    for (int i = 0; i < 5; ++i) {
      fake_double(&requests[i], 1, 2, (float)i);
      if (i > 2) requests[i].predict.deadline_ns = env->now_ns(env->self) + 300000;
      rn_version_predict(version, &requests[i].predict);
    }
    rn_version_release(version);
    for (int i = 0; i < 5; ++i) {
      while (!requests[i].answers) sched_yield();
      rn_predict_clear(&requests[i].predict);
    }
    while (stage.ended <= round) sched_yield();
  }
  rn_pool_destroy(stage.pool);
  rn_loop_destroy(stage.loop);
  rn_loop_destroy(stage.clock);
}

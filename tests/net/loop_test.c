// The event loop of a channel, which its callers run themselves: one or several callers, with
// timers, jobs and abandoned replies.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/status.h"
#include "net/channel.h"
#include "net/rpc_server.h"

#define LOOP_TEST(name) Test(loop, name, .timeout = 120)
#define SECOND INT64_C(1000000000)

static rn_allocator_t memory(void) { return rn_allocator_system(); }
static int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

// A server of one method, which gives back what it got; at once, or when it is told to.
typedef struct peer_t {
  rn_loop_t *loop, *client;
  rn_rpc_server_t* server;
  rn_channel_t* channel;
  _Atomic(rn_rpc_in_t*) held;
} peer_t;

static void reply(rn_rpc_in_t* call) {
  rn_message_t response;
  rn_message_init(&response, memory());
  OK(rn_message_add(&response, rn_rpc_request(call)));
  rn_rpc_reply(call, RN_OK, &response);
}

static void handle(void* self, rn_rpc_in_t* call) {
  peer_t* peer = self;
  if (rn_str_is(rn_rpc_path(call), "/later"))
    peer->held = call;
  else
    reply(call);
}

static void peer_open(peer_t* peer) {
  *peer = (peer_t){0};
  OK(rn_loop_create(rn_env_system(), memory(), &peer->loop));
  OK(rn_loop_create(rn_env_system(), memory(), &peer->client));
  rn_rpc_server_options_t options = {.loop = peer->loop,
                                     .allocator = memory(),
                                     .address = "127.0.0.1:0",
                                     .handle = handle,
                                     .self = peer};
  OK(rn_rpc_server_create(&options, &peer->server));
  char address[64];
  snprintf(address, sizeof address, "127.0.0.1:%d", rn_rpc_server_port(peer->server));
  rn_channel_options_t channel = {.loop = peer->client, .allocator = memory(), .address = address};
  OK(rn_channel_create(&channel, &peer->channel));
}

static void peer_close(peer_t* peer) {
  rn_channel_destroy(peer->channel);
  rn_rpc_server_destroy(peer->server);
  rn_loop_destroy(peer->client);
  rn_loop_destroy(peer->loop);
}

typedef struct asked_t {
  rn_rpc_out_t call;  // first
  rn_mutex_t mutex;
  rn_cond_t ended;
  bool is_done;
} asked_t;

static void on_done(rn_rpc_out_t* call, rn_status_t status) {
  asked_t* asked = (asked_t*)call;
  OK(status);
  rn_mutex_lock(&asked->mutex);
  asked->is_done = true;
  rn_cond_broadcast(&asked->ended);
  rn_mutex_unlock(&asked->mutex);
}

static void ask(peer_t* peer, asked_t* asked, const char* path, const char* text) {
  *asked = (asked_t){.call = {.path = path, .deadline_ns = INT64_MAX, .done = on_done}};
  rn_mutex_init(&asked->mutex);
  rn_cond_init(&asked->ended);
  rn_message_init(&asked->call.request, memory());
  OK(rn_message_add(&asked->call.request, rn_str(text)));
  rn_rpc_start(peer->channel, &asked->call);
}

static bool is_done(asked_t* asked) {
  rn_mutex_lock(&asked->mutex);
  bool is_done = asked->is_done;
  rn_mutex_unlock(&asked->mutex);
  return is_done;
}

static void end(asked_t* asked, const char* text) {
  rn_mutex_lock(&asked->mutex);
  while (!asked->is_done) rn_cond_wait(&asked->ended, &asked->mutex);
  rn_mutex_unlock(&asked->mutex);
  cr_assert(rn_str_is(rn_message_view(&asked->call.stream.message), text));
  rn_rpc_out_clear(&asked->call);
  rn_cond_destroy(&asked->ended);
  rn_mutex_destroy(&asked->mutex);
}

// Whether this thread turned the loop.
static bool visit(peer_t* peer, asked_t* asked) {
  rn_loop_visit_t visit;
  bool turns = rn_loop_enter(peer->client, &visit);
  cr_assert_eq(rn_loop_is_here(peer->client), turns);
  while (turns && !is_done(asked)) rn_loop_turn(peer->client, &visit);
  rn_mutex_lock(&asked->mutex);
  while (!asked->is_done) rn_cond_wait(&asked->ended, &asked->mutex);
  rn_mutex_unlock(&asked->mutex);
  rn_loop_leave(peer->client, &visit);
  cr_assert(!rn_loop_is_here(peer->client));
  return turns;
}

static int visits(peer_t* peer, int count) {
  int turned = 0;
  for (int i = 0; i < count; ++i) {
    asked_t asked;
    char text[32];
    snprintf(text, sizeof text, "visit %d", i);
    ask(peer, &asked, "/echo", text);
    turned += visit(peer, &asked);
    end(&asked, text);
  }
  return turned;
}

LOOP_TEST(who_comes_again_turns_it) {
  peer_t peer;
  peer_open(&peer);
  int turned = 0;  // a machine that is busy may let the loop's own thread have it now and then
  for (int64_t begin = now(); turned < 500 && now() - begin < 60 * SECOND;)
    turned += visits(&peer, 1000);
  cr_assert_geq(turned, 500);
  peer_close(&peer);
}

typedef struct tick_t {
  rn_timer_t timer;  // first
  rn_loop_job_t job;
  peer_t* peer;
  _Atomic int count;
} tick_t;

static void on_tick(rn_timer_t* timer) {
  tick_t* tick = (tick_t*)timer;
  tick->count++;
  OK(rn_loop_set_timer(tick->peer->client, timer, now() + SECOND / 1000));
}

static void on_job(rn_loop_job_t* job) {
  tick_t* tick = (tick_t*)((char*)job - __builtin_offsetof(tick_t, job));
  cr_assert(rn_loop_is_here(tick->peer->client));
  tick->count++;
}

LOOP_TEST(what_nobody_waits_for_goes_on) {
  peer_t peer;
  peer_open(&peer);
  tick_t tick = {.timer.fn = on_tick, .peer = &peer}, job = {.job.run = on_job, .peer = &peer};
  OK(rn_loop_set_timer(peer.client, &tick.timer, now()));
  for (int turn = 0; turn < 20; ++turn) {
    // While visitors come, and when none come any more: timers, jobs, answers.
    int ticks = tick.count, jobs = job.count;
    visits(&peer, 50);
    rn_loop_post(peer.client, &job.job);
    asked_t asked;
    ask(&peer, &asked, "/echo", "nobody's");
    end(&asked, "nobody's");
    int64_t begin = now();
    while (tick.count < ticks + 3 || job.count == jobs) {
      cr_assert_lt(now() - begin, 20 * SECOND, "%d %d", tick.count - ticks, job.count - jobs);
      usleep(500);
    }
  }
  rn_loop_clear_timer(peer.client, &tick.timer);
  peer_close(&peer);
}

static void* visit_often(void* arg) {
  visits(arg, 300);
  return NULL;
}

static void* visit_at_times(void* arg) {
  unsigned state = (unsigned)(uintptr_t)&state;
  for (int i = 0; i < 150; ++i) {
    visits(arg, 1 + rand_r(&state) % 4);
    usleep((useconds_t)(rand_r(&state) % 3000));
  }
  return NULL;
}

LOOP_TEST(several_at_once) {
  peer_t peer;
  peer_open(&peer);
  pthread_t threads[6];
  for (int turn = 0; turn < 3; ++turn) {
    visits(&peer, 20);
    for (int i = 0; i < 6; ++i) pthread_create(&threads[i], NULL, visit_often, &peer);
    for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
    // Two that meet now and then, and find each other in all states.
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, visit_at_times, &peer);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  }
  peer_close(&peer);
}

static void* visit_long(void* arg) {
  asked_t asked;
  ask(arg, &asked, "/later", "long");
  visit(arg, &asked);
  end(&asked, "long");
  return NULL;
}

// A long visit serves the short ones; none of them holds up the other.
LOOP_TEST(long_and_short_visits) {
  peer_t peer;
  peer_open(&peer);
  for (int turn = 0; turn < 5; ++turn) {
    pthread_t thread;
    if (turn % 2) visits(&peer, 20);
    pthread_create(&thread, NULL, visit_long, &peer);
    while (!peer.held) usleep(100);
    usleep(turn * 3000);
    int64_t begin = now();
    visits(&peer, 50);
    cr_assert_lt(now() - begin, 20 * SECOND);
    rn_rpc_in_t* held = peer.held;
    peer.held = NULL;
    reply(held);
    pthread_join(thread, NULL);
  }
  peer_close(&peer);
}

static double processor_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// After visits, and while an answer is long due, nothing uses the processor.
LOOP_TEST(it_sleeps_when_nothing_comes) {
  peer_t peer;
  peer_open(&peer);
  visits(&peer, 200);
  for (int turn = 0; turn < 2; ++turn) {
    pthread_t thread;
    if (turn) pthread_create(&thread, NULL, visit_long, &peer);
    while (turn && !peer.held) usleep(100);
    double used = 1;  // a busy machine may let the threads finish their last turns late
    for (int tries = 0; tries < 20 && used >= 0.02; ++tries) {
      usleep(100000);
      double begin = processor_seconds();
      usleep(500000);
      used = processor_seconds() - begin;
    }
    cr_assert_lt(used, 0.02);
    if (!turn) continue;
    reply(peer.held);
    pthread_join(thread, NULL);
  }
  peer_close(&peer);
}

// A job that ends when it is told to, and one that defers it from the loop's thread.
typedef struct deferred_t {
  rn_job_t job;  // first
  rn_loop_job_t post;
  rn_loop_t* loop;
  _Atomic bool is_asked, is_accepted, has_begun, may_end, has_ended;
} deferred_t;

static void run_deferred(rn_job_t* job) {
  deferred_t* deferred = (deferred_t*)job;
  deferred->has_begun = true;
  while (!deferred->may_end) usleep(100);
  deferred->has_ended = true;
}

static void defer(rn_loop_job_t* post) {
  deferred_t* deferred = (deferred_t*)((char*)post - __builtin_offsetof(deferred_t, post));
  deferred->job.run = run_deferred;
  deferred->is_accepted = rn_loop_defer(deferred->loop, &deferred->job);
  cr_assert(!deferred->has_begun);  // not inside of this callback
  deferred->is_asked = true;
}

static void begin_deferred(deferred_t* deferred, rn_loop_t* loop) {
  *deferred = (deferred_t){.loop = loop, .post.run = defer};
  rn_loop_post(loop, &deferred->post);
  while (!deferred->is_asked) usleep(100);
}

static void await(_Atomic bool* flag) {
  for (int64_t begin = now(); !*flag; usleep(100)) cr_assert_lt(now() - begin, 60 * SECOND);
}

// Calls are answered while jobs of the server's loop do not end, up to a number of them.
LOOP_TEST(a_deferred_job_holds_up_nothing) {
  peer_t peer;
  peer_open(&peer);
  deferred_t jobs[32];
  for (int round = 0; round < 3; ++round) {
    int count = 0;
    for (; count < 32; ++count) {
      begin_deferred(&jobs[count], peer.loop);
      if (!jobs[count].is_accepted) break;
      await(&jobs[count].has_begun);
      visits(&peer, 3);
    }
    cr_assert_geq(count, 8);
    cr_assert_lt(count, 32);
    visits(&peer, 20);
    for (int i = 0; i < count; ++i) jobs[i].may_end = true;
    for (int i = 0; i < count; ++i) await(&jobs[i].has_ended);
    // The threads stand by again.
    int64_t begin = now();
    do {
      cr_assert_lt(now() - begin, 60 * SECOND);
      begin_deferred(&jobs[0], peer.loop);
      jobs[0].may_end = true;
    } while (!jobs[0].is_accepted);
    await(&jobs[0].has_ended);
  }
  cr_assert(!rn_loop_defer(peer.loop, &jobs[0].job));  // this is not the loop's thread
  peer_close(&peer);
}

typedef struct chain_t {
  rn_job_t job;  // first
  rn_loop_job_t post;
  rn_loop_t* loop;
  int left;
  _Atomic bool has_ended;
} chain_t;

static void run_chain(rn_job_t* job) {
  chain_t* chain = (chain_t*)job;
  if (chain->left % 50 == 0) usleep(10000);  // long enough to lose the loop
  if (--chain->left == 0)
    chain->has_ended = true;
  else if (!rn_loop_defer(chain->loop, job))  // another thread turns the loop
    rn_loop_post(chain->loop, &chain->post);
}

static void begin_chain(rn_loop_job_t* post) {
  chain_t* chain = (chain_t*)((char*)post - __builtin_offsetof(chain_t, post));
  chain->job.run = run_chain;
  if (!rn_loop_defer(chain->loop, &chain->job)) rn_loop_post(chain->loop, post);
}

// Jobs that defer themselves again, some of them long, and calls in between; the loop ends with a
// thread that has just stood by.
LOOP_TEST(deferred_jobs_take_turns_with_calls) {
  for (int round = 0; round < 3; ++round) {
    peer_t peer;
    peer_open(&peer);
    chain_t chains[3];
    for (int i = 0; i < 3; ++i) {
      chains[i] = (chain_t){.loop = peer.loop, .left = 400, .post.run = begin_chain};
      rn_loop_post(peer.loop, &chains[i].post);
    }
    visits(&peer, 100);
    for (int i = 0; i < 3; ++i) await(&chains[i].has_ended);
    peer_close(&peer);
  }
}

// Calls over loopback: messages of all sizes, errors, deadlines, cancellation, peers that come and
// go, and bytes that are not HTTP/2.
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/outcome.h"
#include "net/channel.h"
#include "net/rpc_server.h"

#define RPC_TEST(name) Test(rpc, name, .timeout = 120)
#define SECOND INT64_C(1000000000)

static rn_allocator_t memory(void) { return rn_allocator_system(); }
static int64_t now(void) { return rn_env_system()->now_ns(rn_env_system()->self); }

// A server with a few methods: /echo gives back what it got, /fail an error, /wait nothing until
// the caller gives up.
typedef struct peer_t {
  rn_loop_t* loop;
  rn_rpc_server_t* server;
  char address[64];
  rn_cancel_entry_t waiting;
  rn_rpc_in_t* held;
  _Atomic int cancelled, handled;
} peer_t;

static void on_cancelled(rn_cancel_entry_t* entry) {
  peer_t* peer = (peer_t*)((char*)entry - __builtin_offsetof(peer_t, waiting));
  peer->cancelled++;
}

static void handle(void* self, rn_rpc_in_t* call) {
  peer_t* peer = self;
  rn_message_t response;
  rn_message_init(&response, memory());
  rn_str_t path = rn_rpc_path(call);
  if (rn_str_is(path, "/echo")) {
    const rn_message_t* request = &call->stream.message;
    rn_status_t status = RN_OK;
    if (request->pieces.count)
      status = rn_message_lend(&response, request->pieces.items[0].buffer, rn_rpc_request(call));
    rn_rpc_reply(call, status, &response);
  } else if (rn_str_is(path, "/wait")) {
    peer->held = call;
    peer->waiting.fn = on_cancelled;
    if (!rn_cancel_add(&call->cancel, &peer->waiting)) peer->cancelled++;
  } else {
    rn_rpc_reply(call, rn_not_found("no 100%% such\nthing: \xc3\xa9"), &response);
  }
  peer->handled++;
}

static void peer_open(peer_t* peer, const char* address) {
  if (!peer->loop) OK(rn_loop_create(rn_env_system(), memory(), &peer->loop));
  rn_rpc_server_options_t options = {.loop = peer->loop,
                                     .allocator = memory(),
                                     .address = address,
                                     .handle = handle,
                                     .self = peer};
  OK(rn_rpc_server_create(&options, &peer->server));
  snprintf(peer->address, sizeof peer->address, "127.0.0.1:%d", rn_rpc_server_port(peer->server));
}

static void peer_close(peer_t* peer) {
  rn_rpc_server_destroy(peer->server);
  rn_loop_destroy(peer->loop);
}

// A call that its caller waits for.
typedef struct waited_t {
  rn_rpc_out_t call;  // first
  rn_outcome_t outcome;
} waited_t;

static void on_done(rn_rpc_out_t* call, rn_status_t status) {
  rn_outcome_set(&((waited_t*)call)->outcome, status);
}

static void start(waited_t* waited, rn_channel_t* channel, const char* path, rn_str_t request,
                  int64_t deadline_ns) {
  bool waits = waited->call.waits_for_ready;
  rn_align_fn_t align = waited->call.align;
  *waited = (waited_t){.call = {.path = path,
                                .deadline_ns = deadline_ns,
                                .waits_for_ready = waits,
                                .align = align,
                                .done = on_done}};
  rn_outcome_init(&waited->outcome);
  rn_message_init(&waited->call.request, memory());
  OK(rn_message_add(&waited->call.request, request));
  rn_rpc_start(channel, &waited->call);
}

static rn_status_t wait_for(waited_t* waited) { return rn_outcome_wait(&waited->outcome); }

static void waited_clear(waited_t* waited) { rn_rpc_out_clear(&waited->call); }

static void expect(waited_t* waited, rn_code_t code, const char* text) {
  rn_status_t status = wait_for(waited);
  cr_assert_eq(rn_status_code(status), code, "%d %s", rn_status_code(status),
               rn_status_message(status));
  cr_assert(strstr(rn_status_message(status), text), "%s", rn_status_message(status));
  rn_status_free(status);
  waited_clear(waited);
}

static rn_channel_t* channel_to(rn_loop_t* loop, const char* address, int64_t keepalive_ns) {
  rn_channel_t* channel = NULL;
  rn_channel_options_t options = {
      .loop = loop, .allocator = memory(), .address = address, .keepalive_ns = keepalive_ns};
  OK(rn_channel_create(&options, &channel));
  return channel;
}

static size_t align_at_nine(rn_str_t head, size_t size) {
  (void)size;
  return head.size < 9 ? 0 : 9;
}

RPC_TEST(echoes) {
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  rn_loop_t* loop = NULL;
  OK(rn_loop_create(rn_env_system(), memory(), &loop));
  rn_channel_t* channel = channel_to(loop, peer.address, 0);
  const size_t sizes[] = {0, 1, 5, 127, 128, 129, 16384, 16385, 1 << 20, 100 << 20};
  char* bytes = malloc(100 << 20);
  for (size_t i = 0; i < 100 << 20; ++i) bytes[i] = (char)(i * 2654435761u >> 13);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    waited_t waited = {.call.align = align_at_nine};
    start(&waited, channel, "/echo", rn_str_n(bytes, sizes[i]), INT64_MAX);
    OK(wait_for(&waited));
    rn_str_t response = rn_message_view(&waited.call.stream.message);
    cr_assert(rn_str_eq(response, rn_str_n(bytes, sizes[i])), "%zu bytes", sizes[i]);
    if (sizes[i] > 9) cr_assert_eq((uintptr_t)(response.data + 9) % RN_ALIGN, 0);
    waited_clear(&waited);
  }
  free(bytes);
  rn_channel_destroy(channel);
  rn_loop_destroy(loop);
  peer_close(&peer);
}

RPC_TEST(many_at_once) {
  enum { kCalls = 2000 };
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  rn_channel_t* channel = channel_to(peer.loop, peer.address, 0);
  waited_t* calls = calloc(kCalls, sizeof *calls);
  char text[32];
  for (int i = 0; i < kCalls; ++i) {
    snprintf(text, sizeof text, "call %d", i);
    start(&calls[i], channel, "/echo", rn_str(text), now() + 60 * SECOND);
  }
  for (int i = 0; i < kCalls; ++i) {
    snprintf(text, sizeof text, "call %d", i);
    OK(wait_for(&calls[i]));
    cr_assert(rn_str_is(rn_message_view(&calls[i].call.stream.message), text));
    waited_clear(&calls[i]);
  }
  free(calls);
  rn_channel_destroy(channel);
  peer_close(&peer);
}

RPC_TEST(errors_keep_their_text) {
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  rn_channel_t* channel = channel_to(peer.loop, peer.address, 0);
  waited_t waited = {0};
  start(&waited, channel, "/fail", RN_STR("x"), INT64_MAX);
  expect(&waited, RN_CODE_NOT_FOUND, "no 100% such\nthing: \xc3\xa9");
  rn_channel_destroy(channel);
  peer_close(&peer);
}

RPC_TEST(deadlines_and_cancellation_reach_the_server) {
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  rn_channel_t* channel = channel_to(peer.loop, peer.address, 0);
  for (int turn = 0; turn < 2; ++turn) {
    waited_t waited = {0};
    int64_t begin = now();
    start(&waited, channel, "/wait", RN_STR("x"), turn == 0 ? now() + SECOND / 5 : INT64_MAX);
    while (turn == 1 && peer.handled < 2) usleep(1000);
    if (turn == 1) rn_rpc_cancel(channel, &waited.call);
    expect(&waited, turn == 0 ? RN_CODE_DEADLINE_EXCEEDED : RN_CODE_CANCELLED, "");
    cr_assert_lt(now() - begin, 60 * SECOND);
    while (peer.cancelled <= turn) usleep(1000);
    rn_cancel_remove(&peer.held->cancel, &peer.waiting);
    rn_message_t none;
    rn_message_init(&none, memory());
    rn_rpc_reply(peer.held, RN_OK, &none);  // too late, and harmless
  }
  rn_channel_destroy(channel);
  peer_close(&peer);
}

// Calls over two loops, then a drain: the call that runs ends well, and new connections are
// refused.
RPC_TEST(draining) {
  enum { CHANNELS = 4, CALLS = 100 };
  peer_t peer = {0};
  rn_loop_t* loops[2];
  for (int i = 0; i < 2; ++i) OK(rn_loop_create(rn_env_system(), memory(), &loops[i]));
  OK(rn_loop_create(rn_env_system(), memory(), &peer.loop));
  rn_rpc_server_options_t options = {.loop = loops[0],
                                     .loops = loops,
                                     .loop_count = 2,
                                     .allocator = memory(),
                                     .address = "127.0.0.1:0",
                                     .handle = handle,
                                     .self = &peer};
  OK(rn_rpc_server_create(&options, &peer.server));
  snprintf(peer.address, sizeof peer.address, "127.0.0.1:%d", rn_rpc_server_port(peer.server));
  rn_channel_t* channels[CHANNELS];
  for (int i = 0; i < CHANNELS; ++i) channels[i] = channel_to(peer.loop, peer.address, 0);
  for (int i = 0; i < CALLS; ++i) {
    waited_t waited = {0};
    start(&waited, channels[i % CHANNELS], "/echo", RN_STR("x"), now() + 60 * SECOND);
    OK(wait_for(&waited));
    waited_clear(&waited);
  }
  cr_assert_eq(rn_rpc_server_stats(peer.server).connections, CHANNELS);
  waited_t held = {0}, late = {0};
  start(&held, channels[1], "/wait", RN_STR("x"), INT64_MAX);
  while (peer.handled < CALLS + 1) usleep(1000);
  rn_rpc_server_drain(peer.server);
  rn_channel_t* other = NULL;
  for (bool is_refused = false; !is_refused;) {  // once the drain has begun
    rn_channel_destroy(other);
    other = channel_to(peer.loop, peer.address, 0);
    start(&late, other, "/echo", RN_STR("x"), now() + 60 * SECOND);
    rn_status_t status = wait_for(&late);
    is_refused = rn_status_code(status) == RN_CODE_UNAVAILABLE;
    cr_assert(is_refused || rn_ok(status));
    rn_status_free(status);
    waited_clear(&late);
  }
  rn_cancel_remove(&peer.held->cancel, &peer.waiting);
  rn_message_t none;
  rn_message_init(&none, memory());
  rn_rpc_reply(peer.held, RN_OK, &none);
  OK(wait_for(&held));
  waited_clear(&held);
  rn_channel_destroy(other);
  for (int i = 0; i < CHANNELS; ++i) rn_channel_destroy(channels[i]);
  rn_rpc_server_destroy(peer.server);
  rn_loop_destroy(peer.loop);
  for (int i = 0; i < 2; ++i) rn_loop_destroy(loops[i]);
}

RPC_TEST(peers_that_are_not_there) {
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  char address[64];
  strcpy(address, peer.address);
  rn_rpc_server_destroy(peer.server);
  rn_channel_t* channel = channel_to(peer.loop, address, 0);
  waited_t at_once = {0}, patient = {.call.waits_for_ready = true},
           late = {.call.waits_for_ready = true};
  start(&at_once, channel, "/echo", RN_STR("x"), INT64_MAX);
  start(&late, channel, "/echo", RN_STR("x"), now() + SECOND / 10);
  start(&patient, channel, "/echo", RN_STR("here"), INT64_MAX);
  expect(&at_once, RN_CODE_UNAVAILABLE, "failed to connect to all addresses");
  expect(&late, RN_CODE_DEADLINE_EXCEEDED, "");
  peer_open(&peer, address);
  OK(wait_for(&patient));
  waited_clear(&patient);
  // And one that goes while it is asked.
  waited_t cut = {0};
  start(&cut, channel, "/wait", RN_STR("x"), INT64_MAX);
  while (peer.handled < 2) usleep(1000);
  rn_cancel_remove(&peer.held->cancel, &peer.waiting);
  rn_message_t none;
  rn_message_init(&none, memory());
  rn_rpc_in_t* held = peer.held;
  pthread_t closer;
  pthread_create(&closer, NULL, (void* (*)(void*))(void*)rn_rpc_server_destroy, peer.server);
  expect(&cut, RN_CODE_UNAVAILABLE, "");
  rn_rpc_reply(held, RN_OK, &none);
  pthread_join(closer, NULL);
  rn_channel_destroy(channel);
  rn_loop_destroy(peer.loop);
}

// Calls that fail for want of a peer while another thread cancels them: their records are freed at
// once, and no timer of theirs may be left.
enum { RACERS = 64 };
typedef struct racer_t {
  rn_rpc_out_t call;  // first
  struct race_t* race;
  int number;
} racer_t;
typedef struct race_t {
  rn_channel_t* channel;
  rn_mutex_t mutexes[RACERS];
  racer_t* racers[RACERS];  // each under its mutex; NULL: it has ended
  _Atomic int running;
} race_t;

static void on_raced(rn_rpc_out_t* call, rn_status_t status) {
  racer_t* racer = (racer_t*)call;
  race_t* race = racer->race;
  rn_status_free(status);
  rn_mutex_lock(&race->mutexes[racer->number]);
  race->racers[racer->number] = NULL;
  rn_mutex_unlock(&race->mutexes[racer->number]);
  rn_rpc_out_clear(call);
  free(racer);
  race->running--;
}

static void* cancel_all(void* arg) {
  race_t* race = arg;
  while (race->running) {
    for (int i = RACERS; i-- > 0;) {
      rn_mutex_lock(&race->mutexes[i]);
      if (race->racers[i]) rn_rpc_cancel(race->channel, &race->racers[i]->call);
      rn_mutex_unlock(&race->mutexes[i]);
    }
  }
  return NULL;
}

RPC_TEST(cancelled_while_they_fail) {
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  rn_rpc_server_destroy(peer.server);
  race_t race = {.channel = channel_to(peer.loop, peer.address, 0)};
  for (int i = 0; i < RACERS; ++i) rn_mutex_init(&race.mutexes[i]);
  for (int turn = 0; turn < 300; ++turn) {
    race.running = RACERS;
    for (int i = 0; i < RACERS; ++i) {
      racer_t* racer = calloc(1, sizeof *racer);
      *racer = (racer_t){.call = {.path = "/echo", .deadline_ns = INT64_MAX, .done = on_raced},
                         .race = &race,
                         .number = i};
      rn_message_init(&racer->call.request, memory());
      rn_mutex_lock(&race.mutexes[i]);
      race.racers[i] = racer;
      rn_rpc_start(race.channel, &racer->call);
      rn_mutex_unlock(&race.mutexes[i]);
    }
    pthread_t canceller;
    pthread_create(&canceller, NULL, cancel_all, &race);
    pthread_join(canceller, NULL);
  }
  for (int i = 0; i < RACERS; ++i) rn_mutex_destroy(&race.mutexes[i]);
  rn_channel_destroy(race.channel);
  rn_loop_destroy(peer.loop);
}

RPC_TEST(a_silent_peer_is_given_up) {
  const rn_env_t* env = rn_env_system();
  rn_socket_t* listener = NULL;
  OK(env->net->listen(env->net_self, "127.0.0.1:0", memory(), &listener));
  rn_strbuf_t address;
  rn_strbuf_init(&address, memory());
  OK(listener->vtable->address(listener, &address));
  rn_loop_t* loop = NULL;
  OK(rn_loop_create(env, memory(), &loop));
  rn_channel_t* channel = channel_to(loop, address.data, SECOND / 5);
  waited_t waited = {0};
  start(&waited, channel, "/echo", RN_STR("x"), INT64_MAX);
  int64_t begin = now();
  expect(&waited, RN_CODE_UNAVAILABLE, "silent");
  cr_assert_lt(now() - begin, 60 * SECOND);
  rn_channel_destroy(channel);
  rn_loop_destroy(loop);
  rn_strbuf_clear(&address);
  listener->vtable->close(listener);
}

RPC_TEST(garbage_on_the_port) {
  peer_t peer = {0};
  peer_open(&peer, "127.0.0.1:0");
  const rn_env_t* env = rn_env_system();
  const rn_str_t garbage[] = {
      RN_STR("GET / HTTP/1.1\r\n\r\n"), RN_STR("\0\0\0\0\0\0\0\0\0"),
      RN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x01\x05\0\0\0\x01garbage"),
      RN_STR(
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x05\x01\x05\0\0\0\x01zzzzz")};
  for (size_t i = 0; i < sizeof garbage / sizeof *garbage; ++i) {
    rn_socket_t* socket = NULL;
    char bytes[4096];
    size_t size = 1;
    OK(env->net->connect(env->net_self, peer.address, now() + 20 * SECOND, memory(), &socket));
    OK(rn_net_write_all(socket, garbage[i], now() + 20 * SECOND));
    while (size) {  // until the server hangs up
      rn_status_t status =
          socket->vtable->read(socket, bytes, sizeof bytes, now() + 10 * SECOND, &size);
      bool is_reset = rn_status_code(status) == RN_CODE_UNAVAILABLE;
      cr_assert(rn_ok(status) || is_reset, "%zu: %s", i, rn_status_message(status));
      rn_status_free(status);
      if (is_reset) break;
    }
    socket->vtable->close(socket);
  }
  rn_channel_t* channel = channel_to(peer.loop, peer.address, 0);
  waited_t waited = {0};
  start(&waited, channel, "/echo", RN_STR("alive"), INT64_MAX);
  OK(wait_for(&waited));
  waited_clear(&waited);
  rn_channel_destroy(channel);
  peer_close(&peer);
}

// Stream sockets: both ends, deadlines, peers that disappear.
#include "base/net.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/status.h"

#define NET_TEST(name) Test(net, name, .timeout = 60)

static const rn_env_t* env(void) { return rn_env_system(); }
static int64_t in_ms(int64_t ms) { return env()->now_ns(env()->self) + ms * 1000000; }
static rn_socket_t* listen_at(const char* address, rn_strbuf_t* out_address) {
  rn_socket_t* listener = NULL;
  OK(env()->net->listen(env()->net_self, address, rn_allocator_system(), &listener));
  rn_strbuf_init(out_address, rn_allocator_system());
  OK(listener->vtable->address(listener, out_address));
  return listener;
}
static rn_socket_t* connect_to(const char* address) {
  rn_socket_t* stream = NULL;
  OK(env()->net->connect(env()->net_self, address, in_ms(10000), rn_allocator_system(), &stream));
  return stream;
}

#define MANY (4 << 20)
static void* echo_main(void* arg) {
  rn_socket_t* listener = arg;
  rn_socket_t* stream = NULL;
  OK(listener->vtable->accept(listener, in_ms(10000), &stream));
  static char piece[8192];
  size_t got;
  for (;;) {
    OK(stream->vtable->read(stream, piece, sizeof piece, in_ms(10000), &got));
    if (got == 0) break;
    OK(rn_net_write_all(stream, rn_str_n(piece, got), in_ms(10000)));
  }
  stream->vtable->close(stream);
  return NULL;
}
static void* send_main(void* arg) {
  static char data[MANY];
  for (size_t i = 0; i < MANY; ++i) data[i] = (char)(i * 7 + i / 251);
  OK(rn_net_write_all(arg, rn_str_n(data, MANY), in_ms(20000)));
  return NULL;
}
static void exchange(const char* where) {
  rn_strbuf_t address;
  rn_socket_t* listener = listen_at(where, &address);
  pthread_t echo, sender;
  pthread_create(&echo, NULL, echo_main, listener);
  rn_socket_t* stream = connect_to(address.data);
  pthread_create(&sender, NULL, send_main, stream);
  static char back[MANY];
  OK(rn_net_read_all(stream, back, MANY, in_ms(20000)));
  for (size_t i = 0; i < MANY; ++i) cr_assert_eq(back[i], (char)(i * 7 + i / 251));
  pthread_join(sender, NULL);
  stream->vtable->close(stream);
  pthread_join(echo, NULL);
  listener->vtable->close(listener);
  rn_strbuf_clear(&address);
}
NET_TEST(tcp) { exchange("127.0.0.1:0"); }
NET_TEST(by_name) { exchange("localhost:0"); }
NET_TEST(unix_sockets) {
  char path[100];
  snprintf(path, sizeof path, "unix:/tmp/rn_net_test_%d", (int)getpid());
  exchange(path);
  cr_assert_neq(access(path + 5, F_OK), 0);  // the listener's name goes with it
  rn_socket_t* stream = NULL;
  FAILS(env()->net->connect(env()->net_self, path, RN_FOREVER, rn_allocator_system(), &stream),
        NOT_FOUND);
}

// A path is taken over, from a process that was killed or still runs; its old listener does not
// remove the new one's socket, and a file of another kind stays.
NET_TEST(unix_sockets_are_replaced) {
  char path[100];
  snprintf(path, sizeof path, "unix:/tmp/rn_net_test_%d", (int)getpid());
  rn_socket_t *first = NULL, *second = NULL, *stream = NULL;
  OK(env()->net->listen(env()->net_self, path, rn_allocator_system(), &first));
  OK(env()->net->listen(env()->net_self, path, rn_allocator_system(), &second));
  first->vtable->close(first);
  OK(env()->net->connect(env()->net_self, path, RN_FOREVER, rn_allocator_system(), &stream));
  stream->vtable->close(stream);
  second->vtable->close(second);
  cr_assert_neq(access(path + 5, F_OK), 0);
  FILE* file = fopen(path + 5, "w");
  fclose(file);
  rn_status_t status = env()->net->listen(env()->net_self, path, rn_allocator_system(), &first);
  cr_assert(!rn_ok(status));
  rn_status_free(status);
  cr_assert_eq(unlink(path + 5), 0);
}

NET_TEST(deadlines) {
  rn_strbuf_t address;
  rn_socket_t *listener = listen_at("127.0.0.1:0", &address), *server = NULL;
  int64_t start = env()->now_ns(env()->self);
  FAILS(listener->vtable->accept(listener, RN_AT_ONCE, &server), DEADLINE_EXCEEDED);
  FAILS(listener->vtable->accept(listener, in_ms(30), &server), DEADLINE_EXCEEDED);
  cr_assert_geq(env()->now_ns(env()->self) - start, 30000000);
  rn_socket_t* client = connect_to(address.data);
  OK(listener->vtable->accept(listener, in_ms(10000), &server));
  char byte;
  size_t got;
  FAILS(client->vtable->read(client, &byte, 1, RN_AT_ONCE, &got), DEADLINE_EXCEEDED);
  FAILS(client->vtable->read(client, &byte, 1, in_ms(20), &got), DEADLINE_EXCEEDED);
  // Nobody reads: writing stops when what lies between is full.
  static char data[1 << 16];
  rn_status_t status;
  int64_t total = 0;
  do {
    status = client->vtable->write(client, data, sizeof data, RN_AT_ONCE, &got);
    total += (int64_t)got;
  } while (rn_ok(status) && total < (64 << 20));
  FAILS(status, DEADLINE_EXCEEDED);
  FAILS(client->vtable->write(client, data, sizeof data, in_ms(20), &got), DEADLINE_EXCEEDED);
  server->vtable->close(server);
  client->vtable->close(client);
  listener->vtable->close(listener);
  rn_strbuf_clear(&address);
}

NET_TEST(ends) {
  rn_strbuf_t address;
  rn_socket_t *listener = listen_at("127.0.0.1:0", &address), *server = NULL;
  rn_socket_t* client = connect_to(address.data);
  OK(listener->vtable->accept(listener, in_ms(10000), &server));
  OK(rn_net_write_all(server, RN_STR("abc"), in_ms(10000)));
  server->vtable->close(server);
  char bytes[8];
  size_t got;
  FAILS(rn_net_read_all(client, bytes, 8, in_ms(10000)), UNAVAILABLE);
  OK(client->vtable->read(client, bytes, 8, in_ms(10000), &got));
  cr_assert_eq(got, 0);
  // The peer is gone: one write may still be taken, a later one is told.
  rn_status_t status;
  do {
    status = client->vtable->write(client, "x", 1, in_ms(10000), &got);
  } while (rn_ok(status));
  FAILS(status, UNAVAILABLE);
  client->vtable->close(client);
  listener->vtable->close(listener);
  FAILS(env()->net->connect(env()->net_self, address.data, in_ms(10000), rn_allocator_system(),
                            &client),
        UNAVAILABLE);
  cr_assert_null(client);
  rn_strbuf_clear(&address);
}

NET_TEST(addresses_that_are_none) {
  static const char* const bad[] = {"", "localhost", "localhost:", "127.0.0.1:999999x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    rn_socket_t* socket = NULL;
    rn_status_t status =
        env()->net->listen(env()->net_self, bad[i], rn_allocator_system(), &socket);
    cr_assert(!rn_ok(status), "'%s'", bad[i]);
    cr_assert_null(socket);
    rn_status_free(status);
  }
  rn_strbuf_t address;
  rn_socket_t *listener = listen_at("127.0.0.1:0", &address), *other = NULL;
  rn_status_t status =
      env()->net->listen(env()->net_self, address.data, rn_allocator_system(), &other);
  cr_assert_not(rn_ok(status));
  cr_assert(strstr(rn_status_message(status), "; Address already in use"), "%s",
            rn_status_message(status));
  rn_status_free(status);
  listener->vtable->close(listener);
  rn_strbuf_clear(&address);
}

static void* wait_main(void* arg) {
  rn_socket_t* socket = arg;
  char byte;
  size_t got = 1;
  rn_status_t status = socket->vtable->read(socket, &byte, 1, RN_FOREVER, &got);
  bool is_over = got == 0 && (rn_ok(status) || rn_status_code(status) == RN_CODE_CANCELLED);
  rn_status_free(status);
  return is_over ? arg : NULL;
}
static void* accept_main(void* arg) {
  rn_socket_t *listener = arg, *stream = NULL;
  rn_status_t status = listener->vtable->accept(listener, RN_FOREVER, &stream);
  bool is_over = rn_status_code(status) == RN_CODE_CANCELLED;
  rn_status_free(status);
  return is_over ? arg : NULL;
}
NET_TEST(shutdown_wakes) {
  rn_socket_t *a, *b;
  OK(env()->net->pair(env()->net_self, rn_allocator_system(), &a, &b));
  rn_strbuf_t address;
  rn_socket_t* listener = listen_at("127.0.0.1:0", &address);
  pthread_t reader, acceptor;
  pthread_create(&reader, NULL, wait_main, a);
  pthread_create(&acceptor, NULL, accept_main, listener);
  usleep(20000);
  a->vtable->shutdown(a);
  listener->vtable->shutdown(listener);
  void* woken;
  pthread_join(reader, &woken);
  cr_assert_not_null(woken);
  pthread_join(acceptor, &woken);
  cr_assert_not_null(woken);
  a->vtable->close(a);
  b->vtable->close(b);
  listener->vtable->close(listener);
  rn_strbuf_clear(&address);
}

NET_TEST(pollers) {
  enum { PAIRS = 20 };
  rn_socket_t *a[PAIRS], *b[PAIRS];
  rn_poller_t* poller;
  OK(env()->net->poller(env()->net_self, rn_allocator_system(), &poller));
  for (int i = 0; i < PAIRS; ++i) {
    OK(env()->net->pair(env()->net_self, rn_allocator_system(), &a[i], &b[i]));
    cr_assert(a[i]->vtable->is_local(a[i]));
    OK(poller->vtable->add(poller, a[i], true, false, &a[i]));
  }
  rn_polled_t ready[PAIRS];
  size_t count = 1;
  OK(poller->vtable->wait(poller, ready, PAIRS, in_ms(20), &count));
  cr_assert_eq(count, 0);
  OK(rn_net_write_all(b[7], RN_STR("x"), RN_FOREVER));
  OK(rn_net_write_all(b[8], RN_STR("x"), RN_FOREVER));
  b[9]->vtable->shutdown(b[9]);
  poller->vtable->change(poller, a[3], true, true, &a[3]);
  poller->vtable->change(poller, a[8], false, false, &a[8]);
  poller->vtable->change(poller, a[9], false, false, &a[9]);  // failures are reported anyway
  for (int turn = 0; turn < 2; ++turn) {
    OK(poller->vtable->wait(poller, ready, PAIRS, RN_FOREVER, &count));
    cr_assert_eq(count, 3);
    for (size_t i = 0; i < count; ++i) {
      rn_socket_t** socket = ready[i].tag;
      cr_assert(socket == &a[3] || socket == &a[7] || socket == &a[9]);
      cr_assert_eq(ready[i].can_read, socket != &a[3]);
      cr_assert_eq(ready[i].can_write, socket != &a[7]);
    }
  }
  OK(poller->vtable->wait(poller, ready, 1, RN_FOREVER, &count));
  cr_assert_eq(count, 1);
  for (int i = 0; i < PAIRS; ++i) {
    poller->vtable->remove(poller, a[i]);
    a[i]->vtable->close(a[i]);
    b[i]->vtable->close(b[i]);
  }
  OK(poller->vtable->wait(poller, ready, PAIRS, RN_AT_ONCE, &count));
  cr_assert_eq(count, 0);
  poller->vtable->close(poller);
}

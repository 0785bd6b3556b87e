// Doors of new connections: see door.h.
#include "net/door.h"

#include "base/container.h"

#define TIMEOUT_NS INT64_C(5000000000)  // for a whole request, and for reading its response
#define LINGER_NS INT64_C(200000000)
#define MAX_DOORS 1024

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { kPreface = sizeof preface - 1 };

struct rn_door_t {
  rn_doors_t* doors;
  rn_door_t *previous, *next;
  rn_watch_t watch;
  rn_timer_t timer;
  rn_socket_t* socket;  // Owned
  // After a refusal, reading continues for a while, so that the peer receives the reason.
  enum { SHAKES_HANDS, READS, WAITS, WRITES, LINGERS } state;
  bool is_refused, pages_only;
  rn_strbuf_t output;
  size_t written, size;
  char input[RN_HTTP1_MAX + 1];
};

static void door_free(rn_door_t* door) {
  rn_doors_t* doors = door->doors;
  rn_loop_unwatch(doors->loop, &door->watch);
  rn_loop_clear_timer(doors->loop, &door->timer);
  if (door->socket) door->socket->vtable->close(door->socket);
  if (door->previous)
    door->previous->next = door->next;
  else
    doors->first = door->next;
  if (door->next)
    door->next->previous = door->previous;
  else
    doors->last = door->previous;
  doors->count--;
  rn_strbuf_clear(&door->output);
  RN_FREE(doors->allocator, door);
}

void rn_doors_refused(rn_doors_t* doors, const char* why) {
  const rn_env_t* env = rn_loop_env(doors->loop);
  int64_t left_out;
  doors->refused++;
  if (!rn_log_limit_says(&doors->log, env, &left_out)) return;
  rn_log(env, RN_LOG_WARNING, "refused a connection: %s (and %lld before)", why,
         (long long)left_out);
}

bool rn_doors_evict(rn_doors_t* doors) {
  rn_door_t* door = doors->last;
  while (door && door->state != SHAKES_HANDS && door->state != READS) door = door->previous;
  if (!door) return false;
  rn_doors_refused(doors, "it sent nothing, and its slot was needed");
  door_free(door);
  return true;
}

static void consider(rn_door_t* door);

static void on_timer(rn_timer_t* timer) {
  rn_door_t* door = RN_CONTAINER_OF(timer, rn_door_t, timer);
  if (door->state == WAITS) {
    consider(door);
    return;
  }
  if (door->state == SHAKES_HANDS)
    rn_doors_refused(door->doors, "its TLS handshake did not end in time");
  else if (door->state == READS)
    rn_doors_refused(door->doors,
                     door->size ? "its request did not end in time" : "it sent nothing");
  door_free(door);
}

static void set_timer(rn_door_t* door, int64_t ns) {
  rn_loop_t* loop = door->doors->loop;
  rn_status_free(rn_loop_set_timer(loop, &door->timer, rn_loop_now(loop) + ns));
}

// Writes as much as the socket takes; frees the door when all is written.
static void write_on(rn_door_t* door) {
  size_t put = 0;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && door->written < door->output.size) {
    status = door->socket->vtable->write(door->socket, door->output.data + door->written,
                                         door->output.size - door->written, RN_AT_ONCE, &put);
    if (rn_ok(status)) door->written += put;
  }
  bool is_blocked = rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED;
  rn_loop_want(door->doors->loop, &door->watch, true, is_blocked);
  bool is_over = !is_blocked && (!rn_ok(status) || !door->is_refused);
  rn_status_free(status);
  if (is_over) {
    door_free(door);
  } else if (!is_blocked && door->state != LINGERS) {
    door->state = LINGERS;
    set_timer(door, LINGER_NS);
  }
}

static void answer(rn_door_t* door, const rn_http1_answer_t* answer, bool is_head) {
  rn_http1_print(answer, is_head, &door->output);
  if (door->output.failed) {
    door_free(door);
    return;
  }
  door->state = WRITES;
  set_timer(door, TIMEOUT_NS);
  write_on(door);
}

static void turn_away(rn_door_t* door, int code, const char* why) {
  rn_http1_answer_t page = {.code = code};
  rn_strbuf_init(&page.body, door->doors->allocator);
  rn_strbuf_printf(&page.body, "%s\n", why);
  rn_doors_refused(door->doors, why);
  door->is_refused = true;
  answer(door, &page, false);
  rn_strbuf_clear(&page.body);
}

static void show_page(rn_door_t* door, const rn_http1_request_t* request) {
  const rn_doors_t* doors = door->doors;
  rn_http1_answer_t page = {.code = 404};
  rn_strbuf_init(&page.body, doors->allocator);
  bool is_head = rn_str_is(request->method, "HEAD");
  if (doors->page) doors->page(doors->page_self, request, door->socket, &page);
  if (page.again_ns > 0) {
    door->state = WAITS;
    set_timer(door, page.again_ns);
  } else {
    answer(door, &page, is_head);
  }
  rn_strbuf_clear(&page.body);
}

static void hand_on(rn_door_t* door, bool is_http2) {
  rn_doors_t* doors = door->doors;
  rn_socket_t* socket = door->socket;
  rn_str_t first = rn_str_n(door->input, door->size);
  rn_loop_unwatch(doors->loop, &door->watch);
  door->socket = NULL;
  if (is_http2)
    doors->http2(doors->self, socket, first, rn_tls_peer(socket));
  else
    doors->http1(doors->http1_self, socket, first, rn_tls_peer(socket));
  door_free(door);
}

// Handles what the peer has sent so far.
static void consider(rn_door_t* door) {
  size_t size = door->size < kPreface ? door->size : kPreface;
  if (door->doors->http2 && memcmp(door->input, preface, size) == 0) {
    if (size == kPreface && door->pages_only)
      turn_away(door, 503, "no descriptors are left");
    else if (size == kPreface)
      hand_on(door, true);
    return;
  }
  if (door->doors->http1) {
    hand_on(door, false);
    return;
  }
  rn_http1_request_t request;
  switch (rn_http1_parse(rn_str_n(door->input, door->size), RN_HTTP1_MAX, &request)) {
    case RN_HTTP1_MORE:
      return;
    case RN_HTTP1_WHOLE:
      show_page(door, &request);
      return;
    case RN_HTTP1_TOO_LARGE:
      turn_away(door, 431, "its request is too large");
      return;
    case RN_HTTP1_HAS_BODY:
      turn_away(door, 413, "its request has a body");
      return;
    case RN_HTTP1_UNKNOWN:
    case RN_HTTP1_BAD:
      turn_away(door, 400,
                door->size > 1 && door->input[0] == 0x16 && door->input[1] == 3
                    ? "it speaks TLS, but this task was started without TLS"
                    : "it speaks neither HTTP/2 nor HTTP/1");
      return;
  }
}

static void shake_hands(rn_door_t* door) {
  bool wants_write = false;
  rn_status_t status = rn_tls_handshake(door->socket, RN_AT_ONCE, &wants_write);
  rn_loop_want(door->doors->loop, &door->watch, true, wants_write);
  if (rn_ok(status)) {
    door->state = READS;
  } else if (rn_status_code(status) != RN_CODE_DEADLINE_EXCEEDED) {
    rn_doors_refused(door->doors, rn_status_message(status));
    door_free(door);
  }
  rn_status_free(status);
}

static void read_on(rn_door_t* door) {
  char unused[4096];
  bool lingers = door->state != READS;
  char* to = lingers ? unused : door->input + door->size;
  size_t room = lingers ? sizeof unused : sizeof door->input - door->size, got = 0;
  rn_status_t status = door->socket->vtable->read(door->socket, to, room, RN_AT_ONCE, &got);
  bool is_over = rn_ok(status) ? got == 0 : rn_status_code(status) != RN_CODE_DEADLINE_EXCEEDED;
  rn_status_free(status);
  if (is_over) {
    if (door->state == READS && door->size)
      rn_doors_refused(door->doors, "it closed during its request");
    door_free(door);
  } else if (!lingers && got) {
    door->size += got;
    consider(door);
  }
}

static void on_ready(rn_watch_t* watch, bool can_read, bool can_write) {
  rn_door_t* door = RN_CONTAINER_OF(watch, rn_door_t, watch);
  if (door->state == SHAKES_HANDS)
    shake_hands(door);
  else if (can_read)
    read_on(door);
  else if (can_write)
    write_on(door);
}

static rn_status_t open_door(rn_doors_t* doors, rn_socket_t* socket, rn_door_t** out) {
  rn_door_t* door = NULL;
  bool is_full = doors->count >= (doors->max ? doors->max : MAX_DOORS);
  rn_status_t status = is_full && !rn_doors_evict(doors)
                           ? rn_resource_exhausted("too many others are being served")
                           : RN_NEW(doors->allocator, &door);
  if (!rn_ok(status)) {
    socket->vtable->close(socket);
    return status;
  }
  *out = door;
  door->doors = doors;
  door->next = doors->first;
  if (door->next)
    door->next->previous = door;
  else
    doors->last = door;
  doors->first = door;
  doors->count++;
  rn_strbuf_init(&door->output, doors->allocator);
  door->state = doors->tls ? SHAKES_HANDS : READS;
  if (doors->tls)
    RN_RETURN_IF_ERROR(rn_tls_accept(doors->tls, socket, doors->http2 != NULL, &door->socket));
  else
    door->socket = socket;
  door->watch = (rn_watch_t){.socket = door->socket, .ready = on_ready};
  door->timer.fn = on_timer;
  RN_RETURN_IF_ERROR(
      rn_loop_set_timer(doors->loop, &door->timer, rn_loop_now(doors->loop) + TIMEOUT_NS));
  return rn_loop_watch(doors->loop, &door->watch);
}

void rn_doors_open(rn_doors_t* doors, rn_socket_t* socket, bool pages_only) {
  rn_door_t* door = NULL;
  rn_status_t status = open_door(doors, socket, &door);
  if (door) door->pages_only = pages_only;
  if (rn_ok(status)) return;
  rn_doors_refused(doors, rn_status_message(status));
  rn_status_free(status);
  if (door) door_free(door);
}

void rn_doors_close(rn_doors_t* doors) {
  while (doors->first) door_free(doors->first);
}

// See load_gen.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // epoll_pwait2
#endif
#include "cli/load_gen.h"

#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "base/thread.h"

#define SECOND_NS INT64_C(1000000000)

int64_t rn_load_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static rn_status_t connect_unix(const char* path, int* out_fd) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return rn_invalid_argument("%s is too long", path);
  strcpy(address.sun_path, path);
  *out_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (*out_fd >= 0 && connect(*out_fd, (struct sockaddr*)&address, sizeof address) == 0)
    return RN_OK;
  rn_status_t status = rn_unavailable("%s: %s", path, strerror(errno));
  if (*out_fd >= 0) close(*out_fd);
  return status;
}

static rn_status_t connect_tcp(const char* address, int* out_fd) {
  char host[256];
  const char* colon = strrchr(address, ':');
  if (!colon || (size_t)(colon - address) >= sizeof host)
    return rn_invalid_argument("'%s' is not host:port", address);
  bool has_brackets = address[0] == '[' && colon[-1] == ']';
  snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2 * has_brackets,
           address + has_brackets);
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  int error = getaddrinfo(host, colon + 1, &hints, &found);
  if (error) return rn_unavailable("%s: %s", address, gai_strerror(error));
  rn_status_t status = rn_unavailable("%s has no address", address);
  for (const struct addrinfo* at = found; at && !rn_ok(status); at = at->ai_next) {
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol), one = 1;
    rn_status_free(status);
    status = RN_OK;
    if (fd < 0 || connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      status = rn_unavailable("%s: %s", address, strerror(errno));
      if (fd >= 0) close(fd);
      continue;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *out_fd = fd;
  }
  freeaddrinfo(found);
  return status;
}

rn_status_t rn_load_connect(const char* address, int* out_fd) {
  return strncmp(address, "unix:", 5) == 0 ? connect_unix(address + 5, out_fd)
                                           : connect_tcp(address, out_fd);
}

static int64_t gap(rn_load_t* load) {
  double mean = 1e9 / load->options->rate;
  return (int64_t)(load->options->is_uniform ? mean
                                             : -mean * log(1 - rn_random_unit(&load->random)));
}

static void watch(rn_load_t* load, rn_load_link_t* link, int operation) {
  struct epoll_event event = {.events = EPOLLIN | (link->wants_write ? EPOLLOUT : 0u),
                              .data.ptr = link};
  epoll_ctl(load->epoll, operation, link->fd, &event);
}

void rn_load_answered(rn_load_link_t* link, int64_t arrived_ns, int64_t sent_ns, int code) {
  rn_load_t* load = link->load;
  rn_load_result_t* result = load->result;
  int64_t now = rn_load_now();
  link->running--;
  if (arrived_ns < load->measured_ns || arrived_ns >= load->end_ns) return;
  int ok = load->options->is_grpc ? 0 : 200;
  result->answered++;
  if (code >= 0 && code < 600) result->codes[code]++;
  bool is_late = load->options->deadline_ns && now - arrived_ns > load->options->deadline_ns;
  if (is_late) result->late++;
  if (code != ok) return;
  if (!is_late) result->ok++;
  rn_latencies_add(&result->latency, now - arrived_ns);
  rn_latencies_add(&result->service, now - sent_ns);
}

static rn_status_t open_link(rn_load_t* load, size_t place) {
  rn_load_link_t* link = NULL;
  RN_RETURN_IF_ERROR(load->options->is_grpc ? rn_load_grpc_create(load, &link)
                                            : rn_load_http_create(load, &link));
  load->links.items[place] = link;
  watch(load, link, EPOLL_CTL_ADD);
  return RN_OK;
}

// Makes a new connection in the place of one that has broken; its requests are lost.
static void replace_link(rn_load_t* load, rn_load_link_t* link) {
  size_t place = 0;
  while (load->links.items[place] != link) ++place;
  load->result->broken++;
  load->links.items[place] = NULL;
  link->vtable->destroy(link);
  rn_status_free(open_link(load, place));
}

static bool measures(const rn_load_t* load, int64_t arrived_ns) {
  return arrived_ns >= load->measured_ns && arrived_ns < load->end_ns;
}

static void send_on(rn_load_t* load, rn_load_link_t* link, int64_t arrived_ns) {
  bool wanted_write = link->wants_write;
  link->running++;
  if (measures(load, arrived_ns)) load->result->sent++;
  link->vtable->send(link, load->next_payload, arrived_ns);
  load->next_payload = (load->next_payload + 1) % load->options->payload_count;
  if (link->wants_write != wanted_write) watch(load, link, EPOLL_CTL_MOD);
}

// The next link with room, round robin; NULL if all are full.
static rn_load_link_t* free_link(rn_load_t* load) {
  for (size_t i = 0; i < load->links.count; ++i) {
    rn_load_link_t* link = load->links.items[load->next_link];
    load->next_link = (load->next_link + 1) % load->links.count;
    if (link && link->running < link->room) return link;
  }
  return NULL;
}

static rn_status_t take_arrivals(rn_load_t* load, int64_t now) {
  while (load->next_ns <= now && load->next_ns < load->end_ns) {
    RN_RETURN_IF_ERROR(rn_vec_push(&load->waiting, load->options->allocator, load->next_ns));
    load->next_ns += gap(load);
  }
  return RN_OK;
}

static void send_waiting(rn_load_t* load) {
  for (rn_load_link_t* link; load->waiting_first < load->waiting.count && (link = free_link(load));)
    send_on(load, link, load->waiting.items[load->waiting_first++]);
  if (load->waiting_first < load->waiting.count) return;
  load->waiting.count = load->waiting_first = 0;
}

static void send_closed(rn_load_t* load, int64_t now) {
  for (rn_load_link_t* link; now < load->end_ns && (link = free_link(load));)
    send_on(load, link, now);
}

static void wait_for(rn_load_t* load, int64_t until_ns) {
  struct epoll_event events[256];
  int64_t left = until_ns - rn_load_now();
  if (left < 0) left = 0;
  struct timespec time = {.tv_sec = left / SECOND_NS, .tv_nsec = left % SECOND_NS};
  int count = epoll_pwait2(load->epoll, events, 256, &time, NULL);
  if (count < 0 && errno == ENOSYS)
    count = epoll_wait(load->epoll, events, 256, (int)((left + 999999) / 1000000));
  for (int i = 0; i < count; ++i) {
    rn_load_link_t* link = events[i].data.ptr;
    bool wanted_write = link->wants_write;
    if (!link->vtable->ready(link, events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR),
                             events[i].events & EPOLLOUT))
      replace_link(load, link);
    else if (link->wants_write != wanted_write)
      watch(load, link, EPOLL_CTL_MOD);
  }
}

static bool has_running(const rn_load_t* load) {
  for (size_t i = 0; i < load->links.count; ++i)
    if (load->links.items[i] && load->links.items[i]->running) return true;
  return load->waiting_first < load->waiting.count;
}

// How long answers may take after the last request was due.
#define GRACE_NS (10 * SECOND_NS)

static rn_status_t measure(rn_load_t* load) {
  int64_t progress_ns = load->begun_ns + SECOND_NS, now = load->begun_ns;
  while (now < load->end_ns || (has_running(load) && now < load->end_ns + GRACE_NS)) {
    if (load->options->rate > 0) {
      RN_RETURN_IF_ERROR(take_arrivals(load, now));
      send_waiting(load);
    } else {
      send_closed(load, now);
    }
    int64_t until = now < load->end_ns ? load->end_ns : load->end_ns + GRACE_NS;
    if (load->options->rate > 0 && load->next_ns < until && now < load->end_ns)
      until = load->next_ns;
    if (progress_ns < until) until = progress_ns;
    wait_for(load, until);
    now = rn_load_now();
    if (now < progress_ns) continue;
    progress_ns += SECOND_NS;
    if (load->options->progress) load->options->progress(load->options->self, load);
  }
  load->result->unsent = load->waiting.count - load->waiting_first;
  return RN_OK;
}

static rn_status_t set_up(rn_load_t* load) {
  const rn_load_options_t* options = load->options;
  load->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (load->epoll < 0) return rn_unavailable("epoll: %s", strerror(errno));
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&load->links, options->allocator, (size_t)options->connections));
  while (load->links.count < (size_t)options->connections) {
    load->links.items[load->links.count++] = NULL;
    RN_RETURN_IF_ERROR(open_link(load, load->links.count - 1));
  }
  load->begun_ns = load->next_ns = rn_load_now();
  load->measured_ns = load->begun_ns + options->warmup_ns;
  load->end_ns = load->measured_ns + options->duration_ns;
  return RN_OK;
}

rn_status_t rn_load_run(const rn_load_options_t* options, rn_load_result_t* out) {
  memset(out, 0, sizeof *out);
  rn_load_t load = {.options = options, .result = out, .random = options->seed, .epoll = -1};
  // Where the server computes on the same processors, this thread would otherwise send and hear
  // late by up to a time slice of a thread that computes.
  rn_thread_be_prompt();
  rn_status_t status = set_up(&load);
  if (rn_ok(status)) status = measure(&load);
  out->seconds = (double)options->duration_ns / 1e9;
  for (size_t i = 0; i < load.links.count; ++i)
    if (load.links.items[i]) load.links.items[i]->vtable->destroy(load.links.items[i]);
  rn_vec_free(&load.links, options->allocator);
  rn_vec_free(&load.waiting, options->allocator);
  if (load.epoll >= 0) close(load.epoll);
  return status;
}

// Queries and shows the tasks of a cluster: see cluster_view.h.
#include "cli/cluster_view.h"

#include <pthread.h>
#include <stdio.h>

#include "cli/color.h"
#include "cli/json.h"

#define TIMEOUT_NS INT64_C(2000000000)
#define MAX_THREADS 32

rn_status_t rn_cli_view_open(rn_cli_view_t* view, rn_cli_t* cli, const rn_cli_cluster_t* cluster,
                             rn_tls_t* tls) {
  *view = (rn_cli_view_t){.cli = cli, .cluster = cluster, .tls = tls};
  size_t count = cluster->tasks.count;
  RN_RETURN_IF_ERROR(
      rn_alloc_array(cli->allocator, count, sizeof *view->before, (void**)&view->before));
  return rn_alloc_array(cli->allocator, count, sizeof *view->now, (void**)&view->now);
}

void rn_cli_view_close(rn_cli_view_t* view) {
  if (!view->cli) return;
  size_t count = view->cluster->tasks.count;
  for (size_t i = 0; i < count; ++i) {
    if (view->before) json_decref(view->before[i].status);
    if (view->now) json_decref(view->now[i].status);
  }
  RN_FREE_ARRAY(view->cli->allocator, view->before, count);
  RN_FREE_ARRAY(view->cli->allocator, view->now, count);
}

static void ask(const rn_cli_view_t* view, rn_cli_sample_t* sample) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, view->cli->allocator);
  int code = 0;
  rn_cli_http_t request = {.env = view->cli->env,
                           .allocator = view->cli->allocator,
                           .tls = view->tls,
                           .token_file = rn_cli_text(view->cli, "--token"),
                           .address = sample->task->address.data,
                           .method = "GET",
                           .path = "/statusz?format=json",
                           .timeout_ns = TIMEOUT_NS};
  rn_status_t status = rn_cli_http(&request, &code, &body);
  sample->status = rn_ok(status) && code == 200 ? json_loadb(body.data, body.size, 0, NULL) : NULL;
  sample->at_ns = view->cli->env->now_ns(view->cli->env->self);
  const char* why = rn_ok(status) ? "it is not a Runnel task" : rn_status_message(status);
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED)
    why = "it does not answer: no response for 2 s";
  if (!sample->status) snprintf(sample->why, sizeof sample->why, "%s", why);
  rn_status_free(status);
  rn_strbuf_clear(&body);
}

typedef struct asking_t {
  const rn_cli_view_t* view;
  _Atomic size_t next;
} asking_t;

static void* ask_some(void* arg) {
  asking_t* asking = arg;
  for (size_t i; (i = asking->next++) < asking->view->cluster->tasks.count;)
    ask(asking->view, &asking->view->now[i]);
  return NULL;
}

void rn_cli_view_ask(rn_cli_view_t* view) {
  size_t count = view->cluster->tasks.count, threads = 0;
  rn_cli_sample_t* old = view->before;
  view->before = view->now;
  view->now = old;
  for (size_t i = 0; i < count; ++i) {
    json_decref(view->now[i].status);
    view->now[i] = (rn_cli_sample_t){.task = &view->cluster->tasks.items[i]};
  }
  asking_t asking = {.view = view};
  pthread_t ids[MAX_THREADS];
  while (threads < MAX_THREADS && threads + 1 < count &&
         pthread_create(&ids[threads], NULL, ask_some, &asking) == 0)
    ++threads;
  ask_some(&asking);
  for (size_t i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
}

size_t rn_cli_view_down(const rn_cli_view_t* view) {
  size_t down = 0;
  for (size_t i = 0; i < view->cluster->tasks.count; ++i) down += !view->now[i].status;
  return down;
}

static double number(const json_t* object, const char* key) {
  return json_number_value(json_object_get(object, key));
}
static const char* text(const json_t* object, const char* key) {
  const char* value = json_string_value(json_object_get(object, key));
  return value ? value : "?";
}

// The rate per second between two samples of one incarnation; 0 if there is only one sample.
static double rate(const rn_cli_sample_t* before, const rn_cli_sample_t* now, double from,
                   double to) {
  double seconds = (double)(now->at_ns - before->at_ns) * 1e-9;
  if (!before->status || !now->status || seconds <= 0 || to < from) return 0;
  if (strcmp(text(before->status, "incarnation"), text(now->status, "incarnation")) != 0) return 0;
  return (to - from) / seconds;
}

// The lease of |task| as the other tasks hold it: the one that ends first.
static void find_lease(const rn_cli_view_t* view, const char* task, char* out, size_t room) {
  double least = -1;
  snprintf(out, room, "-");
  for (size_t i = 0; i < view->cluster->tasks.count; ++i) {
    size_t index;
    json_t* peer;
    json_array_foreach(json_object_get(view->now[i].status, "peers"), index, peer) {
      if (strcmp(text(peer, "task"), task) != 0 || strcmp(text(peer, "state"), "unused") == 0)
        continue;
      double left = number(peer, "lease_left_s");
      if (least >= 0 && left >= least) continue;
      least = left;
      if (strcmp(text(peer, "state"), "lost") == 0)
        snprintf(out, room, "lost");
      else
        snprintf(out, room, "%.1f s", left);
    }
  }
}

static void print_duration(double seconds, char* out, size_t room) {
  int64_t whole = (int64_t)seconds;
  if (whole < 100)
    snprintf(out, room, "%.1fs", seconds);
  else if (whole < 3600 * 24)
    snprintf(out, room, "%lld:%02lld:%02lld", (long long)(whole / 3600),
             (long long)(whole / 60 % 60), (long long)(whole % 60));
  else
    snprintf(out, room, "%lldd%02lldh", (long long)(whole / 86400), (long long)(whole / 3600 % 24));
}

void rn_cli_view_print_tasks(const rn_cli_view_t* view, FILE* out) {
  const rn_cli_t* cli = view->cli;
  const char* off = rn_cli_color(cli, out, RN_COLOR_OFF);
  fprintf(out, "%s%-16s %-22s %-9s %-16s %9s %8s %9s %9s %7s %9s %7s%s\n",
          rn_cli_color(cli, out, RN_COLOR_BOLD), "TASK", "ADDRESS", "STATE", "INCARNATION", "UP",
          "SESSIONS", "STEPS", "STEPS/S", "CALLS", "MEMORY", "LEASE", off);
  for (size_t i = 0; i < view->cluster->tasks.count; ++i) {
    const rn_cli_sample_t *now = &view->now[i], *before = &view->before[i];
    char name[300], full[340], lease[32], up[32];
    snprintf(name, sizeof name, "%.*s:%d", RN_STR_ARGS(now->task->job), now->task->index);
    snprintf(full, sizeof full, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(now->task->job),
             now->task->index);
    find_lease(view, full, lease, sizeof lease);
    if (!now->status) {
      fprintf(out, "%-16s %-22s %s%-9s%s %s\n", name, now->task->address.data,
              rn_cli_color(cli, out, RN_COLOR_RED), "down", off, now->why);
      continue;
    }
    bool is_other = strcmp(text(now->status, "task"), full) != 0;
    print_duration(number(now->status, "uptime_s"), up, sizeof up);
    double steps = number(now->status, "steps");
    const char* state = text(now->status, "state");
    rn_cli_color_t color = strcmp(state, "ready") == 0 ? RN_COLOR_GREEN : RN_COLOR_YELLOW;
    fprintf(out, "%-16s %-22s %s%-9s%s %-16s %9s %8.0f %9.0f %9.1f %7.0f %6.1f MiB %7s%s%s\n", name,
            now->task->address.data, rn_cli_color(cli, out, color), state, off,
            text(now->status, "incarnation"), up, number(now->status, "sessions"), steps,
            rate(before, now, number(before->status, "steps"), steps),
            number(json_object_get(now->status, "port"), "calls"),
            number(json_object_get(now->status, "memory"), "resident") / 1048576, lease,
            is_other ? "  but it says it is " : "", is_other ? text(now->status, "task") : "");
  }
}

json_t* rn_cli_view_json(const rn_cli_view_t* view) {
  json_t* tasks = json_array();
  for (size_t i = 0; i < view->cluster->tasks.count; ++i) {
    const rn_cli_sample_t *now = &view->now[i], *before = &view->before[i];
    json_t* row = json_pack("{s:o, s:i, s:s, s:s}", "job", rn_cli_json_str(now->task->job), "task",
                            now->task->index, "address", now->task->address.data, "state",
                            now->status ? text(now->status, "state") : "down");
    if (now->status) {
      double steps = number(now->status, "steps");
      json_object_set_new(row, "steps_per_s",
                          json_real(rate(before, now, number(before->status, "steps"), steps)));
      json_object_set(row, "status", now->status);
    } else {
      json_object_set_new(row, "why", rn_cli_json_str(rn_str(now->why)));
    }
    json_array_append_new(tasks, row);
  }
  return json_pack("{s:o}", "tasks", tasks);
}

static const json_t* find_peer(const json_t* status, const char* task) {
  size_t index;
  json_t* peer;
  json_array_foreach(json_object_get(status, "peers"), index, peer) {
    if (strcmp(text(peer, "task"), task) == 0) return peer;
  }
  return NULL;
}

void rn_cli_view_print_pairs(const rn_cli_view_t* view, FILE* out) {
  fprintf(out, "\n%-28s %-28s %-13s %9s %12s %12s %7s %12s\n", "FROM", "TO", "STATE", "LEASE",
          "SENT B/S", "RECEIVED B/S", "CALLS", "QUEUED B");
  for (size_t i = 0; i < view->cluster->tasks.count; ++i) {
    const rn_cli_sample_t *now = &view->now[i], *before = &view->before[i];
    size_t index;
    json_t* peer;
    json_array_foreach(json_object_get(now->status, "peers"), index, peer) {
      if (strcmp(text(peer, "state"), "unused") == 0) continue;
      const json_t* was = find_peer(before->status, text(peer, "task"));
      fprintf(out, "%-28s %-28s %-13s %7.1f s %12.0f %12.0f %7.0f %12.0f\n",
              text(now->status, "task"), text(peer, "task"), text(peer, "state"),
              number(peer, "lease_left_s"),
              rate(before, now, number(was, "out"), number(peer, "out")),
              rate(before, now, number(was, "in"), number(peer, "in")), number(peer, "calls"),
              number(peer, "queued"));
    }
  }
}

void rn_cli_view_print_queues(const rn_cli_view_t* view, FILE* out) {
  bool is_first = true;
  for (size_t i = 0; i < view->cluster->tasks.count; ++i) {
    size_t index;
    json_t* queue;
    json_array_foreach(json_object_get(view->now[i].status, "queues"), index, queue) {
      if (is_first) fprintf(out, "\n%-28s %-44s %9s\n", "TASK", "QUEUE", "ELEMENTS");
      is_first = false;
      fprintf(out, "%-28s %-44s %9.0f\n", text(view->now[i].status, "task"), text(queue, "name"),
              number(queue, "size"));
    }
  }
}

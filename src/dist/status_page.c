// Status pages: see status_page.h.
#include "dist/status_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runnel/version.h"

static const char* const state_names[] = {"ready", "draining"};

// Memory of this process, in bytes, as the operating system reports it; 0 if unknown.
typedef struct memory_t {
  int64_t resident, peak, threads;
} memory_t;

static memory_t memory_now(void) {
  memory_t memory = {0};
  FILE* file = fopen("/proc/self/status", "re");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "VmRSS:", 6) == 0) memory.resident = atoll(line + 6) << 10;
    if (strncmp(line, "VmHWM:", 6) == 0) memory.peak = atoll(line + 6) << 10;
    if (strncmp(line, "Threads:", 8) == 0) memory.threads = atoll(line + 8);
  }
  if (file) fclose(file);
  return memory;
}

static double seconds(int64_t ns) { return (double)ns * 1e-9; }

static const char* peer_state(const rn_peer_view_t* peer) {
  if (!peer->is_used) return "unused";
  if (peer->lease.is_lost) return "lost";
  return peer->channel.is_connected ? "up" : "not connected";
}

// What is left of its lease, in seconds; all of it while no call is under way.
static double lease_left(const rn_task_view_t* view, const rn_peer_view_t* peer) {
  if (!peer->is_used || peer->lease.is_lost) return 0;
  if (!peer->lease.is_busy || !peer->lease.heard_ns) return seconds(view->lease_ns);
  int64_t left = view->lease_ns - (view->now_ns - peer->lease.heard_ns);
  return left > 0 ? seconds(left) : 0;
}

typedef void escape_fn_t(rn_strbuf_t* out, unsigned char c);

static void escape_json(rn_strbuf_t* out, unsigned char c) {
  if (c == '"' || c == '\\')
    rn_strbuf_printf(out, "\\%c", c);
  else if (c < 0x20 || c == 0x7f)
    rn_strbuf_printf(out, "\\u%04x", c);
  else
    rn_strbuf_append_n(out, &c, 1);
}

// Also valid within the quotes of a Prometheus label.
static void escape_html(rn_strbuf_t* out, unsigned char c) {
  if (strchr("<>&\"\\", c) || c < 0x20)
    rn_strbuf_printf(out, "&#%d;", c);
  else
    rn_strbuf_append_n(out, &c, 1);
}

static void put(rn_strbuf_t* out, rn_str_t text, escape_fn_t* escape) {
  for (size_t i = 0; i < text.size; ++i) escape(out, (unsigned char)text.data[i]);
}

static void put_quoted(rn_strbuf_t* out, const char* key, rn_str_t text) {
  rn_strbuf_printf(out, "\"%s\":\"", key);
  put(out, text, escape_json);
  rn_strbuf_printf(out, "\",");
}

static void put_peer_json(const rn_task_view_t* view, const rn_peer_view_t* peer,
                          rn_strbuf_t* out) {
  const rn_channel_stats_t* channel = &peer->channel;
  rn_strbuf_printf(out, "{");
  put_quoted(out, "task", peer->task);
  put_quoted(out, "address", peer->address);
  rn_strbuf_printf(out,
                   "\"state\":\"%s\",\"lease_left_s\":%.3f,\"silent_s\":%.3f,"
                   "\"incarnation\":\"%016llx\",\"losses\":%lld,\"connects\":%lld,\"calls\":%zu,"
                   "\"queued\":%zu,\"in\":%llu,\"out\":%llu}",
                   peer_state(peer), lease_left(view, peer), seconds(channel->silent_ns),
                   (unsigned long long)peer->lease.incarnation, (long long)peer->lease.losses,
                   (long long)channel->connects, channel->calls, channel->queued,
                   (unsigned long long)channel->bytes_in, (unsigned long long)channel->bytes_out);
}

static void put_methods_json(const rn_call_gate_t* gate, rn_strbuf_t* out) {
  bool is_first = true;
  for (int i = 0; i < RN_GATE_METHOD_COUNT; ++i) {
    const rn_call_gate_count_t* count = &gate->counts[i];
    if (!count->started) continue;
    rn_strbuf_printf(out,
                     "%s{\"name\":\"%s\",\"started\":%lld,\"ended\":%lld,\"failed\":%lld,"
                     "\"seconds\":%.6f}",
                     is_first ? "" : ",", rn_call_gate_method_name((rn_call_gate_method_t)i),
                     (long long)count->started, (long long)count->ended, (long long)count->failed,
                     seconds(count->ns));
    is_first = false;
  }
}

void rn_status_page_json(const rn_task_view_t* view, rn_strbuf_t* out) {
  memory_t memory = memory_now();
  const rn_rpc_server_stats_t* port = &view->port;
  rn_strbuf_printf(out, "{");
  put_quoted(out, "task", view->task);
  put_quoted(out, "target", rn_str(view->target));
  rn_strbuf_printf(out,
                   "\"state\":\"%s\",\"tls\":%s,\"version\":\"%s\",\"pid\":%ld,"
                   "\"incarnation\":\"%016llx\",\"uptime_s\":%.3f,\"lease_s\":%.3f,",
                   state_names[view->state], view->is_secure ? "true" : "false", RN_VERSION_STRING,
                   (long)getpid(), (unsigned long long)view->incarnation, seconds(view->uptime_ns),
                   seconds(view->lease_ns));
  rn_strbuf_printf(out,
                   "\"sessions\":%zu,\"worker_sessions\":%zu,\"eager_contexts\":%zu,\"graphs\":%zu,"
                   "\"steps\":%lld,"
                   "\"steps_open\":%zu,\"steps_busy\":%lld,",
                   view->sessions, view->worker.sessions, view->contexts, view->worker.graphs,
                   (long long)view->worker.steps_run, view->worker.steps,
                   (long long)rn_call_gate_busy(view->gate));
  rn_strbuf_printf(out, "\"memory\":{\"resident\":%lld,\"peak\":%lld},\"threads\":%lld,",
                   (long long)memory.resident, (long long)memory.peak, (long long)memory.threads);
  rn_strbuf_printf(
      out,
      "\"port\":{\"connections\":%zu,\"doors\":%zu,\"calls\":%zu,\"queued\":%zu,"
      "\"held\":%zu,\"in\":%llu,\"out\":%llu,\"refused\":%lld,\"refused_calls\":%lld},",
      port->connections, port->doors, port->calls, port->queued, port->held,
      (unsigned long long)port->bytes_in, (unsigned long long)port->bytes_out,
      (long long)port->refused, (long long)view->gate->refused);
  rn_strbuf_printf(out, "\"peers\":[");
  for (size_t i = 0; i < view->peer_count; ++i) {
    if (i) rn_strbuf_printf(out, ",");
    put_peer_json(view, &view->peers[i], out);
  }
  rn_strbuf_printf(out, "],\"queues\":[");
  for (size_t i = 0; i < view->queue_count; ++i) {
    rn_strbuf_printf(out, "%s{", i ? "," : "");
    put_quoted(out, "container", view->queues[i].container);
    put_quoted(out, "name", view->queues[i].name);
    rn_strbuf_printf(out, "\"size\":%lld}", (long long)view->queues[i].size);
  }
  rn_strbuf_printf(out, "],\"methods\":[");
  put_methods_json(view->gate, out);
  rn_strbuf_printf(out, "]}\n");
}

// The HTML page.

static void put_row(rn_strbuf_t* out, const char* name, const char* format, ...) RN_PRINTF(3, 4);
static void put_row(rn_strbuf_t* out, const char* name, const char* format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  rn_strbuf_printf(out, "<tr><th>%s<td>", name);
  put(out, rn_str(text), escape_html);
  rn_strbuf_printf(out, "\n");
}

static void put_task_html(const rn_task_view_t* view, rn_strbuf_t* out) {
  memory_t memory = memory_now();
  const rn_rpc_server_stats_t* port = &view->port;
  rn_strbuf_printf(out, "<table>\n");
  put_row(out, "state", "%s", state_names[view->state]);
  put_row(out, "target", "%s%s", view->target, view->is_secure ? " (TLS)" : "");
  put_row(out, "incarnation", "%016llx", (unsigned long long)view->incarnation);
  put_row(out, "up for", "%.1f s", seconds(view->uptime_ns));
  put_row(out, "sessions", "%zu as master, %zu as worker", view->sessions, view->worker.sessions);
  put_row(out, "eager clients", "%zu contexts", view->contexts);
  put_row(out, "graphs", "%zu", view->worker.graphs);
  put_row(out, "steps", "%lld run, %zu open, %lld calls of steps under way",
          (long long)view->worker.steps_run, view->worker.steps,
          (long long)rn_call_gate_busy(view->gate));
  put_row(out, "memory", "%.1f MiB, %.1f at most", (double)memory.resident / 1048576,
          (double)memory.peak / 1048576);
  put_row(out, "threads", "%lld", (long long)memory.threads);
  put_row(out, "port", "%zu connections, %zu calls, %zu bytes queued, %zu held", port->connections,
          port->calls, port->queued, port->held);
  put_row(out, "traffic", "%.1f MB in, %.1f MB out", (double)port->bytes_in * 1e-6,
          (double)port->bytes_out * 1e-6);
  put_row(out, "refused", "%lld connections, %lld calls", (long long)port->refused,
          (long long)view->gate->refused);
  rn_strbuf_printf(out, "</table>\n");
}

static void put_peers_html(const rn_task_view_t* view, rn_strbuf_t* out) {
  rn_strbuf_printf(out,
                   "<h2>Peers</h2><table><tr><th>task<th>address<th>state<th>lease left<th>silent"
                   "<th>incarnation<th>losses<th>calls<th>queued<th>in<th>out\n");
  for (size_t i = 0; i < view->peer_count; ++i) {
    const rn_peer_view_t* peer = &view->peers[i];
    const rn_channel_stats_t* channel = &peer->channel;
    rn_strbuf_printf(out, "<tr><td>");
    put(out, peer->task, escape_html);
    rn_strbuf_printf(out, "<td>");
    put(out, peer->address, escape_html);
    rn_strbuf_printf(out,
                     "<td>%s<td>%.1f s of %.1f<td>%.1f s<td>%016llx<td>%lld<td>%zu<td>%zu B"
                     "<td>%.1f MB<td>%.1f MB\n",
                     peer_state(peer), lease_left(view, peer), seconds(view->lease_ns),
                     seconds(channel->silent_ns), (unsigned long long)peer->lease.incarnation,
                     (long long)peer->lease.losses, channel->calls, channel->queued,
                     (double)channel->bytes_in * 1e-6, (double)channel->bytes_out * 1e-6);
  }
  rn_strbuf_printf(out, "</table>\n");
}

static void put_queues_html(const rn_task_view_t* view, rn_strbuf_t* out) {
  if (!view->queue_count) return;
  rn_strbuf_printf(out, "<h2>Queues</h2><table><tr><th>container<th>name<th>elements\n");
  for (size_t i = 0; i < view->queue_count; ++i) {
    rn_strbuf_printf(out, "<tr><td>");
    put(out, view->queues[i].container, escape_html);
    rn_strbuf_printf(out, "<td>");
    put(out, view->queues[i].name, escape_html);
    rn_strbuf_printf(out, "<td>%lld\n", (long long)view->queues[i].size);
  }
  rn_strbuf_printf(out, "</table>\n");
}

static void put_methods_html(const rn_call_gate_t* gate, rn_strbuf_t* out) {
  rn_strbuf_printf(out,
                   "<h2>Calls</h2><table><tr><th>method<th>begun<th>under way<th>failed<th>mean\n");
  for (int i = 0; i < RN_GATE_METHOD_COUNT; ++i) {
    const rn_call_gate_count_t* count = &gate->counts[i];
    int64_t ended = count->ended;
    if (!count->started) continue;
    rn_strbuf_printf(out, "<tr><td>%s<td>%lld<td>%lld<td>%lld<td>%.3f ms\n",
                     rn_call_gate_method_name((rn_call_gate_method_t)i), (long long)count->started,
                     (long long)(count->started - ended), (long long)count->failed,
                     ended ? (double)count->ns * 1e-6 / (double)ended : 0.0);
  }
  rn_strbuf_printf(out, "</table>\n");
}

void rn_status_page_html(const rn_task_view_t* view, rn_strbuf_t* out) {
  rn_strbuf_printf(out, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>");
  put(out, view->task, escape_html);
  rn_strbuf_printf(out,
                   "</title><style>body{font:14px sans-serif;margin:2em}table{border-collapse:"
                   "collapse}th,td{border:1px solid #ccc;padding:.2em .6em;text-align:left}"
                   "</style>\n<h1>");
  put(out, view->task, escape_html);
  rn_strbuf_printf(out, "</h1>\n");
  put_task_html(view, out);
  put_peers_html(view, out);
  put_queues_html(view, out);
  put_methods_html(view->gate, out);
  rn_strbuf_printf(out,
                   "<p>runnel %s. The same as <a href=\"/statusz?format=json\">JSON</a>, and as "
                   "<a href=\"/metrics\">figures for Prometheus</a>.\n",
                   RN_VERSION_STRING);
}

// Metrics for Prometheus.

static void put_metric(rn_strbuf_t* out, const char* name, const char* type, const char* help,
                       double value) {
  rn_strbuf_printf(out, "# HELP runnel_%s %s\n# TYPE runnel_%s %s\nrunnel_%s %.15g\n", name, help,
                   name, type, name, value);
}

static void put_calls(const rn_task_view_t* view, rn_strbuf_t* out) {
  static const struct {
    const char *name, *type, *help;
  } rows[] = {
      {"calls_total", "counter", "Calls that came in."},
      {"call_failures_total", "counter", "Calls that ended with an error."},
      {"call_seconds_total", "counter", "Time between a call and its answer."},
      {"calls_in_progress", "gauge", "Calls that have not been answered."},
  };
  for (int row = 0; row < 4; ++row) {
    rn_strbuf_printf(out, "# HELP runnel_%s %s\n# TYPE runnel_%s %s\n", rows[row].name,
                     rows[row].help, rows[row].name, rows[row].type);
    for (int i = 0; i < RN_GATE_METHOD_COUNT; ++i) {
      const rn_call_gate_count_t* count = &view->gate->counts[i];
      if (!count->started) continue;
      double values[] = {(double)count->started, (double)count->failed, seconds(count->ns),
                         (double)(count->started - count->ended)};
      rn_strbuf_printf(out, "runnel_%s{method=\"%s\"} %.15g\n", rows[row].name,
                       rn_call_gate_method_name((rn_call_gate_method_t)i), values[row]);
    }
  }
}

static void put_peers(const rn_task_view_t* view, rn_strbuf_t* out) {
  static const struct {
    const char *name, *type, *help;
  } rows[] = {
      {"peer_up", "gauge", "Whether there is a connection to the task."},
      {"peer_lease_seconds", "gauge", "What is left of the task's lease."},
      {"peer_losses_total", "counter", "How often the task was given up."},
      {"peer_calls_in_progress", "gauge", "Calls to the task that have not been answered."},
      {"peer_queued_bytes", "gauge", "Bytes that wait to be sent to the task."},
      {"peer_received_bytes_total", "counter", "Bytes that came from the task."},
      {"peer_sent_bytes_total", "counter", "Bytes that went to the task."},
  };
  for (int row = 0; row < 7; ++row) {
    rn_strbuf_printf(out, "# HELP runnel_%s %s\n# TYPE runnel_%s %s\n", rows[row].name,
                     rows[row].help, rows[row].name, rows[row].type);
    for (size_t i = 0; i < view->peer_count; ++i) {
      const rn_peer_view_t* peer = &view->peers[i];
      const rn_channel_stats_t* channel = &peer->channel;
      if (!peer->is_used) continue;
      double values[] = {channel->is_connected,      lease_left(view, peer),
                         (double)peer->lease.losses, (double)channel->calls,
                         (double)channel->queued,    (double)channel->bytes_in,
                         (double)channel->bytes_out};
      rn_strbuf_printf(out, "runnel_%s{task=\"", rows[row].name);
      put(out, peer->task, escape_html);
      rn_strbuf_printf(out, "\"} %.15g\n", values[row]);
    }
  }
}

void rn_status_page_metrics(const rn_task_view_t* view, rn_strbuf_t* out) {
  memory_t memory = memory_now();
  const rn_rpc_server_stats_t* port = &view->port;
  put_metric(out, "ready", "gauge", "Whether the task takes new sessions.",
             view->state == RN_TASK_READY);
  put_metric(out, "uptime_seconds", "gauge", "Time since the task was started.",
             seconds(view->uptime_ns));
  put_metric(out, "sessions", "gauge", "Sessions of clients on this master.",
             (double)view->sessions);
  put_metric(out, "worker_sessions", "gauge", "Sessions of masters on this worker.",
             (double)view->worker.sessions);
  put_metric(out, "eager_contexts", "gauge", "Contexts of eager clients.", (double)view->contexts);
  put_metric(out, "graphs", "gauge", "Graphs that are registered.", (double)view->worker.graphs);
  put_metric(out, "steps_total", "counter", "Steps that ran here, or parts of them.",
             (double)view->worker.steps_run);
  put_metric(out, "steps_open", "gauge", "Steps that have not been cleaned up.",
             (double)view->worker.steps);
  put_metric(out, "resident_memory_bytes", "gauge", "Memory of the process.",
             (double)memory.resident);
  put_metric(out, "threads", "gauge", "Threads of the process.", (double)memory.threads);
  put_metric(out, "connections", "gauge", "Connections to the port.", (double)port->connections);
  put_metric(out, "refused_connections_total", "counter", "Connections that were refused.",
             (double)port->refused);
  put_metric(out, "refused_calls_total", "counter", "Calls that were refused.",
             (double)view->gate->refused);
  put_metric(out, "queued_bytes", "gauge", "Bytes that wait to be sent to clients.",
             (double)port->queued);
  put_metric(out, "held_bytes", "gauge", "Bytes of requests that are in use.", (double)port->held);
  put_metric(out, "received_bytes_total", "counter", "Bytes that came to the port.",
             (double)port->bytes_in);
  put_metric(out, "sent_bytes_total", "counter", "Bytes that went out of the port.",
             (double)port->bytes_out);
  put_calls(view, out);
  put_peers(view, out);
  if (view->queue_count)
    rn_strbuf_printf(out,
                     "# HELP runnel_queue_elements Elements of a queue.\n"
                     "# TYPE runnel_queue_elements gauge\n");
  for (size_t i = 0; i < view->queue_count; ++i) {
    rn_strbuf_printf(out, "runnel_queue_elements{container=\"");
    put(out, view->queues[i].container, escape_html);
    rn_strbuf_printf(out, "\",queue=\"");
    put(out, view->queues[i].name, escape_html);
    rn_strbuf_printf(out, "\"} %lld\n", (long long)view->queues[i].size);
  }
}

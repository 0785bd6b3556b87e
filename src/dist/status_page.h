// The status of a task over HTTP/1: an HTML page, the same as JSON, and metrics for Prometheus.
// Only the text: serving it and collecting the figures is elsewhere.
#ifndef RUNNEL_DIST_STATUS_PAGE_H_
#define RUNNEL_DIST_STATUS_PAGE_H_

#include "dist/gate.h"
#include "dist/lease.h"
#include "dist/worker/worker.h"
#include "net/channel.h"

// Another task. |channel| and |lease| are valid if |is_used|.
typedef struct rn_peer_view_t {
  rn_str_t task, address;
  bool is_used;  // a call to it was made
  rn_channel_stats_t channel;
  rn_lease_info_t lease;
} rn_peer_view_t;

// A queue of the task, and its elements.
typedef struct rn_queue_view_t {
  rn_str_t container, name;
  int64_t size;
} rn_queue_view_t;

typedef enum rn_task_state_t { RN_TASK_READY, RN_TASK_DRAINING } rn_task_state_t;

// A snapshot of a task.
typedef struct rn_task_view_t {
  rn_str_t task;
  const char* target;
  rn_task_state_t state;
  bool is_secure;  // it uses TLS
  uint64_t incarnation;
  int64_t now_ns, uptime_ns, lease_ns;
  size_t sessions;  // of its master
  size_t contexts;  // of eager clients
  rn_worker_stats_t worker;
  rn_rpc_server_stats_t port;
  const rn_call_gate_t* gate;
  const rn_peer_view_t* peers;
  size_t peer_count;
  const rn_queue_view_t* queues;
  size_t queue_count;
} rn_task_view_t;

void rn_status_page_html(const rn_task_view_t* view, rn_strbuf_t* out);
void rn_status_page_json(const rn_task_view_t* view, rn_strbuf_t* out);
void rn_status_page_metrics(const rn_task_view_t* view, rn_strbuf_t* out);

#endif  // RUNNEL_DIST_STATUS_PAGE_H_

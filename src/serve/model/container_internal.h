// What the files of a container share: container.c (its life), container_run.c (batches),
// container_load.c (making replicas).
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_INTERNAL_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_INTERNAL_H_

#include "net/tls.h"
#include "serve/model/container.h"
#include "serve/model/container_link.h"
#include "serve/model/container_process.h"

struct rn_containers_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_loop_t* loop;  // Owned
};

typedef enum rn_container_state_t {
  RN_CONTAINER_DOWN,      // waits for its next start
  RN_CONTAINER_STARTING,  // until its HELLO
  RN_CONTAINER_UP,
  RN_CONTAINER_STOPPING,
  RN_CONTAINER_GONE,  // may be freed
} rn_container_state_t;

typedef struct rn_container_t rn_container_t;

typedef enum rn_lane_state_t {
  RN_LANE_FREE,
  RN_LANE_FILLING,  // by the thread that called |run|
  RN_LANE_SENT,
  RN_LANE_READING,  // by the loop's thread
} rn_lane_state_t;

// A batch under way. |state| is guarded by the container's lock; the rest belongs to the thread
// that fills or reads, and to the lock while it is sent.
typedef struct rn_container_lane_t {
  rn_container_t* container;
  rn_lane_state_t state;
  rn_backend_run_t* run;  // Borrowed
  uint64_t id;
  int64_t rows;      // of the batch (container_wire.h)
  int64_t limit_ns;  // when the container counts as hung
  rn_cancel_entry_t entry;
  bool has_entry;
  rn_container_region_t region;
  size_t most_output;  // bytes that a reply had in its payload although room was offered
  rn_strbuf_t frame;
  size_t input_bytes, shared_bytes;  // of the batch; of those, in the region
} rn_container_lane_t;

// A configuration and what follows from it, shared by the replicas.
typedef struct rn_container_shared_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  rn_container_config_t config;
  rn_tls_t* tls;  // NULL: none
} rn_container_shared_t;
void rn_container_shared_release(rn_container_shared_t* shared);

struct rn_container_t {
  rn_backend_t backend;  // first
  rn_allocator_t allocator;
  rn_containers_t* containers;
  rn_loop_t* loop;
  rn_container_shared_t* shared;        // Retained
  const rn_container_config_t* config;  // of |shared|
  char name[192];                       // "container 'model' 3 #0"
  // Of the loop's thread.
  rn_timer_t timer;  // of the state: the next start, beat, limit or signal
  rn_loop_job_t start_job, stop_job;
  rn_container_process_t* process;
  struct rn_container_dial_t* dial;  // an attempt to connect; NULL: none
  int failures;                      // in a row
  int64_t up_ns, deadline_ns;        // when it came up; of a start or of a stop
  int64_t beat_ns;                   // when the next beat is due
  bool is_greeted;                   // it has said HELLO
  bool is_warned;                    // SIGTERM was sent
  bool has_reason;                   // |error| says more than the end of the process
  int64_t heard_ns;                  // when the last frame came
  // Set once, by the first HELLO, before |run| may be called.
  rn_arena_t arena;
  rn_container_hello_t hello;
  rn_strbuf_t meta;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  _Atomic rn_container_state_t state;
  int attempts;  // starts that have ended, well or not
  rn_container_link_t link;
  bool has_regions;
  uint64_t next_id, epoch;     // |epoch| counts connections
  rn_container_lane_t* lanes;  // |lane_count|, once there is a HELLO
  int lane_count;
  char error[512];  // why it is not up
  rn_container_stats_t stats;
};

// container.c
RN_MUST_USE rn_status_t rn_container_create(rn_containers_t* containers,
                                            rn_container_shared_t* shared, int replica,
                                            rn_container_t** out);
void rn_container_start(rn_container_t* container);  // returns at once
// Waits until the first start has succeeded, or failed for good.
RN_MUST_USE rn_status_t rn_container_wait(rn_container_t* container);
void rn_container_destroy(rn_backend_t* backend);
int64_t rn_container_now(const rn_container_t* container);

// container_run.c
RN_MUST_USE rn_status_t rn_container_make_lanes(rn_container_t* container);
void rn_container_free_lanes(rn_container_t* container);
void rn_container_run(rn_backend_t* backend, rn_backend_run_t* run);
bool rn_container_has_run(rn_container_t* container, uint64_t id);  // whether batch |id| runs
// On the loop's thread: a REPLY or an ERROR to a batch. An error breaks the link.
RN_MUST_USE rn_status_t rn_container_answer(rn_container_t* container,
                                            const rn_container_frame_t* frame);
// On the loop's thread, after the link was closed: fails all batches, and drops the shared memory.
// |why| follows "it".
void rn_container_fail_runs(rn_container_t* container, const char* why);

// container_dial.c
// Connects on a thread of its own; then |dialled| is called on the loop's thread.
RN_MUST_USE rn_status_t rn_container_dial(rn_container_t* container,
                                          void (*dialled)(rn_container_t* container,
                                                          rn_status_t status, rn_socket_t* socket));

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_INTERNAL_H_

// A task that shuts down, and one whose threads are stuck.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "task.h"

// A step that waits until another step enqueues.
typedef struct waiting_t {
  rn_session_t* session;
  rn_edge_t taken;
  rn_status_t status;
} waiting_t;

static void* wait_for_queue(void* arg) {
  waiting_t* waiting = arg;
  waiting->status = run(waiting->session, waiting->taken, NULL);
  return NULL;
}

static void wait_until_busy(const task_t* task) {
  while (!rn_server_is_busy(task->server)) usleep(1000);
}

Test(drain, a_draining_task_ends_its_steps_and_takes_no_new_ones, .timeout = 60) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  const int types[] = {RN_FLOAT};
  rn_edge_t queue = rn_FIFOQueueV2_(s, types, 1, (rn_FIFOQueueV2_options_t){0});
  rn_edge_t one = rn_const_float(s, 1);
  rn_node_t* put = rn_QueueEnqueueV2_(s, queue, &one, 1, (rn_QueueEnqueueV2_options_t){0});
  rn_edges_t values = rn_QueueDequeueV2_(s, queue, types, 1, (rn_QueueDequeueV2_options_t){0});
  rn_edge_t taken = rn_edge_at(values, 0);
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_session_t *session = connect_to(&task, graph), *other = connect_to(&task, graph);
  OK(run(session, one, NULL));
  waiting_t waiting = {.session = session, .taken = taken};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_queue, &waiting);
  wait_until_busy(&task);
  OK(run(session, (rn_edge_t){0}, put));  // the waiting step ends
  pthread_join(thread, NULL);
  OK(waiting.status);
  pthread_create(&thread, NULL, wait_for_queue, &waiting);
  wait_until_busy(&task);
  rn_server_drain(task.server);
  FAILS_CODE(run(session, one, NULL), RN_CODE_UNAVAILABLE, "shutting down");
  FAILS_CODE(run(other, one, NULL), RN_CODE_UNAVAILABLE, "shutting down");
  cr_assert(rn_server_is_busy(task.server));
  rn_server_destroy(task.server);  // cuts it short
  pthread_join(thread, NULL);
  cr_assert(!rn_ok(waiting.status));
  rn_status_free(waiting.status);
  rn_session_destroy(session);
  rn_session_destroy(other);
  rn_scope_destroy(s);
  rn_graph_release(graph);
}

// A step that reads a file which does not end, and so keeps a thread.
typedef struct reading_t {
  const task_t* task;
  const char* path;
  pthread_t thread;
  rn_status_t status;
} reading_t;

static void* read_on(void* arg) {
  reading_t* reading = arg;
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t content = rn_ReadFile(s, rn_Squeeze(s, rn_const_strings(s, &reading->path, 1)));
  rn_session_t* session = connect_to(reading->task, graph);
  reading->status = run(session, content, NULL);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return NULL;
}

Test(drain, a_task_whose_threads_are_stuck_says_so, .timeout = 60) {
  enum { STEPS = 6 };
  task_t task = {.options.threads = 3};
  task_open(&task);
  OK(rn_server_start(task.server));
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  char path[64];
  snprintf(path, sizeof path, "/tmp/runnel-stuck-%d", getpid());
  cr_assert_eq(mkfifo(path, 0600), 0);
  reading_t readings[STEPS];
  for (int i = 0; i < STEPS; ++i) {
    readings[i] = (reading_t){.task = &task, .path = path};
    pthread_create(&readings[i].thread, NULL, read_on, &readings[i]);
  }
  while (rn_server_is_busy(task.server) == false) usleep(1000);
  usleep(1500000);  // the last check is too old to be repeated
  int64_t begun = now();
  expect_page(&task, "/healthz", "HTTP/1.1 503 ", "stuck");
  cr_assert(now() - begun > SECOND && now() - begun < 30 * SECOND, "it waits two seconds");
  int64_t best = INT64_MAX;  // a busy machine may delay one answer, not all of them
  for (int i = 0; i < 10 && best >= SECOND; ++i) {
    begun = now();
    expect_page(&task, "/healthz", "HTTP/1.1 503 ", "stuck");
    expect_page(&task, "/readyz", "HTTP/1.1 200 ", "ready");
    if (now() - begun < best) best = now() - begun;
  }
  cr_assert(best < SECOND, "and then not again");
  while (rn_server_is_busy(task.server)) {  // a reader that has it open sees its end
    int writer = open(path, O_WRONLY | O_NONBLOCK);
    usleep(50000);
    if (writer >= 0) close(writer);
    usleep(50000);
  }
  for (int i = 0; i < STEPS; ++i) {
    pthread_join(readings[i].thread, NULL);
    rn_status_free(readings[i].status);
  }
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  unlink(path);
  rn_server_destroy(task.server);
}

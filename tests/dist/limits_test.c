// Limits of a task for its clients: idle and half-sent connections, sessions, memory, and
// accessible files.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memmem
#endif
#include <criterion/criterion.h>

#include "task.h"

Test(limits, a_peer_that_does_not_read_is_given_up, .timeout = 60) {
  task_t task = {.options.stall_ns = SECOND / 2};
  task_open(&task);
  OK(rn_server_start(task.server));
  // POST, http, and the path as a literal; then an empty message. Windows never open again.
  static const char path[] = "/tensorflow.WorkerService/GetStatus";
  rn_strbuf_t bytes, headers;
  rn_strbuf_init(&bytes, memory());
  rn_strbuf_init(&headers, memory());
  rn_strbuf_append(&headers, RN_STR("\x83\x86\x01\x01x\x04"));
  rn_strbuf_append_n(&headers, &(uint8_t){sizeof path - 1}, 1);
  rn_strbuf_append(&headers, rn_str(path));
  rn_strbuf_append(&bytes, RN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  put_frame(&bytes, 4, 0, 0, (rn_str_t){0});
  for (uint32_t i = 0; i < 2000; ++i) {
    put_frame(&bytes, 1, 4, 2 * i + 1, rn_strbuf_view(&headers));
    put_frame(&bytes, 0, 1, 2 * i + 1, RN_STR("\0\0\0\0\0"));
  }
  rn_socket_t* socket = NULL;
  OK(env()->net->connect(env()->net_self, task.address, now() + 5 * SECOND, memory(), &socket));
  OK(rn_net_write_all(socket, rn_strbuf_view(&bytes), now() + 10 * SECOND));
  int64_t start = now();
  for (bool is_given_up = false; !is_given_up; usleep(20000)) {
    rn_strbuf_t answer;
    rn_strbuf_init(&answer, memory());
    talk(&task, RN_STR("GET /statusz?format=json HTTP/1.1\r\n\r\n"), &answer);
    is_given_up = strstr(answer.data, "\"connections\":0,") &&
                  strstr(answer.data, "\"calls\":0,") && strstr(answer.data, "\"ended\":2000,");
    cr_assert(now() - start < 60 * SECOND, "%s", answer.data);
    rn_strbuf_clear(&answer);
  }
  cr_assert(now() - start > SECOND / 4);
  socket->vtable->close(socket);
  rn_strbuf_clear(&bytes);
  rn_strbuf_clear(&headers);
  rn_server_destroy(task.server);
}

Test(limits, a_call_that_is_half_sent_is_ended, .timeout = 60) {
  task_t task = {.options.half_ns = SECOND};
  task_open(&task);
  OK(rn_server_start(task.server));
  static const char path[] = "/tensorflow.WorkerService/GetStatus";
  rn_strbuf_t calls, headers, answer;
  rn_strbuf_init(&calls, memory());
  rn_strbuf_init(&headers, memory());
  rn_strbuf_init(&answer, memory());
  rn_strbuf_append(&headers, RN_STR("\x83\x86\x01\x01x\x04"));
  rn_strbuf_append_n(&headers, &(uint8_t){sizeof path - 1}, 1);
  rn_strbuf_append(&headers, rn_str(path));
  put_frame(&calls, 1, 4, 1, rn_strbuf_view(&headers));  // headers alone; half a message; all
  put_frame(&calls, 1, 4, 3, rn_strbuf_view(&headers));
  put_frame(&calls, 0, 0, 3, RN_STR("\0\0\0\1\0half"));
  rn_socket_t* socket = connect_http2(&task, rn_strbuf_view(&calls));
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"calls\":2,");
  cr_assert(!is_closed_within(socket, 3 * SECOND, &answer), "the connection stays");
  // The response ends the stream, and then the server resets it: the client has not ended it.
  static const char resets[2][14] = {"\0\0\4\3\0\0\0\0\1\0\0\0\0", "\0\0\4\3\0\0\0\0\3\0\0\0\0"};
  static const char ends[2][7] = {"\1\5\0\0\0\1", "\1\5\0\0\0\3"};
  for (int i = 0; i < 2; ++i) {
    cr_assert(memmem(answer.data, answer.size, ends[i], 6), "call %d has no answer", 2 * i + 1);
    cr_assert(memmem(answer.data, answer.size, resets[i], 13), "call %d was not ended", 2 * i + 1);
  }
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"calls\":0,");
  socket->vtable->close(socket);
  rn_strbuf_clear(&calls);
  rn_strbuf_clear(&headers);
  rn_strbuf_clear(&answer);
  rn_server_destroy(task.server);
}

Test(limits, calls_without_a_message_count_too, .timeout = 60) {
  enum { CALLS = 3000 };
  task_t task = {.options.max_client_memory = 1 << 20};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_strbuf_t calls, answer;
  rn_strbuf_init(&calls, memory());
  rn_strbuf_init(&answer, memory());
  for (uint32_t i = 0; i < CALLS; ++i)
    put_frame(&calls, 1, 4, 2 * i + 1, RN_STR("\x83\x86\x84\x01\x01x"));
  rn_socket_t* socket = connect_http2(&task, rn_strbuf_view(&calls));
  cr_assert(!is_closed_within(socket, SECOND, &answer));
  wait_for_page(&task, "/statusz?format=json", "\"calls\":512,");
  socket->vtable->close(socket);
  wait_for_page(&task, "/statusz?format=json", "\"held\":0,");
  rn_strbuf_clear(&calls);
  rn_strbuf_clear(&answer);
  rn_server_destroy(task.server);
}

static rn_status_t ask_status(rn_worker_t* worker) {
  rn_waiter_t waiter;
  rn_get_status_t call = {.call = rn_waiter_call(&waiter, now() + 10 * SECOND, NULL)};
  call.call.waits_for_ready = false;
  rn_arena_init(&call.arena, memory());
  worker->vtable->get_status(worker, &call);
  rn_status_t status = rn_waiter_wait(&waiter);
  rn_arena_clear(&call.arena);
  return status;
}

Test(limits, idle_connections_end_and_clients_notice_nothing, .timeout = 60) {
  task_t task = {.options.idle_ns = SECOND};
  task_open(&task);
  OK(rn_server_start(task.server));
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, memory());
  rn_socket_t* silent = connect_http2(&task, RN_STR(""));
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(memory(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  rn_edge_t one = rn_const_float(s, 1);
  rn_session_t* session = connect_to(&task, graph);
  OK(run(session, one, NULL));
  caller_t caller;
  caller_open(&caller, task.address, NULL);
  OK(ask_status(rn_remote_worker(caller.peer)));
  cr_assert_eq(rn_channel_stats(caller.channel).connects, 1);
  cr_assert(is_closed_within(silent, 10 * SECOND, &answer));
  while (rn_channel_stats(caller.channel).is_connected) usleep(10000);
  // The session's client is still there; the other connects again.
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"connections\":1,");
  OK(ask_status(rn_remote_worker(caller.peer)));
  cr_assert_eq(rn_channel_stats(caller.channel).connects, 2);
  int64_t begun = now();  // calls that come as the connection ends are answered
  while (now() - begun < 6 * SECOND) {
    OK(ask_status(rn_remote_worker(caller.peer)));
    usleep(700000 + (useconds_t)(now() % 700000));
  }
  OK(run(session, one, NULL));
  silent->vtable->close(silent);
  caller_close(&caller);
  rn_session_destroy(session);
  rn_scope_destroy(s);
  rn_graph_release(graph);
  rn_strbuf_clear(&answer);
  rn_server_destroy(task.server);
}

Test(limits, a_client_has_so_many_sessions, .timeout = 60) {
  task_t task = {.options.max_sessions = 2};
  task_open(&task);
  OK(rn_server_start(task.server));
  caller_t caller;
  caller_open(&caller, task.address, NULL);
  rn_master_t* master = rn_remote_master(caller.peer);
  char opened[3][32] = {{0}};
  for (int i = 0; i < 3; ++i) {
    rn_waiter_t waiter;
    rn_create_session_t call = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL)};
    master->vtable->create_session(master, &call);
    rn_status_t status = rn_waiter_wait(&waiter);
    if (i < 2)
      OK(status);
    else
      FAILS_CODE(status, RN_CODE_RESOURCE_EXHAUSTED, "2 sessions");
    memcpy(opened[i], call.session, sizeof opened[i]);
  }
  for (int i = 0; i < 2; ++i) {  // one is closed, another opened
    rn_waiter_t waiter;
    rn_close_session_t close = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL),
                                .session = rn_str(opened[i])};
    master->vtable->close_session(master, &close);
    OK(rn_waiter_wait(&waiter));
    rn_create_session_t call = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL)};
    master->vtable->create_session(master, &call);
    OK(rn_waiter_wait(&waiter));
  }
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"sessions\":2,");
  expect_page(&task, "/metrics", "HTTP/1.1 200 ", "runnel_refused_calls_total 1\n");
  caller_close(&caller);
  rn_server_destroy(task.server);
}

Test(limits, masters_of_other_clusters_have_no_sessions_here, .timeout = 60) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  caller_t caller;
  caller_open(&caller, task.address, NULL);
  rn_worker_t* worker = rn_remote_worker(caller.peer);
  static const struct {
    const char *job, *master, *text;
    int task;
    rn_code_t code;
  } cases[] = {
      {"worker", "/job:worker/replica:0/task:0", "", 0, RN_CODE_OK},
      {"worker", "/job:worker/replica:0/task:0", "clusters differ", 1, RN_CODE_INVALID_ARGUMENT},
      {"ps", "/job:worker/replica:0/task:0", "clusters differ", 0, RN_CODE_INVALID_ARGUMENT},
      {"worker", "/job:worker/replica:0/task:7", "not a task of the cluster", 0,
       RN_CODE_PERMISSION_DENIED},
      {"worker", "nobody", "not a task of the cluster", 0, RN_CODE_PERMISSION_DENIED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_waiter_t waiter;
    rn_create_worker_session_t call = {.call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL),
                                       .session = RN_STR("s"),
                                       .job = rn_str(cases[i].job),
                                       .task = cases[i].task,
                                       .master = rn_str(cases[i].master)};
    worker->vtable->create_worker_session(worker, &call);
    FAILS_CODE(rn_waiter_wait(&waiter), cases[i].code, cases[i].text);
  }
  caller_close(&caller);
  rn_server_destroy(task.server);
}

// What a task logs, for a test that looks at it.
typedef struct logged_t {
  rn_mutex_t mutex;
  char text[4096];
} logged_t;
static logged_t logged;

static void keep_line(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level;
  rn_mutex_lock(&logged.mutex);
  size_t size = strlen(logged.text);
  snprintf(logged.text + size, sizeof logged.text - size, "%s\n", message);
  rn_mutex_unlock(&logged.mutex);
}

Test(limits, a_name_from_outside_does_not_forge_a_line_of_the_log, .timeout = 60) {
  rn_env_t own = *env();
  own.log = keep_line;
  rn_mutex_init(&logged.mutex);
  task_t task = {0};
  task_open_with(&task, &own);
  OK(rn_server_start(task.server));
  caller_t caller;
  caller_open(&caller, task.address, NULL);
  rn_waiter_t waiter;
  rn_create_worker_session_t call = {
      .call = rn_waiter_call(&waiter, now() + 20 * SECOND, NULL),
      .session = RN_STR("s"),
      .job = RN_STR("worker"),
      .master = RN_STR("nobody\n2026-01-01 00:00:00.000 I all is well\x1b[2J")};
  rn_remote_worker(caller.peer)
      ->vtable->create_worker_session(rn_remote_worker(caller.peer), &call);
  FAILS_CODE(rn_waiter_wait(&waiter), RN_CODE_PERMISSION_DENIED, "nobody");
  caller_close(&caller);
  rn_server_destroy(task.server);
  cr_assert(strstr(logged.text, "nobody\\n2026-01-01 00:00:00.000 I all is well\\x1b[2J"), "%s",
            logged.text);
  cr_assert_null(strchr(logged.text, '\x1b'));
  cr_assert_eq(strchr(logged.text, '\n'), strrchr(logged.text, '\n'), "%s", logged.text);
  rn_mutex_destroy(&logged.mutex);
}

Test(limits, messages_have_a_largest_size, .timeout = 60) {
  task_t task = {.options.max_message = 1 << 20};
  task_open(&task);
  OK(rn_server_start(task.server));
  OK(run_large(&task, 1000));
  FAILS_WITH(run_large(&task, 1 << 20), RESOURCE_EXHAUSTED, "larger than max");
  OK(run_large(&task, 1000));
  rn_server_destroy(task.server);
}

Test(limits, a_client_has_so_much_memory, .timeout = 60) {
  task_t task = {.options.max_client_memory = 1 << 20};
  task_open(&task);
  OK(rn_server_start(task.server));
  for (int i = 0; i < 5; ++i) OK(run_large(&task, 150000));  // it is given back each time
  FAILS_WITH(run_large(&task, 1 << 20), RESOURCE_EXHAUSTED, "of this client");
  OK(run_large(&task, 1000));
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"held\":0,");
  rn_server_destroy(task.server);
}

Test(limits, graphs_see_the_files_that_the_task_was_started_with, .timeout = 60) {
  static const struct {
    bool is_limited;
    const char* allow;
    bool is_readable;
  } cases[] = {{false, "", true}, {true, "", false}, {true, "read:/proc/self", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    task_t task = {.options = {.is_limited = cases[i].is_limited, .allow = rn_str(cases[i].allow)}};
    task_open(&task);
    OK(rn_server_start(task.server));
    rn_graph_t* graph = NULL;
    OK(rn_graph_create(memory(), &graph));
    rn_scope_t* s = rn_scope_create(graph);
    const char* path = "/proc/self/comm";
    rn_edge_t content = rn_ReadFile(s, rn_Squeeze(s, rn_const_strings(s, &path, 1)));
    cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
    rn_session_t* session = connect_to(&task, graph);
    rn_status_t status = run(session, content, NULL);
    cr_assert_eq(rn_ok(status), cases[i].is_readable, "%zu: %s", i, rn_status_message(status));
    cr_assert(rn_ok(status) || rn_status_code(status) == RN_CODE_PERMISSION_DENIED, "%s",
              rn_status_message(status));
    rn_status_free(status);
    rn_session_destroy(session);
    rn_scope_destroy(s);
    rn_graph_release(graph);
    rn_server_destroy(task.server);
  }
}

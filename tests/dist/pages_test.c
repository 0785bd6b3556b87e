// The pages that a task shows over HTTP/1.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "task.h"

Test(pages, pages, .timeout = 60) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  expect_page(&task, "/readyz", "HTTP/1.1 200 ", "ready");
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "\r\n\r\nok\n");
  expect_page(&task, "/statusz", "HTTP/1.1 200 ", "/job:worker/replica:0/task:0");
  expect_page(&task, "/", "HTTP/1.1 200 ", "text/html");
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"state\":\"ready\"");
  expect_page(&task, "/metrics", "HTTP/1.1 200 ", "\nrunnel_ready 1\n");
  expect_page(&task, "/nothing", "HTTP/1.1 404 ", "/healthz");
  expect_answer(&task, "POST /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 405 ", NULL);
  expect_answer(&task, "POST /stop HTTP/1.1\r\nX-Runnel: stop\r\n\r\n", "HTTP/1.1 403 ", NULL);
  expect_answer(&task, "HEAD /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 200 ", "Content-Length: 3");
  rn_server_drain(task.server);
  expect_page(&task, "/healthz", "HTTP/1.1 503 ", "draining");
  expect_page(&task, "/readyz", "HTTP/1.1 503 ", NULL);
  expect_page(&task, "/statusz?format=json", "HTTP/1.1 200 ", "\"state\":\"draining\"");
  rn_server_destroy(task.server);
}

Test(pages, garbage_is_refused_and_the_task_lives_on, .timeout = 60) {
  task_t task = {0};
  task_open(&task);
  OK(rn_server_start(task.server));
  expect_answer(&task, "\x16\x03\x01\x02", "HTTP/1.1 400 ", "TLS");
  expect_answer(&task, "hello there\r\n\r\n", "HTTP/1.1 400 ", "neither");
  expect_answer(&task, "GET / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.1 413 ", NULL);
  // The preface, and then no frames.
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, memory());
  static const char frames[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no frame at all, is it?";
  talk(&task, rn_str(frames), &answer);
  rn_strbuf_clear(&answer);
  expect_page(&task, "/healthz", "HTTP/1.1 200 ", "ok");
  expect_page(&task, "/metrics", "HTTP/1.1 200 ", "runnel_refused_connections_total 3\n");
  rn_server_destroy(task.server);
}

// Memory of which one allocation fails, and that is all given back in the end.
typedef struct failing_t {
  _Atomic int64_t count, live;
  int64_t nth;
} failing_t;

static void* failing_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  failing_t* failing = self;
  if (new_size > old_size && ++failing->count == failing->nth) return NULL;
  rn_allocator_t system = memory();
  void* made = system.fn(system.self, ptr, old_size, new_size);
  if (made || !new_size) failing->live += (int64_t)new_size - (int64_t)old_size;
  return made;
}

Test(pages, every_allocation_of_a_task_may_fail, .timeout = 60) {
  int64_t fired = 0;
  for (int64_t nth = 1;; ++nth) {
    failing_t failing = {.nth = nth};
    task_t task = {.address = "localhost:0"};
    task.def = (rn_server_task_t){.job = RN_STR("worker"), .address = rn_str(task.address)};
    task.options = (rn_server_options_t){.env = env(),
                                         .allocator = {.fn = failing_realloc, .self = &failing},
                                         .tasks = &task.def,
                                         .task_count = 1,
                                         .job = RN_STR("worker"),
                                         .threads = 1};
    rn_status_t status = rn_server_create(&task.options, &task.server);
    if (rn_ok(status)) {
      OK(rn_server_start(task.server));
      snprintf(task.address, sizeof task.address, "127.0.0.1:%d",
               atoi(strrchr(rn_server_target(task.server), ':') + 1));
      for (int i = 0; i < 2; ++i) {
        rn_strbuf_t answer;
        rn_strbuf_init(&answer, memory());
        talk(&task, i ? RN_STR("GET /metrics HTTP/1.1\r\n\r\n") : RN_STR("GET / HTTP/1.1\r\n\r\n"),
             &answer);
        cr_assert(!answer.size || rn_str_starts_with(rn_strbuf_view(&answer), RN_STR("HTTP/1.1 ")));
        rn_strbuf_clear(&answer);
      }
    }
    rn_status_free(status);
    rn_server_destroy(task.server);
    cr_assert_eq(failing.live, 0, "%lld bytes are left after allocation %lld failed",
                 (long long)failing.live, (long long)nth);
    if (failing.count < nth) break;
    fired++;
  }
  cr_assert(fired > 20, "%lld", (long long)fired);
}

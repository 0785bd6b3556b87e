// Containers in Python, with the package's own runnel.serving: batches, errors, addresses.
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "guest.h"

#ifdef CONTAINER_PYTHON

#define PYTHON_TEST(name) Test(container_python, name, .timeout = 120)
#define LIBRARY PYTHON_FOLDER "/runnel/serving/container.py"

// y = 2 x; the first number of a batch may be an order.
static const char model[] =
    "import os, sys, time\n"
    "import numpy as np\n"
    "from runnel.serving import Error, signature\n"
    "@signature(inputs={'x': ('float32', [None, 2])}, outputs={'y': ('float32', [None, 2])})\n"
    "def predict(inputs):\n"
    "    x = inputs['x']\n"
    "    order = x[0, 0] if x.size else 0\n"
    "    if order == 1001: os.abort()\n"
    "    if order == 1002: raise ValueError('bad row')\n"
    "    if order == 1003: raise Error('NOT_FOUND', 'no such user')\n"
    "    if order == 1004: return {'z': x}\n"
    "    if order == 1005: return {'y': x[:1]}\n"
    "    if order == 1006: return {'y': x * np.nan}\n"
    "    if order == 1007: return np.float64(2) * x\n"
    "    if order == 1008: return {'y': np.array(['a'])}\n"
    "    if order == 1009: print('hello from', os.environ['RUNNEL_CONTAINER_MODEL'])\n"
    "    if order == 1010: bytearray(3 << 30)\n"
    "    return {'y': 2 * x}\n"
    "@signature(inputs={'s': ('string', [None])}, outputs={'s': ('string', [None])})\n"
    "def text(inputs):\n"
    "    return {'s': [s + b'!' for s in inputs['s']]}\n"
    "both = {'serving_default': predict, 'text': text}\n";

static void write_model(guest_t* guest) {
  char path[128];
  snprintf(path, sizeof path, "%s/model.py", guest->folder);
  OK(rn_fs_write(rn_env_system(), path, RN_STR(model)));
}

#define START_PYTHON(guest, name, more)                                                      \
  guest_t guest;                                                                             \
  guest_init(&guest);                                                                        \
  write_model(&guest);                                                                       \
  OK(guest_load(&guest, "command: ['" CONTAINER_PYTHON "', '-B', '" LIBRARY "', '" name "']" \
                        " " more))

PYTHON_TEST(batches_and_errors) {
  START_PYTHON(guest, "model:both", "");
  rn_backend_t* backend = guest.backends[0];
  cr_assert_eq(backend->signature_count, 2);
  expect_twice(backend, 1);
  expect_twice(backend, 50000);
  expect_twice(backend, 100);
  expect_twice(backend, 200000);
  expect_twice(backend, 0);
  cr_assert(rn_container_stats(backend).shared > 0);
  FAILS_SAYING(order_only(backend, 1002), INTERNAL, "Model 'twice': ValueError: bad row");
  FAILS_SAYING(order_only(backend, 1003), NOT_FOUND, "Model 'twice': no such user");
  FAILS_WITH(order_only(backend, 1004), INTERNAL, "did not return 'y'");
  FAILS_WITH(order_only(backend, 1005), INTERNAL, "for a batch of 3 rows");
  OK(order_only(backend, 1006));
  OK(order_only(backend, 1007));
  FAILS_WITH(order_only(backend, 1008), INTERNAL, "TypeError");
  OK(order_only(backend, 1009));
  FAILS(order_only(backend, 1001), UNAVAILABLE);
  wait_for_start(backend, 1);
  expect_twice(backend, 3);
  cr_assert(has_logged(&guest, "hello from twice"));
  guest_clear(&guest);
}

PYTHON_TEST(memory_is_limited) {
  START_PYTHON(guest, "model:predict",
               "memory_limit_mb: 1000 environment { key: 'OPENBLAS_NUM_THREADS' value: '1' }");
  FAILS_SAYING(order_only(guest.backends[0], 1010), RESOURCE_EXHAUSTED,
               "Model 'twice': MemoryError");
  expect_twice(guest.backends[0], 3);
  guest_clear(&guest);
}

PYTHON_TEST(copies) {
  START_PYTHON(guest, "model:predict", "copies: true");
  expect_twice(guest.backends[0], 3);
  expect_twice(guest.backends[0], 200000);
  guest_clear(&guest);
}

// A container that this test starts, for a server that connects to it.
static pid_t start_listener(const char* folder, const char* address) {
  pid_t pid = fork();
  cr_assert(pid >= 0);
  if (pid) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (chdir(folder) != 0) _exit(1);
  execl(CONTAINER_PYTHON, CONTAINER_PYTHON, "-B", LIBRARY, "model:predict", "--address", address,
        (char*)NULL);
  _exit(127);
}

PYTHON_TEST(connects_to_an_address) {
  guest_t guest;
  guest_init(&guest);
  write_model(&guest);
  char address[128], config[256];
  snprintf(address, sizeof address, "unix:%s/socket", guest.folder);
  snprintf(config, sizeof config, "connect: '%s' restart_min_ms: 20 restart_max_ms: 50 replicas: 2",
           address);
  pid_t pid = start_listener(guest.folder, address);  // it may come up after the first attempt
  OK(guest_load(&guest, config));
  expect_twice(guest.backends[0], 50000);
  expect_twice(guest.backends[1], 3);
  cr_assert(rn_container_stats(guest.backends[0]).shared > 0);
  FAILS(order_only(guest.backends[0], 1001), UNAVAILABLE);
  waitpid(pid, NULL, 0);
  unlink(address + strlen("unix:"));
  int64_t starts = rn_container_stats(guest.backends[0]).starts;
  pid = start_listener(guest.folder, address);
  wait_for_start(guest.backends[0], starts);
  expect_twice(guest.backends[0], 50000);
  guest_unload(&guest);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  guest_clear(&guest);
}

// Runs |script| in |folder|: what it prints first, up to a line break, is |line|.
static pid_t start_script(const char* folder, const char* script, char* line, size_t room) {
  int ends[2];
  cr_assert_eq(pipe(ends), 0);
  pid_t pid = fork();
  cr_assert(pid >= 0);
  if (!pid) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], 1);
    if (chdir(folder) != 0) _exit(1);
    execl(CONTAINER_PYTHON, CONTAINER_PYTHON, "-B", "-c", script, (char*)NULL);
    _exit(127);
  }
  close(ends[1]);
  size_t size = 0;
  while (size < room - 1 && read(ends[0], line + size, 1) == 1 && line[size] != '\n') ++size;
  line[size] = '\0';
  close(ends[0]);
  return pid;
}

static const char tls_script[] =
    "import sys; sys.path[:0] = ['" PYTHON_FOLDER
    "/runnel/serving', '.']\n"
    "import container; sys.modules['runnel.serving'] = container\n"
    "import model\n"
    "container.serve(model.predict, address='127.0.0.1:0', token_file='token', lanes=2,\n"
    "                tls={'cert': 'worker-0.pem', 'key': 'worker-0-key.pem', 'ca': 'ca.pem'})\n";

PYTHON_TEST(connects_with_certificates_and_a_token) {
  guest_t guest;
  guest_init(&guest);
  write_model(&guest);
  char text[512], line[128];
  snprintf(text, sizeof text, RUNNEL " cert --dir %s --cluster worker=127.0.0.1:1 >/dev/null",
           guest.folder);
  cr_assert_eq(system(text), 0);
  snprintf(text, sizeof text, "%s/token", guest.folder);
  OK(rn_fs_write(rn_env_system(), text, RN_STR("0123456789abcdef\n")));
  snprintf(text, sizeof text, "%s/other", guest.folder);
  OK(rn_fs_write(rn_env_system(), text, RN_STR("fedcba9876543210\n")));
  pid_t pid = start_script(guest.folder, tls_script, line, sizeof line);
  int port = 0;
  cr_assert_eq(sscanf(line, "listening at ('127.0.0.1', %d)", &port), 1, "%s", line);
  const char* tls = "tls { cert: 'client.pem' key: 'client-key.pem' ca: 'ca.pem' }";
  snprintf(text, sizeof text, "connect: '127.0.0.1:%d' token_file: 'token' %s", port, tls);
  OK(guest_load(&guest, text));
  rn_backend_t* backend = guest.backends[0];
  cr_assert_eq(backend->lanes, 2);
  batch_t batches[2];
  for (int i = 0; i < 2; ++i) {
    batch_init(&batches[i], 100000, (float)i);
    backend->vtable->run(backend, &batches[i].run);
  }
  for (int i = 0; i < 2; ++i) {
    OK(batch_wait(&batches[i]));
    cr_assert_eq(RN_DATA(&batches[i].output, float)[5], 2 * (float)(i + 5));
    rn_tensor_clear(&batches[i].output);
  }
  guest_unload(&guest);
  // With another token, or without a certificate, the container hangs up.
  snprintf(text, sizeof text,
           "connect: '127.0.0.1:%d' token_file: 'other' start_timeout_ms: 300 %s", port, tls);
  FAILS(guest_load(&guest, text), UNAVAILABLE);
  snprintf(text, sizeof text, "connect: '127.0.0.1:%d' start_timeout_ms: 300", port);
  FAILS(guest_load(&guest, text), UNAVAILABLE);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  guest_clear(&guest);
}

PYTHON_TEST(an_address_without_a_container) {
  guest_t guest;
  guest_init(&guest);
  FAILS_WITH(guest_load(&guest, "connect: '127.0.0.1:1' start_timeout_ms: 100"), UNAVAILABLE,
             "127.0.0.1:1");
  guest_clear(&guest);
}

#endif

// A Redis server on a UNIX socket in a folder of its own, for tests.
#ifndef RUNNEL_TESTS_SERVE_FAKE_REDIS_H_
#define RUNNEL_TESTS_SERVE_FAKE_REDIS_H_

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/fs.h"
#include "serve/select/store_redis.h"

typedef struct redis_t {
  char folder[64], socket[80], address[96];
  rn_redis_config_t config;
  pid_t pid;
} redis_t;

// Runs in a child: ends with this process.
static inline void redis_exec(const redis_t* redis) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int null = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; ++i) dup2(null, i);
  execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis->socket, "--save", "",
         "--appendonly", "no", "--dir", redis->folder, (char*)NULL);
  _exit(77);
}

// Whether the server accepts connections; its socket has a name before that.
static inline bool redis_listens(const redis_t* redis) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  snprintf(to.sun_path, sizeof to.sun_path, "%s", redis->socket);
  int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool listens = connect(client, (const struct sockaddr*)&to, sizeof to) == 0;
  close(client);
  return listens;
}

// False if there is no redis-server.
static inline bool redis_start(redis_t* redis) {
  redis->pid = fork();
  if (redis->pid == 0) redis_exec(redis);
  for (int i = 0; i < 3000; ++i) {  // ten seconds and more
    int status;
    if (waitpid(redis->pid, &status, WNOHANG) == redis->pid) return false;
    if (redis_listens(redis)) return true;
    usleep(5000);
  }
  return false;
}

static inline void redis_stop(redis_t* redis) {
  kill(redis->pid, SIGKILL);
  waitpid(redis->pid, NULL, 0);
  unlink(redis->socket);
}

static inline bool redis_open(redis_t* redis) {
  *redis = (redis_t){.folder = "/tmp/runnel_redis_XXXXXX"};
  cr_assert(mkdtemp(redis->folder));
  snprintf(redis->socket, sizeof redis->socket, "%s/redis", redis->folder);
  snprintf(redis->address, sizeof redis->address, "unix:%s", redis->socket);
  redis->config.address = redis->address;
  return redis_start(redis);
}

static inline void redis_close(redis_t* redis) {
  redis_stop(redis);
  int64_t files, folders;
  OK(rn_fs_remove_tree(rn_env_system(), redis->folder, &files, &folders));
}

static inline rn_state_store_t* redis_store(redis_t* redis, size_t max_waiting,
                                            rn_allocator_t allocator) {
  rn_store_redis_options_t options = {.config = &redis->config,
                                      .commit_ns = 1000000,
                                      .refresh_ns = 20000000,
                                      .retry_ns = 1000000,
                                      .max_waiting = max_waiting,
                                      .env = rn_env_system(),
                                      .allocator = allocator};
  rn_state_store_t* store = NULL;
  OK(rn_store_redis_open(&options, &store));
  return store;
}

#endif  // RUNNEL_TESTS_SERVE_FAKE_REDIS_H_

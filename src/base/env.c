// The environment of the operating system.
#include "base/env.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/net.h"

// Whatever the default allocator is at the time of the call.
static void* default_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  (void)self;
  rn_allocator_t allocator = rn_allocator_default();
  return allocator.fn(allocator.self, ptr, old_size, new_size);
}

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t system_now_ns(void* self) {
  (void)self;
  return clock_ns(CLOCK_MONOTONIC);
}

static int64_t system_wall_us(void* self) {
  (void)self;
  return clock_ns(CLOCK_REALTIME) / 1000;
}

static uint64_t system_random(void* self) {
  (void)self;
  uint64_t bits = 0;
  ssize_t got;
  do {
    got = getrandom(&bits, sizeof bits, 0);
  } while (got < 0 && errno == EINTR);
  // If the kernel gives none, the clock and the randomized address space must do.
  if (got != (ssize_t)sizeof bits) {
    bits = (uint64_t)clock_ns(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&bits;
  }
  return bits;
}

static void silent_log(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level, (void)message;
}

const rn_env_t* rn_env_system(void) {
  static const rn_env_t system = {
      .allocator = {.fn = default_realloc},
      .now_ns = system_now_ns,
      .wall_us = system_wall_us,
      .random = system_random,
      .log = silent_log,
      .fs = &rn_fs_system,
      .net = &rn_net_system,
  };
  return &system;
}

void rn_log(const rn_env_t* env, rn_log_level_t level, const char* format, ...) {
  char message[2048], line[4096];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (length < 0) return;
  rn_log_escape(message, line, sizeof line);
  env->log(env->self, level, line);
}

// The process's own surroundings.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // strerrordesc_np: errno's text without a shared buffer
#endif
#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
  // A kernel that refuses leaves the clock and the address space's own randomness.
  if (got != (ssize_t)sizeof bits) {
    bits = (uint64_t)clock_ns(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)&bits;
  }
  return bits;
}

static void silent_log(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level, (void)message;
}

static rn_code_t code_of_errno(int error) {
  switch (error) {
    case EINVAL:
    case ENAMETOOLONG:
    case E2BIG:
    case EFAULT:
    case ENOTTY:
      return RN_CODE_INVALID_ARGUMENT;
    case ETIMEDOUT:
      return RN_CODE_DEADLINE_EXCEEDED;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
      return RN_CODE_NOT_FOUND;
    case EEXIST:
      return RN_CODE_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS:
      return RN_CODE_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EBADF:
    case EBUSY:
    case ETXTBSY:
    case EPIPE:
      return RN_CODE_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EMLINK:
      return RN_CODE_RESOURCE_EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
    case ERANGE:
      return RN_CODE_OUT_OF_RANGE;
    case ENOSYS:
    case ENOTSUP:
      return RN_CODE_UNIMPLEMENTED;
    case EAGAIN:
      return RN_CODE_UNAVAILABLE;
    default:
      return RN_CODE_UNKNOWN;
  }
}

static rn_status_t file_error(const char* path, int error) {
  const char* text = strerrordesc_np(error);
  return rn_status_make(code_of_errno(error), "%s; %s", path, text ? text : "unknown error");
}

static rn_status_t read_all(int fd, const char* path, size_t limit, rn_strbuf_t* out) {
  // Read by pieces, not by the size in the directory: /proc says 0 and pipes say nothing.
  char piece[16384];
  size_t total = 0;
  for (;;) {
    ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(path, errno);
    if (got == 0) return rn_strbuf_status(out);
    if ((size_t)got > limit - total) {
      return rn_resource_exhausted("%s; file is larger than %zu bytes", path, limit);
    }
    total += (size_t)got;
    rn_strbuf_append_n(out, piece, (size_t)got);
    RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  }
}

static rn_status_t system_read_file(void* self, const char* path, size_t limit, rn_strbuf_t* out) {
  (void)self;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error(path, errno);
  rn_status_t status = read_all(fd, path, limit, out);
  close(fd);
  return status;
}

static rn_status_t system_write_file(void* self, const char* path, rn_str_t data) {
  (void)self;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return file_error(path, errno);
  rn_status_t status = RN_OK;
  while (rn_ok(status) && data.size) {
    ssize_t put = write(fd, data.data, data.size);
    if (put >= 0) {
      data = rn_str_n(data.data + put, data.size - (size_t)put);
    } else if (errno != EINTR) {
      status = file_error(path, errno);
    }
  }
  // Some file systems report a full disk only here.
  if (close(fd) != 0 && rn_ok(status)) status = file_error(path, errno);
  return status;
}

const rn_env_t* rn_env_system(void) {
  static const rn_env_t system = {
      .allocator = {default_realloc, NULL},
      .now_ns = system_now_ns,
      .wall_us = system_wall_us,
      .random = system_random,
      .log = silent_log,
      .read_file = system_read_file,
      .write_file = system_write_file,
  };
  return &system;
}

void rn_log(const rn_env_t* env, rn_log_level_t level, const char* format, ...) {
  char message[2048];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (length >= 0) env->log(env->self, level, message);
}

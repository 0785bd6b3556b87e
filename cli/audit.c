// See audit.h.
#include "cli/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/sync.h"

#define MAX_REFUSED 100
#define SECOND_NS INT64_C(1000000000)

struct rn_cli_audit_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  char *path, *task;  // Owned
  rn_log_limit_t failures;
  rn_mutex_t mutex;  // guards what follows
  int fd;
  int64_t second_ns, refused, left_out;  // refused calls of this second that have a line, or none
};

static rn_status_t open_file(const char* path, int* out) {
  *out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return *out >= 0 ? RN_OK : rn_unavailable("'%s': %s", path, strerror(errno));
}

rn_status_t rn_cli_audit_open(const rn_env_t* env, const char* path, rn_str_t task,
                              rn_allocator_t allocator, rn_cli_audit_t** out) {
  *out = NULL;
  rn_cli_audit_t* audit = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &audit));
  audit->env = env;
  audit->allocator = allocator;
  audit->fd = -1;
  rn_mutex_init(&audit->mutex);
  rn_status_t status = rn_str_dup(allocator, rn_str(path), &audit->path);
  if (rn_ok(status)) status = rn_str_dup(allocator, task, &audit->task);
  if (rn_ok(status)) status = open_file(path, &audit->fd);
  if (!rn_ok(status)) {
    rn_cli_audit_close(audit);
    return status;
  }
  *out = audit;
  return RN_OK;
}

rn_status_t rn_cli_audit_reopen(rn_cli_audit_t* audit) {
  int fd = -1;
  RN_RETURN_IF_ERROR(open_file(audit->path, &fd));
  rn_mutex_lock(&audit->mutex);
  close(audit->fd);
  audit->fd = fd;
  rn_mutex_unlock(&audit->mutex);
  return RN_OK;
}

void rn_cli_audit_close(rn_cli_audit_t* audit) {
  if (!audit) return;
  if (audit->fd >= 0) close(audit->fd);
  if (audit->path) rn_free(audit->allocator, audit->path, strlen(audit->path) + 1);
  if (audit->task) rn_free(audit->allocator, audit->task, strlen(audit->task) + 1);
  rn_mutex_destroy(&audit->mutex);
  RN_FREE(audit->allocator, audit);
}

static const char* role_of(uint32_t rights) {
  const uint32_t all = RN_MAY_USE | RN_MAY_WORK | RN_MAY_OPERATE;
  return rights == all             ? "any"
         : rights & RN_MAY_OPERATE ? rn_call_gate_roles.names[2]
         : rights & RN_MAY_WORK    ? rn_call_gate_roles.names[1]
         : rights & RN_MAY_USE     ? rn_call_gate_roles.names[0]
                                   : "none";
}

static char* line_of(const rn_cli_audit_t* audit, const rn_audit_event_t* event, int64_t left_out) {
  char stamp[32], whole[64];
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(whole, sizeof whole, "%s.%03ldZ", stamp, now.tv_nsec / 1000000);
  char raw[256], name[256], address[128];
  snprintf(raw, sizeof raw, "%.*s", RN_STR_ARGS(event->name));
  rn_log_escape(raw, name, sizeof name);  // the authority decides what it may contain, not we
  snprintf(address, sizeof address, "%.*s", RN_STR_ARGS(event->address));
  json_t* row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "time", whole, "task", audit->task,
                          "action", event->action, "name", name, "address", address, "role",
                          role_of(event->rights), "outcome", rn_code_name(event->outcome));
  if (row && left_out) json_object_set_new(row, "left_out", json_integer(left_out));
  char* text = row ? json_dumps(row, JSON_PRESERVE_ORDER) : NULL;
  json_decref(row);
  return text;
}

// Whether the event gets a line, and how many before it got none.
static bool admit_locked(rn_cli_audit_t* audit, const rn_audit_event_t* event,
                         int64_t* out_left_out) {
  int64_t now = audit->env->now_ns(audit->env->self);
  bool is_refused =
      event->outcome == RN_CODE_UNAUTHENTICATED || event->outcome == RN_CODE_PERMISSION_DENIED;
  if (now - audit->second_ns >= SECOND_NS) {
    audit->second_ns = now;
    audit->refused = 0;
  }
  if (is_refused && audit->refused++ >= MAX_REFUSED) {
    audit->left_out++;
    return false;
  }
  *out_left_out = audit->left_out;
  audit->left_out = 0;
  return true;
}

void rn_cli_audit_write(void* self, const rn_audit_event_t* event) {
  rn_cli_audit_t* audit = self;
  int64_t left_out = 0, unsaid;
  rn_mutex_lock(&audit->mutex);
  bool has_line = admit_locked(audit, event, &left_out);
  char* text = has_line ? line_of(audit, event, left_out) : NULL;
  // One write per line: lines of several processes do not mix.
  bool is_written = !has_line || (text && dprintf(audit->fd, "%s\n", text) > 0);
  int error = errno;
  rn_mutex_unlock(&audit->mutex);
  free(text);
  if (!is_written && rn_log_limit_says(&audit->failures, audit->env, &unsaid))
    rn_log(audit->env, RN_LOG_ERROR, "'%s' misses lines: %s", audit->path, strerror(error));
}

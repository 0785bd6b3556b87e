// The log: passes lines from plug-ins and sessions to the registered listeners. Initially there is
// none.
#include "tensorflow/c/logging.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/sync.h"
#include "capi/internal.h"

// As the API requires, listeners are process-wide and cannot be removed.
#define MAX_LISTENERS 16

static struct {
  rn_mutex_t mutex;  // held while adding a listener
  _Atomic int count;
  void (*listeners[MAX_LISTENERS])(const char*);  // written before |count| is incremented
} registry = {.mutex = RN_MUTEX_INIT};

void TF_RegisterLogListener(void (*listener)(const char*)) {
  if (!listener) return;
  rn_mutex_lock(&registry.mutex);
  int count = atomic_load_explicit(&registry.count, memory_order_relaxed);
  if (count < MAX_LISTENERS) {
    registry.listeners[count] = listener;
    atomic_store_explicit(&registry.count, count + 1, memory_order_release);
  }
  rn_mutex_unlock(&registry.mutex);
}

static void tell(const char* line) {
  int count = atomic_load_explicit(&registry.count, memory_order_acquire);
  for (int i = 0; i < count; ++i) registry.listeners[i](line);
}

static void env_log(void* self, rn_log_level_t level, const char* message) {
  (void)self;
  (void)level;
  tell(message);
}

static rn_env_t env;
static void make_env(void) {
  env = *rn_env_system();
  env.log = env_log;
}

const rn_env_t* rn_capi_env(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_env);
  return &env;
}

static void print(const char* format, va_list args) {
  if (!format || atomic_load_explicit(&registry.count, memory_order_acquire) == 0) return;
  char line[1024];
  vsnprintf(line, sizeof line, format, args);
  tell(line);
}

void TF_Log(TF_LogLevel level, const char* fmt, ...) {
  va_list args;
  (void)level;
  va_start(args, fmt);
  print(fmt, args);
  va_end(args);
}

// As in stock, TF_CPP_MAX_VLOG_LEVEL selects the verbose lines.
static bool is_verbose(int level) {
  const char* text = getenv("TF_CPP_MAX_VLOG_LEVEL");
  int64_t most;
  return text && rn_str_to_i64(rn_str(text), &most) && level <= most;
}

void TF_VLog(int level, const char* fmt, ...) {
  if (!is_verbose(level)) return;
  va_list args;
  va_start(args, fmt);
  print(fmt, args);
  va_end(args);
}

void TF_DVLog(int level, const char* fmt, ...) {
#ifdef NDEBUG
  (void)level;
  (void)fmt;
#else
  if (!is_verbose(level)) return;
  va_list args;
  va_start(args, fmt);
  print(fmt, args);
  va_end(args);
#endif
}

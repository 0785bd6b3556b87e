// See log.h. Graphs also log through ops that print, which bypass rn_log: messages are escaped
// here.
#include "cli/log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

static bool is_off(const rn_log_settings_t* settings, rn_log_level_t level) {
  return settings && settings->is_off[level];
}

// Writes the time of day to |out|, as ISO 8601 has it or as people read it.
static void write_time(bool is_iso, char out[64]) {
  char stamp[32];
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  if (is_iso)
    gmtime_r(&now.tv_sec, &parts);
  else
    localtime_r(&now.tv_sec, &parts);
  strftime(stamp, sizeof stamp, is_iso ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
  snprintf(out, 64, "%s.%03ld%s", stamp, now.tv_nsec / 1000000, is_iso ? "Z" : "");
}

void rn_cli_log_text(void* self, rn_log_level_t level, const char* message) {
  const rn_log_settings_t* settings = self;
  if (is_off(settings, level)) return;
  char line[4096], time[64];
  rn_log_escape(message, line, sizeof line);
  static const char letters[] = "IWE";
  write_time(settings && settings->is_iso, time);
  fprintf(stderr, "%s %c %s\n", time, letters[level], line);
}

void rn_cli_log_json(void* self, rn_log_level_t level, const char* message) {
  if (is_off(self, level)) return;
  char line[4096], time[64];
  rn_log_escape(message, line, sizeof line);
  static const char* const levels[] = {"info", "warning", "error"};
  write_time(true, time);
  json_t* row = json_pack("{s:s, s:s, s:s}", "time", time, "level", levels[level], "message", line);
  char* text = row ? json_dumps(row, JSON_PRESERVE_ORDER) : NULL;
  if (text) fprintf(stderr, "%s\n", text);
  free(text);
  json_decref(row);
}

// See log.h. Graphs also log through ops that print, which bypass rn_log: messages are escaped
// here.
#include "cli/log.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

void rn_cli_log_text(void* self, rn_log_level_t level, const char* message) {
  (void)self;
  char line[4096], stamp[32];
  rn_log_escape(message, line, sizeof line);
  static const char letters[] = "IWE";
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &parts);
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
  fprintf(stderr, "%s.%03ld %c %s\n", stamp, now.tv_nsec / 1000000, letters[level], line);
}

void rn_cli_log_json(void* self, rn_log_level_t level, const char* message) {
  (void)self;
  char line[4096], stamp[32], whole[64];
  rn_log_escape(message, line, sizeof line);
  static const char* const levels[] = {"info", "warning", "error"};
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(whole, sizeof whole, "%s.%03ldZ", stamp, now.tv_nsec / 1000000);
  json_t* row =
      json_pack("{s:s, s:s, s:s}", "time", whole, "level", levels[level], "message", line);
  char* text = row ? json_dumps(row, JSON_PRESERVE_ORDER) : NULL;
  if (text) fprintf(stderr, "%s\n", text);
  free(text);
  json_decref(row);
}

// Progress: see progress.h.
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_NS INT64_C(500000000)  // shorter operations show nothing
#define EACH_NS INT64_C(100000000)

static int64_t now_of(const rn_cli_t* cli) { return cli->env->now_ns(cli->env->self); }

rn_cli_progress_t rn_cli_progress(const rn_cli_t* cli, const char* what, int64_t total) {
  const char* terminal = getenv("TERM");
  int64_t now = now_of(cli);
  return (rn_cli_progress_t){
      .cli = cli,
      .what = what,
      .total = total,
      .start_ns = now,
      .shown_ns = now + FIRST_NS - EACH_NS,
      .is_on = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0};
}

static void put_time(double seconds, char* out, size_t room) {
  int64_t whole = (int64_t)(seconds + 0.5);
  if (whole < 100)
    snprintf(out, room, "%lld s", (long long)whole);
  else if (whole < 6000)
    snprintf(out, room, "%lld min", (long long)(whole + 30) / 60);
  else
    snprintf(out, room, "%lld h", (long long)(whole + 1800) / 3600);
}

void rn_cli_progress_set(rn_cli_progress_t* progress, int64_t done) {
  if (!progress->is_on || progress->total <= 0) return;
  int64_t now = now_of(progress->cli);
  if (now - progress->shown_ns < EACH_NS || done < 0 || done > progress->total) return;
  char left[32] = "?";
  rn_cli_digits_t a, b;
  double spent = (double)(now - progress->start_ns) * 1e-9;
  if (done) put_time(spent * (double)(progress->total - done) / (double)done, left, sizeof left);
  fprintf(stderr, "\r\033[K%s of %s %s, %.0f %%, %s left", rn_cli_digits(done, &a),
          rn_cli_digits(progress->total, &b), progress->what,
          100.0 * (double)done / (double)progress->total, left);
  fflush(stderr);
  progress->shown_ns = now;
  progress->is_shown = true;
}

void rn_cli_progress_end(rn_cli_progress_t* progress) {
  if (progress->is_shown) fputs("\r\033[K", stderr);
  progress->is_shown = false;
}

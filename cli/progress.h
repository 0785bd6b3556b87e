// A progress line for long operations: one line on stderr that is overwritten and erased at the
// end. Prints nothing if stderr is not a terminal.
#ifndef RUNNEL_CLI_PROGRESS_H_
#define RUNNEL_CLI_PROGRESS_H_

#include "cli/cli.h"

typedef struct rn_cli_progress_t {
  const rn_cli_t* cli;
  const char* what;  // "steps"; Borrowed
  int64_t total;
  int64_t start_ns, shown_ns;
  bool is_on, is_shown;
} rn_cli_progress_t;

rn_cli_progress_t rn_cli_progress(const rn_cli_t* cli, const char* what, int64_t total);
// Reports that |done| of the total are done. Cheap enough to call for every one.
void rn_cli_progress_set(rn_cli_progress_t* progress, int64_t done);
// Erases the line, so that something else can be printed; progress may continue afterwards.
void rn_cli_progress_end(rn_cli_progress_t* progress);

#endif  // RUNNEL_CLI_PROGRESS_H_

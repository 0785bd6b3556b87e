// How far a long operation is, on a terminal: one line of stderr that is written over and goes at
// the end. Elsewhere it says nothing.
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
// |done| of the total are done. Cheap enough to be called for each.
void rn_cli_progress_set(rn_cli_progress_t* progress, int64_t done);
// Takes the line away, so that something else can be printed; more may be done afterwards.
void rn_cli_progress_end(rn_cli_progress_t* progress);

#endif  // RUNNEL_CLI_PROGRESS_H_

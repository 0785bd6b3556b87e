// The command `runnel`: what its sub-commands share. One file a sub-command.
//
// A sub-command gets its arguments and returns a status. RN_OK ends the process with 0; a status
// from rn_cli_usage with 2; any other with 1. Either way the message goes to stderr, on one line,
// behind "runnel: ". Results go to stdout, and nothing else does.
#ifndef RUNNEL_CLI_CLI_H_
#define RUNNEL_CLI_CLI_H_

#include "base/fs.h"
#include "base/str.h"

typedef struct rn_cli_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  const char* command;  // the sub-command's name
  int argc;             // arguments behind it
  char** argv;
  int at;             // the next one to read
  bool options_over;  // "--" was seen
} rn_cli_t;

// X(name, what it does, in a few words)
#define RN_CLI_COMMANDS(X)                                     \
  X(ops, "list the ops, or explain one")                       \
  X(graph, "look into a graph: statistics, text, a picture")   \
  X(run, "run a graph: feed values, fetch results")            \
  X(saved_model, "show, run or freeze a SavedModel")           \
  X(transform, "cut a graph to size, text to bytes")           \
  X(ckpt, "list, show or verify a checkpoint")                 \
  X(events, "list a training log, and plot its curves")        \
  X(trace, "turn what a step did into a Chrome trace")         \
  X(server, "run a task of a cluster")                         \
  X(sim, "train on a simulated cluster, with backup workers")  \
  X(cluster, "start a local cluster, look at one, end it")     \
  X(top, "watch a cluster as it runs")                         \
  X(cert, "make certificates for a cluster")                   \
  X(python_compat, "what a Python script needs and is absent") \
  X(bench, "time the core of this library on this machine")

#define RN_CLI_DECLARE(name, summary)                   \
  RN_MUST_USE rn_status_t rn_cli_##name(rn_cli_t* cli); \
  extern const char rn_cli_##name##_help[];
RN_CLI_COMMANDS(RN_CLI_DECLARE)
#undef RN_CLI_DECLARE

// An option of a sub-command. A list of them ends with a NULL name.
typedef struct rn_cli_option_t {
  const char* name;  // "--feed"
  bool takes_value;  // "--feed VALUE" or "--feed=VALUE"
} rn_cli_option_t;

enum { RN_CLI_WORD = -1, RN_CLI_END = -2 };

// Reads the next argument: |*out_option| is its place in |options|, or RN_CLI_WORD for a word that
// is no option, or RN_CLI_END. |*out_value| is the word, or the option's value. A usage error for
// an option that is not in the list and for a value that is missing or not wanted.
RN_MUST_USE rn_status_t rn_cli_next(rn_cli_t* cli, const rn_cli_option_t* options, int* out_option,
                                    const char** out_value);

// A status that says: you called me wrongly. The message names the sub-command and its help.
RN_MUST_USE rn_status_t rn_cli_usage(const rn_cli_t* cli, const char* format, ...) RN_PRINTF(2, 3);
// |status| with text in front of its message; takes it. RN_OK stays RN_OK.
RN_MUST_USE rn_status_t rn_cli_prefix(rn_status_t status, const char* format, ...) RN_PRINTF(2, 3);

// The value of |option| as a number of at least |least|; a usage error otherwise.
RN_MUST_USE rn_status_t rn_cli_number(const rn_cli_t* cli, const char* option, const char* text,
                                      int64_t least, int64_t* out);

// Splits "name=value" at the first '='; a usage error if there is none or the name is empty.
RN_MUST_USE rn_status_t rn_cli_split(const rn_cli_t* cli, const char* option, const char* text,
                                     rn_str_t* out_name, rn_str_t* out_value);

// 1234567 as "1,234,567", in |buffer|.
typedef struct rn_cli_digits_t {
  char text[32];
} rn_cli_digits_t;
const char* rn_cli_digits(int64_t value, rn_cli_digits_t* buffer);

#endif  // RUNNEL_CLI_CLI_H_

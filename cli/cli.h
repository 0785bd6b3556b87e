// The command `runnel`: shared by its sub-commands. One file per sub-command.
//
// Each sub-command is a row of one table (rn_cli_command_t): its verbs, words and options. The
// parser, the help, the completion scripts and the check of the manual pages all read that table.
//
// A sub-command runs after its arguments have been read and returns a status. RN_OK ends the
// process with 0; a status from rn_cli_usage with 2; any other with 1. Error messages go to stderr,
// on one line, after "runnel: ". Only results go to stdout.
#ifndef RUNNEL_CLI_CLI_H_
#define RUNNEL_CLI_CLI_H_

#include <stdio.h>

#include "base/fs.h"
#include "base/str.h"
#include "base/vec.h"

typedef struct rn_cli_t rn_cli_t;

// The kind of a value or word: the parser checks it and shells complete it.
typedef enum rn_cli_kind_t {
  RN_CLI_TEXT = 0,
  RN_CLI_FLAG,    // an option without a value, or with true or false
  RN_CLI_NUMBER,  // a whole number
  RN_CLI_FILE,
  RN_CLI_FOLDER,
  RN_CLI_CHOICE,   // one of the words in |choices|
  RN_CLI_OP,       // the name of an op
  RN_CLI_COMMAND,  // the name of a sub-command
} rn_cli_kind_t;

// An option. A list of them ends with a NULL name.
typedef struct rn_cli_option_t {
  const char* name;   // "--feed"; '_' and '-' are equivalent on the command line
  const char* value;  // placeholder in the help, "NAME=VALUE"; NULL for a flag
  const char* help;
  rn_cli_kind_t kind;
  bool repeats;         // may be given several times
  bool is_word;         // may replace the first word: --dir FOLDER for FOLDER
  int64_t least, most;  // bounds of a number; |most| 0 means INT32_MAX
  const char* choices;  // "auto always never"
  const char* verbs;    // "show run": the verbs that take it; NULL for all
  const char* also;     // another spelling, or NULL
} rn_cli_option_t;

// RN_OPTION(NUMBER, "--threads", "N", "use N threads", .least = 1)
#define RN_OPTION(kind_, name_, value_, help_, ...) \
  { .name = name_, .value = value_, .help = help_, .kind = RN_CLI_##kind_, __VA_ARGS__ }

// A verb of a sub-command: "list" of "ckpt". A list of them ends with a NULL name.
typedef struct rn_cli_verb_t {
  const char* name;
  const char* words;  // "PREFIX NAME"; "[NAME]" is optional, "..." means any number
  const char* help;
  rn_status_t (*run)(rn_cli_t* cli);
  rn_cli_kind_t word_kind;
  const struct rn_cli_command_t* like;  // a command whose options it also takes, or NULL
} rn_cli_verb_t;

// RN_VERB("list", "PREFIX", run_list, FILE, "name, type and shape of every tensor")
#define RN_VERB(name_, words_, run_, kind_, help_, ...)                                      \
  {                                                                                          \
    .name = name_, .words = words_, .help = help_, .run = run_, .word_kind = RN_CLI_##kind_, \
    __VA_ARGS__                                                                              \
  }

typedef struct rn_cli_command_t {
  const char* name;     // '_' and '-' are equivalent on the command line
  const char* summary;  // a few words
  const char* about;    // paragraphs, with "\n\n" between them
  const char* words;    // for a command without verbs
  rn_cli_kind_t word_kind;
  rn_status_t (*run)(rn_cli_t* cli);
  const rn_cli_verb_t* verbs;  // NULL: none
  const rn_cli_option_t* options;
  const char* examples;  // lines
} rn_cli_command_t;

// The sub-commands, in the order of the help.
#define RN_CLI_COMMANDS(X) \
  X(ops)                   \
  X(graph)                 \
  X(run)                   \
  X(saved_model)           \
  X(transform)             \
  X(place)                 \
  X(quantize)              \
  X(ckpt)                  \
  X(events)                \
  X(trace)                 \
  X(server)                \
  X(serve)                 \
  X(load)                  \
  X(sim)                   \
  X(cluster)               \
  X(container)             \
  X(top)                   \
  X(cert)                  \
  X(data_server)           \
  X(python_compat)         \
  X(devices)               \
  X(bench)                 \
  X(completion)            \
  X(version)               \
  X(help)

#define RN_CLI_DECLARE(name) extern const rn_cli_command_t rn_cli_##name##_command;
RN_CLI_COMMANDS(RN_CLI_DECLARE)
#undef RN_CLI_DECLARE

// The option --json, for the tables of commands that have it.
#define RN_CLI_JSON_OPTION(verbs_) \
  RN_OPTION(FLAG, "--json", NULL, "print JSON, for programs", .verbs = verbs_)

// All sub-commands, ending with NULL.
extern const rn_cli_command_t* const rn_cli_commands[];
// Options of every command, ending with a NULL name.
extern const rn_cli_option_t rn_cli_common_options[];

// An option of the command line. |value| is NULL for a flag, or "false".
typedef struct rn_cli_given_t {
  const rn_cli_option_t* option;
  const char* value;
} rn_cli_given_t;

struct rn_cli_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  const rn_cli_command_t* command;  // NULL until it is known
  const rn_cli_verb_t* verb;        // NULL if the command has none
  RN_VEC(const char*) words;        // the arguments that are not options
  size_t rest;                   // index of the first word after "--"; words.count without a "--"
  RN_VEC(rn_cli_given_t) given;  // in the order of the command line
};

// Reads the arguments of |cli->command|: its verb, words and options, checked against the table. A
// usage error says what is wrong, and suggests what was probably meant.
RN_MUST_USE rn_status_t rn_cli_parse(rn_cli_t* cli, int argc, char** argv);
void rn_cli_clear(rn_cli_t* cli);

// The value of an option, by its name in the table. Numbers are within their bounds.
bool rn_cli_has(const rn_cli_t* cli, const char* option);
// A flag that has another default: "--flag=false" and "--flag=true" are possible for every flag.
bool rn_cli_flag(const rn_cli_t* cli, const char* option, bool otherwise);
const char* rn_cli_text(const rn_cli_t* cli, const char* option);  // the last value, or NULL
int64_t rn_cli_number(const rn_cli_t* cli, const char* option, int64_t otherwise);
// The next value of a repeated option, from |*inout_at| (initially 0) on; NULL if there are no
// more.
const char* rn_cli_each(const rn_cli_t* cli, const char* option, size_t* inout_at);
// Whether |given| is the option of that name.
bool rn_cli_is(const rn_cli_given_t* given, const char* option);

// The argument that the table calls |name|: "PREFIX" of "PREFIX [NAME]". NULL if it was not given.
const char* rn_cli_word(const rn_cli_t* cli, const char* name);

// A usage error. The message names the sub-command and its help.
RN_MUST_USE rn_status_t rn_cli_usage(const rn_cli_t* cli, const char* format, ...) RN_PRINTF(2, 3);
// Takes |status| and prefixes its message; RN_OK stays RN_OK.
RN_MUST_USE rn_status_t rn_cli_prefix(rn_status_t status, const char* format, ...) RN_PRINTF(2, 3);

// Takes |status| and adds the quoted name of its file or folder to the message. If the message
// already contains the name, only quotes it.
RN_MUST_USE rn_status_t rn_cli_at(rn_status_t status, const char* path);

// Splits "name=value" at the first '='; a usage error if there is none or the name is empty.
RN_MUST_USE rn_status_t rn_cli_split(const rn_cli_t* cli, const char* option, rn_str_t text,
                                     rn_str_t* out_name, rn_str_t* out_value);

// The most similar candidate to |wanted|, if it is similar enough to suggest.
typedef struct rn_cli_near_t {
  const char* wanted;
  const char* best;  // NULL if no candidate is similar enough
  int distance;
} rn_cli_near_t;
void rn_cli_near_try(rn_cli_near_t* near, const char* candidate);

// Prints the help of |command| or, if it is NULL, the summary of all.
void rn_cli_print_help(const rn_cli_t* cli, const rn_cli_command_t* command);
// Finds a command by name, or returns NULL. |near| may be NULL.
const rn_cli_command_t* rn_cli_find(const char* name, rn_cli_near_t* near);
// Whether a verb of |command| takes |option|; |verb| is NULL if it has none.
bool rn_cli_takes(const rn_cli_option_t* option, const rn_cli_verb_t* verb);

// 1234567 as "1,234,567", in |buffer|.
typedef struct rn_cli_digits_t {
  char text[32];
} rn_cli_digits_t;
const char* rn_cli_digits(int64_t value, rn_cli_digits_t* buffer);

#endif  // RUNNEL_CLI_CLI_H_

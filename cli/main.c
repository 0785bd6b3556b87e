// The command `runnel`: finds the sub-command, reports how it went.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "runnel/version.h"

// The TensorFlow release whose C API and op definitions these are.
#define TENSORFLOW_LEVEL "2.21.0"

static const struct {
  const char* name;
  const char* summary;
  rn_status_t (*run)(rn_cli_t* cli);
  const char* help;
} commands[] = {
#define ROW(name, summary) {#name, summary, rn_cli_##name, rn_cli_##name##_help},
    RN_CLI_COMMANDS(ROW)
#undef ROW
};
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

// saved_model and saved-model are the same command.
static bool is_called(const char* command, const char* name) {
  while (*command && *command == (*name == '-' ? '_' : *name)) ++command, ++name;
  return *command == *name;
}

static int find(const char* name) {
  for (int i = 0; i < COMMAND_COUNT; ++i)
    if (is_called(commands[i].name, name)) return i;
  return -1;
}

static void print_help(void) {
  printf(
      "runnel %s: TensorFlow's dataflow graphs from the shell\n"
      "\n"
      "usage: runnel COMMAND [ARGUMENT ...]\n"
      "\n",
      RN_VERSION_STRING);
  for (int i = 0; i < COMMAND_COUNT; ++i)
    printf("  %-13s %s\n", commands[i].name, commands[i].summary);
  printf(
      "  %-13s explain a command, with examples\n"
      "\n"
      "  --version    print the version and the TensorFlow level it matches\n"
      "  --help       print this\n"
      "\n"
      "A first look:\n"
      "  runnel ops MatMul                 what the op takes, gives and accepts\n"
      "  runnel graph model.pb             what is in a GraphDef\n"
      "  runnel graph model.pb --dot | dot -Tsvg > model.svg\n"
      "  runnel run model.pb --feed 'x=[[1,2],[3,4]]' --fetch y\n"
      "  runnel saved_model show model     what a SavedModel takes and gives\n"
      "\n"
      "Exit status: 0 done, 1 failed, 2 called wrongly. Errors go to stderr.\n",
      "help");
}

// Whatever the message has in it, it is printed on one line.
static void print_error(const char* message) {
  fputs("runnel: ", stderr);
  bool is_gap = false;
  for (const char* at = message; *at; ++at) {
    if (*at == '\n' || *at == '\t' || *at == '\r') {
      is_gap = true;
      continue;
    }
    if (is_gap && *at != ' ') fputc(' ', stderr);
    is_gap = false;
    fputc((unsigned char)*at < 0x20 ? '?' : *at, stderr);
  }
  fputc('\n', stderr);
}

static void note_usage(const char* key, const char* value, void* arg) {
  (void)value;
  if (strcmp(key, "runnel/usage") == 0) *(bool*)arg = true;
}

static int finish(rn_status_t status) {
  int code = 0;
  if (!rn_ok(status)) {
    bool is_usage = false;
    rn_status_each_payload(status, note_usage, &is_usage);
    code = is_usage ? 2 : 1;
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    if (code == 0) fprintf(stderr, "runnel: cannot write the output: %s\n", strerror(errno));
    if (code == 0) code = 1;
  }
  if (!rn_ok(status)) print_error(rn_status_message(status));
  rn_status_free(status);
  return code;
}

static rn_status_t help(rn_cli_t* cli, const char* topic) {
  if (!topic) {
    print_help();
    return RN_OK;
  }
  int i = find(topic);
  if (i < 0) return rn_cli_usage(cli, "there is no command '%s'", topic);
  fputs(commands[i].help, stdout);
  return RN_OK;
}

static bool is_help(const char* word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static rn_status_t run(rn_cli_t* cli, int argc, char** argv) {
  if (argc < 2) {
    return rn_cli_usage(cli, "name a command");
  } else if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
    return help(cli, argc > 2 ? argv[2] : NULL);
  } else if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
    printf("runnel %s (TensorFlow %s)\n", RN_VERSION_STRING, TENSORFLOW_LEVEL);
    return RN_OK;
  }
  int i = find(argv[1]);
  if (i < 0) return rn_cli_usage(cli, "there is no command '%s'", argv[1]);
  cli->command = commands[i].name;
  cli->argc = argc - 2;
  cli->argv = argv + 2;
  for (int a = 0; a < cli->argc && strcmp(cli->argv[a], "--") != 0; ++a)
    if (is_help(cli->argv[a])) return help(cli, cli->command);
  return commands[i].run(cli);
}

int main(int argc, char** argv) {
  rn_cli_t cli = {.allocator = rn_allocator_default(), .env = rn_env_system()};
  return finish(run(&cli, argc, argv));
}

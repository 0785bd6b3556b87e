// The command `runnel`: finds the sub-command, runs it, and reports its status.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/color.h"
#include "runnel/version.h"

// The TensorFlow release whose C API and op definitions these are.
#define TENSORFLOW_LEVEL "2.21.0"

const rn_cli_command_t* const rn_cli_commands[] = {
#define ROW(name) &rn_cli_##name##_command,
    RN_CLI_COMMANDS(ROW)
#undef ROW
        NULL};

// saved_model and saved-model are the same command.
static bool is_called(const char* command, const char* name) {
  while (*command && (*command == '-' ? '_' : *command) == (*name == '-' ? '_' : *name))
    ++command, ++name;
  return *command == *name;
}

const rn_cli_command_t* rn_cli_find(const char* name, rn_cli_near_t* near) {
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command) {
    if (is_called((*command)->name, name)) return *command;
    if (near) rn_cli_near_try(near, (*command)->name);
  }
  return NULL;
}

static rn_status_t no_command(const char* name) {
  rn_cli_t cli = {0};
  rn_cli_near_t near = {.wanted = name};
  rn_cli_find(name, &near);
  if (near.best)
    return rn_cli_usage(&cli, "there is no command '%s'; did you mean '%s'?", name, near.best);
  return rn_cli_usage(&cli, "there is no command '%s'", name);
}

static rn_status_t print_version(rn_cli_t* cli) {
  (void)cli;
  printf("runnel %s (TensorFlow %s)\n", RN_VERSION_STRING, TENSORFLOW_LEVEL);
  return RN_OK;
}

const rn_cli_command_t rn_cli_version_command = {
    .name = "version",
    .summary = "print the version (also --version)",
    .about =
        "Prints the version, and the TensorFlow release whose C API and op definitions it "
        "matches.",
    .run = print_version,
    .examples = "runnel version",
};

static rn_status_t print_help(rn_cli_t* cli) {
  const char* topic = rn_cli_word(cli, "COMMAND");
  const rn_cli_command_t* command = topic ? rn_cli_find(topic, NULL) : NULL;
  if (topic && !command) return no_command(topic);
  rn_cli_print_help(cli, command);
  return RN_OK;
}

const rn_cli_command_t rn_cli_help_command = {
    .name = "help",
    .summary = "explain a command, with examples (also --help)",
    .about = "Explains a command: its options, and examples. Without a name, lists the commands.",
    .words = "[COMMAND]",
    .word_kind = RN_CLI_COMMAND,
    .run = print_help,
    .examples = "runnel help run",
};

// Prints the message on one line, even if it contains line breaks.
static void print_error(const rn_cli_t* cli, const char* message) {
  fprintf(stderr, "%srunnel:%s ", rn_cli_color(cli, stderr, RN_COLOR_RED),
          rn_cli_color(cli, stderr, RN_COLOR_OFF));
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

static int finish(const rn_cli_t* cli, rn_status_t status) {
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
  if (!rn_ok(status)) print_error(cli, rn_status_message(status));
  rn_status_free(status);
  return code;
}

static bool is_help(const char* word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static rn_status_t run(rn_cli_t* cli, int argc, char** argv) {
  const char* name = argc < 2 || is_help(argv[1])                                      ? "help"
                     : strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ? "version"
                                                                                       : argv[1];
  cli->command = rn_cli_find(name, NULL);
  if (!cli->command) return no_command(name);
  int first = argc < 2 ? 1 : 2;
  for (int a = first; a < argc && strcmp(argv[a], "--") != 0; ++a) {
    if (!is_help(argv[a])) continue;
    rn_cli_print_help(cli, cli->command);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_cli_parse(cli, argc - first, argv + first));
  return cli->verb ? cli->verb->run(cli) : cli->command->run(cli);
}

int main(int argc, char** argv) {
  rn_cli_t cli = {.allocator = rn_allocator_default(), .env = rn_env_system()};
  rn_status_t status = run(&cli, argc, argv);
  int code = finish(&cli, status);
  rn_cli_clear(&cli);
  return code;
}

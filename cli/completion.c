// runnel completion: completion scripts for shells, generated from the table of commands.
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"

// The length of the first part of |text|, which shells show beside an option.
static int brief_of(const char* text) {
  size_t size = 0;
  while (text[size] && !strchr(";(", text[size]) &&
         !(strchr(":.", text[size]) && text[size + 1] == ' '))
    ++size;
  while (size && text[size - 1] == ' ') --size;
  return (int)size;
}

// Prints |text| for use between single quotes; |escaped| has a backslash put before it.
static void put_quoted(const char* text, int size, const char* quote, const char* escaped) {
  for (int i = 0; i < size; ++i) {
    if (text[i] == '\'')
      fputs(quote, stdout);
    else
      printf("%s%c", strchr(escaped, text[i]) ? "\\" : "", text[i]);
  }
}

// The lists of options of a command and one of its verbs.
enum { LISTS = 3 };
static void find_lists(const rn_cli_command_t* command, const rn_cli_verb_t* verb,
                       const rn_cli_option_t* out[LISTS]) {
  static const rn_cli_option_t none[] = {{0}};
  out[0] = command->options ? command->options : none;
  out[1] = verb && verb->like ? verb->like->options : none;
  out[2] = rn_cli_common_options;
}

// Calls |put| for each option that |verb| of |command| takes; of two options with the same name
// only the first.
static void each_option(const rn_cli_command_t* command, const rn_cli_verb_t* verb,
                        void (*put)(const rn_cli_option_t* option, const void* arg),
                        const void* arg) {
  const rn_cli_option_t* lists[LISTS];
  find_lists(command, verb, lists);
  for (int l = 0; l < LISTS; ++l)
    for (const rn_cli_option_t* option = lists[l]; option->name; ++option) {
      bool is_again = false;
      for (const rn_cli_option_t* other = lists[0]; l == 1 && other->name; ++other)
        is_again |= rn_cli_takes(other, verb) && strcmp(other->name, option->name) == 0;
      if (rn_cli_takes(option, verb) && !is_again) put(option, arg);
    }
}

// Bash.

// Prints the completion of a value or a word; kinds without an action are not completed.
static void put_bash_reply(rn_cli_kind_t kind, const char* choices) {
  static const char* const actions[] = {
      [RN_CLI_FILE] = "-f",
      [RN_CLI_FOLDER] = "-d",
      [RN_CLI_OP] = "-W \"$(runnel ops 2>/dev/null | sed '$d; s/ .*//')\"",
      [RN_CLI_COMMAND] = "-W \"$commands\""};
  if (kind == RN_CLI_CHOICE && choices)
    printf("COMPREPLY=($(compgen -W '%s' -- \"$current\")); ", choices);
  else if ((size_t)kind < sizeof actions / sizeof *actions && actions[kind])
    printf("COMPREPLY=($(compgen %s -- \"$current\")); ", actions[kind]);
}

static void put_bash_name(const rn_cli_option_t* option, const void* arg) {
  (void)arg;
  printf(" %s", option->name);
}

static void put_bash_value(const rn_cli_option_t* option, const void* arg) {
  (void)arg;
  if (option->kind == RN_CLI_FLAG) return;
  printf("        %s) ", option->name);
  put_bash_reply(option->kind, option->choices);
  printf("return ;;\n");
}

static void put_bash_case(const rn_cli_command_t* command, const rn_cli_verb_t* verb) {
  rn_cli_kind_t kind = verb ? verb->word_kind : command->word_kind;
  printf("    %s/%s)\n      case $previous in\n", command->name, verb ? verb->name : "*");
  each_option(command, verb, put_bash_value, NULL);
  printf("      esac\n      options='");
  each_option(command, verb, put_bash_name, NULL);
  printf("'\n      ");
  put_bash_reply(kind, NULL);
  printf(";;\n");
}

static void put_bash(void) {
  printf(
      "# Completion of runnel for bash, made by 'runnel completion bash'.\n"
      "_runnel() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options=\n"
      "  local command=${COMP_WORDS[1]} verb=${COMP_WORDS[2]-} commands='");
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command)
    printf("%s%s", command == rn_cli_commands ? "" : " ", (*command)->name);
  printf(
      "'\n  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$current\"))\n"
      "    return\n  fi\n");
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command) {
    if (!(*command)->verbs) continue;
    printf("  if [[ $command == %s ]] && ((COMP_CWORD == 2)); then\n    COMPREPLY=($(compgen -W '",
           (*command)->name);
    for (const rn_cli_verb_t* verb = (*command)->verbs; verb->name; ++verb)
      printf("%s ", verb->name);
    printf("--help' -- \"$current\"))\n    return\n  fi\n");
  }
  printf("  case $command/$verb in\n");
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command) {
    if (!(*command)->verbs) put_bash_case(*command, NULL);
    for (const rn_cli_verb_t* verb = (*command)->verbs; verb && verb->name; ++verb)
      put_bash_case(*command, verb);
  }
  printf(
      "  esac\n"
      "  [[ $current == -* ]] && COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
      "}\n"
      "complete -o filenames -F _runnel runnel\n");
}

// Zsh.

static const char* zsh_action(rn_cli_kind_t kind) {
  return kind == RN_CLI_FILE      ? "_files"
         : kind == RN_CLI_FOLDER  ? "_files -/"
         : kind == RN_CLI_OP      ? "_runnel_ops"
         : kind == RN_CLI_COMMAND ? "_runnel_commands"
                                  : "";
}

static void put_zsh_option(const rn_cli_option_t* option, const void* arg) {
  (void)arg;
  printf("        '%s%s%s[", option->repeats ? "*" : "", option->name,
         option->kind == RN_CLI_FLAG ? "" : "=");
  put_quoted(option->help, brief_of(option->help), "'\\''", "[]\\");
  printf("]");
  if (option->kind != RN_CLI_FLAG) {
    printf(":");
    put_quoted(option->value, (int)strlen(option->value), "'\\''", ":\\");
    printf(":");
    if (option->kind == RN_CLI_CHOICE)
      printf("(%s)", option->choices);
    else
      printf("%s", zsh_action(option->kind));
  }
  printf("' \\\n");
}

static void put_zsh_case(const rn_cli_command_t* command, const rn_cli_verb_t* verb,
                         const char* indent) {
  rn_cli_kind_t kind = verb ? verb->word_kind : command->word_kind;
  printf("%s%s)\n%s  _arguments \\\n", indent, verb ? verb->name : command->name, indent);
  each_option(command, verb, put_zsh_option, NULL);
  printf("        '*:argument:%s'\n%s  ;;\n", zsh_action(kind), indent);
}

static void put_zsh(void) {
  printf(
      "#compdef runnel\n"
      "# Completion of runnel for zsh, made by 'runnel completion zsh'.\n"
      "_runnel_ops() { compadd -- ${(f)\"$(runnel ops 2>/dev/null | sed '$d; s/ .*//')\"} }\n"
      "_runnel_commands() {\n  local -a commands\n  commands=(\n");
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command) {
    printf("    '%s:", (*command)->name);
    put_quoted((*command)->summary, (int)strlen((*command)->summary), "'\\''", "\\");
    printf("'\n");
  }
  printf(
      "  )\n  _describe command commands\n}\n"
      "_runnel() {\n"
      "  local curcontext=$curcontext state line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C '(- *)--help[list the commands]' '(- *)--version[print the version]' \\\n"
      "    '1:command:_runnel_commands' '*::argument:->arguments'\n"
      "  [[ $state == arguments ]] || return\n"
      "  case $words[1] in\n");
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command) {
    if (!(*command)->verbs) {
      put_zsh_case(*command, NULL, "    ");
      continue;
    }
    printf("    %s)\n      if ((CURRENT == 2)); then\n        local -a verbs\n        verbs=(",
           (*command)->name);
    for (const rn_cli_verb_t* verb = (*command)->verbs; verb->name; ++verb) {
      printf("'%s:", verb->name);
      put_quoted(verb->help, brief_of(verb->help), "'\\''", "\\");
      printf("' ");
    }
    printf(
        ")\n        _describe verb verbs\n        return\n      fi\n"
        "      shift words\n      ((CURRENT--))\n      case $words[1] in\n");
    for (const rn_cli_verb_t* verb = (*command)->verbs; verb->name; ++verb)
      put_zsh_case(*command, verb, "        ");
    printf("      esac\n      ;;\n");
  }
  printf("  esac\n}\n_runnel \"$@\"\n");
}

// Fish.

typedef struct fish_t {
  const char *command, *verb;
} fish_t;

static void put_fish_condition(const fish_t* at) {
  printf("complete -c runnel -n '__fish_seen_subcommand_from %s%s%s'", at->command,
         at->verb ? "; and __fish_seen_subcommand_from " : "", at->verb ? at->verb : "");
}

static void put_fish_option(const rn_cli_option_t* option, const void* arg) {
  put_fish_condition(arg);
  printf(" -l %s", option->name + 2);
  if (option->also && strlen(option->also) == 2) printf(" -s %s", option->also + 1);
  if (option->kind != RN_CLI_FLAG) printf(" -r");
  if (option->kind == RN_CLI_CHOICE) printf(" -f -a '%s'", option->choices);
  if (option->kind == RN_CLI_FILE) printf(" -F");
  if (option->kind == RN_CLI_FOLDER) printf(" -f -a '(__fish_complete_directories)'");
  printf(" -d '");
  put_quoted(option->help, brief_of(option->help), "\\'", "\\");
  printf("'\n");
}

static void put_fish_words(const fish_t* at, rn_cli_kind_t kind) {
  if (kind != RN_CLI_FILE && kind != RN_CLI_FOLDER && kind != RN_CLI_OP) return;
  put_fish_condition(at);
  if (kind == RN_CLI_FILE) printf(" -F\n");
  if (kind == RN_CLI_FOLDER) printf(" -a '(__fish_complete_directories)'\n");
  if (kind == RN_CLI_OP)
    printf(" -a '(runnel ops 2>/dev/null | string match -r \"^[A-Z_]\\\\w*\")'\n");
}

static void put_fish_verb(const rn_cli_command_t* command, const rn_cli_verb_t* verb) {
  printf(
      "complete -c runnel -n '__fish_seen_subcommand_from %s; and not "
      "__fish_seen_subcommand_from",
      command->name);
  for (const rn_cli_verb_t* other = command->verbs; other->name; ++other)
    printf(" %s", other->name);
  printf("' -a %s -d '", verb->name);
  put_quoted(verb->help, brief_of(verb->help), "\\'", "\\");
  printf("'\n");
}

static void put_fish(void) {
  printf(
      "# Completion of runnel for fish, made by 'runnel completion fish'.\n"
      "complete -c runnel -f\n"
      "complete -c runnel -n __fish_use_subcommand -l help -d 'list the commands'\n"
      "complete -c runnel -n __fish_use_subcommand -l version -d 'print the version'\n");
  for (const rn_cli_command_t* const* each = rn_cli_commands; *each; ++each) {
    const rn_cli_command_t* command = *each;
    printf("complete -c runnel -n __fish_use_subcommand -a %s -d '", command->name);
    put_quoted(command->summary, (int)strlen(command->summary), "\\'", "\\");
    printf("'\n");
    fish_t at = {.command = command->name};
    if (!command->verbs) {
      each_option(command, NULL, put_fish_option, &at);
      put_fish_words(&at, command->word_kind);
    }
    for (const rn_cli_verb_t* verb = command->verbs; verb && verb->name; ++verb) {
      put_fish_verb(command, verb);
      at.verb = verb->name;
      each_option(command, verb, put_fish_option, &at);
      put_fish_words(&at, verb->word_kind);
    }
  }
}

static rn_status_t bash(rn_cli_t* cli) {
  (void)cli;
  put_bash();
  return RN_OK;
}
static rn_status_t zsh(rn_cli_t* cli) {
  (void)cli;
  put_zsh();
  return RN_OK;
}
static rn_status_t fish(rn_cli_t* cli) {
  (void)cli;
  put_fish();
  return RN_OK;
}

static const rn_cli_verb_t verbs[] = {
    RN_VERB("bash", NULL, bash, TEXT,
            "for bash: source it, or put it into bash-completion's folder"),
    RN_VERB("zsh", NULL, zsh, TEXT, "for zsh: a file _runnel in a folder of fpath"),
    RN_VERB("fish", NULL, fish, TEXT, "for fish: a file runnel.fish in a folder of completions"),
    {0},
};

const rn_cli_command_t rn_cli_completion_command = {
    .name = "completion",
    .summary = "print completions for bash, zsh or fish",
    .about =
        "Prints a script that makes a shell complete commands, options, files and the names of "
        "ops. 'make install' installs all three.",
    .verbs = verbs,
    .examples =
        "source <(runnel completion bash)\n"
        "runnel completion zsh > _runnel\n"
        "runnel completion fish > runnel.fish",
};

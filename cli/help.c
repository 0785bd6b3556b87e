// Prints the help of the command and of its sub-commands from their table: see cli.h.
#include <string.h>

#include "cli/color.h"
#include "runnel/version.h"

enum { WIDTH = 80, LEFT = 2, MOST_LISTED = 7 };

// Prints |text| word by word in lines that begin at |indent|; the first begins at |column|.
static void print_wrapped(const char* text, int indent, int column) {
  while (*text) {
    size_t size = strcspn(text, " \n");
    if (column > indent && column + 1 + (int)size > WIDTH) {
      printf("\n%*s", indent, "");
      column = indent;
    } else if (column > indent) {
      putchar(' ');
      ++column;
    }
    fwrite(text, 1, size, stdout);
    column += (int)size;
    text += size;
    if (text[0] == '\n') {
      printf("%s\n%*s", text[1] == '\n' ? "\n" : "", indent, "");
      column = indent;
    }
    text += strspn(text, " \n");
  }
  putchar('\n');
}

static int width_of(const rn_cli_option_t* option) {
  return (int)strlen(option->name) + (option->value ? 1 + (int)strlen(option->value) : 0);
}

// |name| and |value| at the left, |help| beside them.
static void print_row(const rn_cli_t* cli, const char* name, const char* value, const char* help,
                      int indent) {
  fputs(rn_cli_color(cli, stdout, RN_COLOR_BOLD), stdout);
  int column = printf("%*s%s", LEFT, "", name);
  fputs(rn_cli_color(cli, stdout, RN_COLOR_OFF), stdout);
  if (value) column += printf(" %s", value);
  if (column + 2 > indent) {
    putchar('\n');
    column = 0;
  }
  printf("%*s", indent - column, "");
  print_wrapped(help, indent, indent);
}

static void print_options(const rn_cli_t* cli, const rn_cli_option_t* options, int indent) {
  for (const rn_cli_option_t* option = options; option && option->name; ++option) {
    char help[1024];
    snprintf(help, sizeof help, "%s%s%s%s", option->help, option->also ? " (also " : "",
             option->also ? option->also : "", option->also ? ")" : "");
    print_row(cli, option->name, option->value, help, indent);
  }
}

static int indent_of(const rn_cli_command_t* command) {
  int widest = 6;
  for (const rn_cli_option_t* option = command->options; option && option->name; ++option)
    if (width_of(option) > widest && width_of(option) <= 20) widest = width_of(option);
  for (const rn_cli_verb_t* verb = command->verbs; verb && verb->name; ++verb)
    if ((int)strlen(verb->name) > widest) widest = (int)strlen(verb->name);
  return LEFT + widest + 2;
}

// Prints a part of the usage without a line break inside.
static void print_part(const char* part, int* inout_column) {
  enum { INDENT = 18 };
  if (*inout_column + 1 + (int)strlen(part) > WIDTH)
    *inout_column = printf("\n%*s", INDENT - 1, "") - 1;
  *inout_column += printf(" %s", part);
}

static int count_options(const rn_cli_command_t* command, const rn_cli_verb_t* verb) {
  int count = 0;
  for (const rn_cli_option_t* o = command->options; o && o->name; ++o)
    count += rn_cli_takes(o, verb);
  return verb && verb->like ? MOST_LISTED + 1 : count;
}

// One line of usage: the options, if they are few, then the words; words after "--" come last.
static void print_usage(const rn_cli_command_t* command, const rn_cli_verb_t* verb,
                        const char* start) {
  const char* words = verb ? verb->words : command->words;
  bool is_rest = words && strncmp(words, "[--", 3) == 0;
  int column =
      printf("%s runnel %s%s%s", start, command->name, verb ? " " : "", verb ? verb->name : "");
  if (words && !is_rest) print_part(words, &column);
  if (count_options(command, verb) > MOST_LISTED) {
    print_part("[OPTION ...]", &column);
  } else {
    for (const rn_cli_option_t* o = command->options; o && o->name; ++o) {
      char part[128];
      snprintf(part, sizeof part, "[%s%s%s%s]", o->name, o->value ? " " : "",
               o->value ? o->value : "", o->repeats ? " ..." : "");
      if (rn_cli_takes(o, verb)) print_part(part, &column);
    }
  }
  if (is_rest) print_part(words, &column);
  putchar('\n');
}

static void print_command(const rn_cli_t* cli, const rn_cli_command_t* command) {
  int indent = indent_of(command);
  if (!command->verbs) print_usage(command, NULL, "usage:");
  for (const rn_cli_verb_t* verb = command->verbs; verb && verb->name; ++verb)
    print_usage(command, verb, verb == command->verbs ? "usage:" : "      ");
  putchar('\n');
  print_wrapped(command->about, 0, 0);
  if (command->verbs) putchar('\n');
  for (const rn_cli_verb_t* verb = command->verbs; verb && verb->name; ++verb)
    print_row(cli, verb->name, NULL, verb->help, indent);
  putchar('\n');
  print_options(cli, command->options, indent);
  print_options(cli, rn_cli_common_options, indent);
  printf("\n%s%s%s\n", RN_COLORED(cli, BOLD, "examples:"));
  for (const char* line = command->examples; *line;) {
    size_t size = strcspn(line, "\n");
    printf("  %.*s\n", (int)size, line);
    line += size + (line[size] == '\n');
  }
}

static void print_all(const rn_cli_t* cli) {
  printf(
      "runnel %s: TensorFlow's dataflow graphs from the shell\n"
      "\n"
      "usage: runnel COMMAND [ARGUMENT ...]\n"
      "\n",
      RN_VERSION_STRING);
  for (const rn_cli_command_t* const* command = rn_cli_commands; *command; ++command)
    printf("  %s%-13s%s %s\n", RN_COLORED(cli, BOLD, (*command)->name), (*command)->summary);
  printf(
      "\n"
      "A first look (the files are in the source tree):\n"
      "  runnel ops MatMul\n"
      "  runnel graph examples/models/line.pbtxt\n"
      "  runnel run examples/models/line.pbtxt --feed 'x=[[1,2],[3,4]]' --fetch y\n"
      "\n"
      "'runnel help COMMAND' has the options of a command, and examples.\n"
      "Exit status: 0 done, 1 failed, 2 called wrongly. Errors go to stderr.\n");
}

void rn_cli_print_help(const rn_cli_t* cli, const rn_cli_command_t* command) {
  if (command)
    print_command(cli, command);
  else
    print_all(cli);
}

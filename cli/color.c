// Colours: see color.h.
#include "cli/color.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_colors(const rn_cli_t* cli, FILE* file) {
  const char* when = rn_cli_text(cli, "--color");
  if (when && strcmp(when, "auto") != 0) return strcmp(when, "always") == 0;
  const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
  if (none && *none) return false;
  return terminal && *terminal && strcmp(terminal, "dumb") != 0 && isatty(fileno(file));
}

const char* rn_cli_color(const rn_cli_t* cli, FILE* file, rn_cli_color_t color) {
  static const char* const sequences[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[33m"};
  return has_colors(cli, file) ? sequences[color] : "";
}

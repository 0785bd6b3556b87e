// Colours, on terminals only.
//
// --color=always and --color=never decide; otherwise (auto) a stream is colored if it is a terminal
// that supports it and NO_COLOR is not set.
#ifndef RUNNEL_CLI_COLOR_H_
#define RUNNEL_CLI_COLOR_H_

#include "cli/cli.h"

typedef enum rn_cli_color_t {
  RN_COLOR_OFF = 0,  // back to normal
  RN_COLOR_BOLD,
  RN_COLOR_RED,
  RN_COLOR_GREEN,
  RN_COLOR_YELLOW,
} rn_cli_color_t;

// The escape sequence that begins |color| on |file|; "" without colors.
const char* rn_cli_color(const rn_cli_t* cli, FILE* file, rn_cli_color_t color);

// Arguments for "%s%s%s": |text| in |color| on the standard output.
#define RN_COLORED(cli, color, text) \
  rn_cli_color(cli, stdout, RN_COLOR_##color), (text), rn_cli_color(cli, stdout, RN_COLOR_OFF)

#endif  // RUNNEL_CLI_COLOR_H_

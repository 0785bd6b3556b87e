// The option --mixed-precision of the commands that plan steps.
#ifndef RUNNEL_CLI_PRECISION_H_
#define RUNNEL_CLI_PRECISION_H_

#include "cli/cli.h"
#include "step/precision.h"

#define RN_CLI_PRECISION_OPTION                                                                \
  RN_OPTION(CHOICE, "--mixed-precision", "TYPE",                                               \
            "compute matrix products, convolutions and what lies between them in float16 (on " \
            "GPUs) or bfloat16 (on GPUs and the CPU); float32 changes nothing",                \
            .choices = "float16 bfloat16 float32")

// Sets |*inout| if the option is given.
static inline rn_status_t rn_cli_precision(const rn_cli_t* cli, rn_precision_t* inout) {
  const char* name = rn_cli_text(cli, "--mixed-precision");
  return name ? rn_precision_parse(rn_str(name), inout) : RN_OK;
}

#endif  // RUNNEL_CLI_PRECISION_H_

// Shared by the two files of `runnel ops`.
#ifndef RUNNEL_CLI_OPS_H_
#define RUNNEL_CLI_OPS_H_

#include <jansson.h>

#include "framework/op_def.h"

// Everything that `runnel ops NAME` prints about |op|; the caller owns it. NULL if memory runs out.
json_t* rn_cli_op_json(const rn_op_def_t* op, const char* family, bool is_built_in);

#endif  // RUNNEL_CLI_OPS_H_

// What `runnel ops` has in two files.
#ifndef RUNNEL_CLI_OPS_H_
#define RUNNEL_CLI_OPS_H_

#include <jansson.h>

#include "framework/op_def.h"

// All that `runnel ops NAME` tells of |op|; the caller owns it. NULL without memory.
json_t* rn_cli_op_json(const rn_op_def_t* op, const char* family, bool is_built_in);

#endif  // RUNNEL_CLI_OPS_H_

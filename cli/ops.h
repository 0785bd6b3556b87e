// Shared by the two files of `runnel ops`.
#ifndef RUNNEL_CLI_OPS_H_
#define RUNNEL_CLI_OPS_H_

#include <jansson.h>

#include "framework/kernel.h"

// Where an op's parts are in the source tree; "" for none.
typedef struct rn_cli_op_place_t {
  const char *op, *family, *definition, *shapes, *gradient, *cases;
} rn_cli_op_place_t;

// The file that |def| is a row of; "" for a plug-in's.
const char* rn_cli_kernel_place(const rn_kernel_def_t* def);

// Everything that `runnel ops NAME` prints about |op|; the caller owns it. NULL if memory runs out.
json_t* rn_cli_op_json(const rn_op_def_t* op, const rn_cli_op_place_t* place, bool is_built_in);

#endif  // RUNNEL_CLI_OPS_H_

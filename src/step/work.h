// How much a node computes: operations and bytes, from its op and its shapes.
#ifndef RUNNEL_STEP_WORK_H_
#define RUNNEL_STEP_WORK_H_

#include "step/ir.h"

typedef struct rn_work_t {
  double flops;  // additions and multiplications
  double bytes;  // read and written
} rn_work_t;

// Dimensions that are not known count as 1. Feeds, constants and control flow do no work.
rn_work_t rn_ir_work(const rn_ir_t* ir, const rn_ir_node_t* node);

// The bytes of output |output|, with unknown dimensions as 1; 0 for types of no fixed size.
int64_t rn_ir_output_bytes(const rn_ir_node_t* node, int32_t output);

#endif  // RUNNEL_STEP_WORK_H_

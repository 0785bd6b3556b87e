// A step's graph for people: what RUNNEL_DUMP writes before and after a pass.
#ifndef RUNNEL_STEP_IR_PRINT_H_
#define RUNNEL_STEP_IR_PRINT_H_

#include "step/ir.h"

// One line per node, in the order of execution:
//   12 loss/Mul = Mul(9 x, 10:1 y) after 4, 5 -> float[2,3] on /device:CPU:0
void rn_ir_print(rn_ir_t* ir, rn_strbuf_t* out);
// The same as a drawing for Graphviz.
void rn_ir_print_dot(rn_ir_t* ir, rn_strbuf_t* out);

#endif  // RUNNEL_STEP_IR_PRINT_H_

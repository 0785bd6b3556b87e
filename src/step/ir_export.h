// Converts the graph of a step back to a GraphDef, for tools that prune and transform graphs.
#ifndef RUNNEL_STEP_IR_EXPORT_H_
#define RUNNEL_STEP_IR_EXPORT_H_

#include "step/ir.h"

// Appends |ir|, which has not been placed, as a GraphDef. Feeds become placeholders named by
// |input_names|; fetch i becomes an Identity named output_names[i]. Either list may be NULL. An
// empty name keeps the node's own name and adds no Identity. Other names that are taken or invalid
// are changed. Includes the functions that the nodes need; drops colocation.
RN_MUST_USE rn_status_t rn_ir_export(rn_ir_t* ir, const rn_str_t* input_names,
                                     const rn_str_t* output_names, rn_strbuf_t* out);
// The same for one partition of a step: nodes keep their names, even those that a client could not
// use. If |says_shapes|, Recv nodes say the shapes of their values where they are known, for
// planning the partition by itself.
RN_MUST_USE rn_status_t rn_ir_export_part(rn_ir_t* ir, bool says_shapes, rn_strbuf_t* out);

#endif  // RUNNEL_STEP_IR_EXPORT_H_

// The graph of a step as a GraphDef again: what tools that cut graphs to size write.
#ifndef RUNNEL_STEP_IR_EXPORT_H_
#define RUNNEL_STEP_IR_EXPORT_H_

#include "step/ir.h"

// Appends a GraphDef of what is left of |ir|: feeds become placeholders, called as |input_names|
// say, and a node that passes fetch i on is called output_names[i]. Either list may be NULL, and an
// empty name leaves the node its own: then nothing passes the fetch on. Other names that are taken
// or not allowed are changed. The functions that the nodes need come along; colocation does not.
// |ir| has not been placed.
RN_MUST_USE rn_status_t rn_ir_export(rn_ir_t* ir, const rn_str_t* input_names,
                                     const rn_str_t* output_names, rn_strbuf_t* out);
// The same for a part of a step: nodes keep their names, though no client could call them so.
RN_MUST_USE rn_status_t rn_ir_export_part(rn_ir_t* ir, rn_strbuf_t* out);

// Makes node |index| a constant; |value| is moved into the IR. Control edges stay, inputs go.
RN_MUST_USE rn_status_t rn_ir_set_constant(rn_ir_t* ir, int32_t index, rn_tensor_t* value);
// Adds a constant; |value| is moved into the IR.
RN_MUST_USE rn_status_t rn_ir_add_constant(rn_ir_t* ir, rn_str_t name, rn_tensor_t* value,
                                           int32_t* out_index);

#endif  // RUNNEL_STEP_IR_EXPORT_H_

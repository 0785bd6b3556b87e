// Making nodes: what the passes that add nodes to a step's graph share. All memory is in the IR's
// arena.
#ifndef RUNNEL_STEP_MAKE_H_
#define RUNNEL_STEP_MAKE_H_

#include "step/ir.h"

// Sets |*out| to the attributes of |op|. Each has the value that |given| names, else the value that
// |like| has under the same name, else its default, else zero. |given| ends with RN_ATTRS_END; it
// may name attributes that |op| does not have, and its values need no kind. |given| and |like| may
// be NULL.
#define RN_ATTRS_END ((rn_attr_t){.name = {0}})
RN_MUST_USE rn_status_t rn_ir_make_attrs(rn_ir_t* ir, const rn_op_def_t* op,
                                         const rn_ir_node_t* like, const rn_attr_t* given,
                                         const rn_attr_value_t** out);

// Gives |node| new arrays for |input_count| inputs, which the caller sets, and |output_count|
// outputs, all of |type| and |shape| (copied).
RN_MUST_USE rn_status_t rn_ir_make_edges(rn_ir_t* ir, int32_t input_count, int32_t output_count,
                                         rn_dtype_t type, rn_shape_t shape, rn_ir_node_t* node);

// Makes a node of |op| on the device of |like|, a node with a kernel. It is called "LIKE/OP", has
// |input_count| inputs, which the caller sets, and one output of |shape| and of the type of
// |like|'s output 0. Its attributes are those of rn_ir_make_attrs; |kernel| is NULL if the device
// has none. The caller adds the node.
RN_MUST_USE rn_status_t rn_ir_make_node(rn_ir_t* ir, const rn_op_def_t* op,
                                        const rn_ir_node_t* like, const rn_attr_t* given,
                                        int32_t input_count, rn_shape_t shape, rn_ir_node_t* out);

// Turns |node| into a constant of |value|, which it borrows. Keeps name, device, control inputs and
// extra attributes.
RN_MUST_USE rn_status_t rn_ir_become_constant(rn_ir_t* ir, const rn_tensor_t* value,
                                              rn_ir_node_t* node);
// Likewise for a value that the IR then owns; takes |*value| even if it fails.
RN_MUST_USE rn_status_t rn_ir_own_constant(rn_ir_t* ir, rn_tensor_t* value, rn_ir_node_t* node);
// Adds such a constant.
RN_MUST_USE rn_status_t rn_ir_add_constant(rn_ir_t* ir, rn_str_t name, rn_tensor_t* value,
                                           int32_t* out_index);

#endif  // RUNNEL_STEP_MAKE_H_

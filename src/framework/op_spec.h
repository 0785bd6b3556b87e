// Parses the strings with which plug-ins define ops: "x: N * T", "T: {float, int32} = DT_FLOAT",
// "sizes: list(int) >= 1 = [1, 2]".
#ifndef RUNNEL_FRAMEWORK_OP_SPEC_H_
#define RUNNEL_FRAMEWORK_OP_SPEC_H_

#include "framework/op_def.h"

// Both functions write definitions whose parts are in |arena|. INVALID_ARGUMENT tells where parsing
// stopped.
RN_MUST_USE rn_status_t rn_op_spec_attr(rn_arena_t* arena, rn_str_t spec, rn_attr_def_t* out);
// |attrs| are the attributes that the argument may refer to. An attribute that gives the length of
// a list gets a minimum of 1 unless it has another.
RN_MUST_USE rn_status_t rn_op_spec_arg(rn_arena_t* arena, rn_str_t spec, rn_attr_def_t* attrs,
                                       int attr_count, rn_arg_def_t* out);
// Whether |name| is a valid op name.
bool rn_op_spec_is_op_name(rn_str_t name);

#endif  // RUNNEL_FRAMEWORK_OP_SPEC_H_

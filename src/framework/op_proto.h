// Converts op definitions to the OpDef and OpList messages that clients read.
#ifndef RUNNEL_FRAMEWORK_OP_PROTO_H_
#define RUNNEL_FRAMEWORK_OP_PROTO_H_

#include "framework/op_def.h"

// Appends |def| as an OpDef; equal definitions give equal bytes. The buffer holds any error.
void rn_op_write_proto(rn_strbuf_t* buf, const rn_op_def_t* def);

// Appends the OpList of all definitions, in order of name.
RN_MUST_USE rn_status_t rn_op_write_list(rn_strbuf_t* buf);

#endif  // RUNNEL_FRAMEWORK_OP_PROTO_H_

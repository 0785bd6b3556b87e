// TF_OperationDescription: what a client has said of a node so far. Private to capi/.
//
// One block with room for an ordinary node; what does not fit goes to an arena. Errors of calls
// that have no status wait here for TF_FinishOperation.
#ifndef RUNNEL_CAPI_DESCRIPTION_H_
#define RUNNEL_CAPI_DESCRIPTION_H_

#include "capi/internal.h"

// Sizes that make the block fit what malloc keeps per thread (1 KiB) and cover most nodes.
#define RN_DESC_INPUTS 6
#define RN_DESC_CONTROLS 4
#define RN_DESC_ATTRS 6
#define RN_DESC_TEXT 280

struct TF_OperationDescription {
  rn_graph_t* graph;  // Borrowed
  rn_status_t error;  // Owned; the first one
  rn_str_t op, name, device;
  rn_edge_t* inputs;
  int32_t* arg_lengths;  // one for each TF_AddInput(List)
  rn_node_t** controls;
  rn_attr_t* attrs;       // tensors in them are Owned
  rn_str_t* colocations;  // what "_class" will be
  int32_t input_count, input_room, arg_count, arg_room, control_count, control_room;
  int32_t attr_count, attr_room, colocation_count, colocation_room;
  rn_arena_t arena;
  size_t text_used;
  rn_edge_t own_inputs[RN_DESC_INPUTS];
  int32_t own_args[RN_DESC_INPUTS];
  rn_node_t* own_controls[RN_DESC_CONTROLS];
  rn_attr_t own_attrs[RN_DESC_ATTRS];
  _Alignas(16) char text[RN_DESC_TEXT];
};

// Memory that lives as long as |desc|.
RN_MUST_USE rn_status_t rn_desc_alloc(TF_OperationDescription* desc, size_t count, size_t size,
                                      void** out);
// A NUL-terminated copy.
RN_MUST_USE rn_status_t rn_desc_copy(TF_OperationDescription* desc, rn_str_t str, rn_str_t* out);
// Keeps |status| (taken) if it is the first error.
void rn_desc_fail(TF_OperationDescription* desc, rn_status_t status);

// Adds attribute |name|, whose value lies in the description's memory. A value that contradicts an
// earlier one is an error, as in stock.
RN_MUST_USE rn_status_t rn_desc_add_attr(TF_OperationDescription* desc, const char* name,
                                         const rn_attr_value_t* value);
// Replaces what "_class" will be.
RN_MUST_USE rn_status_t rn_desc_set_colocations(TF_OperationDescription* desc, int count,
                                                const rn_str_t* values);
RN_MUST_USE rn_status_t rn_desc_add_colocation(TF_OperationDescription* desc, rn_str_t value);

#define RN_COLOCATION_ATTR "_class"
#define RN_COLOCATION_PREFIX "loc:@"

#endif  // RUNNEL_CAPI_DESCRIPTION_H_

// TF_OperationDescription: the parts of a node that the client has set so far. Private to capi/.
//
// One block with space for an ordinary node; the rest goes to an arena. Errors of calls without a
// status are kept here and reported by TF_FinishOperation.
#ifndef RUNNEL_CAPI_DESCRIPTION_H_
#define RUNNEL_CAPI_DESCRIPTION_H_

#include "capi/internal.h"

// Sizes that cover most nodes and keep the block within malloc's per-thread cache (1 KiB).
#define RN_DESC_INPUTS 6
#define RN_DESC_CONTROLS 4
#define RN_DESC_ATTRS 6
#define RN_DESC_TEXT 280

struct TF_OperationDescription {
  rn_graph_t* graph;  // Borrowed
  rn_status_t error;  // Owned; the first one
  rn_str_t op, name, device;
  rn_edge_t* inputs;
  int32_t* arg_lengths;  // one per TF_AddInput(List)
  rn_node_t** controls;
  rn_attr_t* attrs;       // owns the tensors in them
  rn_str_t* colocations;  // the future value of "_class"
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
// Takes |status|; keeps it if it is the first error.
void rn_desc_fail(TF_OperationDescription* desc, rn_status_t status);

// Adds attribute |name|, whose value is in the description's memory. A value that contradicts an
// earlier one is an error, as in stock.
RN_MUST_USE rn_status_t rn_desc_add_attr(TF_OperationDescription* desc, const char* name,
                                         const rn_attr_value_t* value);
// Replaces the future value of "_class".
RN_MUST_USE rn_status_t rn_desc_set_colocations(TF_OperationDescription* desc, int count,
                                                const rn_str_t* values);
RN_MUST_USE rn_status_t rn_desc_add_colocation(TF_OperationDescription* desc, rn_str_t value);

#define RN_COLOCATION_ATTR "_class"
#define RN_COLOCATION_PREFIX "loc:@"

#endif  // RUNNEL_CAPI_DESCRIPTION_H_

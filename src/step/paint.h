// What the files of the pass mixed_precision share: see precision.h.
#ifndef RUNNEL_STEP_PAINT_H_
#define RUNNEL_STEP_PAINT_H_

#include "step/make.h"
#include "step/precision.h"
#include "step/type_graph.h"

#define RN_MOST_KNOWN_OPS 64

typedef struct rn_painter_t {
  rn_ir_t* ir;
  const char* device;  // the type of the devices whose nodes are converted
  rn_dtype_t type;     // what floats become
  bool emulates;       // instead, values are rounded
  rn_paint_lists_t lists;
  rn_type_graph_t graph;
  rn_paint_t* paint;     // by node: the list of its op
  bool* is_open;         // by node: its types may change
  uint8_t* support;      // by vertex: rn_paint_can_convert; 1 yes, 2 no, 0 not known yet
  bool *allow, *deny;    // by vertex
  bool *marks, *chosen;  // by vertex: scratch
  int32_t cluster_count;
  int32_t* cluster;  // by node: the number of its group of tensor lists; -1: none
  int known_count;   // lists of the first ops that were looked up
  const rn_op_def_t* known_ops[RN_MOST_KNOWN_OPS];
  rn_paint_t known_paints[RN_MOST_KNOWN_OPS];
} rn_painter_t;

bool rn_paint_can_convert(rn_painter_t* p, int32_t vertex);
// The attributes of |node| with the types of |vertices| (by vertex) changed; in the IR's arena.
RN_MUST_USE rn_status_t rn_paint_attrs(rn_painter_t* p, int32_t node, const bool* vertices,
                                       const rn_attr_value_t** out);

// Tensor lists (step/paint_lists.c). An element's type is not on the edges that carry a list, so
// ops on one list are put into a group, and edges from those that write elements to those that read
// them are added. A group that a call, a feed or another device can see is denied.
RN_MUST_USE rn_status_t rn_paint_find_lists(rn_painter_t* p);
// Paints all of a group alike: deny if one is denied, else allow if one is allowed.
void rn_paint_match_lists(rn_painter_t* p);

// Changes the types that are painted allow, and adds the Casts.
RN_MUST_USE rn_status_t rn_paint_rewrite(rn_painter_t* p);

#endif  // RUNNEL_STEP_PAINT_H_

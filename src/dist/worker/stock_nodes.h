// Nodes that stock's masters make of several, which no client writes and no op here is: spelled
// out.
//
// Before it cuts a graph, a stock master puts products and convolutions together with what follows
// them (_FusedMatMul, _FusedConv2D, _FusedDepthwiseConv2dNative, _FusedBatchNormEx), and chains of
// functions of one argument (_UnaryOpsComposition). The last of the nodes they came from keeps the
// name.
#ifndef RUNNEL_DIST_WORKER_STOCK_NODES_H_
#define RUNNEL_DIST_WORKER_STOCK_NODES_H_

#include "base/str.h"

// Whether |graph_def| has such nodes; then |out| gets the same graph without them. Those of
// functions stay.
RN_MUST_USE rn_status_t rn_spell_out_nodes(rn_str_t graph_def, rn_strbuf_t* out, bool* out_has);

#endif  // RUNNEL_DIST_WORKER_STOCK_NODES_H_

// Expands the fused nodes of stock's masters, which have no op here.
//
// Before it partitions a graph, a stock master fuses matmuls, convolutions and batch normalizations
// with the ops after them (_FusedMatMul, _FusedConv2D, _FusedDepthwiseConv2dNative,
// _FusedBatchNormEx), and chains of unary ops (_UnaryOpsComposition). The fused node has the name
// of the last original node.
#ifndef RUNNEL_DIST_WORKER_STOCK_NODES_H_
#define RUNNEL_DIST_WORKER_STOCK_NODES_H_

#include "base/str.h"

// Whether |graph_def| has such nodes; then |out| gets the same graph without them. Those of
// functions stay.
RN_MUST_USE rn_status_t rn_spell_out_nodes(rn_str_t graph_def, rn_strbuf_t* out, bool* out_has);

#endif  // RUNNEL_DIST_WORKER_STOCK_NODES_H_

// What the files of `runnel quantize` share: a model as one frozen graph, the layers found in it,
// the ranges of their inputs, and the graph with 8-bit weights and activations that they become.
//
// quantize.c opens the model (quantize_open.c) and the data (quantize_data.c), finds the layers
// (quantize_layers.c), measures ranges (quantize_ranges.c), writes the new graph
// (quantize_rewrite.c), and compares both (quantize_report.c).
#ifndef RUNNEL_CLI_QUANTIZE_H_
#define RUNNEL_CLI_QUANTIZE_H_

#include "cli/load.h"
#include "cli/model.h"
#include "session/session.h"

// An input or output of the model's signature.
typedef struct rn_cli_quant_port_t {
  rn_str_t name;  // in the signature; NUL-terminated
  rn_str_t node;  // in the frozen graph
  rn_dtype_t dtype;
  rn_shape_t shape;
} rn_cli_quant_port_t;

// A graph that runs: the float one or the quantized one.
typedef struct rn_cli_quant_net_t {
  rn_graph_t* graph;      // Owned
  rn_session_t* session;  // Owned
  rn_edge_t *inputs, *outputs;
} rn_cli_quant_net_t;

// A value that is quantized: the input of one or more layers.
typedef struct rn_cli_quant_source_t {
  rn_edge_t edge;  // of the float graph
  double min, max;
  uint64_t* bins;   // see quantize_ranges.c; NULL for the method minmax
  float low, high;  // the range that is kept
} rn_cli_quant_source_t;

// A convolution or matmul.
typedef struct rn_cli_quant_layer_t {
  rn_node_t* node;    // of the float graph
  int32_t source;     // index into the sources; -1 if the layer stays in float
  rn_node_t* reader;  // the node that reads the source: the layer, or a Pad, MaxPool before it
  const rn_tensor_t* weights;   // Borrowed from the graph
  int axis;                     // of the weights: one scale per index
  const char* reason;           // why it stays in float
  double signal, noise, worst;  // sums of squares, and the largest difference
} rn_cli_quant_layer_t;

// The example data: one array per key, whose first dimension counts the examples.
typedef struct rn_cli_quant_data_t {
  rn_tensor_t* inputs;  // one per input of the model
  rn_tensor_t labels;   // int64; unset without --labels
  int64_t count;        // examples
  int64_t batch;        // examples per step
} rn_cli_quant_data_t;

typedef struct rn_cli_quant_t {
  rn_cli_t* cli;
  rn_arena_t arena;
  const char* path;
  rn_cli_file_t file;        // the GraphDef, if the model is one
  rn_cli_model_t model;      // else the SavedModel
  rn_strbuf_t frozen_bytes;  // |frozen| points into it
  rn_pb_GraphDef_t* frozen;  // in the arena
  rn_str_t fill;             // the node that fills the tables; "" for a model without tables
  rn_str_t signature;
  rn_cli_quant_port_t *inputs, *outputs;
  int32_t input_count, output_count;
  rn_cli_quant_net_t plain, small;
  rn_cli_quant_data_t data;
  RN_VEC(rn_cli_quant_layer_t) layers;
  RN_VEC(rn_cli_quant_source_t) sources;
} rn_cli_quant_t;

// Freezes the model, folds its batch normalizations, and opens |plain|.
RN_MUST_USE rn_status_t rn_cli_quant_open(rn_cli_quant_t* q);
// Makes a net of |def|. On failure |*out| can be cleared.
RN_MUST_USE rn_status_t rn_cli_quant_net_open(rn_cli_quant_t* q, rn_pb_GraphDef_t* def,
                                              rn_cli_quant_net_t* out);
void rn_cli_quant_net_clear(rn_cli_quant_net_t* net);
// Runs |net| on examples [begin, begin + count). The caller owns |results|.
RN_MUST_USE rn_status_t rn_cli_quant_step(rn_cli_quant_t* q, const rn_cli_quant_net_t* net,
                                          const rn_edge_t* fetches, int32_t fetch_count,
                                          int64_t begin, int64_t count, rn_tensor_t* results);

// Reads --data. Errors name the file and what is wrong with it.
RN_MUST_USE rn_status_t rn_cli_quant_read(rn_cli_quant_t* q);
void rn_cli_quant_data_clear(rn_cli_quant_t* q);

// Lists the layers of the frozen graph and the values that they read.
RN_MUST_USE rn_status_t rn_cli_quant_find_layers(rn_cli_quant_t* q);
// Whether |node| adds two tensors, as the end of a shortcut does.
bool rn_cli_quant_is_shortcut(const rn_node_t* node);

// Runs the model on the data and chooses the range of every source.
RN_MUST_USE rn_status_t rn_cli_quant_calibrate(rn_cli_quant_t* q);

// Makes the graph with 8-bit weights and activations. It borrows from the frozen one.
RN_MUST_USE rn_status_t rn_cli_quant_rewrite(rn_cli_quant_t* q, rn_pb_GraphDef_t** out);

// Runs both nets on the data and prints how they differ.
RN_MUST_USE rn_status_t rn_cli_quant_report(rn_cli_quant_t* q);

#endif  // RUNNEL_CLI_QUANTIZE_H_

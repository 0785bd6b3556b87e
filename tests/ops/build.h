// One case as a graph: placeholders, constants, variables, nested nodes and the node under test.
#ifndef RUNNEL_TESTS_OPS_BUILD_H_
#define RUNNEL_TESTS_OPS_BUILD_H_

#include <jansson.h>
#include <stdbool.h>

#include "tensorflow/c/c_api.h"
#include "value.h"

enum { MAX_NODES = 64, MAX_OUTPUTS = 64 };

// The names and the order are those of the recorder: "node", and "in0", "in1" ... for its inputs
// in the order in which they are met, so that messages can be compared.
typedef struct {
  TF_Graph* graph;    // Owned
  TF_Status* status;  // Owned; what the library answered last
  char why[512];      // set when the case itself cannot be understood

  TF_Operation* node;
  size_t before_count, then_count;
  TF_Operation *before[MAX_NODES], *then[MAX_NODES];

  size_t feed_count;
  TF_Output feeds[MAX_NODES];
  TF_Tensor* feed_values[MAX_NODES];  // Owned
  size_t leaf_count;
  size_t leaves[MAX_NODES];  // which feeds have gradients
  size_t var_count;
  TF_Output vars[MAX_NODES];      // what reads each variable
  TF_Operation* init[MAX_NODES];  // what initialises it

  const json_t* row;       // Borrowed
  bool has_static_shapes;  // placeholders have the shapes of their values
  const char* device;      // of the op under test; NULL: any
  int input_count;         // names given so far
  size_t id_count;
  const char* ids[MAX_NODES];
  TF_Output id_outputs[MAX_NODES];
} build_t;

// Builds |row|. False when the library refused (see status) or the row is bad (see why); what was
// made so far stays. Destroy in any case.
bool build_case(build_t* build, const json_t* row, bool has_static_shapes, const char* device);
void build_destroy(build_t* build);

// Whether gradients to or from tensors of |dtype| are part of |row|: of floats, and of complex
// numbers where "grad" says so.
bool build_has_gradient(const json_t* row, const dtype_t* dtype);

// The outputs of |op| that can be fetched (no resource, no variant), at most MAX_OUTPUTS.
size_t build_fetchable(TF_Operation* op, TF_Output* out);

// A Placeholder of |type|; |rank| -1 when the shape is unknown. oper is NULL on failure.
TF_Output build_placeholder(build_t* build, const char* name, TF_DataType type, const int64_t* dims,
                            int rank);

#endif  // RUNNEL_TESTS_OPS_BUILD_H_

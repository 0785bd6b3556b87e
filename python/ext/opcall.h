// The state of a call of an op's function while its node is built. Internal to opcall.c and
// opinputs.c.
#ifndef RUNNEL_PYTHON_OPCALL_H_
#define RUNNEL_PYTHON_OPCALL_H_

#include "opfunction.h"

#define RNPY_FEW_EDGES 16

typedef struct rnpy_call_t {
  rnpy_function_t* function;
  rnpy_graph_t* graph;
  PyObject* values[RNPY_MOST_PARAMS];  // borrowed; NULL if not given
  PyObject* name;                      // the node's name, owned
  int types[RNPY_MOST_ATTRS];          // by attribute: the type the inputs imply; 0 if none yet
  TF_Output few[RNPY_FEW_EDGES];
  TF_Output* edges;
  int edge_count, edge_capacity;
  int lengths[RNPY_MOST_PARAMS];  // lengths of list inputs; -1 for a single tensor
  PyObject* made;                 // list that keeps converted tensors alive
  PyObject* scope;                // the name stack to restore; NULL if unchanged
  PyObject* before;               // the graph to restore; NULL if unchanged
} rnpy_call_t;

// opinputs.c: converts |values| to tensors, and records their edges, lengths and types.
int rnpy_add_inputs(rnpy_call_t* call);

#endif  // RUNNEL_PYTHON_OPCALL_H_

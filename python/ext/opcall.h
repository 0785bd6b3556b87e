// A call of an op's function on its way to become a node. Internal to opcall.c and opinputs.c.
#ifndef RUNNEL_PYTHON_OPCALL_H_
#define RUNNEL_PYTHON_OPCALL_H_

#include "opfunction.h"

#define RNPY_FEW_EDGES 16

typedef struct rnpy_call_t {
  rnpy_function_t* function;
  rnpy_graph_t* graph;
  PyObject* values[RNPY_MOST_PARAMS];  // borrowed; NULL: not given
  PyObject* name;                      // of the node, owned
  int types[RNPY_MOST_ATTRS];          // by attribute: what the inputs say; 0: nothing yet
  TF_Output few[RNPY_FEW_EDGES];
  TF_Output* edges;
  int edge_count, edge_capacity;
  int lengths[RNPY_MOST_PARAMS];  // of list inputs; -1: one tensor
  PyObject* made;                 // list: keeps converted tensors
  PyObject* scope;                // the name stack to go back to; NULL: not changed
  PyObject* before;               // the graph to go back to; NULL: not changed
} rnpy_call_t;

// opinputs.c: finds or makes the tensors that |values| stand for, and puts their edges, lengths and
// types down.
int rnpy_add_inputs(rnpy_call_t* call);

#endif  // RUNNEL_PYTHON_OPCALL_H_

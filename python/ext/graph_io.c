// Graphs as a whole: GraphDefs in and out, gradients, functions.
#include "core.h"

#include "runnel/gradients.h"

// to_graph_def(graph)
static PyObject* to_graph_def(PyObject* self, PyObject* graph) {
  (void)self;
  if (!PyObject_TypeCheck(graph, rnpy.graph_type)) {
    PyErr_SetString(PyExc_TypeError, "Expected a Graph");
    return NULL;
  }
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphToGraphDef(((rnpy_graph_t*)graph)->graph, buffer, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) {
    TF_DeleteBuffer(buffer);
    return NULL;
  }
  return rnpy_take_buffer(buffer);
}

static int add_input_map(TF_ImportGraphDefOptions* options, PyObject* map) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(map); ++i) {
    const char* name;
    int index;
    PyObject* object;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(map, i), "siO", &name, &index, &object)) return -1;
    if (index < 0 && rnpy_is_operation(object)) {
      TF_ImportGraphDefOptionsRemapControlDependency(options, name,
                                                     ((rnpy_operation_t*)object)->oper);
    } else if (rnpy_is_tensor(object)) {
      TF_ImportGraphDefOptionsAddInputMapping(options, name, index, rnpy_tf_output(object));
    } else {
      PyErr_SetString(PyExc_TypeError, "The values of an input map must be Tensors");
      return -1;
    }
  }
  return 0;
}

static int add_returns(TF_ImportGraphDefOptions* options, PyObject* outputs, PyObject* opers) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
    const char* name;
    int index;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(outputs, i), "si", &name, &index)) return -1;
    TF_ImportGraphDefOptionsAddReturnOutput(options, name, index);
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(opers); ++i) {
    const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(opers, i));
    if (!name) return -1;
    TF_ImportGraphDefOptionsAddReturnOperation(options, name);
  }
  return 0;
}

static PyObject* import_results(rnpy_graph_t* graph, TF_ImportGraphDefResults* results) {
  int output_count, oper_count, unused_count;
  TF_Output* outputs;
  TF_Operation** opers;
  const char** unused_names;
  int* unused_indexes;
  TF_ImportGraphDefResultsReturnOutputs(results, &output_count, &outputs);
  TF_ImportGraphDefResultsReturnOperations(results, &oper_count, &opers);
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &unused_count, &unused_names,
                                                     &unused_indexes);
  PyObject* tensors = PyList_New(output_count);
  PyObject* operations = PyList_New(oper_count);
  PyObject* unused = PyList_New(0);
  bool ok = tensors && operations && unused;
  for (int i = 0; ok && i < output_count; ++i) {
    PyObject* tensor = rnpy_edge(graph, outputs[i]);
    ok = tensor != NULL;
    if (ok) PyList_SET_ITEM(tensors, i, tensor);
  }
  for (int i = 0; ok && i < oper_count; ++i) {
    PyObject* op = rnpy_operation(graph, opers[i]);
    ok = op != NULL;
    if (ok) PyList_SET_ITEM(operations, i, op);
  }
  for (int i = 0; ok && i < unused_count; ++i) {
    PyObject* pair = Py_BuildValue("si", unused_names[i], unused_indexes[i]);
    ok = pair && PyList_Append(unused, pair) == 0;
    Py_XDECREF(pair);
  }
  PyObject* answer = ok ? PyTuple_Pack(3, tensors, operations, unused) : NULL;
  Py_XDECREF(tensors);
  Py_XDECREF(operations);
  Py_XDECREF(unused);
  return answer;
}

// import_graph_def(graph, bytes, prefix, [(name, index, Tensor)], [(name, index)], [name],
//                  [control Operation]): (tensors, operations, unused mappings)
static PyObject* import_graph_def(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *graph_object, *map, *outputs, *opers, *controls;
  const char *bytes, *prefix;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "O!y#sO!O!O!O!", rnpy.graph_type, &graph_object, &bytes, &size,
                        &prefix, &PyList_Type, &map, &PyList_Type, &outputs, &PyList_Type, &opers,
                        &PyList_Type, &controls))
    return NULL;
  rnpy_graph_t* graph = (rnpy_graph_t*)graph_object;
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, prefix);
  TF_ImportGraphDefOptionsSetUniquifyNames(options, true);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(controls); ++i)
    TF_ImportGraphDefOptionsAddControlDependency(
        options, ((rnpy_operation_t*)PyList_GET_ITEM(controls, i))->oper);
  PyObject* answer = NULL;
  if (add_input_map(options, map) == 0 && add_returns(options, outputs, opers) == 0) {
    TF_Buffer* buffer = TF_NewBufferFromString(bytes, (size_t)size);
    TF_ImportGraphDefResults* results =
        TF_GraphImportGraphDefWithResults(graph->graph, buffer, options, rnpy_status());
    TF_DeleteBuffer(buffer);
    if (!rnpy_build_failed(rnpy_status())) {
      if (rnpy_graph_sync(graph) == 0) answer = import_results(graph, results);
      TF_DeleteImportGraphDefResults(results);
    }
  }
  TF_DeleteImportGraphDefOptions(options);
  return answer;
}

// --- Gradients

static int edges_of(PyObject* list, rn_edge_t* out) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (item == Py_None) {
      out[i] = RN_NO_EDGE;
    } else if (rnpy_is_tensor(item)) {
      TF_Output output = rnpy_tf_output(item);
      out[i] = (rn_edge_t){(rn_node_t*)output.oper, output.index};
    } else {
      PyErr_Format(PyExc_TypeError, "Expected a Tensor, got %R", item);
      return -1;
    }
  }
  return 0;
}

static PyObject* tensor_of(rnpy_graph_t* graph, rn_edge_t edge) {
  return rnpy_edge(graph, (TF_Output){(TF_Operation*)edge.node, edge.index});
}

// None, a Tensor, or (values, indices, dense_shape).
static PyObject* gradient_of(rnpy_graph_t* graph, rn_gradient_t gradient) {
  if (!rn_gradient_is_slices(gradient)) return tensor_of(graph, gradient.dense);
  PyObject* values = tensor_of(graph, gradient.values);
  PyObject* indices = tensor_of(graph, gradient.indices);
  PyObject* shape = tensor_of(graph, gradient.dense_shape);
  PyObject* tuple = values && indices && shape ? PyTuple_Pack(3, values, indices, shape) : NULL;
  Py_XDECREF(values);
  Py_XDECREF(indices);
  Py_XDECREF(shape);
  return tuple;
}

// gradients(graph, ys, xs, dys or None, stops, name, colocate, gate, zeros): a list as above.
static PyObject* gradients(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *graph_object, *ys, *xs, *dys, *stops;
  const char* name;
  int colocate, gate, zeros;
  if (!PyArg_ParseTuple(args, "O!O!O!OO!spip", rnpy.graph_type, &graph_object, &PyList_Type, &ys,
                        &PyList_Type, &xs, &dys, &PyList_Type, &stops, &name, &colocate, &gate,
                        &zeros))
    return NULL;
  rnpy_graph_t* graph = (rnpy_graph_t*)graph_object;
  size_t y_count = (size_t)PyList_GET_SIZE(ys), x_count = (size_t)PyList_GET_SIZE(xs);
  size_t stop_count = (size_t)PyList_GET_SIZE(stops);
  if (dys != Py_None && (!PyList_Check(dys) || (size_t)PyList_GET_SIZE(dys) != y_count)) {
    PyErr_SetString(PyExc_ValueError, "ys and grad_ys must have the same length");
    return NULL;
  }
  rn_edge_t* edges = PyMem_Calloc(2 * y_count + x_count + stop_count + 1, sizeof *edges);
  rn_gradient_t* out = PyMem_Calloc(x_count + 1, sizeof *out);
  PyObject* answer = NULL;
  rn_scope_t* scope = rn_scope_create((rn_graph_t*)graph->graph);
  if (!edges || !out || !scope) PyErr_NoMemory();
  rn_edge_t *y = edges, *dy = y + y_count, *x = dy + y_count, *stop = x + x_count;
  if (!PyErr_Occurred() && edges_of(ys, y) == 0 && edges_of(xs, x) == 0 &&
      (dys == Py_None || edges_of(dys, dy) == 0) && edges_of(stops, stop) == 0) {
    rn_gradient_options_t options = {
        .dys = dys == Py_None ? NULL : dy,
        .stops = stop,
        .stop_count = (int)stop_count,
        .unconnected = zeros ? RN_UNCONNECTED_ZERO : RN_UNCONNECTED_NONE,
        .gate = (rn_gate_t)gate,
        .colocate = colocate,
        .name = name};
    bool ok = rn_gradients_of(scope, y, (int)y_count, x, (int)x_count, &options, out);
    if (!ok) {
      if (rnpy_graph_rewind(graph) < 0) PyErr_Clear();
      PyErr_SetString(
          rn_scope_code(scope) == TF_INVALID_ARGUMENT ? PyExc_ValueError : PyExc_LookupError,
          rn_scope_message(scope));
    } else if (rnpy_graph_sync(graph) == 0) {
      answer = PyList_New((Py_ssize_t)x_count);
      for (size_t i = 0; answer && i < x_count; ++i) {
        PyObject* gradient = gradient_of(graph, out[i]);
        if (!gradient) {
          Py_CLEAR(answer);
        } else {
          PyList_SET_ITEM(answer, (Py_ssize_t)i, gradient);
        }
      }
    }
  }
  rn_scope_destroy(scope);
  PyMem_Free(edges);
  PyMem_Free(out);
  return answer;
}

// --- Gradient rules in Python

// Reads Python's result for one input: None, a Tensor, or slices (values, indices, dense_shape).
static int send(rn_grad_t* g, int i, PyObject* value) {
  if (value == Py_None) return 0;
  if (rnpy_is_tensor(value)) {
    TF_Output output = rnpy_tf_output(value);
    rn_grad_send(g, i, (rn_edge_t){(rn_node_t*)output.oper, output.index});
    return 0;
  }
  PyObject *values, *indices, *shape;
  if (!PyArg_ParseTuple(value, "OOO", &values, &indices, &shape)) return -1;
  PyObject* list = PyList_New(3);
  if (!list) return -1;
  Py_INCREF(values), Py_INCREF(indices), Py_INCREF(shape);
  PyList_SET_ITEM(list, 0, values);
  PyList_SET_ITEM(list, 1, indices);
  PyList_SET_ITEM(list, 2, shape);
  rn_edge_t edges[3];
  int outcome = edges_of(list, edges);
  Py_DECREF(list);
  if (outcome == 0)
    rn_grad_send_slices(
        g, i, (rn_gradient_t){.values = edges[0], .indices = edges[1], .dense_shape = edges[2]});
  return outcome;
}

typedef struct rule_t {
  PyObject* function;  // (op, list of gradients, the rule) -> list
} rule_t;

// Returns the incoming gradient of each output: a Tensor, or the parts of slices.
static PyObject* arrived(rn_grad_t* g, rnpy_graph_t* graph, int count) {
  PyObject* list = PyList_New(count);
  for (int i = 0; list && i < count; ++i) {
    rn_gradient_t gradient = rn_grad_arrived_as_is(g, i);
    if (!rn_gradient_is_slices(gradient))
      gradient = (rn_gradient_t){.dense = rn_grad_arrived(g, i)};
    PyObject* one = rnpy_graph_sync(graph) == 0 ? gradient_of(graph, gradient) : NULL;
    if (!one) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, i, one);
    }
  }
  return list;
}

#define RULE "a gradient rule"

// rule_read(rule, tensor, is_new): the tensor as it is read where the rule builds.
static PyObject* rule_read(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *rule, *tensor;
  int is_new;
  if (!PyArg_ParseTuple(args, "OOp", &rule, &tensor, &is_new)) return NULL;
  rn_grad_t* g = PyCapsule_GetPointer(rule, RULE);
  if (!g) return NULL;
  if (!rnpy_is_tensor(tensor))
    return PyErr_Format(PyExc_TypeError, "Expected a Tensor, got %R", tensor);
  TF_Output output = rnpy_tf_output(tensor);
  rn_edge_t from = {(rn_node_t*)output.oper, output.index};
  rn_edge_t read = rn_grad_read(g, from, is_new);
  if (read.node == from.node && read.index == from.index) {
    Py_INCREF(tensor);
    return tensor;
  }
  rnpy_graph_t* graph = ((rnpy_tensor_t*)tensor)->op->graph;
  if (!read.node) return PyErr_Format(PyExc_ValueError, "%s", rn_scope_message(rn_grad_scope(g)));
  return rnpy_graph_sync(graph) == 0 ? tensor_of(graph, read) : NULL;
}

// rule_anchor(rule): the Operation that nodes without inputs wait for, or None.
static PyObject* rule_anchor(PyObject* self, PyObject* rule) {
  (void)self;
  rn_grad_t* g = PyCapsule_GetPointer(rule, RULE);
  if (!g) return NULL;
  rn_node_t* anchor = rn_grad_anchor(g);
  PyObject* graph = rnpy_current();
  if (!anchor || !graph || !PyObject_TypeCheck(graph, rnpy.graph_type)) Py_RETURN_NONE;
  return rnpy_operation((rnpy_graph_t*)graph, (TF_Operation*)anchor);
}

// The graph whose gradients are being built on this thread, for the rules; borrowed.
static bool call_rule(rn_grad_t* g, const rule_t* rule) {
  PyObject* current = rnpy_current();
  if (!current || !PyObject_TypeCheck(current, rnpy.graph_type)) {
    PyErr_Clear();
    rn_grad_refuse(g, TF_UNIMPLEMENTED,
                   "a gradient function in Python builds a graph, which a tape does not have; use "
                   "tf.custom_gradient, which works with both");
    return false;
  }
  rnpy_graph_t* graph = (rnpy_graph_t*)current;
  TF_Operation* oper = (TF_Operation*)rn_grad_node(g);
  PyObject* op = rnpy_operation(graph, oper);
  PyObject* list = op ? arrived(g, graph, TF_OperationNumOutputs(oper)) : NULL;
  PyObject* walk = list ? PyCapsule_New(g, RULE, NULL) : NULL;
  PyObject* answer =
      walk ? PyObject_CallFunctionObjArgs(rule->function, op, list, walk, NULL) : NULL;
  if (walk) PyCapsule_SetName(walk, RULE " that is done");
  Py_XDECREF(walk);
  PyObject* fast =
      answer ? PySequence_Fast(answer, "a gradient function must return a list") : NULL;
  int count = fast ? (int)PySequence_Fast_GET_SIZE(fast) : 0;
  if (fast && count != rn_grad_input_count(g))
    PyErr_Format(PyExc_ValueError,
                 "Num gradients %d generated for op %R do not match num inputs %d", count, op,
                 rn_grad_input_count(g));
  for (int i = 0; !PyErr_Occurred() && i < count; ++i)
    send(g, i, PySequence_Fast_GET_ITEM(fast, i));
  Py_XDECREF(fast);
  Py_XDECREF(answer);
  Py_XDECREF(list);
  Py_XDECREF(op);
  if (!PyErr_Occurred()) return true;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* text = value ? PyObject_Str(value) : NULL;
  const char* message = text ? PyUnicode_AsUTF8(text) : NULL;
  rn_grad_refuse(g, TF_INVALID_ARGUMENT, message ? message : "a gradient function failed");
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return false;
}

// A tape's walk has released the interpreter lock.
static bool apply_rule(rn_grad_t* g, void* arg) {
  PyGILState_STATE state = PyGILState_Ensure();
  bool is_done = call_rule(g, arg);
  PyGILState_Release(state);
  return is_done;
}

// register_gradient(name, function): for the life of the process, like the op registry.
static PyObject* register_gradient(PyObject* self, PyObject* args) {
  (void)self;
  const char* name;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "sO", &name, &function)) return NULL;
  rule_t* rule = PyMem_Malloc(sizeof *rule);
  if (!rule) return PyErr_NoMemory();
  Py_INCREF(function);
  rule->function = function;
  if (!rn_register_gradient(name, apply_rule, rule)) {
    Py_DECREF(function);
    PyMem_Free(rule);
    return PyErr_Format(PyExc_KeyError, "Registering two gradient with name '%s'!", name);
  }
  Py_RETURN_NONE;
}

PyMethodDef rnpy_graph_io_methods[] = {
    {"to_graph_def", to_graph_def, METH_O, "Returns the bytes of a graph's GraphDef."},
    {"import_graph_def", import_graph_def, METH_VARARGS, "Adds a GraphDef to a graph."},
    {"gradients", gradients, METH_VARARGS, "Builds the gradients of ys."},
    {"rule_read", rule_read, METH_VARARGS, "Returns a tensor as a gradient rule reads it."},
    {"rule_anchor", rule_anchor, METH_O, "Returns what a rule's constants wait for."},
    {"register_gradient", register_gradient, METH_VARARGS, "Registers a gradient function."},
    {NULL, NULL, 0, NULL},
};

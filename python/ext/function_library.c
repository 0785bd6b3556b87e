// Functions: the library of a graph, and calls of its functions as nodes.
#include "core.h"
#include "tensorflow/c/c_api_experimental.h"

static int outputs_of(PyObject* list, TF_Output* out) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!rnpy_is_tensor(item)) {
      PyErr_Format(PyExc_TypeError, "Expected a Tensor, got %R", item);
      return -1;
    }
    out[i] = rnpy_tf_output(item);
  }
  return 0;
}

// Sets the attributes {name: AttrValue's bytes} of a function.
static bool set_attributes(TF_Function* function, PyObject* attributes) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(attributes, &position, &key, &value)) {
    const char* name = PyUnicode_AsUTF8(key);
    char* bytes = NULL;
    Py_ssize_t size = 0;
    if (!name || PyBytes_AsStringAndSize(value, &bytes, &size) < 0) return false;
    TF_FunctionSetAttrValueProto(function, name, bytes, (size_t)size, rnpy_status());
    if (rnpy_build_failed(rnpy_status())) return false;
  }
  return true;
}

// The operations of a list, in memory of PyMem_Malloc; their names too. NULL after an error.
static const TF_Operation** operations_of(PyObject* list, const char*** out_names) {
  Py_ssize_t count = PyList_GET_SIZE(list);
  const TF_Operation** found = PyMem_Calloc((size_t)count + 1, sizeof *found);
  *out_names = PyMem_Calloc((size_t)count + 1, sizeof **out_names);
  bool ok = found && *out_names;
  if (!ok) PyErr_NoMemory();
  for (Py_ssize_t i = 0; ok && i < count; ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    ok = PyObject_TypeCheck(item, rnpy.operation_type);
    if (!ok) {
      PyErr_Format(PyExc_TypeError, "Expected an Operation, got %R", item);
      break;
    }
    found[i] = ((rnpy_operation_t*)item)->oper;
    (*out_names)[i] = TF_OperationName(((rnpy_operation_t*)item)->oper);
  }
  if (ok) return found;
  PyMem_Free(found);
  PyMem_Free(*out_names);
  *out_names = NULL;
  return NULL;
}

// The names of the results of a function: |names| is a sequence of strings, or None.
static bool names_of(PyObject* names, size_t count, const char** texts) {
  bool ok = true;
  for (size_t i = 0; ok && names != Py_None && i < count; ++i) {
    PyObject* item = PySequence_GetItem(names, (Py_ssize_t)i);
    texts[i] = item ? PyUnicode_AsUTF8(item) : NULL;
    Py_XDECREF(item);  // |names| holds a reference
    ok = texts[i] != NULL;
  }
  return ok;
}

// define_function(into graph, name, body graph, inputs, outputs, output names or None, controls,
// attributes, with_hash, description): adds the whole body to the library of the graph. |controls|
// are operations that a call waits for; |with_hash| appends a hash of the body to the name. Returns
// the function's name.
static PyObject* define_function(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  static char* keywords[] = {"into",      "name",        "body",     "inputs",
                             "outputs",   "names",       "controls", "attributes",
                             "with_hash", "description", NULL};
  PyObject *into, *body, *inputs, *outputs, *names, *controls = NULL, *attributes = NULL;
  const char *name, *description = NULL;
  int with_hash = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!sO!O!O!O|O!O!pz", keywords, rnpy.graph_type,
                                   &into, &name, rnpy.graph_type, &body, &PyList_Type, &inputs,
                                   &PyList_Type, &outputs, &names, &PyList_Type, &controls,
                                   &PyDict_Type, &attributes, &with_hash, &description))
    return NULL;
  size_t in_count = (size_t)PyList_GET_SIZE(inputs), out_count = (size_t)PyList_GET_SIZE(outputs);
  TF_Output* edges = PyMem_Calloc(in_count + out_count + 1, sizeof *edges);
  const char** texts = PyMem_Calloc(out_count + 1, sizeof *texts);
  const char** control_names = NULL;
  const TF_Operation** waits = controls ? operations_of(controls, &control_names) : NULL;
  bool ok = edges && texts && (waits || !controls) && outputs_of(inputs, edges) == 0 &&
            outputs_of(outputs, edges + in_count) == 0 && names_of(names, out_count, texts);
  TF_Function* function = NULL;
  if (ok) {
    function = TF_GraphToFunctionWithControlOutputs(
        ((rnpy_graph_t*)body)->graph, name, with_hash != 0, -1, NULL, (int)in_count, edges,
        (int)out_count, edges + in_count, names != Py_None ? texts : NULL,
        controls ? (int)PyList_GET_SIZE(controls) : 0, waits, control_names, NULL, description,
        rnpy_status());
    ok = !rnpy_build_failed(rnpy_status());
  }
  if (ok && attributes) ok = set_attributes(function, attributes);
  if (ok) {
    TF_GraphCopyFunction(((rnpy_graph_t*)into)->graph, function, NULL, rnpy_status());
    ok = !rnpy_build_failed(rnpy_status());
  }
  PyObject* answer = ok ? PyUnicode_FromString(TF_FunctionName(function)) : NULL;
  TF_DeleteFunction(function);
  PyMem_Free(waits);
  PyMem_Free(control_names);
  PyMem_Free(edges);
  PyMem_Free(texts);
  return answer;
}

static PyObject* function_def(TF_Function* function) {
  TF_Buffer* buffer = TF_NewBuffer();
  TF_FunctionToFunctionDef(function, buffer, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) {
    TF_DeleteBuffer(buffer);
    return NULL;
  }
  return rnpy_take_buffer(buffer);
}

// Adds a function to the dict |found|, unless its name is in the set |known|.
static bool add_unknown(TF_Function* function, PyObject* known, PyObject* found) {
  PyObject* name = PyUnicode_FromString(TF_FunctionName(function));
  int is_known = name && known ? PySet_Contains(known, name) : 0;
  PyObject* bytes = name && is_known == 0 ? function_def(function) : NULL;
  bool ok = is_known == 1 || (bytes && PyDict_SetItem(found, name, bytes) == 0);
  Py_XDECREF(bytes);
  Py_XDECREF(name);
  return ok;
}

// functions_of(graph[, names to leave out]): {name: FunctionDef's bytes}
static PyObject* functions_of(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* graph_object;
  PyObject* known = NULL;
  if (!PyArg_ParseTuple(args, "O!|O!", rnpy.graph_type, &graph_object, &PySet_Type, &known)) {
    return NULL;
  }
  TF_Graph* graph = ((rnpy_graph_t*)graph_object)->graph;
  int count = TF_GraphNumFunctions(graph);
  TF_Function** functions = PyMem_Calloc((size_t)count + 1, sizeof(TF_Function*));
  if (!functions) return PyErr_NoMemory();
  count = TF_GraphGetFunctions(graph, functions, count, rnpy_status());
  PyObject* found = rnpy_failed(rnpy_status(), NULL) ? NULL : PyDict_New();
  for (int i = 0; i < count; ++i) {
    if (found && !add_unknown(functions[i], known, found)) Py_CLEAR(found);
    TF_DeleteFunction(functions[i]);
  }
  PyMem_Free(functions);
  return found;
}

// Returns NULL and sets an exception if |bytes| are no FunctionDef.
static TF_Function* parse_function(const char* bytes, Py_ssize_t size) {
  TF_Function* function = TF_FunctionImportFunctionDef(bytes, (size_t)size, rnpy_status());
  return rnpy_build_failed(rnpy_status()) ? NULL : function;
}

// add_function_def(graph, bytes[, bytes of its gradient or None]): into the graph's library.
static PyObject* add_function_def(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* graph;
  const char *bytes, *gradient_bytes = NULL;
  Py_ssize_t size, gradient_size = 0;
  if (!PyArg_ParseTuple(args, "O!y#|z#", rnpy.graph_type, &graph, &bytes, &size, &gradient_bytes,
                        &gradient_size))
    return NULL;
  TF_Function* function = parse_function(bytes, size);
  if (!function) return NULL;
  TF_Function* gradient = NULL;
  if (gradient_bytes) gradient = parse_function(gradient_bytes, gradient_size);
  bool ok = gradient || !gradient_bytes;
  if (ok) {
    TF_GraphCopyFunction(((rnpy_graph_t*)graph)->graph, function, gradient, rnpy_status());
    ok = !rnpy_failed(rnpy_status(), NULL);
  }
  TF_DeleteFunction(function);
  TF_DeleteFunction(gradient);
  if (!ok) return NULL;
  Py_RETURN_NONE;
}

// remove_function(graph, name): from the graph's library.
static PyObject* remove_function(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* graph;
  const char* name;
  if (!PyArg_ParseTuple(args, "O!s", rnpy.graph_type, &graph, &name)) return NULL;
  TF_GraphRemoveFunction(((rnpy_graph_t*)graph)->graph, name, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

// create_call(graph, function, name of the node, inputs): a node whose op is a function of the
// graph's library. The name is used as it is.
static PyObject* create_call(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *graph_object, *function, *inputs;
  const char* name;
  if (!PyArg_ParseTuple(args, "O!UsO!", rnpy.graph_type, &graph_object, &function, &name,
                        &PyList_Type, &inputs))
    return NULL;
  rnpy_graph_t* graph = (rnpy_graph_t*)graph_object;
  const char* op = PyUnicode_AsUTF8(function);
  int count = (int)PyList_GET_SIZE(inputs);
  TF_Output* edges = PyMem_Calloc((size_t)count + 1, sizeof *edges);
  if (!edges) return PyErr_NoMemory();
  PyObject* answer = NULL;
  if (op && outputs_of(inputs, edges) == 0) {
    TF_OperationDescription* desc = TF_NewOperation(graph->graph, op, name);
    for (int i = 0; i < count; ++i) TF_AddInput(desc, edges[i]);
    if (rnpy_apply_scopes(graph, desc, function, edges, count) < 0) {
      rnpy_abandon(desc);
    } else {
      answer = rnpy_finish(graph, desc);
    }
  }
  PyMem_Free(edges);
  return answer;
}

PyMethodDef rnpy_library_methods[] = {
    {"define_function", (PyCFunction)(void (*)(void))define_function, METH_VARARGS | METH_KEYWORDS,
     "Makes a graph a function of another."},
    {"functions_of", functions_of, METH_VARARGS, "Returns the FunctionDefs of a graph by name."},
    {"add_function_def", add_function_def, METH_VARARGS, "Adds a FunctionDef to a graph."},
    {"remove_function", remove_function, METH_VARARGS, "Removes a function from a graph."},
    {"create_call", create_call, METH_VARARGS, "Adds a node that calls a function of the graph."},
    {NULL, NULL, 0, NULL},
};

// The scopes of a graph, per thread: names, devices, control inputs, colocation.
//
// A graph holds the scopes of the thread that used it last. When another thread comes, it parks
// them if that thread is inside of a scope, so a thread that ends outside leaves nothing behind.
#include "core.h"

// --- The scopes of threads

static bool is_empty(PyObject* value) {
  return PySequence_Check(value) && PySequence_Size(value) == 0;
}

// Tells whether a thread has left all the scopes that it entered.
static bool is_outside(const rnpy_graph_t* graph, int count) {
  for (int i = 0; i < count; ++i) {
    PyObject *now = graph->scopes[i], *fresh = PyTuple_GET_ITEM(graph->fresh, i);
    if (now != fresh && !(is_empty(now) && is_empty(fresh))) return false;
  }
  return true;
}

static PyObject* as_tuple(const rnpy_graph_t* graph, int count) {
  PyObject* tuple = PyTuple_New(count);
  for (int i = 0; tuple && i < count; ++i) {
    Py_INCREF(graph->scopes[i]);
    PyTuple_SET_ITEM(tuple, i, graph->scopes[i]);
  }
  return tuple;
}

static int park(rnpy_graph_t* graph, int count) {
  if (is_outside(graph, count)) return 0;
  PyObject* key = PyLong_FromUnsignedLongLong(graph->thread);
  PyObject* tuple = key ? as_tuple(graph, count) : NULL;
  int outcome = tuple ? PyDict_SetItem(graph->parked, key, tuple) : -1;
  Py_XDECREF(tuple);
  Py_XDECREF(key);
  return outcome;
}

// Takes what |thread| had before, or what a thread begins with.
static int unpark(rnpy_graph_t* graph, uint64_t thread, int count) {
  PyObject* key = PyLong_FromUnsignedLongLong(thread);
  if (!key) return -1;
  PyObject* tuple = PyDict_GetItemWithError(graph->parked, key);
  Py_XINCREF(tuple);
  if (tuple ? PyDict_DelItem(graph->parked, key) < 0 : PyErr_Occurred() != NULL) {
    Py_XDECREF(tuple);
    Py_DECREF(key);
    return -1;
  }
  Py_DECREF(key);
  graph->thread = thread;
  for (int i = 0; i < count; ++i) {
    PyObject* from = tuple && i < PyTuple_GET_SIZE(tuple) ? tuple : graph->fresh;
    PyObject* before = graph->scopes[i];
    graph->scopes[i] = PyTuple_GET_ITEM(from, i);
    Py_INCREF(graph->scopes[i]);
    Py_DECREF(before);
  }
  Py_XDECREF(tuple);
  return 0;
}

PyObject** rnpy_scopes(rnpy_graph_t* graph) {
  uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
  if (graph->thread == thread) return graph->scopes;
  int count = graph->is_per_thread ? RNPY_SCOPES : RNPY_NAME_STACK + 1;
  if (park(graph, count) < 0 || unpark(graph, thread, count) < 0) return NULL;
  return graph->scopes;
}

int rnpy_scopes_init(rnpy_graph_t* graph) {
  Py_INCREF(Py_None);
  Py_INCREF(Py_None);
  graph->scopes[RNPY_NAME_STACK] = PyUnicode_FromString("");
  graph->scopes[RNPY_DEVICE] = Py_None;
  graph->scopes[RNPY_CONTROLS] = PyList_New(0);
  graph->scopes[RNPY_COLOCATION] = PyTuple_New(0);
  graph->scopes[RNPY_DEVICE_HOOK] = Py_None;
  graph->scopes[RNPY_DEVICE_STACK] = PyTuple_New(0);
  graph->scopes[RNPY_COLOCATION_STACK] = PyTuple_New(0);
  for (int i = 0; i < RNPY_SCOPES; ++i)
    if (!graph->scopes[i]) return -1;
  graph->parked = PyDict_New();
  graph->fresh = as_tuple(graph, RNPY_SCOPES);
  return graph->parked && graph->fresh ? 0 : -1;
}

int rnpy_scopes_traverse(rnpy_graph_t* graph, visitproc visit, void* arg) {
  for (int i = 0; i < RNPY_SCOPES; ++i) Py_VISIT(graph->scopes[i]);
  Py_VISIT(graph->parked);
  Py_VISIT(graph->fresh);
  return 0;
}

void rnpy_scopes_clear(rnpy_graph_t* graph) {
  for (int i = 0; i < RNPY_SCOPES; ++i) Py_CLEAR(graph->scopes[i]);
  Py_CLEAR(graph->parked);
  Py_CLEAR(graph->fresh);
}

PyObject* rnpy_share_no_scopes(rnpy_graph_t* graph, PyObject* unused) {
  (void)unused;
  if (graph->is_per_thread) Py_RETURN_NONE;
  if (!rnpy_scopes(graph)) return NULL;
  PyObject* fresh = as_tuple(graph, RNPY_SCOPES);
  if (!fresh) return NULL;
  PyObject* no_name = PyTuple_GET_ITEM(graph->fresh, RNPY_NAME_STACK);
  Py_INCREF(no_name);
  Py_DECREF(PyTuple_GET_ITEM(fresh, RNPY_NAME_STACK));
  PyTuple_SET_ITEM(fresh, RNPY_NAME_STACK, no_name);
  Py_SETREF(graph->fresh, fresh);
  graph->is_per_thread = true;
  Py_RETURN_NONE;
}

// --- Scopes as attributes of a Graph

PyObject* rnpy_get_scope(rnpy_graph_t* self, void* which) {
  PyObject** scopes = rnpy_scopes(self);
  if (!scopes) return NULL;
  PyObject* value = scopes[(intptr_t)which];
  Py_INCREF(value);
  return value;
}

// Tells whether code that reads this scope can bear |value|.
static bool scope_can_be(intptr_t which, PyObject* value) {
  switch (which) {
    case RNPY_NAME_STACK:
      return PyUnicode_Check(value);
    case RNPY_DEVICE:
      return value == Py_None || PyUnicode_Check(value);
    case RNPY_CONTROLS:
      return PyList_Check(value);
    case RNPY_DEVICE_HOOK:
      return true;
    default:
      return PyTuple_Check(value);
  }
}

int rnpy_set_scope(rnpy_graph_t* self, PyObject* value, void* which) {
  if (!value || !scope_can_be((intptr_t)which, value)) {
    PyErr_SetString(PyExc_TypeError, "This cannot be a scope of a graph");
    return -1;
  }
  PyObject** scopes = rnpy_scopes(self);
  if (!scopes) return -1;
  PyObject* before = scopes[(intptr_t)which];
  Py_INCREF(value);
  scopes[(intptr_t)which] = value;
  Py_DECREF(before);
  return 0;
}

// --- What a new node gets

// Adds the control inputs of one group, unless an input was created inside the group.
static int apply_controls(rnpy_graph_t* graph, TF_OperationDescription* desc, PyObject* group,
                          const TF_Output* inputs, int count) {
  PyObject* controls = PyTuple_GET_ITEM(group, 0);
  PyObject* seen = PyTuple_GET_ITEM(group, 1);
  for (int i = 0; i < count; ++i) {
    PyObject* op = rnpy_operation(graph, inputs[i].oper);
    if (!op) return -1;
    int inside = PySet_Contains(seen, op);
    Py_DECREF(op);
    if (inside) return inside < 0 ? -1 : 0;
  }
  for (Py_ssize_t c = 0; c < PyTuple_GET_SIZE(controls); ++c) {
    TF_Operation* oper = ((rnpy_operation_t*)PyTuple_GET_ITEM(controls, c))->oper;
    bool is_input = false;
    for (int i = 0; i < count; ++i) is_input |= inputs[i].oper == oper;
    if (!is_input) TF_AddControlInput(desc, oper);
  }
  return 0;
}

static int apply_attributes(TF_OperationDescription* desc, PyObject* attributes) {
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(attributes, &position, &key, &value)) {
    const char* name = PyUnicode_AsUTF8(key);
    if (!name || !PyBytes_Check(value)) return -1;
    TF_SetAttrValueProto(desc, name, PyBytes_AS_STRING(value), (size_t)PyBytes_GET_SIZE(value),
                         rnpy_status());
    if (rnpy_build_failed(rnpy_status())) return -1;
  }
  return 0;
}

static int apply_colocation(TF_OperationDescription* desc, PyObject* names) {
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  const void** values = PyMem_Malloc((size_t)count * sizeof *values);
  size_t* lengths = PyMem_Malloc((size_t)count * sizeof *lengths);
  if (values && lengths) {
    for (Py_ssize_t i = 0; i < count; ++i) {
      values[i] = PyBytes_AS_STRING(PyTuple_GET_ITEM(names, i));
      lengths[i] = (size_t)PyBytes_GET_SIZE(PyTuple_GET_ITEM(names, i));
    }
    TF_SetAttrStringList(desc, "_class", values, lengths, (int)count);
  } else {
    PyErr_NoMemory();
  }
  int outcome = values && lengths ? 0 : -1;
  PyMem_Free(values);
  PyMem_Free(lengths);
  return outcome;
}

int rnpy_apply_scopes(rnpy_graph_t* graph, TF_OperationDescription* desc, PyObject* op_type,
                      const TF_Output* inputs, int count) {
  PyObject** scopes = rnpy_scopes(graph);
  if (!scopes) return -1;
  if (scopes[RNPY_DEVICE] != Py_None) {
    const char* device = PyUnicode_AsUTF8(scopes[RNPY_DEVICE]);
    if (!device) return -1;
    TF_SetDevice(desc, device);
  }
  PyObject* controls = scopes[RNPY_CONTROLS];
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(controls); ++i)
    if (apply_controls(graph, desc, PyList_GET_ITEM(controls, i), inputs, count) < 0) return -1;
  if (PyDict_GET_SIZE(graph->attributes) && apply_attributes(desc, graph->attributes) < 0)
    return -1;
  if (PyDict_GET_SIZE(graph->op_types)) {
    PyObject* attributes = PyDict_GetItemWithError(graph->op_types, op_type);
    if (attributes ? apply_attributes(desc, attributes) < 0 : PyErr_Occurred() != NULL) return -1;
  }
  PyObject* colocation = scopes[RNPY_COLOCATION];
  if (PyTuple_GET_SIZE(colocation) && apply_colocation(desc, colocation) < 0) return -1;
  return 0;
}

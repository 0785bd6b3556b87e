// Graphs, operations and tensors as Python objects.
//
// A Graph keeps one object per node, so attributes that users set on it persist. An Operation
// keeps its graph alive; the cycle collector frees them together.
#include "core.h"

#include <ctype.h>

// --- Names

// Returns |name| in lower case: names are compared without case.
static PyObject* lower(PyObject* name) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (!text) return NULL;
  Py_ssize_t i = 0;
  while (i < size && !(text[i] >= 'A' && text[i] <= 'Z') && !(text[i] & 0x80)) ++i;
  if (i == size) {
    Py_INCREF(name);
    return name;
  }
  if (!PyUnicode_IS_ASCII(name)) return PyObject_CallMethod(name, "lower", NULL);
  PyObject* out = PyUnicode_New(size, 127);
  if (!out) return NULL;
  char* to = (char*)PyUnicode_1BYTE_DATA(out);
  for (i = 0; i < size; ++i) to[i] = (char)tolower((unsigned char)text[i]);
  return out;
}

static int mark_name(rnpy_graph_t* graph, PyObject* key, long count) {
  PyObject* number = PyLong_FromLong(count);
  if (!number) return -1;
  int outcome = PyDict_SetItem(graph->names, key, number);
  Py_DECREF(number);
  return outcome;
}

// Returns the first unused name of "name_i", "name_i+1", ...
static PyObject* numbered_name(rnpy_graph_t* graph, PyObject* name, PyObject* key, long i,
                               bool mark) {
  for (;; ++i) {
    PyObject* candidate = PyUnicode_FromFormat("%U_%ld", key, i);
    if (!candidate) return NULL;
    int taken = PyDict_Contains(graph->names, candidate);
    if (taken == 0 && mark && mark_name(graph, candidate, 1) < 0) taken = -1;
    Py_DECREF(candidate);
    if (taken < 0) return NULL;
    if (!taken) return PyUnicode_FromFormat("%U_%ld", name, i);
  }
}

PyObject* rnpy_unique_name(rnpy_graph_t* graph, PyObject* name, bool mark) {
  PyObject** scopes = rnpy_scopes(graph);
  if (!scopes || rnpy_graph_sync(graph) < 0) return NULL;
  PyObject* full;
  if (PyUnicode_GET_LENGTH(scopes[RNPY_NAME_STACK])) {
    full = PyUnicode_FromFormat("%U/%U", scopes[RNPY_NAME_STACK], name);
  } else {
    full = name;
    Py_INCREF(full);
  }
  PyObject* key = full ? lower(full) : NULL;
  if (!key) {
    Py_XDECREF(full);
    return NULL;
  }
  PyObject* count = PyDict_GetItemWithError(graph->names, key);
  long i = count ? PyLong_AsLong(count) : 0;
  PyObject* out = NULL;
  if (!PyErr_Occurred() && (!mark || mark_name(graph, key, i + 1) == 0)) {
    if (i == 0) {
      out = full;
      Py_INCREF(out);
    } else {
      out = numbered_name(graph, full, key, i, mark);
    }
  }
  Py_DECREF(key);
  Py_DECREF(full);
  return out;
}

// --- The objects of nodes

static size_t slot_of(const rnpy_graph_t* graph, const void* key) {
  size_t mask = graph->map_capacity - 1;
  size_t i = (((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15ull >> 20) & mask;
  while (graph->map_keys[i] && graph->map_keys[i] != key) i = (i + 1) & mask;
  return i;
}

static int map_grow(rnpy_graph_t* graph) {
  size_t capacity = graph->map_capacity ? graph->map_capacity * 2 : 64;
  void** old_keys = graph->map_keys;
  int32_t* old_values = graph->map_values;
  size_t old_capacity = graph->map_capacity;
  void** keys = PyMem_Calloc(capacity, sizeof *keys);
  int32_t* values = PyMem_Calloc(capacity, sizeof *values);
  if (!keys || !values) {
    PyMem_Free(keys);
    PyMem_Free(values);
    PyErr_NoMemory();
    return -1;
  }
  graph->map_keys = keys;
  graph->map_values = values;
  graph->map_capacity = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (!old_keys[i]) continue;
    size_t slot = slot_of(graph, old_keys[i]);
    keys[slot] = old_keys[i];
    values[slot] = old_values[i];
  }
  PyMem_Free(old_keys);
  PyMem_Free(old_values);
  return 0;
}

// Creates the object of a node that has none.
static PyObject* add_object(rnpy_graph_t* graph, TF_Operation* oper) {
  if ((size_t)PyList_GET_SIZE(graph->ops) * 2 >= graph->map_capacity && map_grow(graph) < 0)
    return NULL;
  PyTypeObject* type = (PyTypeObject*)rnpy.operation_class;
  rnpy_operation_t* op = (rnpy_operation_t*)type->tp_alloc(type, 0);
  if (!op) return NULL;
  op->oper = oper;
  Py_INCREF(graph);
  op->graph = graph;
  op->id = (int)PyList_GET_SIZE(graph->ops);
  Py_ssize_t count = PyList_GET_SIZE(graph->ops);
  PyObject* last = count ? PyList_GET_ITEM(graph->ops, count - 1) : NULL;
  op->site = rnpy_call_site_now(last ? ((rnpy_operation_t*)last)->site : NULL);
  if (PyList_Append(graph->ops, (PyObject*)op) < 0) {
    Py_DECREF(op);
    return NULL;
  }
  size_t slot = slot_of(graph, oper);
  graph->map_keys[slot] = oper;
  graph->map_values[slot] = op->id;
  return (PyObject*)op;
}

// Reserves the name and all its prefixes.
static int take_name(rnpy_graph_t* graph, const char* name) {
  size_t size = strlen(name);
  for (size_t end = 1; end <= size; ++end) {
    if (end < size && name[end] != '/') continue;
    PyObject* part = PyUnicode_DecodeUTF8(name, (Py_ssize_t)end, "replace");
    PyObject* key = part ? lower(part) : NULL;
    Py_XDECREF(part);
    if (!key) return -1;
    int known = PyDict_Contains(graph->names, key);
    int outcome = known == 0 ? mark_name(graph, key, 1) : known;
    Py_DECREF(key);
    if (outcome < 0) return -1;
  }
  return 0;
}

int rnpy_graph_sync(rnpy_graph_t* graph) {
  for (;;) {
    size_t position = graph->position;
    TF_Operation* oper = TF_GraphNextOperation(graph->graph, &position);
    if (!oper) return 0;
    PyObject* op = add_object(graph, oper);
    if (!op) return -1;
    Py_DECREF(op);
    graph->position = position;
    if (take_name(graph, TF_OperationName(oper)) < 0) return -1;
  }
}

int rnpy_graph_rewind(rnpy_graph_t* graph) {
  size_t position = 0, count = 0;
  while (TF_GraphNextOperation(graph->graph, &position)) {
    ++count;
    if (position >= graph->position) break;
  }
  Py_ssize_t known = PyList_GET_SIZE(graph->ops);
  if (count >= (size_t)known) return 0;
  for (Py_ssize_t i = (Py_ssize_t)count; i < known; ++i)
    ((rnpy_operation_t*)PyList_GET_ITEM(graph->ops, i))->oper = NULL;
  if (PyList_SetSlice(graph->ops, (Py_ssize_t)count, known, NULL) < 0) return -1;
  graph->position = position;
  memset(graph->map_keys, 0, graph->map_capacity * sizeof *graph->map_keys);
  for (size_t i = 0; i < count; ++i) {
    rnpy_operation_t* op = (rnpy_operation_t*)PyList_GET_ITEM(graph->ops, (Py_ssize_t)i);
    size_t slot = slot_of(graph, op->oper);
    graph->map_keys[slot] = op->oper;
    graph->map_values[slot] = op->id;
  }
  return 0;
}

PyObject* rnpy_operation(rnpy_graph_t* graph, TF_Operation* oper) {
  for (int turn = 0; turn < 2; ++turn) {
    if (graph->map_capacity) {
      size_t slot = slot_of(graph, oper);
      if (graph->map_keys[slot]) {
        PyObject* op = PyList_GET_ITEM(graph->ops, graph->map_values[slot]);
        Py_INCREF(op);
        return op;
      }
    }
    if (rnpy_graph_sync(graph) < 0) return NULL;
  }
  PyErr_SetString(PyExc_ValueError, "The operation belongs to another graph");
  return NULL;
}

static PyObject* make_outputs(rnpy_operation_t* op) {
  int count = TF_OperationNumOutputs(op->oper);
  PyObject* outputs = PyTuple_New(count);
  if (!outputs) return NULL;
  PyTypeObject* type = (PyTypeObject*)rnpy.tensor_class;
  for (int i = 0; i < count; ++i) {
    rnpy_tensor_t* tensor = (rnpy_tensor_t*)type->tp_alloc(type, 0);
    if (!tensor) {
      Py_DECREF(outputs);
      return NULL;
    }
    Py_INCREF(op);
    tensor->op = op;
    tensor->index = i;
    tensor->dtype = (int)TF_OperationOutputType((TF_Output){op->oper, i});
    PyTuple_SET_ITEM(outputs, i, (PyObject*)tensor);
  }
  return outputs;
}

// Borrowed.
static PyObject* outputs_of(rnpy_operation_t* op) {
  if (!op->outputs) op->outputs = make_outputs(op);
  return op->outputs;
}

PyObject* rnpy_output(PyObject* op, int index) {
  PyObject* outputs = outputs_of((rnpy_operation_t*)op);
  if (!outputs) return NULL;
  if (index < 0 || index >= PyTuple_GET_SIZE(outputs)) {
    PyErr_SetString(PyExc_IndexError, "The operation has no such output");
    return NULL;
  }
  PyObject* tensor = PyTuple_GET_ITEM(outputs, index);
  Py_INCREF(tensor);
  return tensor;
}

PyObject* rnpy_edge(rnpy_graph_t* graph, TF_Output output) {
  if (!output.oper) Py_RETURN_NONE;
  PyObject* op = rnpy_operation(graph, output.oper);
  if (!op) return NULL;
  PyObject* tensor = rnpy_output(op, output.index);
  Py_DECREF(op);
  return tensor;
}

// --- Making a node

void rnpy_abandon(TF_OperationDescription* desc) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  TF_AddInput(desc, (TF_Output){NULL, 0});  // no such node: the description fails and is freed
  TF_FinishOperation(desc, rnpy_status());
  PyErr_Restore(type, value, traceback);
}

static bool seen_by_controls(PyObject* controls, PyObject* op) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(controls); ++i)
    if (PySet_Add(PyTuple_GET_ITEM(PyList_GET_ITEM(controls, i), 1), op) < 0) return false;
  return true;
}

static bool call_hook(PyObject* hook, PyObject* op) {
  if (hook == Py_None) return true;
  Py_INCREF(hook);  // it may leave its scope
  PyObject* answer = PyObject_CallOneArg(hook, op);
  Py_DECREF(hook);
  Py_XDECREF(answer);
  return answer != NULL;
}

PyObject* rnpy_finish(rnpy_graph_t* graph, TF_OperationDescription* desc) {
  if (graph->is_finalized) {
    PyErr_SetString(PyExc_RuntimeError, "Graph is finalized and cannot be modified.");
    rnpy_abandon(desc);
    return NULL;
  }
  TF_Status* status = rnpy_status();
  TF_Operation* oper = TF_FinishOperation(desc, status);
  if (rnpy_build_failed(status)) return NULL;
  size_t position = graph->position;
  PyObject* op;
  if (TF_GraphNextOperation(graph->graph, &position) == oper) {
    op = add_object(graph, oper);
    if (op) graph->position = position;
  } else {
    op = rnpy_operation(graph, oper);  // others were added on another thread
  }
  if (!op) return NULL;
  PyObject** scopes = rnpy_scopes(graph);
  if (!scopes || !seen_by_controls(scopes[RNPY_CONTROLS], op) ||
      !call_hook(scopes[RNPY_DEVICE_HOOK], op) || !call_hook(graph->hook, op))
    Py_CLEAR(op);
  return op;
}

// --- Graph

static int graph_traverse(rnpy_graph_t* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->names);
  Py_VISIT(self->ops);
  Py_VISIT(self->attributes);
  Py_VISIT(self->op_types);
  Py_VISIT(self->hook);
  Py_VISIT(self->capture);
  return rnpy_scopes_traverse(self, visit, arg);
}

static int graph_clear(rnpy_graph_t* self) {
  Py_CLEAR(self->names);
  Py_CLEAR(self->ops);
  rnpy_scopes_clear(self);
  Py_CLEAR(self->attributes);
  Py_CLEAR(self->op_types);
  Py_CLEAR(self->hook);
  Py_CLEAR(self->capture);
  return 0;
}

static void graph_dealloc(rnpy_graph_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  graph_clear(self);
  PyMem_Free(self->map_keys);
  PyMem_Free(self->map_values);
  TF_DeleteGraph(self->graph);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

static PyObject* graph_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)args, (void)kwargs;
  rnpy_graph_t* self = (rnpy_graph_t*)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->graph = TF_NewGraph();
  self->names = PyDict_New();
  self->ops = PyList_New(0);
  self->attributes = PyDict_New();
  self->op_types = PyDict_New();
  Py_INCREF(Py_None);
  self->hook = Py_None;
  Py_INCREF(Py_None);
  self->capture = Py_None;
  if (!self->graph || !self->names || !self->ops || !self->attributes || !self->op_types ||
      rnpy_scopes_init(self) < 0) {
    Py_DECREF(self);
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return NULL;
  }
  return (PyObject*)self;
}

static PyObject* graph_unique_name(rnpy_graph_t* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", "mark_as_used", NULL};
  PyObject* name;
  int mark = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|p", names, &name, &mark)) return NULL;
  return rnpy_unique_name(self, name, mark);
}

static PyObject* graph_operations(rnpy_graph_t* self, PyObject* unused) {
  (void)unused;
  if (rnpy_graph_sync(self) < 0) return NULL;
  return PyList_GetSlice(self->ops, 0, PyList_GET_SIZE(self->ops));
}

static PyObject* graph_find(rnpy_graph_t* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return NULL;
  TF_Operation* oper = TF_GraphOperationByName(self->graph, text);
  if (!oper) Py_RETURN_NONE;
  return rnpy_operation(self, oper);
}

static PyObject* graph_count(rnpy_graph_t* self, void* unused) {
  (void)unused;
  if (rnpy_graph_sync(self) < 0) return NULL;
  return PyLong_FromSsize_t(PyList_GET_SIZE(self->ops));
}

static PyMethodDef graph_methods[] = {
    {"unique_name", (PyCFunction)(void (*)(void))graph_unique_name, METH_VARARGS | METH_KEYWORDS,
     "unique_name(name, mark_as_used=True): returns a name that no operation or scope has."},
    {"get_operations", (PyCFunction)graph_operations, METH_NOARGS,
     "Returns all operations in the order of creation."},
    {"_find", (PyCFunction)graph_find, METH_O, "Returns the operation of that name, or None."},
    {"_share_no_scopes", (PyCFunction)rnpy_share_no_scopes, METH_NOARGS,
     "From now on each thread has scopes of its own, which begin with the current ones."},
    {NULL, NULL, 0, NULL},
};

#define SCOPE(name, which) \
  { name, (getter)rnpy_get_scope, (setter)rnpy_set_scope, NULL, (void*)(intptr_t)(which) }
static PyGetSetDef graph_getset[] = {
    SCOPE("_name_stack", RNPY_NAME_STACK),
    SCOPE("_device_string", RNPY_DEVICE),
    SCOPE("_control_stack", RNPY_CONTROLS),
    SCOPE("_colocation", RNPY_COLOCATION),
    SCOPE("_device_hook", RNPY_DEVICE_HOOK),
    SCOPE("_device_stack", RNPY_DEVICE_STACK),
    SCOPE("_colocation_stack", RNPY_COLOCATION_STACK),
    {"_last_id", (getter)graph_count, NULL, "The number of operations.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef graph_members[] = {
    {"_names_in_use", T_OBJECT, offsetof(rnpy_graph_t, names), READONLY, NULL},
    {"_attributes", T_OBJECT_EX, offsetof(rnpy_graph_t, attributes), 0, NULL},
    {"_op_type_attributes", T_OBJECT_EX, offsetof(rnpy_graph_t, op_types), 0, NULL},
    {"_hook", T_OBJECT, offsetof(rnpy_graph_t, hook), 0, NULL},
    {"_capture", T_OBJECT, offsetof(rnpy_graph_t, capture), 0, NULL},
    {"_finalized", T_BOOL, offsetof(rnpy_graph_t, is_finalized), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_new, graph_new},           {Py_tp_dealloc, graph_dealloc},
    {Py_tp_traverse, graph_traverse}, {Py_tp_clear, graph_clear},
    {Py_tp_methods, graph_methods},   {Py_tp_members, graph_members},
    {Py_tp_getset, graph_getset},     {0, NULL},
};

static PyType_Spec graph_spec = {
    .name = "runnel._core.Graph",
    .basicsize = sizeof(rnpy_graph_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = graph_slots,
};

// --- Operation

static int operation_traverse(rnpy_operation_t* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT((PyObject*)self->graph);
  Py_VISIT(self->outputs);
  return 0;
}

static int operation_clear(rnpy_operation_t* self) {
  Py_CLEAR(self->graph);
  Py_CLEAR(self->outputs);
  rnpy_call_site_release(self->site);
  self->site = NULL;
  return 0;
}

static void operation_dealloc(rnpy_operation_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  operation_clear(self);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

// Returns the name of a node; "" if the node was removed.
static PyObject* text(const char* value) { return PyUnicode_FromString(value ? value : ""); }

static PyObject* operation_name(rnpy_operation_t* self, void* unused) {
  (void)unused;
  return text(TF_OperationName(self->oper));
}
static PyObject* operation_type(rnpy_operation_t* self, void* unused) {
  (void)unused;
  return text(TF_OperationOpType(self->oper));
}
static PyObject* operation_device(rnpy_operation_t* self, void* unused) {
  (void)unused;
  return text(TF_OperationDevice(self->oper));
}

static PyObject* operation_outputs(rnpy_operation_t* self, void* unused) {
  (void)unused;
  PyObject* outputs = outputs_of(self);
  return outputs ? PySequence_List(outputs) : NULL;
}

static PyObject* operation_inputs(rnpy_operation_t* self, void* unused) {
  (void)unused;
  int count = TF_OperationNumInputs(self->oper);
  PyObject* inputs = PyTuple_New(count);
  for (int i = 0; inputs && i < count; ++i) {
    PyObject* tensor = rnpy_edge(self->graph, TF_OperationInput((TF_Input){self->oper, i}));
    if (!tensor) {
      Py_CLEAR(inputs);
    } else {
      PyTuple_SET_ITEM(inputs, i, tensor);
    }
  }
  return inputs;
}

typedef int (*operations_fn_t)(TF_Operation* oper, TF_Operation** out, int room);

static PyObject* list_operations(rnpy_operation_t* self, int count, operations_fn_t get) {
  PyObject* list = PyList_New(0);
  TF_Operation** opers = PyMem_Malloc((size_t)(count + 1) * sizeof(TF_Operation*));
  if (list && opers) {
    count = get(self->oper, opers, count);
    for (int i = 0; list && i < count; ++i) {
      PyObject* op = rnpy_operation(self->graph, opers[i]);
      if (!op || PyList_Append(list, op) < 0) Py_CLEAR(list);
      Py_XDECREF(op);
    }
  }
  PyMem_Free(opers);
  return list;
}

static PyObject* operation_controls(rnpy_operation_t* self, void* unused) {
  (void)unused;
  return list_operations(self, TF_OperationNumControlInputs(self->oper),
                         TF_OperationGetControlInputs);
}

static PyObject* operation_control_outputs(rnpy_operation_t* self, void* unused) {
  (void)unused;
  return list_operations(self, TF_OperationNumControlOutputs(self->oper),
                         TF_OperationGetControlOutputs);
}

static PyObject* operation_node_def(rnpy_operation_t* self, PyObject* unused) {
  (void)unused;
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationToNodeDef(self->oper, buffer, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) {
    TF_DeleteBuffer(buffer);
    return NULL;
  }
  return rnpy_take_buffer(buffer);
}

static PyObject* operation_get_attr(rnpy_operation_t* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  return text ? rnpy_get_attr(self, text) : NULL;
}

static PyObject* operation_set_attr(rnpy_operation_t* self, PyObject* args) {
  const char *name, *bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "sy#", &name, &bytes, &size)) return NULL;
  TF_Buffer* buffer = TF_NewBufferFromString(bytes, (size_t)size);
  TF_SetAttr(self->graph->graph, self->oper, name, buffer, rnpy_status());
  TF_DeleteBuffer(buffer);
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* operation_clear_attr(rnpy_operation_t* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return NULL;
  TF_ClearAttr(self->graph->graph, self->oper, text, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* operation_set_device(rnpy_operation_t* self, PyObject* device) {
  const char* text = PyUnicode_AsUTF8(device);
  if (!text) return NULL;
  TF_SetRequestedDevice(self->graph->graph, self->oper, text);
  Py_RETURN_NONE;
}

static PyObject* operation_add_control(rnpy_operation_t* self, PyObject* op) {
  if (!rnpy_is_operation(op)) {
    PyErr_SetString(PyExc_TypeError, "A control input must be an Operation");
    return NULL;
  }
  TF_AddOperationControlInput(self->graph->graph, self->oper, ((rnpy_operation_t*)op)->oper);
  Py_RETURN_NONE;
}

static PyObject* operation_remove_controls(rnpy_operation_t* self, PyObject* unused) {
  (void)unused;
  TF_RemoveAllControlInputs(self->graph->graph, self->oper);
  Py_RETURN_NONE;
}

static PyObject* operation_update_input(rnpy_operation_t* self, PyObject* args) {
  int index;
  PyObject* tensor;
  if (!PyArg_ParseTuple(args, "iO", &index, &tensor)) return NULL;
  if (!rnpy_is_tensor(tensor)) {
    PyErr_SetString(PyExc_TypeError, "An input must be a Tensor");
    return NULL;
  }
  if (((rnpy_tensor_t*)tensor)->op->graph != self->graph) {
    PyErr_Format(PyExc_ValueError, "%S must be from the same graph as %R.", tensor, self);
    return NULL;
  }
  TF_UpdateEdge(self->graph->graph, rnpy_tf_output(tensor), (TF_Input){self->oper, index},
                rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

// Returns (file, line, function) of the user's code that created the node, or None.
static PyObject* operation_defined_at(rnpy_operation_t* self, void* unused) {
  (void)unused;
  if (!self->site) Py_RETURN_NONE;
  return rnpy_call_site_row(self->site);
}

// Returns [(file, line, function)] of the user's calls that led to the node, outermost first.
static PyObject* operation_calls(rnpy_operation_t* self, void* unused) {
  (void)unused;
  return rnpy_call_site_list(self->site);
}

static PyMethodDef operation_methods[] = {
    {"_node_def", (PyCFunction)operation_node_def, METH_NOARGS,
     "Returns the bytes of the NodeDef."},
    {"_get_attr", (PyCFunction)operation_get_attr, METH_O, "Returns an attribute's value."},
    {"_set_attr_bytes", (PyCFunction)operation_set_attr, METH_VARARGS,
     "Sets an attribute to an AttrValue."},
    {"_clear_attr", (PyCFunction)operation_clear_attr, METH_O, "Removes an attribute."},
    {"_set_device_string", (PyCFunction)operation_set_device, METH_O, "Sets the requested device."},
    {"_add_control_input", (PyCFunction)operation_add_control, METH_O,
     "Makes it run after another one."},
    {"_remove_all_control_inputs", (PyCFunction)operation_remove_controls, METH_NOARGS, NULL},
    {"_update_input", (PyCFunction)operation_update_input, METH_VARARGS,
     "_update_input(index, tensor): replaces an input."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef operation_getset[] = {
    {"name", (getter)operation_name, NULL, "The full name.", NULL},
    {"type", (getter)operation_type, NULL, "The op, such as \"MatMul\".", NULL},
    {"device", (getter)operation_device, NULL, "The requested device, or \"\".", NULL},
    {"outputs", (getter)operation_outputs, NULL, "The list of output Tensors.", NULL},
    {"inputs", (getter)operation_inputs, NULL, "The input Tensors.", NULL},
    {"control_inputs", (getter)operation_controls, NULL, "The Operations that must run first.",
     NULL},
    {"_control_outputs", (getter)operation_control_outputs, NULL,
     "The Operations that wait for it.", NULL},
    {"_defined_at", (getter)operation_defined_at, NULL, "(file, line, function) or None.", NULL},
    {"_calls", (getter)operation_calls, NULL,
     "[(file, line, function)] of the calls that led to it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef operation_members[] = {
    {"graph", T_OBJECT, offsetof(rnpy_operation_t, graph), READONLY, "Its Graph."},
    {"_id", T_INT, offsetof(rnpy_operation_t, id), READONLY, "Its number in the graph."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject* operation_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)type, (void)args, (void)kwargs;
  PyErr_SetString(PyExc_TypeError,
                  "Operations cannot be created directly: use the functions that build graphs");
  return NULL;
}

static PyType_Slot operation_slots[] = {
    {Py_tp_new, operation_new},           {Py_tp_dealloc, operation_dealloc},
    {Py_tp_traverse, operation_traverse}, {Py_tp_clear, operation_clear},
    {Py_tp_methods, operation_methods},   {Py_tp_getset, operation_getset},
    {Py_tp_members, operation_members},   {0, NULL},
};

static PyType_Spec operation_spec = {
    .name = "runnel._core.Operation",
    .basicsize = sizeof(rnpy_operation_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = operation_slots,
};

// --- Tensor

static int tensor_traverse(rnpy_tensor_t* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT((PyObject*)self->op);
  return 0;
}

static int tensor_clear(rnpy_tensor_t* self) {
  Py_CLEAR(self->op);
  return 0;
}

static void tensor_dealloc(rnpy_tensor_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  tensor_clear(self);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

static PyObject* tensor_dtype(rnpy_tensor_t* self, void* unused) {
  (void)unused;
  PyObject* dtype = rnpy_dtype(self->dtype);
  Py_XINCREF(dtype);
  return dtype;
}

static PyObject* tensor_name(rnpy_tensor_t* self, void* unused) {
  (void)unused;
  if (!self->op) Py_RETURN_NONE;
  const char* name = TF_OperationName(self->op->oper);
  return PyUnicode_FromFormat("%s:%d", name ? name : "", self->index);
}

static PyObject* tensor_graph(rnpy_tensor_t* self, void* unused) {
  (void)unused;
  if (!self->op) Py_RETURN_NONE;
  Py_INCREF(self->op->graph);
  return (PyObject*)self->op->graph;
}

// Checks that this is a tensor of a graph.
static bool has_op(const rnpy_tensor_t* self) {
  if (self->op && self->op->oper) return true;
  PyErr_SetString(PyExc_ValueError, "This is not a tensor of a graph");
  return false;
}

// The inferred shape: None, or a tuple of int and None.
static PyObject* tensor_dims(rnpy_tensor_t* self, PyObject* unused) {
  (void)unused;
  if (!has_op(self)) return NULL;
  TF_Status* status = rnpy_status();
  TF_Graph* graph = self->op->graph->graph;
  TF_Output output = {self->op->oper, self->index};
  int rank = TF_GraphGetTensorNumDims(graph, output, status);
  if (rnpy_failed(status, NULL)) return NULL;
  if (rank < 0) Py_RETURN_NONE;
  int64_t few[16];
  int64_t* dims = rank <= 16 ? few : PyMem_Malloc((size_t)rank * sizeof *dims);
  PyObject* tuple = dims ? PyTuple_New(rank) : PyErr_NoMemory();
  if (tuple) {
    TF_GraphGetTensorShape(graph, output, dims, rank, status);
    if (rnpy_failed(status, NULL)) Py_CLEAR(tuple);
  }
  for (int i = 0; tuple && i < rank; ++i) {
    PyObject* dim = dims[i] < 0 ? Py_None : PyLong_FromLongLong(dims[i]);
    if (dim == Py_None) Py_INCREF(dim);
    if (dim) {
      PyTuple_SET_ITEM(tuple, i, dim);
    } else {
      Py_CLEAR(tuple);
    }
  }
  if (dims != few) PyMem_Free(dims);
  return tuple;
}

// _set_dims(tuple of int, -1 for unknown): merges with what is known.
static PyObject* tensor_set_dims(rnpy_tensor_t* self, PyObject* dims) {
  if (!has_op(self)) return NULL;
  PyObject* fast = PySequence_Fast(dims, "a tuple of dimensions");
  if (!fast) return NULL;
  int rank = (int)PySequence_Fast_GET_SIZE(fast);
  int64_t* values = PyMem_Malloc((size_t)(rank + 1) * sizeof *values);
  for (int i = 0; values && i < rank; ++i)
    values[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
  Py_DECREF(fast);
  if (!values) return PyErr_NoMemory();
  if (!PyErr_Occurred()) {
    TF_GraphSetTensorShape(self->op->graph->graph, (TF_Output){self->op->oper, self->index}, values,
                           rank, rnpy_status());
    rnpy_build_failed(rnpy_status());
  }
  PyMem_Free(values);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

// _set_handle_data(bytes): what is behind a resource handle, a CppShapeInferenceResult.HandleData.
static PyObject* tensor_set_handle_data(rnpy_tensor_t* self, PyObject* data) {
  if (!has_op(self)) return NULL;
  char* bytes = NULL;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(data, &bytes, &size) != 0) return NULL;
  TF_Output output = {self->op->oper, self->index};
  TF_SetHandleShapeAndType(self->op->graph->graph, output, bytes, (size_t)size, rnpy_status());
  if (rnpy_build_failed(rnpy_status())) return NULL;
  Py_RETURN_NONE;
}

// _handle_data(): what _set_handle_data sets, or what shape inference found.
static PyObject* tensor_handle_data(rnpy_tensor_t* self, PyObject* unused) {
  (void)unused;
  if (!has_op(self)) return NULL;
  TF_Output output = {self->op->oper, self->index};
  TF_Buffer* buffer = TF_GetHandleShapeAndType(self->op->graph->graph, output);
  if (!buffer) Py_RETURN_NONE;
  return rnpy_take_buffer(buffer);
}

static PyObject* tensor_consumers(rnpy_tensor_t* self, PyObject* unused) {
  (void)unused;
  if (!has_op(self)) return NULL;
  TF_Output output = {self->op->oper, self->index};
  int count = TF_OperationOutputNumConsumers(output);
  TF_Input* inputs = PyMem_Malloc((size_t)(count + 1) * sizeof *inputs);
  PyObject* list = inputs ? PyList_New(0) : PyErr_NoMemory();
  if (list) count = TF_OperationOutputConsumers(output, inputs, count);
  for (int i = 0; list && i < count; ++i) {
    PyObject* op = rnpy_operation(self->op->graph, inputs[i].oper);
    if (!op || PyList_Append(list, op) < 0) Py_CLEAR(list);
    Py_XDECREF(op);
  }
  PyMem_Free(inputs);
  return list;
}

// Returns the value of a tensor computed from constants as an array, or None.
static PyObject* tensor_constant(rnpy_tensor_t* self, PyObject* unused) {
  (void)unused;
  if (!self->op) Py_RETURN_NONE;
  TF_Tensor* value = NULL;
  TF_Status* status = rnpy_status();
  unsigned char found = TF_TryEvaluateConstant(
      self->op->graph->graph, (TF_Output){self->op->oper, self->index}, &value, status);
  if (!found || TF_GetCode(status) != TF_OK) Py_RETURN_NONE;
  return rnpy_from_tensor(value);
}

static PyMethodDef tensor_methods[] = {
    {"_dims", (PyCFunction)tensor_dims, METH_NOARGS,
     "Returns the inferred shape, a tuple or None."},
    {"_set_dims", (PyCFunction)tensor_set_dims, METH_O, "Refines the inferred shape."},
    {"_handle_data", (PyCFunction)tensor_handle_data, METH_NOARGS,
     "Returns what is behind a handle, a message."},
    {"_set_handle_data", (PyCFunction)tensor_set_handle_data, METH_O,
     "Says what is behind a resource handle: a serialized HandleData."},
    {"consumers", (PyCFunction)tensor_consumers, METH_NOARGS,
     "Returns the Operations that read it, once per input that does."},
    {"_constant_value", (PyCFunction)tensor_constant, METH_NOARGS,
     "Returns the constant value or None."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_getset[] = {
    {"dtype", (getter)tensor_dtype, NULL, "Its DType.", NULL},
    {"name", (getter)tensor_name, NULL, "\"operation:index\".", NULL},
    {"graph", (getter)tensor_graph, NULL, "Its Graph.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef tensor_members[] = {
    {"op", T_OBJECT, offsetof(rnpy_tensor_t, op), READONLY, "The Operation that computes it."},
    {"value_index", T_INT, offsetof(rnpy_tensor_t, index), READONLY,
     "Its index among the outputs."},
    {"_dtype_number", T_INT, offsetof(rnpy_tensor_t, dtype), 0, "TF_DataType."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_traverse, tensor_traverse},
    {Py_tp_clear, tensor_clear},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_tp_members, tensor_members},
    {0, NULL},
};

static PyType_Spec tensor_spec = {
    .name = "runnel._core.Tensor",
    .basicsize = sizeof(rnpy_tensor_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = tensor_slots,
};

static PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec* spec) {
  PyObject* type = PyType_FromSpec(spec);
  if (!type) return NULL;
  Py_INCREF(type);
  if (PyModule_AddObject(module, name, type) < 0) {
    Py_DECREF(type);
    Py_CLEAR(type);
  }
  return (PyTypeObject*)type;
}

int rnpy_graph_init(PyObject* module) {
  rnpy.graph_type = add_type(module, "Graph", &graph_spec);
  rnpy.operation_type = add_type(module, "Operation", &operation_spec);
  rnpy.tensor_type = add_type(module, "Tensor", &tensor_spec);
  return rnpy.graph_type && rnpy.operation_type && rnpy.tensor_type ? 0 : -1;
}

// A function per op: it takes inputs and attributes by position or name, converts plain values to
// tensors, and adds the node.
//
// The op's definition determines its parameters: inputs, then attributes that are neither inferred
// from the inputs nor have defaults, then the other attributes, then |name|.
#include "opfunction.h"

static void function_dealloc(rnpy_function_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  rnpy_free_definition(self);
  Py_XDECREF(self->op);
  Py_XDECREF(self->definition);
  Py_XDECREF(self->result);
  Py_XDECREF(self->dict);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

// OpFunction(name, OpDef's bytes, {an argument's name: what Python calls it})
static PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)kwargs;
  PyObject *op, *definition, *renamed = NULL;
  if (!PyArg_ParseTuple(args, "US|O!", &op, &definition, &PyDict_Type, &renamed)) return NULL;
  rnpy_function_t* self = (rnpy_function_t*)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = rnpy_graph_call;
  Py_INCREF(op);
  self->op = op;
  self->op_text = PyUnicode_AsUTF8(op);
  Py_INCREF(definition);
  self->definition = definition;
  if (rnpy_read_definition(self, renamed) < 0) Py_CLEAR(self);
  return (PyObject*)self;
}

static PyObject* function_repr(rnpy_function_t* self) {
  return PyUnicode_FromFormat("<op %U>", self->op);
}

static PyObject* function_params(rnpy_function_t* self, void* unused) {
  (void)unused;
  PyObject* tuple = PyTuple_New(self->param_count);
  for (int i = 0; tuple && i < self->param_count; ++i) {
    Py_INCREF(self->params[i]);
    PyTuple_SET_ITEM(tuple, i, self->params[i]);
  }
  return tuple;
}

static PyObject* function_signature(rnpy_function_t* self, void* unused) {
  (void)unused;
  return PyObject_CallOneArg(rnpy.signature, (PyObject*)self);
}

static PyObject* function_doc(rnpy_function_t* self, void* unused) {
  (void)unused;
  return PyObject_CallOneArg(rnpy.documentation, (PyObject*)self);
}

static PyObject* function_flag(rnpy_function_t* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(self->is_stateful);
}

static PyMethodDef function_methods[] = {
    {"_create", (PyCFunction)rnpy_graph_create, METH_VARARGS,
     "_create(graph, flat_inputs, attrs, name): creates an Operation."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef function_getset[] = {
    {"_params", (getter)function_params, NULL, "The names of the arguments, in order.", NULL},
    {"__signature__", (getter)function_signature, NULL, NULL, NULL},
    {"__doc__", (getter)function_doc, NULL, NULL, NULL},
    {"is_stateful", (getter)function_flag, NULL, "Whether the op has state or side effects.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef function_members[] = {
    {"__name__", T_OBJECT, offsetof(rnpy_function_t, op), READONLY, NULL},
    {"__qualname__", T_OBJECT, offsetof(rnpy_function_t, op), READONLY, NULL},
    {"_op_def", T_OBJECT, offsetof(rnpy_function_t, definition), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(rnpy_function_t, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(rnpy_function_t, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_new, function_new},         {Py_tp_dealloc, function_dealloc},
    {Py_tp_repr, function_repr},       {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getset, function_getset},   {Py_tp_members, function_members},
    {Py_tp_methods, function_methods}, {0, NULL},
};

static PyType_Spec function_spec = {
    .name = "runnel._core.OpFunction",
    .basicsize = sizeof(rnpy_function_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = function_slots,
};

// op_def(name): the OpDef's bytes; None if there is no such op.
static PyObject* op_def(PyObject* self, PyObject* arg) {
  (void)self;
  const char* name = PyUnicode_AsUTF8(arg);
  if (!name) return NULL;
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphGetOpDef(graph, name, buffer, rnpy_status());
  TF_DeleteGraph(graph);
  if (TF_GetCode(rnpy_status()) == TF_OK) return rnpy_take_buffer(buffer);
  TF_DeleteBuffer(buffer);
  Py_RETURN_NONE;
}

// constant(graph, value, dtype number, name, shape or None): a Const node's output.
static PyObject* constant(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *graph_object, *value, *name, *shape;
  int dtype;
  if (!PyArg_ParseTuple(args, "O!OiUO", rnpy.graph_type, &graph_object, &value, &dtype, &name,
                        &shape))
    return NULL;
  rnpy_graph_t* graph = (rnpy_graph_t*)graph_object;
  TF_Tensor* tensor = rnpy_to_tensor(value, dtype, false);
  if (!tensor) return NULL;
  if (shape != Py_None) {  // the same elements under another shape
    int64_t dims[32];
    Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : 33;
    int64_t count = 1;
    for (Py_ssize_t i = 0; i < rank && rank <= 32; ++i)
      count *= dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    if (!PyErr_Occurred() && (rank > 32 || count != TF_TensorElementCount(tensor)))
      PyErr_SetString(PyExc_ValueError, "The shape does not fit the value");
    if (PyErr_Occurred()) {
      TF_DeleteTensor(tensor);
      return NULL;
    }
    TF_SetShape(tensor, dims, (int)rank);
  }
  PyObject* unique = NULL;
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text && size && text[size - 1] == '/') {
    unique = PyUnicode_FromStringAndSize(text, size - 1);
  } else if (text) {
    unique = rnpy_unique_name(graph, name, true);
  }
  PyObject* op = NULL;
  static PyObject* const_text;
  if (!const_text) const_text = PyUnicode_InternFromString("Const");
  if (unique) {
    TF_OperationDescription* desc =
        TF_NewOperation(graph->graph, "Const", PyUnicode_AsUTF8(unique));
    TF_SetAttrTensor(desc, "value", tensor, rnpy_status());
    TF_SetAttrType(desc, "dtype", TF_TensorType(tensor));
    if (rnpy_apply_scopes(graph, desc, const_text, NULL, 0) < 0) {
      rnpy_abandon(desc);
    } else {
      op = rnpy_finish(graph, desc);
    }
  }
  TF_DeleteTensor(tensor);
  Py_XDECREF(unique);
  PyObject* output = op ? rnpy_output(op, 0) : NULL;
  Py_XDECREF(op);
  return output;
}

static PyMethodDef methods[] = {
    {"op_def", op_def, METH_O, "Returns the OpDef of an op, or None."},
    {"constant", constant, METH_VARARGS, "Creates a Const node. Returns its output."},
    {NULL, NULL, 0, NULL},
};

int rnpy_function_init(PyObject* module) {
  rnpy.function_type = (PyTypeObject*)PyType_FromSpec(&function_spec);
  if (!rnpy.function_type) return -1;
  Py_INCREF(rnpy.function_type);
  if (PyModule_AddObject(module, "OpFunction", (PyObject*)rnpy.function_type) < 0) return -1;
  return PyModule_AddFunctions(module, methods);
}

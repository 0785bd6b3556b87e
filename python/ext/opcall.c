// Turns a call of an op's function into a node: binds the arguments, chooses graph and name, and
// returns the outputs.
#include "opcall.h"

int rnpy_bind(const rnpy_function_t* f, PyObject* const* args, Py_ssize_t count, PyObject* names,
              PyObject** values) {
  if (count > f->param_count) {
    PyErr_Format(PyExc_TypeError, "%s() takes %d arguments but %zd were given", f->op_text,
                 f->param_count, count);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) values[i] = args[i];
  Py_ssize_t name_count = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t k = 0; k < name_count; ++k) {
    PyObject* key = PyTuple_GET_ITEM(names, k);
    int place = -1;
    for (int i = 0; i < f->param_count && place < 0; ++i)
      if (f->params[i] == key) place = i;
    for (int i = 0; i < f->param_count && place < 0; ++i)
      if (PyUnicode_Compare(f->params[i], key) == 0) place = i;
    if (place < 0) {
      // Old code also passes attributes that the inputs determine; the node's own check rejects
      // wrong ones.
      for (int i = 0; i < f->attr_count; ++i)
        if (f->attrs[i].is_inferred && PyUnicode_Compare(f->attrs[i].name, key) == 0) place = -2;
      if (place == -2) continue;
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", f->op_text,
                   key);
      return -1;
    }
    if (values[place]) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", f->op_text, key);
      return -1;
    }
    values[place] = args[count + k];
  }
  return 0;
}

// The first tensor input determines the graph, unless the current graph captures tensors.
static int choose_graph(rnpy_call_t* call) {
  PyObject* current = rnpy_current();
  if (!current) return -1;
  if (PyObject_TypeCheck(current, rnpy.graph_type)) {
    call->graph = (rnpy_graph_t*)current;
    if (call->graph->capture != Py_None) return 0;
  }
  const rnpy_function_t* f = call->function;
  for (int i = 0; i < f->input_count; ++i) {
    PyObject* value = call->values[i];
    if (value && (PyList_Check(value) || PyTuple_Check(value)) &&
        PySequence_Fast_GET_SIZE(value) > 0)
      value = PySequence_Fast_GET_ITEM(value, 0);
    if (value && rnpy_is_tensor(value)) {
      call->graph = ((rnpy_tensor_t*)value)->op->graph;
      return 0;
    }
  }
  if (call->graph) return 0;
  PyErr_SetString(PyExc_RuntimeError, "There is no current graph");
  return -1;
}

static bool is_name(const char* text) {
  for (const char* at = text; *at; ++at) {
    bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                    (*at >= '0' && *at <= '9') || *at == '.';
    if (!is_plain && (at == text || !strchr("_\\/>-", *at))) return at == text && *at == '_';
  }
  return *text != 0;
}

static int choose_name(rnpy_call_t* call) {
  rnpy_function_t* f = call->function;
  PyObject* name = call->values[f->param_count - 1];
  if (!name || name == Py_None) {
    call->name = rnpy_unique_name(call->graph, f->op, true);
    return call->name ? 0 : -1;
  }
  Py_ssize_t size;
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
  if (!text || !is_name(text)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_ValueError, "%R is not a valid name of an operation", name);
    return -1;
  }
  if (size && text[size - 1] == '/') {
    call->name = PyUnicode_FromStringAndSize(text, size - 1);
  } else {
    call->name = rnpy_unique_name(call->graph, name, true);
  }
  return call->name ? 0 : -1;
}

int rnpy_is_given(const rnpy_function_t* f, const rnpy_attr_t* attr, PyObject* value) {
  bool may_be_none = strcmp(attr->kind, "shape") == 0;
  if (value && (value != Py_None || (may_be_none && !attr->has_default))) return 1;
  if (attr->has_default) return 0;
  PyErr_Format(PyExc_TypeError, "%s() missing argument '%U'", f->op_text, attr->name);
  return -1;
}

static int set_attrs(rnpy_call_t* call, TF_OperationDescription* desc) {
  const rnpy_function_t* f = call->function;
  for (int i = f->input_count; i < f->param_count - 1; ++i) {
    const rnpy_attr_t* attr = &f->attrs[f->param_attr[i]];
    PyObject* value = call->values[i];
    int is_given = rnpy_is_given(f, attr, value);
    if (is_given < 0) return -1;
    if (!is_given) continue;
    if (rnpy_set_attr(desc, attr->text, attr->kind, value) < 0) return -1;
  }
  return 0;
}

static PyObject* add_node(rnpy_call_t* call) {
  rnpy_function_t* f = call->function;
  TF_OperationDescription* desc =
      TF_NewOperation(call->graph->graph, f->op_text, PyUnicode_AsUTF8(call->name));
  if (!desc) return PyErr_NoMemory();
  int at = 0;
  for (int i = 0; i < f->input_count; ++i) {
    if (call->lengths[i] < 0) {
      TF_AddInput(desc, call->edges[at++]);
    } else {
      TF_AddInputList(desc, call->edges + at, call->lengths[i]);
      // An empty list of mixed types implies no types.
      if (call->lengths[i] == 0 && f->inputs[i].list_attr >= 0)
        TF_SetAttrTypeList(desc, f->attrs[f->inputs[i].list_attr].text, NULL, 0);
      at += call->lengths[i];
    }
  }
  if (set_attrs(call, desc) < 0 ||
      rnpy_apply_scopes(call->graph, desc, f->op, call->edges, call->edge_count) < 0) {
    rnpy_abandon(desc);
    return NULL;
  }
  return rnpy_finish(call->graph, desc);
}

// Nodes that take references are colocated with the variables, regardless of scopes.
static PyObject* add_node_with(rnpy_call_t* call, PyObject* variables) {
  PyObject* graph = (PyObject*)call->graph;
  PyObject* before = PyObject_CallMethod(graph, "_enter_references", "(O)", variables);
  if (!before) return NULL;
  PyObject* op = add_node(call);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done = PyObject_CallMethod(graph, "_exit_references", "(O)", before);
  Py_DECREF(before);
  if (!done) Py_CLEAR(op);
  Py_XDECREF(done);
  if (type) PyErr_Restore(type, value, traceback);
  return op;
}

static PyObject* build(rnpy_call_t* call) {
  rnpy_function_t* f = call->function;
  if (call->graph->is_finalized) {
    PyErr_SetString(PyExc_RuntimeError, "Graph is finalized and cannot be modified.");
    return NULL;
  }
  PyObject* variables = NULL;
  for (int i = 0, at = 0; i < f->input_count; ++i) {
    int count = call->lengths[i] < 0 ? 1 : call->lengths[i];
    for (int k = 0; f->inputs[i].is_ref && k < count; ++k) {
      if (!variables && !(variables = PyList_New(0))) return NULL;
      PyObject* op = rnpy_operation(call->graph, call->edges[at + k].oper);
      int outcome = op ? PyList_Append(variables, op) : -1;
      Py_XDECREF(op);
      if (outcome < 0) {
        Py_DECREF(variables);
        return NULL;
      }
    }
    at += count;
  }
  if (!variables) return add_node(call);
  PyObject* op = add_node_with(call, variables);
  Py_DECREF(variables);
  return op;
}

PyObject* rnpy_result_type(rnpy_function_t* f) {
  if (f->result) return f->result;
  PyObject* names = PyList_New(0);
  for (int i = 0; names && i < f->output_count; ++i)
    if (PyList_Append(names, f->outputs[i].name) < 0) Py_CLEAR(names);
  PyObject* collections = names ? PyImport_ImportModule("collections") : NULL;
  // "Space>Op" is no identifier.
  PyObject* name = collections ? PyObject_CallMethod(f->op, "replace", "ss", ">", "_") : NULL;
  if (name) f->result = PyObject_CallMethod(collections, "namedtuple", "OO", name, names);
  Py_XDECREF(name);
  Py_XDECREF(collections);
  Py_XDECREF(names);
  return f->result;
}

// Output argument |i|, which begins at output |*inout_at|: a tensor or a list of them.
static PyObject* result_at(rnpy_function_t* f, PyObject* op, int i, int* inout_at) {
  const rnpy_arg_t* arg = &f->outputs[i];
  if (arg->number_attr < 0 && arg->list_attr < 0) return rnpy_output(op, (*inout_at)++);
  int count = f->output_count == 1
                  ? TF_OperationNumOutputs(((rnpy_operation_t*)op)->oper)
                  : TF_OperationOutputListLength(((rnpy_operation_t*)op)->oper,
                                                 PyUnicode_AsUTF8(arg->name), rnpy_status());
  PyObject* list = PyList_New(count < 0 ? 0 : count);
  for (int k = 0; list && k < count; ++k) {
    PyObject* tensor = rnpy_output(op, (*inout_at)++);
    if (!tensor) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, k, tensor);
    }
  }
  return list;
}

static PyObject* results(rnpy_function_t* f, PyObject* op) {
  if (f->output_count == 0) {
    Py_INCREF(op);
    return op;
  }
  int at = 0;
  if (TF_OperationNumOutputs(((rnpy_operation_t*)op)->oper) == 0) {  // an empty list
    Py_INCREF(op);
    return op;
  }
  if (f->output_count == 1) return result_at(f, op, 0, &at);
  PyObject* type = rnpy_result_type(f);
  PyObject* values = type ? PyList_New(f->output_count) : NULL;
  for (int i = 0; values && i < f->output_count; ++i) {
    PyObject* value = result_at(f, op, i, &at);
    if (!value) {
      Py_CLEAR(values);
    } else {
      PyList_SET_ITEM(values, i, value);
    }
  }
  PyObject* answer = values ? PyObject_CallMethod(type, "_make", "O", values) : NULL;
  Py_XDECREF(values);
  return answer;
}

static void begin(rnpy_call_t* call, rnpy_function_t* f) {
  memset(call, 0, sizeof *call);
  call->function = f;
  call->edges = call->few;
  call->edge_capacity = RNPY_FEW_EDGES;
}

static void end(rnpy_call_t* call) {
  Py_XDECREF(call->name);
  Py_XDECREF(call->made);
  if (call->edges != call->few) PyMem_Free(call->edges);
}

// Replaces an error by one that says which argument is wrong, if Python finds it.
static void explain(const rnpy_call_t* call) {
  if (!rnpy.explain ||
      !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
    return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const rnpy_function_t* f = call->function;
  PyObject* given = PyDict_New();
  for (int i = 0; given && i < f->param_count - 1; ++i)
    if (call->values[i] && PyDict_SetItem(given, f->params[i], call->values[i]) < 0)
      Py_CLEAR(given);
  PyObject* answer =
      given ? PyObject_CallFunction(rnpy.explain, "OOO", (PyObject*)f, given, value) : NULL;
  Py_XDECREF(given);
  if (!answer) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return;
  }
  Py_DECREF(answer);
  PyErr_Restore(type, value, traceback);
}

// Whether Python is told of this thread's operations (eager/op_callbacks.py).
static _Thread_local bool intercepts;

// intercept_ops(bool): returns the previous value.
static PyObject* intercept_ops(PyObject* self, PyObject* value) {
  (void)self;
  int wanted = PyObject_IsTrue(value);
  if (wanted < 0) return NULL;
  PyObject* before = PyBool_FromLong(intercepts);
  intercepts = wanted != 0;
  return before;
}

static PyObject* intercepts_ops(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return PyBool_FromLong(intercepts);
}

PyMethodDef rnpy_intercept_methods[] = {
    {"intercept_ops", intercept_ops, METH_O, "Whether Python is told of this thread's operations."},
    {"intercepts_ops", intercepts_ops, METH_NOARGS, "Tells whether Python is told of them."},
    {NULL, NULL, 0, NULL},
};

static PyObject* intercepted(PyObject* f, PyObject* const* args, Py_ssize_t count,
                             PyObject* names) {
  PyObject* list = PyTuple_New(count);
  PyObject* dict = list ? PyDict_New() : NULL;
  for (Py_ssize_t i = 0; dict && i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SET_ITEM(list, i, args[i]);
  }
  for (Py_ssize_t i = 0; dict && names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), args[count + i]) < 0) Py_CLEAR(dict);
  PyObject* answer =
      dict ? PyObject_CallFunctionObjArgs(rnpy.intercept, f, list, dict, NULL) : NULL;
  Py_XDECREF(dict);
  Py_XDECREF(list);
  return answer;
}

PyObject* rnpy_graph_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  rnpy_function_t* f = (rnpy_function_t*)self;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (rnpy.intercept && intercepts) return intercepted(self, args, count, names);
  PyObject* current = rnpy_current();
  if (!current) return NULL;
  if (current == Py_None) return rnpy_eager_call(f, args, count, names);
  rnpy_call_t call;
  begin(&call, f);
  PyObject* answer = NULL;
  if (rnpy_bind(f, args, count, names, call.values) == 0 && choose_graph(&call) == 0) {
    Py_INCREF(call.graph);
    if (choose_name(&call) == 0) {
      PyObject* op = rnpy_add_inputs(&call) == 0 ? build(&call) : NULL;
      if (op) answer = results(f, op);
      if (!op) explain(&call);
      Py_XDECREF(op);
    }
    Py_DECREF(call.graph);
  }
  end(&call);
  return answer;
}

// Distributes flat inputs over the arguments: lists get as many as their attribute says, or the
// rest.
static int spread(rnpy_function_t* f, PyObject* flat, PyObject* attrs, PyObject** out) {
  Py_ssize_t left = PySequence_Fast_GET_SIZE(flat);
  int lists = 0;
  for (int i = 0; i < f->input_count; ++i)
    lists += f->inputs[i].number_attr >= 0 || f->inputs[i].list_attr >= 0;
  Py_ssize_t singles = f->input_count - lists, at = 0;
  for (int i = 0; i < f->input_count; ++i) {
    const rnpy_arg_t* arg = &f->inputs[i];
    if (arg->number_attr < 0 && arg->list_attr < 0) {
      if (at >= left) {
        PyErr_Format(PyExc_ValueError, "'%s' Op has more inputs than were given", f->op_text);
        return -1;
      }
      out[i] = PySequence_Fast_GET_ITEM(flat, at++);
      Py_INCREF(out[i]);
      continue;
    }
    const rnpy_attr_t* attr = &f->attrs[arg->number_attr >= 0 ? arg->number_attr : arg->list_attr];
    PyObject* given = attrs ? PyDict_GetItemWithError(attrs, attr->name) : NULL;
    Py_ssize_t count = left - singles;
    if (given && arg->number_attr >= 0 && PyLong_Check(given)) count = PyLong_AsSsize_t(given);
    if (given && arg->list_attr >= 0 && PySequence_Check(given)) count = PySequence_Size(given);
    if (PyErr_Occurred()) return -1;
    if (count < 0 || at + count > left || (!given && lists > 1)) {
      PyErr_Format(PyExc_ValueError, "The number of inputs of '%s' Op for '%U' is unknown",
                   f->op_text, arg->name);
      return -1;
    }
    out[i] = PySequence_GetSlice(flat, at, at + count);
    if (!out[i]) return -1;
    at += count;
  }
  if (at != left) {
    PyErr_Format(PyExc_ValueError, "'%s' Op takes %zd inputs, but got %zd", f->op_text, at, left);
    return -1;
  }
  return 0;
}

PyObject* rnpy_graph_create(rnpy_function_t* f, PyObject* args) {
  PyObject *graph, *inputs, *attrs, *name;
  if (!PyArg_ParseTuple(args, "O!OO!O", rnpy.graph_type, &graph, &inputs, &PyDict_Type, &attrs,
                        &name))
    return NULL;
  PyObject* flat = PySequence_Fast(inputs, "inputs are a list of Tensors");
  if (!flat) return NULL;
  rnpy_call_t call;
  begin(&call, f);
  call.graph = (rnpy_graph_t*)graph;
  PyObject* spreaded[RNPY_MOST_PARAMS] = {0};
  PyObject* op = NULL;
  call.values[f->param_count - 1] = name;
  if (spread(f, flat, attrs, spreaded) == 0) {
    for (int i = 0; i < f->input_count; ++i) call.values[i] = spreaded[i];
    for (int i = f->input_count; i < f->param_count - 1; ++i)
      call.values[i] = PyDict_GetItemWithError(attrs, f->params[i]);
    if (!PyErr_Occurred() && choose_name(&call) == 0 && rnpy_add_inputs(&call) == 0)
      op = add_node(&call);  // only the functions of ops colocate nodes with references
  }
  for (int i = 0; i < f->input_count; ++i) Py_XDECREF(spreaded[i]);
  Py_DECREF(flat);
  end(&call);
  return op;
}

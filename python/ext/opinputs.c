// Inputs of a call: converts them to tensors of its graph, and infers the types of attributes.
#include "opcall.h"

static int add_edge(rnpy_call_t* call, TF_Output edge) {
  if (call->edge_count == call->edge_capacity) {
    int capacity = call->edge_capacity * 4;
    TF_Output* edges = PyMem_Malloc((size_t)capacity * sizeof *edges);
    if (!edges) {
      PyErr_NoMemory();
      return -1;
    }
    memcpy(edges, call->edges, (size_t)call->edge_count * sizeof *edges);
    if (call->edges != call->few) PyMem_Free(call->edges);
    call->edges = edges;
    call->edge_capacity = capacity;
  }
  call->edges[call->edge_count++] = edge;
  return 0;
}

static int base_type(int dtype) { return dtype >= RNPY_REF ? dtype - RNPY_REF : dtype; }

static PyObject* type_name(int dtype) {
  PyObject* object = rnpy_dtype(dtype);
  return object ? PyObject_GetAttrString(object, "name") : NULL;
}

static int type_mismatch(const rnpy_call_t* call, const rnpy_arg_t* arg, int found, int wanted) {
  PyObject* a = type_name(found);
  PyObject* b = a ? type_name(wanted) : NULL;
  const rnpy_arg_t* other = NULL;
  for (int i = 0; arg->type_attr >= 0 && i < call->function->input_count; ++i) {
    const rnpy_arg_t* candidate = &call->function->inputs[i];
    if (candidate != arg && candidate->type_attr == arg->type_attr) {
      other = candidate;
      break;
    }
  }
  if (b && other) {
    PyErr_Format(PyExc_TypeError,
                 "Input '%U' of '%s' Op has type %U that does not match type %U of argument '%U'.",
                 arg->name, call->function->op_text, a, b, other->name);
  } else if (b) {
    PyErr_Format(PyExc_TypeError,
                 "Input '%U' of '%s' Op has type %U that does not match expected type of %U.",
                 arg->name, call->function->op_text, a, b);
  }
  Py_XDECREF(a);
  Py_XDECREF(b);
  return -1;
}

// Constants made of values are named after the node and the argument.
static int enter_scope(rnpy_call_t* call) {
  if (call->scope) return 0;
  PyObject** scopes = rnpy_scopes(call->graph);
  if (!scopes) return -1;
  call->scope = scopes[RNPY_NAME_STACK];
  scopes[RNPY_NAME_STACK] = call->name;
  Py_INCREF(call->name);
  PyObject* setter = (PyObject*)call->graph;
  if (rnpy_current() != setter) {
    PyObject* module = PyImport_ImportModule("runnel._core");
    call->before = module ? PyObject_CallMethod(module, "set_current", "O", setter) : NULL;
    Py_XDECREF(module);
    if (!call->before) return -1;
  }
  return 0;
}

static void leave_scope(rnpy_call_t* call) {
  if (!call->scope && !call->before) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (call->scope) {
    PyObject** scopes = rnpy_scopes(call->graph);
    if (scopes) {
      Py_SETREF(scopes[RNPY_NAME_STACK], call->scope);
      call->scope = NULL;
    }
    Py_CLEAR(call->scope);
  }
  if (call->before) {
    PyObject* module = PyImport_ImportModule("runnel._core");
    PyObject* answer =
        module ? PyObject_CallMethod(module, "set_current", "O", call->before) : NULL;
    Py_XDECREF(answer);
    Py_XDECREF(module);
    Py_CLEAR(call->before);
  }
  if (type) PyErr_Restore(type, value, traceback);
}

static PyObject* call_convert(const rnpy_arg_t* arg, PyObject* value, PyObject* dtype,
                              PyObject* preferred, PyObject* name) {
  if (!dtype || !preferred) return NULL;
  PyObject* args[] = {value, dtype, preferred, name, arg->is_ref ? Py_True : Py_False};
  return PyObject_Vectorcall(rnpy.convert, args, 5, NULL);
}

// Converts |value| (owned) to a tensor called |name|. |wanted| 0: any type, or the attribute's
// default if the value's own is not allowed.
static PyObject* convert(rnpy_call_t* call, const rnpy_arg_t* arg, PyObject* value, int wanted,
                         PyObject* name) {
  if (enter_scope(call) < 0) return NULL;
  const rnpy_attr_t* attr = arg->type_attr >= 0 ? &call->function->attrs[arg->type_attr] : NULL;
  PyObject* tensor = NULL;
  if (wanted) {
    tensor = call_convert(arg, value, rnpy_dtype(wanted), Py_None, name);
  } else if (!attr || !attr->default_type) {
    tensor = call_convert(arg, value, Py_None, Py_None, name);
  } else {
    PyObject* preferred = rnpy_dtype(attr->default_type);
    if (attr->allowed) {
      tensor = call_convert(arg, value, Py_None, Py_None, name);
      bool is_allowed = tensor && rnpy_is_tensor(tensor) &&
                        (attr->allowed >> (base_type(((rnpy_tensor_t*)tensor)->dtype) & 63) & 1);
      if (!is_allowed) {
        PyErr_Clear();
        Py_CLEAR(tensor);
      }
    }
    if (!tensor) tensor = call_convert(arg, value, Py_None, preferred, name);
  }
  if (tensor && !rnpy_is_tensor(tensor)) {
    PyErr_Format(PyExc_TypeError, "Input '%U' of '%s' Op cannot be converted to a Tensor: %R",
                 arg->name, call->function->op_text, value);
    Py_CLEAR(tensor);
  }
  return tensor;
}

// Replaces a tensor of another graph, if this graph captures tensors.
static PyObject* take_in(rnpy_call_t* call, PyObject* tensor) {
  if (call->graph->capture != Py_None) return PyObject_CallOneArg(call->graph->capture, tensor);
  PyErr_Format(PyExc_ValueError,
               "Tensor %S of op '%s' must be from the same graph as the others: it is of %R, they "
               "are of %R.",
               tensor, call->function->op_text, ((rnpy_tensor_t*)tensor)->op->graph, call->graph);
  return NULL;
}

// Adds one input tensor, element |number| of a list (-1 if not in a list). |wanted| 0: any type;
// receives its type.
static int add_tensor(rnpy_call_t* call, const rnpy_arg_t* arg, PyObject* value, int number,
                      int* inout_wanted) {
  PyObject* tensor = value;
  Py_INCREF(tensor);
  if (!rnpy_is_tensor(value)) {
    Py_DECREF(tensor);
    PyObject* name = number < 0 ? arg->name : PyUnicode_FromFormat("%U_%d", arg->name, number);
    tensor = name ? convert(call, arg, value, *inout_wanted, name) : NULL;
    if (number >= 0) Py_XDECREF(name);
    if (!tensor) return -1;
  }
  if (((rnpy_tensor_t*)tensor)->op->graph != call->graph) {
    PyObject* inside = take_in(call, tensor);
    Py_DECREF(tensor);
    if (!inside) return -1;
    tensor = inside;
  }
  if (tensor != value) {
    if (!call->made) call->made = PyList_New(0);
    if (!call->made || PyList_Append(call->made, tensor) < 0) {
      Py_DECREF(tensor);
      return -1;
    }
  }
  int found = ((rnpy_tensor_t*)tensor)->dtype;
  TF_Output edge = rnpy_tf_output(tensor);
  Py_DECREF(tensor);
  if (arg->is_ref && found < RNPY_REF) {
    PyErr_Format(PyExc_TypeError,
                 "'%s' Op requires that input '%U' be a mutable tensor "
                 "(e.g.: a tf.Variable)",
                 call->function->op_text, arg->name);
    return -1;
  }
  if (*inout_wanted && base_type(found) != *inout_wanted)
    return type_mismatch(call, arg, base_type(found), *inout_wanted);
  *inout_wanted = base_type(found);
  return add_edge(call, edge);
}

// Returns the type that a Tensor input from |first| on implies for attribute |attr|; 0 if none.
static int type_ahead(const rnpy_call_t* call, int attr, int first) {
  const rnpy_function_t* f = call->function;
  for (int i = first; i < f->input_count; ++i) {
    if (f->inputs[i].type_attr != attr) continue;
    PyObject* value = call->values[i];
    if (!value) continue;
    if (rnpy_is_tensor(value)) return base_type(((rnpy_tensor_t*)value)->dtype);
    if (f->inputs[i].number_attr < 0 || !(PyList_Check(value) || PyTuple_Check(value))) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); ++k) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, k);
      if (rnpy_is_tensor(item)) return base_type(((rnpy_tensor_t*)item)->dtype);
    }
  }
  return 0;
}

static int add_list(rnpy_call_t* call, int i, const rnpy_arg_t* arg, PyObject* value) {
  const rnpy_function_t* f = call->function;
  PyObject* list = NULL;
  if (!rnpy_is_tensor(value) && !PyUnicode_Check(value)) list = PySequence_Fast(value, "");
  if (!list) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Expected list for '%U' argument to '%s' Op, not %R.", arg->name,
                 f->op_text, value);
    return -1;
  }
  int count = (int)PySequence_Fast_GET_SIZE(list);
  int outcome = 0;
  for (int k = 0; outcome == 0 && k < count; ++k) {
    int own_type = 0;
    int* wanted = arg->type_attr >= 0 ? &call->types[arg->type_attr] : &own_type;
    if (arg->type_attr < 0) own_type = arg->dtype;
    outcome = add_tensor(call, arg, PySequence_Fast_GET_ITEM(list, k), k, wanted);
  }
  Py_DECREF(list);
  call->lengths[i] = count;
  return outcome;
}

static int add_inputs(rnpy_call_t* call) {
  const rnpy_function_t* f = call->function;
  for (int i = 0; i < f->input_count; ++i) {
    const rnpy_arg_t* arg = &f->inputs[i];
    PyObject* value = call->values[i];
    if (!value || value == Py_None) {
      if (value) {
        PyErr_Format(PyExc_ValueError, "Input '%U' of '%s' Op must not be None", arg->name,
                     f->op_text);
      } else {
        PyErr_Format(PyExc_TypeError, "%s() missing argument '%U'", f->op_text, arg->name);
      }
      return -1;
    }
    call->lengths[i] = -1;
    if (arg->type_attr >= 0 && !call->types[arg->type_attr])
      call->types[arg->type_attr] = type_ahead(call, arg->type_attr, i);
    if (arg->number_attr >= 0 || arg->list_attr >= 0) {
      if (add_list(call, i, arg, value) < 0) return -1;
      continue;
    }
    int fixed = arg->dtype;
    int* wanted = arg->type_attr >= 0 ? &call->types[arg->type_attr] : &fixed;
    if (add_tensor(call, arg, value, -1, wanted) < 0) return -1;
  }
  return 0;
}

int rnpy_add_inputs(rnpy_call_t* call) {
  int outcome = add_inputs(call);
  leave_scope(call);
  return outcome;
}

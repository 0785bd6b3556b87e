// Eager execution: tensors that hold values, and ops that run when they are called.
//
// One context is in use, created when eager execution starts; the library caches its kernels. The
// interpreter lock is released while an op runs.
#include "opfunction.h"
#include "runnel/session.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#define FEW 16

PyTypeObject* rnpy_eager_type;
static PyObject* eager_class;  // the Python subclass
static TFE_Context* context;
static PyObject* starter;  // a Python function that creates the context when it is first needed
static _Thread_local PyObject* device;  // str: the device of ops, or NULL

TFE_Context* rnpy_context(void) {
  if (!context && starter) {
    PyObject* answer = PyObject_CallNoArgs(starter);
    if (!answer) return NULL;
    Py_DECREF(answer);
  }
  if (!context) PyErr_SetString(PyExc_RuntimeError, "Eager execution is not enabled");
  return context;
}

// --- Tensors

PyObject* rnpy_eager_tensor(TFE_TensorHandle* handle) {
  PyTypeObject* type = (PyTypeObject*)eager_class;
  rnpy_eager_t* tensor = (rnpy_eager_t*)type->tp_alloc(type, 0);
  if (!tensor) {
    TFE_DeleteTensorHandle(handle);
    return NULL;
  }
  tensor->handle = handle;
  tensor->base.dtype = (int)TFE_TensorHandleDataType(handle);
  return (PyObject*)tensor;
}

static void tensor_dealloc(rnpy_eager_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  TFE_DeleteTensorHandle(self->handle);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

static int tensor_traverse(rnpy_eager_t* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return 0;
}

static bool is_gone(const rnpy_eager_t* self) {
  if (self->handle) return false;
  PyErr_SetString(PyExc_ValueError, "The eager tensor has no value");
  return true;
}

static PyObject* tensor_dims(rnpy_eager_t* self, PyObject* unused) {
  (void)unused;
  if (is_gone(self)) return NULL;
  TF_Status* status = rnpy_status();
  int rank = TFE_TensorHandleNumDims(self->handle, status);
  if (rnpy_failed(status, NULL)) return NULL;
  PyObject* tuple = PyTuple_New(rank < 0 ? 0 : rank);
  for (int i = 0; tuple && i < rank; ++i) {
    PyObject* dim = PyLong_FromLongLong(TFE_TensorHandleDim(self->handle, i, status));
    if (!dim || rnpy_failed(status, NULL)) {
      Py_XDECREF(dim);
      Py_CLEAR(tuple);
    } else {
      PyTuple_SET_ITEM(tuple, i, dim);
    }
  }
  return tuple;
}

// Returns the value, which is the tensor's own memory and must not be changed.
static PyObject* tensor_value(rnpy_eager_t* self, PyObject* unused) {
  (void)unused;
  if (is_gone(self)) return NULL;
  TF_Tensor* value;
  TF_Status* status = rnpy_status();
  Py_BEGIN_ALLOW_THREADS;
  value = TFE_TensorHandleResolve(self->handle, status);
  Py_END_ALLOW_THREADS;
  return rnpy_failed(status, NULL) ? NULL : rnpy_from_tensor(value);
}

// The value's memory, which must not change.
static int tensor_buffer(rnpy_eager_t* self, Py_buffer* view, int flags) {
  view->obj = NULL;
  if (self->base.dtype == TF_RESOURCE || self->base.dtype == TF_VARIANT) {
    PyErr_Format(PyExc_BufferError, "Cannot convert a Tensor of dtype %s to a NumPy array.",
                 self->base.dtype == TF_RESOURCE ? "resource" : "variant");
    return -1;
  }
  if (self->base.dtype == TF_STRING) {  // NumPy then asks for the array of objects
    PyErr_SetString(PyExc_BufferError, "A Tensor of strings has no memory to view");
    return -1;
  }
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "A Tensor cannot be changed");
    return -1;
  }
  PyObject* value = tensor_value(self, NULL);
  if (!value) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_Format(PyExc_BufferError, "%S", error ? error : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return -1;
  }
  int result = PyObject_GetBuffer(value, view, flags);
  if (result == 0) view->readonly = 1;
  Py_DECREF(value);
  return result;
}

static PyObject* tensor_device(rnpy_eager_t* self, void* is_backing) {
  if (is_gone(self)) return NULL;
  TF_Status* status = rnpy_status();
  const char* name = is_backing ? TFE_TensorHandleBackingDeviceName(self->handle, status)
                                : TFE_TensorHandleDeviceName(self->handle, status);
  return rnpy_failed(status, NULL) ? NULL : PyUnicode_FromString(name ? name : "");
}

static PyObject* tensor_copy_to(rnpy_eager_t* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text || is_gone(self) || !rnpy_context()) return NULL;
  TFE_TensorHandle* copy;
  TF_Status* status = rnpy_status();
  Py_BEGIN_ALLOW_THREADS;
  copy = TFE_TensorHandleCopyToDevice(self->handle, context, text, status);
  Py_END_ALLOW_THREADS;
  return rnpy_failed(status, NULL) ? NULL : rnpy_eager_tensor(copy);
}

static PyMethodDef tensor_methods[] = {
    {"_dims", (PyCFunction)tensor_dims, METH_NOARGS, "Returns the shape, a tuple."},
    {"_value", (PyCFunction)tensor_value, METH_NOARGS,
     "Returns the value as an array that must not change."},
    {"_copy_to", (PyCFunction)tensor_copy_to, METH_O, "Returns a copy on a device."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_getset[] = {
    {"device", (getter)tensor_device, NULL, "The device of the op that computed it.", NULL},
    {"backing_device", (getter)tensor_device, NULL, "The device whose memory holds it.", ""},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc},  {Py_tp_traverse, tensor_traverse},
    {Py_tp_methods, tensor_methods},  {Py_tp_getset, tensor_getset},
    {Py_bf_getbuffer, tensor_buffer}, {0, NULL},
};

static PyType_Spec tensor_spec = {
    .name = "runnel._core.EagerTensor",
    .basicsize = sizeof(rnpy_eager_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = tensor_slots,
};

// Whether the device of ops is another one than the CPU where values arrive.
static bool is_elsewhere(void) {
  const char* name = device ? PyUnicode_AsUTF8(device) : NULL;
  return name && strcmp(name, "/device:CPU:0") != 0;
}

// Takes |handle|. Returns it on the device of ops, which placement may change as for any op.
static TFE_TensorHandle* on_device(TFE_TensorHandle* handle) {
  TF_Status* status = rnpy_status();
  TFE_TensorHandle* placed = NULL;
  int count = 1;
  TFE_Op* op = rnpy_context() ? TFE_NewOp(context, "Identity", status) : NULL;
  if (op && !rnpy_failed(status, NULL)) {
    TFE_OpSetDevice(op, PyUnicode_AsUTF8(device), status);
    if (TF_GetCode(status) == TF_OK) TFE_OpAddInput(op, handle, status);
    if (TF_GetCode(status) == TF_OK) TFE_Execute(op, &placed, &count, status);
    if (rnpy_failed(status, NULL)) placed = NULL;
  }
  if (op) TFE_DeleteOp(op);
  TFE_DeleteTensorHandle(handle);
  return placed;
}

static PyObject* from_value(PyObject* value, int dtype) {
  TF_Tensor* tensor = rnpy_to_tensor(value, dtype, false);
  if (!tensor) return NULL;
  TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, rnpy_status());
  TF_DeleteTensor(tensor);
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  if (is_elsewhere() && !(handle = on_device(handle))) return NULL;
  return rnpy_eager_tensor(handle);
}

// --- Inputs

typedef struct call_t {
  rnpy_function_t* function;
  TFE_Op* op;
  PyObject** values;
  int types[RNPY_MOST_ATTRS];  // by attribute: the type the inputs imply; 0 if none yet
} call_t;

// Python numbers and strings do not determine a type.
static bool is_plain(PyObject* value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) ||
         PyUnicode_CheckExact(value) || PyBytes_CheckExact(value);
}

static PyObject* call_convert(PyObject* value, int dtype, int preferred) {
  PyObject* wanted = dtype ? rnpy_dtype(dtype) : Py_None;
  PyObject* hint = preferred ? rnpy_dtype(preferred) : Py_None;
  if (!wanted || !hint) return NULL;
  PyObject* args[] = {value, wanted, hint, Py_None, Py_False};
  return PyObject_Vectorcall(rnpy.convert, args, 5, NULL);
}

// Converts |value| to type |wanted|, or, if that is 0, to its own type, or to the attribute's
// default if its own is not allowed.
static PyObject* convert(const call_t* call, const rnpy_arg_t* arg, PyObject* value, int wanted) {
  if (wanted && is_plain(value)) return from_value(value, wanted);
  const rnpy_attr_t* attr = arg->type_attr >= 0 ? &call->function->attrs[arg->type_attr] : NULL;
  int preferred = attr ? attr->default_type : 0;
  PyObject* tensor = NULL;
  if (!wanted && preferred && attr->allowed) {
    tensor = call_convert(value, 0, 0);
    if (!tensor || !rnpy_is_eager(tensor) ||
        !(attr->allowed >> (((rnpy_tensor_t*)tensor)->dtype & 63) & 1)) {
      PyErr_Clear();
      Py_CLEAR(tensor);
    }
  }
  if (!tensor) tensor = call_convert(value, wanted, wanted ? 0 : preferred);
  if (tensor && !rnpy_is_eager(tensor)) {
    PyErr_Format(PyExc_TypeError,
                 "Input '%U' of '%s' Op: %R has no value, and cannot be used in eager execution",
                 arg->name, call->function->op_text, value);
    Py_CLEAR(tensor);
  }
  return tensor;
}

// Adds one input; |made| keeps it alive until the op has it.
static PyObject* input_of(call_t* call, const rnpy_arg_t* arg, PyObject* value, int* wanted) {
  PyObject* tensor = value;
  if (rnpy_is_eager(value)) {
    Py_INCREF(tensor);
  } else {
    tensor = convert(call, arg, value, *wanted);
  }
  if (tensor && !*wanted) *wanted = ((rnpy_tensor_t*)tensor)->dtype;
  return tensor;
}

static int type_in(PyObject* value, bool is_list) {
  if (!value) return 0;
  if (rnpy_is_eager(value)) return ((rnpy_tensor_t*)value)->dtype;
  if (!is_list || !(PyList_Check(value) || PyTuple_Check(value))) return 0;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, k);
    if (rnpy_is_eager(item)) return ((rnpy_tensor_t*)item)->dtype;
  }
  return 0;
}

// The type that an eager tensor among the inputs from |first| on gives to attribute |attr|.
static int type_ahead(const call_t* call, int attr, int first) {
  const rnpy_function_t* f = call->function;
  int found = 0;
  for (int i = first; !found && i < f->input_count; ++i)
    if (f->inputs[i].type_attr == attr)
      found = type_in(call->values[i], f->inputs[i].number_attr >= 0);
  return found;
}

static int add_list(call_t* call, const rnpy_arg_t* arg, PyObject* value) {
  PyObject* list = NULL;
  if (!rnpy_is_eager(value) && !PyUnicode_Check(value)) list = PySequence_Fast(value, "");
  if (!list) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Expected list for '%U' argument to '%s' Op, not %R.", arg->name,
                 call->function->op_text, value);
    return -1;
  }
  Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  TFE_TensorHandle* few[FEW];
  TFE_TensorHandle** handles = count <= FEW ? few : PyMem_Malloc((size_t)count * sizeof *handles);
  PyObject* made = handles ? PyList_New(0) : PyErr_NoMemory();
  int outcome = made ? 0 : -1;
  for (Py_ssize_t k = 0; outcome == 0 && k < count; ++k) {
    int own_type = arg->dtype;
    int* wanted = arg->type_attr >= 0 ? &call->types[arg->type_attr] : &own_type;
    PyObject* tensor = input_of(call, arg, PySequence_Fast_GET_ITEM(list, k), wanted);
    outcome = tensor ? PyList_Append(made, tensor) : -1;
    if (tensor) handles[k] = ((rnpy_eager_t*)tensor)->handle;
    Py_XDECREF(tensor);
  }
  if (outcome == 0) {
    if (count == 0 && arg->list_attr >= 0)  // implies no type
      TFE_OpSetAttrTypeList(call->op, call->function->attrs[arg->list_attr].text, NULL, 0);
    TFE_OpAddInputList(call->op, handles, (int)count, rnpy_status());
    outcome = rnpy_failed(rnpy_status(), NULL) ? -1 : 0;
  }
  Py_XDECREF(made);
  Py_DECREF(list);
  if (handles != few) PyMem_Free(handles);
  return outcome;
}

static int add_inputs(call_t* call) {
  const rnpy_function_t* f = call->function;
  for (int i = 0; i < f->input_count; ++i) {
    const rnpy_arg_t* arg = &f->inputs[i];
    PyObject* value = call->values[i];
    if (!value) {
      PyErr_Format(PyExc_TypeError, "%s() missing argument '%U'", f->op_text, arg->name);
      return -1;
    }
    if (arg->type_attr >= 0 && !call->types[arg->type_attr])
      call->types[arg->type_attr] = type_ahead(call, arg->type_attr, i);
    if (arg->number_attr >= 0 || arg->list_attr >= 0) {
      if (add_list(call, arg, value) < 0) return -1;
      continue;
    }
    int fixed = arg->dtype;
    PyObject* tensor =
        input_of(call, arg, value, arg->type_attr >= 0 ? &call->types[arg->type_attr] : &fixed);
    if (!tensor) return -1;
    TFE_OpAddInput(call->op, ((rnpy_eager_t*)tensor)->handle, rnpy_status());
    Py_DECREF(tensor);
    if (rnpy_failed(rnpy_status(), NULL)) return -1;
  }
  return 0;
}

static int set_attrs(call_t* call) {
  const rnpy_function_t* f = call->function;
  for (int i = f->input_count; i < f->param_count - 1; ++i) {
    const rnpy_attr_t* attr = &f->attrs[f->param_attr[i]];
    PyObject* value = call->values[i];
    int is_given = rnpy_is_given(f, attr, value);
    if (is_given < 0) return -1;
    if (!is_given) continue;
    if (rnpy_set_eager_attr(call->op, attr->text, attr->kind, value) < 0) return -1;
  }
  return 0;
}

// --- Running

// Adds the op to the error message.
static void raise_failure(const call_t* call) {
  TF_Status* status = rnpy_status();
  PyObject* name = call->values[call->function->param_count - 1];
  const char* given = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
  if (given && strchr(given, '/')) given = "";  // a name scope, which the user did not give
  PyObject* text =
      given ? PyUnicode_FromFormat("%s [Op:%s] name: %s", TF_Message(status),
                                   call->function->op_text, given)
            : PyUnicode_FromFormat("%s [Op:%s]", TF_Message(status), call->function->op_text);
  const char* message = text ? PyUnicode_AsUTF8(text) : NULL;
  if (message) {
    TF_Code code = TF_GetCode(status);
    TF_SetStatus(status, code, message);
    rnpy_failed(status, NULL);
  }
  Py_XDECREF(text);
}

static int output_lengths(const call_t* call, int* lengths) {
  int total = 0;
  for (int i = 0; i < call->function->output_count; ++i) {
    const rnpy_arg_t* arg = &call->function->outputs[i];
    lengths[i] = -1;
    if (arg->number_attr >= 0 || arg->list_attr >= 0) {
      lengths[i] = TFE_OpGetOutputLength(call->op, PyUnicode_AsUTF8(arg->name), rnpy_status());
      if (TF_GetCode(rnpy_status()) != TF_OK) return -1;
    }
    total += lengths[i] < 0 ? 1 : lengths[i];
  }
  return total;
}

// Returns the tensors of |handles|, taking ownership.
static PyObject* take_list(TFE_TensorHandle** handles, int count) {
  PyObject* list = PyList_New(count);
  for (int k = 0; k < count; ++k) {
    PyObject* tensor = list ? rnpy_eager_tensor(handles[k]) : NULL;
    if (!list) TFE_DeleteTensorHandle(handles[k]);
    if (tensor) {
      PyList_SET_ITEM(list, k, tensor);
    } else {
      Py_CLEAR(list);
    }
  }
  return list;
}

static PyObject* results(call_t* call, TFE_TensorHandle** handles, const int* lengths) {
  rnpy_function_t* f = call->function;
  if (f->output_count == 0) Py_RETURN_NONE;
  if (f->output_count == 1)
    return lengths[0] < 0 ? rnpy_eager_tensor(handles[0]) : take_list(handles, lengths[0]);
  PyObject* values = PyList_New(f->output_count);
  int at = 0;
  for (int i = 0; i < f->output_count; ++i) {
    PyObject* value =
        lengths[i] < 0 ? rnpy_eager_tensor(handles[at]) : take_list(handles + at, lengths[i]);
    at += lengths[i] < 0 ? 1 : lengths[i];
    if (values && value) {
      PyList_SET_ITEM(values, i, value);
    } else {
      Py_XDECREF(value);
      Py_CLEAR(values);
    }
  }
  PyObject* type = values ? rnpy_result_type(f) : NULL;
  PyObject* answer = type ? PyObject_CallMethod(type, "_make", "O", values) : NULL;
  Py_XDECREF(values);
  return answer;
}

static PyObject* run(call_t* call) {
  TF_Status* status = rnpy_status();
  int lengths[RNPY_MOST_PARAMS];
  int count = output_lengths(call, lengths);
  if (count < 0) {
    raise_failure(call);
    return NULL;
  }
  TFE_TensorHandle* few[FEW];
  TFE_TensorHandle** handles = count <= FEW ? few : PyMem_Malloc((size_t)count * sizeof *handles);
  if (!handles) return PyErr_NoMemory();
  int found = count;
  PyObject* owner;
  TFE_CancellationManager* stop = rnpy_cancellation(&owner);
  if (stop) TFE_OpSetCancellationManager(call->op, stop, status);
  Py_BEGIN_ALLOW_THREADS;
  TFE_Execute(call->op, handles, &found, status);
  Py_END_ALLOW_THREADS;
  Py_XDECREF(owner);
  PyObject* answer = NULL;
  if (TF_GetCode(status) != TF_OK) {
    raise_failure(call);
  } else {
    answer = results(call, handles, lengths);
  }
  if (handles != few) PyMem_Free(handles);
  return answer;
}

PyObject* rnpy_eager_call(rnpy_function_t* f, PyObject* const* args, Py_ssize_t count,
                          PyObject* names) {
  PyObject* values[RNPY_MOST_PARAMS] = {0};
  call_t call = {.function = f, .values = values};
  if (!rnpy_context() || rnpy_bind(f, args, count, names, values) < 0) return NULL;
  TF_Status* status = rnpy_status();
  call.op = TFE_NewOp(context, f->op_text, status);
  if (rnpy_failed(status, NULL)) return NULL;
  PyObject* answer = NULL;
  if (device) TFE_OpSetDevice(call.op, PyUnicode_AsUTF8(device), status);
  if (!rnpy_failed(status, NULL) && add_inputs(&call) == 0 && set_attrs(&call) == 0)
    answer = run(&call);
  TFE_DeleteOp(call.op);
  return answer;
}

// --- The module's functions

// eager_start(class of tensors, ConfigProto's bytes, policy of placement, asynchronous)
static PyObject* start(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* type;
  const char* config;
  Py_ssize_t size;
  int policy, is_async;
  if (!PyArg_ParseTuple(args, "Oy#ip", &type, &config, &size, &policy, &is_async)) return NULL;
  if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject*)type, rnpy_eager_type)) {
    PyErr_SetString(PyExc_TypeError, "Expected a subclass of EagerTensor");
    return NULL;
  }
  if (context) Py_RETURN_NONE;
  TF_Status* status = rnpy_status();
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TF_SetStatus(status, TF_OK, "");  // clear an earlier failure
  if (size) TFE_ContextOptionsSetConfig(options, config, (size_t)size, status);
  if (!rnpy_failed(status, NULL)) {
    TFE_ContextOptionsSetDevicePlacementPolicy(options, (TFE_ContextDevicePlacementPolicy)policy);
    TFE_ContextOptionsSetAsync(options, (unsigned char)is_async);
    context = TFE_NewContext(options, status);
    if (rnpy_failed(status, NULL)) context = NULL;
  }
  TFE_DeleteContextOptions(options);
  if (!context) return NULL;
  Py_INCREF(type);
  Py_XSETREF(eager_class, type);
  Py_RETURN_NONE;
}

// eager_start_later(function): the function calls eager_start when the context is first needed.
static PyObject* start_later(PyObject* self, PyObject* function) {
  (void)self;
  Py_INCREF(function);
  Py_XSETREF(starter, function);
  Py_RETURN_NONE;
}

// eager_swap(capsule or None): makes another context the one in use; with None, the next use
// creates a new one. Returns the previous one, or None. It stays until the process ends, because
// tensors of it may be in use.
static PyObject* swap(PyObject* self, PyObject* other) {
  (void)self;
  TFE_Context* wanted = NULL;
  if (other != Py_None && !(wanted = PyCapsule_GetPointer(other, "TFE_Context"))) return NULL;
  PyObject* before = Py_None;
  if (context) {
    before = PyCapsule_New(context, "TFE_Context", NULL);
    if (!before) return NULL;
  } else {
    Py_INCREF(before);
  }
  context = wanted;
  return before;
}

// eager_constant(value, dtype number)
static PyObject* make_constant(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* value;
  int dtype;
  if (!PyArg_ParseTuple(args, "Oi", &value, &dtype) || !rnpy_context()) return NULL;
  return from_value(value, dtype);
}

// eager_device(name or None): sets the device of this thread's ops. Returns the previous one.
static PyObject* set_device(PyObject* self, PyObject* name) {
  (void)self;
  if (name != Py_None && !PyUnicode_Check(name)) {
    PyErr_SetString(PyExc_TypeError, "A device must be a string");
    return NULL;
  }
  PyObject* before = device ? device : Py_None;
  if (!device) Py_INCREF(before);
  device = name == Py_None ? NULL : name;
  Py_XINCREF(device);
  return before;
}

static PyObject* add_function(PyObject* self, PyObject* definition) {
  (void)self;
  char* data;
  Py_ssize_t size;
  if (!rnpy_context() || PyBytes_AsStringAndSize(definition, &data, &size) < 0) return NULL;
  TFE_ContextAddFunctionDef(context, data, (size_t)size, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* clear_caches(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  if (context) TFE_ContextClearCaches(context);
  Py_RETURN_NONE;
}

// Waits for the ops of asynchronous execution. Raises the error of the first that failed.
static PyObject* wait_for_ops(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  if (!context) Py_RETURN_NONE;
  TF_Status* status = rnpy_status();
  Py_BEGIN_ALLOW_THREADS;
  TFE_ContextAsyncWait(context, status);
  Py_END_ALLOW_THREADS;
  if (rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* list_devices(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  if (!rnpy_context()) return NULL;
  TF_Status* status = rnpy_status();
  TF_DeviceList* devices = TFE_ContextListDevices(context, status);
  if (rnpy_failed(status, NULL)) return NULL;
  PyObject* list = PyList_New(0);
  for (int i = 0; list && i < TF_DeviceListCount(devices); ++i) {
    PyObject* row = Py_BuildValue("ss", TF_DeviceListName(devices, i, status),
                                  TF_DeviceListType(devices, i, status));
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  TF_DeleteDeviceList(devices);
  return list;
}

// eager_memory(device): (bytes in use, the most that were)
static PyObject* memory_use(PyObject* self, PyObject* name) {
  (void)self;
  int64_t now, peak;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text || !rnpy_context()) return NULL;
  TF_Status* status = rnpy_status();
  rn_context_memory_use(context, text, &now, &peak, status);
  return rnpy_failed(status, NULL) ? NULL : Py_BuildValue("LL", (long long)now, (long long)peak);
}

static PyMethodDef methods[] = {
    {"eager_start", start, METH_VARARGS, "Creates the eager context."},
    {"eager_swap", swap, METH_O, "Makes another context, or a new one, the one in use."},
    {"eager_start_later", start_later, METH_O,
     "Sets what creates the eager context when it is needed."},
    {"eager_constant", make_constant, METH_VARARGS, "Returns an eager tensor of a value."},
    {"eager_device", set_device, METH_O,
     "Sets the device of this thread's ops. Returns the previous one."},
    {"eager_add_function", add_function, METH_O, "Adds a FunctionDef to the context."},
    {"eager_clear_caches", clear_caches, METH_NOARGS, "Drops the cached kernels."},
    {"eager_wait", wait_for_ops, METH_NOARGS, "Waits for the ops of asynchronous execution."},
    {"eager_devices", list_devices, METH_NOARGS, "Returns [(name, type)] of the devices."},
    {"eager_memory", memory_use, METH_O, "Returns (bytes in use, the most that were)."},
    {NULL, NULL, 0, NULL},
};

int rnpy_eager_init(PyObject* module) {
  PyObject* bases = PyTuple_Pack(1, (PyObject*)rnpy.tensor_type);
  rnpy_eager_type = bases ? (PyTypeObject*)PyType_FromSpecWithBases(&tensor_spec, bases) : NULL;
  Py_XDECREF(bases);
  if (!rnpy_eager_type) return -1;
  Py_INCREF(rnpy_eager_type);
  if (PyModule_AddObject(module, "EagerTensor", (PyObject*)rnpy_eager_type) < 0) return -1;
  return PyModule_AddFunctions(module, methods);
}

// Tapes: records of eager execution, for gradients (runnel/tape.h).
#include "runnel/tape.h"

#include "opfunction.h"

typedef struct tape_t {
  PyObject_HEAD rn_tape_t* tape;
} tape_t;

// The exception of a Python gradient function while the library unwinds.
static _Thread_local PyObject *error_type, *error_value, *error_traceback;

static void keep_error(TF_Status* status) {
  Py_XDECREF(error_type);
  Py_XDECREF(error_value);
  Py_XDECREF(error_traceback);
  PyErr_Fetch(&error_type, &error_value, &error_traceback);
  TF_SetStatus(status, TF_UNKNOWN, "a gradient function in Python failed");
}

static bool has_failed(const TF_Status* status) {
  if (TF_GetCode(status) == TF_OK) return false;
  if (!error_type) return rnpy_failed(status, NULL);
  PyErr_Restore(error_type, error_value, error_traceback);
  error_type = error_value = error_traceback = NULL;
  return true;
}

// Returns another reference to a handle: tapes identify tensors by handle.
static TFE_TensorHandle* share(TFE_TensorHandle* handle) {
  return TFE_TensorHandleCopySharingTensor(handle, rnpy_status());
}

static PyObject* tensor_or_none(TFE_TensorHandle* handle) {
  if (!handle) Py_RETURN_NONE;
  return rnpy_eager_tensor(handle);
}

// --- The type

static PyObject* tape_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)kwargs;
  int is_persistent;
  if (!PyArg_ParseTuple(args, "p", &is_persistent) || !rnpy_context()) return NULL;
  tape_t* self = (tape_t*)type->tp_alloc(type, 0);
  if (!self) return NULL;
  // Python knows which variables are trainable, and watches them.
  rn_tape_options_t options = {.is_persistent = is_persistent, .leaves_variables = true};
  self->tape = rn_tape_start(rnpy_context(), &options, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static void tape_dealloc(tape_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  rn_tape_delete(self->tape);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

static PyObject* tape_pause(tape_t* self, PyObject* unused) {
  (void)unused;
  rn_tape_pause(self->tape);
  Py_RETURN_NONE;
}

static PyObject* tape_resume(tape_t* self, PyObject* unused) {
  (void)unused;
  rn_tape_resume(self->tape);
  Py_RETURN_NONE;
}

static PyObject* tape_watch(tape_t* self, PyObject* tensor) {
  if (!rnpy_is_eager(tensor)) {
    PyErr_Format(PyExc_TypeError, "A tape can only watch eager tensors, got %R", tensor);
    return NULL;
  }
  rn_tape_watch(self->tape, ((rnpy_eager_t*)tensor)->handle, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* tape_tracks(tape_t* self, PyObject* tensor) {
  return PyBool_FromLong(rnpy_is_eager(tensor) &&
                         rn_tape_tracks(self->tape, ((rnpy_eager_t*)tensor)->handle));
}

// The handles of a list of eager tensors; None among them is NULL if |may_be_none|. The memory is
// the caller's, PyMem_Free.
static TFE_TensorHandle** handles_of(PyObject* list, bool may_be_none) {
  Py_ssize_t count = PyList_GET_SIZE(list);
  TFE_TensorHandle** handles = PyMem_Calloc((size_t)count + 1, sizeof *handles);
  if (!handles) {
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* tensor = PyList_GET_ITEM(list, i);
    if (rnpy_is_eager(tensor)) {
      handles[i] = ((rnpy_eager_t*)tensor)->handle;
    } else if (!may_be_none || tensor != Py_None) {
      PyErr_Format(PyExc_TypeError, "Expected an eager tensor, got %R", tensor);
      PyMem_Free(handles);
      return NULL;
    }
  }
  return handles;
}

static PyObject* take_slices(const rn_tape_slices_t* slices) {
  PyObject* parts[] = {tensor_or_none(slices->values), tensor_or_none(slices->indices),
                       tensor_or_none(slices->shape)};
  PyObject* answer =
      parts[0] && parts[1] && parts[2] ? PyTuple_Pack(3, parts[0], parts[1], parts[2]) : NULL;
  for (int i = 0; i < 3; ++i) Py_XDECREF(parts[i]);
  return answer;
}

static PyObject* take_gradients(TFE_TensorHandle** out, const rn_tape_slices_t* slices,
                                Py_ssize_t count) {
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = slices[i].values ? take_slices(&slices[i]) : tensor_or_none(out[i]);
    if (list && value) {
      PyList_SET_ITEM(list, i, value);
    } else {
      Py_XDECREF(value);
      Py_CLEAR(list);
    }
  }
  return list;
}

// gradient(targets, sources, target gradients or None, zeros): for each source a tensor, (values,
// indices, shape), or None.
static PyObject* tape_gradient(tape_t* self, PyObject* args) {
  PyObject *targets, *sources, *given;
  int zeros;
  if (!PyArg_ParseTuple(args, "O!O!Op", &PyList_Type, &targets, &PyList_Type, &sources, &given,
                        &zeros))
    return NULL;
  if (given != Py_None &&
      (!PyList_Check(given) || PyList_GET_SIZE(given) != PyList_GET_SIZE(targets))) {
    PyErr_SetString(PyExc_ValueError, "Targets and gradients must have the same length");
    return NULL;
  }
  Py_ssize_t count = PyList_GET_SIZE(sources);
  TFE_TensorHandle** target_handles = handles_of(targets, false);
  TFE_TensorHandle** source_handles = target_handles ? handles_of(sources, false) : NULL;
  TFE_TensorHandle** given_handles =
      source_handles && given != Py_None ? handles_of(given, true) : NULL;
  TFE_TensorHandle** out = PyMem_Calloc((size_t)count + 1, sizeof *out);
  rn_tape_slices_t* slices = PyMem_Calloc((size_t)count + 1, sizeof *slices);
  if (!PyErr_Occurred() && (!out || !slices)) PyErr_NoMemory();
  PyObject* answer = NULL;
  if (!PyErr_Occurred()) {
    rn_tape_gradient_options_t options = {
        .target_gradients = given_handles, .zeros = zeros, .slices = slices};
    TF_Status* status = rnpy_status();
    Py_ssize_t target_count = PyList_GET_SIZE(targets);
    Py_BEGIN_ALLOW_THREADS;
    rn_tape_gradient(self->tape, target_handles, (int)target_count, source_handles, (int)count,
                     &options, out, status);
    Py_END_ALLOW_THREADS;
    if (!has_failed(status)) answer = take_gradients(out, slices, count);
  }
  PyMem_Free(target_handles);
  PyMem_Free(source_handles);
  PyMem_Free(given_handles);
  PyMem_Free(out);
  PyMem_Free(slices);
  return answer;
}

static PyMethodDef tape_methods[] = {
    {"pause", (PyCFunction)tape_pause, METH_NOARGS, "Stops recording."},
    {"resume", (PyCFunction)tape_resume, METH_NOARGS, "Continues recording."},
    {"watch", (PyCFunction)tape_watch, METH_O, "Records what is computed from a tensor."},
    {"tracks", (PyCFunction)tape_tracks, METH_O, "Tells whether a tensor depends on watched ones."},
    {"gradient", (PyCFunction)tape_gradient, METH_VARARGS, "Computes gradients of targets."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tape_slots[] = {
    {Py_tp_new, tape_new},
    {Py_tp_dealloc, tape_dealloc},
    {Py_tp_methods, tape_methods},
    {0, NULL},
};

static PyType_Spec tape_spec = {
    .name = "runnel._core.Tape",
    .basicsize = sizeof(tape_t),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = tape_slots,
};

// --- Gradients in Python

// The list that Python made of the gradients that arrived, as handles of the inputs' gradients.
static void send_all(PyObject* answer, TFE_TensorHandle** out, int count) {
  PyObject* list = PySequence_Fast(answer, "a gradient function must return a list");
  if (list && PySequence_Fast_GET_SIZE(list) != count)
    PyErr_Format(PyExc_ValueError,
                 "The gradient function returned %zd gradients, but %d were expected",
                 PySequence_Fast_GET_SIZE(list), count);
  for (int i = 0; !PyErr_Occurred() && i < count; ++i) {
    PyObject* tensor = PySequence_Fast_GET_ITEM(list, i);
    if (tensor == Py_None) continue;
    if (rnpy_is_eager(tensor)) {
      out[i] = share(((rnpy_eager_t*)tensor)->handle);
    } else {
      PyErr_Format(PyExc_TypeError, "Expected an eager tensor as gradient, got %R", tensor);
    }
  }
  Py_XDECREF(list);
}

static void call_python(void* arg, TFE_TensorHandle* const* arrived, int arrived_count,
                        TFE_TensorHandle** out, int count, TF_Status* status) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* list = PyList_New(arrived_count);
  for (int i = 0; list && i < arrived_count; ++i) {
    PyObject* tensor = tensor_or_none(arrived[i] ? share(arrived[i]) : NULL);
    if (tensor) {
      PyList_SET_ITEM(list, i, tensor);
    } else {
      Py_CLEAR(list);
    }
  }
  PyObject* answer = list ? PyObject_CallOneArg(arg, list) : NULL;
  if (answer) send_all(answer, out, count);
  Py_XDECREF(answer);
  Py_XDECREF(list);
  if (PyErr_Occurred()) keep_error(status);
  PyGILState_Release(state);
}

static void free_python(void* arg) {
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF((PyObject*)arg);
  PyGILState_Release(state);
}

// tape_record(inputs, outputs, function): the outputs come from the inputs, with the gradient
// function(list of gradients of the outputs) -> list of gradients of the inputs.
static PyObject* record(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *inputs, *outputs, *function;
  if (!PyArg_ParseTuple(args, "O!O!O", &PyList_Type, &inputs, &PyList_Type, &outputs, &function) ||
      !rnpy_context())
    return NULL;
  TFE_TensorHandle** from = handles_of(inputs, false);
  TFE_TensorHandle** to = from ? handles_of(outputs, false) : NULL;
  if (to) {
    Py_INCREF(function);
    rn_tape_record(rnpy_context(), from, (int)PyList_GET_SIZE(inputs), to,
                   (int)PyList_GET_SIZE(outputs), call_python, function, free_python,
                   rnpy_status());
    rnpy_failed(rnpy_status(), NULL);
  }
  PyMem_Free(from);
  PyMem_Free(to);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"tape_record", record, METH_VARARGS, "Records results with their own gradient function."},
    {NULL, NULL, 0, NULL},
};

int rnpy_tape_init(PyObject* module) {
  PyTypeObject* type = (PyTypeObject*)PyType_FromSpec(&tape_spec);
  if (!type || PyModule_AddObject(module, "Tape", (PyObject*)type) < 0) return -1;
  return PyModule_AddFunctions(module, methods);
}

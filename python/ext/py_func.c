// Python functions as ops: the kernels of PyFunc and others, which call back into this process.
//
// A node's attribute |token| names a function that Python registered. The thread that runs the
// kernel takes the interpreter lock for the call; the thread that waits for the step released it.
#include "core.h"

#include "tensorflow/c/kernels.h"

static PyObject* functions;  // dict: token -> callable(list of arrays) -> list of values

typedef struct call_t {
  char token[128];
} call_t;

static void* create(TF_OpKernelConstruction* ctx) {
  call_t* call = PyMem_RawCalloc(1, sizeof *call);
  TF_Status* status = TF_NewStatus();
  if (!call) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a kernel");
  } else {
    TF_OpKernelConstruction_GetAttrString(ctx, "token", call->token, sizeof call->token - 1,
                                          status);
  }
  if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(ctx, status);
  TF_DeleteStatus(status);
  return call;
}

static void destroy(void* kernel) { PyMem_RawFree(kernel); }

// Copies the input, which is valid during the call only.
static PyObject* array_of(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  TF_Tensor* tensor = NULL;
  TF_GetInput(ctx, i, &tensor, status);
  if (TF_GetCode(status) != TF_OK) return NULL;
  return rnpy_from_tensor(tensor);
}

static PyObject* arguments(TF_OpKernelContext* ctx, TF_Status* status) {
  int count = TF_NumInputs(ctx);
  PyObject* list = PyList_New(count);
  for (int i = 0; list && i < count; ++i) {
    PyObject* array = array_of(ctx, i, status);
    if (!array) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, i, array);
    }
  }
  return list;
}

// Converts a value to type |wanted|. Typed values, such as NumPy's, must have this type; NumPy's
// bytes and str are strings.
static TF_Tensor* result_of(PyObject* value, int wanted, int number) {
  if (wanted == TF_STRING || !PyObject_HasAttrString(value, "dtype"))
    return rnpy_to_tensor(value, wanted, false);
  TF_Tensor* tensor = rnpy_to_tensor(value, 0, false);
  int found = tensor ? (int)TF_TensorType(tensor) : wanted;
  if (found == wanted) return tensor;
  TF_DeleteTensor(tensor);
  PyErr_Format(PyExc_TypeError, "Value %d of the function has type %S, but %S was expected", number,
               rnpy_dtype(found), rnpy_dtype(wanted));
  return NULL;
}

static void set_outputs(TF_OpKernelContext* ctx, PyObject* answer, TF_Status* status) {
  int count = TF_NumOutputs(ctx);
  PyObject* list = PySequence_Fast(answer, "a function of py_func returns a list");
  if (list && PySequence_Fast_GET_SIZE(list) != count) {
    PyErr_Format(PyExc_ValueError, "The function returned %zd values, but %d were expected",
                 PySequence_Fast_GET_SIZE(list), count);
  }
  for (int i = 0; list && !PyErr_Occurred() && i < count; ++i) {
    TF_Tensor* tensor =
        result_of(PySequence_Fast_GET_ITEM(list, i), (int)TF_ExpectedOutputDataType(ctx, i), i);
    if (tensor) TF_SetOutput(ctx, i, tensor, status);
    TF_DeleteTensor(tensor);
  }
  Py_XDECREF(list);
}

// Turns the Python exception into a status: "ValueError: message" and the traceback.
static void take_error(TF_Status* status) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const struct {
    PyObject* type;
    TF_Code code;
  } codes[] = {
      {PyExc_ValueError, TF_INVALID_ARGUMENT},       {PyExc_TypeError, TF_INVALID_ARGUMENT},
      {PyExc_StopIteration, TF_OUT_OF_RANGE},        {PyExc_MemoryError, TF_RESOURCE_EXHAUSTED},
      {PyExc_NotImplementedError, TF_UNIMPLEMENTED},
  };
  TF_Code code = TF_UNKNOWN;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; ++i) {
    if (type && PyErr_GivenExceptionMatches(type, codes[i].type)) {
      code = codes[i].code;
      break;
    }
  }
  PyObject* module = PyImport_ImportModule("traceback");
  PyObject* lines =
      module ? PyObject_CallMethod(module, "format_exception", "OOO", type ? type : Py_None,
                                   value ? value : Py_None, traceback ? traceback : Py_None)
             : NULL;
  PyObject* empty = PyUnicode_FromString("");
  PyObject* trace = lines && empty ? PyUnicode_Join(empty, lines) : NULL;
  PyObject* text = trace ? PyUnicode_FromFormat("%s: %S\n%U",
                                                type ? ((PyTypeObject*)type)->tp_name : "Exception",
                                                value ? value : Py_None, trace)
                         : NULL;
  const char* message = text ? PyUnicode_AsUTF8(text) : NULL;
  TF_SetStatus(status, code, message ? message : "a Python function failed");
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(trace);
  Py_XDECREF(empty);
  Py_XDECREF(lines);
  Py_XDECREF(module);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

static void compute(void* kernel, TF_OpKernelContext* ctx) {
  const call_t* call = kernel;
  TF_Status* status = TF_NewStatus();
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* function = PyDict_GetItemString(functions, call->token);
  if (!function) {
    TF_SetStatus(
        status, TF_FAILED_PRECONDITION,
        "A py_func function exists only in the process that created it, which is not this one");
  } else {
    Py_INCREF(function);
    PyObject* list = arguments(ctx, status);
    PyObject* answer = list ? PyObject_CallOneArg(function, list) : NULL;
    if (answer) set_outputs(ctx, answer, status);
    Py_XDECREF(answer);
    Py_XDECREF(list);
    Py_DECREF(function);
    if (PyErr_Occurred()) take_error(status);
  }
  PyGILState_Release(state);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(ctx, status);
  TF_DeleteStatus(status);
}

// py_func_register(token, function or None)
static PyObject* register_function(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *token, *function;
  if (!PyArg_ParseTuple(args, "UO", &token, &function)) return NULL;
  if (!functions) {
    functions = PyDict_New();
    if (!functions) return NULL;
    const char* ops[] = {"PyFunc", "PyFuncStateless", "EagerPyFunc"};
    for (int i = 0; i < 3; ++i) {
      TF_KernelBuilder* builder = TF_NewKernelBuilder(ops[i], "CPU", create, compute, destroy);
      TF_RegisterKernelBuilder(ops[i], builder, rnpy_status());
      if (rnpy_failed(rnpy_status(), NULL)) return NULL;
    }
  }
  int outcome;
  if (function == Py_None) {
    outcome = PyDict_Contains(functions, token) == 1 ? PyDict_DelItem(functions, token) : 0;
  } else {
    outcome = PyDict_SetItem(functions, token, function);
  }
  if (outcome < 0) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef rnpy_py_func_methods[] = {
    {"py_func_register", register_function, METH_VARARGS,
     "Registers a token's function; None removes it."},
    {NULL, NULL, 0, NULL},
};

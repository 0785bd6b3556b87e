// The module: Python's registered callbacks, statuses, the registry of ops.
#include "core.h"
#include "tensorflow/c/c_api_experimental.h"

#include <pthread.h>

#include "runnel/version.h"

rnpy_state_t rnpy;

static _Thread_local PyObject* current_graph;  // Borrowed: the stack in Python holds it
static _Thread_local TF_Status* thread_status;
static pthread_key_t status_key;  // frees a thread's status when the thread ends

static void end_status(void* status) { TF_DeleteStatus(status); }

TF_Status* rnpy_status(void) {
  if (!thread_status) {
    thread_status = TF_NewStatus();
    pthread_setspecific(status_key, thread_status);
  }
  return thread_status;
}

PyObject* rnpy_current(void) {
  if (current_graph) return current_graph;
  PyObject* graph = PyObject_CallNoArgs(rnpy.default_graph);
  Py_XDECREF(graph);  // its owner holds a reference
  return graph;
}

bool rnpy_failed(const TF_Status* status, PyObject* graph) {
  TF_Code code = TF_GetCode(status);
  if (code == TF_OK) return false;
  PyObject* error = PyObject_CallFunction(rnpy.make_error, "isO", (int)code, TF_Message(status),
                                          graph ? graph : Py_None);
  if (error) {
    PyErr_SetObject((PyObject*)Py_TYPE(error), error);
    Py_DECREF(error);
  }
  return true;
}

bool rnpy_build_failed(const TF_Status* status) {
  TF_Code code = TF_GetCode(status);
  if (code == TF_OK) return false;
  if (code != TF_INVALID_ARGUMENT) return rnpy_failed(status, NULL);
  PyErr_SetString(PyExc_ValueError, TF_Message(status));
  return true;
}

PyObject* rnpy_take_buffer(TF_Buffer* buffer) {
  PyObject* bytes = PyBytes_FromStringAndSize(buffer->data, (Py_ssize_t)buffer->length);
  TF_DeleteBuffer(buffer);
  return bytes;
}

static PyObject* set_current(PyObject* self, PyObject* graph) {
  (void)self;
  PyObject* before = current_graph ? current_graph : Py_False;
  current_graph = graph == Py_False ? NULL : graph;
  Py_INCREF(before);
  return before;
}

static PyObject* get_current(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  PyObject* graph = rnpy_current();
  Py_XINCREF(graph);
  return graph;
}

// register(name=value, …): the callbacks and classes of rnpy_state_t.
static PyObject* register_names(PyObject* self, PyObject* args, PyObject* kwargs) {
  (void)self;
  if (PyTuple_GET_SIZE(args) || !kwargs) {
    PyErr_SetString(PyExc_TypeError, "register takes keyword arguments only");
    return NULL;
  }
  const struct {
    const char* name;
    PyObject** place;
  } places[] = {
      {"operation_class", &rnpy.operation_class},
      {"tensor_class", &rnpy.tensor_class},
      {"dtype_class", &rnpy.dtype_class},
      {"convert", &rnpy.convert},
      {"as_dtype", &rnpy.as_dtype},
      {"as_shape", &rnpy.as_shape},
      {"as_attr", &rnpy.as_attr},
      {"make_error", &rnpy.make_error},
      {"numpy_dtype", &rnpy.numpy_dtype},
      {"from_numpy", &rnpy.from_numpy},
      {"feed_array", &rnpy.feed_array},
      {"signature", &rnpy.signature},
      {"documentation", &rnpy.documentation},
      {"explain", &rnpy.explain},
      {"intercept", &rnpy.intercept},
      {"default_graph", &rnpy.default_graph},
      {"package", &rnpy.package},
  };
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(kwargs, &position, &key, &value)) {
    const char* name = PyUnicode_AsUTF8(key);
    if (!name) return NULL;
    PyObject** place = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i)
      if (strcmp(name, places[i].name) == 0) place = places[i].place;
    if (!place) return PyErr_Format(PyExc_TypeError, "There is no object with the name %s", name);
    Py_INCREF(value);
    Py_XDECREF(*place);
    *place = value;
  }
  Py_RETURN_NONE;
}

static PyObject* register_dtype(PyObject* self, PyObject* args) {
  (void)self;
  int number;
  PyObject* dtype;
  if (!PyArg_ParseTuple(args, "iO", &number, &dtype)) return NULL;
  int place = number >= RNPY_REF ? number - RNPY_REF + RNPY_TYPES : number;
  if (place < 0 || place >= 2 * RNPY_TYPES) {
    PyErr_SetString(PyExc_ValueError, "There is no such type");
    return NULL;
  }
  Py_INCREF(dtype);
  Py_XDECREF(rnpy.dtypes[place]);
  rnpy.dtypes[place] = dtype;
  Py_RETURN_NONE;
}

static PyObject* op_list(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  return rnpy_take_buffer(TF_GetAllOpList());
}

static PyObject* kernel_list(PyObject* self, PyObject* arg) {
  (void)self;
  const char* name = PyUnicode_AsUTF8(arg);
  if (!name) return NULL;
  TF_Status* status = rnpy_status();
  TF_Buffer* buffer = TF_GetRegisteredKernelsForOp(name, status);
  if (rnpy_failed(status, NULL)) return NULL;
  return rnpy_take_buffer(buffer);
}

static PyObject* load_library(PyObject* self, PyObject* arg) {
  (void)self;
  const char* path = PyUnicode_AsUTF8(arg);
  if (!path) return NULL;
  TF_Status* status = rnpy_status();
  TF_Library* library = TF_LoadLibrary(path, status);
  if (rnpy_failed(status, NULL)) return NULL;
  TF_Buffer list = TF_GetOpList(library);
  PyObject* bytes = PyBytes_FromStringAndSize(list.data, (Py_ssize_t)list.length);
  TF_DeleteLibraryHandle(library);
  return bytes;
}

static PyObject* load_device_library(PyObject* self, PyObject* arg) {
  (void)self;
  const char* path = PyUnicode_AsUTF8(arg);
  if (!path) return NULL;
  TF_Status* status = rnpy_status();
  TF_Library* library = TF_LoadPluggableDeviceLibrary(path, status);
  if (rnpy_failed(status, NULL)) return NULL;
  TF_DeletePluggableDeviceLibraryHandle(library);
  Py_RETURN_NONE;
}

static PyObject* load_file_system(PyObject* self, PyObject* arg) {
  (void)self;
  const char* path = PyUnicode_AsUTF8(arg);
  if (!path) return NULL;
  TF_Status* status = rnpy_status();
  TF_RegisterFilesystemPlugin(path, status);
  if (rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"register", (PyCFunction)(void (*)(void))register_names, METH_VARARGS | METH_KEYWORDS,
     "Registers the classes and functions that Python provides."},
    {"register_dtype", register_dtype, METH_VARARGS, "Registers the DType of a number."},
    {"set_current", set_current, METH_O,
     "Sets this thread's graph: None for eager execution, False for the default graph. Returns the "
     "previous one."},
    {"current", get_current, METH_NOARGS, "Returns this thread's graph; None in eager execution."},
    {"op_list", op_list, METH_NOARGS, "Returns the OpList of all ops."},
    {"kernels_of", kernel_list, METH_O, "Returns the KernelList of an op."},
    {"load_library", load_library, METH_O, "Loads a plug-in. Returns the OpList of its ops."},
    {"load_device_library", load_device_library, METH_O,
     "Loads a plug-in with devices, kernels and graph optimizers."},
    {"load_file_system", load_file_system, METH_O, "Loads a plug-in with file systems."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_core",
                                        .m_doc = "Runnel's C part.", .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__core(void) {
  if (pthread_key_create(&status_key, end_status) != 0) return PyErr_NoMemory();
  PyObject* module = PyModule_Create(&definition);
  if (!module) return NULL;
  if (rnpy_graph_init(module) < 0 || rnpy_value_init(module) < 0 ||
      rnpy_function_init(module) < 0 || rnpy_session_init(module) < 0 ||
      rnpy_eager_init(module) < 0 || rnpy_tape_init(module) < 0 ||
      PyModule_AddFunctions(module, rnpy_graph_io_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_library_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_intercept_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_py_func_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_record_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_file_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_cluster_methods) < 0 ||
      PyModule_AddFunctions(module, rnpy_cancel_methods) < 0 ||
      PyModule_AddStringConstant(module, "version", rn_version()) < 0 ||
      PyModule_AddStringConstant(module, "tf_version", TF_Version()) < 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}

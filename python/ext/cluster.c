// The eager context in a cluster: devices of other tasks, and collectives with other processes.
#include "opfunction.h"
#include "runnel/session.h"
#include "tensorflow/c/c_api_experimental.h"

// eager_connect(ServerDef's bytes, whether it updates an earlier one, milliseconds): adds the
// devices of the tasks of a cluster.
static PyObject* connect_to(PyObject* self, PyObject* args) {
  (void)self;
  Py_buffer def;
  int is_update;
  long long timeout_ms;
  TFE_Context* context = rnpy_context();
  if (!context || !PyArg_ParseTuple(args, "y*pL", &def, &is_update, &timeout_ms)) return NULL;
  TF_Status* status = rnpy_status();
  Py_BEGIN_ALLOW_THREADS;
  if (is_update)
    TFE_ContextUpdateServerDefWithTimeout(context, 0, def.buf, (size_t)def.len, timeout_ms, status);
  else
    TFE_ContextSetServerDefWithTimeout(context, 0, def.buf, (size_t)def.len, timeout_ms, status,
                                       false);
  Py_END_ALLOW_THREADS;
  PyBuffer_Release(&def);
  if (rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

// eager_is_alive(name of a task)
static PyObject* is_alive(PyObject* self, PyObject* name) {
  (void)self;
  const char* text = PyUnicode_AsUTF8(name);
  TFE_Context* context = text ? rnpy_context() : NULL;
  if (!context) return NULL;
  TF_Status* status = rnpy_status();
  bool answer;
  Py_BEGIN_ALLOW_THREADS;
  answer = TFE_ContextCheckAlive(context, text, status);
  Py_END_ALLOW_THREADS;
  return rnpy_failed(status, NULL) ? NULL : PyBool_FromLong(answer);
}

// eager_join_collectives(ServerDef's bytes)
static PyObject* join_collectives(PyObject* self, PyObject* def) {
  (void)self;
  char* data;
  Py_ssize_t size;
  TFE_Context* context = rnpy_context();
  if (!context || PyBytes_AsStringAndSize(def, &data, &size) < 0) return NULL;
  TFE_EnableCollectiveOps(context, data, (size_t)size, rnpy_status());
  if (rnpy_failed(rnpy_status(), NULL)) return NULL;
  Py_RETURN_NONE;
}

// eager_abort_collectives(code, message)
static PyObject* abort_collectives(PyObject* self, PyObject* args) {
  (void)self;
  int code;
  const char* message;
  TFE_Context* context = rnpy_context();
  if (!context || !PyArg_ParseTuple(args, "is", &code, &message)) return NULL;
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, (TF_Code)code, message);
  TFE_AbortCollectiveOps(context, status);
  TF_DeleteStatus(status);
  Py_RETURN_NONE;
}

// eager_finish_collectives(milliseconds)
static PyObject* finish_collectives(PyObject* self, PyObject* timeout_ms) {
  (void)self;
  long long limit = PyLong_AsLongLong(timeout_ms);
  TFE_Context* context = rnpy_context();
  bool answer;
  if (!context || PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  answer = rn_context_finish_collectives(context, limit);
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(answer);
}

PyMethodDef rnpy_cluster_methods[] = {
    {"eager_connect", connect_to, METH_VARARGS, "Adds the devices of the tasks of a cluster."},
    {"eager_is_alive", is_alive, METH_O, "Tells whether a task of the cluster answers."},
    {"eager_join_collectives", join_collectives, METH_O,
     "Makes this process a task of a cluster, with which it runs collectives."},
    {"eager_abort_collectives", abort_collectives, METH_VARARGS, "Ends all collectives."},
    {"eager_finish_collectives", finish_collectives, METH_O,
     "Waits until the other tasks have what collectives left for them."},
    {NULL, NULL, 0, NULL},
};

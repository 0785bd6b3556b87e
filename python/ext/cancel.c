// Cancellation of eager ops: a manager is a capsule, and each thread has at most one current
// manager, under which its ops run.
#include "core.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#define NAME "runnel.CancellationManager"

static _Thread_local PyObject* current;  // the capsule, or NULL

static TFE_CancellationManager* manager_of(PyObject* capsule) {
  return PyCapsule_GetPointer(capsule, NAME);
}

TFE_CancellationManager* rnpy_cancellation(PyObject** out_owner) {
  *out_owner = current;
  Py_XINCREF(current);
  return current ? manager_of(current) : NULL;
}

static void destroy(PyObject* capsule) { TFE_DeleteCancellationManager(manager_of(capsule)); }

static PyObject* create(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  TFE_CancellationManager* manager = TFE_NewCancellationManager();
  if (!manager) return PyErr_NoMemory();
  PyObject* capsule = PyCapsule_New(manager, NAME, destroy);
  if (!capsule) TFE_DeleteCancellationManager(manager);
  return capsule;
}

static PyObject* start(PyObject* self, PyObject* capsule) {
  (void)self;
  TFE_CancellationManager* manager = manager_of(capsule);
  if (!manager) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  TFE_CancellationManagerStartCancel(manager);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyObject* is_cancelled(PyObject* self, PyObject* capsule) {
  (void)self;
  TFE_CancellationManager* manager = manager_of(capsule);
  return manager ? PyBool_FromLong(TFE_CancellationManagerIsCancelled(manager)) : NULL;
}

// cancellation_enter(manager or None): makes it the current one. Returns the previous one or None.
static PyObject* enter(PyObject* self, PyObject* capsule) {
  (void)self;
  if (capsule != Py_None && !manager_of(capsule)) return NULL;
  PyObject* before = current ? current : Py_None;
  if (!current) Py_INCREF(before);
  current = capsule == Py_None ? NULL : capsule;
  Py_XINCREF(current);
  return before;
}

PyMethodDef rnpy_cancel_methods[] = {
    {"cancellation_new", create, METH_NOARGS, "Returns a new cancellation manager."},
    {"cancellation_start", start, METH_O, "Cancels the ops that run under a manager."},
    {"cancellation_started", is_cancelled, METH_O, "Tells whether a manager was cancelled."},
    {"cancellation_enter", enter, METH_O,
     "Makes ops of this thread run under a manager or None. Returns the previous one."},
    {NULL, NULL, 0, NULL},
};

// Sessions: a step's feeds and fetches, and Ctrl-C.
//
// How Ctrl-C stops a blocked step on the main thread: our SIGINT handler calls Python's, which
// records the signal, and posts a semaphore; a thread that waits for it cancels the step. Back in
// Python, the recorded signal becomes KeyboardInterrupt. This happens only if Python's own handler
// is installed: a user's handler may want the step to finish.
#include "core.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "runnel/session.h"
#include "tensorflow/c/eager/c_api_experimental.h"

typedef struct rnpy_session_t {
  PyObject_HEAD TF_Session* session;
  rnpy_graph_t* graph;
  unsigned forks;  // the value of |forks| when it was created
} rnpy_session_t;

static unsigned forks;  // number of forks that led to this process

// --- Signals

static sem_t interrupts;
static struct sigaction python_action;  // the handler that ours calls
static _Atomic bool has_watcher;
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static TFE_CancellationManager* guarded;  // of the main thread's step, under |guard_lock|
static TFE_CancellationManager* spare;    // not started; the main thread's
static unsigned long main_thread;

static void on_interrupt(int number, siginfo_t* info, void* context) {
  if (python_action.sa_flags & SA_SIGINFO) {
    python_action.sa_sigaction(number, info, context);
  } else if (python_action.sa_handler != SIG_DFL && python_action.sa_handler != SIG_IGN) {
    python_action.sa_handler(number);
  }
  sem_post(&interrupts);
}

static void* watch(void* unused) {
  (void)unused;
  for (;;) {
    while (sem_wait(&interrupts) != 0) {
    }
    pthread_mutex_lock(&guard_lock);
    if (guarded) TFE_CancellationManagerStartCancel(guarded);
    pthread_mutex_unlock(&guard_lock);
  }
  return NULL;
}

static void after_fork(void) {
  ++forks;
  has_watcher = false;  // threads do not survive a fork
  guarded = NULL;
  pthread_mutex_init(&guard_lock, NULL);
}

static bool start_watcher(void) {
  if (has_watcher) return true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the main thread handles signals
  pthread_t thread;
  has_watcher = sem_init(&interrupts, 0, 0) == 0 && pthread_create(&thread, NULL, watch, NULL) == 0;
  if (has_watcher) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return has_watcher;
}

// Returns whether Python turns SIGINT into KeyboardInterrupt.
static bool is_default_handler(void) {
  static PyObject *getsignal, *handler, *number;
  if (!getsignal) {
    PyObject* module = PyImport_ImportModule("_signal");
    if (module) {
      handler = PyObject_GetAttrString(module, "default_int_handler");
      number = PyLong_FromLong(SIGINT);
      getsignal = PyObject_GetAttrString(module, "getsignal");
      Py_DECREF(module);
    }
    if (!getsignal) return false;
  }
  PyObject* now = PyObject_CallOneArg(getsignal, number);
  Py_XDECREF(now);
  return now && now == handler;
}

// Returns a manager that Ctrl-C cancels; NULL if this step cannot be interrupted.
static TFE_CancellationManager* guard_begin(void) {
  if (PyThread_get_thread_ident() != main_thread || !is_default_handler()) {
    PyErr_Clear();
    return NULL;
  }
  struct sigaction now;
  if (sigaction(SIGINT, NULL, &now) != 0) return NULL;
  if (now.sa_sigaction != on_interrupt) {
    if (!start_watcher()) return NULL;
    python_action = now;
    struct sigaction ours = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGINT, &ours, NULL) != 0) return NULL;
  } else if (!start_watcher()) {
    return NULL;
  }
  if (!spare) spare = TFE_NewCancellationManager();
  pthread_mutex_lock(&guard_lock);
  guarded = spare;
  pthread_mutex_unlock(&guard_lock);
  return spare;
}

static void guard_end(TFE_CancellationManager* manager) {
  if (!manager) return;
  pthread_mutex_lock(&guard_lock);
  guarded = NULL;
  pthread_mutex_unlock(&guard_lock);
  if (TFE_CancellationManagerIsCancelled(manager)) {
    TFE_DeleteCancellationManager(manager);
    spare = NULL;
  }
}

// --- A step

#define FEW 16

typedef struct step_t {
  int feed_count, fetch_count, target_count;
  TF_Output few_feeds[FEW], few_fetches[FEW];
  TF_Tensor *few_values[FEW], *few_results[FEW];
  TF_Operation* few_targets[FEW];
  TF_Output *feeds, *fetches;
  TF_Tensor **values, **results;
  TF_Operation** targets;
} step_t;

#define ROOM(field, few, count) \
  (step->field = (count) <= FEW ? step->few : PyMem_Calloc((size_t)(count), sizeof *step->field))

static void step_clear(step_t* step) {
  for (int i = 0; step->values && i < step->feed_count; ++i) TF_DeleteTensor(step->values[i]);
  for (int i = 0; step->results && i < step->fetch_count; ++i) TF_DeleteTensor(step->results[i]);
  if (step->feeds != step->few_feeds) PyMem_Free(step->feeds);
  if (step->values != step->few_values) PyMem_Free(step->values);
  if (step->fetches != step->few_fetches) PyMem_Free(step->fetches);
  if (step->results != step->few_results) PyMem_Free(step->results);
  if (step->targets != step->few_targets) PyMem_Free(step->targets);
}

static bool is_of(const rnpy_session_t* session, PyObject* object) {
  const rnpy_operation_t* op = rnpy_is_tensor(object)      ? ((rnpy_tensor_t*)object)->op
                               : rnpy_is_operation(object) ? (rnpy_operation_t*)object
                                                           : NULL;
  if (op && op->graph == session->graph) return true;
  PyErr_Format(
      PyExc_ValueError,
      op ? "%S is not an element of this graph." : "Expected a Tensor or an Operation, got %R",
      object);
  return false;
}

// Returns whether an array of |value|'s shape may be fed.
static int check_shape(PyObject* tensor, const TF_Tensor* value) {
  TF_Graph* graph = ((rnpy_tensor_t*)tensor)->op->graph->graph;
  TF_Output output = rnpy_tf_output(tensor);
  TF_Status* status = rnpy_status();
  int rank = TF_GraphGetTensorNumDims(graph, output, status);
  if (rank < 0) return 0;
  int64_t few[32];
  bool fits = rank == TF_NumDims(value);
  if (fits && rank <= 32) {
    TF_GraphGetTensorShape(graph, output, few, rank, status);
    for (int i = 0; i < rank; ++i) fits &= few[i] < 0 || few[i] == TF_Dim(value, i);
  }
  if (fits) return 0;
  PyObject* found = PyTuple_New(TF_NumDims(value));
  for (int i = 0; found && i < TF_NumDims(value); ++i)
    PyTuple_SET_ITEM(found, i, PyLong_FromLongLong(TF_Dim(value, i)));
  PyObject* wanted = found ? PyObject_GetAttrString(tensor, "shape") : NULL;
  PyObject* name = wanted ? PyObject_GetAttrString(tensor, "name") : NULL;
  if (name)
    PyErr_Format(PyExc_ValueError,
                 "Cannot feed value of shape %S for Tensor %U, which has shape %S", found, name,
                 wanted);
  Py_XDECREF(found);
  Py_XDECREF(wanted);
  Py_XDECREF(name);
  return -1;
}

// Converts a feed to a tensor as for a constant or, if that fails, with NumPy.
static TF_Tensor* feed_tensor(PyObject* value, int dtype) {
  TF_Tensor* tensor = rnpy_to_tensor(value, dtype, true);
  if (tensor || !rnpy.feed_array ||
      !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
    return tensor;
  PyErr_Clear();
  int base = dtype >= RNPY_REF ? dtype - RNPY_REF : dtype;
  PyObject* array = PyObject_CallFunction(rnpy.feed_array, "Oi", value, base);
  if (array) tensor = rnpy_to_tensor(array, dtype, true);
  Py_XDECREF(array);
  return tensor;
}

static int step_feeds(rnpy_session_t* session, step_t* step, PyObject* feeds, PyObject* values) {
  int count = (int)PySequence_Fast_GET_SIZE(feeds);
  if (PySequence_Fast_GET_SIZE(values) != count) {
    PyErr_SetString(PyExc_ValueError, "Feeds and values must have the same length");
    return -1;
  }
  if (!ROOM(feeds, few_feeds, count) || !ROOM(values, few_values, count)) {
    PyErr_NoMemory();
    return -1;
  }
  for (int i = 0; i < count; ++i) {
    PyObject* tensor = PySequence_Fast_GET_ITEM(feeds, i);
    if (!is_of(session, tensor) || !rnpy_is_tensor(tensor)) return -1;
    step->feeds[i] = rnpy_tf_output(tensor);
    step->values[i] =
        feed_tensor(PySequence_Fast_GET_ITEM(values, i), ((rnpy_tensor_t*)tensor)->dtype);
    if (!step->values[i]) return -1;
    step->feed_count = i + 1;
    if (check_shape(tensor, step->values[i]) < 0) return -1;
  }
  return 0;
}

static int step_fetches(rnpy_session_t* session, step_t* step, PyObject* fetches,
                        PyObject* targets) {
  int count = (int)PySequence_Fast_GET_SIZE(fetches);
  int target_count = (int)PySequence_Fast_GET_SIZE(targets);
  if (!ROOM(fetches, few_fetches, count) || !ROOM(results, few_results, count) ||
      !ROOM(targets, few_targets, target_count)) {
    PyErr_NoMemory();
    return -1;
  }
  for (int i = 0; i < count; ++i) {
    PyObject* tensor = PySequence_Fast_GET_ITEM(fetches, i);
    if (!is_of(session, tensor)) return -1;
    step->fetches[i] = rnpy_tf_output(tensor);
    step->results[i] = NULL;
  }
  step->fetch_count = count;
  for (int i = 0; i < target_count; ++i) {
    PyObject* op = PySequence_Fast_GET_ITEM(targets, i);
    if (!is_of(session, op)) return -1;
    step->targets[i] = ((rnpy_operation_t*)op)->oper;
  }
  step->target_count = target_count;
  return 0;
}

static PyObject* take_results(step_t* step) {
  PyObject* list = PyList_New(step->fetch_count);
  for (int i = 0; list && i < step->fetch_count; ++i) {
    TF_Tensor* tensor = step->results[i];
    step->results[i] = NULL;
    PyObject* value = rnpy_from_tensor(tensor);
    if (!value) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, i, value);
    }
  }
  return list;
}

static int check_open(const rnpy_session_t* self) {
  if (self->session && self->forks == forks) return 0;
  PyErr_SetString(PyExc_RuntimeError,
                  self->session ? "This session was made before the process was forked, and its "
                                  "threads stayed in the other process: make a new one here."
                                : "Attempted to use a closed Session.");
  return -1;
}

static PyObject* step_run(rnpy_session_t* self, step_t* step, PyObject* options,
                          PyObject** out_metadata) {
  TF_Buffer* option_buffer =
      options != Py_None
          ? TF_NewBufferFromString(PyBytes_AS_STRING(options), (size_t)PyBytes_GET_SIZE(options))
          : NULL;
  TF_Buffer* metadata = out_metadata ? TF_NewBuffer() : NULL;
  TF_Status* status = rnpy_status();
  TFE_CancellationManager* stop = guard_begin();
  Py_INCREF(self);
  Py_BEGIN_ALLOW_THREADS;
  rn_session_run_cancellable(self->session, option_buffer, step->feeds, step->values,
                             step->feed_count, step->fetches, step->results, step->fetch_count,
                             (const TF_Operation* const*)step->targets, step->target_count,
                             metadata, stop, status);
  Py_END_ALLOW_THREADS;
  guard_end(stop);
  Py_DECREF(self);
  if (option_buffer) TF_DeleteBuffer(option_buffer);
  if (TF_GetCode(status) == TF_CANCELLED && PyErr_CheckSignals() < 0) {
    if (metadata) TF_DeleteBuffer(metadata);
    return NULL;
  }
  if (rnpy_failed(status, (PyObject*)self->graph)) {
    if (metadata) TF_DeleteBuffer(metadata);
    return NULL;
  }
  if (metadata) *out_metadata = rnpy_take_buffer(metadata);
  rnpy_release_pending();
  return take_results(step);
}

// _run(fetches, targets, feeds, values, options=None, wants_metadata=False)
static PyObject* session_run(rnpy_session_t* self, PyObject* const* args, Py_ssize_t count) {
  if (check_open(self) < 0) return NULL;
  if (count < 4) {
    PyErr_SetString(PyExc_TypeError, "_run(fetches, targets, feeds, values, …)");
    return NULL;
  }
  PyObject* options = count > 4 ? args[4] : Py_None;
  bool wants_metadata = count > 5 && args[5] == Py_True;
  if (options != Py_None && !PyBytes_Check(options)) {
    PyErr_SetString(PyExc_TypeError, "The options must be the bytes of a RunOptions");
    return NULL;
  }
  PyObject* lists[4] = {0};
  step_t step;
  memset(&step, 0, offsetof(step_t, few_feeds));
  step.feeds = step.few_feeds;
  step.fetches = step.few_fetches;
  step.values = step.few_values;
  step.results = step.few_results;
  step.targets = step.few_targets;
  PyObject* answer = NULL;
  PyObject* metadata = NULL;
  int ok = 0;
  for (; ok < 4; ++ok)
    if (!(lists[ok] = PySequence_Fast(args[ok], "arguments must be lists"))) break;
  if (ok == 4 && step_fetches(self, &step, lists[0], lists[1]) == 0 &&
      step_feeds(self, &step, lists[2], lists[3]) == 0) {
    answer = step_run(self, &step, options, wants_metadata ? &metadata : NULL);
  }
  step_clear(&step);
  for (int i = 0; i < 4; ++i) Py_XDECREF(lists[i]);
  if (answer && wants_metadata) {
    PyObject* pair = metadata ? PyTuple_Pack(2, answer, metadata) : NULL;
    Py_DECREF(answer);
    answer = pair;
  }
  Py_XDECREF(metadata);
  return answer;
}

// --- Steps in parts

static PyObject* session_partial_setup(rnpy_session_t* self, PyObject* args) {
  PyObject *fetches, *targets, *feeds;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyList_Type, &fetches, &PyList_Type, &targets,
                        &PyList_Type, &feeds) ||
      check_open(self) < 0)
    return NULL;
  step_t step;
  memset(&step, 0, sizeof step);
  PyObject* answer = NULL;
  int count = (int)PyList_GET_SIZE(feeds);
  step_t* at = &step;
  at->feeds = count <= FEW ? at->few_feeds : PyMem_Calloc((size_t)count, sizeof *at->feeds);
  at->values = at->few_values;
  bool ok = at->feeds && step_fetches(self, &step, fetches, targets) == 0;
  for (int i = 0; ok && i < count; ++i) {
    ok = is_of(self, PyList_GET_ITEM(feeds, i)) && rnpy_is_tensor(PyList_GET_ITEM(feeds, i));
    if (ok) at->feeds[i] = rnpy_tf_output(PyList_GET_ITEM(feeds, i));
  }
  if (ok) {
    const char* handle = NULL;
    TF_SessionPRunSetup(self->session, step.feeds, count, step.fetches, step.fetch_count,
                        (const TF_Operation* const*)step.targets, step.target_count, &handle,
                        rnpy_status());
    if (!rnpy_failed(rnpy_status(), (PyObject*)self->graph)) answer = PyUnicode_FromString(handle);
    if (handle) TF_DeletePRunHandle(handle);
  }
  step_clear(&step);
  return answer;
}

static PyObject* session_partial_run(rnpy_session_t* self, PyObject* args) {
  PyObject *fetches, *targets, *feeds, *values;
  const char* handle;
  if (!PyArg_ParseTuple(args, "sO!O!O!O!", &handle, &PyList_Type, &fetches, &PyList_Type, &targets,
                        &PyList_Type, &feeds, &PyList_Type, &values) ||
      check_open(self) < 0)
    return NULL;
  step_t step;
  memset(&step, 0, sizeof step);
  step.feeds = step.few_feeds;
  step.values = step.few_values;
  step.fetches = step.few_fetches;
  step.results = step.few_results;
  step.targets = step.few_targets;
  PyObject* answer = NULL;
  if (step_fetches(self, &step, fetches, targets) == 0 &&
      step_feeds(self, &step, feeds, values) == 0) {
    TF_Status* status = rnpy_status();
    Py_BEGIN_ALLOW_THREADS;
    TF_SessionPRun(self->session, handle, step.feeds, step.values, step.feed_count, step.fetches,
                   step.results, step.fetch_count, (const TF_Operation* const*)step.targets,
                   step.target_count, status);
    Py_END_ALLOW_THREADS;
    if (!rnpy_failed(status, (PyObject*)self->graph)) answer = take_results(&step);
  }
  step_clear(&step);
  return answer;
}

// --- Life

// Session(graph, target, config bytes)
static PyObject* session_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)kwargs;
  PyObject* graph;
  const char *target, *config;
  Py_ssize_t config_size;
  if (!PyArg_ParseTuple(args, "O!sy#", rnpy.graph_type, &graph, &target, &config, &config_size))
    return NULL;
  rnpy_session_t* self = (rnpy_session_t*)type->tp_alloc(type, 0);
  if (!self) return NULL;
  Py_INCREF(graph);
  self->graph = (rnpy_graph_t*)graph;
  self->forks = forks;
  TF_Status* status = rnpy_status();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, target);
  TF_SetConfig(options, config, (size_t)config_size, status);
  if (TF_GetCode(status) == TF_OK) {
    Py_BEGIN_ALLOW_THREADS;
    self->session = TF_NewSession(self->graph->graph, options, status);
    Py_END_ALLOW_THREADS;
  }
  TF_DeleteSessionOptions(options);
  if (rnpy_failed(status, NULL)) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static PyObject* session_close(rnpy_session_t* self, PyObject* unused) {
  (void)unused;
  if (!self->session || self->forks != forks) Py_RETURN_NONE;
  TF_Status* status = rnpy_status();
  Py_BEGIN_ALLOW_THREADS;
  TF_CloseSession(self->session, status);
  Py_END_ALLOW_THREADS;
  if (rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* session_devices(rnpy_session_t* self, PyObject* unused) {
  (void)unused;
  if (check_open(self) < 0) return NULL;
  TF_Status* status = rnpy_status();
  TF_DeviceList* devices;
  Py_BEGIN_ALLOW_THREADS;
  devices = TF_SessionListDevices(self->session, status);
  Py_END_ALLOW_THREADS;
  if (rnpy_failed(status, NULL)) return NULL;
  PyObject* list = PyList_New(0);
  for (int i = 0; list && i < TF_DeviceListCount(devices); ++i) {
    PyObject* row = Py_BuildValue("ssLKz", TF_DeviceListName(devices, i, status),
                                  TF_DeviceListType(devices, i, status),
                                  (long long)TF_DeviceListMemoryBytes(devices, i, status),
                                  (unsigned long long)TF_DeviceListIncarnation(devices, i, status),
                                  rn_device_list_description(devices, i));
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  TF_DeleteDeviceList(devices);
  return list;
}

static PyObject* reset(PyObject* self, PyObject* args) {
  (void)self;
  const char *target, *config;
  Py_ssize_t config_size;
  PyObject* containers;
  if (!PyArg_ParseTuple(args, "sO!y#", &target, &PyList_Type, &containers, &config, &config_size))
    return NULL;
  int count = (int)PyList_GET_SIZE(containers);
  const char** names = PyMem_Calloc((size_t)count + 1, sizeof *names);
  for (int i = 0; names && i < count; ++i)
    names[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(containers, i));
  TF_Status* status = rnpy_status();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, target);
  TF_SetConfig(options, config, (size_t)config_size, status);
  if (names && !PyErr_Occurred() && TF_GetCode(status) == TF_OK) {
    Py_BEGIN_ALLOW_THREADS;
    TF_Reset(options, names, count, status);
    Py_END_ALLOW_THREADS;
  }
  TF_DeleteSessionOptions(options);
  PyMem_Free(names);
  if (PyErr_Occurred() || rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

static int session_traverse(rnpy_session_t* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT((PyObject*)self->graph);
  return 0;
}

static void session_dealloc(rnpy_session_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (self->session && self->forks == forks) {  // in a forked child there is nothing to wait for
    TF_Session* session = self->session;
    TF_Status* status = rnpy_status();
    Py_BEGIN_ALLOW_THREADS;
    TF_DeleteSession(session, status);
    Py_END_ALLOW_THREADS;
  }
  Py_CLEAR(self->graph);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

static PyMethodDef session_methods[] = {
    {"_run", (PyCFunction)(void (*)(void))session_run, METH_FASTCALL,
     "_run(fetches, targets, feeds, values, options=None, wants_metadata=False)"},
    {"_partial_setup", (PyCFunction)session_partial_setup, METH_VARARGS, NULL},
    {"_partial_run", (PyCFunction)session_partial_run, METH_VARARGS, NULL},
    {"_close", (PyCFunction)session_close, METH_NOARGS, NULL},
    {"_devices", (PyCFunction)session_devices, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef session_members[] = {
    {"_graph", T_OBJECT, offsetof(rnpy_session_t, graph), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot session_slots[] = {
    {Py_tp_new, session_new},           {Py_tp_dealloc, session_dealloc},
    {Py_tp_traverse, session_traverse}, {Py_tp_methods, session_methods},
    {Py_tp_members, session_members},   {0, NULL},
};

static PyType_Spec session_spec = {
    .name = "runnel._core.Session",
    .basicsize = sizeof(rnpy_session_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = session_slots,
};

static PyMethodDef methods[] = {
    {"reset", reset, METH_VARARGS, "reset(target, containers, config)"},
    {NULL, NULL, 0, NULL},
};

int rnpy_session_init(PyObject* module) {
  main_thread = PyThread_get_thread_ident();
  pthread_atfork(NULL, NULL, after_fork);
  rnpy.session_type = (PyTypeObject*)PyType_FromSpec(&session_spec);
  if (!rnpy.session_type) return -1;
  Py_INCREF(rnpy.session_type);
  if (PyModule_AddObject(module, "Session", (PyObject*)rnpy.session_type) < 0) return -1;
  return PyModule_AddFunctions(module, methods);
}

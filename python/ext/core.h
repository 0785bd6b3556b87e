// Shared declarations of the extension module runnel._core: the part of the Python client where the
// cost per node or per step matters.
//
// Callers hold the interpreter lock unless a comment says otherwise. On failure, functions set a
// Python exception and return NULL (pointers) or -1 (int). NumPy's headers are not used: arrays
// come in through the buffer protocol and go out as memory under a numpy.ndarray, so one source
// serves all Pythons from 3.9 on.
#ifndef RUNNEL_PYTHON_CORE_H_
#define RUNNEL_PYTHON_CORE_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <structmember.h>

#include "tensorflow/c/c_api.h"

#define RNPY_TYPES 40  // all TF_DataType numbers are smaller
#define RNPY_REF 100   // offset from a type to its reference type

// What the scopes in which a thread is give to the nodes that it adds to a graph.
enum {
  RNPY_NAME_STACK,        // str: the current prefix without its last '/'
  RNPY_DEVICE,            // str or None: the device of new nodes
  RNPY_CONTROLS,          // list of (tuple of Operation, set of Operation created inside)
  RNPY_COLOCATION,        // tuple of bytes, "loc:@name"; may be empty
  RNPY_DEVICE_HOOK,       // called with each new Operation, or None
  RNPY_DEVICE_STACK,      // tuple: what RNPY_DEVICE and RNPY_DEVICE_HOOK are made of
  RNPY_COLOCATION_STACK,  // tuple: what RNPY_COLOCATION is made of
  RNPY_SCOPES
};

// A graph: its names, what new nodes get from the current scopes, and the objects of its nodes.
typedef struct rnpy_graph_t {
  PyObject_HEAD TF_Graph* graph;
  PyObject* names;  // dict: name in lower case -> number of uses
  PyObject* ops;    // list of Operation, in the order of creation
  size_t position;  // for TF_GraphNextOperation: nodes before it have objects
  void** map_keys;  // open addressing: TF_Operation* -> index in |ops|
  int32_t* map_values;
  size_t map_capacity;
  PyObject* scopes[RNPY_SCOPES];  // of the thread |thread|: rnpy_scopes() gives those of the caller
  uint64_t thread;                // PyThreadState_GetID; 0 before the first call
  PyObject* parked;               // dict: thread -> tuple, of threads that are in scopes and wait
  PyObject* fresh;                // tuple: the scopes of a thread that has entered none
  bool is_per_thread;             // otherwise threads share all scopes but names
  PyObject* attributes;  // dict: attribute -> bytes of an AttrValue that every new node gets
  PyObject* op_types;    // dict: op -> {attribute: bytes}: the same for nodes of one op
  PyObject* hook;        // called with each new Operation, or None
  PyObject* capture;     // called with a Tensor of another graph, returns its replacement; or None
  bool is_finalized;
} rnpy_graph_t;

// A line of the program and the calls that led to it. Shared by reference counts, under the
// interpreter's lock.
typedef struct rnpy_call_site_t rnpy_call_site_t;

// Returns the calls in the user's program that led here; NULL if there are none or memory ran out.
// The caller owns a reference. Shares what they have in common with |like|, which may be NULL.
rnpy_call_site_t* rnpy_call_site_now(rnpy_call_site_t* like);
void rnpy_call_site_release(rnpy_call_site_t* site);
// Returns (file, line, function) of one place; [the same of all calls, outermost first], [] for
// NULL.
PyObject* rnpy_call_site_row(const rnpy_call_site_t* site);
PyObject* rnpy_call_site_list(const rnpy_call_site_t* site);

typedef struct rnpy_operation_t {
  PyObject_HEAD TF_Operation* oper;
  rnpy_graph_t* graph;
  PyObject* outputs;       // tuple of Tensor; NULL until first read
  rnpy_call_site_t* site;  // the user's line that created it; NULL if unknown
  int id;
} rnpy_operation_t;

// An output of a node. |op| is NULL for an eager tensor.
typedef struct rnpy_tensor_t {
  PyObject_HEAD rnpy_operation_t* op;
  int index;
  int dtype;
} rnpy_tensor_t;

// The module's state: what Python registers once. There is one interpreter per process.
typedef struct rnpy_state_t {
  PyTypeObject* graph_type;
  PyTypeObject* operation_type;
  PyTypeObject* tensor_type;
  PyTypeObject* buffer_type;
  PyTypeObject* function_type;
  PyTypeObject* session_type;
  PyObject* operation_class;  // the Python classes of the objects
  PyObject* tensor_class;
  PyObject* dtype_class;
  PyObject* dtypes[2 * RNPY_TYPES];  // DType by number; references in the second half
  PyObject* convert;                 // (value, dtype, preferred, name, as_ref) -> Tensor
  PyObject* as_dtype;                // anything -> DType
  PyObject* as_shape;                // anything -> tuple of int or None
  PyObject* as_attr;                 // (kind, value) -> bytes of an AttrValue
  PyObject* make_error;              // (code, message, graph) -> exception
  PyObject* numpy_dtype;             // number -> numpy.dtype
  PyObject* from_numpy;              // (array, number) -> (number, contiguous array)
  PyObject* feed_array;              // (value, number) -> array of that type, converted by NumPy
  PyObject* signature;               // (OpFunction) -> inspect.Signature
  PyObject* documentation;           // (OpFunction) -> str
  PyObject* explain;                 // (OpFunction, {name: value}, error): raises a better error
  PyObject* intercept;               // (OpFunction, args, kwargs): what the function returns
  PyObject* default_graph;           // () -> Graph: the default graph
  PyObject* package;                 // str: the package's folder; files below it are not the user's
  PyObject* ndarray;                 // numpy.ndarray; NULL until NumPy is imported
  PyObject* numpy_dtypes[RNPY_TYPES];
} rnpy_state_t;
extern rnpy_state_t rnpy;

// The graph in which this thread builds nodes, borrowed; Py_None in eager execution.
PyObject* rnpy_current(void);

// module.c. Raises the error of |status|. Returns false if it is OK.
bool rnpy_failed(const TF_Status* status, PyObject* graph);
// The same for errors while building a graph, which are ValueErrors.
bool rnpy_build_failed(const TF_Status* status);
// The calling thread's status, for reuse.
TF_Status* rnpy_status(void);
// Returns the bytes of |buffer| and deletes it.
PyObject* rnpy_take_buffer(TF_Buffer* buffer);

// graph.c
int rnpy_graph_init(PyObject* module);
// Returns a name that is unused in |graph|; with |mark|, reserves it.
PyObject* rnpy_unique_name(rnpy_graph_t* graph, PyObject* name, bool mark);
// Returns the object of |oper|, a new reference.
PyObject* rnpy_operation(rnpy_graph_t* graph, TF_Operation* oper);
// Returns output |index| of |op|, a new reference.
PyObject* rnpy_output(PyObject* op, int index);
PyObject* rnpy_edge(rnpy_graph_t* graph, TF_Output output);
// Creates the objects of nodes that the library added (imports, gradients).
int rnpy_graph_sync(rnpy_graph_t* graph);
// Drops the objects of nodes that the library removed after a failure.
int rnpy_graph_rewind(rnpy_graph_t* graph);
static inline bool rnpy_is_tensor(PyObject* object) {
  return PyObject_TypeCheck(object, rnpy.tensor_type) && ((rnpy_tensor_t*)object)->op;
}
static inline bool rnpy_is_operation(PyObject* object) {
  return PyObject_TypeCheck(object, rnpy.operation_type);
}
static inline TF_Output rnpy_tf_output(PyObject* tensor) {
  const rnpy_tensor_t* t = (const rnpy_tensor_t*)tensor;
  return (TF_Output){t->op->oper, t->index};
}
// graph_scopes.c
// Returns the scopes in which the calling thread is, an array of RNPY_SCOPES borrowed objects that
// is valid until another thread runs. NULL if memory is short.
PyObject** rnpy_scopes(rnpy_graph_t* graph);
int rnpy_scopes_init(rnpy_graph_t* graph);
int rnpy_scopes_traverse(rnpy_graph_t* graph, visitproc visit, void* arg);
void rnpy_scopes_clear(rnpy_graph_t* graph);
// Scopes as attributes of a Graph; |which| is a number of the enum.
PyObject* rnpy_get_scope(rnpy_graph_t* graph, void* which);
int rnpy_set_scope(rnpy_graph_t* graph, PyObject* value, void* which);
// _share_no_scopes(): from now on each thread has scopes of its own.
PyObject* rnpy_share_no_scopes(rnpy_graph_t* graph, PyObject* unused);
// Applies the scopes of |graph| to a description: device, control inputs, colocation.
// |inputs| are the edges it reads.
int rnpy_apply_scopes(rnpy_graph_t* graph, TF_OperationDescription* desc, PyObject* op_type,
                      const TF_Output* inputs, int count);
// Finishes the description. Returns the new Operation, after the scopes and the hook saw it.
PyObject* rnpy_finish(rnpy_graph_t* graph, TF_OperationDescription* desc);
// Discards a description; the Python exception stays set.
void rnpy_abandon(TF_OperationDescription* desc);

// value.c
int rnpy_value_init(PyObject* module);
// Converts numbers, strings, nested lists and arrays to a tensor. |dtype| 0: inferred from |value|.
// With |may_share|, an aligned array is not copied and must not change while the tensor lives.
TF_Tensor* rnpy_to_tensor(PyObject* value, int dtype, bool may_share);
// Returns an array, a NumPy scalar or bytes. Takes ownership of |tensor|.
PyObject* rnpy_from_tensor(TF_Tensor* tensor);
// Releases arrays whose tensors were freed on threads without the interpreter lock.
void rnpy_release_pending(void);
int rnpy_dtype_number(PyObject* dtype);  // accepts a DType or anything as_dtype converts
PyObject* rnpy_dtype(int number);        // borrowed

// attrs.c: |kind| is an attribute's type in an OpDef, such as "list(int)".
int rnpy_set_attr(TF_OperationDescription* desc, const char* name, const char* kind,
                  PyObject* value);
PyObject* rnpy_get_attr(rnpy_operation_t* op, const char* name);

// opfunction.c
int rnpy_function_init(PyObject* module);

// session.c
int rnpy_session_init(PyObject* module);

// eager.c, tape.c: eager execution
int rnpy_eager_init(PyObject* module);
int rnpy_tape_init(PyObject* module);

// graph_io.c: GraphDefs, gradients, functions.
// The manager under which this thread's eager ops run, or NULL. Needs the interpreter lock. The
// caller keeps |*out_owner| for as long as it uses the manager: an op may run Python that makes
// another one current.
struct TFE_CancellationManager* rnpy_cancellation(PyObject** out_owner);

extern PyMethodDef rnpy_graph_io_methods[];
extern PyMethodDef rnpy_intercept_methods[];  // opcall.c
extern PyMethodDef rnpy_library_methods[];    // function_library.c

// py_func.c: Python functions as ops. records.c: checksums.
extern PyMethodDef rnpy_py_func_methods[];
extern PyMethodDef rnpy_record_methods[];
extern PyMethodDef rnpy_file_methods[];
extern PyMethodDef rnpy_cluster_methods[];
extern PyMethodDef rnpy_cancel_methods[];

#endif  // RUNNEL_PYTHON_CORE_H_

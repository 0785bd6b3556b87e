// The room under the Python client: types and calls over the C API where cost per node or per step
// counts. What the pieces share.
//
// Everything here is called with the interpreter's lock held, unless it says otherwise. Functions
// that return a PyObject* or a pointer answer NULL with a Python exception set; those that return
// int answer -1. NumPy's headers are not used: arrays come in by the buffer protocol, and go out
// as memory that numpy.ndarray is laid over, so one source serves all Pythons from 3.9 on.
#ifndef RUNNEL_PYTHON_CORE_H_
#define RUNNEL_PYTHON_CORE_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <structmember.h>

#include "tensorflow/c/c_api.h"

#define RNPY_TYPES 32  // numbers of TF_DataType end below this
#define RNPY_REF 100   // what a reference type is above its base

// A graph: names, what new nodes get from the scopes around them, and the objects of its nodes.
typedef struct rnpy_graph_t {
  PyObject_HEAD TF_Graph* graph;
  PyObject* names;  // dict: name in lower case -> how often it was asked for
  PyObject* ops;    // list of Operation, in the order they were made
  size_t position;  // of TF_GraphNextOperation: nodes before it have objects
  void** map_keys;  // open addressing: TF_Operation* -> number in |ops|
  int32_t* map_values;
  size_t map_capacity;
  PyObject* name_stack;  // str: the prefix without its last '/'
  PyObject* device;      // str or NULL: what new nodes ask for
  PyObject* controls;    // list of (tuple of Operation, set of Operation made inside)
  PyObject* colocation;  // tuple of bytes, "loc:@name"; may be empty
  PyObject* attributes;  // dict: attribute -> bytes of an AttrValue that every new node gets
  PyObject* op_types;    // dict: op -> {attribute: bytes}: the same for nodes of one op
  PyObject* hook;        // called with each new Operation; None: nobody is
  PyObject* capture;     // called with a Tensor of another graph: what to read in its place; None
  bool is_finalized;
} rnpy_graph_t;

typedef struct rnpy_operation_t {
  PyObject_HEAD TF_Operation* oper;
  rnpy_graph_t* graph;
  PyObject* outputs;  // tuple of Tensor; NULL until asked for
  PyObject* code;     // the code object of the user's line that made it; NULL: unknown
  int line;
  int id;
} rnpy_operation_t;

// An output of a node. A tensor of eager execution has no |op|.
typedef struct rnpy_tensor_t {
  PyObject_HEAD rnpy_operation_t* op;
  int index;
  int dtype;
} rnpy_tensor_t;

// What Python tells this module once, and what it keeps for all. One interpreter a process.
typedef struct rnpy_state_t {
  PyTypeObject* graph_type;
  PyTypeObject* operation_type;
  PyTypeObject* tensor_type;
  PyTypeObject* buffer_type;
  PyTypeObject* function_type;
  PyTypeObject* session_type;
  PyObject* operation_class;  // the Python classes that objects are made of
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
  PyObject* feed_array;              // (value, number) -> array of that type, as NumPy bends it
  PyObject* signature;               // (OpFunction) -> inspect.Signature
  PyObject* documentation;           // (OpFunction) -> str
  PyObject* default_graph;           // () -> Graph: where nothing else is said
  PyObject* package;                 // str: files below are not the user's
  PyObject* ndarray;                 // numpy.ndarray; NULL: not imported yet
  PyObject* numpy_dtypes[RNPY_TYPES];
} rnpy_state_t;
extern rnpy_state_t rnpy;

// The graph that nodes are built in on this thread, borrowed; Py_None for eager execution.
PyObject* rnpy_current(void);

// module.c. Raises what |status| says; false if it is OK.
bool rnpy_failed(const TF_Status* status, PyObject* graph);
// The same for errors of building, which are ValueErrors.
bool rnpy_build_failed(const TF_Status* status);
// A status of the calling thread's, kept for reuse.
TF_Status* rnpy_status(void);
// Interns and steals nothing: the buffer's bytes, which is deleted.
PyObject* rnpy_take_buffer(TF_Buffer* buffer);

// graph.c
int rnpy_graph_init(PyObject* module);
// A name that is new in |graph|; |mark|: it is taken from now on.
PyObject* rnpy_unique_name(rnpy_graph_t* graph, PyObject* name, bool mark);
// The object of |oper|, a new reference.
PyObject* rnpy_operation(rnpy_graph_t* graph, TF_Operation* oper);
// Output |index| of |op|, a new reference.
PyObject* rnpy_output(PyObject* op, int index);
PyObject* rnpy_edge(rnpy_graph_t* graph, TF_Output output);
// Objects for nodes that were added from below (imports, gradients).
int rnpy_graph_sync(rnpy_graph_t* graph);
// Forgets objects whose nodes were taken back after a failure below.
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
// What a description gets from the scopes of |graph|: device, control inputs, colocation.
// |inputs| are the edges it reads.
int rnpy_apply_scopes(rnpy_graph_t* graph, TF_OperationDescription* desc, PyObject* op_type,
                      const TF_Output* inputs, int count);
// Ends the description; the new Operation, after the scopes and the hook have seen it.
PyObject* rnpy_finish(rnpy_graph_t* graph, TF_OperationDescription* desc);
// Ends a description that is not to become a node; the Python exception stays.
void rnpy_abandon(TF_OperationDescription* desc);

// value.c
int rnpy_value_init(PyObject* module);
// A tensor of |value|: numbers, strings, nested lists, arrays. |dtype| 0: what the value says.
// |may_share|: an aligned array is not copied, and must not change while the tensor lives.
TF_Tensor* rnpy_to_tensor(PyObject* value, int dtype, bool may_share);
// An array (a scalar: a NumPy scalar; strings: bytes) that owns |tensor|, which is taken.
PyObject* rnpy_from_tensor(TF_Tensor* tensor);
// Lets go of arrays whose tensors have died on threads without the interpreter's lock.
void rnpy_release_pending(void);
int rnpy_dtype_number(PyObject* dtype);  // a DType, or what makes one
PyObject* rnpy_dtype(int number);        // borrowed

// attrs.c: |kind| is the text of an OpDef ("list(int)").
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
extern PyMethodDef rnpy_graph_io_methods[];

// py_func.c: functions in Python as ops. records.c: check sums.
extern PyMethodDef rnpy_py_func_methods[];
extern PyMethodDef rnpy_record_methods[];

#endif  // RUNNEL_PYTHON_CORE_H_

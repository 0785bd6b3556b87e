// What an op's function knows of its op, for those that call it: graphs (opcall.c) and eager
// execution (eager.c).
#ifndef RUNNEL_PYTHON_OPFUNCTION_H_
#define RUNNEL_PYTHON_OPFUNCTION_H_

#include "core.h"
#include "tensorflow/c/eager/c_api.h"

#define RNPY_MOST_PARAMS 64
#define RNPY_MOST_ATTRS 64

typedef struct rnpy_arg_t {
  PyObject* name;
  int dtype;        // 0: an attribute says it
  int type_attr;    // number of the attribute; -1: none
  int number_attr;  // likewise: the argument is a list
  int list_attr;    // likewise, of mixed types
  bool is_ref;
} rnpy_arg_t;

typedef struct rnpy_attr_t {
  PyObject* name;
  const char* text;  // of |name|
  char kind[16];
  int default_type;  // 0: none
  uint64_t allowed;  // types, a bit for each number; 0: any
  bool has_default;
  bool is_inferred;  // from the inputs
} rnpy_attr_t;

typedef struct rnpy_function_t {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* op;          // str
  const char* op_text;   // of |op|
  PyObject* definition;  // bytes: the OpDef
  PyObject* result;      // what several outputs are put in; NULL: not made yet
  PyObject* dict;
  int input_count, output_count, attr_count, param_count;
  rnpy_arg_t* inputs;
  rnpy_arg_t* outputs;
  rnpy_attr_t* attrs;
  PyObject** params;  // names, in order; the last is "name"
  int* param_attr;    // attribute of a parameter; -1: an input
  bool is_stateful;
} rnpy_function_t;

// opdef.c: arguments, attributes and parameters as |definition| has them; |renamed| (or NULL) are
// parameters that Python calls otherwise: {the definition's name: Python's}.
int rnpy_read_definition(rnpy_function_t* f, PyObject* renamed);
void rnpy_free_definition(rnpy_function_t* f);

// opcall.c: adds a node; a tensor, a list or a named tuple of them, or the Operation. In eager
// execution, runs the op.
PyObject* rnpy_graph_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names);
// (graph, inputs, attrs, name): the Operation, of flat inputs and a dict of attributes.
PyObject* rnpy_graph_create(rnpy_function_t* f, PyObject* args);
// Sorts what a call gave into |values|, one for each parameter, borrowed; NULL: not given.
int rnpy_bind(const rnpy_function_t* f, PyObject* const* args, Py_ssize_t count, PyObject* names,
              PyObject** values);
// Whether |value| is one for an attribute; 0: its default stands. -1 with an exception: it has
// none.
int rnpy_is_given(const rnpy_function_t* f, const rnpy_attr_t* attr, PyObject* value);
// A named tuple of the outputs' names, borrowed.
PyObject* rnpy_result_type(rnpy_function_t* f);

// eager.c: runs the op; a tensor, a list or a named tuple of them, or None.
PyObject* rnpy_eager_call(rnpy_function_t* f, PyObject* const* args, Py_ssize_t count,
                          PyObject* names);
// attrs.c: as rnpy_set_attr, for an op that is about to run.
int rnpy_set_eager_attr(TFE_Op* op, const char* name, const char* kind, PyObject* value);

// Eager tensors: a handle. eager.c keeps the context, tape.c the tapes.
typedef struct rnpy_eager_t {
  rnpy_tensor_t base;
  TFE_TensorHandle* handle;
} rnpy_eager_t;
extern PyTypeObject* rnpy_eager_type;
TFE_Context* rnpy_context(void);  // NULL with an exception: eager execution has not begun
// A tensor of |handle|, which is taken, also on failure.
PyObject* rnpy_eager_tensor(TFE_TensorHandle* handle);
static inline bool rnpy_is_eager(PyObject* object) {
  return PyObject_TypeCheck(object, rnpy_eager_type) && ((rnpy_eager_t*)object)->handle;
}

#endif  // RUNNEL_PYTHON_OPFUNCTION_H_

// What an op's function knows about its op; used by graphs (opcall.c) and eager execution
// (eager.c).
#ifndef RUNNEL_PYTHON_OPFUNCTION_H_
#define RUNNEL_PYTHON_OPFUNCTION_H_

#include "core.h"
#include "tensorflow/c/eager/c_api.h"

#define RNPY_MOST_PARAMS 64
#define RNPY_MOST_ATTRS 64

typedef struct rnpy_arg_t {
  PyObject* name;
  int dtype;        // 0 if an attribute determines it
  int type_attr;    // index of the attribute; -1 if none
  int number_attr;  // the same, if the argument is a list
  int list_attr;    // the same, for a list of mixed types
  bool is_ref;
} rnpy_arg_t;

typedef struct rnpy_attr_t {
  PyObject* name;
  const char* text;  // UTF-8 of |name|
  char kind[16];
  int default_type;  // 0 if none
  uint64_t allowed;  // bit set of type numbers; 0 for any
  bool has_default;
  bool is_inferred;  // whether the inputs determine it
} rnpy_attr_t;

typedef struct rnpy_function_t {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* op;          // str
  const char* op_text;   // UTF-8 of |op|
  PyObject* definition;  // bytes: the OpDef
  PyObject* result;      // class of the tuple of several outputs; NULL until first used
  PyObject* dict;
  int input_count, output_count, attr_count, param_count;
  rnpy_arg_t* inputs;
  rnpy_arg_t* outputs;
  rnpy_attr_t* attrs;
  PyObject** params;  // names, in order; the last is "name"
  int* param_attr;    // attribute of a parameter; -1 for an input
  bool is_stateful;
} rnpy_function_t;

// opdef.c: reads arguments, attributes and parameters from |definition|. |renamed| (or NULL) is
// {name in the definition: name in Python}.
int rnpy_read_definition(rnpy_function_t* f, PyObject* renamed);
void rnpy_free_definition(rnpy_function_t* f);

// opcall.c: adds a node, or runs the op in eager execution. Returns a tensor, a list or a named
// tuple of them, or the Operation.
PyObject* rnpy_graph_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* names);
// (graph, inputs, attrs, name): adds a node from flat inputs and a dict of attributes.
PyObject* rnpy_graph_create(rnpy_function_t* f, PyObject* args);
// Binds a call's arguments to |values|, one per parameter, borrowed; NULL if not given.
int rnpy_bind(const rnpy_function_t* f, PyObject* const* args, Py_ssize_t count, PyObject* names,
              PyObject** values);
// Returns 1 if |value| sets an attribute, 0 if its default applies, -1 with an exception if it has
// no default.
int rnpy_is_given(const rnpy_function_t* f, const rnpy_attr_t* attr, PyObject* value);
// Returns the named tuple class of the outputs' names, borrowed.
PyObject* rnpy_result_type(rnpy_function_t* f);

// eager.c: runs the op. Returns a tensor, a list or a named tuple of them, or None.
PyObject* rnpy_eager_call(rnpy_function_t* f, PyObject* const* args, Py_ssize_t count,
                          PyObject* names);
// attrs.c: like rnpy_set_attr, for an op that is about to run.
int rnpy_set_eager_attr(TFE_Op* op, const char* name, const char* kind, PyObject* value);

// An eager tensor wraps a handle. eager.c has the context, tape.c the tapes.
typedef struct rnpy_eager_t {
  rnpy_tensor_t base;
  TFE_TensorHandle* handle;
} rnpy_eager_t;
extern PyTypeObject* rnpy_eager_type;
TFE_Context* rnpy_context(void);  // NULL with an exception if eager execution is not enabled
// Returns a tensor of |handle|. Takes ownership of it, also on failure.
PyObject* rnpy_eager_tensor(TFE_TensorHandle* handle);
static inline bool rnpy_is_eager(PyObject* object) {
  return PyObject_TypeCheck(object, rnpy_eager_type) && ((rnpy_eager_t*)object)->handle;
}

#endif  // RUNNEL_PYTHON_OPFUNCTION_H_

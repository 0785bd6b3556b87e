// Where the program creates nodes: the calls that led to a node, outside of this package.
//
// Nodes that are created one after another share what their calls have in common, so a node needs
// one or two rows.

#include "core.h"

#include <frameobject.h>
#include <string.h>

enum { MOST_CALLS = 32 };

struct rnpy_call_site_t {
  size_t references;
  PyObject* code;  // the code object of the function
  int position;    // in the function: see position_of
  rnpy_call_site_t* caller;
};

// The place in the function: of the instruction, whose line is looked up when it is read; before
// Python 3.11 the line.
static int position_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}

static int line_of(const rnpy_call_site_t* site) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyCode_Addr2Line((PyCodeObject*)site->code, site->position);
#else
  return site->position;
#endif
}

static bool is_of_package(PyCodeObject* code) {
  Py_ssize_t prefix_size;
  const char* prefix = rnpy.package ? PyUnicode_AsUTF8AndSize(rnpy.package, &prefix_size) : NULL;
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  return !file || (prefix && strncmp(file, prefix, (size_t)prefix_size) == 0);
}

// Fills |codes| (owned) and |positions| with the calls, innermost first. Returns their number.
static int current_calls(PyObject** codes, int* positions) {
  int count = 0;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame && count < MOST_CALLS) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (is_of_package(code)) {
      Py_DECREF(code);
    } else {
      codes[count] = (PyObject*)code;
      positions[count++] = position_of(frame);
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return count;
}

// Finds the longest chain of |like| that ends, outermost, like the |count| calls. Returns it, and
// how many calls it has.
static rnpy_call_site_t* shared_chain(rnpy_call_site_t* like, PyObject** codes,
                                      const int* positions, int count, int* out_shared) {
  rnpy_call_site_t* chain[MOST_CALLS];
  int size = 0;
  for (; like; like = like->caller) chain[size++] = like;
  int shared = 0;
  while (shared < size && shared < count &&
         chain[size - 1 - shared]->code == codes[count - 1 - shared] &&
         chain[size - 1 - shared]->position == positions[count - 1 - shared])
    ++shared;
  *out_shared = shared;
  return shared ? chain[size - shared] : NULL;
}

rnpy_call_site_t* rnpy_call_site_now(rnpy_call_site_t* like) {
  PyObject* codes[MOST_CALLS];
  int positions[MOST_CALLS], shared;
  int count = current_calls(codes, positions);
  rnpy_call_site_t* site = shared_chain(like, codes, positions, count, &shared);
  if (site) ++site->references;
  for (int i = count - shared - 1; i >= 0; --i) {
    rnpy_call_site_t* inner = PyMem_Malloc(sizeof *inner);
    if (!inner) {
      rnpy_call_site_release(site);
      site = NULL;
      break;
    }
    Py_INCREF(codes[i]);
    *inner = (rnpy_call_site_t){
        .references = 1, .code = codes[i], .position = positions[i], .caller = site};
    site = inner;
  }
  for (int i = 0; i < count; ++i) Py_DECREF(codes[i]);
  return site;
}

void rnpy_call_site_release(rnpy_call_site_t* site) {
  while (site && --site->references == 0) {
    rnpy_call_site_t* caller = site->caller;
    Py_DECREF(site->code);
    PyMem_Free(site);
    site = caller;
  }
}

PyObject* rnpy_call_site_row(const rnpy_call_site_t* site) {
  PyCodeObject* code = (PyCodeObject*)site->code;
  return Py_BuildValue("OiO", code->co_filename, line_of(site), code->co_name);
}

PyObject* rnpy_call_site_list(const rnpy_call_site_t* site) {
  PyObject* rows = PyList_New(0);
  for (; rows && site; site = site->caller) {
    PyObject* row = rnpy_call_site_row(site);
    if (!row || PyList_Append(rows, row) < 0) Py_CLEAR(rows);
    Py_XDECREF(row);
  }
  if (rows && PyList_Reverse(rows) < 0) Py_CLEAR(rows);
  return rows;
}

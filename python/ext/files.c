// Files of any file system that the library knows: those of plug-ins, by the scheme of the path.
#include "core.h"
#include "tensorflow/c/env.h"

// file_stat(path): (bytes, nanoseconds since 1970, is_directory).
static PyObject* file_stat(PyObject* self, PyObject* arg) {
  (void)self;
  const char* path = PyUnicode_AsUTF8(arg);
  if (!path) return NULL;
  TF_FileStatistics found = {0};
  TF_Status* status = rnpy_status();
  TF_FileStat(path, &found, status);
  if (rnpy_failed(status, NULL)) return NULL;
  return Py_BuildValue("(LLO)", (long long)found.length, (long long)found.mtime_nsec,
                       found.is_directory ? Py_True : Py_False);
}

static PyObject* file_names(PyObject* self, PyObject* arg) {
  (void)self;
  const char* path = PyUnicode_AsUTF8(arg);
  if (!path) return NULL;
  TF_Status* status = rnpy_status();
  TF_StringStream* stream = TF_GetChildren(path, status);
  PyObject* list = rnpy_failed(status, NULL) ? NULL : PyList_New(0);
  const char* name;
  while (list && TF_StringStreamNext(stream, &name)) {
    PyObject* text = PyUnicode_DecodeFSDefault(name);
    if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  TF_StringStreamDone(stream);
  return list;
}

// Calls a function that takes a path.
static PyObject* call(PyObject* arg, void (*function)(const char* path, TF_Status* status)) {
  const char* path = PyUnicode_AsUTF8(arg);
  if (!path) return NULL;
  TF_Status* status = rnpy_status();
  function(path, status);
  if (rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* file_make_directory(PyObject* self, PyObject* arg) {
  (void)self;
  return call(arg, TF_CreateDir);
}
static PyObject* file_remove(PyObject* self, PyObject* arg) {
  (void)self;
  return call(arg, TF_DeleteFile);
}

static void remove_tree(const char* path, TF_Status* status) {
  int64_t files, folders;
  TF_DeleteRecursively(path, &files, &folders, status);
}
static PyObject* file_remove_tree(PyObject* self, PyObject* arg) {
  (void)self;
  return call(arg, remove_tree);
}

// file_write(path, bytes): creates or overwrites.
static PyObject* file_write(PyObject* self, PyObject* args) {
  (void)self;
  const char* path;
  Py_buffer data;
  if (!PyArg_ParseTuple(args, "sy*", &path, &data)) return NULL;
  TF_Status* status = rnpy_status();
  TF_WritableFileHandle* file = NULL;
  TF_NewWritableFile(path, &file, status);
  if (TF_GetCode(status) == TF_OK) {
    TF_AppendWritableFile(file, data.buf, (size_t)data.len, status);
    TF_Status* closed = TF_NewStatus();
    TF_CloseWritableFile(file, closed);
    if (TF_GetCode(status) == TF_OK && TF_GetCode(closed) != TF_OK)
      TF_SetStatus(status, TF_GetCode(closed), TF_Message(closed));
    TF_DeleteStatus(closed);
  }
  PyBuffer_Release(&data);
  if (rnpy_failed(status, NULL)) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef rnpy_file_methods[] = {
    {"file_stat", file_stat, METH_O, "Returns (bytes, nanoseconds since 1970, is_directory)."},
    {"file_names", file_names, METH_O, "Returns the names in a folder."},
    {"file_make_directory", file_make_directory, METH_O, "Makes a folder."},
    {"file_remove", file_remove, METH_O, "Removes a file."},
    {"file_remove_tree", file_remove_tree, METH_O, "Removes a folder and its contents."},
    {"file_write", file_write, METH_VARARGS, "Creates or overwrites a file."},
    {NULL, NULL, 0, NULL},
};

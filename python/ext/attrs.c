// Attributes of nodes: from Python values and back.
#include "opfunction.h"
#include "tensorflow/c/eager/c_api_experimental.h"

#define FEW 32

// The memory of a list, on the stack if it is short.
typedef struct room_t {
  int64_t few[FEW];
  void* data;
} room_t;

static void* room_get(room_t* room, Py_ssize_t count, size_t size) {
  room->data =
      (size_t)count * size <= sizeof room->few ? room->few : PyMem_Malloc((size_t)count * size);
  if (!room->data) PyErr_NoMemory();
  return room->data;
}
static void room_free(room_t* room) {
  if (room->data != room->few) PyMem_Free(room->data);
}

static int text_of(PyObject* value, const char** out, Py_ssize_t* out_size) {
  if (PyBytes_Check(value)) {
    *out = PyBytes_AS_STRING(value);
    *out_size = PyBytes_GET_SIZE(value);
    return 0;
  }
  if (PyUnicode_Check(value)) {
    *out = PyUnicode_AsUTF8AndSize(value, out_size);
    return *out ? 0 : -1;
  }
  PyErr_Format(PyExc_TypeError, "Expected a string, got %R", value);
  return -1;
}

static int int_of(PyObject* value, int64_t* out) {
  if (PyFloat_Check(value) || PyUnicode_Check(value)) {
    PyErr_Format(PyExc_TypeError, "Expected an int, got %R", value);
    return -1;
  }
  PyObject* number = PyNumber_Index(value);
  if (!number) {
    PyErr_Clear();
    number = PyNumber_Long(value);
  }
  if (!number) return -1;
  *out = PyLong_AsLongLong(number);
  Py_DECREF(number);
  return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int bool_of(PyObject* value, unsigned char* out) {
  int answer = PyObject_IsTrue(value);
  if (answer < 0) return -1;
  *out = (unsigned char)answer;
  return 0;
}

// Reads a shape; |*out_rank| is -1 if the rank is unknown. |room| holds the dims.
static int shape_of(PyObject* value, room_t* room, int64_t** out, int* out_rank) {
  PyObject* tuple = PyObject_CallOneArg(rnpy.as_shape, value);
  if (!tuple) return -1;
  int outcome = 0;
  if (tuple == Py_None) {
    *out = room->few;
    room->data = room->few;
    *out_rank = -1;
  } else {
    Py_ssize_t rank = PyTuple_GET_SIZE(tuple);
    *out = room_get(room, rank, sizeof(int64_t));
    *out_rank = (int)rank;
    for (Py_ssize_t i = 0; *out && i < rank; ++i) {
      PyObject* dim = PyTuple_GET_ITEM(tuple, i);
      (*out)[i] = dim == Py_None ? -1 : PyLong_AsLongLong(dim);
    }
    outcome = *out && !PyErr_Occurred() ? 0 : -1;
  }
  Py_DECREF(tuple);
  return outcome;
}

// Where an attribute goes: a node's description, or an op that is about to run.
typedef struct target_t {
  TF_OperationDescription* desc;
  TFE_Op* op;
} target_t;

// Both have setters with the same signatures.
#define PUT(to, kind, ...)                       \
  do {                                           \
    if ((to).op) {                               \
      TFE_OpSetAttr##kind((to).op, __VA_ARGS__); \
    } else {                                     \
      TF_SetAttr##kind((to).desc, __VA_ARGS__);  \
    }                                            \
  } while (0)

static int set_tensor(target_t to, const char* name, PyObject* value) {
  TF_Tensor* tensor = rnpy_to_tensor(value, 0, false);
  if (!tensor) return -1;
  if (to.op) {
    TFE_OpSetAttrTensor(to.op, name, tensor, rnpy_status());
  } else {
    TF_SetAttrTensor(to.desc, name, tensor, rnpy_status());
  }
  TF_DeleteTensor(tensor);
  return rnpy_build_failed(rnpy_status()) ? -1 : 0;
}

static int set_func(target_t to, const char* name, PyObject* value) {
  PyObject* text = value;
  Py_INCREF(text);
  if (!PyUnicode_Check(value) && !PyBytes_Check(value)) {
    Py_DECREF(text);
    text = PyObject_GetAttrString(value, "name");
    if (!text) return -1;
  }
  const char* data;
  Py_ssize_t size;
  int outcome = text_of(text, &data, &size);
  if (outcome == 0 && to.op) TFE_OpSetAttrFunctionName(to.op, name, data, (size_t)size);
  if (outcome == 0 && to.desc) TF_SetAttrFuncName(to.desc, name, data, (size_t)size);
  Py_DECREF(text);
  return outcome;
}

static int set_one(target_t to, const char* name, const char* kind, PyObject* value) {
  if (strcmp(kind, "string") == 0) {
    const char* text;
    Py_ssize_t size;
    if (text_of(value, &text, &size) < 0) return -1;
    PUT(to, String, name, text, (size_t)size);
  } else if (strcmp(kind, "int") == 0) {
    int64_t number;
    if (int_of(value, &number) < 0) return -1;
    PUT(to, Int, name, number);
  } else if (strcmp(kind, "float") == 0) {
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) return -1;
    PUT(to, Float, name, (float)number);
  } else if (strcmp(kind, "bool") == 0) {
    unsigned char flag;
    if (bool_of(value, &flag) < 0) return -1;
    PUT(to, Bool, name, flag);
  } else if (strcmp(kind, "type") == 0) {
    int number = rnpy_dtype_number(value);
    if (number < 0) return -1;
    PUT(to, Type, name, (TF_DataType)number);
  } else if (strcmp(kind, "shape") == 0) {
    room_t room;
    int64_t* dims;
    int rank;
    if (shape_of(value, &room, &dims, &rank) < 0) return -1;
    if (to.op) {
      TFE_OpSetAttrShape(to.op, name, dims, rank, rnpy_status());
    } else {
      TF_SetAttrShape(to.desc, name, dims, rank);
    }
    room_free(&room);
  } else if (strcmp(kind, "tensor") == 0) {
    return set_tensor(to, name, value);
  } else {
    return set_func(to, name, value);
  }
  return 0;
}

static int set_strings(target_t to, const char* name, PyObject* list) {
  Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  room_t values_room, lengths_room;
  const void** values = room_get(&values_room, count, sizeof *values);
  size_t* lengths = room_get(&lengths_room, count, sizeof *lengths);
  int outcome = values && lengths ? 0 : -1;
  for (Py_ssize_t i = 0; outcome == 0 && i < count; ++i) {
    const char* text;
    Py_ssize_t size;
    outcome = text_of(PySequence_Fast_GET_ITEM(list, i), &text, &size);
    values[i] = text;
    lengths[i] = (size_t)size;
  }
  if (outcome == 0) PUT(to, StringList, name, values, lengths, (int)count);
  room_free(&values_room);
  room_free(&lengths_room);
  return outcome;
}

static int set_shapes(target_t to, const char* name, PyObject* list) {
  Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  room_t* rooms = PyMem_Calloc((size_t)count + 1, sizeof *rooms);
  int64_t** dims = PyMem_Calloc((size_t)count + 1, sizeof *dims);
  int* ranks = PyMem_Calloc((size_t)count + 1, sizeof *ranks);
  int outcome = rooms && dims && ranks ? 0 : -1;
  Py_ssize_t done = 0;
  for (; outcome == 0 && done < count; ++done)
    outcome =
        shape_of(PySequence_Fast_GET_ITEM(list, done), &rooms[done], &dims[done], &ranks[done]);
  if (outcome == 0 && to.op)
    TFE_OpSetAttrShapeList(to.op, name, (const int64_t**)dims, ranks, (int)count, rnpy_status());
  if (outcome == 0 && to.desc)
    TF_SetAttrShapeList(to.desc, name, (const int64_t* const*)dims, ranks, (int)count);
  for (Py_ssize_t i = 0; i < done; ++i)
    if (rooms[i].data) room_free(&rooms[i]);
  PyMem_Free(rooms);
  PyMem_Free(dims);
  PyMem_Free(ranks);
  return outcome;
}

static int set_numbers(target_t to, const char* name, const char* kind, PyObject* list) {
  Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  room_t room;
  void* values = room_get(&room, count, sizeof(int64_t));
  int outcome = values ? 0 : -1;
  for (Py_ssize_t i = 0; outcome == 0 && i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, i);
    if (*kind == 'i') {
      outcome = int_of(item, (int64_t*)values + i);
    } else if (*kind == 'f') {
      double number = PyFloat_AsDouble(item);
      ((float*)values)[i] = (float)number;
      outcome = number == -1.0 && PyErr_Occurred() ? -1 : 0;
    } else if (*kind == 'b') {
      outcome = bool_of(item, (unsigned char*)values + i);
    } else {
      int number = rnpy_dtype_number(item);
      ((TF_DataType*)values)[i] = (TF_DataType)number;
      outcome = number < 0 ? -1 : 0;
    }
  }
  if (outcome == 0) {
    if (*kind == 'i') PUT(to, IntList, name, values, (int)count);
    if (*kind == 'f') PUT(to, FloatList, name, values, (int)count);
    if (*kind == 'b') PUT(to, BoolList, name, values, (int)count);
    if (*kind == 't') PUT(to, TypeList, name, values, (int)count);
  }
  room_free(&room);
  return outcome;
}

// The rarer kinds (lists of functions and tensors) are made by Python, as an AttrValue.
static int set_proto(target_t to, const char* name, const char* kind, PyObject* value) {
  PyObject* bytes = PyObject_CallFunction(rnpy.as_attr, "sO", kind, value);
  if (!bytes) return -1;
  char* data;
  Py_ssize_t size;
  int outcome = PyBytes_AsStringAndSize(bytes, &data, &size);
  if (outcome == 0) {
    if (to.op) {
      TFE_OpSetAttrValueProto(to.op, name, data, (size_t)size, rnpy_status());
    } else {
      TF_SetAttrValueProto(to.desc, name, data, (size_t)size, rnpy_status());
    }
    outcome = rnpy_build_failed(rnpy_status()) ? -1 : 0;
  }
  Py_DECREF(bytes);
  return outcome;
}

static int set_list(target_t to, const char* name, const char* kind, PyObject* value) {
  if (PyUnicode_Check(value) || PyBytes_Check(value)) {
    PyErr_Format(PyExc_TypeError, "Expected a list, got %R", value);
    return -1;
  }
  PyObject* list = PySequence_Fast(value, "Expected a list");
  if (!list) return -1;
  int outcome;
  if (strncmp(kind, "string", 6) == 0) {
    outcome = set_strings(to, name, list);
  } else if (strncmp(kind, "shape", 5) == 0) {
    outcome = set_shapes(to, name, list);
  } else {
    outcome = set_numbers(to, name, kind, list);
  }
  Py_DECREF(list);
  return outcome;
}

static int set_attr(target_t to, const char* name, const char* kind, PyObject* value) {
  int outcome;
  if (strcmp(kind, "list(func)") == 0 || strcmp(kind, "list(tensor)") == 0 ||
      PyObject_HasAttrString(value, "SerializeToString")) {
    outcome = set_proto(to, name, kind, value);
  } else if (strncmp(kind, "list(", 5) == 0) {
    outcome = set_list(to, name, kind + 5, value);
  } else {
    outcome = set_one(to, name, kind, value);
  }
  if (outcome < 0 && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_Format(PyExc_TypeError, "Attribute '%s' (%s): %S", name, kind, error ? error : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
  }
  return outcome;
}

int rnpy_set_attr(TF_OperationDescription* desc, const char* name, const char* kind,
                  PyObject* value) {
  return set_attr((target_t){.desc = desc}, name, kind, value);
}

int rnpy_set_eager_attr(TFE_Op* op, const char* name, const char* kind, PyObject* value) {
  return set_attr((target_t){.op = op}, name, kind, value);
}

// --- Reading

static PyObject* dtype_object(int number) {
  PyObject* dtype = rnpy_dtype(number);
  Py_XINCREF(dtype);
  return dtype;
}

static PyObject* get_text(rnpy_operation_t* op, const char* name, const TF_AttrMetadata* meta) {
  size_t size = (size_t)meta->total_size;
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
  if (bytes)
    TF_OperationGetAttrString(op->oper, name, PyBytes_AS_STRING(bytes), size, rnpy_status());
  return bytes;
}

static PyObject* get_one(rnpy_operation_t* op, const char* name, const TF_AttrMetadata* meta) {
  TF_Status* status = rnpy_status();
  switch (meta->type) {
    case TF_ATTR_STRING:
      return get_text(op, name, meta);
    case TF_ATTR_INT: {
      int64_t value = 0;
      TF_OperationGetAttrInt(op->oper, name, &value, status);
      return PyLong_FromLongLong(value);
    }
    case TF_ATTR_FLOAT: {
      float value = 0;
      TF_OperationGetAttrFloat(op->oper, name, &value, status);
      return PyFloat_FromDouble(value);
    }
    case TF_ATTR_BOOL: {
      unsigned char value = 0;
      TF_OperationGetAttrBool(op->oper, name, &value, status);
      return PyBool_FromLong(value);
    }
    case TF_ATTR_TYPE: {
      TF_DataType value = TF_FLOAT;
      TF_OperationGetAttrType(op->oper, name, &value, status);
      return dtype_object((int)value);
    }
    default:
      Py_RETURN_NOTIMPLEMENTED;
  }
}

static PyObject* number_at(TF_AttrType type, const void* values, Py_ssize_t i) {
  switch (type) {
    case TF_ATTR_INT:
      return PyLong_FromLongLong(((const int64_t*)values)[i]);
    case TF_ATTR_FLOAT:
      return PyFloat_FromDouble(((const float*)values)[i]);
    case TF_ATTR_BOOL:
      return PyBool_FromLong(((const unsigned char*)values)[i]);
    default:
      return dtype_object((int)((const TF_DataType*)values)[i]);
  }
}

static PyObject* get_list(rnpy_operation_t* op, const char* name, const TF_AttrMetadata* meta) {
  TF_Status* status = rnpy_status();
  int count = (int)meta->list_size;
  room_t room;
  void* values = room_get(&room, count + 1, sizeof(int64_t));
  if (!values) return NULL;
  switch (meta->type) {
    case TF_ATTR_INT:
      TF_OperationGetAttrIntList(op->oper, name, values, count, status);
      break;
    case TF_ATTR_FLOAT:
      TF_OperationGetAttrFloatList(op->oper, name, values, count, status);
      break;
    case TF_ATTR_BOOL:
      TF_OperationGetAttrBoolList(op->oper, name, values, count, status);
      break;
    default:
      TF_OperationGetAttrTypeList(op->oper, name, values, count, status);
      break;
  }
  PyObject* list = PyList_New(count);
  for (Py_ssize_t i = 0; list && i < count; ++i) {
    PyObject* item = number_at(meta->type, values, i);
    if (!item) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, i, item);
    }
  }
  room_free(&room);
  return list;
}

static PyObject* get_texts(rnpy_operation_t* op, const char* name, const TF_AttrMetadata* meta) {
  size_t count = (size_t)meta->list_size, size = (size_t)meta->total_size;
  void** values = PyMem_Calloc(count + 1, sizeof *values);
  size_t* lengths = PyMem_Calloc(count + 1, sizeof *lengths);
  char* storage = PyMem_Malloc(size + 1);
  PyObject* list = values && lengths && storage ? PyList_New((Py_ssize_t)count) : PyErr_NoMemory();
  if (list) {
    TF_OperationGetAttrStringList(op->oper, name, values, lengths, (int)count, storage, size,
                                  rnpy_status());
    if (TF_GetCode(rnpy_status()) != TF_OK) count = 0;
  }
  for (size_t i = 0; list && i < count; ++i) {
    PyObject* text = PyBytes_FromStringAndSize(values[i], (Py_ssize_t)lengths[i]);
    if (!text) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, (Py_ssize_t)i, text);
    }
  }
  PyMem_Free(values);
  PyMem_Free(lengths);
  PyMem_Free(storage);
  return list;
}

// Returns simple values directly; others as a 1-tuple with the bytes of the AttrValue.
PyObject* rnpy_get_attr(rnpy_operation_t* op, const char* name) {
  TF_Status* status = rnpy_status();
  TF_AttrMetadata meta = TF_OperationGetAttrMetadata(op->oper, name, status);
  if (TF_GetCode(status) != TF_OK) {
    PyErr_Format(PyExc_ValueError, "Operation '%s' has no attr named '%s'.",
                 TF_OperationName(op->oper), name);
    return NULL;
  }
  bool is_simple = meta.type == TF_ATTR_INT || meta.type == TF_ATTR_FLOAT ||
                   meta.type == TF_ATTR_BOOL || meta.type == TF_ATTR_TYPE ||
                   meta.type == TF_ATTR_STRING;
  if (is_simple) {
    PyObject* value = !meta.is_list                 ? get_one(op, name, &meta)
                      : meta.type == TF_ATTR_STRING ? get_texts(op, name, &meta)
                                                    : get_list(op, name, &meta);
    if (value && rnpy_failed(status, NULL)) Py_CLEAR(value);
    return value;
  }
  TF_Buffer* buffer = TF_NewBuffer();
  TF_OperationGetAttrValueProto(op->oper, name, buffer, status);
  if (rnpy_failed(status, NULL)) {
    TF_DeleteBuffer(buffer);
    return NULL;
  }
  PyObject* bytes = rnpy_take_buffer(buffer);
  PyObject* tuple = bytes ? PyTuple_Pack(1, bytes) : NULL;
  Py_XDECREF(bytes);
  return tuple;
}

// Values: Python's numbers, strings, nested lists and arrays to tensors and back.
//
// Plain Python values do not need NumPy. Arrays come in through the buffer protocol; what it cannot
// describe (bfloat16, str, objects) goes through a Python function that uses NumPy.
#include "core.h"

#include <complex.h>
#include <math.h>
#include <stdatomic.h>

#include "runnel/session.h"

// --- Types

PyObject* rnpy_dtype(int number) {
  int place = number >= RNPY_REF ? number - RNPY_REF + RNPY_TYPES : number;
  PyObject* dtype = place >= 0 && place < 2 * RNPY_TYPES ? rnpy.dtypes[place] : NULL;
  if (!dtype) PyErr_Format(PyExc_TypeError, "There is no type with number %d", number);
  return dtype;
}

int rnpy_dtype_number(PyObject* dtype) {
  PyObject* known = dtype;
  Py_INCREF(known);
  if ((PyObject*)Py_TYPE(dtype) != rnpy.dtype_class) {
    Py_DECREF(known);
    known = PyObject_CallOneArg(rnpy.as_dtype, dtype);
    if (!known) return -1;
  }
  PyObject* number = PyObject_GetAttrString(known, "_number");
  Py_DECREF(known);
  if (!number) return -1;
  long value = PyLong_AsLong(number);
  Py_DECREF(number);
  return (int)value;
}

static bool is_integer(int dtype) {
  switch (dtype) {
    case TF_INT8:
    case TF_UINT8:
    case TF_INT16:
    case TF_UINT16:
    case TF_INT32:
    case TF_UINT32:
    case TF_INT64:
    case TF_UINT64:
    case TF_QINT8:
    case TF_QUINT8:
    case TF_QINT16:
    case TF_QUINT16:
    case TF_QINT32:
      return true;
    default:
      return false;
  }
}
static bool is_real(int dtype) {
  return dtype == TF_FLOAT || dtype == TF_DOUBLE || dtype == TF_HALF || dtype == TF_BFLOAT16;
}
static bool is_complex(int dtype) { return dtype == TF_COMPLEX64 || dtype == TF_COMPLEX128; }

// --- Memory lent by Python objects
//
// A tensor over an array's memory may be freed on any thread, but releasing the array needs the
// interpreter lock. So the array goes to a list, which is emptied when the lock is held anyway.

typedef struct lent_t {
  Py_buffer view;
  struct lent_t* next;
} lent_t;

static _Atomic(lent_t*) pending;

static void give_back(void* data, size_t size, void* arg) {
  (void)data, (void)size;
  lent_t* lent = arg;
  lent->next = atomic_load_explicit(&pending, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&pending, &lent->next, lent, memory_order_release,
                                                memory_order_relaxed)) {
  }
}

void rnpy_release_pending(void) {
  if (!atomic_load_explicit(&pending, memory_order_relaxed)) return;
  lent_t* lent = atomic_exchange_explicit(&pending, NULL, memory_order_acquire);
  while (lent) {
    lent_t* next = lent->next;
    PyBuffer_Release(&lent->view);
    PyMem_Free(lent);
    lent = next;
  }
}

// --- Numbers into memory

static uint16_t to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {  // subnormal in half precision: an addition rounds it
    float shifted;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    uint32_t rounded;
    memcpy(&rounded, &shifted, sizeof rounded);
    return (uint16_t)(sign | (rounded - 0x3F000000u));
  }
  magnitude += 0xC8000FFFu + (magnitude >> 13 & 1);
  return (uint16_t)(sign | magnitude >> 13);
}

static uint16_t to_bfloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static int wrong_type(PyObject* value, int dtype) {
  PyObject* name = rnpy_dtype(dtype) ? PyObject_GetAttrString(rnpy_dtype(dtype), "name") : NULL;
  if (name) {
    if (rnpy_current() == Py_None) {
      PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %U", value, name);
    } else if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError, "Expected %U, but got %S of type '%s'.", name, value,
                   Py_TYPE(value)->tp_name);
    }
    Py_DECREF(name);
  }
  return -1;
}

static int out_of_range(PyObject* value, int dtype) {
  PyErr_Clear();
  PyObject* name = PyObject_GetAttrString(rnpy_dtype(dtype), "name");
  if (name) {
    PyErr_Format(PyExc_ValueError, "Python integer %R is out of bounds for %U", value, name);
    Py_DECREF(name);
  }
  return -1;
}

#define STORE(type, low, high)                                                \
  do {                                                                        \
    if (number < (low) || number > (high)) return out_of_range(value, dtype); \
    *(type*)place = (type)number;                                             \
    return 0;                                                                 \
  } while (0)

static int store_integer(PyObject* value, int dtype, void* place) {
  if (dtype == TF_UINT64) {
    *(uint64_t*)place = PyLong_AsUnsignedLongLong(value);
    return PyErr_Occurred() ? out_of_range(value, dtype) : 0;
  }
  long long number = PyLong_AsLongLong(value);
  if (number == -1 && PyErr_Occurred()) return out_of_range(value, dtype);
  switch (dtype) {
    case TF_INT8:
    case TF_QINT8:
      STORE(int8_t, INT8_MIN, INT8_MAX);
    case TF_UINT8:
    case TF_QUINT8:
      STORE(uint8_t, 0, UINT8_MAX);
    case TF_INT16:
    case TF_QINT16:
      STORE(int16_t, INT16_MIN, INT16_MAX);
    case TF_UINT16:
    case TF_QUINT16:
      STORE(uint16_t, 0, UINT16_MAX);
    case TF_INT32:
    case TF_QINT32:
      STORE(int32_t, INT32_MIN, INT32_MAX);
    case TF_UINT32:
      STORE(uint32_t, 0, UINT32_MAX);
    default:
      *(int64_t*)place = number;
      return 0;
  }
}

static int store_real(double number, int dtype, void* place) {
  uint16_t bits;
  switch (dtype) {
    case TF_FLOAT:
      *(float*)place = (float)number;
      break;
    case TF_DOUBLE:
      *(double*)place = number;
      break;
    case TF_HALF:
      bits = to_half((float)number);
      memcpy(place, &bits, 2);
      break;
    default:
      bits = to_bfloat16((float)number);
      memcpy(place, &bits, 2);
      break;
  }
  return 0;
}

static int store_complex(PyObject* value, int dtype, void* place) {
  Py_complex number = PyComplex_AsCComplex(value);
  if (number.real == -1.0 && PyErr_Occurred()) return -1;
  if (dtype == TF_COMPLEX64) {
    float parts[2] = {(float)number.real, (float)number.imag};
    memcpy(place, parts, sizeof parts);
  } else {
    memcpy(place, &number, sizeof number);
  }
  return 0;
}

static int store_string(PyObject* value, void* place) {
  const char* text;
  Py_ssize_t size;
  if (PyBytes_Check(value)) {
    text = PyBytes_AS_STRING(value);
    size = PyBytes_GET_SIZE(value);
  } else if (PyUnicode_Check(value)) {
    text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) return -1;
  } else {
    return wrong_type(value, TF_STRING);
  }
  TF_StringCopy(place, text, (size_t)size);
  return 0;
}

// Writes one element. Numbers of the wrong kind are an error; bools are 1 or 0.
static int store(PyObject* value, int dtype, void* place) {
  if (dtype == TF_STRING) return store_string(value, place);
  if (dtype == TF_BOOL) {
    if (!PyBool_Check(value)) return wrong_type(value, dtype);
    *(uint8_t*)place = value == Py_True;
    return 0;
  }
  if (is_integer(dtype)) {
    return PyLong_Check(value) ? store_integer(value, dtype, place) : wrong_type(value, dtype);
  }
  if (is_real(dtype)) {
    if (!PyFloat_Check(value) && !PyLong_Check(value)) return wrong_type(value, dtype);
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) return -1;
    return store_real(number, dtype, place);
  }
  if (is_complex(dtype)) {
    if (!PyComplex_Check(value) && !PyFloat_Check(value) && !PyLong_Check(value))
      return wrong_type(value, dtype);
    return store_complex(value, dtype, place);
  }
  return wrong_type(value, dtype);
}

// --- Nested lists

#define MAX_RANK 32

typedef struct nest_t {
  int rank;
  int64_t dims[MAX_RANK];
  int dtype;  // what the elements are: TF_BOOL, INT32, INT64, FLOAT, COMPLEX128, STRING; 0: none
  bool is_foreign;  // contains something that needs NumPy
} nest_t;

static bool is_list(PyObject* value) { return PyList_Check(value) || PyTuple_Check(value); }

static PyObject* item_of(PyObject* list, Py_ssize_t i) {
  return PyList_Check(list) ? PyList_GET_ITEM(list, i) : PyTuple_GET_ITEM(list, i);
}

static int rank_of(PyObject* type_a, int dtype) {
  (void)type_a;
  switch (dtype) {
    case 0:
      return 0;
    case TF_INT32:
      return 1;
    case TF_INT64:
      return 2;
    case TF_UINT64:
      return 3;
    case TF_FLOAT:
      return 4;
    case TF_COMPLEX128:
      return 5;
    default:
      return -1;
  }
}

// Combines the type of an element with those before; mixed kinds are an error.
static int join(nest_t* nest, PyObject* value, int dtype) {
  if (nest->dtype == dtype || !nest->dtype) {
    nest->dtype = dtype;
    return 0;
  }
  int a = rank_of(NULL, nest->dtype), b = rank_of(NULL, dtype);
  if (a < 0 || b < 0) {
    return wrong_type(value, nest->dtype);
  }
  if (b > a) nest->dtype = dtype;
  return 0;
}

static int kind_of(PyObject* value) {
  if (PyBool_Check(value)) return TF_BOOL;
  if (PyFloat_CheckExact(value)) return TF_FLOAT;
  if (PyLong_CheckExact(value)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return TF_UINT64;
    return number >= INT32_MIN && number <= INT32_MAX ? TF_INT32 : TF_INT64;
  }
  if (PyUnicode_CheckExact(value) || PyBytes_CheckExact(value)) return TF_STRING;
  if (PyComplex_CheckExact(value)) return TF_COMPLEX128;
  return -1;
}

static int not_rectangular(void) {
  PyErr_SetString(PyExc_ValueError, "Can't convert non-rectangular Python sequence to Tensor.");
  return -1;
}

// How many items from |first| on are floats: long lists of numbers need no call per item.
static Py_ssize_t count_floats(PyObject* list, Py_ssize_t first) {
  PyObject** items = PySequence_Fast_ITEMS(list);
  Py_ssize_t i = first, size = PySequence_Fast_GET_SIZE(list);
  while (i < size && PyFloat_CheckExact(items[i])) ++i;
  return i - first;
}

static int scan(PyObject* value, int depth, nest_t* nest) {
  if (!is_list(value)) {
    if (depth != nest->rank) return not_rectangular();
    int kind = kind_of(value);
    if (kind < 0) {
      nest->is_foreign = true;
      return 0;
    }
    return join(nest, value, kind);
  }
  Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
  if (depth >= nest->rank || size != nest->dims[depth]) return not_rectangular();
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (scan(item_of(value, i), depth + 1, nest) < 0) return -1;
    if (nest->is_foreign) return 0;
    if (depth + 1 == nest->rank && nest->dtype == TF_FLOAT) i += count_floats(value, i + 1);
  }
  return 0;
}

// Follows the first elements to the bottom.
static int measure(PyObject* value, nest_t* nest) {
  while (is_list(value)) {
    if (nest->rank == MAX_RANK) {
      PyErr_SetString(PyExc_ValueError, "Values may be nested at most 32 levels deep");
      return -1;
    }
    Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    nest->dims[nest->rank++] = size;
    if (size == 0) break;
    value = item_of(value, 0);
  }
  return 0;
}

// Stores the floats at the front of a list. Returns how many there were.
static Py_ssize_t fill_floats(PyObject* list, char** inout_place) {
  PyObject** items = PySequence_Fast_ITEMS(list);
  Py_ssize_t count = count_floats(list, 0);
  float* place = (float*)*inout_place;
  for (Py_ssize_t i = 0; i < count; ++i) place[i] = (float)PyFloat_AS_DOUBLE(items[i]);
  *inout_place = (char*)(place + count);
  return count;
}

static int fill(PyObject* value, int dtype, size_t item_size, char** inout_place) {
  if (!is_list(value)) {
    if (store(value, dtype, *inout_place) < 0) return -1;
    *inout_place += item_size;
    return 0;
  }
  Py_ssize_t i = dtype == TF_FLOAT ? fill_floats(value, inout_place) : 0;
  for (Py_ssize_t size = PySequence_Fast_GET_SIZE(value); i < size; ++i)
    if (fill(item_of(value, i), dtype, item_size, inout_place) < 0) return -1;
  return 0;
}

static TF_Tensor* allocate(int dtype, const int64_t* dims, int rank) {
  size_t size = TF_DataTypeSize((TF_DataType)dtype);
  if (dtype == TF_STRING) size = sizeof(TF_TString);
  for (int i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(size, (size_t)dims[i], &size)) {
      PyErr_NoMemory();
      return NULL;
    }
  }
  TF_Tensor* tensor = TF_AllocateTensor((TF_DataType)dtype, dims, rank, size);
  if (!tensor) PyErr_NoMemory();
  return tensor;
}

static TF_Tensor* from_nest(PyObject* value, const nest_t* nest, int dtype) {
  if (!dtype) dtype = nest->dtype ? nest->dtype : TF_FLOAT;
  TF_Tensor* tensor = allocate(dtype, nest->dims, nest->rank);
  if (!tensor) return NULL;
  size_t item_size = dtype == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize((TF_DataType)dtype);
  char* place = TF_TensorData(tensor);
  if (fill(value, dtype, item_size, &place) < 0) {
    TF_DeleteTensor(tensor);
    return NULL;
  }
  return tensor;
}

// --- Arrays

// Returns the type of a buffer's format; 0 if unknown.
static int format_type(const Py_buffer* view) {
  const char* format = view->format ? view->format : "B";
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  bool is_complex_format = *format == 'Z';
  if (is_complex_format) ++format;
  if (!*format || format[1]) return 0;
  switch (*format) {
    case '?':
      return TF_BOOL;
    case 'e':
      return TF_HALF;
    case 'f':
      return is_complex_format ? TF_COMPLEX64 : TF_FLOAT;
    case 'd':
      return is_complex_format ? TF_COMPLEX128 : TF_DOUBLE;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      switch (view->itemsize) {
        case 1:
          return TF_INT8;
        case 2:
          return TF_INT16;
        case 4:
          return TF_INT32;
        case 8:
          return TF_INT64;
        default:
          return 0;
      }
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      switch (view->itemsize) {
        case 1:
          return TF_UINT8;
        case 2:
          return TF_UINT16;
        case 4:
          return TF_UINT32;
        case 8:
          return TF_UINT64;
        default:
          return 0;
      }
    default:
      return 0;
  }
}

// Quantized types have the bytes of the corresponding integer type.
static int plain_type(int dtype) {
  switch (dtype) {
    case TF_QINT8:
      return TF_INT8;
    case TF_QUINT8:
      return TF_UINT8;
    case TF_QINT16:
      return TF_INT16;
    case TF_QUINT16:
      return TF_UINT16;
    case TF_QINT32:
      return TF_INT32;
    case TF_BFLOAT16:
      return TF_UINT16;
    default:
      return dtype;
  }
}

// Returns a tensor that shares or copies the memory of |view|. Takes ownership of it.
static TF_Tensor* from_view(Py_buffer* view, int dtype, bool may_share) {
  int64_t few[MAX_RANK];
  if (view->ndim > MAX_RANK) {
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError, "An array has at most 32 dimensions");
    return NULL;
  }
  for (int i = 0; i < view->ndim; ++i) few[i] = view->shape[i];
  if (may_share && view->len >= 1024 && (uintptr_t)view->buf % 16 == 0) {
    lent_t* lent = PyMem_Malloc(sizeof *lent);
    if (lent) {
      lent->view = *view;
      // A copied Py_buffer whose shape lies inside of it would dangle; releasing needs none of it.
      lent->view.shape = NULL;
      lent->view.strides = NULL;
      return rn_tensor_over((TF_DataType)dtype, few, view->ndim, view->buf, (size_t)view->len,
                            give_back, lent);
    }
  }
  TF_Tensor* tensor = TF_AllocateTensor((TF_DataType)dtype, few, view->ndim, (size_t)view->len);
  if (tensor && view->len) memcpy(TF_TensorData(tensor), view->buf, (size_t)view->len);
  PyBuffer_Release(view);
  if (!tensor) PyErr_NoMemory();
  return tensor;
}

// Converts any object to any type with NumPy.
static TF_Tensor* from_foreign(PyObject* value, int dtype, bool may_share) {
  PyObject* answer = PyObject_CallFunction(rnpy.from_numpy, "Oi", value, dtype);
  if (!answer) return NULL;
  TF_Tensor* tensor = NULL;
  int number;
  PyObject* array;
  if (PyArg_ParseTuple(answer, "iO", &number, &array)) {
    if (number == TF_STRING) {  // nested lists of bytes, and the shape in case they are empty
      PyObject *list, *shape;
      nest_t nest = {.dtype = TF_STRING};
      if (PyArg_ParseTuple(array, "OO!", &list, &PyTuple_Type, &shape)) {
        nest.rank = (int)PyTuple_GET_SIZE(shape);
        for (int i = 0; i < nest.rank && i < MAX_RANK; ++i)
          nest.dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        if (!PyErr_Occurred()) tensor = from_nest(list, &nest, TF_STRING);
      }
    } else {
      Py_buffer view;
      if (PyObject_GetBuffer(array, &view, PyBUF_ND | PyBUF_FORMAT) == 0)
        tensor = from_view(&view, number, may_share);
    }
  }
  Py_DECREF(answer);
  return tensor;
}

TF_Tensor* rnpy_to_tensor(PyObject* value, int dtype, bool may_share) {
  rnpy_release_pending();
  if (dtype >= RNPY_REF) dtype -= RNPY_REF;
  nest_t nest = {0};
  if (is_list(value) || kind_of(value) >= 0) {
    if (measure(value, &nest) < 0) return NULL;
    if (scan(value, 0, &nest) < 0) {
      // Rows may be arrays of equal shape: let NumPy convert them.
      if (!nest.is_foreign) return NULL;
      PyErr_Clear();
    }
    // Only NumPy's extension types round to types of 8 bits and less.
    if (!nest.is_foreign && dtype < TF_FLOAT8_E5M2) return from_nest(value, &nest, dtype);
    return from_foreign(value, dtype, may_share);
  }
  Py_buffer view;
  if (PyObject_CheckBuffer(value) && !PyBytes_Check(value)) {  // numpy.bytes_ is both
    if (PyObject_GetBuffer(value, &view, PyBUF_ND | PyBUF_FORMAT) == 0) {
      int found = format_type(&view);
      if (found &&
          (!dtype || found == dtype || (found == plain_type(dtype) && dtype != TF_BFLOAT16))) {
        return from_view(&view, dtype ? dtype : found, may_share);
      }
      PyBuffer_Release(&view);
    } else {
      PyErr_Clear();
    }
  }
  return from_foreign(value, dtype, may_share);
}

// --- Tensors to arrays

// The memory of a tensor, under a numpy.ndarray.
typedef struct rnpy_buffer_t {
  PyObject_HEAD TF_Tensor* tensor;
} rnpy_buffer_t;

static void buffer_dealloc(rnpy_buffer_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  TF_DeleteTensor(self->tensor);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

static int buffer_get(rnpy_buffer_t* self, Py_buffer* view, int flags) {
  static char nothing[64];
  void* data = TF_TensorData(self->tensor);
  return PyBuffer_FillInfo(view, (PyObject*)self, data ? data : nothing,
                           (Py_ssize_t)TF_TensorByteSize(self->tensor), 0, flags);
}

static PyType_Slot buffer_slots[] = {
    {Py_tp_dealloc, buffer_dealloc},
    {Py_bf_getbuffer, buffer_get},
    {0, NULL},
};
static PyType_Spec buffer_spec = {
    .name = "runnel._core.Buffer",
    .basicsize = sizeof(rnpy_buffer_t),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = buffer_slots,
};

static PyObject* shape_of(const TF_Tensor* tensor) {
  int rank = TF_NumDims(tensor);
  PyObject* shape = PyTuple_New(rank < 0 ? 0 : rank);
  for (int i = 0; shape && i < rank; ++i) {
    PyObject* dim = PyLong_FromLongLong(TF_Dim(tensor, i));
    if (!dim) {
      Py_CLEAR(shape);
    } else {
      PyTuple_SET_ITEM(shape, i, dim);
    }
  }
  return shape;
}

static PyObject* numpy_ndarray(void) {
  if (!rnpy.ndarray) {
    PyObject* numpy = PyImport_ImportModule("numpy");
    if (!numpy) {
      if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError))
        PyErr_SetString(PyExc_ModuleNotFoundError,
                        "Runnel needs NumPy for the values of tensors: pip install numpy");
      return NULL;
    }
    rnpy.ndarray = PyObject_GetAttrString(numpy, "ndarray");
    Py_DECREF(numpy);
  }
  return rnpy.ndarray;
}

static PyObject* numpy_type(int dtype) {
  if (dtype < 0 || dtype >= RNPY_TYPES) {
    PyErr_SetString(PyExc_TypeError, "This type has no NumPy equivalent");
    return NULL;
  }
  if (!rnpy.numpy_dtypes[dtype])
    rnpy.numpy_dtypes[dtype] = PyObject_CallFunction(rnpy.numpy_dtype, "i", dtype);
  return rnpy.numpy_dtypes[dtype];
}

static PyObject* string_at(const TF_TString* strings, int64_t i) {
  return PyBytes_FromStringAndSize(TF_StringGetDataPointer(&strings[i]),
                                   (Py_ssize_t)TF_StringGetSize(&strings[i]));
}

// bytes, or an array of objects.
static PyObject* from_strings(TF_Tensor* tensor) {
  const TF_TString* strings = TF_TensorData(tensor);
  if (TF_NumDims(tensor) == 0) {
    PyObject* text = string_at(strings, 0);
    TF_DeleteTensor(tensor);
    return text;
  }
  PyObject* ndarray = numpy_ndarray();
  PyObject* shape = ndarray ? shape_of(tensor) : NULL;
  PyObject* array = shape ? PyObject_CallFunction(ndarray, "OO", shape, &PyBaseObject_Type) : NULL;
  PyObject* flat = array ? PyObject_GetAttrString(array, "flat") : NULL;
  int64_t count = TF_TensorElementCount(tensor);
  for (int64_t i = 0; flat && i < count; ++i) {
    PyObject* text = string_at(strings, i);
    PyObject* place = PyLong_FromLongLong(i);
    if (!text || !place || PyObject_SetItem(flat, place, text) < 0) Py_CLEAR(flat);
    Py_XDECREF(place);
    Py_XDECREF(text);
  }
  if (array && !flat) Py_CLEAR(array);
  Py_XDECREF(flat);
  Py_XDECREF(shape);
  TF_DeleteTensor(tensor);
  return array;
}

// Returns a tensor without other readers: itself or a copy.
static TF_Tensor* own(TF_Tensor* tensor) {
  TF_Tensor* moved = TF_TensorMaybeMove(tensor);
  if (moved) return moved;
  int rank = TF_NumDims(tensor);
  int64_t dims[MAX_RANK];
  for (int i = 0; i < rank && i < MAX_RANK; ++i) dims[i] = TF_Dim(tensor, i);
  if (rank > MAX_RANK)
    PyErr_Format(PyExc_ValueError, "An array has at most %d dimensions, not %d", MAX_RANK, rank);
  TF_Tensor* copy = rank <= MAX_RANK ? allocate(TF_TensorType(tensor), dims, rank) : NULL;
  if (copy && TF_TensorByteSize(copy))
    memcpy(TF_TensorData(copy), TF_TensorData(tensor), TF_TensorByteSize(copy));
  TF_DeleteTensor(tensor);
  return copy;
}

PyObject* rnpy_from_tensor(TF_Tensor* tensor) {
  int dtype = TF_TensorType(tensor);
  if (dtype == TF_STRING) return from_strings(tensor);
  if (dtype == TF_RESOURCE || dtype == TF_VARIANT) {
    TF_DeleteTensor(tensor);
    PyErr_SetString(PyExc_TypeError,
                    "A handle (resource or variant) cannot be converted to an array");
    return NULL;
  }
  tensor = own(tensor);
  if (!tensor) return NULL;
  rnpy_buffer_t* buffer = (rnpy_buffer_t*)rnpy.buffer_type->tp_alloc(rnpy.buffer_type, 0);
  if (!buffer) {
    TF_DeleteTensor(tensor);
    return NULL;
  }
  buffer->tensor = tensor;
  PyObject* ndarray = numpy_ndarray();
  PyObject* type = ndarray ? numpy_type(dtype) : NULL;
  PyObject* shape = type ? shape_of(tensor) : NULL;
  PyObject* array = NULL;
  if (shape) {
    PyObject* args[] = {shape, type, (PyObject*)buffer};
    array = PyObject_Vectorcall(ndarray, args, 3, NULL);
  }
  if (array && PyTuple_GET_SIZE(shape) == 0) {
    PyObject* scalar = PyObject_GetItem(array, shape);  // array[()]
    Py_DECREF(array);
    array = scalar;
  }
  Py_XDECREF(shape);
  Py_DECREF(buffer);
  return array;
}

// as_array(value, dtype=0): the array that a constant of |value| would hold.
static PyObject* as_array(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* value;
  int dtype = 0;
  if (!PyArg_ParseTuple(args, "O|i", &value, &dtype)) return NULL;
  TF_Tensor* tensor = rnpy_to_tensor(value, dtype, false);
  return tensor ? rnpy_from_tensor(tensor) : NULL;
}

static PyObject* tensor_from_proto(PyObject* self, PyObject* arg) {
  (void)self;
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(arg, &data, &size) < 0) return NULL;
  TF_Buffer* buffer = TF_NewBufferFromString(data, (size_t)size);
  TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof(float));
  TF_TensorFromProto(buffer, tensor, rnpy_status());
  TF_DeleteBuffer(buffer);
  if (rnpy_failed(rnpy_status(), NULL)) {
    TF_DeleteTensor(tensor);
    return NULL;
  }
  return rnpy_from_tensor(tensor);
}

static PyMethodDef methods[] = {
    {"as_array", as_array, METH_VARARGS, "Returns the array that a constant of this value holds."},
    {"array_from_proto", tensor_from_proto, METH_O, "Returns the array of a TensorProto's bytes."},
    {NULL, NULL, 0, NULL},
};

int rnpy_value_init(PyObject* module) {
  rnpy.buffer_type = (PyTypeObject*)PyType_FromSpec(&buffer_spec);
  return rnpy.buffer_type ? PyModule_AddFunctions(module, methods) : -1;
}

// Reads an op's definition: its arguments and attributes, and the parameters that follow from them.
#include "opfunction.h"

typedef struct reader_t {
  const uint8_t* at;
  const uint8_t* end;
} reader_t;

static uint64_t read_varint(reader_t* r) {
  uint64_t value = 0;
  for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
    uint8_t byte = *r->at++;
    value |= (uint64_t)(byte & 0x7F) << shift;
    if (!(byte & 0x80)) break;
  }
  return value;
}

typedef struct field_t {
  uint32_t number;
  uint64_t value;
  reader_t bytes;
} field_t;

static bool next_field(reader_t* r, field_t* out) {
  if (r->at >= r->end) return false;
  uint64_t key = read_varint(r);
  *out = (field_t){.number = (uint32_t)(key >> 3)};
  switch (key & 7) {
    case 0:
      out->value = read_varint(r);
      return true;
    case 2: {
      uint64_t size = read_varint(r);
      if (size > (uint64_t)(r->end - r->at)) return false;
      out->bytes = (reader_t){r->at, r->at + size};
      r->at += size;
      return true;
    }
    case 1:
      r->at += r->end - r->at < 8 ? r->end - r->at : 8;
      return true;
    case 5:
      r->at += r->end - r->at < 4 ? r->end - r->at : 4;
      return true;
    default:
      return false;
  }
}

static PyObject* intern(reader_t bytes) {
  PyObject* text = PyUnicode_FromStringAndSize((const char*)bytes.at, bytes.end - bytes.at);
  if (text) PyUnicode_InternInPlace(&text);
  return text;
}

static int attr_number(const rnpy_function_t* f, reader_t name) {
  size_t size = (size_t)(name.end - name.at);
  for (int i = 0; i < f->attr_count; ++i)
    if (strlen(f->attrs[i].text) == size && memcmp(f->attrs[i].text, name.at, size) == 0) return i;
  return -1;
}

// Bits of the types in an AttrValue's list.
static uint64_t read_types(reader_t value) {
  uint64_t bits = 0;
  field_t list, item;
  while (next_field(&value, &list)) {
    if (list.number != 1) continue;
    while (next_field(&list.bytes, &item)) {
      if (item.number != 6) continue;
      if (!item.bytes.at) bits |= 1ull << (item.value & 63);
      while (item.bytes.at < item.bytes.end) bits |= 1ull << (read_varint(&item.bytes) & 63);
    }
  }
  return bits;
}

static int read_attr(reader_t r, rnpy_attr_t* out) {
  field_t field;
  while (next_field(&r, &field)) {
    if (field.number == 1) {
      out->name = intern(field.bytes);
      if (!out->name) return -1;
      out->text = PyUnicode_AsUTF8(out->name);
    } else if (field.number == 2) {
      size_t size = (size_t)(field.bytes.end - field.bytes.at);
      if (size < sizeof out->kind) memcpy(out->kind, field.bytes.at, size);
    } else if (field.number == 3) {
      out->has_default = true;
      field_t inner;
      while (next_field(&field.bytes, &inner))
        if (inner.number == 6) out->default_type = (int)inner.value;
    } else if (field.number == 7) {
      out->allowed = read_types(field.bytes);
    }
  }
  return out->text ? 0 : -1;
}

static int read_arg(const rnpy_function_t* f, reader_t r, rnpy_arg_t* out) {
  *out = (rnpy_arg_t){.type_attr = -1, .number_attr = -1, .list_attr = -1};
  field_t field;
  while (next_field(&r, &field)) {
    switch (field.number) {
      case 1:
        out->name = intern(field.bytes);
        if (!out->name) return -1;
        break;
      case 3:
        out->dtype = (int)field.value;
        break;
      case 4:
        out->type_attr = attr_number(f, field.bytes);
        break;
      case 5:
        out->number_attr = attr_number(f, field.bytes);
        break;
      case 6:
        out->list_attr = attr_number(f, field.bytes);
        break;
      case 16:
        out->is_ref = field.value;
        break;
      default:
        break;
    }
  }
  return out->name ? 0 : -1;
}

static int count_fields(reader_t r, uint32_t number) {
  field_t field;
  int count = 0;
  while (next_field(&r, &field)) count += field.number == number;
  return count;
}

static int read_arguments(rnpy_function_t* f, reader_t all) {
  f->inputs = PyMem_Calloc((size_t)count_fields(all, 2) + 1, sizeof *f->inputs);
  f->outputs = PyMem_Calloc((size_t)count_fields(all, 3) + 1, sizeof *f->outputs);
  f->attrs = PyMem_Calloc((size_t)count_fields(all, 4) + 1, sizeof *f->attrs);
  if (!f->inputs || !f->outputs || !f->attrs) {
    PyErr_NoMemory();
    return -1;
  }
  field_t field;
  reader_t r = all;
  while (next_field(&r, &field)) {
    if (field.number == 4 && read_attr(field.bytes, &f->attrs[f->attr_count++]) < 0) return -1;
    if (field.number == 17) f->is_stateful = field.value;
  }
  r = all;
  while (next_field(&r, &field)) {
    if (field.number == 2 && read_arg(f, field.bytes, &f->inputs[f->input_count++]) < 0) return -1;
    if (field.number == 3 && read_arg(f, field.bytes, &f->outputs[f->output_count++]) < 0)
      return -1;
  }
  for (int i = 0; i < f->input_count; ++i) {
    const rnpy_arg_t* arg = &f->inputs[i];
    if (arg->type_attr >= 0) f->attrs[arg->type_attr].is_inferred = true;
    if (arg->number_attr >= 0) f->attrs[arg->number_attr].is_inferred = true;
    if (arg->list_attr >= 0) f->attrs[arg->list_attr].is_inferred = true;
  }
  return 0;
}

static void add_param(rnpy_function_t* f, PyObject* name, int attr) {
  Py_INCREF(name);
  f->params[f->param_count] = name;
  f->param_attr[f->param_count++] = attr;
}

static int make_params(rnpy_function_t* f) {
  size_t most = (size_t)(f->input_count + f->attr_count + 1);
  f->params = PyMem_Calloc(most, sizeof *f->params);
  f->param_attr = PyMem_Calloc(most, sizeof *f->param_attr);
  if (!f->params || !f->param_attr) {
    PyErr_NoMemory();
    return -1;
  }
  for (int i = 0; i < f->input_count; ++i) {
    add_param(f, f->inputs[i].name, -1);
  }
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < f->attr_count; ++i) {
      if (f->attrs[i].is_inferred || f->attrs[i].has_default != turn) continue;
      add_param(f, f->attrs[i].name, i);
    }
  }
  PyObject* name = PyUnicode_InternFromString("name");
  if (!name) return -1;
  add_param(f, name, -1);
  Py_DECREF(name);
  return 0;
}

static void rename_params(rnpy_function_t* f, PyObject* renamed) {
  for (int i = 0; i < f->param_count; ++i) {
    PyObject* name = PyDict_GetItem(renamed, f->params[i]);
    if (!name) continue;
    Py_INCREF(name);
    Py_SETREF(f->params[i], name);
  }
}

int rnpy_read_definition(rnpy_function_t* f, PyObject* renamed) {
  const uint8_t* bytes = (const uint8_t*)PyBytes_AS_STRING(f->definition);
  reader_t all = {bytes, bytes + PyBytes_GET_SIZE(f->definition)};
  if (read_arguments(f, all) < 0 || make_params(f) < 0) return -1;
  if (f->param_count > RNPY_MOST_PARAMS || f->attr_count > RNPY_MOST_ATTRS) {
    PyErr_SetString(PyExc_ValueError, "The op has too many arguments");
    return -1;
  }
  if (renamed) rename_params(f, renamed);
  return 0;
}

static void free_args(rnpy_arg_t* args, int count) {
  for (int i = 0; args && i < count; ++i) Py_XDECREF(args[i].name);
  PyMem_Free(args);
}

void rnpy_free_definition(rnpy_function_t* f) {
  for (int i = 0; f->attrs && i < f->attr_count; ++i) Py_XDECREF(f->attrs[i].name);
  PyMem_Free(f->attrs);
  free_args(f->inputs, f->input_count);
  free_args(f->outputs, f->output_count);
  for (int i = 0; f->params && i < f->param_count; ++i) Py_DECREF(f->params[i]);
  PyMem_Free(f->params);
  PyMem_Free(f->param_attr);
}

// A function for each op: it takes inputs and attributes by position or name, makes tensors of
// plain values, and adds the node.
//
// Its face follows from the op's definition: inputs, then attributes that are neither given by the
// inputs nor have defaults, then the other attributes, then |name|.
#include "opfunction.h"

static PyObject* name_text;  // "name", interned

// --- Reading an OpDef

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

static int read_definition(rnpy_function_t* f, reader_t all) {
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

static int make_params(rnpy_function_t* f) {
  size_t most = (size_t)(f->input_count + f->attr_count + 1);
  f->params = PyMem_Calloc(most, sizeof *f->params);
  f->param_attr = PyMem_Calloc(most, sizeof *f->param_attr);
  if (!f->params || !f->param_attr) {
    PyErr_NoMemory();
    return -1;
  }
  for (int i = 0; i < f->input_count; ++i) {
    f->param_attr[f->param_count] = -1;
    f->params[f->param_count++] = f->inputs[i].name;
  }
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < f->attr_count; ++i) {
      if (f->attrs[i].is_inferred || f->attrs[i].has_default != turn) continue;
      f->param_attr[f->param_count] = i;
      f->params[f->param_count++] = f->attrs[i].name;
    }
  }
  f->param_attr[f->param_count] = -1;
  f->params[f->param_count++] = name_text;
  return 0;
}

// --- Inputs

#define FEW_EDGES 16

typedef struct call_t {
  rnpy_function_t* function;
  rnpy_graph_t* graph;
  PyObject* values[RNPY_MOST_PARAMS];  // borrowed; NULL: not given
  PyObject* name;                      // of the node, owned
  int types[RNPY_MOST_ATTRS];          // by attribute: what the inputs say; 0: nothing yet
  TF_Output few[FEW_EDGES];
  TF_Output* edges;
  int edge_count, edge_capacity;
  int lengths[RNPY_MOST_PARAMS];  // of list inputs; -1: one tensor
  PyObject* made;                 // list: keeps converted tensors
  PyObject* scope;                // the name stack to go back to; NULL: not changed
  PyObject* before;               // the graph to go back to; NULL: not changed
} call_t;

static int add_edge(call_t* call, TF_Output edge) {
  if (call->edge_count == call->edge_capacity) {
    int capacity = call->edge_capacity * 4;
    TF_Output* edges = PyMem_Malloc((size_t)capacity * sizeof *edges);
    if (!edges) {
      PyErr_NoMemory();
      return -1;
    }
    memcpy(edges, call->edges, (size_t)call->edge_count * sizeof *edges);
    if (call->edges != call->few) PyMem_Free(call->edges);
    call->edges = edges;
    call->edge_capacity = capacity;
  }
  call->edges[call->edge_count++] = edge;
  return 0;
}

static int base_type(int dtype) { return dtype >= RNPY_REF ? dtype - RNPY_REF : dtype; }

static PyObject* type_name(int dtype) {
  PyObject* object = rnpy_dtype(dtype);
  return object ? PyObject_GetAttrString(object, "name") : NULL;
}

static int type_mismatch(const call_t* call, const rnpy_arg_t* arg, int found, int wanted) {
  PyObject* a = type_name(found);
  PyObject* b = a ? type_name(wanted) : NULL;
  const rnpy_arg_t* other = NULL;
  for (int i = 0; arg->type_attr >= 0 && i < call->function->input_count; ++i) {
    const rnpy_arg_t* candidate = &call->function->inputs[i];
    if (candidate != arg && candidate->type_attr == arg->type_attr) {
      other = candidate;
      break;
    }
  }
  if (b && other) {
    PyErr_Format(PyExc_TypeError,
                 "Input '%U' of '%s' Op has type %U that does not match type %U of argument '%U'.",
                 arg->name, call->function->op_text, a, b, other->name);
  } else if (b) {
    PyErr_Format(PyExc_TypeError,
                 "Input '%U' of '%s' Op has type %U that does not match expected type of %U.",
                 arg->name, call->function->op_text, a, b);
  }
  Py_XDECREF(a);
  Py_XDECREF(b);
  return -1;
}

// Values that become constants are called after the node and the argument.
static int enter_scope(call_t* call) {
  if (call->scope) return 0;
  call->scope = call->graph->name_stack;
  call->graph->name_stack = call->name;
  Py_INCREF(call->name);
  PyObject* setter = (PyObject*)call->graph;
  if (rnpy_current() != setter) {
    PyObject* module = PyImport_ImportModule("runnel._core");
    call->before = module ? PyObject_CallMethod(module, "set_current", "O", setter) : NULL;
    Py_XDECREF(module);
    if (!call->before) return -1;
  }
  return 0;
}

static int leave_scope(call_t* call) {
  int outcome = 0;
  if (call->scope) {
    Py_DECREF(call->graph->name_stack);
    call->graph->name_stack = call->scope;
    call->scope = NULL;
  }
  if (call->before) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject* module = PyImport_ImportModule("runnel._core");
    PyObject* answer =
        module ? PyObject_CallMethod(module, "set_current", "O", call->before) : NULL;
    Py_XDECREF(answer);
    Py_XDECREF(module);
    Py_CLEAR(call->before);
    if (type) PyErr_Restore(type, value, traceback);
  }
  return outcome;
}

static PyObject* call_convert(const rnpy_arg_t* arg, PyObject* value, PyObject* dtype,
                              PyObject* preferred, PyObject* name) {
  if (!dtype || !preferred) return NULL;
  PyObject* args[] = {value, dtype, preferred, name, arg->is_ref ? Py_True : Py_False};
  return PyObject_Vectorcall(rnpy.convert, args, 5, NULL);
}

// A tensor of |value| (owned), made one if it is none, called |name|. |wanted| 0: any type, but the
// attribute's default where the value's own will not do.
static PyObject* convert(call_t* call, const rnpy_arg_t* arg, PyObject* value, int wanted,
                         PyObject* name) {
  if (enter_scope(call) < 0) return NULL;
  const rnpy_attr_t* attr = arg->type_attr >= 0 ? &call->function->attrs[arg->type_attr] : NULL;
  PyObject* tensor = NULL;
  if (wanted) {
    tensor = call_convert(arg, value, rnpy_dtype(wanted), Py_None, name);
  } else if (!attr || !attr->default_type) {
    tensor = call_convert(arg, value, Py_None, Py_None, name);
  } else {
    PyObject* preferred = rnpy_dtype(attr->default_type);
    if (attr->allowed) {
      tensor = call_convert(arg, value, Py_None, Py_None, name);
      bool is_allowed = tensor && rnpy_is_tensor(tensor) &&
                        (attr->allowed >> (base_type(((rnpy_tensor_t*)tensor)->dtype) & 63) & 1);
      if (!is_allowed) {
        PyErr_Clear();
        Py_CLEAR(tensor);
      }
    }
    if (!tensor) tensor = call_convert(arg, value, Py_None, preferred, name);
  }
  if (tensor && !rnpy_is_tensor(tensor)) {
    PyErr_Format(PyExc_TypeError, "Input '%U' of '%s' Op cannot be made a Tensor: %R", arg->name,
                 call->function->op_text, value);
    Py_CLEAR(tensor);
  }
  return tensor;
}

// Of another graph: what stands for it here, if the graph takes such things in.
static PyObject* take_in(call_t* call, PyObject* tensor) {
  if (call->graph->capture != Py_None) return PyObject_CallOneArg(call->graph->capture, tensor);
  PyErr_Format(PyExc_ValueError,
               "Tensor %S of op '%s' must be from the same graph as the others: it is of %R, they "
               "are of %R.",
               tensor, call->function->op_text, ((rnpy_tensor_t*)tensor)->op->graph, call->graph);
  return NULL;
}

// One input tensor, |number| of a list (-1: of none). |wanted| 0: any type; the type it has is put
// there.
static int add_tensor(call_t* call, const rnpy_arg_t* arg, PyObject* value, int number,
                      int* inout_wanted) {
  PyObject* tensor = value;
  Py_INCREF(tensor);
  if (!rnpy_is_tensor(value)) {
    Py_DECREF(tensor);
    PyObject* name = number < 0 ? arg->name : PyUnicode_FromFormat("%U_%d", arg->name, number);
    tensor = name ? convert(call, arg, value, *inout_wanted, name) : NULL;
    if (number >= 0) Py_XDECREF(name);
    if (!tensor) return -1;
  }
  if (((rnpy_tensor_t*)tensor)->op->graph != call->graph) {
    PyObject* inside = take_in(call, tensor);
    Py_DECREF(tensor);
    if (!inside) return -1;
    tensor = inside;
  }
  if (tensor != value) {
    if (!call->made) call->made = PyList_New(0);
    if (!call->made || PyList_Append(call->made, tensor) < 0) {
      Py_DECREF(tensor);
      return -1;
    }
  }
  int found = ((rnpy_tensor_t*)tensor)->dtype;
  TF_Output edge = rnpy_tf_output(tensor);
  Py_DECREF(tensor);
  if (arg->is_ref && found < RNPY_REF) {
    PyErr_Format(PyExc_TypeError,
                 "'%s' Op requires that input '%U' be a mutable tensor "
                 "(e.g.: a tf.Variable)",
                 call->function->op_text, arg->name);
    return -1;
  }
  if (*inout_wanted && base_type(found) != *inout_wanted)
    return type_mismatch(call, arg, base_type(found), *inout_wanted);
  *inout_wanted = base_type(found);
  return add_edge(call, edge);
}

// The type that a Tensor among the inputs from |first| on gives to attribute |attr|; 0: none does.
static int type_ahead(const call_t* call, int attr, int first) {
  const rnpy_function_t* f = call->function;
  for (int i = first; i < f->input_count; ++i) {
    if (f->inputs[i].type_attr != attr) continue;
    PyObject* value = call->values[i];
    if (!value) continue;
    if (rnpy_is_tensor(value)) return base_type(((rnpy_tensor_t*)value)->dtype);
    if (f->inputs[i].number_attr < 0 || !(PyList_Check(value) || PyTuple_Check(value))) continue;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(value); ++k) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, k);
      if (rnpy_is_tensor(item)) return base_type(((rnpy_tensor_t*)item)->dtype);
    }
  }
  return 0;
}

static int add_list(call_t* call, int i, const rnpy_arg_t* arg, PyObject* value) {
  const rnpy_function_t* f = call->function;
  PyObject* list = NULL;
  if (!rnpy_is_tensor(value) && !PyUnicode_Check(value)) list = PySequence_Fast(value, "");
  if (!list) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "Expected list for '%U' argument to '%s' Op, not %R.", arg->name,
                 f->op_text, value);
    return -1;
  }
  int count = (int)PySequence_Fast_GET_SIZE(list);
  int outcome = 0;
  for (int k = 0; outcome == 0 && k < count; ++k) {
    int own_type = 0;
    int* wanted = arg->type_attr >= 0 ? &call->types[arg->type_attr] : &own_type;
    if (arg->type_attr < 0) own_type = arg->dtype;
    outcome = add_tensor(call, arg, PySequence_Fast_GET_ITEM(list, k), k, wanted);
  }
  Py_DECREF(list);
  call->lengths[i] = count;
  return outcome;
}

static int add_inputs(call_t* call) {
  const rnpy_function_t* f = call->function;
  for (int i = 0; i < f->input_count; ++i) {
    const rnpy_arg_t* arg = &f->inputs[i];
    PyObject* value = call->values[i];
    if (!value || value == Py_None) {
      if (value) {
        PyErr_Format(PyExc_ValueError, "Input '%U' of '%s' Op must not be None", arg->name,
                     f->op_text);
      } else {
        PyErr_Format(PyExc_TypeError, "%s() missing argument '%U'", f->op_text, arg->name);
      }
      return -1;
    }
    call->lengths[i] = -1;
    if (arg->type_attr >= 0 && !call->types[arg->type_attr])
      call->types[arg->type_attr] = type_ahead(call, arg->type_attr, i);
    if (arg->number_attr >= 0 || arg->list_attr >= 0) {
      if (add_list(call, i, arg, value) < 0) return -1;
      continue;
    }
    int fixed = arg->dtype;
    int* wanted = arg->type_attr >= 0 ? &call->types[arg->type_attr] : &fixed;
    if (add_tensor(call, arg, value, -1, wanted) < 0) return -1;
  }
  return 0;
}

// --- The call

int rnpy_bind(const rnpy_function_t* f, PyObject* const* args, Py_ssize_t count, PyObject* names,
              PyObject** values) {
  if (count > f->param_count) {
    PyErr_Format(PyExc_TypeError, "%s() takes %d arguments but %zd were given", f->op_text,
                 f->param_count, count);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) values[i] = args[i];
  Py_ssize_t name_count = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t k = 0; k < name_count; ++k) {
    PyObject* key = PyTuple_GET_ITEM(names, k);
    int place = -1;
    for (int i = 0; i < f->param_count && place < 0; ++i)
      if (f->params[i] == key) place = i;
    for (int i = 0; i < f->param_count && place < 0; ++i)
      if (PyUnicode_Compare(f->params[i], key) == 0) place = i;
    if (place < 0) {
      // What the inputs give may be said as well, as old code does: it must not be wrong, so it is
      // left to the node's own check.
      for (int i = 0; i < f->attr_count; ++i)
        if (f->attrs[i].is_inferred && PyUnicode_Compare(f->attrs[i].name, key) == 0) place = -2;
      if (place == -2) continue;
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", f->op_text,
                   key);
      return -1;
    }
    if (values[place]) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", f->op_text, key);
      return -1;
    }
    values[place] = args[count + k];
  }
  return 0;
}

// The first tensor among the inputs says which graph it is, unless the current one takes in all.
static int choose_graph(call_t* call) {
  PyObject* current = rnpy_current();
  if (!current) return -1;
  if (PyObject_TypeCheck(current, rnpy.graph_type)) {
    call->graph = (rnpy_graph_t*)current;
    if (call->graph->capture != Py_None) return 0;
  }
  const rnpy_function_t* f = call->function;
  for (int i = 0; i < f->input_count; ++i) {
    PyObject* value = call->values[i];
    if (value && (PyList_Check(value) || PyTuple_Check(value)) &&
        PySequence_Fast_GET_SIZE(value) > 0)
      value = PySequence_Fast_GET_ITEM(value, 0);
    if (value && rnpy_is_tensor(value)) {
      call->graph = ((rnpy_tensor_t*)value)->op->graph;
      return 0;
    }
  }
  if (call->graph) return 0;
  PyErr_SetString(PyExc_RuntimeError, "there is no graph to build in");
  return -1;
}

static bool is_name(const char* text) {
  for (const char* at = text; *at; ++at) {
    bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                    (*at >= '0' && *at <= '9') || *at == '.';
    if (!is_plain && (at == text || !strchr("_\\/>-", *at))) return at == text && *at == '_';
  }
  return *text != 0;
}

static int choose_name(call_t* call) {
  rnpy_function_t* f = call->function;
  PyObject* name = call->values[f->param_count - 1];
  if (!name || name == Py_None) {
    call->name = rnpy_unique_name(call->graph, f->op, true);
    return call->name ? 0 : -1;
  }
  Py_ssize_t size;
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
  if (!text || !is_name(text)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_ValueError, "%R is not a valid name of an operation", name);
    return -1;
  }
  if (size && text[size - 1] == '/') {
    call->name = PyUnicode_FromStringAndSize(text, size - 1);
  } else {
    call->name = rnpy_unique_name(call->graph, name, true);
  }
  return call->name ? 0 : -1;
}

static int set_attrs(call_t* call, TF_OperationDescription* desc) {
  const rnpy_function_t* f = call->function;
  for (int i = f->input_count; i < f->param_count - 1; ++i) {
    const rnpy_attr_t* attr = &f->attrs[f->param_attr[i]];
    PyObject* value = call->values[i];
    bool may_be_none = strcmp(attr->kind, "shape") == 0;
    if (!value || (value == Py_None && (attr->has_default || !may_be_none))) {
      if (attr->has_default) continue;
      PyErr_Format(PyExc_TypeError, "%s() missing argument '%U'", f->op_text, attr->name);
      return -1;
    }
    if (rnpy_set_attr(desc, attr->text, attr->kind, value) < 0) return -1;
  }
  return 0;
}

static PyObject* add_node(call_t* call) {
  rnpy_function_t* f = call->function;
  TF_OperationDescription* desc =
      TF_NewOperation(call->graph->graph, f->op_text, PyUnicode_AsUTF8(call->name));
  if (!desc) return PyErr_NoMemory();
  int at = 0;
  for (int i = 0; i < f->input_count; ++i) {
    if (call->lengths[i] < 0) {
      TF_AddInput(desc, call->edges[at++]);
    } else {
      TF_AddInputList(desc, call->edges + at, call->lengths[i]);
      // An empty list of mixed types says nothing by itself.
      if (call->lengths[i] == 0 && f->inputs[i].list_attr >= 0)
        TF_SetAttrTypeList(desc, f->attrs[f->inputs[i].list_attr].text, NULL, 0);
      at += call->lengths[i];
    }
  }
  if (set_attrs(call, desc) < 0 ||
      rnpy_apply_scopes(call->graph, desc, f->op, call->edges, call->edge_count) < 0) {
    rnpy_abandon(desc);
    return NULL;
  }
  return rnpy_finish(call->graph, desc);
}

// Nodes that take references are placed with the variables, whatever the scopes say.
static PyObject* add_node_with(call_t* call, PyObject* variables) {
  PyObject* graph = (PyObject*)call->graph;
  PyObject* before = PyObject_CallMethod(graph, "_enter_references", "(O)", variables);
  if (!before) return NULL;
  PyObject* op = add_node(call);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done = PyObject_CallMethod(graph, "_exit_references", "(O)", before);
  Py_DECREF(before);
  if (!done) Py_CLEAR(op);
  Py_XDECREF(done);
  if (type) PyErr_Restore(type, value, traceback);
  return op;
}

static PyObject* build(call_t* call) {
  rnpy_function_t* f = call->function;
  if (call->graph->is_finalized) {
    PyErr_SetString(PyExc_RuntimeError, "Graph is finalized and cannot be modified.");
    return NULL;
  }
  PyObject* variables = NULL;
  for (int i = 0, at = 0; i < f->input_count; ++i) {
    int count = call->lengths[i] < 0 ? 1 : call->lengths[i];
    for (int k = 0; f->inputs[i].is_ref && k < count; ++k) {
      if (!variables && !(variables = PyList_New(0))) return NULL;
      PyObject* op = rnpy_operation(call->graph, call->edges[at + k].oper);
      int outcome = op ? PyList_Append(variables, op) : -1;
      Py_XDECREF(op);
      if (outcome < 0) {
        Py_DECREF(variables);
        return NULL;
      }
    }
    at += count;
  }
  if (!variables) return add_node(call);
  PyObject* op = add_node_with(call, variables);
  Py_DECREF(variables);
  return op;
}

PyObject* rnpy_result_type(rnpy_function_t* f) {
  if (f->result) return f->result;
  PyObject* names = PyList_New(0);
  for (int i = 0; names && i < f->output_count; ++i)
    if (PyList_Append(names, f->outputs[i].name) < 0) Py_CLEAR(names);
  PyObject* collections = names ? PyImport_ImportModule("collections") : NULL;
  if (collections) f->result = PyObject_CallMethod(collections, "namedtuple", "OO", f->op, names);
  Py_XDECREF(collections);
  Py_XDECREF(names);
  return f->result;
}

// Output argument |i|, which begins at output |*inout_at|: a tensor or a list of them.
static PyObject* result_at(rnpy_function_t* f, PyObject* op, int i, int* inout_at) {
  const rnpy_arg_t* arg = &f->outputs[i];
  if (arg->number_attr < 0 && arg->list_attr < 0) return rnpy_output(op, (*inout_at)++);
  int count = f->output_count == 1
                  ? TF_OperationNumOutputs(((rnpy_operation_t*)op)->oper)
                  : TF_OperationOutputListLength(((rnpy_operation_t*)op)->oper,
                                                 PyUnicode_AsUTF8(arg->name), rnpy_status());
  PyObject* list = PyList_New(count < 0 ? 0 : count);
  for (int k = 0; list && k < count; ++k) {
    PyObject* tensor = rnpy_output(op, (*inout_at)++);
    if (!tensor) {
      Py_CLEAR(list);
    } else {
      PyList_SET_ITEM(list, k, tensor);
    }
  }
  return list;
}

static PyObject* results(rnpy_function_t* f, PyObject* op) {
  if (f->output_count == 0) {
    Py_INCREF(op);
    return op;
  }
  int at = 0;
  if (TF_OperationNumOutputs(((rnpy_operation_t*)op)->oper) == 0) {  // an empty list
    Py_INCREF(op);
    return op;
  }
  if (f->output_count == 1) return result_at(f, op, 0, &at);
  PyObject* type = rnpy_result_type(f);
  PyObject* values = type ? PyList_New(f->output_count) : NULL;
  for (int i = 0; values && i < f->output_count; ++i) {
    PyObject* value = result_at(f, op, i, &at);
    if (!value) {
      Py_CLEAR(values);
    } else {
      PyList_SET_ITEM(values, i, value);
    }
  }
  PyObject* answer = values ? PyObject_CallMethod(type, "_make", "O", values) : NULL;
  Py_XDECREF(values);
  return answer;
}

static PyObject* function_call(PyObject* self, PyObject* const* args, size_t flags,
                               PyObject* names) {
  rnpy_function_t* f = (rnpy_function_t*)self;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  PyObject* current = rnpy_current();
  if (!current) return NULL;
  if (current == Py_None) return rnpy_eager_call(f, args, count, names);
  call_t call;
  memset(&call, 0, sizeof call);
  call.function = f;
  call.edges = call.few;
  call.edge_capacity = FEW_EDGES;
  PyObject* answer = NULL;
  if (rnpy_bind(f, args, count, names, call.values) == 0 && choose_graph(&call) == 0) {
    Py_INCREF(call.graph);
    if (choose_name(&call) == 0) {
      int outcome = add_inputs(&call);
      leave_scope(&call);
      PyObject* op = outcome == 0 ? build(&call) : NULL;
      if (op) answer = results(f, op);
      Py_XDECREF(op);
    }
    Py_DECREF(call.graph);
  }
  Py_XDECREF(call.name);
  Py_XDECREF(call.made);
  if (call.edges != call.few) PyMem_Free(call.edges);
  return answer;
}

// --- The type

static void free_args(rnpy_arg_t* args, int count) {
  for (int i = 0; args && i < count; ++i) Py_XDECREF(args[i].name);
  PyMem_Free(args);
}

static void function_dealloc(rnpy_function_t* self) {
  PyTypeObject* type = Py_TYPE(self);
  for (int i = 0; self->attrs && i < self->attr_count; ++i) Py_XDECREF(self->attrs[i].name);
  PyMem_Free(self->attrs);
  free_args(self->inputs, self->input_count);
  free_args(self->outputs, self->output_count);
  PyMem_Free(self->params);
  PyMem_Free(self->param_attr);
  Py_XDECREF(self->op);
  Py_XDECREF(self->definition);
  Py_XDECREF(self->result);
  Py_XDECREF(self->dict);
  type->tp_free((PyObject*)self);
  Py_DECREF(type);
}

// OpFunction(name, OpDef's bytes)
// Parameters that Python calls otherwise than the definition does: {its name: Python's}.
static void rename_params(rnpy_function_t* f, PyObject* renamed) {
  for (int i = 0; i < f->param_count; ++i) {
    PyObject* name = PyDict_GetItem(renamed, f->params[i]);
    if (!name) continue;
    Py_INCREF(name);
    Py_SETREF(f->params[i], name);
  }
}

static PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)kwargs;
  PyObject *op, *definition, *renamed = NULL;
  if (!PyArg_ParseTuple(args, "US|O!", &op, &definition, &PyDict_Type, &renamed)) return NULL;
  rnpy_function_t* self = (rnpy_function_t*)type->tp_alloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = function_call;
  Py_INCREF(op);
  self->op = op;
  self->op_text = PyUnicode_AsUTF8(op);
  Py_INCREF(definition);
  self->definition = definition;
  const uint8_t* bytes = (const uint8_t*)PyBytes_AS_STRING(definition);
  reader_t all = {bytes, bytes + PyBytes_GET_SIZE(definition)};
  if (read_definition(self, all) < 0 || make_params(self) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  if (self->param_count > RNPY_MOST_PARAMS || self->attr_count > RNPY_MOST_ATTRS) {
    Py_DECREF(self);
    PyErr_SetString(PyExc_ValueError, "an op with so many arguments is not known here");
    return NULL;
  }
  if (renamed) rename_params(self, renamed);
  return (PyObject*)self;
}

static PyObject* function_repr(rnpy_function_t* self) {
  return PyUnicode_FromFormat("<op %U>", self->op);
}

static PyObject* function_params(rnpy_function_t* self, void* unused) {
  (void)unused;
  PyObject* tuple = PyTuple_New(self->param_count);
  for (int i = 0; tuple && i < self->param_count; ++i) {
    Py_INCREF(self->params[i]);
    PyTuple_SET_ITEM(tuple, i, self->params[i]);
  }
  return tuple;
}

static PyObject* function_signature(rnpy_function_t* self, void* unused) {
  (void)unused;
  return PyObject_CallOneArg(rnpy.signature, (PyObject*)self);
}

static PyObject* function_doc(rnpy_function_t* self, void* unused) {
  (void)unused;
  return PyObject_CallOneArg(rnpy.documentation, (PyObject*)self);
}

static PyObject* function_flag(rnpy_function_t* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(self->is_stateful);
}

// Spreads flat inputs over the arguments: lists get what their attributes say, or what is left.
static int spread(rnpy_function_t* f, PyObject* flat, PyObject* attrs, PyObject** out) {
  Py_ssize_t left = PySequence_Fast_GET_SIZE(flat);
  int lists = 0;
  for (int i = 0; i < f->input_count; ++i)
    lists += f->inputs[i].number_attr >= 0 || f->inputs[i].list_attr >= 0;
  Py_ssize_t singles = f->input_count - lists, at = 0;
  for (int i = 0; i < f->input_count; ++i) {
    const rnpy_arg_t* arg = &f->inputs[i];
    if (arg->number_attr < 0 && arg->list_attr < 0) {
      if (at >= left) {
        PyErr_Format(PyExc_ValueError, "'%s' Op has more inputs than were given", f->op_text);
        return -1;
      }
      out[i] = PySequence_Fast_GET_ITEM(flat, at++);
      Py_INCREF(out[i]);
      continue;
    }
    const rnpy_attr_t* attr = &f->attrs[arg->number_attr >= 0 ? arg->number_attr : arg->list_attr];
    PyObject* given = attrs ? PyDict_GetItemWithError(attrs, attr->name) : NULL;
    Py_ssize_t count = left - singles;
    if (given && arg->number_attr >= 0 && PyLong_Check(given)) count = PyLong_AsSsize_t(given);
    if (given && arg->list_attr >= 0 && PySequence_Check(given)) count = PySequence_Size(given);
    if (PyErr_Occurred()) return -1;
    if (count < 0 || at + count > left || (!given && lists > 1)) {
      PyErr_Format(PyExc_ValueError, "how many inputs of '%s' Op are for '%U' is not known",
                   f->op_text, arg->name);
      return -1;
    }
    out[i] = PySequence_GetSlice(flat, at, at + count);
    if (!out[i]) return -1;
    at += count;
  }
  if (at != left) {
    PyErr_Format(PyExc_ValueError, "'%s' Op got %zd inputs, and takes %zd", f->op_text, left, at);
    return -1;
  }
  return 0;
}

// _create(graph, inputs, attrs, name): the Operation, of flat inputs and a dict of attributes.
static PyObject* function_create(rnpy_function_t* f, PyObject* args) {
  PyObject *graph, *inputs, *attrs, *name;
  if (!PyArg_ParseTuple(args, "O!OO!O", rnpy.graph_type, &graph, &inputs, &PyDict_Type, &attrs,
                        &name))
    return NULL;
  PyObject* flat = PySequence_Fast(inputs, "inputs are a list of Tensors");
  if (!flat) return NULL;
  call_t call;
  memset(&call, 0, sizeof call);
  call.function = f;
  call.edges = call.few;
  call.edge_capacity = FEW_EDGES;
  call.graph = (rnpy_graph_t*)graph;
  PyObject* spreaded[RNPY_MOST_PARAMS] = {0};
  PyObject* op = NULL;
  call.values[f->param_count - 1] = name;
  if (spread(f, flat, attrs, spreaded) == 0) {
    for (int i = 0; i < f->input_count; ++i) call.values[i] = spreaded[i];
    for (int i = f->input_count; i < f->param_count - 1; ++i)
      call.values[i] = PyDict_GetItemWithError(attrs, f->params[i]);
    if (!PyErr_Occurred() && choose_name(&call) == 0) {
      int outcome = add_inputs(&call);
      leave_scope(&call);
      if (outcome == 0) op = build(&call);
    }
  }
  for (int i = 0; i < f->input_count; ++i) Py_XDECREF(spreaded[i]);
  Py_DECREF(flat);
  Py_XDECREF(call.name);
  Py_XDECREF(call.made);
  if (call.edges != call.few) PyMem_Free(call.edges);
  return op;
}

static PyMethodDef function_methods[] = {
    {"_create", (PyCFunction)function_create, METH_VARARGS,
     "_create(graph, flat_inputs, attrs, name): the Operation."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef function_getset[] = {
    {"_params", (getter)function_params, NULL, "Names of the arguments, in order.", NULL},
    {"__signature__", (getter)function_signature, NULL, NULL, NULL},
    {"__doc__", (getter)function_doc, NULL, NULL, NULL},
    {"is_stateful", (getter)function_flag, NULL, "Whether running it twice matters.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef function_members[] = {
    {"__name__", T_OBJECT, offsetof(rnpy_function_t, op), READONLY, NULL},
    {"_op_def", T_OBJECT, offsetof(rnpy_function_t, definition), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(rnpy_function_t, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(rnpy_function_t, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_new, function_new},         {Py_tp_dealloc, function_dealloc},
    {Py_tp_repr, function_repr},       {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getset, function_getset},   {Py_tp_members, function_members},
    {Py_tp_methods, function_methods}, {0, NULL},
};

static PyType_Spec function_spec = {
    .name = "runnel._core.OpFunction",
    .basicsize = sizeof(rnpy_function_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = function_slots,
};

// op_def(name): the OpDef's bytes; None if there is no such op.
static PyObject* op_def(PyObject* self, PyObject* arg) {
  (void)self;
  const char* name = PyUnicode_AsUTF8(arg);
  if (!name) return NULL;
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* buffer = TF_NewBuffer();
  TF_GraphGetOpDef(graph, name, buffer, rnpy_status());
  TF_DeleteGraph(graph);
  if (TF_GetCode(rnpy_status()) == TF_OK) return rnpy_take_buffer(buffer);
  TF_DeleteBuffer(buffer);
  Py_RETURN_NONE;
}

// constant(graph, value, dtype number, name, shape or None): a Const node's output.
static PyObject* constant(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *graph_object, *value, *name, *shape;
  int dtype;
  if (!PyArg_ParseTuple(args, "O!OiUO", rnpy.graph_type, &graph_object, &value, &dtype, &name,
                        &shape))
    return NULL;
  rnpy_graph_t* graph = (rnpy_graph_t*)graph_object;
  TF_Tensor* tensor = rnpy_to_tensor(value, dtype, false);
  if (!tensor) return NULL;
  if (shape != Py_None) {  // the same elements under another shape
    int64_t dims[32];
    Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_GET_SIZE(shape) : 33;
    int64_t count = 1;
    for (Py_ssize_t i = 0; i < rank && rank <= 32; ++i)
      count *= dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    if (!PyErr_Occurred() && (rank > 32 || count != TF_TensorElementCount(tensor)))
      PyErr_SetString(PyExc_ValueError, "the shape does not fit the value");
    if (PyErr_Occurred()) {
      TF_DeleteTensor(tensor);
      return NULL;
    }
    TF_SetShape(tensor, dims, (int)rank);
  }
  PyObject* unique = NULL;
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text && size && text[size - 1] == '/') {
    unique = PyUnicode_FromStringAndSize(text, size - 1);
  } else if (text) {
    unique = rnpy_unique_name(graph, name, true);
  }
  PyObject* op = NULL;
  static PyObject* const_text;
  if (!const_text) const_text = PyUnicode_InternFromString("Const");
  if (unique) {
    TF_OperationDescription* desc =
        TF_NewOperation(graph->graph, "Const", PyUnicode_AsUTF8(unique));
    TF_SetAttrTensor(desc, "value", tensor, rnpy_status());
    TF_SetAttrType(desc, "dtype", TF_TensorType(tensor));
    if (rnpy_apply_scopes(graph, desc, const_text, NULL, 0) < 0) {
      rnpy_abandon(desc);
    } else {
      op = rnpy_finish(graph, desc);
    }
  }
  TF_DeleteTensor(tensor);
  Py_XDECREF(unique);
  PyObject* output = op ? rnpy_output(op, 0) : NULL;
  Py_XDECREF(op);
  return output;
}

static PyMethodDef methods[] = {
    {"op_def", op_def, METH_O, "The OpDef of an op, or None."},
    {"constant", constant, METH_VARARGS, "A Const node's output."},
    {NULL, NULL, 0, NULL},
};

int rnpy_function_init(PyObject* module) {
  name_text = PyUnicode_InternFromString("name");
  rnpy.function_type = (PyTypeObject*)PyType_FromSpec(&function_spec);
  if (!name_text || !rnpy.function_type) return -1;
  Py_INCREF(rnpy.function_type);
  if (PyModule_AddObject(module, "OpFunction", (PyObject*)rnpy.function_type) < 0) return -1;
  return PyModule_AddFunctions(module, methods);
}

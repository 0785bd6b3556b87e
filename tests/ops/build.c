// Builds graphs from cases, through the public C API.
#include "build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opdef.h"
#include "value.h"

enum { MAX_LIST = 256 };

static bool bad_row(build_t* b, const char* what, const char* name) {
  snprintf(b->why, sizeof b->why, "%s: %s", what, name);
  return false;
}

static bool is_ok(const build_t* b) { return TF_GetCode(b->status) == TF_OK && !b->why[0]; }

static TF_DataType base_type(TF_DataType type) {
  return type > 100 ? (TF_DataType)((int)type - 100) : type;
}

static const char* text(const json_t* object, const char* key) {
  return json_string_value(json_object_get(object, key));
}

// ---- attrs

static int read_shape(const json_t* v, int64_t* dims) {
  if (!json_is_array(v)) return -1;
  const size_t n = json_array_size(v) < MAX_RANK ? json_array_size(v) : MAX_RANK;
  for (size_t i = 0; i < n; i++) {
    const json_t* d = json_array_get(v, i);
    dims[i] = json_is_null(d) ? -1 : json_integer_value(d);
  }
  return (int)n;
}

static bool read_type(build_t* b, const json_t* v, TF_DataType* out) {
  const dtype_t* dtype = json_is_string(v) ? dtype_by_name(json_string_value(v)) : NULL;
  if (!dtype) return bad_row(b, "no such dtype", json_string_value(v) ? json_string_value(v) : "");
  *out = dtype->type;
  return true;
}

static bool set_tensor(build_t* b, TF_OperationDescription* desc, const char* name,
                       const json_t* v) {
  TF_Tensor* tensor = value_create(v, b->why, sizeof b->why);
  if (!tensor) return false;
  TF_SetAttrTensor(desc, name, tensor, b->status);
  TF_DeleteTensor(tensor);
  return is_ok(b);
}

static bool set_one(build_t* b, TF_OperationDescription* desc, const char* name, const char* type,
                    const json_t* v) {
  int64_t dims[MAX_RANK];
  TF_DataType dtype;
  if (strcmp(type, "type") == 0) {
    if (!read_type(b, v, &dtype)) return false;
    TF_SetAttrType(desc, name, dtype);
  } else if (strcmp(type, "shape") == 0) {
    const int rank = read_shape(v, dims);
    TF_SetAttrShape(desc, name, dims, rank);
  } else if (strcmp(type, "string") == 0) {
    TF_SetAttrString(desc, name, json_string_value(v), json_string_length(v));
  } else if (strcmp(type, "int") == 0) {
    TF_SetAttrInt(desc, name, json_integer_value(v));
  } else if (strcmp(type, "float") == 0) {
    TF_SetAttrFloat(
        desc, name,
        json_is_string(v) ? strtof(json_string_value(v), NULL) : (float)json_number_value(v));
  } else if (strcmp(type, "bool") == 0) {
    TF_SetAttrBool(desc, name, json_is_true(v));
  } else if (strcmp(type, "tensor") == 0) {
    return set_tensor(b, desc, name, v);
  } else {
    return bad_row(b, "attr of a type that rows cannot say", type);
  }
  return true;
}

static void set_shapes(TF_OperationDescription* desc, const char* name, const json_t* v, int n) {
  static int64_t store[MAX_LIST][MAX_RANK];
  const int64_t* dims[MAX_LIST];
  int ranks[MAX_LIST];
  for (int i = 0; i < n; i++) {
    ranks[i] = read_shape(json_array_get(v, (size_t)i), store[i]);
    dims[i] = store[i];
  }
  TF_SetAttrShapeList(desc, name, dims, ranks, n);
}

static void set_strings(TF_OperationDescription* desc, const char* name, const json_t* v, int n) {
  const void* strings[MAX_LIST];
  size_t lengths[MAX_LIST];
  for (int i = 0; i < n; i++) {
    strings[i] = json_string_value(json_array_get(v, (size_t)i));
    lengths[i] = json_string_length(json_array_get(v, (size_t)i));
  }
  TF_SetAttrStringList(desc, name, strings, lengths, n);
}

static bool set_list(build_t* b, TF_OperationDescription* desc, const char* name, const char* type,
                     const json_t* v) {
  const size_t size = json_array_size(v);
  if (size > MAX_LIST) return bad_row(b, "attr list too long", name);
  const int n = (int)size;
  TF_DataType types[MAX_LIST];
  int64_t ints[MAX_LIST];
  float floats[MAX_LIST];
  unsigned char bools[MAX_LIST];
  for (size_t i = 0; i < size; i++) {
    const json_t* x = json_array_get(v, i);
    if (strcmp(type, "list(type)") == 0 && !read_type(b, x, &types[i])) return false;
    ints[i] = json_integer_value(x);
    floats[i] = (float)json_number_value(x);
    bools[i] = json_is_true(x);
  }
  if (strcmp(type, "list(type)") == 0) {
    TF_SetAttrTypeList(desc, name, types, n);
  } else if (strcmp(type, "list(int)") == 0) {
    TF_SetAttrIntList(desc, name, ints, n);
  } else if (strcmp(type, "list(float)") == 0) {
    TF_SetAttrFloatList(desc, name, floats, n);
  } else if (strcmp(type, "list(bool)") == 0) {
    TF_SetAttrBoolList(desc, name, bools, n);
  } else if (strcmp(type, "list(shape)") == 0) {
    set_shapes(desc, name, v, n);
  } else if (strcmp(type, "list(string)") == 0) {
    set_strings(desc, name, v, n);
  } else {
    return bad_row(b, "attr of a type that rows cannot say", type);
  }
  return true;
}

// An attr that the OpDef does not have: by its JSON type, so that the error is the library's.
static bool set_unknown(TF_OperationDescription* desc, const char* name, const json_t* v) {
  if (json_is_boolean(v)) {
    TF_SetAttrBool(desc, name, json_is_true(v));
  } else if (json_is_integer(v)) {
    TF_SetAttrInt(desc, name, json_integer_value(v));
  } else if (json_is_real(v)) {
    TF_SetAttrFloat(desc, name, (float)json_real_value(v));
  } else {
    TF_SetAttrString(desc, name, json_string_value(v), json_string_length(v));
  }
  return true;
}

static bool set_given_attrs(build_t* b, TF_OperationDescription* desc, const opdef_t* def,
                            json_t* attrs) {
  const char* name;
  json_t* v;
  json_object_foreach(attrs, name, v) {
    const char* type = opdef_attr_type(def, name);
    const bool ok = !type                            ? set_unknown(desc, name, v)
                    : strncmp(type, "list(", 5) == 0 ? set_list(b, desc, name, type, v)
                                                     : set_one(b, desc, name, type, v);
    if (!ok) return false;
  }
  return true;
}

// ---- inputs

typedef struct {
  size_t count;
  TF_Output outputs[MAX_NODES];
} arg_t;

typedef struct {
  size_t count;
  arg_t args[MAX_ARGS];
} inputs_t;

static TF_Operation* build_node(build_t* b, const json_t* spec, const char* name);

static TF_Operation* finish(build_t* b, TF_OperationDescription* desc) {
  TF_Operation* op = TF_FinishOperation(desc, b->status);
  return is_ok(b) ? op : NULL;
}

TF_Output build_placeholder(build_t* b, const char* name, TF_DataType type, const int64_t* dims,
                            int rank) {
  TF_OperationDescription* desc = TF_NewOperation(b->graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", type);
  TF_SetAttrShape(desc, "shape", dims, rank);
  return (TF_Output){finish(b, desc), 0};
}

static TF_Output build_const(build_t* b, const char* name, TF_Tensor* value) {
  TF_OperationDescription* desc = TF_NewOperation(b->graph, "Const", name);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  TF_SetAttrTensor(desc, "value", value, b->status);
  return (TF_Output){finish(b, desc), 0};
}

// A variable of either kind with its initialiser and its reader.
static TF_Output build_variable(build_t* b, const char* name, TF_Tensor* value, bool is_ref) {
  char other[MAX_NAME + 16];
  int64_t dims[MAX_RANK];
  const TF_Output none = {NULL, 0};
  for (int i = 0; i < TF_NumDims(value); i++) dims[i] = TF_Dim(value, i);
  TF_OperationDescription* desc =
      TF_NewOperation(b->graph, is_ref ? "VariableV2" : "VarHandleOp", name);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value));
  TF_SetAttrShape(desc, "shape", dims, TF_NumDims(value));
  if (!is_ref) TF_SetAttrString(desc, "shared_name", name, strlen(name));
  const TF_Output var = {finish(b, desc), 0};
  if (!var.oper) return none;
  snprintf(other, sizeof other, "%s_value", name);
  const TF_Output initial = build_const(b, other, value);
  if (!initial.oper) return none;
  snprintf(other, sizeof other, "%s_assign", name);
  desc = TF_NewOperation(b->graph, is_ref ? "Assign" : "AssignVariableOp", other);
  TF_AddInput(desc, var);
  TF_AddInput(desc, initial);
  b->init[b->var_count] = finish(b, desc);
  if (!b->init[b->var_count]) return none;
  b->vars[b->var_count] = var;
  if (!is_ref) {
    snprintf(other, sizeof other, "%s_read", name);
    desc = TF_NewOperation(b->graph, "ReadVariableOp", other);
    TF_AddInput(desc, var);
    TF_SetAttrType(desc, "dtype", TF_TensorType(value));
    b->vars[b->var_count] = (TF_Output){finish(b, desc), 0};
  }
  b->var_count++;
  return var;
}

static TF_Output build_leaf(build_t* b, const json_t* spec, const char* name) {
  TF_Tensor* value = value_create(spec, b->why, sizeof b->why);
  if (!value) return (TF_Output){NULL, 0};
  const char* variable = text(spec, "variable");
  TF_Output out;
  if (variable) {
    out = build_variable(b, name, value, strcmp(variable, "ref") == 0);
  } else if (json_is_true(json_object_get(spec, "const"))) {
    out = build_const(b, name, value);
  } else {
    int64_t dims[MAX_RANK];
    for (int i = 0; i < TF_NumDims(value); i++) dims[i] = TF_Dim(value, i);
    out = build_placeholder(b, name, TF_TensorType(value), dims,
                            b->has_static_shapes ? TF_NumDims(value) : -1);
    if (out.oper) {
      if (build_has_gradient(b->row, dtype_by_type(TF_TensorType(value)))) {
        b->leaves[b->leaf_count++] = b->feed_count;
      }
      b->feeds[b->feed_count] = out;
      b->feed_values[b->feed_count++] = value;
      return out;
    }
  }
  TF_DeleteTensor(value);
  return out;
}

static bool build_input(build_t* b, const json_t* spec, TF_Output* out) {
  const int index = (int)json_integer_value(json_object_get(spec, "output"));
  const char *use = text(spec, "use"), *id = text(spec, "id");
  if (use) {
    for (size_t i = 0; i < b->id_count; i++) {
      if (strcmp(b->ids[i], use) != 0) continue;
      *out = (TF_Output){b->id_outputs[i].oper, index};
      return true;
    }
    return bad_row(b, "use of an unknown id", use);
  }
  char name[MAX_NAME];
  if (b->input_count >= MAX_NODES) return bad_row(b, "too many inputs", "");
  snprintf(name, sizeof name, "in%d", b->input_count++);
  *out =
      text(spec, "op") ? (TF_Output){build_node(b, spec, name), index} : build_leaf(b, spec, name);
  if (!out->oper) return false;
  if (id) {
    b->ids[b->id_count] = id;
    b->id_outputs[b->id_count++] = *out;
  }
  return true;
}

static bool build_inputs(build_t* b, const json_t* specs, inputs_t* out) {
  out->count = json_array_size(specs);
  if (out->count > MAX_ARGS) return bad_row(b, "too many inputs", "");
  for (size_t i = 0; i < out->count; i++) {
    const json_t* spec = json_array_get(specs, i);
    arg_t* arg = &out->args[i];
    arg->count = json_is_array(spec) ? json_array_size(spec) : 1;
    if (arg->count > MAX_NODES) return bad_row(b, "too many inputs", "");
    for (size_t j = 0; j < arg->count; j++) {
      const json_t* one = json_is_array(spec) ? json_array_get(spec, j) : spec;
      if (!build_input(b, one, &arg->outputs[j])) return false;
    }
  }
  return true;
}

static bool is_given(const json_t* attrs, const char* name) {
  return json_object_get(attrs, name) != NULL;
}

// Adds the inputs, and the attrs that follow from them where the row does not give them.
static void add_inputs(TF_OperationDescription* desc, const opdef_t* def, const inputs_t* in) {
  for (size_t i = 0; i < in->count; i++) {
    const opdef_arg_t* arg = i < def->input_count ? &def->inputs[i] : NULL;
    if (arg && (arg->number_attr[0] || arg->type_list_attr[0])) {
      TF_AddInputList(desc, in->args[i].outputs, (int)in->args[i].count);
    } else {
      for (size_t j = 0; j < in->args[i].count; j++) TF_AddInput(desc, in->args[i].outputs[j]);
    }
  }
}

static void infer_attrs(TF_OperationDescription* desc, const opdef_t* def, const inputs_t* in,
                        const json_t* attrs) {
  const char* done[3 * MAX_ARGS];
  size_t done_count = 0;
  for (size_t i = 0; i < in->count && i < def->input_count; i++) {
    const opdef_arg_t* arg = &def->inputs[i];
    const arg_t* given = &in->args[i];
    const char* names[] = {arg->type_list_attr, arg->number_attr, arg->type_attr};
    for (int k = 0; k < 3; k++) {
      bool skip = !names[k][0] || is_given(attrs, names[k]) || (k == 2 && given->count == 0);
      for (size_t d = 0; d < done_count; d++) skip = skip || strcmp(done[d], names[k]) == 0;
      if (skip) continue;
      done[done_count++] = names[k];
      TF_DataType types[MAX_NODES];
      for (size_t j = 0; j < given->count; j++) {
        types[j] = base_type(TF_OperationOutputType(given->outputs[j]));
      }
      if (k == 0) TF_SetAttrTypeList(desc, names[k], types, (int)given->count);
      if (k == 1) TF_SetAttrInt(desc, names[k], (int64_t)given->count);
      if (k == 2) TF_SetAttrType(desc, names[k], types[0]);
    }
  }
}

// ---- nodes

static bool find_op(build_t* b, const char* name, opdef_t* out) {
  TF_Buffer* bytes = TF_NewBuffer();
  TF_GraphGetOpDef(b->graph, name, bytes, b->status);
  bool ok = is_ok(b);
  if (ok && !opdef_parse(bytes->data, bytes->length, out)) ok = bad_row(b, "bad OpDef", name);
  TF_DeleteBuffer(bytes);
  return ok;
}

static TF_Operation* build_node(build_t* b, const json_t* spec, const char* name) {
  const char* op_name = text(spec, "op");
  json_t* attrs = json_object_get(spec, "attrs");
  const json_t* control = json_object_get(spec, "control");
  TF_Operation* before[MAX_ARGS];
  size_t before_count = 0;
  opdef_t* def = malloc(sizeof *def);
  inputs_t* in = calloc(1, sizeof *in);
  TF_Operation* op = NULL;
  if (!def || !in) abort();
  bool ok = find_op(b, op_name, def);
  for (; ok && before_count < json_array_size(control) && before_count < MAX_ARGS; before_count++) {
    TF_Output out;
    ok = build_input(b, json_array_get(control, before_count), &out);
    before[before_count] = out.oper;
  }
  if (ok && build_inputs(b, json_object_get(spec, "inputs"), in)) {
    TF_OperationDescription* desc = TF_NewOperation(b->graph, op_name, name);
    if (b->device && strcmp(name, "node") == 0) TF_SetDevice(desc, b->device);
    add_inputs(desc, def, in);
    for (size_t i = 0; i < before_count; i++) TF_AddControlInput(desc, before[i]);
    set_given_attrs(b, desc, def, attrs);
    infer_attrs(desc, def, in, attrs);
    const TF_Code code = TF_GetCode(b->status);
    op = TF_FinishOperation(desc, b->status);
    if (code != TF_OK || !is_ok(b)) op = NULL;
  }
  free(in);
  free(def);
  return op;
}

static bool build_steps(build_t* b, const json_t* specs, const char* prefix, TF_Operation** out,
                        size_t* out_count) {
  for (size_t i = 0; i < json_array_size(specs) && i < MAX_NODES; i++) {
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s%zu", prefix, i);
    out[i] = build_node(b, json_array_get(specs, i), name);
    if (!out[i]) return false;
    *out_count = i + 1;
  }
  return true;
}

bool build_has_gradient(const json_t* row, const dtype_t* dtype) {
  const char* kind = text(row, "grad");
  return dtype->kind == KIND_FLOAT ||
         (dtype->kind == KIND_COMPLEX && kind && !strcmp(kind, "complex"));
}

bool build_case(build_t* b, const json_t* row, bool has_static_shapes, const char* device) {
  memset(b, 0, sizeof *b);
  b->graph = TF_NewGraph();
  b->status = TF_NewStatus();
  b->row = row;
  b->has_static_shapes = has_static_shapes;
  b->device = device;
  b->node = build_node(b, row, "node");
  b->ids[b->id_count] = "node";
  b->id_outputs[b->id_count++] = (TF_Output){b->node, 0};
  return b->node &&
         build_steps(b, json_object_get(row, "before"), "before", b->before, &b->before_count) &&
         build_steps(b, json_object_get(row, "then"), "then", b->then, &b->then_count);
}

void build_destroy(build_t* b) {
  for (size_t i = 0; i < b->feed_count; i++) TF_DeleteTensor(b->feed_values[i]);
  TF_DeleteGraph(b->graph);
  TF_DeleteStatus(b->status);
}

size_t build_fetchable(TF_Operation* op, TF_Output* out) {
  size_t n = 0;
  for (int i = 0; i < TF_OperationNumOutputs(op) && n < MAX_OUTPUTS; i++) {
    const TF_Output o = {op, i};
    const TF_DataType type = base_type(TF_OperationOutputType(o));
    if (type != TF_RESOURCE && type != TF_VARIANT) out[n++] = o;
  }
  return n;
}

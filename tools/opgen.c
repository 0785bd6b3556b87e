// opgen: turns the ops/*.ops files into C tables, typed builders and reference pages.
//
//   opgen --families DIR/families.def --table T.c --builders ops.h --pages DIR
//         --cc DIR/cc_classes.def --cc-headers DIR
//
// doc/ops_format.md describes the format. On an error, opgen prints file:line and what it expected,
// and exits. It runs once per build, so it does not free memory.
#include "opgen.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char* name;
  const char* enumerator;
  bool is_trainable;  // gradients flow through values of this type
} dtypes[] = {
    {"float", "FLOAT", true},
    {"double", "DOUBLE", true},
    {"int32", "INT32", false},
    {"uint8", "UINT8", false},
    {"int16", "INT16", false},
    {"int8", "INT8", false},
    {"string", "STRING", false},
    {"complex64", "COMPLEX64", true},
    {"int64", "INT64", false},
    {"bool", "BOOL", false},
    {"qint8", "QINT8", false},
    {"quint8", "QUINT8", false},
    {"qint32", "QINT32", false},
    {"bfloat16", "BFLOAT16", true},
    {"qint16", "QINT16", false},
    {"quint16", "QUINT16", false},
    {"uint16", "UINT16", false},
    {"complex128", "COMPLEX128", true},
    {"half", "HALF", true},
    {"resource", "RESOURCE", false},
    {"variant", "VARIANT", false},
    {"uint32", "UINT32", false},
    {"uint64", "UINT64", false},
    {"float8_e5m2", "FLOAT8_E5M2", true},
    {"float8_e4m3fn", "FLOAT8_E4M3FN", true},
    {"float8_e4m3fnuz", "FLOAT8_E4M3FNUZ", true},
    {"float8_e4m3b11fnuz", "FLOAT8_E4M3B11FNUZ", true},
    {"float8_e5m2fnuz", "FLOAT8_E5M2FNUZ", true},
    {"int4", "INT4", false},
    {"uint4", "UINT4", false},
    {"int2", "INT2", false},
    {"uint2", "UINT2", false},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof *dtypes };

static const char* const kind_words[KIND_COUNT] = {"string", "int",   "float",  "bool",
                                                   "type",   "shape", "tensor", "func"};
static const char* const flag_words[] = {
    "stateful",    "commutative", "aggregate",       "allows_uninitialized",
    "distributed", "metadata",    "calls_functions", NULL};
static const char* const role_words[] = {
    "switch",          "merge",    "enter", "exit",     "next_iteration", "loop_cond",
    "control_trigger", "send",     "recv",  "constant", "no_op",          "placeholder",
    "identity",        "variable", "arg",   "retval",   "call",           "fused",
    "composite",       "if",       "case",  "while",    "gradient",       NULL};

// The state of the reader, which takes one logical line at a time.
typedef struct reader_t {
  const char* file;
  const char* family;
  int line;        // of the logical line's first physical line
  int indent;      // of the logical line
  char* text;      // the logical line
  const char* at;  // the unread rest
  ops_t* ops;
  struct {
    names_t names;
    names_t* members;
  } sets;
} reader_t;

static _Noreturn void fail_at(const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
static _Noreturn void fail_at(const char* file, int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s:%d: ", file, line);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}
#define fail(reader, ...) fail_at((reader)->file, (reader)->line, __VA_ARGS__)

static void* grow(void* items, int count, size_t size) {
  void* grown = realloc(items, (size_t)(count + 1) * size);
  if (!grown) exit(2);
  memset((char*)grown + (size_t)count * size, 0, size);
  return grown;
}
#define PUSH(items, count) ((items) = grow((items), (count), sizeof *(items)), &(items)[(count)++])

static char* copy_n(const char* text, size_t size) {
  char* copy = malloc(size + 1);
  if (!copy) exit(2);
  memcpy(copy, text, size);
  copy[size] = 0;
  return copy;
}
static char* copy(const char* text) { return copy_n(text, strlen(text)); }

void name_add(names_t* names, const char* text) { *PUSH(names->items, names->count) = copy(text); }

int name_find(const names_t* names, const char* text) {
  for (int i = 0; i < names->count; i++) {
    if (!strcmp(names->items[i], text)) return i;
  }
  return -1;
}

static int dtype_index(const char* name) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (!strcmp(dtypes[i].name, name)) return i;
  }
  return -1;
}

const char* dtype_enumerator(const char* name) {
  int i = dtype_index(name);
  return i < 0 ? NULL : dtypes[i].enumerator;
}

const char* kind_word(int kind) { return kind_words[kind]; }

int attr_index(const op_t* op, const char* name) {
  for (int i = 0; i < op->attr_count; i++) {
    if (!strcmp(op->attrs[i].name, name)) return i;
  }
  return -1;
}

bool is_mixed_list(const arg_t* arg) { return arg->is_list && !arg->number; }

// Tokens of the logical line.

static void skip_space(reader_t* reader) { reader->at += strspn(reader->at, " "); }

static bool take(reader_t* reader, const char* token) {
  skip_space(reader);
  size_t size = strlen(token);
  if (strncmp(reader->at, token, size)) return false;
  if (isalpha((unsigned char)*token) &&
      (isalnum((unsigned char)reader->at[size]) || reader->at[size] == '_')) {
    return false;
  }
  reader->at += size;
  return true;
}

static void expect(reader_t* reader, const char* token) {
  if (!take(reader, token)) fail(reader, "expected '%s' before '%.20s'", token, reader->at);
}

static void expect_end(reader_t* reader) {
  skip_space(reader);
  if (*reader->at) fail(reader, "did not expect '%.20s'", reader->at);
}

static char* take_word(reader_t* reader, const char* what) {
  skip_space(reader);
  size_t size = 0;
  while (isalnum((unsigned char)reader->at[size]) || reader->at[size] == '_') size++;
  if (!size || isdigit((unsigned char)*reader->at)) {
    fail(reader, "expected %s before '%.20s'", what, reader->at);
  }
  char* word = copy_n(reader->at, size);
  reader->at += size;
  return word;
}

static char* take_rest(reader_t* reader) {
  skip_space(reader);
  if (!*reader->at) fail(reader, "expected text");
  char* rest = copy(reader->at);
  reader->at += strlen(reader->at);
  return rest;
}

static char* take_number(reader_t* reader, bool is_float) {
  skip_space(reader);
  char* end;
  errno = 0;
  if (is_float) {
    strtod(reader->at, &end);
  } else {
    strtoll(reader->at, &end, 10);
  }
  if (end == reader->at || errno) fail(reader, "expected a number before '%.20s'", reader->at);
  char* number = copy_n(reader->at, (size_t)(end - reader->at));
  reader->at = end;
  return number;
}

static char* take_string(reader_t* reader) {
  expect(reader, "\"");
  char* text = copy(reader->at);
  size_t size = 0;
  for (; *reader->at && *reader->at != '"'; reader->at++) {
    char c = *reader->at;
    if (c == '\\') {
      c = *++reader->at;
      if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      } else if (c != '"' && c != '\\') {
        fail(reader, "only \\n, \\t, \\\" and \\\\ are known in strings");
      }
    }
    text[size++] = c;
  }
  text[size] = 0;
  expect(reader, "\"");
  return text;
}

static dims_t take_shape(reader_t* reader) {
  dims_t dims = {-1, NULL};
  if (take(reader, "?")) return dims;
  expect(reader, "[");
  dims.rank = 0;
  if (take(reader, "]")) return dims;
  do {
    int64_t dim = take(reader, "?") ? -1 : strtoll(take_number(reader, false), NULL, 10);
    *PUSH(dims.dims, dims.rank) = dim;
  } while (take(reader, ","));
  expect(reader, "]");
  return dims;
}

// Reads {float, double} or {number}; the name of a set stands for its members.
static names_t take_type_set(reader_t* reader) {
  names_t types = {0};
  expect(reader, "{");
  do {
    char* word = take_word(reader, "a type");
    int set = name_find(&reader->sets.names, word);
    if (dtype_index(word) >= 0) {
      name_add(&types, word);
    } else if (set >= 0) {
      const names_t* members = &reader->sets.members[set];
      for (int i = 0; i < members->count; i++) name_add(&types, members->items[i]);
    } else {
      fail(reader, "'%s' is neither a type nor a set of types", word);
    }
  } while (take(reader, ","));
  expect(reader, "}");
  return types;
}

static names_t take_string_set(reader_t* reader) {
  names_t strings = {0};
  expect(reader, "{");
  do {
    name_add(&strings, take_string(reader));
  } while (take(reader, ","));
  expect(reader, "}");
  return strings;
}

// Reads a tensor, written as a vector: its type, then its elements.
static void take_tensor(reader_t* reader, value_t* value) {
  char* type = take_word(reader, "a type");
  if (strcmp(type, "uint8")) fail(reader, "a default tensor must be uint8, not '%s'", type);
  name_add(&value->words, type);
  expect(reader, "[");
  do {
    name_add(&value->words, take_number(reader, false));
  } while (take(reader, ","));
  expect(reader, "]");
}

static void take_value(reader_t* reader, int kind, value_t* value) {
  if (kind == KIND_TENSOR) {
    take_tensor(reader, value);
    return;
  }
  dims_t shape = {0, NULL};
  char* word = NULL;
  switch (kind) {
    case KIND_STRING:
      word = take_string(reader);
      break;
    case KIND_INT:
      word = take_number(reader, false);
      break;
    case KIND_FLOAT:
      word = take_number(reader, true);
      break;
    case KIND_SHAPE:
      shape = take_shape(reader);
      break;
    case KIND_BOOL:
      word = take_word(reader, "true or false");
      if (strcmp(word, "true") && strcmp(word, "false")) fail(reader, "expected true or false");
      break;
    case KIND_TYPE:
      word = take_word(reader, "a type");
      if (dtype_index(word) < 0) fail(reader, "'%s' is not a type", word);
      break;
    default:
      fail(reader, "attributes of kind %s cannot have a default", kind_words[kind]);
  }
  int at = value->words.count;
  value->shapes = grow(value->shapes, at, sizeof *value->shapes);
  value->shapes[at] = shape;
  name_add(&value->words, word ? word : "");
}

// Lines.

static arg_t* take_args(reader_t* reader, int* out_count) {
  arg_t* args = NULL;
  expect(reader, "(");
  if (take(reader, ")")) return NULL;
  do {
    arg_t arg = {.name = take_word(reader, "an argument's name")};
    expect(reader, ":");
    arg.is_ref = take(reader, "ref");
    arg.is_list = take(reader, "list");
    arg.type = take_word(reader, "a type");
    if (take(reader, "*")) {
      arg.number = arg.type;
      arg.is_list = true;
      arg.type = take_word(reader, "a type");
    }
    *PUSH(args, *out_count) = arg;
  } while (take(reader, ","));
  expect(reader, ")");
  return args;
}

static void read_op(reader_t* reader) {
  op_t op = {.file = reader->file, .line = reader->line, .family = reader->family};
  op.name = take_word(reader, "an op's name");
  op.inputs = take_args(reader, &op.input_count);
  expect(reader, "->");
  op.outputs = take_args(reader, &op.output_count);
  expect_end(reader);
  *PUSH(reader->ops->items, reader->ops->count) = op;
}

// Reads an op that another one stands behind; resolve_faces completes it.
static void read_face(reader_t* reader) {
  op_t op = {.file = reader->file, .line = reader->line, .family = reader->family};
  op.name = take_word(reader, "an op's name");
  expect(reader, "of");
  op.face_of = take_word(reader, "an op's name");
  if (take(reader, "without")) {
    do {
      name_add(&op.without, take_word(reader, "an attribute's name"));
    } while (take(reader, ","));
  }
  expect_end(reader);
  *PUSH(reader->ops->items, reader->ops->count) = op;
}

static void read_types(reader_t* reader) {
  name_add(&reader->sets.names, take_word(reader, "the set's name"));
  expect(reader, "=");
  names_t members = take_type_set(reader);
  reader->sets.members =
      grow(reader->sets.members, reader->sets.names.count - 1, sizeof *reader->sets.members);
  reader->sets.members[reader->sets.names.count - 1] = members;
  expect_end(reader);
}

static int take_kind(reader_t* reader) {
  char* word = take_word(reader, "a kind of attribute");
  for (int i = 0; i < KIND_COUNT; i++) {
    if (!strcmp(kind_words[i], word)) return i;
  }
  fail(reader, "'%s' is not a kind of attribute", word);
}

static void read_attr(reader_t* reader, op_t* op, char* name) {
  attr_t attr = {.name = name, .inferred_from = -1};
  if (attr_index(op, name) >= 0) fail(reader, "attribute %s is defined twice", name);
  skip_space(reader);
  if (*reader->at == '{') {
    attr.kind = KIND_TYPE;
    attr.allowed = take_type_set(reader);
  } else if (take(reader, "list")) {
    attr.is_list = true;
    expect(reader, "(");
    attr.kind = take_kind(reader);
    expect(reader, ")");
  } else {
    attr.kind = take_kind(reader);
  }
  if (take(reader, "in")) {
    if (attr.kind != KIND_TYPE && attr.kind != KIND_STRING) {
      fail(reader, "only types and strings have sets of allowed values");
    }
    attr.allowed = attr.kind == KIND_TYPE ? take_type_set(reader) : take_string_set(reader);
  }
  if (take(reader, ">=")) {
    attr.has_minimum = true;
    attr.minimum = strtoll(take_number(reader, false), NULL, 10);
  }
  if (take(reader, "=")) {
    attr.has_default = true;
    if (!attr.is_list) {
      take_value(reader, attr.kind, &attr.value);
    } else {
      expect(reader, "[");
      if (!take(reader, "]")) {
        do {
          take_value(reader, attr.kind, &attr.value);
        } while (take(reader, ","));
        expect(reader, "]");
      }
    }
  }
  expect_end(reader);
  *PUSH(op->attrs, op->attr_count) = attr;
}

static void check_listed(reader_t* reader, const char* word, const char* const* list,
                         const char* what) {
  for (int i = 0; list[i]; i++) {
    if (!strcmp(list[i], word)) return;
  }
  fail(reader, "'%s' is not a %s", word, what);
}

static void read_full(reader_t* reader, op_t* op) {
  char* name = take_word(reader, "an argument's name");
  char* digits = take_rest(reader);
  if (strlen(digits) % 2 || strspn(digits, "0123456789abcdef") != strlen(digits)) {
    fail(reader, "expected bytes in hexadecimal");
  }
  for (int i = 0; i < op->input_count; i++) {
    if (!strcmp(op->inputs[i].name, name)) op->inputs[i].full = digits;
  }
  for (int i = 0; i < op->output_count; i++) {
    if (!strcmp(op->outputs[i].name, name)) op->outputs[i].full = digits;
  }
}

static void set_once(reader_t* reader, char** field, char* text) {
  if (*field) fail(reader, "this property is given twice");
  *field = text;
}

static void read_property(reader_t* reader) {
  if (!reader->ops->count) fail(reader, "a property must follow an op");
  op_t* op = &reader->ops->items[reader->ops->count - 1];
  if (op->face_of) fail(reader, "a face has no properties of its own");
  char* word = take_word(reader, "a property");
  if (take(reader, ":")) {
    read_attr(reader, op, word);
  } else if (!strcmp(word, "flags")) {
    for (skip_space(reader); *reader->at; skip_space(reader)) {
      char* flag = take_word(reader, "a flag");
      check_listed(reader, flag, flag_words, "flag");
      name_add(&op->flags, flag);
    }
  } else if (!strcmp(word, "role")) {
    set_once(reader, &op->role, take_word(reader, "a role"));
    check_listed(reader, op->role, role_words, "role");
  } else if (!strcmp(word, "shape")) {
    set_once(reader, &op->shape, take_word(reader, "a shape function"));
  } else if (!strcmp(word, "grad")) {
    set_once(reader, &op->grad, take_word(reader, "a gradient"));
  } else if (!strcmp(word, "doc")) {
    set_once(reader, &op->doc, take_rest(reader));
  } else if (!strcmp(word, "deprecated")) {
    op->deprecated_at = atoi(take_number(reader, false));
    set_once(reader, &op->deprecation, take_rest(reader));
  } else if (!strcmp(word, "full")) {
    read_full(reader, op);
  } else {
    fail(reader, "'%s' is not a property of an op", word);
  }
  expect_end(reader);
}

static void read_line(reader_t* reader) {
  reader->at = reader->text;
  if (reader->indent) {
    read_property(reader);
  } else if (take(reader, "op")) {
    read_op(reader);
  } else if (take(reader, "face")) {
    read_face(reader);
  } else if (take(reader, "types")) {
    read_types(reader);
  } else {
    fail(reader, "expected op, face or types");
  }
}

static char* read_whole(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) fail_at(path, 0, "%s", strerror(errno));
  char* text = NULL;
  size_t size = 0, got;
  do {
    text = realloc(text, size + 65537);
    if (!text) exit(2);
    got = fread(text + size, 1, 65536, file);
    size += got;
  } while (got);
  text[size] = 0;
  fclose(file);
  return text;
}

// Splits a file into logical lines: drops comments and empty lines, and joins lines indented by
// four or more to the previous one.
static void read_file(reader_t* reader, const char* path) {
  reader->file = copy(path);
  reader->text = NULL;
  char* next = read_whole(path);
  for (int line = 1; *next; line++) {
    char* text = next;
    next += strcspn(next, "\n");
    if (*next) *next++ = 0;
    int indent = (int)strspn(text, " ");
    text += indent;
    size_t size = strlen(text);
    while (size && (text[size - 1] == ' ' || text[size - 1] == '\r')) text[--size] = 0;
    if (!size || *text == '#') continue;
    if (strchr(text, '\t')) fail_at(path, line, "tabs are not allowed");
    if (indent >= 4) {
      if (!reader->text) fail_at(path, line, "no line to continue");
      char* joined = malloc(strlen(reader->text) + size + 2);
      if (!joined) exit(2);
      sprintf(joined, "%s %s", reader->text, text);
      reader->text = joined;
      continue;
    }
    if (reader->text) read_line(reader);
    reader->line = line;
    reader->indent = indent;
    reader->text = text;
  }
  if (reader->text) read_line(reader);
}

// Checks of whole ops.

static void resolve_arg(op_t* op, arg_t* arg, int input) {
  const char* needs[2] = {arg->number, dtype_index(arg->type) < 0 ? arg->type : NULL};
  if (is_mixed_list(arg) && !needs[1]) {
    fail_at(op->file, op->line, "%s: a list needs an attribute of kind list(type)", arg->name);
  }
  for (int i = 0; i < 2; i++) {
    if (!needs[i]) continue;
    int at = attr_index(op, needs[i]);
    if (at < 0) fail_at(op->file, op->line, "%s: no attribute %s", arg->name, needs[i]);
    attr_t* attr = &op->attrs[at];
    int kind = i == 0 ? KIND_INT : KIND_TYPE;
    bool is_list = i == 1 && is_mixed_list(arg);
    if (attr->kind != kind || attr->is_list != is_list) {
      fail_at(op->file, op->line, "%s: attribute %s has the wrong kind", arg->name, needs[i]);
    }
    if (input >= 0 && attr->inferred_from < 0) attr->inferred_from = input;
  }
}

static bool is_trainable(const op_t* op, const arg_t* arg) {
  int dtype = dtype_index(arg->type);
  if (dtype >= 0) return dtypes[dtype].is_trainable;
  const attr_t* attr = &op->attrs[attr_index(op, arg->type)];
  for (int i = 0; i < attr->allowed.count; i++) {
    if (dtypes[dtype_index(attr->allowed.items[i])].is_trainable) return true;
  }
  return attr->allowed.count == 0;
}

static void check_op(op_t* op) {
  bool in = false, out = false;
  for (int i = 0; i < op->input_count; i++) {
    resolve_arg(op, &op->inputs[i], i);
    in = in || is_trainable(op, &op->inputs[i]);
  }
  for (int i = 0; i < op->output_count; i++) {
    resolve_arg(op, &op->outputs[i], -1);
    out = out || is_trainable(op, &op->outputs[i]);
  }
  if (!op->shape) fail_at(op->file, op->line, "%s: no shape function", op->name);
  if (!op->doc) fail_at(op->file, op->line, "%s: no doc", op->name);
  if (in && out && !op->grad) {
    fail_at(op->file, op->line, "%s: takes and returns floats, so it needs a grad line", op->name);
  }
  for (int i = 0; i < op->attr_count; i++) {
    const attr_t* attr = &op->attrs[i];
    for (int j = 0; attr->allowed.count && j < attr->value.words.count; j++) {
      if (name_find(&attr->allowed, attr->value.words.items[j]) < 0) {
        fail_at(op->file, op->line, "%s: the default of %s is not allowed", op->name, attr->name);
      }
    }
  }
}

// Gives |face| the definition of |base|, without some attributes.
static void copy_definition(op_t* face, const op_t* base) {
  op_t made = *base;
  made.name = face->name;
  made.face_of = face->face_of;
  made.without = face->without;
  made.family = face->family;
  made.file = face->file;
  made.line = face->line;
  made.attrs = NULL;
  made.attr_count = 0;
  int dropped = 0;
  for (int i = 0; i < base->attr_count; i++) {
    if (name_find(&face->without, base->attrs[i].name) >= 0) {
      dropped++;
    } else {
      *PUSH(made.attrs, made.attr_count) = base->attrs[i];
    }
  }
  if (dropped != face->without.count) {
    fail_at(face->file, face->line, "%s lacks an attribute that is left out", base->name);
  }
  size_t size = strlen(base->name) + 32;
  made.doc = malloc(size);
  if (!made.doc) exit(2);
  snprintf(made.doc, size, "Another name of %s.", base->name);
  *face = made;
}

static void resolve_faces(ops_t* ops) {
  for (int i = 0; i < ops->count; i++) {
    op_t* face = &ops->items[i];
    if (!face->face_of) continue;
    int at = 0;
    while (at < ops->count && strcmp(ops->items[at].name, face->face_of)) at++;
    if (at == ops->count || ops->items[at].face_of) {
      fail_at(face->file, face->line, "%s is not an op with a definition", face->face_of);
    }
    copy_definition(face, &ops->items[at]);
  }
}

static int by_name(const void* a, const void* b) {
  return strcmp(((const op_t*)a)->name, ((const op_t*)b)->name);
}

static void check_ops(ops_t* ops) {
  resolve_faces(ops);
  for (int i = 0; i < ops->count; i++) check_op(&ops->items[i]);
  qsort(ops->items, (size_t)ops->count, sizeof *ops->items, by_name);
  for (int i = 1; i < ops->count; i++) {
    const op_t *op = &ops->items[i], *other = op - 1;
    if (!strcmp(op->name, other->name)) {
      fail_at(op->file, op->line, "%s is defined at %s:%d too", op->name, other->file, other->line);
    }
  }
}

static void read_families(reader_t* reader, const char* path) {
  const char* slash = strrchr(path, '/');
  int folder = slash ? (int)(slash - path + 1) : 0;
  char* save = NULL;
  for (char* name = strtok_r(read_whole(path), "\n", &save); name;
       name = strtok_r(NULL, "\n", &save)) {
    if (*name == '#') continue;
    char file[4096];
    snprintf(file, sizeof file, "%.*s%s.ops", folder, path, name);
    name_add(&reader->ops->families, name);
    reader->family = copy(name);
    read_file(reader, file);
  }
}

static FILE* open_output(const char* path) {
  FILE* out = fopen(path, "wb");
  if (!out) fail_at(path, 0, "%s", strerror(errno));
  return out;
}

static void close_output(FILE* out, const char* path) {
  if (ferror(out) || fclose(out)) fail_at(path, 0, "write failed");
}

void write_string(FILE* out, const char* text) {
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\' || *text == '\n' || *text == '\t') fputc('\\', out);
    fputc(*text == '\n' ? 'n' : *text == '\t' ? 't' : *text, out);
  }
  fputc('"', out);
}

// Keeps the ops that the file |path| names, one per line, without their gradient rules.
static void keep_only(ops_t* ops, const char* path) {
  names_t wanted = {0};
  char* save = NULL;
  for (char* name = strtok_r(read_whole(path), "\n", &save); name;
       name = strtok_r(NULL, "\n", &save))
    name_add(&wanted, name);
  int count = 0;
  for (int i = 0; i < ops->count; i++) {
    if (name_find(&wanted, ops->items[i].name) < 0) continue;
    ops->items[count] = ops->items[i];
    ops->items[count++].grad = copy("refused");
  }
  ops->count = count;
}

// Writes one C++ header per "header" line of |classes| into |folder|.
static void write_cc_headers(const ops_t* ops, const char* classes, const char* folder) {
  FILE* out = NULL;
  char path[4096] = "";
  char header[256] = "";
  char* save = NULL;
  for (char* line = strtok_r(read_whole(classes), "\n", &save); line;
       line = strtok_r(NULL, "\n", &save)) {
    if (*line == '#') continue;
    if (*line == ' ') {
      const char* wrong = out ? write_cc_class(out, ops, line + 2) : line;
      if (wrong) fail_at(classes, 0, "unexpected '%s' under header %s", wrong, header);
      continue;
    }
    if (out) {
      end_cc_header(out, header);
      close_output(out, path);
    }
    if (sscanf(line, "header %200s", header) != 1)
      fail_at(classes, 0, "expected a header: %s", line);
    snprintf(path, sizeof path, "%s/%s.h", folder, header);
    out = open_output(path);
    begin_cc_header(out, header);
  }
  if (out) {
    end_cc_header(out, header);
    close_output(out, path);
  }
}

int main(int argc, char** argv) {
  const char *cc_classes = NULL, *cc_folder = NULL;
  const char *families = NULL, *table = NULL, *builders = NULL, *pages = NULL, *only = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--families")) families = argv[i + 1];
    if (!strcmp(argv[i], "--table")) table = argv[i + 1];
    if (!strcmp(argv[i], "--builders")) builders = argv[i + 1];
    if (!strcmp(argv[i], "--pages")) pages = argv[i + 1];
    if (!strcmp(argv[i], "--only")) only = argv[i + 1];
    if (!strcmp(argv[i], "--cc")) cc_classes = argv[i + 1];
    if (!strcmp(argv[i], "--cc-headers")) cc_folder = argv[i + 1];
  }
  if (!families) {
    fprintf(stderr,
            "usage: opgen --families FILE [--table FILE] [--builders FILE] [--pages DIR] "
            "[--only FILE] [--cc FILE --cc-headers DIR]\n"
            "--only: the table has the ops that FILE names, and no gradient rules\n");
    return 2;
  }
  ops_t ops = {0};
  reader_t reader = {.ops = &ops};
  read_families(&reader, families);
  check_ops(&ops);
  if (builders) {
    FILE* out = open_output(builders);
    write_builders(out, &ops);
    close_output(out, builders);
  }
  if (cc_classes && cc_folder) write_cc_headers(&ops, cc_classes, cc_folder);
  if (only) keep_only(&ops, only);
  if (table) {
    FILE* out = open_output(table);
    write_table(out, &ops);
    close_output(out, table);
  }
  for (int i = 0; pages && i < ops.families.count; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.md", pages, ops.families.items[i]);
    FILE* out = open_output(path);
    write_page(out, &ops, ops.families.items[i]);
    close_output(out, path);
  }
  return 0;
}

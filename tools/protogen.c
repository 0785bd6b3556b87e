// protogen: .proto files to C structs and descriptor tables (see src/wire/message.h).
//
//   protogen OUT_DIR FILE.proto... [--imports FILE.proto...]
//
// reads all files (every import must be among them) and writes for each FILE.pb.h and FILE.pb.c,
// and for all together messages.pb.h and messages.pb.c, the list of every message. Files after
// --imports were generated before: they are only read; instead of the list there are services.pb.h
// and services.pb.c, the services of the other files and the descriptors of what they use
// (protogen_files.c). The language is the part of proto3 that our files use: package, import,
// message, enum, service, oneof, map, repeated, optional, reserved, option (skipped, except
// packed). Anything else is an error with file and line.
#include "protogen.h"

#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void die(const char* where, int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s:%d: ", where, line);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

void* keep(gen_t* g, size_t size) {
  struct block_t* block = calloc(1, sizeof *block + size);
  if (!block) die("protogen", 0, "out of memory");
  block->next = g->blocks;
  g->blocks = block;
  return block->data;
}

char* keep_printf(gen_t* g, const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int size = vsnprintf(NULL, 0, format, args);
  char* text = keep(g, (size_t)size + 1);
  vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  va_end(args);
  return text;
}

// Appends to a singly linked list, keeping the order.
#define APPEND(type, head, item)         \
  do {                                   \
    type** end_ = &(head);               \
    while (*end_) end_ = &(*end_)->next; \
    *end_ = (item);                      \
  } while (0)

// Reading.

static void next(gen_t* g) {
  for (;;) {
    while (isspace((unsigned char)*g->at)) g->line += *g->at++ == '\n';
    if (g->at[0] == '/' && g->at[1] == '/') {
      while (*g->at && *g->at != '\n') ++g->at;
    } else {
      break;
    }
  }
  const char* start = g->at;
  g->is_string = *start == '"';
  if (g->is_string) {
    while (*++g->at && *g->at != '"' && *g->at != '\n') continue;
    if (*g->at != '"') die(g->path, g->line, "string without an end");
    ++start;
  } else if (isalnum((unsigned char)*start) || *start == '_' || *start == '-') {
    ++g->at;
    while (isalnum((unsigned char)*g->at) || *g->at == '_' || *g->at == '.') ++g->at;
  } else if (*start) {
    ++g->at;
  }
  size_t size = (size_t)(g->at - start);
  if (size >= sizeof g->token) die(g->path, g->line, "name too long");
  memcpy(g->token, start, size);
  g->token[size] = 0;
  if (g->is_string) ++g->at;
}

static bool is(const gen_t* g, const char* text) {
  return !g->is_string && strcmp(g->token, text) == 0;
}

static bool accept(gen_t* g, const char* text) {
  if (!is(g, text)) return false;
  next(g);
  return true;
}

static void expect(gen_t* g, const char* text) {
  if (!accept(g, text)) die(g->path, g->line, "expected '%s', found '%s'", text, g->token);
}

static char* take_name(gen_t* g) {
  if (g->is_string || !(isalpha((unsigned char)g->token[0]) || g->token[0] == '_')) {
    die(g->path, g->line, "expected a name, found '%s'", g->token);
  }
  char* name = keep_printf(g, "%s", g->token);
  next(g);
  return name;
}

static long take_number(gen_t* g) {
  char* end = NULL;
  long number = strtol(g->token, &end, 0);
  if (end == g->token || *end) die(g->path, g->line, "expected a number, found '%s'", g->token);
  next(g);
  return number;
}

static void skip_statement(gen_t* g) {
  while (g->token[0] && !is(g, ";")) next(g);
  expect(g, ";");
}

// "a.b" and "C" give "a.b.C".
static char* join(gen_t* g, const char* scope, const char* name) {
  return *scope ? keep_printf(g, "%s.%s", scope, name) : keep_printf(g, "%s", name);
}

// tensorflow.A.B gives rn_pb_A_B: our package has no name in C.
static char* c_name_of(gen_t* g, const char* full_name) {
  const char* ours = "tensorflow.";
  if (strncmp(full_name, ours, strlen(ours)) == 0) full_name += strlen(ours);
  if (strcmp(full_name, "tensorflow") == 0) full_name = "";
  char* name = keep_printf(g, *full_name ? "rn_pb_%s" : "rn_pb%s", full_name);
  for (char* c = name; *c; ++c) *c = *c == '.' ? '_' : *c;
  return name;
}

static void read_enum(gen_t* g, file_t* file, const char* scope) {
  enum_t* e = keep(g, sizeof *e);
  e->full_name = join(g, scope, take_name(g));
  e->c_name = c_name_of(g, e->full_name);
  e->c_prefix = c_name_of(g, scope);
  APPEND(enum_t, file->enums, e);
  expect(g, "{");
  while (!accept(g, "}")) {
    if (is(g, "option") || is(g, "reserved")) {
      skip_statement(g);
      continue;
    }
    enum_value_t* value = keep(g, sizeof *value);
    value->name = take_name(g);
    expect(g, "=");
    value->number = take_number(g);
    skip_statement(g);
    APPEND(enum_value_t, e->values, value);
  }
}

static message_t* new_message(gen_t* g, file_t* file, const char* full_name) {
  message_t* m = keep(g, sizeof *m);
  m->file = file;
  m->full_name = keep_printf(g, "%s", full_name);
  m->c_name = c_name_of(g, full_name);
  APPEND(message_t, file->messages, m);
  return m;
}

static field_t* add_field(gen_t* g, message_t* m, char* type_name, char* name, long number) {
  field_t* f = keep(g, sizeof *f);
  f->type_name = type_name;
  f->name = name;
  f->number = number;
  f->line = g->line;
  f->packed = true;
  if (number < 1 || number >= 1 << 29) die(g->path, g->line, "bad field number %ld", number);
  for (const field_t* other = m->fields; other; other = other->next) {
    if (other->number == number || strcmp(other->name, name) == 0) {
      die(g->path, g->line, "field '%s' = %ld comes twice", name, number);
    }
  }
  APPEND(field_t, m->fields, f);
  return f;
}

// some_name gives SomeNameEntry, the name that a map's entry type has everywhere.
static char* entry_name(gen_t* g, const char* field_name) {
  char* name = keep(g, strlen(field_name) + strlen("Entry") + 1);
  size_t size = 0;
  bool upper = true;
  for (const char* c = field_name; *c; ++c) {
    if (*c != '_') name[size++] = (char)(upper ? toupper((unsigned char)*c) : *c);
    upper = *c == '_';
  }
  strcpy(name + size, "Entry");
  return name;
}

static void read_map(gen_t* g, file_t* file, message_t* m) {
  expect(g, "<");
  char* key_type = take_name(g);
  expect(g, ",");
  char* value_type = take_name(g);
  expect(g, ">");
  char* name = take_name(g);
  expect(g, "=");
  long number = take_number(g);
  skip_statement(g);
  message_t* entry = new_message(g, file, join(g, m->full_name, entry_name(g, name)));
  entry->is_map_entry = true;
  add_field(g, entry, key_type, keep_printf(g, "key"), 1);
  add_field(g, entry, value_type, keep_printf(g, "value"), 2);
  field_t* f = add_field(g, m, keep_printf(g, ".%s", entry->full_name), name, number);
  f->repeated = f->is_map = true;
}

static field_t* read_field(gen_t* g, message_t* m) {
  char* type_name = take_name(g);
  char* name = take_name(g);
  expect(g, "=");
  field_t* f = add_field(g, m, type_name, name, take_number(g));
  if (accept(g, "[")) {
    while (!is(g, ";") && g->token[0]) {
      if (accept(g, "packed")) {
        expect(g, "=");
        f->packed = is(g, "true");
      }
      next(g);
    }
  }
  expect(g, ";");
  return f;
}

static void read_message(gen_t* g, file_t* file, const char* scope) {
  message_t* m = new_message(g, file, join(g, scope, take_name(g)));
  expect(g, "{");
  while (!accept(g, "}")) {
    if (accept(g, "message")) {
      read_message(g, file, m->full_name);
    } else if (accept(g, "enum")) {
      read_enum(g, file, m->full_name);
    } else if (is(g, "reserved") || is(g, "option")) {
      skip_statement(g);
    } else if (accept(g, "map")) {
      read_map(g, file, m);
    } else if (accept(g, "oneof")) {
      char* oneof = take_name(g);
      expect(g, "{");
      while (!accept(g, "}")) read_field(g, m)->oneof = oneof;
    } else {
      bool repeated = accept(g, "repeated");
      bool optional = !repeated && accept(g, "optional");
      field_t* f = read_field(g, m);
      f->repeated = repeated;
      f->optional = optional;
    }
  }
}

// One type of a method: "(stream Name)".
static char* read_method_type(gen_t* g, bool* out_streams) {
  expect(g, "(");
  *out_streams = accept(g, "stream");
  char* name = take_name(g);
  expect(g, ")");
  return name;
}

static void read_service(gen_t* g, file_t* file) {
  service_t* service = keep(g, sizeof *service);
  service->full_name = join(g, file->package, take_name(g));
  APPEND(service_t, file->services, service);
  expect(g, "{");
  while (!accept(g, "}")) {
    expect(g, "rpc");
    method_t* method = keep(g, sizeof *method);
    method->line = g->line;
    method->name = take_name(g);
    method->request = read_method_type(g, &method->client_streams);
    expect(g, "returns");
    method->response = read_method_type(g, &method->server_streams);
    expect(g, ";");
    APPEND(method_t, service->methods, method);
  }
}

// "dir/graph.proto" gives "graph".
static char* base_of(gen_t* g, const char* path) {
  const char* slash = strrchr(path, '/');
  char* base = keep_printf(g, "%s", slash ? slash + 1 : path);
  char* dot = strstr(base, ".proto");
  if (!dot || dot[6]) die(path, 0, "not a .proto file");
  *dot = 0;
  return base;
}

static char* load(gen_t* g, const char* path) {
  FILE* in = fopen(path, "rb");
  long size = -1;
  if (in && fseek(in, 0, SEEK_END) == 0) size = ftell(in);
  if (size < 0) die(path, 0, "cannot be read");
  char* text = keep(g, (size_t)size + 1);
  rewind(in);
  if (fread(text, 1, (size_t)size, in) != (size_t)size) die(path, 0, "cannot be read");
  fclose(in);
  return text;
}

static void read_file(gen_t* g, const char* path) {
  file_t* file = keep(g, sizeof *file);
  file->path = keep_printf(g, "%s", path);
  file->base = base_of(g, path);
  file->is_import = g->reads_imports;
  file->package = keep_printf(g, "%s", "");
  APPEND(file_t, g->files, file);
  g->path = file->path;
  g->at = load(g, path);
  g->line = 1;
  next(g);
  while (g->token[0] || g->is_string) {
    if (accept(g, "syntax")) {
      expect(g, "=");
      if (strcmp(g->token, "proto3") != 0) die(path, g->line, "only proto3 is read");
      skip_statement(g);
    } else if (accept(g, "package")) {
      file->package = take_name(g);
      expect(g, ";");
    } else if (accept(g, "import")) {
      struct import_t* import = keep(g, sizeof *import);
      import->base = base_of(g, g->token);
      APPEND(struct import_t, file->imports, import);
      skip_statement(g);
    } else if (is(g, "option")) {
      skip_statement(g);
    } else if (accept(g, "message")) {
      read_message(g, file, file->package);
    } else if (accept(g, "enum")) {
      read_enum(g, file, file->package);
    } else if (accept(g, "service")) {
      read_service(g, file);
    } else {
      die(path, g->line, "expected a declaration, found '%s'", g->token);
    }
  }
}

// Resolving.

typedef struct scalar_t {
  const char* word;
  const char* kind;
  const char* c_type;
  const char* wire;
} scalar_t;

static const scalar_t scalars[] = {
    {"double", "DOUBLE", "double", "64"},       {"float", "FLOAT", "float", "32"},
    {"int64", "INT64", "int64_t", "VARINT"},    {"uint64", "UINT64", "uint64_t", "VARINT"},
    {"int32", "INT32", "int32_t", "VARINT"},    {"fixed64", "FIXED64", "uint64_t", "64"},
    {"fixed32", "FIXED32", "uint32_t", "32"},   {"bool", "BOOL", "bool", "VARINT"},
    {"string", "STRING", "rn_str_t", "LENGTH"}, {"bytes", "BYTES", "rn_str_t", "LENGTH"},
    {"uint32", "UINT32", "uint32_t", "VARINT"}, {"sfixed32", "SFIXED32", "int32_t", "32"},
    {"sfixed64", "SFIXED64", "int64_t", "64"},  {"sint32", "SINT32", "int32_t", "VARINT"},
    {"sint64", "SINT64", "int64_t", "VARINT"},
};

static const scalar_t* find_scalar(const char* word) {
  for (size_t i = 0; i < COUNT(scalars); ++i) {
    if (strcmp(scalars[i].word, word) == 0) return &scalars[i];
  }
  return NULL;
}

static bool sees(const file_t* from, const file_t* file) {
  if (from == file) return true;
  for (const struct import_t* i = from->imports; i; i = i->next) {
    if (strcmp(i->base, file->base) == 0) return true;
  }
  return false;
}

static bool find_type(const gen_t* g, const file_t* from, const char* full_name, field_t* f) {
  for (const file_t* file = g->files; file; file = file->next) {
    if (!sees(from, file)) continue;
    for (const message_t* m = file->messages; m; m = m->next) {
      if (strcmp(m->full_name, full_name) == 0) {
        f->message = m;
        f->kind = "MESSAGE";
        return true;
      }
    }
    for (const enum_t* e = file->enums; e; e = e->next) {
      if (strcmp(e->full_name, full_name) == 0) {
        f->enumeration = e;
        f->kind = "ENUM";
        return true;
      }
    }
  }
  return false;
}

// Looks for the type from the innermost scope outwards.
static void resolve_name(gen_t* g, const file_t* file, const char* innermost, field_t* f) {
  char* scope = keep_printf(g, "%s", innermost);
  while (!find_type(g, file, join(g, scope, f->type_name), f) && *scope) {
    char* dot = strrchr(scope, '.');
    *(dot ? dot : scope) = 0;
  }
}

static void resolve_field(gen_t* g, const message_t* m, field_t* f) {
  const scalar_t* scalar = find_scalar(f->type_name);
  if (scalar) {
    f->kind = scalar->kind;
  } else if (f->type_name[0] == '.') {
    find_type(g, m->file, f->type_name + 1, f);
  } else {
    resolve_name(g, m->file, m->full_name, f);
  }
  if (!f->kind) die(m->file->path, f->line, "no type '%s'", f->type_name);
  bool numeric = strcmp(f->kind, "STRING") && strcmp(f->kind, "BYTES") && !f->message;
  f->packed = f->packed && f->repeated && numeric;
  if (f->optional && f->message) f->optional = false;  // a pointer already tells whether it is set
}

// The full name of a method's type.
static char* resolve_method(gen_t* g, const file_t* file, const method_t* method, char* name) {
  field_t f = {.type_name = name};
  resolve_name(g, file, file->package, &f);
  if (!f.message) die(file->path, method->line, "no message '%s'", name);
  return f.message->full_name;
}

static void resolve(gen_t* g) {
  for (file_t* file = g->files; file; file = file->next) {
    for (const struct import_t* i = file->imports; i; i = i->next) {
      const file_t* other = g->files;
      while (other && strcmp(other->base, i->base) != 0) other = other->next;
      if (!other) die(file->path, 0, "import of '%s.proto', which was not given", i->base);
    }
    for (message_t* m = file->messages; m; m = m->next) {
      for (field_t* f = m->fields; f; f = f->next) resolve_field(g, m, f);
    }
    for (service_t* service = file->services; service; service = service->next) {
      for (method_t* m = service->methods; m; m = m->next) {
        m->request = resolve_method(g, file, m, m->request);
        m->response = resolve_method(g, file, m, m->response);
      }
    }
  }
}

// Writing.

static const char* const note = "// Generated by tools/protogen from %s.proto.\n";

FILE* create(gen_t* g, const char* dir, const char* base, const char* suffix) {
  char* path = keep_printf(g, "%s/%s%s", dir, base, suffix);
  FILE* out = fopen(path, "wb");
  if (!out) die(path, 0, "cannot be written");
  return out;
}

void finish(FILE* out, const char* base) {
  bool failed = ferror(out) != 0;
  if (fclose(out) != 0 || failed) die(base, 0, "cannot be written");
}

static void write_element_type(FILE* out, const field_t* f) {
  if (f->message) {
    fprintf(out, "%s_t", f->message->c_name);
  } else {
    fprintf(out, "%s", f->enumeration ? "int32_t" : find_scalar(f->type_name)->c_type);
  }
}

// A field whose name is a C keyword gets an underscore.
static const char* member(gen_t* g, const field_t* f) {
  static const char* const words[] = {
      "auto",  "bool",     "const",    "default",  "double", "enum",    "extern", "float",
      "int",   "long",     "register", "short",    "signed", "static",  "struct", "switch",
      "union", "unsigned", "void",     "volatile", "inline", "restrict"};
  for (size_t i = 0; i < COUNT(words); ++i) {
    if (strcmp(words[i], f->name) == 0) return keep_printf(g, "%s_", f->name);
  }
  return f->name;
}

static void write_member(gen_t* g, FILE* out, const field_t* f) {
  if (f->optional) fprintf(out, "  bool has_%s;\n", f->name);
  fprintf(out, f->repeated ? "  RN_PB_LIST(" : f->oneof ? "    " : "  ");
  write_element_type(out, f);
  fprintf(out, "%s %s;\n", f->repeated ? ")" : f->message ? "*" : "", member(g, f));
}

static void write_struct(gen_t* g, FILE* out, const message_t* m) {
  fprintf(out, "\nstruct %s_t {\n", m->c_name);
  const char* oneof = NULL;
  for (const field_t* f = m->fields; f; f = f->next) {
    if (f->oneof && f->oneof != oneof) fprintf(out, "  int32_t %s_case;\n  union {\n", f->oneof);
    oneof = f->oneof;
    write_member(g, out, f);
    if (oneof && (!f->next || f->next->oneof != oneof)) fprintf(out, "  };\n");
  }
  if (!m->fields) fprintf(out, "  char unused;\n");
  fprintf(out, "};\n");
  if (m->fields) {
    fprintf(out, "enum {\n");
    for (const field_t* f = m->fields; f; f = f->next) {
      fprintf(out, "  %s_%s_field = %ld,\n", m->c_name, f->name, f->number);
    }
    fprintf(out, "};\n");
  }
  fprintf(out, "extern const rn_pb_message_desc_t %s_desc;\n", m->c_name);
}

static void write_header(gen_t* g, const char* dir, const file_t* file) {
  FILE* out = create(g, dir, file->base, ".pb.h");
  fprintf(out, note, file->base);
  fprintf(out, "#ifndef RUNNEL_PROTO_%s_PB_H_\n#define RUNNEL_PROTO_%s_PB_H_\n\n", file->base,
          file->base);
  for (const struct import_t* i = file->imports; i; i = i->next) {
    fprintf(out, "#include \"proto/%s.pb.h\"\n", i->base);
  }
  fprintf(out, "#include \"wire/message.h\"\n\n");
  for (const message_t* m = file->messages; m; m = m->next) {
    fprintf(out, "typedef struct %s_t %s_t;\n", m->c_name, m->c_name);
  }
  for (const enum_t* e = file->enums; e; e = e->next) {
    fprintf(out, "\ntypedef enum %s_t {\n", e->c_name);
    for (const enum_value_t* v = e->values; v; v = v->next) {
      fprintf(out, "  %s_%s = %ld,\n", e->c_prefix, v->name, v->number);
    }
    fprintf(out, "} %s_t;\nextern const rn_pb_enum_desc_t %s_desc;\n", e->c_name, e->c_name);
  }
  for (const message_t* m = file->messages; m; m = m->next) write_struct(g, out, m);
  fprintf(out, "\n#endif\n");
  finish(out, file->base);
}

static int by_number(const void* a, const void* b) {
  const field_t *x = *(const field_t*const*)a, *y = *(const field_t*const*)b;
  return (x->number > y->number) - (x->number < y->number);
}

static void write_row(gen_t* g, FILE* out, const message_t* m, const field_t* f) {
  const scalar_t* scalar = find_scalar(f->type_name);
  fprintf(out, "    {\"%s\", ", f->name);
  if (f->message || f->enumeration) {
    fprintf(out, "&%s_desc", f->message ? f->message->c_name : f->enumeration->c_name);
  } else {
    fprintf(out, "NULL");
  }
  fprintf(out, ", %ld, offsetof(%s_t, %s), ", f->number, m->c_name, member(g, f));
  if (f->oneof) {
    fprintf(out, "offsetof(%s_t, %s_case)", m->c_name, f->oneof);
  } else if (f->optional) {
    fprintf(out, "offsetof(%s_t, has_%s)", m->c_name, f->name);
  } else {
    fprintf(out, "0");
  }
  fprintf(out, ", RN_PB_%s, RN_PB_WIRE_%s, ", f->kind,
          scalar       ? scalar->wire
          : f->message ? "LENGTH"
                       : "VARINT");
  if (f->message) {
    fprintf(out, "0");
  } else {
    fprintf(out, "sizeof(%s)", scalar ? scalar->c_type : "int32_t");
  }
  const char* flags = f->is_map     ? "RN_PB_REPEATED | RN_PB_MAP"
                      : f->packed   ? "RN_PB_REPEATED | RN_PB_PACKED"
                      : f->repeated ? "RN_PB_REPEATED"
                      : f->oneof    ? "RN_PB_ONEOF"
                      : f->optional ? "RN_PB_OPTIONAL"
                                    : "0";
  fprintf(out, ", %s},\n", flags);
}

// Field numbers below this are looked up in an index of one byte each.
enum { max_index = 64 };

static void write_tables(gen_t* g, FILE* out, const message_t* m) {
  size_t count = 0;
  for (const field_t* f = m->fields; f; f = f->next) ++count;
  if (count > 250) die(m->file->path, 0, "%s has more than 250 fields", m->full_name);
  const field_t** sorted = keep(g, (count + 1) * sizeof *sorted);
  count = 0;
  for (const field_t* f = m->fields; f; f = f->next) sorted[count++] = f;
  qsort(sorted, count, sizeof *sorted, by_number);
  unsigned char index[max_index] = {0};
  size_t index_size = 0;
  fprintf(out, "\n");
  if (count) fprintf(out, "static const rn_pb_field_desc_t %s_fields[] = {\n", m->c_name);
  for (size_t i = 0; i < count; ++i) {
    write_row(g, out, m, sorted[i]);
    if (sorted[i]->number < max_index) {
      index[sorted[i]->number] = (unsigned char)(i + 1);
      index_size = (size_t)sorted[i]->number + 1;
    }
  }
  if (count) fprintf(out, "};\n");
  if (index_size) fprintf(out, "static const uint8_t %s_index[] = {", m->c_name);
  for (size_t i = 0; i < index_size; ++i) fprintf(out, "%s%d", i ? ", " : "", index[i]);
  if (index_size) fprintf(out, "};\n");
  fprintf(out, "const rn_pb_message_desc_t %s_desc = {\n    \"%s\", ", m->c_name, m->full_name);
  fprintf(out, count ? "%s_fields, " : "NULL, ", m->c_name);
  fprintf(out, index_size ? "%s_index, " : "NULL, ", m->c_name);
  fprintf(out, "%zu, %zu, sizeof(%s_t), %s};\n", count, index_size, m->c_name,
          m->is_map_entry ? "true" : "false");
}

static void write_source(gen_t* g, const char* dir, const file_t* file) {
  FILE* out = create(g, dir, file->base, ".pb.c");
  fprintf(out, note, file->base);
  fprintf(out, "#include \"proto/%s.pb.h\"\n", file->base);
  for (const enum_t* e = file->enums; e; e = e->next) {
    fprintf(out, "\nstatic const rn_pb_enum_value_t %s_values[] = {\n", e->c_name);
    size_t count = 0;
    for (const enum_value_t* v = e->values; v; v = v->next, ++count) {
      fprintf(out, "    {\"%s\", %ld},\n", v->name, v->number);
    }
    fprintf(out, "};\nconst rn_pb_enum_desc_t %s_desc = {\"%s\", %s_values, %zu};\n", e->c_name,
            e->full_name, e->c_name, count);
  }
  for (const message_t* m = file->messages; m; m = m->next) write_tables(g, out, m);
  finish(out, file->base);
}

static void write_list(gen_t* g, const char* dir) {
  FILE* out = create(g, dir, "messages", ".pb.h");
  fprintf(out,
          "// Generated by tools/protogen: every message there is.\n"
          "#ifndef RUNNEL_PROTO_messages_PB_H_\n#define RUNNEL_PROTO_messages_PB_H_\n\n"
          "#include \"wire/message.h\"\n\n"
          "extern const rn_pb_message_desc_t* const rn_pb_messages[];\n"
          "extern const size_t rn_pb_message_count;\n\n#endif\n");
  finish(out, "messages");
  out = create(g, dir, "messages", ".pb.c");
  fprintf(out, "// Generated by tools/protogen: every message there is.\n");
  fprintf(out, "#include \"proto/messages.pb.h\"\n\n");
  for (const file_t* file = g->files; file; file = file->next) {
    fprintf(out, "#include \"proto/%s.pb.h\"\n", file->base);
  }
  fprintf(out, "\nconst rn_pb_message_desc_t* const rn_pb_messages[] = {\n");
  size_t count = 0;
  for (const file_t* file = g->files; file; file = file->next) {
    for (const message_t* m = file->messages; m; m = m->next) {
      if (m->is_map_entry) continue;
      fprintf(out, "    &%s_desc,\n", m->c_name);
      ++count;
    }
  }
  fprintf(out, "};\nconst size_t rn_pb_message_count = %zu;\n", count);
  finish(out, "messages");
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: protogen OUT_DIR FILE.proto... [--imports FILE.proto...]\n");
    return 2;
  }
  gen_t g = {0};
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "--imports") == 0)
      g.reads_imports = true;
    else
      read_file(&g, argv[i]);
  }
  resolve(&g);
  for (const file_t* file = g.files; file; file = file->next) {
    if (file->is_import) continue;
    write_header(&g, argv[1], file);
    write_source(&g, argv[1], file);
  }
  if (g.reads_imports)
    write_files(&g, argv[1]);
  else
    write_list(&g, argv[1]);
  while (g.blocks) {
    struct block_t* block = g.blocks;
    g.blocks = block->next;
    free(block);
  }
  return 0;
}
